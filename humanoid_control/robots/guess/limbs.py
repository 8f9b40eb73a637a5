"""Arms and legs of an unknown robot: pairs of branches of its tree that are mirror images of each other.

They are found from the axes of its joints as lines in space, in the zero posture, and the points where they meet.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.urdf import UrdfTree, link_of
from humanoid_control.robots.robot import Robot

# -------- Axes of joints


@dataclass
class JointAxis:
    """A moving joint in the zero posture.

    Attributes:
        name: of the joint; parent_link, child_link: as the URDF has them.
        point, direction: (3,) origin and unit axis in the world [m].
        slides: a prismatic joint.
        above: the next moving joint toward the root, None at the root.
        below: the next moving joints toward the tips.
    """

    name: str
    parent_link: str
    child_link: str
    point: np.ndarray
    direction: np.ndarray
    slides: bool
    above: JointAxis | None = None
    below: list[JointAxis] = field(default_factory=list)

    def subtree(self) -> list[JointAxis]:
        """This joint and all below."""
        return [self, *(j for child in self.below for j in child.subtree())]

    def distance(self, point: np.ndarray) -> float:
        """Distance of a point to the axis [m]."""
        return float(np.linalg.norm(np.cross(point - self.point, self.direction)))


def joint_axes(robot: Robot, tree: UrdfTree) -> dict[str, JointAxis]:
    """All moving joints of a robot in its zero posture, root first, without those that mimic another one."""
    poses = robot.link_poses(robot.q("zero"))
    parent_joint = {link_of(j, "child"): j for j in tree.joints}
    out: dict[str, JointAxis] = {}
    waiting = [tree.root]
    while waiting:
        link = waiting.pop(0)
        for element in (j for j in tree.joints if link_of(j, "parent") == link):
            child = link_of(element, "child")
            waiting.append(child)
            if element.get("type") == "fixed" or element.find("mimic") is not None:
                continue
            e = element.find("axis")
            a = np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])
            X = poses[child]
            # The axis does not change under the joint's own rotation, so the child's frame shows it as well.
            direction = X.rotation @ (a / np.linalg.norm(a))
            name = element.get("name", "")
            axis = JointAxis(name, link, child, np.array(X.translation), direction, element.get("type") == "prismatic")
            at = link
            while at in parent_joint and parent_joint[at].get("name") not in out:
                at = link_of(parent_joint[at], "parent")
            if at in parent_joint:
                axis.above = out[parent_joint[at].get("name", "")]
                axis.above.below.append(axis)
            out[name] = axis
    return out


def meeting_point(axes: Sequence[JointAxis]) -> np.ndarray | None:
    """The point (3,) with the least sum of squared distances to some axes; None where they are parallel."""
    A, b = np.zeros((3, 3)), np.zeros(3)
    for axis in axes:
        P = np.eye(3) - np.outer(axis.direction, axis.direction)
        A, b = A + P, b + P @ axis.point
    if np.linalg.eigvalsh(A)[0] < 0.05:
        return None
    return np.linalg.solve(A, b)


def ball_centre(axes: Sequence[JointAxis], near: float) -> tuple[np.ndarray, list[JointAxis]]:
    """Point where the axes of a joint group meet, and those that do, taken in order while they pass near.

    The first two that are not parallel decide; a later one belongs to the group when it passes the point within `near`
    [m]. Of a single axis, or of parallel ones, the first one's origin is the point.
    """
    for k in range(1, len(axes)):
        point = meeting_point(axes[: k + 1])
        if point is None:
            continue
        group = list(axes[: k + 1])
        for axis in axes[k + 1 :]:
            if axis.distance(point) > near:
                break
            group.append(axis)
        centre = meeting_point(group)
        return (point if centre is None else centre), group
    return axes[0].point, [axes[0]]


def nearest_on(axis: JointAxis, other: JointAxis) -> np.ndarray:
    """The point (3,) of an axis that is nearest to another axis; its origin where they are parallel."""
    n = np.cross(other.direction, axis.direction)
    if n @ n < 0.05:
        return axis.point
    t = float((axis.point - other.point) @ np.cross(other.direction, n)) / float(n @ n)
    return axis.point + t * axis.direction


# -------- Limbs

MIRROR_TOLERANCE = 0.04  # [m] between a joint and its twin's mirror image
MIRROR_SHARE = 0.8  # of the joints of a branch that must have such a twin
SHORTEST = 0.15  # [m] a shorter branch is no limb
FEWEST = 3  # joints of a limb
SHOWN = 8  # branches named in a message
WRITE_BY_HAND = "write the points by hand into a robot file beside the URDF (docs/adding_a_robot.md)"
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
        RobotError: no pair of branches that could be arms; says which branches there are.
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
            f"{where}: no arms found: no two mirrored branches of {FEWEST} joints or more, {SHORTEST:g} m or longer, "
            f"that are not legs; seen: {_seen(axes, best)}; {WRITE_BY_HAND}"
        )
    arm, leg = max(arms, key=lambda p: _reach(p[0])), max(legs, key=lambda p: _reach(p[0]), default=None)
    left = lateral * _left_sign(arm, lateral)
    pairs_of = {id(p): LimbPair(*(_longest_way(j) for j in _ordered(p, left))) for p in (arm, leg) if p is not None}
    return Limbs(pairs_of[id(arm)], pairs_of[id(leg)] if leg is not None else None, left)


def _seen(axes: dict[str, JointAxis], pairs: list[tuple[JointAxis, JointAxis]]) -> str:
    """The branches of a robot in words: mirrored pairs with why they are no arms, then the others."""
    if not axes:
        return "no moving joint at all"
    words, paired = [], {j.name for pair in pairs for top in pair for j in top.subtree()}
    for a, b in pairs:
        size, reach = len(a.subtree()), _reach(a)
        kind = "legs by their names" if _kind((a, b)) < 0 else f"{size} joints, {reach:.2f} m"
        words.append(f"{a.name} / {b.name} ({kind})")
    alone = [j for j in axes.values() if j.name not in paired]
    chains = [_longest_way(j) for j in alone if j.above is None or j.above.name in paired]
    words += [" > ".join(j.name for j in chain if j.name not in paired) for chain in chains]
    return "; ".join(words[:SHOWN]) + (f"; and {len(words) - SHOWN} more" if len(words) > SHOWN else "")


def _mirrored_pairs(axes: dict[str, JointAxis], lateral: np.ndarray) -> list[tuple[JointAxis, JointAxis]]:
    """Branches that begin at the same joint, or are named as twins, and are mirror images; none inside another pair."""
    out: list[tuple[JointAxis, JointAxis]] = []
    paired: set[str] = set()
    joints = list(axes.values())
    for k, a in enumerate(joints):
        for b in joints[k + 1 :]:
            begin = a.above is b.above or _twins(a.name, b.name)
            if begin and not {a.name, b.name} & paired and _mirrored(a, b, lateral):
                out.append((a, b))
                paired |= {j.name for j in a.subtree() + b.subtree()}
    return out


def _mirrored(a: JointAxis, b: JointAxis, lateral: np.ndarray) -> bool:
    """True where two branches are left and right of the plane across `lateral`: by their joints' places, or by name."""
    ours, theirs = (np.array([j.point for j in x.subtree()]) for x in (a, b))
    if len(ours) != len(theirs):
        return False
    apart = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    if _twins(a.name, b.name):  # whatever the zero posture
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
    """True where two names differ as left and right do, the first the left one: l_arm, arm_left, LShoulder."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    return name[start:].lower().startswith("l") and other[start:].lower().startswith("r")


def _twins(name: str, other: str) -> bool:
    """True where two names differ in nothing but their side: arm_left_1 and arm_right_1, LHand and RHand."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    a, b = sorted((name[start:], other[start:]), key=str.lower)  # l before r
    words = (("left", "right"), ("l", "r"))
    return any(
        a.lower().startswith(left) and b.lower().startswith(right) and a[len(left) :] == b[len(right) :]
        for left, right in words
    )


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
