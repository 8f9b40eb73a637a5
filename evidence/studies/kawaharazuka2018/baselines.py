"""Table search, no sharing, and the shared filter on polynomials, a network and the geometry, compared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from math import radians
from time import perf_counter
from typing import Any

import numpy as np

from evidence.studies.kawaharazuka2018.result import (
    ErrorGoal,
    ExperimentResult,
    ResultRow,
    Runs,
    Trace,
    settled,
    spread,
    walks_of,
)
from evidence.studies.kawaharazuka2018.testbed import ARM, NOISE, TendonTestbed, measured
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.exact import fit_target
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.neural import fit_neural
from humanoid_control.tendons.mappings.polynomial import fit_polynomial
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.mappings.table import TableMapping, build_table

GROUP = "l_shoulder"  # the group whose mapping is tried; the others have their geometry
SIGMA, START_ERROR = radians(0.5), radians(10.0)
DATA, ROWS = 6000, 300_000  # postures that all three fitted mappings get; rows of a larger table
DEGREE, WIDTH, ITERATIONS = 5, 32, 300
TIMED, ROUNDS = 100, 5  # steps whose time is taken, in turns, so that other work on the machine hits all alike
EXACT = "absolute, geometry"


@dataclass(frozen=True)
class BaselineMethod:
    """Method from lengths to angles: a mapping of the group, and settings of the filters; None searches a table.

    Attributes:
        data: postures that the mapping was made from; 0 for the geometry.
    """

    name: str
    mapping: JointMuscleMapping
    settings: dict[str, Any] | None
    data: int

    @property
    def noise(self) -> float:
        """Length noise that the filter is told, the misfit of the mapping included [m]."""
        return float(np.hypot(NOISE, self.mapping.fit.rms if self.mapping.fit else 0.0))


def methods(testbed: TendonTestbed, show: Callable[[float], object]) -> list[BaselineMethod]:
    """All of them, the fitted ones made from the same postures."""
    exact = testbed.mappings[GROUP]
    target = fit_target(testbed.geometry_of(GROUP))
    postures = random_postures(exact.limits, DATA)
    small, large = (build_table(target, random_postures(exact.limits, n)) for n in (DATA, ROWS))
    show(0.2)
    polynomials = fit_polynomial(target, postures, DEGREE)

    def trained(share: float) -> None:
        show(0.4 + 0.6 * share)

    trained(0.0)
    network = fit_neural(target, postures, WIDTH, ITERATIONS, progress=trained)
    printed = {"share": False, "predict": "tendons", "gate": 0.0, "limits": "off"}
    return [
        BaselineMethod(f"table search, {DATA:,} rows", small, None, DATA),
        BaselineMethod(f"table search, {ROWS:,} rows", large, None, ROWS),
        BaselineMethod("conventional, polynomials", polynomials, printed, DATA),
        BaselineMethod("absolute, polynomials", polynomials, {}, DATA),
        BaselineMethod("absolute, network", network, {}, DATA),
        BaselineMethod(EXACT, exact, {}, 0),
    ]


def baselines(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """Each method on the same walks of the whole body: errors of the left arm's own joints, and the time of a step."""
    tried = methods(testbed, lambda share: runs.show(0.3 * share))
    joints = testbed.whole.joint_names
    own = [joints.index(j) for j in ARM]
    walks: list[list[Array]] = [[] for _ in tried]
    times = np.empty((ROUNDS, len(tried)))
    lines: dict[str, Array] = {}
    steps: dict[str, Callable[[], object]] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q, lengths = testbed.walk(runs.steps, SIGMA, seed)
        z = dict(zip(testbed.whole.tendon_names, measured(lengths, seed).T, strict=True))
        start = q[0] + START_ERROR * np.random.default_rng(seed).choice([-1.0, 1.0], len(joints))
        for k, method in enumerate(tried):
            runs.show(0.3 + 0.7 * (seed + k / len(tried)) / runs.seeds)
            estimate = _estimate(testbed, method, z, dict(zip(joints, start, strict=True)))
            walks[k].append(estimate - q[:, own])
            if seed == 0:
                lines[method.name], first = estimate, q[:, own]
                steps[method.name] = _step(testbed, method, z)
    for turn in times:
        for k, method in enumerate(tried):
            turn[k] = _median_time(steps[method.name])
    rows = [
        ResultRow(
            method.name,
            ARM,
            np.array([settled(e) for e in errors]),
            goal=ErrorGoal(worst=1.0) if method.name == EXACT else None,
        )
        for method, errors in zip(tried, walks, strict=True)
    ]
    table = [
        {
            "filter": method.name,
            "postures": method.data,
            "fit mm": round(1e3 * method.mapping.fit.rms, 3)
            if method.mapping.fit and method.settings is not None
            else "",
            "built in s": round(method.mapping.fit.seconds, 2) if method.mapping.fit else "",
            "step us": round(1e6 * best, 1),
        }
        for method, best in zip(tried, times.min(axis=0).tolist(), strict=True)
    ]
    shown = [method.name for method in (tried[1], tried[2], tried[-1])]
    trace = Trace(
        "left arm during a random walk of the whole body; correct zero, noise of 0.1 mm",
        ARM,
        first,
        {name: lines[name] for name in shown},
        spread={method.name: spread(e) for method, e in zip(tried, walks, strict=True) if method.name in shown},
        of=f"error of {len(ARM)} joints, {walks_of(runs)}",
    )
    source = "tables are not smooth and grow as N^D; polynomials and networks have similar cost (sections II-A, II-B)"
    measure = "root mean square error without the first sixth; start 10 deg off; 8 joints and 10 tendons a step"
    return ExperimentResult("baselines", "earlier estimators", source, measure, tuple(rows), tuple(table), (trace,))


def _estimate(testbed: TendonTestbed, method: BaselineMethod, z: dict[str, Array], start: dict[str, float]) -> Array:
    """(T, J) angles of the arm's own joints."""
    if method.settings is None:
        assert isinstance(method.mapping, TableMapping)
        found = method.mapping.search(np.column_stack([z[t] for t in method.mapping.muscle_names]))
        return np.asarray(found[:, [method.mapping.joint_names.index(j) for j in ARM]])
    settings = EstimatorSettings("absolute", length_noise=method.noise, **method.settings)
    estimator = TendonEstimator(testbed.groups, testbed.mappings | {GROUP: method.mapping}, settings)
    estimator.reset({j: start[j] for j in estimator.joint_names})
    at = [estimator.joint_names.index(j) for j in ARM]
    lengths = np.column_stack([z[t] for t in estimator.muscle_names])
    return np.array([estimator.step(row)[at] for row in lengths])


def _step(testbed: TendonTestbed, method: BaselineMethod, z: dict[str, Array]) -> Callable[[], object]:
    """The next step of this group alone, as a function."""
    rows = cycle(np.column_stack([z[t] for t in method.mapping.muscle_names])[:TIMED])
    if method.settings is None:
        table = method.mapping
        assert isinstance(table, TableMapping)
        return lambda: table.search(next(rows))
    group = next(g for g in testbed.groups if g.name == GROUP)
    f = GroupFilter(group, method.mapping, EstimatorSettings("absolute", length_noise=method.noise, **method.settings))
    return lambda: f.step(next(rows))


def _median_time(step: Callable[[], object]) -> float:
    """Of single steps [s]."""
    out = []
    for _ in range(TIMED):
        begin = perf_counter()
        step()
        out.append(perf_counter() - begin)
    return float(np.median(out))
