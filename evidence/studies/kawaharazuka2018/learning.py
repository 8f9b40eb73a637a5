"""E5 and E6 of Kawaharazuka 2018: moment arms other than the model's, before and after the antagonism updater."""

from __future__ import annotations

from dataclasses import dataclass
from math import radians

import numpy as np

from evidence.studies.kawaharazuka2018.result import ExperimentResult, ResultRow, Runs, Trace, spread, walks_of
from evidence.studies.kawaharazuka2018.testbed import ARM, NOISE, Limb, TendonTestbed, measured
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import Array
from humanoid_control.tendons.mappings.neural import AntagonismUpdater, NeuralMapping
from humanoid_control.tendons.mappings.postures import random_postures, random_walk

SCALE = 0.1  # standard deviation of the factors on the tendons' lengths
MISMATCH = 5e-4  # noise that the filters are told for it [m]
SIGMA, REPLAY, EVERY = radians(1.0), 300, 50  # EVERY: steps between two updates of the mapping
RELATIVE = ("r2", "r3")


@dataclass(frozen=True)
class LearningCase:
    """One of E5 and E6: the joints, the posture they were zeroed at, and the first estimate [deg]."""

    name: str
    title: str
    source: str
    joints: tuple[str, ...]
    zeroed: tuple[float, ...]
    guess: tuple[float, ...]


ELBOW = LearningCase(
    "E5",
    "elbow with a wrong zero and other moment arms",
    "JAEs-error 10 to 40 deg before, 0 to 20 deg after a minute of the updater (figure 10, hardware)",
    ARM[3:],
    (-100.0,),
    (-45.0,),
)
SHOULDER = LearningCase(
    "E6",
    "shoulder with a wrong zero and other moment arms",
    "did not decrease as for the elbow; smaller but still fluctuating after the updater; no number (figure 11)",
    ARM[:3],
    (40.0, -40.0, 40.0),
    (0.0, 0.0, 0.0),
)


def elbow(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E5."""
    return learn(testbed, runs, ELBOW)


def shoulder(testbed: TendonTestbed, runs: Runs) -> ExperimentResult:
    """E6."""
    return learn(testbed, runs, SHOULDER)


def learn(testbed: TendonTestbed, runs: Runs, case: LearningCase) -> ExperimentResult:
    """Compare a relative with a rightly calibrated absolute filter, let the latter teach the mapping, and repeat."""
    limb = testbed.limb(case.joints)
    network = testbed.network(limb)
    start, guess = np.radians(case.zeroed), np.radians(case.guess)
    replay = random_postures(limb.geometry.limits, REPLAY, seed=1)
    found: dict[tuple[str, str], list[Array]] = {}
    walks: dict[str, list[Array]] = {}
    for seed in range(runs.seeds):
        runs.show(seed / runs.seeds)
        q, teaching = (random_walk(limb.geometry.limits, start, runs.steps, SIGMA, s) for s in (seed, 1000 + seed))
        errors = EncoderErrors(noise=NOISE, scale=SCALE)  # the factors are drawn first: the same for one seed
        z, taught = (measured(limb.geometry.lengths_of(w), seed, errors) for w in (q, teaching))
        updater = AntagonismUpdater(network, replay)
        try:
            for when in ("before", "after"):
                reference = _absolute(limb, network, z, start)
                for kind in RELATIVE:
                    other = _relative(limb, network, z, kind, guess)
                    half = len(z) // 2
                    found.setdefault((kind, when), []).append(np.abs(other - reference)[half:].mean(axis=0))
                    found.setdefault((f"{kind} to truth", when), []).append(np.abs(other - q)[half:].mean(axis=0))
                    walks.setdefault(f"{kind}, {when}", []).append(other - reference)
                found.setdefault(("absolute to truth", when), []).append(np.abs(reference - q).mean(axis=0))
                if when == "before":
                    updater.start()
                    _teach(limb, updater, taught, start)
        finally:
            updater.revert()
    rows = [ResultRow(f"{kind}, {when}", case.joints, np.array(e)) for (kind, when), e in found.items()]
    rows.sort(key=lambda r: (r.name.split(",")[0] not in RELATIVE, r.name.split(",")[0]))
    measure = (
        "mean difference from the absolute filter with correct zero (JAEs-error), or to the truth, second half; "
        f"tendon lengths scaled by 1 with a deviation of {SCALE:g}"
    )
    trace = Trace(
        f"{case.title}: relative minus absolute estimate with correct zero, before and after learning",
        case.joints,
        None,
        {name: walks[name][0] for name in sorted(walks, reverse=True)},
        spread={name: spread(w) for name, w in walks.items()},
        of=f"difference, {walks_of(runs)}",
    )
    return ExperimentResult(case.name, case.title, case.source, measure, tuple(rows), (), (trace,))


def _absolute(limb: Limb, mapping: NeuralMapping, z: Array, start: Array) -> Array:
    """The reference: rightly zeroed lengths, right start."""
    f = GroupFilter(limb.group, mapping, EstimatorSettings("absolute", length_noise=MISMATCH, gate=0.0))
    f.reset(start)
    return np.array([f.step(row) for row in z])


def _relative(limb: Limb, mapping: NeuralMapping, z: Array, kind: str, guess: Array) -> Array:
    """A relative filter from the wrong start; it is blind to where the lengths were zeroed."""
    step = radians(0.2 if kind == "r2" else 1.0)
    f = GroupFilter(limb.group, mapping, EstimatorSettings(kind, length_noise=MISMATCH, step_noise=step, gate=0.0))
    f.reset(guess)
    return np.array([f.step(row) for row in z - z[0]])


def _teach(limb: Limb, updater: AntagonismUpdater, z: Array, start: Array) -> None:
    """A walk on which the mapping learns from the absolute filter that uses it."""
    settings = EstimatorSettings("absolute", length_noise=MISMATCH, gate=0.0)
    f = GroupFilter(limb.group, updater.mapping, settings)
    f.reset(start)
    for k, row in enumerate(z):
        updater.add(f.step(row), row)
        if (k + 1) % EVERY == 0:
            updater.update()
    updater.stop()
