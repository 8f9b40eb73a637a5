"""Speed of tendon estimation, one core: mappings of table I, filter updates next to filterpy, steps of three groups."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from evidence.benchmarks.dynamics import TimedCall, take_turns
from evidence.benchmarks.tendon_control import NOTES, judge_control, measure_control
from evidence.studies.kawaharazuka2018.experiments import TABLE_ONE, Built, build
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import ConfigError
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendons_of
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.kalman import Estimate, Gate, update
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.estimator.tiled_update import Measurements, UpdateMemory
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.postures import random_walk
from humanoid_control.tendons.tendon import TendonGroup
from humanoid_control.terminal import progress
from humanoid_control.warm_up import TENDONS, compile_first

SIZES = {  # states, tendons, joints crossed
    "8x10": (8, 10, 8),
    "60x80": (60, 80, 6),
    "60x80_dense": (60, 80, 60),
    "200x300": (200, 300, 6),
    "200x300_dense": (200, 300, 200),
}
NOISE, SPREAD = 1e-4, 0.1  # of a length [m], of the angles before the update [rad]
GATE, WALK = 6.0, 1500


@dataclass
class MeasuredUpdate:
    """One update problem: Jacobian H (M, n) [m/rad], innovations nu (M,) [m], their variance, covariance P (n, n)."""

    H: Array
    nu: Array
    r: float
    P: Array


def problem(size: str) -> MeasuredUpdate:
    """Random moment arms, as many a tendon as it crosses joints, and the lengths of a random posture with noise."""
    n, m, crossed = SIZES[size]
    rng = np.random.default_rng(0)
    H = np.zeros((m, n))
    for row in H:
        row[rng.choice(n, crossed, replace=False)] = rng.uniform(-0.05, 0.05, crossed)
    nu = H @ (SPREAD * rng.standard_normal(n)) + NOISE * rng.standard_normal(m)
    return MeasuredUpdate(H, nu, NOISE**2, SPREAD**2 * np.eye(n))


class UpdateArguments(NamedTuple):
    """Arguments of `update`."""

    estimate: Estimate
    measured: Measurements
    gate: Gate
    memory: UpdateMemory


@kernel
def packed_update(table: Table[UpdateArguments]) -> None:
    """`update` with the packed UpdateArguments: records cross from Python as those of the estimator do."""
    a = unpack(table, UpdateArguments)
    update(a.estimate, a.measured, a.gate, a.memory)


class KalmanUpdate:
    """The update of the estimator with its gate, from the same state every time; x and P are what it found."""

    def __init__(self, given: MeasuredUpdate) -> None:
        m, n = given.H.shape
        self.given, self.x, self.P = given, np.zeros(n), given.P.copy()
        self._use = np.ones(m, dtype=np.int64)
        measured = Measurements(given.H, given.nu, np.full(m, given.r), self._use, np.zeros(m))
        given_to = UpdateArguments(Estimate(self.x, self.P), measured, Gate(GATE, m // 3), UpdateMemory.of(m, n))
        self._arguments = Packed(given_to)

    def __call__(self) -> float:
        """The time that it took [s]."""
        self.x[:], self.P[:], self._use[:] = 0.0, self.given.P, 1
        begin = perf_counter()
        packed_update(self._arguments.table)
        return perf_counter() - begin


class FilterpyUpdate:
    """The update of filterpy's extended Kalman filter, given H and h(x) ready-made."""

    def __init__(self, given: MeasuredUpdate) -> None:
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
        """The posterior mean."""
        return np.asarray(self._filter.x)

    @property
    def P(self) -> Array:
        """The posterior covariance."""
        return np.asarray(self._filter.P)


class InformationUpdate:
    """The same posterior in information form, as one writes it with numpy: (P^-1 + H^T H / r)^-1. No gate."""

    def __init__(self, given: MeasuredUpdate) -> None:
        self.given, self.x, self.P = given, np.zeros(len(given.P)), given.P

    def __call__(self) -> float:
        """The time that it took [s]."""
        H, P = self.given.H, self.given.P.copy()
        begin = perf_counter()
        weighted = H.T / self.given.r
        self.P = np.linalg.inv(np.linalg.inv(P) + weighted @ H)
        self.x = self.P @ (weighted @ self.given.nu)
        return perf_counter() - begin


class NumbaUpdate:
    """The textbook's update, one length after the other, as one writes it with numba along rows of P. No gate."""

    def __init__(self, given: MeasuredUpdate) -> None:
        self.given, self.x, self.P = given, np.zeros(len(given.P)), given.P.copy()
        self._memory = np.zeros(len(given.P))

    def __call__(self) -> float:
        """The time that it took [s]."""
        self.x[:], self.P[:] = 0.0, self.given.P
        begin = perf_counter()
        sequential_update(self.x, self.P, self.given.H, self.given.nu, self.given.r, self._memory)
        return perf_counter() - begin


@kernel
def sequential_update(x: Array, P: Array, H: Array, nu: Array, r: float, gain: Array) -> None:
    """Take in M innovations of equal, independent noise one by one, in place.

    Args:
        x: (n,) correction so far. P: (n, n). H: (M, n). nu: (M,) against x = 0. r: variance. gain: (n,) memory.
    """
    n = x.shape[0]
    for m in range(H.shape[0]):
        gain[:] = 0.0
        for i in range(n):
            if H[m, i] != 0.0:
                for j in range(n):
                    gain[j] += H[m, i] * P[i, j]
        s, e = r, nu[m]
        for i in range(n):
            s += H[m, i] * gain[i]
            e -= H[m, i] * x[i]
        for i in range(n):
            f = gain[i] / s
            x[i] += f * e
            for j in range(n):
                P[i, j] -= f * gain[j]


PEERS: dict[str, Callable[[MeasuredUpdate], Callable[[], float]]] = {
    "filterpy": FilterpyUpdate,
    "information": InformationUpdate,
    "numba": NumbaUpdate,
}


def update_cases() -> list[TimedCall]:
    """The estimator's update in every size, and others'; filterpy's where it is installed. Each measures itself."""
    cases = [TimedCall(f"update_{size}", KalmanUpdate(problem(size)), n, True) for size, (n, _, _) in SIZES.items()]
    for name, peer in PEERS.items():
        if name != "filterpy" or importlib.util.find_spec(name) is not None:
            sizes = ["8x10", "60x80"]
            for size in [*sizes, "60x80_dense"] if name == "numba" else sizes:  # the others do not look for zeros
                cases.append(TimedCall(f"{name}_{size}", peer(problem(size)), SIZES[size][0], True))
    return cases


def three_groups(robot: Robot, mappings: Mapping[str, JointMuscleMapping], kind: str) -> Callable[[], object]:
    """A function that takes the next step of a random walk with all three groups of table I.

    The lengths are those of the mappings themselves, so that the filters do what they do on a robot that is well known.
    """
    tendons = tendons_of(robot).groups
    groups = [TendonGroup(g.group, g.joints[: g.own], g.joints[g.own :], tendons[g.group].tendons) for g in TABLE_ONE]
    estimator = TendonEstimator(groups, mappings, EstimatorSettings(kind, length_noise=NOISE))
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


# -------- The bench

ROBOT = "kengoro_upper"
COLUMNS = ["name", "unit", "median", "p99", "n", "size", "peak_mb", "source", "ratio", "goal", "reached"]
CALLS, STEPS, BUILDS = 2000, 2000, 3
LESS = {"jmm_neck_s": 20.0, "jmm_scapula_s": 20.0, "jmm_shoulder_s": 20.0}
LESS |= {"update_8x10": 1.0, "update_60x80": 20.0, "update_60x80_dense": 45.0, "update_200x300": 900.0}
MORE = {"three_groups": 2000.0, "three_groups_absolute": 2000.0}
RATIO = {"update_8x10": 5.0}  # how many times longer filterpy should take
PEAK = 4000.0  # [MB] of a process that builds the mappings of table I
COUNTS: dict[str, tuple[int, ...]] = {}  # other values per joint than those of table I, by the name of its column


def measure(robot: str = ROBOT, quiet: bool = True) -> list[dict[str, Any]]:
    """Rows in s, us or Hz. The estimator and the peer take turns, so that other work on the machine hits both alike."""
    model = load_robot(robot, "fixed")
    if model.name != ROBOT:
        raise ConfigError(f"bench tendons measures the three groups of table I, which only {ROBOT} has")
    compile_first(TENDONS)
    with progress("measuring", 1.0, quiet=quiet) as show:
        built: dict[str, list[Built]] = {g.name: [] for g in TABLE_ONE}
        for k in range(BUILDS * len(TABLE_ONE)):
            group = TABLE_ONE[k % len(TABLE_ONE)]
            share = 0.6 / (BUILDS * len(TABLE_ONE))
            part = _part(show, k * share, share, group.name)
            built[group.name].append(build(model, group, COUNTS.get(group.name), part))
        rows = [_built_row(name, b) for name, b in built.items()]
        cases = update_cases()
        times = take_turns(cases, CALLS, _part(show, 0.6, 0.2, "updates"))
        rows += [_row(case, 1e6 * t, "us") for case, t in zip(cases, times, strict=True)]
        cases = groups_cases(model, {name: b[0] for name, b in built.items()})
        times = take_turns(cases, STEPS, _part(show, 0.8, 0.1, "three groups"))
        rows += [_row(case, 1.0 / t, "Hz") for case, t in zip(cases, times, strict=True)]
        control = measure_control(model, _part(show, 0.9, 0.1, "control"))
    judge(rows)
    judge_control(control)
    return rows + control


def groups_cases(robot: Robot, built: dict[str, Built]) -> list[TimedCall]:
    """The three groups with the mappings just built, by an absolute and by the default relative observation."""
    mappings = {g.group: built[g.name].mapping for g in TABLE_ONE}
    kinds = (("three_groups", "r2"), ("three_groups_absolute", "absolute"))
    return [TimedCall(name, three_groups(robot, mappings, kind), 14) for name, kind in kinds]


def _part(show: Callable[..., object], start: float, share: float, text: str) -> Callable[[float], None]:
    """Callback that tells the bar how much of a part is done."""
    return lambda done: (show(start + share * done, text), None)[1]


def _built_row(name: str, built: Sequence[Built]) -> dict[str, Any]:
    source = next(g for g in TABLE_ONE if g.name == name)
    b = built[0]
    d, m = len(source.joints), len(b.mapping.muscle_names)
    row = _values(f"jmm_{name}_s", "s", np.array([b.seconds for b in built]), 99, 3)
    row |= {"states": d, "tendons": m, "crossed": "", "size": f"{d}x{m}", "peak_mb": round(built[-1].peak / 1e6)}
    row |= {"source": f"{source.construction:.0f} + {source.regression:.0f}"}
    more = {"data": b.mapping.fit.samples if b.mapping.fit else 0, "degree": 5, "lengths_s": round(b.lengths, 3)}
    return row | more | {"length_rms_mm": 1e3 * b.length_rms, "arm_error_percent": 100 * b.arm_error}


def _row(case: TimedCall, values: np.ndarray, unit: str) -> dict[str, Any]:
    n, m, crossed = SIZES.get(case.name.partition("_")[2], (14, 28, ""))
    size = f"{n}x{m}, {crossed} crossed" if crossed and crossed != n else f"{n}x{m}"
    row = _values(case.name, unit, values, 1 if unit == "Hz" else 99, 2)
    return row | {"states": n, "tendons": m, "crossed": crossed, "size": size, "peak_mb": "", "source": ""}


def _values(name: str, unit: str, values: np.ndarray, slow: int, digits: int) -> dict[str, Any]:
    """Median, best and the percentile toward the slow side."""
    best = values.max() if unit == "Hz" else values.min()
    row: dict[str, Any] = {"name": name, "unit": unit, "median": round(float(np.median(values)), digits)}
    row |= {"best": round(float(best), digits), "p99": round(float(np.percentile(values, slow)), digits)}
    return row | {"n": len(values)}


def judge(rows: list[dict[str, Any]]) -> None:
    """Write to each row how many times longer the peers take, the goals, and whether they are reached."""
    by = {r["name"]: r for r in rows}
    for row in rows:
        name = row["name"]
        ratios = {}
        for other in PEERS if name.startswith("update_") else ():
            theirs = name.replace("update", other, 1)
            if peer := by.get(theirs) or by.get(theirs.removesuffix("_dense")):
                ratios[other] = round(float(peer["median"]) / float(row["median"]), 1)
        ratio = ratios.get("filterpy", 0.0)
        met: list[bool] = []
        goals: list[str] = []
        if name in LESS:
            met.append(row["median"] < LESS[name])
            goals.append(f"< {LESS[name]:g} {row['unit']}")
        if name in MORE:
            met.append(row["median"] > MORE[name])
            goals.append(f"> {MORE[name]:g} {row['unit']}")
        if row["peak_mb"] != "":
            met.append(row["peak_mb"] < PEAK)
            goals.append(f"< {PEAK / 1000:g} GB")
        if ratio and name in RATIO:
            met.append(ratio >= RATIO[name])
            goals.append(f"{RATIO[name]:g} x peer")
        row |= {
            "ratio": ratio or "",
            "ratios": ratios,
            "goal": ", ".join(goals),
            "reached": ("yes" if all(met) else "no") if met else "",
        }


def notes(rows: list[dict[str, Any]]) -> list[str]:
    """Lines that say what the numbers stand for."""
    lines = [
        "jmm: data set and polynomials of degree 5 from the number of postures in table I, on one core; source: its "
        "construction + regression [s] on 12 cores. peak_mb: peak memory of the whole process so far.",
        "update: with all tendons, and the leave-one-out test of each; size: joints x tendons. 60x80 and 200x300 "
        "have the sparse rows of a whole body; the rows named dense are full.",
        "three_groups: whole steps per second of neck, scapula and shoulder (14 joints estimated) in one process, "
        "polynomials and exchange included; r2, then absolute.",
        "information: the information form in numpy; numba: the compiled textbook loop over single lengths, which "
        "skips zeros. Like filterpy, they do not test for faulty tendons.",
        *NOTES,
    ]
    if any(r["name"].startswith("filterpy_") for r in rows):
        return [
            *lines,
            "filterpy: ExtendedKalmanFilter.update with given H and h(x); ratio: its time relative to this package. "
            "It does not test for faulty tendons and does not use the sparsity of H.",
        ]
    return [*lines, "filterpy is not installed: pip install 'humanoid_control[bench]' adds its rows"]
