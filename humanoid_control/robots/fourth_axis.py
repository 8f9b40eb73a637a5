"""A shoulder of four axes: the ten-joint arm (girdle 2, shoulder 4, elbow, forearm, wrist 2) of Dube 2012, app. A.2.

The source names the number of joints only. The fourth axis here is our choice: vertical at rest and before the other
three, so that it gives just the turning which they lose where the upper arm lies along the flexion axis.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.moved_axis import joint_element
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_tree import UrdfTree, link_of, parse_urdf, placement, set_placement

HORIZONTAL_FLEXION = "shoulder_horizontal_flexion"


def with_four_gh_axes(robot: Robot, horizontal_flexion: tuple[float, float] = (-90.0, 90.0)) -> Robot:
    """The robot with one more axis in each shoulder: horizontal flexion, `l_shoulder_horizontal_flexion` and its twin.

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
