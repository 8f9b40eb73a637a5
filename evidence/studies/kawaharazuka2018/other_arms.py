"""Arms of others: lengths from MuJoCo or pinocchio as the plant, angles from the estimator."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from math import radians
from pathlib import Path

import numpy as np

from evidence.studies.kawaharazuka2018.result import (
    DEGREES,
    MILLIMETRES,
    ErrorGoal,
    ExperimentResult,
    ResultRow,
    Runs,
    Trace,
    spread,
    tail,
    walks_of,
)
from evidence.studies.kawaharazuka2018.testbed import NOISE, measured, muscle_walk, placed_lengths
from humanoid_control.errors import ConfigError, EnvironmentProblem
from humanoid_control.paths import TEST_DATA, test_data
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.files.cardsflow import read_cardsflow
from humanoid_control.tendons.files.mjcf import read_mjcf
from humanoid_control.tendons.mappings.exact import GeometryMapping, exact_mapping
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.postures import random_walk
from humanoid_control.tendons.routing.geometry import TendonGeometry
from humanoid_control.tendons.tendon import TendonGroup

ELBOWS = ("myoelbow_1dof6muscles", "myoelbow_2dof6muscles")
PUPPET = "VRpuppet"
PUPPET_JOINTS = tuple(f"axis{k}" for k in range(6))
START_ERROR = radians(20.0)
# With all motors at one height, or the box not turned, the tendons do not see all six directions to first order.
MOTORS = {f"motor{k}": -1.0 if k % 2 else -0.2 for k in range(6)}  # [m], counted downwards
BOX_RANGE = np.array([[-0.3, 0.3], [-0.3, 0.3], [0.3, 0.9], *[[-0.1, 0.1]] * 3])  # turns [rad], then shifts [m]
GOAL = ErrorGoal(worst=2.0)
BOX_STEP, BOX_START = 0.003, np.array([0.1] * 3 + [0.03] * 3)


@dataclass(frozen=True)
class ForeignArm:
    """A model of others, its mapping, its walks: (steps, seed) -> joint values (T, D), lengths (T, M) since zero."""

    name: str
    mapping: GeometryMapping
    walk: Callable[[int, int], tuple[Array, Array]]
    start_error: Array
    units: tuple[str, ...]
    relative: bool


def models_folder(path: Path | None) -> Path | None:
    """The folder of the models: the one given, or that of the environment where it exists, else None.

    Raises:
        ConfigError: the one given is no folder.
    """
    if path is not None and not path.is_dir():
        what = "is not a folder" if path.exists() else "does not exist"
        raise ConfigError(f"the folder {path} {what}: models must be the folder of the arm models")
    usual = test_data("muscles")
    return path or (usual if usual is not None and usual.is_dir() else None)


def model_files(folder: Path | None) -> list[Path]:
    """The files of both elbows and of the box.

    Raises:
        ConfigError: no folder, or a model that is not in it. EnvironmentProblem: MuJoCo is not installed.
    """
    if folder is None:
        raise ConfigError(f"arm models of other authors are missing: give the folder (models), or set {TEST_DATA}")
    if importlib.util.find_spec("mujoco") is None:
        raise EnvironmentProblem(
            "arm models of other authors need MuJoCo as the plant: pip install 'humanoid_control[mujoco]'"
        )
    return [_file(folder, pattern) for pattern in (*(f"{name}*.xml" for name in ELBOWS), f"{PUPPET}/cardsflow.xml")]


def others(folder: Path | None, runs: Runs) -> ExperimentResult:
    """Estimate the joints of each arm: absolute and, where there are more tendons than joints, relative.

    Raises:
        ConfigError, EnvironmentProblem: see `model_files`.
    """
    *elbows, box = model_files(models_folder(folder))
    arms = [*(_elbow(path, name) for path, name in zip(elbows, ELBOWS, strict=True)), _puppet(box)]
    rows, traces = [], []
    for k, arm in enumerate(arms):

        def show(share: float, done: int = k) -> None:
            runs.show((done + share) / len(arms))

        found, drawn = _estimate(arm, runs, show)
        rows += found
        traces += drawn
    measure = (
        "mean absolute error of the last fifth; lengths with 0.1 mm of noise; start 20 deg off (box: 0.1 rad, 3 cm)"
    )
    source = "not in Kawaharazuka 2018; MuJoCo moves both elbows by their muscles, pinocchio places the box of VRpuppet"
    return ExperimentResult("others", "arm models of other authors", source, measure, tuple(rows), (), tuple(traces))


def _file(folder: Path, pattern: str) -> Path:
    found = sorted(folder.rglob(pattern))
    if not found:
        raise ConfigError(f"no {pattern} in {folder}: models must be the folder of the arm models")
    return found[0]


def _elbow(path: Path, name: str) -> ForeignArm:
    geometry = read_mjcf(path).geometry()
    mapping = exact_mapping(geometry)
    off = np.full(len(geometry.joint_names), START_ERROR)
    units = (DEGREES,) * len(off)
    return ForeignArm(name, mapping, lambda steps, seed: muscle_walk(path, geometry, steps, seed), off, units, True)


def _puppet(path: Path) -> ForeignArm:
    """The six tendons of the box, the motors that hold their ends at rest."""
    puppet = read_cardsflow(path)
    whole = TendonGeometry(puppet.model, puppet.tendons, PUPPET_JOINTS, MOTORS)
    mapping = GeometryMapping(
        whole.raw, whole.joint_names, whole.tendon_names, BOX_RANGE, "", whole.raw_into, whole.jacobian_directional
    )

    def walk(steps: int, seed: int) -> tuple[Array, Array]:
        q = random_walk(BOX_RANGE, BOX_RANGE.mean(axis=1), steps, BOX_STEP, seed)
        return q, placed_lengths(puppet, PUPPET_JOINTS, q, MOTORS)

    units = (DEGREES,) * 3 + (MILLIMETRES,) * 3
    return ForeignArm(PUPPET, mapping, walk, BOX_START, units, False)


def _estimate(arm: ForeignArm, runs: Runs, show: Callable[[float], None]) -> tuple[list[ResultRow], list[Trace]]:
    joints = arm.mapping.joint_names
    group = TendonGroup(arm.name, joints, (), arm.mapping.muscle_names)
    kinds = {"absolute": "absolute", "relative r2": "r2"} if arm.relative else {"absolute": "absolute"}
    filters = [GroupFilter(group, arm.mapping, EstimatorSettings(kind, length_noise=NOISE)) for kind in kinds.values()]
    walks: dict[str, list[Array]] = {name: [] for name in kinds}
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        show(seed / runs.seeds)
        q, lengths = arm.walk(runs.steps, seed)
        z = measured(lengths, seed)
        sign = np.random.default_rng(seed).choice([-1.0, 1.0], len(joints))
        for f, name in zip(filters, kinds, strict=True):
            f.reset(np.clip(q[0] + sign * arm.start_error, *arm.mapping.limits.T), arm.start_error)
            estimate = np.array([f.step(row) for row in z])
            walks[name].append(estimate - q)
            if seed == 0:
                lines[name], first = estimate, q
    rows, traces = [], []
    for unit in dict.fromkeys(arm.units):
        which = [k for k, u in enumerate(arm.units) if u == unit]
        names = tuple(joints[k] for k in which)
        title = arm.name if unit == DEGREES else f"{arm.name} shifts"
        for name, errors in walks.items():
            goal = GOAL if unit == DEGREES else None
            rows.append(ResultRow(f"{title}, {name}", names, np.array([tail(e[:, which]) for e in errors]), unit, goal))
        drawn = {name: line[:, which] for name, line in lines.items()}
        strip = {name: spread([e[:, which] for e in errors]) for name, errors in walks.items()}
        of = f"error, {walks_of(runs)}"
        traces.append(Trace(title, names, first[:, which], drawn, unit, strip, of))
    return rows, traces
