"""E1 and E2: the mappings of table I; the whole upper body while it walks at random, calibrated rightly."""

from __future__ import annotations

from math import radians

import numpy as np

from humanoid_control.simulation.tendon_study.finding import Finding, Row, Runs, Trace, settled
from humanoid_control.simulation.tendon_study.lab import ARM, NECK, SCAPULA, TendonLab, measured
from humanoid_control.simulation.tendon_study.table_one import DEGREE, TABLE_ONE, build
from humanoid_control.tendons.encoders import EncoderErrors
from humanoid_control.tendons.filter_settings import FilterSettings
from humanoid_control.tendons.mapping import Array
from humanoid_control.tendons.tendon_estimator import TendonEstimator

COUNTS: dict[str, tuple[int, ...]] = {}  # other values per joint than those of table I, by the name of its column
SIGMA, START_ERROR = radians(0.5), radians(10.0)
FINEST = 2e-5  # noise that a filter is told at least [m]
VARIANTS = (
    ("absolute, no noise", "absolute", 0.0),
    ("absolute, 0.1 mm", "absolute", 1e-4),
    ("absolute, 0.5 mm", "absolute", 5e-4),
    ("relative r2, 0.1 mm", "r2", 1e-4),
)


def table_one(lab: TendonLab, runs: Runs) -> Finding:
    """E1: data and polynomials of the three groups."""
    lines = []
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
    source = "table I: 12 cores, 128 GB, degree not given; accuracy not given. Ours: one core."
    return Finding("E1", "mappings of table I", source, table=tuple(lines))


def random_walks(lab: TendonLab, runs: Runs) -> Finding:
    """E2: all 20 joints by five groups, right zero, start 10 deg off."""
    estimators = [
        TendonEstimator(lab.groups, lab.mappings, FilterSettings(kind, length_noise=max(noise, FINEST)))
        for _, kind, noise in VARIANTS
    ]
    joints, muscles = estimators[0].joint_names, estimators[0].muscle_names
    angle = [lab.whole.joint_names.index(j) for j in joints]
    length = [lab.whole.tendon_names.index(t) for t in muscles]
    found: list[list[Array]] = [[] for _ in VARIANTS]
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
            found[k].append(settled(estimate - q))
            if seed == 0 and name in ("absolute, 0.1 mm", "relative r2, 0.1 mm"):
                lines[name], first = estimate, q
    rows = [Row(name, joints, np.array(errors)) for (name, _, _), errors in zip(VARIANTS, found, strict=True)]
    shown = [joints.index(j) for j in (*NECK, *SCAPULA, *ARM)]
    trace = Trace(
        "random walk, calibrated (figure 6)",
        (*NECK, *SCAPULA, *ARM),
        first[:, shown],
        {name: estimate[:, shown] for name, estimate in lines.items()},
    )
    measure = "root mean square error without the first sixth; start 10 deg off"
    return Finding("E2", "random walk, right zero", "'almost the same' (figure 6)", measure, tuple(rows), (), (trace,))
