"""Arms and legs of an unknown robot: mirrored branches, from joint axes in the zero posture.

A sole is the rectangle around the lowest points of a body below the ankle, a few millimetres deep, or around the box
with its mass and inertia.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.description.robot_file import AddedFrame, Foot
from humanoid_control.robots.description.urdf import UrdfTree, link_of
from humanoid_control.robots.guess.bodies import Bodies, bodies_of
from humanoid_control.robots.robot import Robot

# -------- Axes of joints


@dataclass
class JointAxis:
    """Moving joint in the zero posture.

    Attributes:
        point: (3,) origin in the world [m].
        direction: (3,) unit axis in the world.
        slides: prismatic.
        above: next moving joint toward the root, or None.
        below: next moving joints toward the tips.
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
        """Return this joint and all below."""
        return [self, *(j for child in self.below for j in child.subtree())]

    def distance(self, point: np.ndarray) -> float:
        """Return the distance of a point to the axis [m]."""
        return float(np.linalg.norm(np.cross(point - self.point, self.direction)))


def joint_axes(robot: Robot, tree: UrdfTree) -> dict[str, JointAxis]:
    """Return all moving joints in the zero posture, root first, without mimic joints."""
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
            # Invariant under the joint's rotation, so the child's frame may be used.
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
    """Return the point (3,) with least squared distances to axes; None if parallel."""
    A, b = np.zeros((3, 3)), np.zeros(3)
    for axis in axes:
        P = np.eye(3) - np.outer(axis.direction, axis.direction)
        A, b = A + P, b + P @ axis.point
    if np.linalg.eigvalsh(A)[0] < 0.05:
        return None
    return np.linalg.solve(A, b)


def ball_centre(axes: Sequence[JointAxis], near: float) -> tuple[np.ndarray, list[JointAxis]]:
    """Return the point where the axes of a joint group meet, and the group.

    The first two non-parallel axes decide; later axes join while they pass within `near` [m].
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
    """Return the point (3,) of an axis nearest to another axis; its origin if parallel."""
    n = np.cross(other.direction, axis.direction)
    if n @ n < 0.05:
        return axis.point
    t = float((axis.point - other.point) @ np.cross(other.direction, n)) / float(n @ n)
    return axis.point + t * axis.direction


# -------- Limbs

MIRROR_TOLERANCE = 0.04  # [m] between a joint and the mirror image of its twin
MIRROR_SHARE = 0.8  # of the joints of a branch with such a twin
SHORTEST = 0.12  # of the robot's size: least length of a limb
FEWEST = 3  # joints of a limb
SHOWN = 8  # branches named in a message
WRITE_BY_HAND = "write the points by hand into a robot file next to the URDF (docs/adding_a_robot.md)"
ARM_WORDS = re.compile(r"arm|shoulder|sho_|elbow|wrist|clav|girdle|hand|gripper", re.I)
LEG_WORDS = re.compile(r"leg|hip|knee|ankle|foot|toe|thigh|haa|hfe|kfe", re.I)


@dataclass(frozen=True)
class LimbPair:
    """Mirrored branches: joints on the longest way to a tip."""

    left: list[JointAxis]
    right: list[JointAxis]


@dataclass(frozen=True)
class Limbs:
    """Limbs of a robot, and its left direction (3,) in the world."""

    arms: LimbPair
    legs: LimbPair | None
    left: np.ndarray


def find_limbs(axes: dict[str, JointAxis], where: str) -> Limbs:
    """Return arms and legs, if any.

    Raises:
        RobotError: if there are no arms; lists the branches.
    """
    best: list[tuple[JointAxis, JointAxis]] = []
    lateral = np.eye(3)[1]
    for direction in (np.eye(3)[1], np.eye(3)[0]):
        pairs = _mirrored_pairs(axes, direction)
        if sum(len(a.subtree()) for a, _ in pairs) > sum(len(a.subtree()) for a, _ in best):
            best, lateral = pairs, direction
    shortest = SHORTEST * float(np.linalg.norm(np.ptp([j.point for j in axes.values()], axis=0))) if axes else 0.0
    limbs = [pair for pair in best if len(pair[0].subtree()) >= FEWEST and _reach(pair[0]) > shortest]
    arms = [p for p in limbs if _kind(p) > 0]
    legs = [p for p in limbs if _kind(p) < 0]
    unnamed = sorted((p for p in limbs if _kind(p) == 0), key=_lowest)
    if not legs and len(unnamed) > 1:
        legs = [unnamed.pop(0)]
    arms = arms or unnamed
    if not arms:
        raise RobotError(
            f"{where}: no arms found: no two mirrored branches of {FEWEST} joints or more, {shortest:.2g} m or longer, "
            f"that are not legs; seen: {_seen(axes, best)}; {WRITE_BY_HAND}"
        )
    arm, leg = max(arms, key=lambda p: _reach(p[0])), max(legs, key=lambda p: _reach(p[0]), default=None)
    left = lateral * _left_sign(arm, lateral)
    pairs_of = {id(p): LimbPair(*(_longest_way(j) for j in _ordered(p, left))) for p in (arm, leg) if p is not None}
    return Limbs(pairs_of[id(arm)], pairs_of[id(leg)] if leg is not None else None, left)


def _seen(axes: dict[str, JointAxis], pairs: list[tuple[JointAxis, JointAxis]]) -> str:
    """Describe the branches, with reasons of rejection."""
    if not axes:
        return "no movable joint"
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
    """Return mirrored branches from one joint or with twin names."""
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
    """Return whether two branches are mirror images across `lateral`."""
    ours, theirs = (np.array([j.point for j in x.subtree()]) for x in (a, b))
    if len(ours) != len(theirs):
        return False
    apart = np.abs(ours.mean(axis=0) - theirs.mean(axis=0))
    if _twins(a.name, b.name):  # independent of the zero posture
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
    names = [n for j in pair[0].subtree() for n in (j.name, j.child_link)]
    return sum(bool(ARM_WORDS.search(n)) for n in names) - sum(bool(LEG_WORDS.search(n)) for n in names)


def _left_sign(pair: tuple[JointAxis, JointAxis], lateral: np.ndarray) -> float:
    """Return +1 if left is along `lateral`, by names or default."""
    a, b = pair
    if _is_left(b.name, a.name) or _is_left(b.child_link, a.child_link):
        a, b = b, a
    elif not (_is_left(a.name, b.name) or _is_left(a.child_link, b.child_link)):
        return 1.0
    return float(np.sign(np.mean([j.point @ lateral for j in a.subtree()])))


def _is_left(name: str, other: str) -> bool:
    """Return whether names differ as left and right, the first left: l_arm, arm_left, LShoulder."""
    start = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(name, other, strict=False)))
    return name[start:].lower().startswith("l") and other[start:].lower().startswith("r")


def _twins(name: str, other: str) -> bool:
    """Return whether names differ only in their side: arm_left_1 and arm_right_1, LHand and RHand."""
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

    def length(j: JointAxis) -> float:
        return max((float(np.linalg.norm(c.point - j.point)) + length(c) for c in j.below), default=0.0)

    way = [joint]
    while way[-1].below:
        here = way[-1]
        way.append(max(here.below, key=lambda c: float(np.linalg.norm(c.point - here.point)) + length(c)))
    return way


# -------- Feet


DEEP = 0.006  # [m] height above the lowest point that counts as ground
SAME = 0.005  # [m] tolerance of mirrored feet
LEAST = 0.03  # [m] least side of a sole
LEVEL = 1e-3  # sine of the angle between an axis of a link and one of the robot
LOWER = 0.05  # [m] other parts must not be lower than the soles by more
FLAT = 0.03  # [m] height of a sole over the lowest one, as for toes
ANKLE = 0.06  # [m] distance of the axes of an ankle


@dataclass(frozen=True)
class GuessedFoot:
    """Ground contact of one leg.

    Attributes:
        soles: rectangles, ankle first.
        place: (3,) point `SIDE_foot_tcp` in its link [m].
        how: source, in words.
        weak: not from geometry.
        frames: on oblique links, along the robot's axes.
    """

    soles: tuple[Foot, ...]
    place: np.ndarray
    how: str
    weak: bool
    frames: dict[str, AddedFrame] = field(default_factory=dict)


def guess_feet(robot: Robot, tree: UrdfTree, legs: LimbPair, bodies: Bodies, yaw: float) -> tuple[GuessedFoot, ...]:
    """Return the feet of both legs, left first; empty if a leg has no sole.

    Args:
        robot: in the zero posture.
        yaw: rotation that makes the robot face x [rad].

    Raises:
        RobotError: if another body is clearly lower (legs closed to loops).
    """
    poses = {name: pin.SE3(X) for name, X in robot.link_poses(robot.q("zero")).items()}
    X_robot_world = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.zeros(3))
    poses = {name: X_robot_world * X for name, X in poses.items()}
    of = bodies_of(tree)
    out = []
    for side, way in zip("lr", (legs.left, legs.right), strict=True):
        ends = _below_ankle(way)
        surfaces = {of[j.child_link][0]: _surface(robot, tree, bodies, poses, of[j.child_link][0]) for j in ends}
        lowest = min(float(points[:, 2].min()) for points, _ in surfaces.values())
        soles: list[Foot] = []
        frames: dict[str, AddedFrame] = {}
        weak = False
        for joint in ends:
            body = of[joint.child_link][0]
            points, guessed = surfaces[body]
            if float(points[:, 2].min()) - lowest > FLAT:
                continue
            name = f"{side}_{'foot' if not soles else 'toe'}"
            link, X = _level_link(body, of, poses), poses[body]
            if link is None:
                link = f"{name}_level"
                X = pin.SE3(np.eye(3), X.translation)
                rpy = pin.rpy.matrixToRpy(poses[body].rotation.T)
                frame = AddedFrame(body, (0.0, 0.0, 0.0), tuple(round(float(v), 6) + 0.0 for v in rpy))  # type: ignore[arg-type]
            else:
                X, frame = poses[link], None
            sole = _rectangle(points, X, name, link)
            if sole is not None:
                if frame is not None:
                    frames[link] = frame
                    poses[link] = X
                soles.append(sole)
                weak = weak or guessed
        if not soles:
            return ()
        first = soles[0]
        ankle = X_robot_world.act(ends[0].point)
        at = poses[first.link].actInv(ankle)
        place = np.array([np.clip(at[0], first.x_min, first.x_max), np.clip(at[1], first.y_min, first.y_max), first.z])
        how = "the box of its inertia" if weak else "its lowest points"
        out.append(GuessedFoot(tuple(soles), place, how, weak, frames))
    _check_lowest(bodies, out, poses, tree)
    return _alike(out, poses)


def _check_lowest(bodies: Bodies, feet: list[GuessedFoot], poses: dict[str, pin.SE3], tree: UrdfTree) -> None:
    soles = [sole for foot in feet for sole in foot.soles]
    ground = min(float(poses[s.link].act(c)[2]) for s in soles for c in s.corners())
    for body, surface in bodies.surfaces.items():
        low = float((surface.vertices @ poses[body].rotation.T + poses[body].translation)[:, 2].min())
        if low < ground - LOWER:
            raise RobotError(
                f"{tree.where}: '{body}' is {ground - low:.2f} m below the soles found on '{soles[0].link}': do rods "
                f"close loops in the legs? The feet are not at the end of a chain of joints: {WRITE_BY_HAND}"
            )


def _alike(feet: list[GuessedFoot], poses: dict[str, pin.SE3]) -> tuple[GuessedFoot, ...]:
    """Return both feet with the intersection of their mirrored rectangles."""
    left, right = feet
    if len(left.soles) != len(right.soles):
        return tuple(feet)
    soles: tuple[list[Foot], list[Foot]] = ([], [])
    for a, b in zip(left.soles, right.soles, strict=True):
        low, high = max(a.x_min, b.x_min), min(a.x_max, b.x_max)
        outer, inner = min(a.y_max, -b.y_min), max(a.y_min, -b.y_max)
        offset = poses[a.link].translation[1] + poses[b.link].translation[1]
        if abs(offset) > SAME or min(high - low, outer - inner) < LEAST or abs(a.z - b.z) > SAME:
            return tuple(feet)
        soles[0].append(replace(a, x_min=low, x_max=high, y_min=inner, y_max=outer))
        soles[1].append(replace(b, x_min=low, x_max=high, y_min=-outer, y_max=-inner))
    return replace(left, soles=tuple(soles[0])), replace(right, soles=tuple(soles[1]))


def _below_ankle(way: Sequence[JointAxis]) -> list[JointAxis]:
    heights = [float(joint.point[2]) for joint in way]
    for k in range(len(way) - 1, 1, -1):
        if heights[k] > (max(heights) + min(heights)) / 2:
            break  # hips
        _, group = ball_centre([way[k], way[k - 1]], ANKLE)
        if len(group) == 2 and abs(way[k].direction @ way[k - 1].direction) < 0.5:
            return list(way[k:])
    return [way[-1]]


def _surface(
    robot: Robot, tree: UrdfTree, bodies: Bodies, poses: dict[str, pin.SE3], body: str
) -> tuple[np.ndarray, bool]:
    """Return points (n, 3) of a body in the world, and whether they are its inertia box."""
    if body in bodies.surfaces:
        X = poses[body]
        return bodies.surfaces[body].vertices @ X.rotation.T + X.translation, False
    frame = robot.model.frames[robot.model.getFrameId(body, pin.FrameType.BODY)]
    inertia = robot.model.inertias[frame.parentJoint]
    moments, R = np.linalg.eigh(inertia.inertia)
    half = np.sqrt(np.maximum(1.5 / inertia.mass * (moments.sum() - 2 * moments), 0.0))
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    corners = inertia.lever + (signs * half) @ R.T
    X = poses[body] * frame.placement.inverse()
    return corners @ X.rotation.T + X.translation, True


def _level_link(body: str, of: dict[str, tuple[str, pin.SE3]], poses: dict[str, pin.SE3]) -> str | None:
    links = [link for link, (b, _) in of.items() if b == body]
    level = [link for link in links if np.abs(poses[link].rotation - np.eye(3)).max() < LEVEL]
    return level[0] if level else None


def _rectangle(points: np.ndarray, X: pin.SE3, name: str, link: str) -> Foot | None:
    low = points[points[:, 2] < points[:, 2].min() + DEEP]
    local = (low - X.translation) @ X.rotation
    (x0, y0, z), (x1, y1, _) = local.min(axis=0), local.max(axis=0)
    if min(x1 - x0, y1 - y0) < LEAST:
        return None
    return Foot(name, link, *(round(float(v), 4) for v in (x0, x1, y0, y1, z)))
