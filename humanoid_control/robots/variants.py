"""The same robot with one thing changed, for experiments: ranges, locked joints, where the waist and the girdle turn.

Every function takes a Robot and returns a new one; the original stays as it is. In the zero posture all links and
points of the new robot are where they were, so segment lengths and targets are the same and only the motion differs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.chain import serial_chain
from humanoid_control.robots.joint_names import joints_named
from humanoid_control.robots.moved_axis import joint_element, move_axis
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.robot_file import RobotFile
from humanoid_control.robots.shapes import EllipticCapsule, LinkShape
from humanoid_control.robots.urdf_tree import UrdfTree, link_of, parse_urdf

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
            raise RobotError(f"range of '{name}': that is several joints: {', '.join(joints)}")
        for joint in joints:
            element = joint_element(tree, joint)
            if element.get("type") != "revolute":
                raise RobotError(f"range of '{name}': joint '{joint}' is {element.get('type')}, it has no angle")
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
        move_axis(robot, tree, joint, shift * UP)
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
    reach = abs(shoulder[1] - sternum[1])
    if not 0 <= offset < reach:
        raise RobotError(
            f"{robot.name}: girdle offset {offset:g} m is not between sternum and shoulder, 0 .. {reach:g} m"
        )
    tree = _tree(robot)
    for joint in joints_named(robot, "girdle"):
        side = 1.0 if joint in joints_named(robot, "l_girdle") else -1.0
        move_axis(robot, tree, joint, np.array([0.0, side * (offset - now), 0.0]))
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
