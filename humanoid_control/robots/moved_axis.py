"""One joint of a URDF turned about another point, while every link stays where it is in the zero posture."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.urdf_tree import UrdfTree, link_of, placement, set_placement


def joint_element(tree: UrdfTree, name: str) -> ET.Element:
    """The XML element of a joint.

    Raises:
        UnknownNameError: with the nearest names.
    """
    joints = {j.get("name", ""): j for j in tree.joints}
    if name not in joints:
        raise UnknownNameError("joint", name, joints, hint=f"({tree.where})")
    return joints[name]


def move_axis(robot: Robot, tree: UrdfTree, joint: str, shift: np.ndarray) -> None:
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
        raise RobotError(f"{tree.where}: joint '{joint}' is {element.get('type')}: it has no axis that could be moved")
    q0 = float(robot.postures["zero"][robot.joint_index(joint)])
    X = placement(element.find("origin"))
    world = robot.link_poses(robot.q("zero"))[link_of(element, "parent")].rotation @ X.rotation
    d = world.T @ shift
    e = element.find("axis")
    axis = np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])
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
