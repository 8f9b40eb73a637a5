"""A URDF as a tree of links, checked."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError

WIDE = 1.0e3  # [rad] stands for "no limit" on a continuous joint
BASE_LINK = "base_link"  # the massless root of the catalogue's URDFs
MOVING = ("revolute", "continuous", "prismatic")


@dataclass
class UrdfTree:
    """A parsed and checked URDF document; `where` names it in error messages."""

    document: ET.Element
    where: str

    @property
    def name(self) -> str:
        return self.document.get("name", "robot")

    @property
    def links(self) -> list[str]:
        return [e.get("name", "") for e in self.document.findall("link")]

    @property
    def joints(self) -> list[ET.Element]:
        return self.document.findall("joint")

    @property
    def root(self) -> str:
        children = {link_of(j, "child") for j in self.joints}
        return next(link for link in self.links if link not in children)

    def text(self) -> str:
        """The document as XML."""
        return ET.tostring(self.document, encoding="unicode")

    def copy(self) -> UrdfTree:
        return UrdfTree(deepcopy(self.document), self.where)

    def bare(self) -> UrdfTree:
        """Links with their inertia and joints only: URDF parsers complain aloud about pictures they do not like."""
        out = UrdfTree(_without_children(self.document), self.where)
        for e in self.document:
            kept = deepcopy(e) if e.tag != "link" else _without_children(e)
            if e.tag == "link":
                kept.extend(deepcopy(c) for c in e if c.tag not in ("visual", "collision"))
            out.document.append(kept)
        return out


def _without_children(e: ET.Element) -> ET.Element:
    out = ET.Element(e.tag, e.attrib)
    out.text, out.tail = e.text, e.tail
    return out


def parse_urdf(text: str, where: str) -> UrdfTree:
    """Parse and check a URDF document.

    Continuous joints become revolute ones with very wide limits, so that every joint is one angle; joints of other
    kinds than revolute, continuous, prismatic and fixed are refused.

    Raises:
        RobotError: not XML, not a robot, a joint that names a missing link, no single root, a loop, a moving link
            without mass below it, a limit that is missing or the wrong way round, a negative mass.
    """
    try:
        document = ET.fromstring(text)
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
        _check_joint(joint, where)
    for link in document.findall("link"):
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
    if not lower < upper:
        raise RobotError(f"{where}: joint '{name}': lower limit {lower:g} is not below the upper limit {upper:g}")
    # Many URDFs leave velocity or effort at 0 to say "unknown"; a robot that may not move helps nobody.
    limit.set("velocity", str(velocity if velocity > 0 else 3.0))
    limit.set("effort", str(effort if effort > 0 else 100.0))


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
