"""Modified link trees: added frames, another root, a world link, serial chains, plain URDF."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.description.urdf import UrdfTree, axis_of, copied, link_of, placement, set_placement


def with_frames(tree: UrdfTree, frames: Mapping[str, tuple[str, pin.SE3]]) -> UrdfTree:
    """Add massless links fixed to links: name -> link and pose in its frame.

    Raises:
        UnknownNameError: if a link is unknown.
        RobotError: if the name exists.
    """
    if not frames:
        return tree
    out, links = tree.copy(), set(tree.links)
    for name, (link, X) in frames.items():
        if link not in links:
            raise UnknownNameError("link", link, links, hint=f"(frame '{name}' on it; {tree.where})")
        if f"{name}__fixed" in {j.get("name") for j in tree.joints}:
            continue  # already added: the robot's own URDF
        if name in links:
            raise RobotError(f"{tree.where}: a frame cannot be named '{name}': a link has that name")
        ET.SubElement(out.document, "link", name=name)
        joint = ET.SubElement(out.document, "joint", name=f"{name}__fixed", type="fixed")
        ET.SubElement(joint, "parent", link=link)
        ET.SubElement(joint, "child", link=name)
        set_placement(joint, X)
        links.add(name)
    return out


def plain_urdf(tree: UrdfTree) -> UrdfTree:
    """Replace capsules, which URDF readers reject, by a cylinder and two spheres."""
    out = tree.copy()
    for link in out.document.findall("link"):
        for e in [e for e in link if e.find("geometry/capsule") is not None]:
            at = list(link).index(e)
            link.remove(e)
            for part in reversed(_capsule_parts(e)):
                link.insert(at, part)
    return out


def _capsule_parts(e: ET.Element) -> list[ET.Element]:
    capsule = e.find("geometry/capsule")
    assert capsule is not None
    radius, length = capsule.get("radius", "0"), capsule.get("length", "0")
    X, name = placement(e.find("origin")), e.get("name")
    rows = [(0.0, "cylinder", {"radius": radius, "length": length})]
    rows += [(end, "sphere", {"radius": radius}) for end in (float(length) / 2, -float(length) / 2)]
    out = []
    for k, (along, tag, size) in enumerate(rows):
        part = ET.Element(e.tag, {} if name is None else {"name": f"{name}_{k}" if k else name})
        set_placement(part, X * pin.SE3(np.eye(3), np.array([0.0, 0.0, along])))
        ET.SubElement(ET.SubElement(part, "geometry"), tag, size)
        part.extend(copied(c) for c in e if c.tag not in ("origin", "geometry"))
        out.append(part)
    return out


# -------- Another root


def rooted_at(tree: UrdfTree, link: str) -> UrdfTree:
    """Return the tree with another root; joints keep name, angle and limits.

    A joint on the path to the old root is reversed: X_parent_child(q) = X_origin Rot(axis, q) becomes Rot(-axis, q)
    X_origin^-1, a joint about the negated axis and a fixed transform.

    Raises:
        RobotError: if the link is unknown.
    """
    if link not in tree.links:
        raise RobotError(f"{tree.where}: link '{link}' not found; available: {', '.join(tree.links)}")
    out = tree.copy()
    while out.root != link:
        path = link
        while True:  # climb to the child of the root above the link
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
    """Fix the root to a `world` link at a pose, unless the root is `world`."""
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


# -------- Serial chains


@dataclass(frozen=True)
class ChainJoint:
    """Moving joint of a chain.

    Attributes:
        kind: 'revolute' or 'prismatic'.
        X: (4, 4) joint frame at angle 0 in the frame after the previous joint (or in the base).
        axis: (3,) unit vector in the joint frame.
    """

    name: str
    kind: str
    X: np.ndarray
    axis: np.ndarray


@dataclass(frozen=True)
class JointChain:
    """Moving joints from a base link to a tip link.

    The tip pose in the base is X_1 M_1(q_1) X_2 M_2(q_2) ... X_tip, where M_i rotates about (or slides along) the axis
    of joint i; the constant X (4, 4) contain fixed joints.
    """

    base: str
    tip: str
    joints: tuple[ChainJoint, ...]
    X_tip: np.ndarray


def serial_chain(tree: UrdfTree, base: str, tip: str) -> JointChain:
    """Return the chain between two links, wherever the root is.

    Raises:
        UnknownNameError: if a link is unknown.
    """
    for link in (base, tip):
        if link not in tree.links:
            raise UnknownNameError("link", link, tree.links, hint=f"({tree.where})")
    rooted = rooted_at(tree, base)
    above = {link_of(j, "child"): j for j in rooted.joints}
    elements, link = [], tip
    while link != base:
        elements.append(above[link])
        link = link_of(above[link], "parent")
    joints: list[ChainJoint] = []
    X = np.eye(4)
    for element in reversed(elements):
        X = X @ placement(element.find("origin")).homogeneous
        kind = element.get("type", "")
        if kind == "fixed":
            continue
        axis = axis_of(element)
        joints.append(ChainJoint(element.get("name", ""), kind, X, axis / np.linalg.norm(axis)))
        X = np.eye(4)
    return JointChain(base, tip, tuple(joints), X)
