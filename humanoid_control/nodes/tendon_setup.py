"""From the parameters of the state estimator to an estimator of tendon-driven joints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import Robot
from humanoid_control.robots.tendon_file import tendon_geometry
from humanoid_control.robots.tendon_groups import tendon_groups, tendon_mappings
from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.tendon_estimator import TendonEstimator


def estimator_of(robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    """The estimator that the parameters ask for, at its start posture.

    Lengths of whole ways are zeroed where all joints are zero, so that nothing has to be calibrated for them.

    Raises:
        HumanoidError: no tendons, no groups, a mapping of another robot, an unknown posture.
    """
    settings = FilterSettings(
        p.mode, p.length_noise, p.step_noise, limits=p.limits, gate=p.gate, slack_tension=p.slack_tension
    )
    groups = tendon_groups(robot, p.groups)
    mappings = tendon_mappings(robot, groups, Path(p.mapping).expanduser() if p.mapping else None)
    return _begun(TendonEstimator(groups, mappings, settings), robot, p)


def partner_of(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    """An estimator to be compared with: relative by r2 where the other is absolute, else absolute.

    It shares the other's mappings, so that both know what is learnt.
    """
    observation = "r2" if p.mode == "absolute" else "absolute"
    mappings = {f.group.name: f.mapping for f in estimator.filters}
    settings = replace(estimator.settings, observation=observation)
    return _begun(TendonEstimator(estimator.groups, mappings, settings), robot, p)


def _begun(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    start(estimator, robot, p)
    if p.lengths == "path":
        geometry = tendon_geometry(robot)
        order = [geometry.tendon_names.index(name) for name in estimator.muscle_names]
        estimator.zero(geometry.zero[order], dict.fromkeys(estimator.joint_names, 0.0))
    return estimator


def start(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> None:
    """Put the estimate at the start posture; a calibration is kept."""
    estimator.reset(_angles(estimator, robot, p.start_posture, "start_posture"))


def zero_angles(estimator: TendonEstimator, robot: Robot, text: str) -> dict[str, float]:
    """The angles by joint at which ~/zero calibrates; 'estimate' are those believed now.

    Raises:
        UnknownNameError, ConfigError: see `posture_of`.
    """
    if text == "estimate":
        return dict(zip(estimator.joint_names, estimator.theta.tolist(), strict=True))
    return _angles(estimator, robot, text, "zero_posture")


def _angles(estimator: TendonEstimator, robot: Robot, text: str, parameter: str) -> dict[str, float]:
    posture = posture_of(robot, text, parameter)
    return {name: float(posture[robot.joint_index(name)]) for name in estimator.joint_names}


def posture_of(robot: Robot, text: str, parameter: str) -> np.ndarray:
    """Joint angles (n,) [rad] from a posture's name, or from 'joint=angle,...' with the rest at neutral.

    Raises:
        UnknownNameError: no such posture or joint. ConfigError: an angle that is none, or outside the joint's limits.
    """
    if "=" not in text:
        if text not in robot.postures:
            raise UnknownNameError(f"posture in {parameter}", text, robot.postures)
        return robot.postures[text].copy()
    out = robot.postures["neutral"].copy()
    for part in (t for t in text.split(",") if t.strip()):
        name, _, value = (t.strip() for t in part.partition("="))
        k = robot.joint_index(name)
        try:
            out[k] = float(value)
        except ValueError:
            raise ConfigError(f"{parameter}: angle of {name} must be a number in radians, got '{value}'") from None
        if not robot.lower[k] <= out[k] <= robot.upper[k]:
            raise ConfigError(
                f"{parameter}: {name} at {out[k]:g} rad is outside its limits {robot.lower[k]:.3g} .. "
                f"{robot.upper[k]:.3g}"
            )
    return out
