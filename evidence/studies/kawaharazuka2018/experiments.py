"""Experiments of Kawaharazuka 2018 by name; E1, the mappings of table I, and E2, a random walk of the upper body.

Table I: the grids of its three groups, and the same data and degree fitted here, timed.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import radians
from pathlib import Path
from time import perf_counter

import numpy as np

from evidence.studies.kawaharazuka2018.baselines import baselines
from evidence.studies.kawaharazuka2018.learning import elbow, shoulder
from evidence.studies.kawaharazuka2018.other_arms import model_files, models_folder, others
from evidence.studies.kawaharazuka2018.result import (
    GIGABYTES,
    SECONDS,
    ErrorGoal,
    ExperimentResult,
    ResultRow,
    Runs,
    Trace,
    settled,
    spread,
    walks_of,
)
from evidence.studies.kawaharazuka2018.sharing import shared_and_conventional
from evidence.studies.kawaharazuka2018.testbed import ARM, NECK, SCAPULA, TendonTestbed, measured
from evidence.studies.kawaharazuka2018.wrong_zero import wrong_zero
from humanoid_control.errors import UnknownNameError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.exact import fit_target
from humanoid_control.tendons.mappings.mapping import Array, Progress
from humanoid_control.tendons.mappings.polynomial import PolynomialMapping, fit_polynomial_on_grid

DEGREE = 5


@dataclass(frozen=True)
class PublishedGroup:
    """A column of table I.

    Attributes:
        name: of the column. group: of the robot. joints: in the order of counts, own ones first.
        counts: values per joint, whose product is the published number of data.
        construction, regression: published times on 12 cores [s].
        own: how many of the joints it estimates; it borrows the rest.
    """

    name: str
    group: str
    joints: tuple[str, ...]
    counts: tuple[int, ...]
    construction: float
    regression: float
    own: int = 4


_SCAPULA = ("l_sc_roll", "l_sc_pitch", "l_ac_roll", "l_ac_yaw")
_SHOULDER = ("l_gh_roll", "l_gh_pitch", "l_gh_yaw", "l_elbow_pitch")
# The product of the counts has only one decomposition into eight numbers from 5 to 9; which joint has which is chosen
# here. The neck borrows both acromioclavicular joints. With three groups nobody lends the right one: it owns that one.
TABLE_ONE = (
    PublishedGroup(
        "neck",
        "neck",
        ("neck_top_pitch", "neck_roll", "neck_pitch", "neck_yaw", "r_ac_roll", "r_ac_yaw", "l_ac_roll", "l_ac_yaw"),
        (5, 7, 7, 7, 5, 5, 5, 5),
        8579.0,
        5514.0,
        6,
    ),
    PublishedGroup(
        "scapula",
        "l_scapula",
        (*_SCAPULA, "neck_roll", "neck_pitch", "l_gh_roll", "l_gh_pitch"),
        (5, 5, 5, 5, 7, 7, 8, 9),
        16957.0,
        12885.0,
    ),
    PublishedGroup(
        "shoulder",
        "l_shoulder",
        (*_SHOULDER, "l_ac_roll", "l_ac_yaw", "l_sc_roll", "l_sc_pitch"),
        (8, 9, 7, 7, 5, 5, 5, 6),
        16840.0,
        25287.0,
    ),
)


@dataclass(frozen=True)
class Built:
    """Mapping of table I as built here.

    Attributes:
        seconds: for all; lengths: for the lengths alone [s].
        peak: most memory of this process so far [bytes].
        length_rms: length error in random postures, after its mean is taken off [m].
        arm_error: root mean square error of the moment arms, as a share of the largest arm.
    """

    mapping: PolynomialMapping
    seconds: float
    lengths: float
    peak: int
    length_rms: float
    arm_error: float


def build(
    robot: Robot,
    group: PublishedGroup,
    counts: Sequence[int] | None = None,
    progress: Progress | None = None,
    postures: int = 500,
) -> Built:
    """Make the data set and the polynomials of a group, on one core.

    Args:
        counts: values per joint, if not those of table I.
        progress: as for `fit_polynomial_on_grid`.
        postures: random ones in which it is compared with the geometry.
    """
    geometry = tendon_geometry(robot, group.group, group.joints)
    target = fit_target(geometry)
    target.geometry(np.zeros((1, len(group.joints))))  # loads the kernel
    spent = 0.0

    def timed(postures: Array) -> tuple[Array, Array]:
        nonlocal spent
        begin = perf_counter()
        out = target.geometry(postures)
        spent += perf_counter() - begin
        return out

    begin = perf_counter()
    mapping = fit_polynomial_on_grid(target._replace(geometry=timed), counts or group.counts, DEGREE, progress)
    seconds = perf_counter() - begin
    q = np.random.default_rng(0).uniform(geometry.limits[:, 0], geometry.limits[:, 1], (postures, len(group.joints)))
    truth, arms = geometry.raw(q)
    found, slopes = mapping.evaluate(q)
    error = found + geometry.zero - truth
    rms = float(np.sqrt(np.mean((error - error.mean(axis=0)) ** 2)))
    slope = float(np.sqrt(np.mean((slopes - arms) ** 2)) / np.abs(arms).max())
    return Built(mapping, seconds, spent, peak_memory(), rms, slope)


def peak_memory() -> int:
    """The most memory that this process has had [bytes]."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most


# -------- E1 and E2

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
GOALS = {VARIANTS[0][0]: ErrorGoal(worst=1.0), ABSOLUTE: ErrorGoal(worst=1.0), VARIANTS[2][0]: ErrorGoal(worst=3.0)}
GOALS[FITTED] = ErrorGoal(worst=2.0)  # twice that of the geometry


def table_one(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E1: data and polynomials of the three groups."""
    lines, spent = [], []
    for k, group in enumerate(TABLE_ONE):

        def show(share: float, done: int = k) -> None:
            runs.show((done + share) / len(TABLE_ONE))

        built = build(testbed.robot, group, COUNTS.get(group.name), show)
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
        ResultRow("data and regression", names, values[None, :, 0], SECONDS, ErrorGoal(worst=20.0)),
        ResultRow("memory of the process", names, values[None, :, 1], GIGABYTES, ErrorGoal(worst=4.0)),
    )
    source = "table I: 12 cores, 128 GB, degree not given; accuracy not given. Here: one core"
    return ExperimentResult("E1", "mappings of table I", source, "", rows, tuple(lines))


def random_walks(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E2: all 20 joints by five groups, right zero, start 10 deg off; by the geometry and by fitted polynomials."""
    misfit = max(m.fit.rms for m in testbed.polynomials.values() if m.fit)
    estimators = []
    for name, kind, noise in VARIANTS:
        told = float(np.hypot(noise, misfit)) if name == FITTED else max(noise, FINEST)
        mappings = testbed.polynomials if name == FITTED else testbed.mappings
        estimators.append(TendonEstimator(testbed.groups, mappings, EstimatorSettings(kind, length_noise=told)))
    joints, muscles = estimators[0].joint_names, estimators[0].muscle_names
    angle = [testbed.whole.joint_names.index(j) for j in joints]
    length = [testbed.whole.tendon_names.index(t) for t in muscles]
    walks: list[list[Array]] = [[] for _ in VARIANTS]
    lines: dict[str, Array] = {}
    first: Array = np.empty(0)
    for seed in range(runs.seeds):
        q, lengths = testbed.walk(runs.steps, SIGMA, seed)
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
        ResultRow(name, joints, np.array([settled(e) for e in errors]), goal=GOALS.get(name))
        for (name, _, _), errors in zip(VARIANTS, walks, strict=True)
    ]
    chosen = (*NECK, *SCAPULA, *ARM)
    shown = [joints.index(j) for j in chosen]
    trace = Trace(
        "random walk, correct zero, noise of 0.1 mm",
        chosen,
        first[:, shown],
        {name: estimate[:, shown] for name, estimate in lines.items()},
        spread={name: spread(e) for (name, _, _), e in zip(VARIANTS, walks, strict=True) if name in STRIP},
        of=f"error of {len(joints)} joints, {walks_of(runs)}",
    )
    measure = (
        "root mean square error without the first sixth; start 10 deg off; "
        f"polynomials of degree {DEGREE}, {1e3 * misfit:.2f} mm worst fit error"
    )
    return ExperimentResult(
        "E2", "random walk, correct zero", "'almost the same' (figure 6)", measure, tuple(rows), (), (trace,)
    )


# -------- Experiments by name

OTHERS = "others"
EXPERIMENTS: dict[str, Callable[[TendonTestbed, Runs], ExperimentResult]] = {
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
        return list(EXPERIMENTS), ["arm models of other authors are omitted: give their folder (models)"]
    if importlib.util.find_spec("mujoco") is None:
        return list(EXPERIMENTS), ["arm models of other authors are omitted: they need the package mujoco"]
    model_files(folder)
    return list(NAMES), []


def run_experiments(
    testbed: TendonTestbed, names: Sequence[str], runs: Runs, models: Path | None, show: Callable[[float, str], object]
) -> list[ExperimentResult]:
    """Run the experiments one after the other.

    Args:
        names: of `NAMES`. runs: seeds and steps of each. models: folder of others' models.
        show: is told the share of all done, and the experiment.

    Raises:
        ConfigError, EnvironmentProblem: what an experiment needs is not there.
    """
    out: list[ExperimentResult] = []
    for k, name in enumerate(names):

        def part(share: float, done: int = k, name: str = name) -> None:
            show((done + share) / len(names), name)

        mine = replace(runs, show=part)
        part(0.0)
        out.append(others(models, mine) if name == OTHERS else EXPERIMENTS[name](testbed, mine))
    return out
