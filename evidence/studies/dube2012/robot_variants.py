"""Robots with one thing changed: ranges, locked joints, height of the waist, girdle offset, a fourth shoulder axis."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import EllipticCapsule, LinkShape
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.evaluation.shoulder_singularity import HORIZONTAL_FLEXION
from humanoid_control.robots.description.robot_file import RobotFile
from humanoid_control.robots.description.tree_changes import serial_chain
from humanoid_control.robots.description.urdf import (
    UrdfTree,
    axis_of,
    link_of,
    parse_urdf,
    placement,
    set_placement,
)
from humanoid_control.robots.robot import Robot

UP = np.array([0.0, 0.0, 1.0])


def with_ranges(robot: Robot, ranges: Mapping[str, tuple[float, float]]) -> Robot:
    """The robot with other joint ranges.

    Args:
        robot: the original.
        ranges: joint name or anatomical meaning -> (lower, upper) [deg]; without `l_` or `r_` it holds for both sides.
            Postures move to the nearest value inside.

    Raises:
        UnknownNameError: no such joint.
        RobotError: an empty range, one that does not hold the zero posture, a joint that does not turn.
    """
    tree, limits = _tree(robot), {}
    for name, (lower, upper) in ranges.items():
        if not lower < upper:
            raise RobotError(f"range of '{name}': {lower:g} deg is not below {upper:g} deg")
        joints = joints_named(robot, name)
        if len({j.removeprefix("l_").removeprefix("r_") for j in joints}) > 1:
            raise RobotError(f"range of '{name}': it names several joints: {', '.join(joints)}")
        for joint in joints:
            element = joint_element(tree, joint)
            if element.get("type") != "revolute":
                raise RobotError(f"range of '{name}': joint '{joint}' is {element.get('type')},which has no angle")
            zero = math.degrees(robot.postures["zero"][robot.joint_index(joint)])
            if not lower - 1e-9 <= zero <= upper + 1e-9:
                raise RobotError(f"range of '{name}': it must hold {zero:g} deg, the zero posture of '{joint}'")
            limits[joint] = math.radians(lower), math.radians(upper)
            limit = element.find("limit")
            assert limit is not None, "every moving joint of a checked URDF has limits"
            for key, value in zip(("lower", "upper"), limits[joint], strict=True):
                limit.set(key, repr(value))
    postures = {
        posture: {j: min(max(v, limits[j][0]), limits[j][1]) if j in limits else v for j, v in values.items()}
        for posture, values in robot.file.postures.items()
    }
    return _rebuilt(robot, tree, replace(robot.file, postures=postures))


def with_locked(robot: Robot, joints: Iterable[str]) -> Robot:
    """The robot with some joints taken out of imitation: they stay where the neutral posture has them.

    Args:
        robot: the original.
        joints: names or meanings; without `l_` or `r_` both sides, and the first words of names stand for all joints
            that begin with them: `girdle`, `waist`, `l_shoulder`.

    Raises:
        UnknownNameError: no such joint.
        RobotError: a joint that imitation does not move anyway, or no joint left.
    """
    moving = [robot.joint_names[k] for k in robot.imitation_joints]
    locked = {joint for name in joints for joint in joints_named(robot, name)}
    idle = sorted(locked - set(moving))
    if idle:
        raise RobotError(f"joint '{idle[0]}' of {robot.name} is not an imitation joint, so it is locked already")
    left = tuple(joint for joint in moving if joint not in locked)
    if not left:
        raise RobotError(f"all imitation joints of {robot.name} would be locked")
    return _rebuilt(robot, _tree(robot), replace(robot.file, imitation_joints=left))


def with_waist_at(robot: Robot, height: float) -> Robot:
    """The robot with its waist joints moved along the trunk, by the same amount all.

    The border between the shapes `lower_torso` and `upper_torso`, where they are elliptic capsules, moves along: what
    is below the waist belongs to the hips.

    Args:
        robot: the original.
        height: of the highest waist joint above the mid-hip in the zero posture [m]; now: `waist_height`.

    Raises:
        RobotError: no waist joint, or a waist joint would be outside the trunk (between mid-hip and sternum).
    """
    heights = _waist_heights(robot)
    if not heights:
        raise RobotError(f"{robot.name} has no waist joint: none lies between the points mid_hip and sternum")
    mid_hip, sternum = _zero_points(robot, "mid_hip", "sternum")
    lowest, top = max(heights.values()) - min(heights.values()), sternum[2] - mid_hip[2]
    if not lowest - 1e-9 <= height <= top + 1e-9:
        raise RobotError(
            f"{robot.name}: a waist {height:g} m above the mid-hip is outside the trunk; give {lowest:g} .. {top:g} m"
        )
    shift = height - max(heights.values())
    tree = _tree(robot)
    for joint in heights:
        relocate_axis(robot, tree, joint, shift * UP)
    shapes = _with_torso_border_moved(robot.file.collision, shift)
    return _rebuilt(robot, tree, replace(robot.file, collision=shapes))


def with_girdle_at(robot: Robot, offset: float) -> Robot:
    """The robot with its shoulder girdle joints moved sideways; the shoulders stay where they are at zero.

    Args:
        robot: the original, with girdle joints (WE-4RII, the recommended model).
        offset: of the girdle joints from the sternum, to the side [m]: 0 is at the sternum; now: `girdle_offset`.

    Raises:
        RobotError: no girdle joints, or an offset that is not between sternum and shoulder.
    """
    now = girdle_offset(robot)
    sternum, shoulder = _zero_points(robot, "sternum", "l_gh")
    width = abs(shoulder[1] - sternum[1])
    if not 0 <= offset < width:
        raise RobotError(
            f"{robot.name}: girdle offset {offset:g} m is not between sternum and shoulder, 0 .. {width:g} m"
        )
    tree = _tree(robot)
    for joint in joints_named(robot, "girdle"):
        side = 1.0 if joint in joints_named(robot, "l_girdle") else -1.0
        relocate_axis(robot, tree, joint, np.array([0.0, side * (offset - now), 0.0]))
    return _rebuilt(robot, tree, robot.file)


def waist_height(robot: Robot) -> float:
    """Height of the highest waist joint above the mid-hip in the zero posture [m]; NaN without a waist joint."""
    return max(_waist_heights(robot).values(), default=math.nan)


def girdle_offset(robot: Robot) -> float:
    """Lateral distance of the left girdle joints from the sternum in the zero posture [m].

    Raises:
        RobotError: the robot has no shoulder girdle.
    """
    try:
        joint = joints_named(robot, "l_girdle")[0]
    except UnknownNameError:
        raise RobotError(f"{robot.name} has no girdle joints (l_girdle_..., r_girdle_...)") from None
    child = link_of(joint_element(_tree(robot), joint), "child")
    return float(robot.link_poses(robot.q("zero"))[child].translation[1] - _zero_points(robot, "sternum")[0][1])


def _waist_heights(robot: Robot) -> dict[str, float]:
    """The joints between mid-hip and sternum, and their heights above the mid-hip in the zero posture [m]."""
    (mid_hip,) = _zero_points(robot, "mid_hip")
    robot.point_frame("sternum")
    tree, poses = _tree(robot), robot.link_poses(robot.q("zero"))
    chain = serial_chain(tree, robot.file.points["mid_hip"][0], robot.file.points["sternum"][0])
    links = {j.name: link_of(joint_element(tree, j.name), "child") for j in chain.joints}
    return {name: float(poses[link].translation[2] - mid_hip[2]) for name, link in links.items()}


def _with_torso_border_moved(shapes: tuple[LinkShape, ...], shift: float) -> tuple[LinkShape, ...]:
    """The shapes, where the border between lower and upper torso has moved up, at most to the far end of either."""
    torso = {s.name: s.shape for s in shapes if isinstance(s.shape, EllipticCapsule)}
    if not {"lower_torso", "upper_torso"} <= set(torso):
        return shapes
    low, up = torso["lower_torso"], torso["upper_torso"]
    shift = min(max(shift, -low.l), up.l)
    x, y, z = low.top_center
    moved = {
        "lower_torso": replace(low, top_center=(x, y, z + shift), l=low.l + shift),
        "upper_torso": replace(up, l=up.l - shift),
    }
    return tuple(replace(s, shape=moved.get(s.name, s.shape)) for s in shapes)


def _zero_points(robot: Robot, *names: str) -> np.ndarray:
    return robot.point_positions(robot.q("zero"), names)


def _tree(robot: Robot) -> UrdfTree:
    return parse_urdf(robot.urdf, robot.file.where or robot.name)


def _rebuilt(robot: Robot, tree: UrdfTree, file: RobotFile) -> Robot:
    return Robot(tree, file, robot.base)


# -------- joints by name


def joints_named(robot: Robot, name: str) -> tuple[str, ...]:
    """The joints that a name stands for: a joint, a meaning, either without its side, or the first words of several.

    Raises:
        UnknownNameError: none, with the nearest names.
    """
    for names in ((name,), (f"l_{name}", f"r_{name}")):
        exact = tuple(j for n in names if (j := robot.joint_for(n)) is not None)
        if exact:
            return exact
    begins = tuple(f"{side}{name}_" for side in ("", "l_", "r_"))
    found = {joint: None for meaning, joint in robot.meanings.items() if meaning.startswith(begins)}
    if not found:
        bare = {m.removeprefix("l_").removeprefix("r_") for m in robot.meanings}
        raise UnknownNameError("joint", name, bare | set(robot.meanings), hint=f"(robot {robot.name})")
    return tuple(found)


# -------- axes moved and added


def joint_element(tree: UrdfTree, name: str) -> ET.Element:
    """The XML element of a joint.

    Raises:
        UnknownNameError: with the nearest names.
    """
    joints = {j.get("name", ""): j for j in tree.joints}
    if name not in joints:
        raise UnknownNameError("joint", name, joints, hint=f"({tree.where})")
    return joints[name]


def relocate_axis(robot: Robot, tree: UrdfTree, joint: str, shift: np.ndarray) -> None:
    """Move a revolute joint's axis in the tree, in place.

    The pose of the child in the parent is X R(q). With d the shift in the joint's frame it becomes X T(d) R(q) Y, where
    the constant Y = T(-R(q0)^-1 d) leaves it as it was at the zero posture's angle q0. Y is a fixed joint behind a new
    massless link.

    Args:
        robot: whose zero posture says how the joint lies in the world; its angles, not the tree's, are used.
        tree: a description with the same links; changed.
        joint: a revolute joint.
        shift: (3,) of the axis in the world, in the zero posture [m].

    Raises:
        RobotError: the joint does not turn.
    """
    element = joint_element(tree, joint)
    if element.get("type") != "revolute":
        raise RobotError(f"{tree.where}: joint '{joint}' is {element.get('type')}: it has no movable axis")
    q0 = float(robot.postures["zero"][robot.joint_index(joint)])
    X = placement(element.find("origin"))
    world = robot.link_poses(robot.q("zero"))[link_of(element, "parent")].rotation @ X.rotation
    d = world.T @ shift
    axis = axis_of(element)
    R0 = pin.exp3(q0 * axis / np.linalg.norm(axis))
    set_placement(element, X * pin.SE3(np.eye(3), d))
    child = element.find("child")
    assert child is not None, "every joint of a checked URDF has a child"
    middle = _free_name(tree, f"{joint}__moved")
    ET.SubElement(tree.document, "link", name=middle)
    fixed = ET.SubElement(tree.document, "joint", name=middle, type="fixed")
    ET.SubElement(fixed, "parent", link=middle)
    ET.SubElement(fixed, "child", link=child.get("link", ""))
    set_placement(fixed, pin.SE3(np.eye(3), -R0.T @ d))
    child.set("link", middle)


def _free_name(tree: UrdfTree, name: str) -> str:
    taken = {*tree.links, *(j.get("name") for j in tree.joints)}
    return name if name not in taken else next(n for k in range(2, 10**6) if (n := f"{name}_{k}") not in taken)


def add_fourth_shoulder_axis(robot: Robot, horizontal_flexion: tuple[float, float] = (-90.0, 90.0)) -> Robot:
    """The robot with one more axis in each shoulder: horizontal flexion, `l_shoulder_horizontal_flexion` and its twin.

    With a girdle of two joints that is the ten-joint arm of Dube 2012, appendix A.2.

    All links and points stay where they are in the zero posture; the original stays as it is. Speed and effort limits
    are those of shoulder flexion.

    Args:
        robot: with the joints `l_shoulder_flexion` and `r_shoulder_flexion`, by name or meaning.
        horizontal_flexion: range of the new joints [deg]; positive moves a sideways arm forward.

    Raises:
        RobotError: no shoulder flexion, four axes already, or a range that is empty or without 0.
    """
    lower, upper = horizontal_flexion
    if not (lower < upper and lower <= 0 <= upper):
        raise RobotError(f"range of horizontal flexion: {lower:g} .. {upper:g} deg is empty or does not hold 0")
    tree = parse_urdf(robot.urdf, robot.file.where or robot.name)
    moving = [robot.joint_names[k] for k in robot.imitation_joints]
    for side, sign in (("l", -1.0), ("r", 1.0)):
        flexion, new = robot.joint_for(f"{side}_shoulder_flexion"), f"{side}_{HORIZONTAL_FLEXION}"
        if flexion is None:
            raise RobotError(f"{robot.name} has no {side}_shoulder_flexion: name it under 'meanings' in its robot file")
        if new in robot.index:
            raise RobotError(f"{robot.name} has four axes in its shoulders already")
        _insert(robot, tree, flexion, new, sign, (math.radians(lower), math.radians(upper)))
        moving.insert(moving.index(flexion) if flexion in moving else 0, new)
    return Robot(tree, replace(robot.file, imitation_joints=tuple(moving)), robot.base)


def _insert(robot: Robot, tree: UrdfTree, flexion: str, new: str, sign: float, limits: tuple[float, float]) -> None:
    """Put a joint about the vertical before the flexion joint, at its centre."""
    old = joint_element(tree, flexion)
    X, parent = placement(old.find("origin")), link_of(old, "parent")
    up = robot.link_poses(robot.q("zero"))[parent].rotation.T @ [0.0, 0.0, sign]
    joint = ET.SubElement(tree.document, "joint", name=new, type="revolute")
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=new)
    ET.SubElement(joint, "axis", xyz=" ".join(f"{v:.15g}" for v in up))
    limit = old.find("limit")
    assert limit is not None, "every moving joint of a checked URDF has limits"
    speed, effort = limit.get("velocity", ""), limit.get("effort", "")
    ET.SubElement(joint, "limit", lower=repr(limits[0]), upper=repr(limits[1]), velocity=speed, effort=effort)
    set_placement(joint, pin.SE3(np.eye(3), X.translation))
    ET.SubElement(tree.document, "link", name=new)
    set_placement(old, pin.SE3(X.rotation, np.zeros(3)))
    e = old.find("parent")
    assert e is not None
    e.set("link", new)
