"""E3 of Kawaharazuka 2018: noise and spikes; angles shared between groups next to each group for itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import radians
from typing import Any

import numpy as np

from evidence.studies.kawaharazuka2018.result import ExperimentResult, ResultRow, Runs, Trace, settled
from evidence.studies.kawaharazuka2018.testbed import ARM, HandPushes, TendonTestbed, measured
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.exact import fit_target
from humanoid_control.tendons.mappings.mapping import Array, JointMuscleMapping
from humanoid_control.tendons.mappings.polynomial import PolynomialMapping, fit_polynomial
from humanoid_control.tendons.mappings.postures import random_postures

SIGMA = radians(0.5)
ERRORS = EncoderErrors(noise=5e-4, spikes=0.02, spike=5e-3)
# the printed filter predicts by eq. (7), and has no gate, no limits and no noise that grows with the motion
AS_PRINTED: dict[str, Any] = {"predict": "tendons", "motion_noise": 0.0, "gate": 0.0, "limits": "off"}


@dataclass(frozen=True)
class Variant:
    """A filter: name, settings, and whether each arm's group has one polynomial of all its joints, eq. (4)."""

    name: str
    settings: dict[str, Any]
    polynomial: bool = False


VARIANTS = (
    Variant("conventional, plain inverse", {"share": False, "cutoff": 0.0, **AS_PRINTED}),
    Variant("shared, plain inverse", {"share": True, "cutoff": 0.0, **AS_PRINTED}),
    Variant("conventional, polynomial, plain inverse", {"share": False, "cutoff": 0.0, **AS_PRINTED}, True),
    Variant("shared, polynomial, plain inverse", {"share": True, "cutoff": 0.0, **AS_PRINTED}, True),
    Variant("conventional, cut-off 1e-3", {"share": False, **AS_PRINTED}),
    Variant("shared, cut-off 1e-3", {"share": True, **AS_PRINTED}),
    Variant("shared, default by eq. (7)", {"share": True, "predict": "tendons"}),
    Variant("shared, default", {"share": True}),
)
SHOWN = (2, 3, 7)
DEGREE, DATA = 5, 5000  # of the polynomials (Kawaharazuka 2018, II-B), and the postures that they are fitted to
BEYOND = radians(2.0)  # that an estimate may be out of its range; so far a joint presses into its stop at most
RIGHT_ARM = tuple("r" + joint[1:] for joint in ARM)
Walk = Callable[[int, int], tuple[Array, Array]]  # steps, seed -> angles, lengths


@dataclass(frozen=True)
class Plant:
    """Motion of the joints, and the arm on which the conventional filters are judged; the others are on the left.

    Attributes:
        name: of the motion. walk: angles and true lengths of the whole body. conventional: joints of that arm.
        figure: title of its plot.
    """

    name: str
    walk: Walk
    conventional: tuple[str, ...]
    figure: str


def shared_and_conventional(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E3: own and borrowed angles of an arm, the whole body walking at random, then pushed by hand as in the paper.

    There the right arm has the conventional filter and the left arm the shared one, and both get the same pushes.
    """
    plants = (
        Plant("random walk", lambda steps, seed: testbed.walk(steps, SIGMA, seed), ARM, "noise and spikes (figure 7)"),
        Plant("pushed", HandPushes(testbed).walk, RIGHT_ARM, "constant tensions, arms pushed by hand (figure 7)"),
    )
    fitted = testbed.mappings | {f"{side}_shoulder": _polynomial(testbed, f"{side}_shoulder") for side in "lr"}
    rows: list[ResultRow] = []
    table: list[dict[str, Any]] = []
    traces: list[Trace] = []
    for k, plant in enumerate(plants):

        def show(share: float, done: int = k) -> None:
            runs.show((done + share) / len(plants))

        found = _compare(testbed, replace(runs, show=show), plant, fitted)
        rows += found[0]
        table += found[1]
        traces += found[2]
    source = "conventional estimates vibrate, the proposed are stable and smooth; no number (figure 7, hardware)"
    measure = "root mean square error without the first sixth; noise 0.5 mm, spikes of 5 mm in 2 % of the lengths"
    return ExperimentResult(
        "E3", "shared angles, compared with none shared", source, measure, tuple(rows), tuple(table), tuple(traces)
    )


def _polynomial(testbed: TendonTestbed, group: str) -> PolynomialMapping:
    """One polynomial over all joints of a group. Its Jacobian has small singular values where the geometry's are 0."""
    target = fit_target(testbed.geometry_of(group))
    return fit_polynomial(target, random_postures(target.limits, DATA), DEGREE)


def _estimator(testbed: TendonTestbed, variant: Variant, fitted: Mapping[str, JointMuscleMapping]) -> TendonEstimator:
    settings = EstimatorSettings("absolute", length_noise=ERRORS.noise, borrowed_start=0.1, **variant.settings)
    return TendonEstimator(testbed.groups, fitted if variant.polynomial else testbed.mappings, settings)


def _compare(
    testbed: TendonTestbed, runs: Runs, plant: Plant, fitted: Mapping[str, JointMuscleMapping]
) -> tuple[list[ResultRow], list[dict[str, Any]], list[Trace]]:
    estimators = [_estimator(testbed, v, fitted) for v in VARIANTS]
    joints, muscles = estimators[0].joint_names, estimators[0].muscle_names
    length = [testbed.whole.tendon_names.index(t) for t in muscles]
    column = {j: k for k, j in enumerate(testbed.whole.joint_names)}
    owned = [ARM if e.settings.share else plant.conventional for e in estimators]
    arms = [next(f for f in e.filters if f.group.own == own) for e, own in zip(estimators, owned, strict=True)]
    own = len(ARM)
    errors: list[list[Array]] = [[] for _ in VARIANTS]
    jitter, outside = np.zeros((len(VARIANTS), runs.seeds)), np.zeros((len(VARIANTS), runs.seeds))
    traces = {a: Trace(f"{plant.figure}, {a[0][0]} arm", a, None, {}) for a in dict.fromkeys(owned)}
    for seed in range(runs.seeds):
        q, lengths = plant.walk(runs.steps, seed)
        z = measured(lengths[:, length], seed, ERRORS)
        for k, (estimator, arm) in enumerate(zip(estimators, arms, strict=True)):
            runs.show((seed + k / len(VARIANTS)) / runs.seeds)
            estimator.reset({j: q[0, column[j]] for j in joints})
            estimate = np.empty((len(z), arm.d))
            for row, lengths_now in enumerate(z):
                estimator.step(lengths_now)
                estimate[row] = arm.theta
            truth = q[:, [column[j] for j in arm.group.joints]]
            error = estimate - truth
            errors[k].append(settled(error))
            jitter[k, seed] = np.sqrt(np.mean(np.diff(error[:, :own], axis=0) ** 2))
            low, high = arm.mapping.limits[own:].T
            beyond = (estimate[:, own:] < low - BEYOND) | (estimate[:, own:] > high + BEYOND)
            outside[k, seed] = np.mean(beyond.any(axis=1))
            if seed == 0 and k in SHOWN:
                shown = traces[owned[k]]
                traces[owned[k]] = replace(
                    shown, actual=truth[:, :own], lines={**shown.lines, VARIANTS[k].name: estimate[:, :own]}
                )
    names = [f"{plant.name}: {name}" for name in (v.name for v in VARIANTS)]
    rows = [ResultRow(n, a.group.joints, np.array(e)) for n, a, e in zip(names, arms, errors, strict=True)]
    table = [
        {
            "filter": name,
            "jitter of own deg/step": round(float(np.degrees(np.median(jitter[k]))), 3),
            "worst": round(float(np.degrees(jitter[k].max())), 3),
            "conventional for comparison": round(float(np.median(jitter[2 * v.polynomial] / jitter[k])), 2),
            "borrowed 2 deg beyond limits %": round(100 * float(np.median(outside[k])), 1),
        }
        for k, (name, v) in enumerate(zip(names, VARIANTS, strict=True))
    ]
    return rows, table, list(traces.values())
