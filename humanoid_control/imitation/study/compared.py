"""Experiments that compare the five robots as they are."""

from __future__ import annotations

from itertools import combinations

from humanoid_control.imitation.collision_count import TABLE
from humanoid_control.imitation.study.finding import Hypothesis, Part, cm, decide
from humanoid_control.imitation.study.lab import ROBOTS, Lab

BEST_FIRST = ("we4rii", "wabian2", "armar3", "hrp2", "suralp")
FEW = 20  # collisions of all robots together below which their distribution says nothing


def order(lab: Lab) -> list[Part]:
    """H1."""
    errors = {name: lab.trial(name).error() for name in BEST_FIRST}
    wrong = [pair for pair in combinations(BEST_FIRST, 2) if errors[pair[0]] > errors[pair[1]]]
    numbers = {f"{name} [cm]": cm(e) for name, e in errors.items()} | {"pairs out of order, of 10": len(wrong)}
    seen = "; ".join(lab.trial(name).limits() for name in dict.fromkeys(a for a, _ in wrong))
    return [Part("mean errors in this order", decide(not wrong), numbers, seen)]


def distribution(lab: Lab) -> list[Part]:
    """H17."""
    counts = {name: lab.trial(name).collisions for name in ROBOTS}
    sums = {column: sum(c.arm_torso[column] for c in counts.values()) for column in TABLE}
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
    "source's",
)
H17 = Hypothesis(
    "H17",
    "Lower arms collide more than upper arms, upper torsos more than lower ones, HRP-2 most, WE-4RII least",
    f"frames in collision without avoidance, counted as in Table 6.6; open below {FEW} in all",
    distribution,
    "the torsos of our models are partly estimates, and the dancer keeps his forearms away from the body in this clip",
)
