"""What `humanoid bench tendons` times: updates of ours and of filterpy on the same numbers, steps of three groups."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter
from typing import Any

import numpy as np

from humanoid_control.cli.bench_dynamics import Case
from humanoid_control.robots import Robot
from humanoid_control.robots.tendon_file import tendons_of
from humanoid_control.simulation.studies.tendons.table_one import TABLE_ONE
from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.filters.kalman import update
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.random_walk import random_walk
from humanoid_control.tendons.tendon import TendonGroup
from humanoid_control.tendons.tendon_estimator import TendonEstimator

SIZES = {"8x10": (8, 10, 8), "60x80": (60, 80, 6), "60x80_dense": (60, 80, 60)}  # states, tendons, joints crossed
NOISE, SPREAD = 1e-4, 0.1  # of a length [m], of the angles before the update [rad]
GATE, WALK = 6.0, 1500


@dataclass
class Measured:
    """One update problem: Jacobian H (M, n) [m/rad], innovations nu (M,) [m], their variance, covariance P (n, n)."""

    H: Array
    nu: Array
    r: float
    P: Array


def problem(size: str) -> Measured:
    """Random moment arms, as many a tendon as it crosses joints, and the lengths of a random posture with noise."""
    n, m, crossed = SIZES[size]
    rng = np.random.default_rng(0)
    H = np.zeros((m, n))
    for row in H:
        row[rng.choice(n, crossed, replace=False)] = rng.uniform(-0.05, 0.05, crossed)
    nu = H @ (SPREAD * rng.standard_normal(n)) + NOISE * rng.standard_normal(m)
    return Measured(H, nu, NOISE**2, SPREAD**2 * np.eye(n))


class OurUpdate:
    """Our update with its gate, from the same state every time; x and P are what it found."""

    def __init__(self, given: Measured) -> None:
        m, n = given.H.shape
        self.given, self.x, self.P = given, np.zeros(n), given.P.copy()
        self._r, self._use = np.full(m, given.r), np.ones(m, dtype=np.int64)
        self._x0, self._P0, self._w = np.zeros(n), np.zeros((n, n)), np.zeros(n)
        self._at, self._score = np.zeros(n, dtype=np.int64), np.zeros(m)

    def __call__(self) -> float:
        """The time that it took [s]."""
        self.x[:], self.P[:], self._use[:] = 0.0, self.given.P, 1
        begin = perf_counter()
        update(
            self.x, self.P, self.given.H, self.given.nu, self._r, self._use, GATE, len(self._r) // 3,
            self._x0, self._P0, self._w, self._at, self._score,
        )  # fmt: skip
        return perf_counter() - begin


class FilterpyUpdate:
    """The update of filterpy's extended Kalman filter, given H and h(x) ready-made."""

    def __init__(self, given: Measured) -> None:
        from filterpy.kalman import ExtendedKalmanFilter

        m, n = given.H.shape
        self.given = given
        self._filter: Any = ExtendedKalmanFilter(n, m)
        self._filter.R = given.r * np.eye(m)
        self._zero = np.zeros(m)

    def __call__(self) -> float:
        """The time that it took [s]."""
        self._filter.x, self._filter.P = np.zeros(len(self.given.P)), self.given.P.copy()
        begin = perf_counter()
        self._filter.update(self.given.nu, lambda _: self.given.H, lambda _: self._zero)
        return perf_counter() - begin

    @property
    def x(self) -> Array:
        """What it found."""
        return np.asarray(self._filter.x)

    @property
    def P(self) -> Array:
        """Its covariance."""
        return np.asarray(self._filter.P)


def update_cases() -> list[Case]:
    """Ours in every size, and filterpy's where it is installed; each case measures itself."""
    cases = [Case(f"update_{size}", OurUpdate(problem(size)), n, True) for size, (n, _, _) in SIZES.items()]
    if importlib.util.find_spec("filterpy") is not None:
        for size in ("8x10", "60x80"):  # it makes no difference between dense and sparse
            cases.append(Case(f"filterpy_{size}", FilterpyUpdate(problem(size)), SIZES[size][0], True))
    return cases


def three_groups(robot: Robot, mappings: Mapping[str, JointMuscleMapping], kind: str) -> Callable[[], object]:
    """A function that takes the next step of a random walk with all three groups of table I.

    The lengths are those of the mappings themselves, so that the filters do what they do on a robot that is well known.
    """
    tendons = tendons_of(robot).groups
    groups = [TendonGroup(g.group, g.joints[: g.own], g.joints[g.own :], tendons[g.group].tendons) for g in TABLE_ONE]
    estimator = TendonEstimator(groups, mappings, FilterSettings(kind, length_noise=NOISE))
    limits = np.array([_limits(mappings, j) for j in estimator.joint_names])
    q = random_walk(limits, limits.mean(axis=1), WALK, np.radians(0.5))
    lengths = np.zeros((len(q), len(estimator.muscle_names)))
    for g in groups:
        columns = [estimator.muscle_names.index(t) for t in g.tendons]
        lengths[:, columns] = mappings[g.name].lengths(q[:, [estimator.joint_names.index(j) for j in g.joints]])
    lengths += NOISE * np.random.default_rng(0).standard_normal(lengths.shape)
    estimator.reset(dict(zip(estimator.joint_names, q[0], strict=True)))
    rows = cycle([*lengths, *lengths[::-1]])  # forth and back, so that the walk never jumps
    return lambda: estimator.step(next(rows))


def _limits(mappings: Mapping[str, JointMuscleMapping], joint: str) -> Array:
    """The range of a joint (2,) by the first mapping that has it."""
    m = next(m for m in mappings.values() if joint in m.joint_names)
    return np.asarray(m.limits[m.joint_names.index(joint)])
