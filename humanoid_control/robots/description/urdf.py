"""A URDF as a checked tree of links, read from the XML alone; rooted anew, put into the world, cut into chains."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError, UnknownNameError

WIDE = 1.0e3  # [rad] stands for "no limit" on a continuous joint
BASE_LINK = "base_link"  # the massless root of the catalogue's URDFs
MOVING = ("revolute", "continuous", "prismatic")
# Before <?xml ...?> XML allows nothing; many files have a byte-order mark, blanks or comments there.
_PROLOGUE = re.compile(r"\A\ufeff?(?:\s|<!--.*?-->)*(?=<\?xml)", re.DOTALL)


@dataclass
class UrdfTree:
    """A parsed and checked URDF document; `where` names it in error messages."""

    document: ET.Element
    where: str

    @property
    def name(self) -> str:
        """The robot's."""
        return self.document.get("name", "robot")

    @property
    def links(self) -> list[str]:
        """Names of the links, in the order of the file."""
        return [e.get("name", "") for e in self.document.findall("link")]

    @property
    def joints(self) -> list[ET.Element]:
        """Elements of the joints, in the order of the file."""
        return self.document.findall("joint")

    @property
    def root(self) -> str:
        """Name of the link that is no joint's child."""
        children = {link_of(j, "child") for j in self.joints}
        return next(link for link in self.links if link not in children)

    def text(self) -> str:
        """The document as XML."""
        return ET.tostring(self.document, encoding="unicode")

    def copy(self) -> UrdfTree:
        """A tree of its own, to be changed."""
        return UrdfTree(_copied(self.document), self.where)

    def bare(self) -> UrdfTree:
        """Links with their inertia and joints only: URDF parsers complain aloud about pictures they do not like."""
        out = UrdfTree(_without_children(self.document), self.where)
        for e in self.document:
            kept = _copied(e) if e.tag != "link" else _without_children(e)
            if e.tag == "link":
                kept.extend(_copied(c) for c in e if c.tag not in ("visual", "collision"))
            out.document.append(kept)
        return out


def _without_children(e: ET.Element) -> ET.Element:
    out = ET.Element(e.tag, e.attrib)
    out.text, out.tail = e.text, e.tail
    return out


def _copied(e: ET.Element) -> ET.Element:
    """As `copy.deepcopy`, which asks of every word in it whether it must be copied, and takes five times as long."""
    out = _without_children(e)
    out.extend([_copied(c) for c in e])
    return out


def parse_urdf(text: str, where: str) -> UrdfTree:
    """Parse and check a URDF document.

    Continuous joints become revolute ones with very wide limits, so that every joint is one angle; joints whose lower
    limit is their upper one become fixed; joints of other kinds than revolute, continuous, prismatic and fixed are
    refused.

    Raises:
        RobotError: not XML, not a robot, a joint that names a missing link, no single root, a loop, a moving link
            without mass below it, a limit that is missing or the wrong way round, a negative mass, a position or
            angles that are not three numbers.
    """
    try:
        document = ET.fromstring(_PROLOGUE.sub("", text, count=1))
    except ET.ParseError as e:
        raise RobotError(f"{where}: not a URDF, XML error: {e}") from None
    if document.tag != "robot":
        raise RobotError(f"{where}: not a URDF: the outermost element is <{document.tag}>, expected <robot>")
    if any("xacro" in e.tag for e in document.iter()):
        raise RobotError(f"{where}: a xacro file; turn it into a URDF first: xacro {where} > robot.urdf")
    tree = UrdfTree(document, where)
    _drop_floating_root(tree)
    if not tree.links:
        raise RobotError(f"{where}: the robot has no links")
    _check_topology(tree)
    for joint in tree.joints:
        _check_vectors(joint, where)
        _check_joint(joint, where)
    for link in document.findall("link"):
        _check_vectors(link, where)
        mass = link.find("inertial/mass")
        if mass is not None and not float(mass.get("value", "nan")) >= 0:
            raise RobotError(
                f"{where}: link '{link.get('name')}' has mass {mass.get('value')}; it must not be negative"
            )
    return tree


def _drop_floating_root(tree: UrdfTree) -> None:
    """Leave out a floating joint under a massless root: whether a base floats is said elsewhere."""
    floating = [j for j in tree.joints if j.get("type") == "floating"]
    for joint in floating:
        world = link_of(joint, "parent")
        others = [j for j in tree.joints if j is not joint and world in (link_of(j, "parent"), link_of(j, "child"))]
        element = next((e for e in tree.document.findall("link") if e.get("name") == world), None)
        if element is not None and not others and element.find("inertial") is None:
            tree.document.remove(joint)
            tree.document.remove(element)


def link_of(joint: ET.Element, role: str) -> str:
    """The link that a joint names as its 'parent' or 'child'; empty where it names none."""
    e = joint.find(role)
    return e.get("link", "") if e is not None else ""


def _check_topology(tree: UrdfTree) -> None:
    links, where = set(tree.links), tree.where
    for kind, names in (("link", tree.links), ("joint", [j.get("name", "") for j in tree.joints])):
        double = sorted({n for n in names if names.count(n) > 1})
        if double:
            raise RobotError(f"{where}: {kind} name '{double[0]}' is used twice")
    for j in tree.joints:
        for role in ("parent", "child"):
            if link_of(j, role) not in links:
                name, link = j.get("name"), link_of(j, role)
                raise RobotError(f"{where}: joint '{name}' names the {role} link '{link}', which does not exist")
    children = [link_of(j, "child") for j in tree.joints]
    twice = sorted({c for c in children if children.count(c) > 1})
    if twice:
        raise RobotError(f"{where}: link '{twice[0]}' has two parent joints; a URDF must be a tree")
    roots = [link for link in tree.links if link not in children]
    if len(roots) != 1:
        raise RobotError(
            f"{where}: a URDF needs exactly one root link, found {len(roots)}: {', '.join(roots) or 'none'}"
        )
    reached, parents = {roots[0]}, {link_of(j, "child"): link_of(j, "parent") for j in tree.joints}
    while grown := {c for c, p in parents.items() if p in reached} - reached:
        reached |= grown
    if lost := sorted(links - reached):
        raise RobotError(f"{where}: link '{lost[0]}' hangs in a loop of joints; a URDF must be a tree")


def _check_vectors(owner: ET.Element, where: str) -> None:
    """Each position, axis and three angles of a link or joint must be three numbers."""
    for e in owner.iter():
        for key in ("xyz", "rpy"):
            if (text := e.get(key)) is None:
                continue
            try:
                x, y, z = map(float, text.split())
                right = math.isfinite(x) and math.isfinite(y) and math.isfinite(z)
            except ValueError:
                right = False
            if not right:
                raise RobotError(
                    f"{where}: {owner.tag} '{owner.get('name')}': {key} of its <{e.tag}> must be three numbers, "
                    f"got '{text}'"
                )


def _check_joint(joint: ET.Element, where: str) -> None:
    name, kind = joint.get("name"), joint.get("type")
    if kind not in (*MOVING, "fixed"):
        raise RobotError(f"{where}: joint '{name}' is '{kind}'; use revolute, continuous, prismatic or fixed")
    if kind == "fixed":
        return
    limit = joint.find("limit")
    if kind == "continuous":
        joint.set("type", "revolute")
        if limit is None:
            limit = ET.SubElement(joint, "limit")
        limit.set("lower", str(-WIDE))
        limit.set("upper", str(WIDE))
    if limit is None:
        raise RobotError(f"{where}: joint '{name}' has no <limit>; give lower, upper, velocity and effort")
    try:
        lower, upper = float(limit.get("lower", "0")), float(limit.get("upper", "0"))
        velocity = float(limit.get("velocity", "0") or 0)
        effort = float(limit.get("effort", "0") or 0)
    except ValueError:
        raise RobotError(f"{where}: joint '{name}': a limit is not a number") from None
    if lower == upper:
        _lock(joint, lower)
        return
    if not lower < upper:
        raise RobotError(f"{where}: joint '{name}': lower limit {lower:g} is not below the upper limit {upper:g}")
    # Many URDFs leave velocity or effort at 0 to say "unknown"; a robot that may not move helps nobody.
    limit.set("velocity", str(velocity if velocity > 0 else 3.0))
    limit.set("effort", str(effort if effort > 0 else 100.0))


def _lock(joint: ET.Element, value: float) -> None:
    """Make a joint without range a fixed one, at the only value it has."""
    axis = axis_of(joint)
    move = value * axis / max(float(np.linalg.norm(axis)), 1e-12)
    slides = joint.get("type") == "prismatic"
    X = pin.SE3(np.eye(3), move) if slides else pin.SE3(pin.exp3(move), np.zeros(3))
    set_placement(joint, placement(joint.find("origin")) * X)
    joint.set("type", "fixed")
    for tag in ("limit", "mimic"):
        if (gone := joint.find(tag)) is not None:
            joint.remove(gone)


def axis_of(joint: ET.Element) -> np.ndarray:
    """The axis (3,) of a joint in its frame, as written, of any length; x where the joint names none."""
    e = joint.find("axis")
    return np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])


def placement(e: ET.Element | None) -> pin.SE3:
    """The pose in an <origin> element; identity where there is none."""
    if e is None:
        return pin.SE3.Identity()
    xyz = [float(v) for v in e.get("xyz", "0 0 0").split()]
    rpy = [float(v) for v in e.get("rpy", "0 0 0").split()]
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))


def set_placement(joint: ET.Element, X: pin.SE3) -> None:
    """Write a pose into the <origin> of a joint, which is made where it is missing."""
    e = joint.find("origin")
    if e is None:
        e = ET.SubElement(joint, "origin")
    e.set("xyz", " ".join(f"{v:.15g}" for v in X.translation))
    e.set("rpy", " ".join(f"{v:.15g}" for v in pin.rpy.matrixToRpy(X.rotation)))


# -------- Another root


def rooted_at(tree: UrdfTree, link: str) -> UrdfTree:
    """The same robot with another link as its root: every joint keeps its name, its angle and its limits.

    A joint on the path from the new root to the old one is turned round. X_parent_child(q) = X_origin Rot(axis, q), so
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
        while True:  # climb to the child of the root that the link hangs on
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


# -------- Serial chains


@dataclass(frozen=True)
class ChainJoint:
    """One moving joint of a chain.

    Attributes:
        name: of the joint.
        kind: 'revolute' or 'prismatic'.
        X: (4, 4) constant pose of the joint's frame at angle 0 in the frame behind the joint before (or in the base).
        axis: (3,) unit vector in the joint's frame.
    """

    name: str
    kind: str
    X: np.ndarray
    axis: np.ndarray


@dataclass(frozen=True)
class Chain:
    """The moving joints from a base link to a tip link.

    The pose of the tip in the base is X_1 M_1(q_1) X_2 M_2(q_2) ... X_tip, where M_i turns about (or slides along) the
    axis of joint i; fixed joints are contained in the constant X (4, 4).
    """

    base: str
    tip: str
    joints: tuple[ChainJoint, ...]
    X_tip: np.ndarray


def serial_chain(tree: UrdfTree, base: str, tip: str) -> Chain:
    """The chain between two links, wherever the tree is rooted.

    Joints on the path up from the base to a common ancestor are turned round, with the same angle for the same posture.

    Raises:
        UnknownNameError: a link that does not exist.
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
    return Chain(base, tip, tuple(joints), X)
