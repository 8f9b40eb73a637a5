"""E1 and E2: the mappings of table I; the whole upper body while it walks at random, calibrated rightly."""

from __future__ import annotations

from math import radians

import numpy as np

from humanoid_control.simulation.studies.tendons.finding import (
    GIGABYTES,
    SECONDS,
    Finding,
    Goal,
    Row,
    Runs,
    Trace,
    settled,
    spread,
    walks_of,
)
from humanoid_control.simulation.studies.tendons.lab import ARM, NECK, SCAPULA, TendonLab, measured
from humanoid_control.simulation.studies.tendons.table_one import DEGREE, TABLE_ONE, build
from humanoid_control.tendons.encoders import EncoderErrors
from humanoid_control.tendons.filters.filter_settings import FilterSettings
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.tendon_estimator import TendonEstimator

COUNTS: dict[str, tuple[int, ...]] = {}  # other values per joint than those of table I, by the name of its column
SIGMA, START_ERROR = radians(0.5), radians(10.0)
FINEST = 2e-5  # noise that a filter is told at least [m]
ABSOLUTE, FITTED, RELATIVE = "absolute, 0.1 mm", "absolute, polynomials, 0.1 mm", "relative r2, 0.1 mm"
VARIANTS = (
    ("absolute, no noise", "absolute", 0.0),
    (ABSOLUTE, "absolute", 1e-4),
    ("absolute, 0.5 mm", "absolute", 5e-4),
    (FITTED, "absolute", 1e-4),
    (RELATIVE, "r2", 1e-4),
)
STRIP = (ABSOLUTE, FITTED, RELATIVE)
GOALS = {VARIANTS[0][0]: Goal(worst=1.0), ABSOLUTE: Goal(worst=1.0), VARIANTS[2][0]: Goal(worst=3.0)}
GOALS[FITTED] = Goal(worst=2.0)  # twice that of the geometry


def table_one(lab: TendonLab, runs: Runs) -> Finding:
    """E1: data and polynomials of the three groups."""
    lines, spent = [], []
    for k, group in enumerate(TABLE_ONE):

        def show(share: float, done: int = k) -> None:
            runs.show((done + share) / len(TABLE_ONE))

        built = build(lab.robot, group, COUNTS.get(group.name), show)
        fit = built.mapping.fit
        lines.append(
            {
                "group": group.name,
                "data": fit.samples if fit else 0,
                "joints": len(group.joints),
                "tendons": len(built.mapping.muscle_names),
                "degree": DEGREE,
                "data s": round(built.lengths, 2),
                "source data s": group.construction,
                "regression s": round(built.seconds - built.lengths, 2),
                "source regression s": group.regression,
                "length rms mm": round(1e3 * built.length_rms, 3),
                "arms rms %": round(100 * built.arm_error, 2),
                "peak MB": round(built.peak / 1e6),
            }
        )
        spent.append((built.seconds, built.peak))
    names, values = tuple(g.name for g in TABLE_ONE), np.array(spent, float)
    rows = (
        Row("data and regression", names, values[None, :, 0], SECONDS, Goal(worst=20.0)),
        Row("memory of the process", names, values[None, :, 1], GIGABYTES, Goal(worst=4.0)),
    )
    source = "table I: 12 cores, 128 GB, degree not given; accuracy not given. Ours: one core"
    return Finding("E1", "mappings of table I", source, "", rows, tuple(lines))


def random_walks(lab: TendonLab, runs: Runs) -> Finding:
    """E2: all 20 joints by five groups, right zero, start 10 deg off; by the geometry and by fitted polynomials."""
    misfit = max(m.fit.rms for m in lab.polynomials.values() if m.fit)
    estimators = []
    for name, kind, noise in VARIANTS:
        told = float(np.hypot(noise, misfit)) if name == FITTED else max(noise, FINEST)
        mappings = lab.polynomials if name == FITTED else lab.mappings
        estimators.append(TendonEstimator(lab.groups, mappings, FilterSettings(kind, length_noise=told)))
    joints, muscles = estimators[0].joint_names, estimators[0].muscle_names
    angle = [lab.whole.joint_names.index(j) for j in joints]
    length = [lab.whole.tendon_names.index(t) for t in muscles]
    walks: list[list[Array]] = [[] for _ in VARIANTS]
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q, lengths = lab.walk(runs.steps, SIGMA, seed)
        q, lengths = q[:, angle], lengths[:, length]
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], len(joints))
        for k, (estimator, (name, _, noise)) in enumerate(zip(estimators, VARIANTS, strict=True)):
            runs.show((seed + k / len(VARIANTS)) / runs.seeds)
            estimator.reset(dict(zip(joints, q[0] + START_ERROR * signs, strict=True)))
            z = measured(lengths, seed, EncoderErrors(noise=noise))
            estimate = np.array([estimator.step(row) for row in z])
            walks[k].append(estimate - q)
            if seed == 0 and name == ABSOLUTE:
                lines[name], first = estimate, q
    rows = [
        Row(name, joints, np.array([settled(e) for e in errors]), goal=GOALS.get(name))
        for (name, _, _), errors in zip(VARIANTS, walks, strict=True)
    ]
    chosen = (*NECK, *SCAPULA, *ARM)
    shown = [joints.index(j) for j in chosen]
    trace = Trace(
        "random walk, lengths zeroed rightly, noise of 0.1 mm",
        chosen,
        first[:, shown],
        {name: estimate[:, shown] for name, estimate in lines.items()},
        spread={name: spread(e) for (name, _, _), e in zip(VARIANTS, walks, strict=True) if name in STRIP},
        of=f"error of {len(joints)} joints, {walks_of(runs)}",
    )
    measure = (
        "root mean square error without the first sixth; start 10 deg off; "
        f"polynomials of degree {DEGREE}, {1e3 * misfit:.2f} mm off where they fit worst"
    )
    return Finding("E2", "random walk, right zero", "'almost the same' (figure 6)", measure, tuple(rows), (), (trace,))
