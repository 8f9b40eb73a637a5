"""Hypotheses of Dube 2012 and the run through them, with the experiments on self-collision and on the five robots."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.evaluation.self_collision import ARM_TORSO_COLUMNS
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.studies.dube2012 import arm, girdle_waist, models
from humanoid_control.studies.dube2012.lab import PUBLISHED, ROBOTS, SOLVERS, RetargetingLab
from humanoid_control.studies.verdict import OPEN, Finding, Hypothesis, Part, cm, conclude, decide

# -------- avoidance of self-collisions


def avoidance_costs(lab: RetargetingLab) -> list[Part]:
    """H15: errors of each robot without and with avoidance of self-collisions."""
    parts = []
    for name in ROBOTS:
        free, avoided = lab.free(name, PUBLISHED), lab.avoiding(name, PUBLISHED)
        if np.array_equal(free.joints, avoided.joints):
            continue
        numbers: dict[str, float] = {"arm-torso collisions without": free.collisions.total}
        for solver in SOLVERS:
            for what, trial in (("without", lab.free(name, solver)), ("with", lab.avoiding(name, solver))):
                numbers[f"{solver} {what}, mean [cm]"] = cm(trial.error())
                numbers[f"{solver} {what}, std [cm]"] = cm(trial.std())
        held = avoided.error() > free.error() and avoided.std() > free.std()
        parts.append(Part(f"{name}: mean and std rise", decide(held), numbers))
    return parts or [Part("avoidance changes nothing, as nothing collides", OPEN, {})]


def avoidance_works(lab: RetargetingLab) -> list[Part]:
    """H16: arm-torso collisions that are left with avoidance."""
    parts = []
    for name in ROBOTS:
        for solver in SOLVERS:
            before, left = lab.free(name, solver).collisions.total, lab.avoiding(name, solver).collisions.total
            if before or left:
                numbers = {"without avoidance": before, "with": left}
                parts.append(Part(f"{name}, {solver}: none left", decide(left == 0), numbers))
    return parts or [Part("no arm meets a torso without avoidance either", OPEN, {})]


H15 = Hypothesis(
    "H15",
    "Avoiding collisions raises mean and standard deviation of the error on every robot",
    "with the published joint shift both are larger than without, on each robot whose motion it changes; open where "
    "that is none; the constrained solver is shown beside it",
    avoidance_costs,
    "the solver is held in a wrong posture in some frames, and the shift pushes it toward the target there",
)
H16 = Hypothesis(
    "H16",
    "With avoidance no collision of arm and torso is left",
    "no frame with a penetrating arm-torso pair, for the published joint shift and for the constrained solver, on each "
    "robot that collides; open where none does",
    avoidance_works,
    "a step of 10° in the two joints that are shifted does not free every posture",
)


# -------- five robots compared

BEST_FIRST = ("we4rii", "wabian2", "armar3", "hrp2", "suralp")
FEW = 20  # collisions of all robots together below which their distribution says nothing


def order(lab: RetargetingLab) -> list[Part]:
    """H1: mean errors of the five robots."""
    errors = {name: lab.trial(name).error() for name in BEST_FIRST}
    wrong = [pair for pair in combinations(BEST_FIRST, 2) if errors[pair[0]] > errors[pair[1]]]
    numbers = {f"{name} [cm]": cm(e) for name, e in errors.items()} | {"pairs out of order, of 10": len(wrong)}
    seen = "; ".join(lab.trial(name).limits() for name in dict.fromkeys(a for a, _ in wrong))
    return [Part("mean errors in this order", decide(not wrong), numbers, seen)]


def distribution(lab: RetargetingLab) -> list[Part]:
    """H17: collisions by arm segment, torso and robot."""
    counts = {name: lab.trial(name).collisions for name in ROBOTS}
    sums = {column: sum(c.arm_torso[column] for c in counts.values()) for column in ARM_TORSO_COLUMNS}
    total = sum(sums.values())
    lower_arm, upper_arm = (sum(n for k, n in sums.items() if k.startswith(p)) for p in ("lower arm", "upper arm"))
    upper, low = (sum(n for k, n in sums.items() if k.endswith(p)) for p in ("upper torso", "lower torso"))
    each = {name: c.total for name, c in counts.items()}
    enough = total >= FEW
    return [
        Part("lower arms collide more than upper arms", decide(lower_arm > upper_arm, enough), sums),
        Part("upper torsos more than lower torsos", decide(upper > low, enough), {"upper": upper, "lower": low}),
        Part("HRP-2 most", decide(each["hrp2"] == max(each.values()), enough), each),
        Part("WE-4RII least", decide(each["we4rii"] == min(each.values()), enough), each),
    ]


H1 = Hypothesis(
    "H1",
    "Mean error: WE-4RII < WABIAN-2 < ARMAR-III < HRP-2 < SURALP",
    "the mean errors over seven points and all frames are in this order",
    order,
    "link lengths and where the waist turns are partly estimates, and this clip asks for other joints than the "
    "published one",
)
H17 = Hypothesis(
    "H17",
    "Lower arms collide more than upper arms, upper torsos more than lower ones, HRP-2 most, WE-4RII least",
    f"frames in collision without avoidance, counted as in Table 6.6; open below {FEW} in all",
    distribution,
    "the torsos of the models are partly estimates, and the dancer keeps his forearms away from the body in this clip",
)


# -------- all hypotheses

_ALL = (
    *(H1, H17),
    *(H15, H16),
    *(girdle_waist.H4, girdle_waist.H5, girdle_waist.H6, girdle_waist.H7),
    *(girdle_waist.H2, girdle_waist.H3, girdle_waist.H10, girdle_waist.H11, girdle_waist.H12),
    *(arm.H8, arm.H9, arm.H13, arm.H14, arm.H21),
    *(models.H18, models.H19, models.H20),
)
HYPOTHESES: dict[str, Hypothesis] = {h.name: h for h in sorted(_ALL, key=lambda h: int(h.name[1:]))}


def judge_hypotheses(
    bodies: Sequence[BodyPoints],
    names: Sequence[str] = tuple(HYPOTHESES),
    progress: Callable[[int, int, str], None] | None = None,
) -> list[Finding]:
    """Findings of hypotheses on clips.

    Args:
        bodies: the clips. Hypotheses that do not depend on a clip are run once.
        names: of HYPOTHESES.
        progress: called with (experiments done, experiments in all, name of the next).

    Returns:
        Findings, hypothesis by hypothesis; the clip of one that needs none is "".
    """
    labs = [RetargetingLab(body) for body in bodies]
    todo = [(HYPOTHESES[name], lab) for name in names for lab in (labs if HYPOTHESES[name].needs_clip else labs[:1])]
    found = []
    for k, (hypothesis, lab) in enumerate(todo):
        if progress is not None:
            progress(k, len(todo), hypothesis.name)
        found.append(_find(hypothesis, lab))
    if progress is not None:
        progress(len(todo), len(todo), "")
    return found


def _find(hypothesis: Hypothesis, lab: RetargetingLab) -> Finding:
    clip = lab.body.name if hypothesis.needs_clip else ""
    try:
        return conclude(hypothesis, clip, hypothesis.experiment(lab))
    except HumanoidError as e:  # a clip that a robot cannot imitate decides nothing, and stops no other experiment
        return Finding(hypothesis, clip, (), OPEN, f"could not be run: {e}")
