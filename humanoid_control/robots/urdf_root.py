"""A URDF rooted anew at any of its links, and put into the world."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots.urdf_tree import UrdfTree, link_of, placement, set_placement


def rooted_at(tree: UrdfTree, link: str) -> UrdfTree:
    """The same robot with another link as its root: every joint keeps its name, its angle and its limits.

    A joint on the way from the new root to the old one is turned round. X_parent_child(q) = X_origin Rot(axis, q), so
    its reverse is Rot(-axis, q) X_origin^-1: a joint at the child's origin about the negated axis, then the fixed
    transform back to the parent.

    Raises:
        RobotError: the link does not exist.
    """
    if link not in tree.links:
        raise RobotError(f"{tree.where}: there is no link '{link}'; links: {', '.join(tree.links)}")
    out = tree.copy()
    while out.root != link:
        path = link
        while True:  # climb to the child of the root on the way to the link
            joint = next(j for j in out.joints if link_of(j, "child") == path)
            if link_of(joint, "parent") == out.root:
                break
            path = link_of(joint, "parent")
        _turn_round(out, joint)
    return out


def _turn_round(tree: UrdfTree, joint: ET.Element) -> None:
    parent, child = link_of(joint, "parent"), link_of(joint, "child")
    back = placement(joint.find("origin")).inverse()
    if joint.get("type") == "fixed":
        set_placement(joint, back)
        _swap(joint, child, parent)
        return
    middle = f"{parent}__turned"
    ET.SubElement(tree.document, "link", name=middle)
    fixed = ET.SubElement(tree.document, "joint", name=f"{joint.get('name')}__turned", type="fixed")
    ET.SubElement(fixed, "parent", link=middle)
    ET.SubElement(fixed, "child", link=parent)
    set_placement(fixed, back)
    set_placement(joint, pin.SE3.Identity())
    axis = joint.find("axis")
    if axis is None:
        axis = ET.SubElement(joint, "axis", xyz="1 0 0")
    axis.set("xyz", " ".join(f"{-float(v):.15g}" for v in axis.get("xyz", "1 0 0").split()))
    _swap(joint, child, middle)


def _swap(joint: ET.Element, parent: str, child: str) -> None:
    for role, link in (("parent", parent), ("child", child)):
        e = joint.find(role)
        assert e is not None
        e.set("link", link)


def placed_in_world(tree: UrdfTree, X_world_root: pin.SE3) -> UrdfTree:
    """The robot with its root fixed to a `world` link at the given pose (unless a `world` link is its root)."""
    out = tree.copy()
    if out.root == "world":
        return out
    root = out.root
    ET.SubElement(out.document, "link", name="world")
    joint = ET.SubElement(out.document, "joint", name="world_joint", type="fixed")
    ET.SubElement(joint, "parent", link="world")
    ET.SubElement(joint, "child", link=root)
    set_placement(joint, X_world_root)
    return out
