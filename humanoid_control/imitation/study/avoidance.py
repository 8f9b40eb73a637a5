"""Experiments with and without avoidance of self-collisions."""

from __future__ import annotations

from humanoid_control.imitation.study.finding import Hypothesis, Part, cm, decide
from humanoid_control.imitation.study.lab import ROBOTS, WAYS, Lab


def avoidance_costs(lab: Lab) -> list[Part]:
    """H15."""
    parts = []
    for name in ROBOTS:
        free, avoided = lab.free(name, "source"), lab.avoiding(name, "source")
        numbers: dict[str, float] = {"collisions without": free.collisions.total}
        for way in WAYS:
            for what, trial in (("without", lab.free(name, way)), ("with", lab.avoiding(name, way))):
                numbers[f"{way} {what}, mean [cm]"] = cm(trial.error())
                numbers[f"{way} {what}, std [cm]"] = cm(trial.std())
        held = avoided.error() > free.error() and avoided.std() > free.std()
        parts.append(Part(f"{name}: mean and std rise", decide(held, free.collisions.total > 0), numbers))
    return parts


def avoidance_works(lab: Lab) -> list[Part]:
    """H16."""
    parts = []
    for name in ROBOTS:
        for way in WAYS:
            before, left = lab.free(name, way).collisions.total, lab.avoiding(name, way).collisions.total
            numbers = {"without avoidance": before, "with": left}
            parts.append(Part(f"{name}, {way}: none left", decide(left == 0, before > 0 or left > 0), numbers))
    return parts


H15 = Hypothesis(
    "H15",
    "Avoiding collisions raises mean and standard deviation of the error on every robot",
    "with the source's joint shift both are larger than without, on each robot that collides at all; ours is shown "
    "beside it",
    avoidance_costs,
    "the solver is held in a wrong posture in some frames, and the shift pushes it toward the target there",
)
H16 = Hypothesis(
    "H16",
    "With avoidance no collision of arm and torso is left",
    "no frame with a penetrating arm-torso pair, for the source's joint shift and for ours, on each robot that "
    "collides",
    avoidance_works,
    "a step of 10° in the two joints that the source shifts does not free every posture",
)
