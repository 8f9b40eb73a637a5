"""E1 and E2: the mappings of table I; the whole upper body while it walks at random, calibrated rightly.

Also here:

* E4: an arm that was zeroed at the wrong posture, by the absolute and by the relative filters.
* The experiments by name, and how some of them are run.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import radians
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import UnknownNameError
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors
from humanoid_control.studies.kawaharazuka.baselines import baselines
from humanoid_control.studies.kawaharazuka.finding import (
    GIGABYTES,
    SECONDS,
    Finding,
    Goal,
    Row,
    Runs,
    Trace,
    settled,
    spread,
    tail,
    walks_of,
)
from humanoid_control.studies.kawaharazuka.lab import ARM, NECK, NOISE, SCAPULA, TendonLab, measured
from humanoid_control.studies.kawaharazuka.learning import elbow, shoulder
from humanoid_control.studies.kawaharazuka.other_arms import model_files, models_folder, others
from humanoid_control.studies.kawaharazuka.sharing import shared_and_conventional
from humanoid_control.studies.kawaharazuka.table_one import DEGREE, TABLE_ONE, build
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.postures import random_walk

# -------- E1 and E2: the mappings of table I; the whole upper body while it walks at random, calibrated rightly

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
        estimators.append(TendonEstimator(lab.groups, mappings, EstimatorSettings(kind, length_noise=told)))
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


# -------- E4: an arm that was zeroed at the wrong posture, by the absolute and by the relative filters

ZEROED, GUESS = np.radians([30.0, -30.0, 30.0, -30.0]), np.radians([0.0, 0.0, 0.0, -45.0])
SIGMA_wrong_zero = radians(1.0)
NETWORK = "relative r2, neural mapping"
VARIANTS_wrong_zero: tuple[tuple[str, dict[str, Any]], ...] = (
    ("absolute, right zero", {"observation": "absolute"}),
    ("absolute, wrong zero", {"observation": "absolute", "gate": 0.0}),
    ("relative as printed", {"observation": "literal", "limits": "off"}),
    ("relative r1", {"observation": "r1", "step_noise": radians(0.02)}),
    ("relative r2", {"observation": "r2"}),
    ("relative r3", {"observation": "r3", "step_noise": radians(1.0)}),
    (NETWORK, {"observation": "r2"}),
)
WRONG = "absolute, wrong zero"
SHOWN, STRIP_wrong_zero = (WRONG, "relative r2"), ("relative r1", "relative r3")
RELATIVE_wrong_zero = Goal(median=1.0, worst=5.0)
GOALS_wrong_zero = {
    "absolute, right zero": Goal(worst=1.0),
    "relative r2": RELATIVE_wrong_zero,
    "relative r3": RELATIVE_wrong_zero,
}


def wrong_zero(lab: TendonLab, runs: Runs) -> Finding:
    """E4: zeroed at (30, -30, 30, -30) deg as if that were zero, start at (0, 0, 0, -45) deg."""
    arm = lab.limb(ARM)
    network = lab.network(arm)
    misfit = network.fit.rms if network.fit else 0.0
    filters = []
    for name, settings in VARIANTS_wrong_zero:
        noise = float(np.hypot(NOISE, misfit)) if name == NETWORK else NOISE
        mapping = network if name == NETWORK else arm.mapping
        filters.append(GroupFilter(arm.group, mapping, EstimatorSettings(length_noise=noise, **settings)))
    walks: list[list[Array]] = [[] for _ in VARIANTS_wrong_zero]
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q = random_walk(arm.geometry.limits, ZEROED, runs.steps, SIGMA_wrong_zero, seed)
        z = measured(arm.geometry.lengths_of(q), seed)
        for k, (f, (name, _)) in enumerate(zip(filters, VARIANTS_wrong_zero, strict=True)):
            runs.show((seed + k / len(VARIANTS_wrong_zero)) / runs.seeds)
            f.reset(GUESS)
            if name == WRONG:
                f.zero(z[0], np.zeros(len(ARM)))
            estimate = np.array([f.step(row) for row in z])
            walks[k].append(estimate - q)
            if seed == 0 and name in SHOWN:
                lines[name], first = estimate, q
    rows = [
        Row(name, ARM, np.array([tail(e) for e in errors]), goal=GOALS_wrong_zero.get(name))
        for (name, _), errors in zip(VARIANTS_wrong_zero, walks, strict=True)
    ]
    source = "absolute stays 'about 30 deg' off, relative ends 'almost the same' (figures 8, 9)"
    measure = "mean absolute error of the last fifth; lengths with 0.1 mm of noise"
    trace = Trace(
        "zeroed at (30, −30, 30, −30)° as if that were 0°, the estimate starts at (0, 0, 0, −45)°",
        ARM,
        first,
        lines,
        spread={
            name: spread(e)
            for (name, _), e in zip(VARIANTS_wrong_zero, walks, strict=True)
            if name in (*SHOWN, *STRIP_wrong_zero)
        },
        of=f"error of {len(ARM)} joints, {walks_of(runs)}",
    )
    return Finding("E4", "wrong zero", source, measure, tuple(rows), (), (trace,))


# -------- The experiments by name, and how some of them are run

OTHERS = "others"
EXPERIMENTS: dict[str, Callable[[TendonLab, Runs], Finding]] = {
    "E1": table_one,
    "E2": random_walks,
    "E3": shared_and_conventional,
    "E4": wrong_zero,
    "E5": elbow,
    "E6": shoulder,
    "baselines": baselines,
}
NAMES = (*EXPERIMENTS, OTHERS)


def chosen(only: Sequence[str], models: Path | None) -> tuple[list[str], list[str]]:
    """The experiments asked for; all where none is, but for others' arms where their models or MuJoCo are not at hand.

    Returns:
        Names, and what is to be said of those left out.

    Raises:
        UnknownNameError: no such experiment. ConfigError, EnvironmentProblem: what others' arms need is not there.
    """
    known = {n.lower(): n for n in NAMES}
    for name in only:
        if name.lower() not in known:
            raise UnknownNameError("experiment", name, NAMES)
    folder = models_folder(models)
    names = [known[n] for n in dict.fromkeys(name.lower() for name in only)]
    if OTHERS in names:
        model_files(folder)
    if names:
        return names, []
    if folder is None:
        return list(EXPERIMENTS), ["others' arms are left out: give their models with --models"]
    if importlib.util.find_spec("mujoco") is None:
        return list(EXPERIMENTS), ["others' arms are left out: they need the package mujoco"]
    model_files(folder)
    return list(NAMES), []


def run_experiments(
    lab: TendonLab, names: Sequence[str], runs: Runs, models: Path | None, show: Callable[[float, str], object]
) -> list[Finding]:
    """Run the experiments one after the other.

    Args:
        names: of `NAMES`. runs: seeds and steps of each. models: folder of others' models.
        show: is told the share of all done, and the experiment.

    Raises:
        ConfigError, EnvironmentProblem: what an experiment needs is not there.
    """
    out: list[Finding] = []
    for k, name in enumerate(names):

        def part(share: float, done: int = k, name: str = name) -> None:
            show((done + share) / len(names), name)

        mine = replace(runs, show=part)
        part(0.0)
        out.append(others(models, mine) if name == OTHERS else EXPERIMENTS[name](lab, mine))
    return out
