"""Arms and legs of an unknown robot: pairs of branches of its tree that are mirror images of each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots.axes import JointAxis

MIRROR_TOLERANCE = 0.04  # [m] between a joint and its twin's mirror image
MIRROR_SHARE = 0.8  # of the joints of a branch that must have such a twin
SHORTEST = 0.15  # [m] a shorter branch is no limb
FEWEST = 3  # joints of a limb
ARM_WORDS = re.compile(r"arm|shoulder|sho_|elbow|wrist|clav|girdle|hand|gripper", re.I)
LEG_WORDS = re.compile(r"leg|hip|knee|ankle|foot|toe|thigh", re.I)


@dataclass(frozen=True)
class LimbPair:
    """Two mirrored branches: their first joints, and the longest way from each to a tip."""

    left: list[JointAxis]
    right: list[JointAxis]


@dataclass(frozen=True)
class Limbs:
    """The limbs of a robot, and the direction (3,) to its left in the world."""

    arms: LimbPair
    legs: LimbPair | None
    left: np.ndarray


def find_limbs(axes: dict[str, JointAxis], where: str) -> Limbs:
    """The arms and, where there are any, the legs.

    Raises:
        RobotError: no pair of branches that could be arms.
    """
    best: list[tuple[JointAxis, JointAxis]] = []
    lateral = np.eye(3)[1]
    for direction in (np.eye(3)[1], np.eye(3)[0]):
        pairs = _mirrored_pairs(axes, direction)
        if sum(len(a.subtree()) for a, _ in pairs) > sum(len(a.subtree()) for a, _ in best):
            best, lateral = pairs, direction
    limbs = [pair for pair in best if len(pair[0].subtree()) >= FEWEST and _reach(pair[0]) > SHORTEST]
    arms = [p for p in limbs if _kind(p) > 0]
    legs = [p for p in limbs if _kind(p) < 0]
    unnamed = sorted((p for p in limbs if _kind(p) == 0), key=_lowest)
    if not legs and len(unnamed) > 1:
        legs = [unnamed.pop(0)]
    arms = arms or unnamed
    if not arms:
        raise RobotError(
            f"{where}: no arms found: no two mirrored branches of {FEWEST} joints or more that are not legs"
        )
    arm, leg = max(arms, key=lambda p: _reach(p[0])), max(legs, key=lambda p: _reach(p[0]), default=None)
    left = lateral * _left_sign(arm, lateral)
    pairs_of = {id(p): LimbPair(*(_longest_way(j) for j in _ordered(p, left))) for p in (arm, leg) if p is not None}
    return Limbs(pairs_of[id(arm)], pairs_of[id(leg)] if leg is not None else None, left)


def _mirrored_pairs(axes: dict[str, JointAxis], lateral: np.ndarray) -> list[tuple[JointAxis, JointAxis]]:
    """Branches that begin at the same link and are mirror images; none inside another pair."""
    out: list[tuple[JointAxis, JointAxis]] = []
    paired: set[str] = set()
    joints = list(axes.values())
    for k, a in enumerate(joints):
        for b in joints[k + 1 :]:
            if a.above is b.above and not {a.name, b.name} & paired and _mirrored(a, b, lateral):
                out.append((a, b))
                paired |= {j.name for j in a.subtree() + b.subtree()}
    return out


def _mirrored(a: JointAxis, b: JointAxis, lateral: np.ndarray) -> bool:
    """Whether two branches are left and right of the plane across `lateral`: by their joints' places, or by name."""
    ours, theirs = (np.array([j.point for j in x.subtree()]) for x in (a, b))
    if len(ours) != len(theirs):
        return False
    apart = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    if _is_left(a.name, b.name) or _is_left(b.name, a.name):  # whatever the zero posture
        return bool(apart @ np.abs(lateral) >= apart[:2].max() > MIRROR_TOLERANCE)
    if np.abs(ours @ lateral).max() < MIRROR_TOLERANCE:
        return False
    image = ours - 2 * np.outer(ours @ lateral, lateral)
    away = np.linalg.norm(image[:, None] - theirs[None], axis=2)
    return float(np.mean(away.min(axis=1) < MIRROR_TOLERANCE)) >= MIRROR_SHARE


def _reach(joint: JointAxis) -> float:
    return max(float(np.linalg.norm(j.point - joint.point)) for j in joint.subtree())


def _lowest(pair: tuple[JointAxis, JointAxis]) -> float:
    return min(float(j.point[2]) for j in pair[0].subtree())


def _kind(pair: tuple[JointAxis, JointAxis]) -> int:
    """Positive where the names speak of an arm, negative for a leg, 0 where they say nothing."""
    names = [n for j in pair[0].subtree() for n in (j.name, j.child_link)]
    return sum(bool(ARM_WORDS.search(n)) for n in names) - sum(bool(LEG_WORDS.search(n)) for n in names)


def _left_sign(pair: tuple[JointAxis, JointAxis], lateral: np.ndarray) -> float:
    """+1 where the left side is along `lateral`: as the names say, else left is where y or x is positive."""
    a, b = pair
    if _is_left(b.name, a.name) or _is_left(b.child_link, a.child_link):
        a, b = b, a
    elif not (_is_left(a.name, b.name) or _is_left(a.child_link, b.child_link)):
        return 1.0
    return float(np.sign(np.mean([j.point @ lateral for j in a.subtree()])))


def _is_left(name: str, other: str) -> bool:
    """Whether two names differ as left and right do, and the first is the left one: l_arm, arm_left, LShoulder."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    return name[start:].lower().startswith("l") and other[start:].lower().startswith("r")


def _ordered(pair: tuple[JointAxis, JointAxis], left: np.ndarray) -> tuple[JointAxis, JointAxis]:
    a, b = (float(np.mean([j.point @ left for j in x.subtree()])) for x in pair)
    return pair if a > b else (pair[1], pair[0])


def _longest_way(joint: JointAxis) -> list[JointAxis]:
    """The joints from one to the tip that is farthest along the tree."""

    def length(j: JointAxis) -> float:
        return max((float(np.linalg.norm(c.point - j.point)) + length(c) for c in j.below), default=0.0)

    way = [joint]
    while way[-1].below:
        here = way[-1]
        way.append(max(here.below, key=lambda c: float(np.linalg.norm(c.point - here.point)) + length(c)))
    return way
