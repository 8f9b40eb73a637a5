"""Experiments with and without avoidance of self-collisions."""

from __future__ import annotations

import numpy as np

from humanoid_control.imitation.study.finding import OPEN, Hypothesis, Part, cm, decide
from humanoid_control.imitation.study.lab import ROBOTS, WAYS, Lab


def avoidance_costs(lab: Lab) -> list[Part]:
    """H15."""
    parts = []
    for name in ROBOTS:
        free, avoided = lab.free(name, "source"), lab.avoiding(name, "source")
        if np.array_equal(free.joints, avoided.joints):
            continue
        numbers: dict[str, float] = {"arm-torso collisions without": free.collisions.total}
        for way in WAYS:
            for what, trial in (("without", lab.free(name, way)), ("with", lab.avoiding(name, way))):
                numbers[f"{way} {what}, mean [cm]"] = cm(trial.error())
                numbers[f"{way} {what}, std [cm]"] = cm(trial.std())
        held = avoided.error() > free.error() and avoided.std() > free.std()
        parts.append(Part(f"{name}: mean and std rise", decide(held), numbers))
    return parts or [Part("avoidance changes nothing, as nothing collides", OPEN, {})]


def avoidance_works(lab: Lab) -> list[Part]:
    """H16."""
    parts = []
    for name in ROBOTS:
        for way in WAYS:
            before, left = lab.free(name, way).collisions.total, lab.avoiding(name, way).collisions.total
            if before or left:
                numbers = {"without avoidance": before, "with": left}
                parts.append(Part(f"{name}, {way}: none left", decide(left == 0), numbers))
    return parts or [Part("no arm meets a torso without avoidance either", OPEN, {})]


H15 = Hypothesis(
    "H15",
    "Avoiding collisions raises mean and standard deviation of the error on every robot",
    "with the source's joint shift both are larger than without, on each robot whose motion it changes; open where "
    "that is none; ours is shown beside it",
    avoidance_costs,
    "the solver is held in a wrong posture in some frames, and the shift pushes it toward the target there",
)
H16 = Hypothesis(
    "H16",
    "With avoidance no collision of arm and torso is left",
    "no frame with a penetrating arm-torso pair, for the source's joint shift and for ours, on each robot that "
    "collides; open where none does",
    avoidance_works,
    "a step of 10° in the two joints that the source shifts does not free every posture",
)
