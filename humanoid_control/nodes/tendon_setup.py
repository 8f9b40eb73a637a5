"""Tendon-driven joint estimators made from the parameters of the state estimator, alone or two side by side."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.nodes.base.messages import STREAM_OUT, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.nodes.state_estimator_parameters import StateEstimatorParameters
from humanoid_control.robots import Robot
from humanoid_control.robots.tendons import tendon_geometry, tendon_groups, tendon_mappings
from humanoid_control.tendons import EstimatorComparison, EstimatorSettings, TendonEstimator
from humanoid_control.tendons.mappings.mapping import Array

ERROR_RATE = 50.0  # [Hz] of ~/jae_error at most


def estimator_of(robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    """The estimator that the parameters ask for, at its start posture.

    Lengths of whole paths are zeroed where all joints are zero, so that they need no calibration.

    Raises:
        HumanoidError: no tendons, no groups, a mapping of another robot, an unknown posture.
    """
    settings = EstimatorSettings(
        p.mode, p.length_noise, p.step_noise, limits=p.limits, gate=p.gate, slack_tension=p.slack_tension
    )
    groups = tendon_groups(robot, p.groups)
    mappings = tendon_mappings(robot, groups, Path(p.mapping).expanduser() if p.mapping else None)
    return _started(TendonEstimator(groups, mappings, settings), robot, p)


def partner_of(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
    """An estimator to be compared with: relative by r2 where the other is absolute, else absolute.

    It shares the other's mappings, so that both use what is learnt.
    """
    observation = "r2" if p.mode == "absolute" else "absolute"
    mappings = {f.group.name: f.mapping for f in estimator.filters}
    settings = replace(estimator.settings, observation=observation)
    return _started(TendonEstimator(estimator.groups, mappings, settings), robot, p)


def _started(estimator: TendonEstimator, robot: Robot, p: StateEstimatorParameters) -> TendonEstimator:
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
    """The angles by joint at which ~/zero calibrates; 'estimate' are those estimated now.

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


class PairedEstimation:
    """Absolute and relative estimation side by side: a second estimator on the same lengths, and `~/jae_error`.

    The second one is relative (r2) where the node's is absolute, and absolute where that is relative. The error is
    always relative minus absolute (Kawaharazuka 2018, section V-B); it is published while somebody listens.

    Attributes:
        partner: the second estimator, with the mappings of the first.
    """

    def __init__(self, node: TickNode, robot: Robot, estimator: TendonEstimator, p: StateEstimatorParameters) -> None:
        self.node, self.robot, self._params = node, robot, p
        self.partner = partner_of(estimator, robot, p)
        absolute = p.mode == "absolute"
        self._pair = EstimatorComparison(*((estimator, self.partner) if absolute else (self.partner, estimator)))
        self._names = self._pair.reference.joint_names
        self._message = joint_state(self._names)
        self._publisher = node.create_publisher(JointState, "~/jae_error", STREAM_OUT)
        self._next, self._new = 0.0, False

    @property
    def error(self) -> Array:
        """(J,) relative minus absolute estimate after the last step [rad]."""
        return self._pair.error

    def step(self, lengths: Array, tensions: Array | None) -> None:
        """One step of both with lengths (M,) [m] and tensions (M,) [N]."""
        self._pair.step(lengths, tensions)
        self._new = True

    def reset(self) -> None:
        """Put the second one back to the start posture too."""
        start(self.partner, self.robot, self._params)
        self._pair.error[:] = 0.0

    def slack_time(self) -> None:
        """Publish the error of the last step, between ticks."""
        now = time.monotonic()
        if not self._new or now < self._next:
            return
        self._next, self._new = now + 1.0 / ERROR_RATE, False
        if self._publisher.get_subscription_count():
            stamp = stamp_of(self.node.present())
            self._publisher.publish(fill_joint_state(self._message, stamp, self.error))

    def values(self) -> dict[str, Any]:
        """Figures for diagnostics."""
        size = np.rad2deg(np.abs(self.error))
        worst = int(np.argmax(size))
        return {
            "jae_error_mean_deg": round(float(size.mean()), 3),
            "jae_error_max_deg": round(float(size[worst]), 3),
            "jae_error_max_joint": self._names[worst],
        }
