"""URDF as a checked tree of links, from XML alone."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pinocchio as pin

from humanoid_control.documents import parse_xml
from humanoid_control.errors import RobotError, first_few, nearest_names, shown
from humanoid_control.files import FARTHEST
from humanoid_control.robots.description.inertias import complete_inertia, impossible_note
from humanoid_control.robots.description.oddities import EFFORT, MOVING, SPEED, UNLIMITED, oddities

WIDE = 1.0e9  # [rad] larger limits count as endless, and are written so for other programs
TURNED = 1.0e3  # [rad] of a placement: larger is not an angle
MOST = 1.0e9  # of masses, inertias, speeds and efforts, in SI units
NOT_UNIT = 1e-3  # tolerance of a quaternion's length
MOST_JOINTS = 1000  # pinocchio's memory grows with their square
NO_RANGE = 1e-12  # [rad] placeholder range of a follower, replaced by its leader's
BASE_LINK = "base_link"  # the massless root of the catalogue's URDFs
# XML allows nothing before <?xml ...?>; many files have a byte-order mark, blanks or comments.
_PROLOGUE = re.compile(r"\A\ufeff?(?:\s|<!--.*?-->)*(?=<\?xml)", re.DOTALL)


@dataclass
class UrdfTree:
    """Checked URDF document.

    Attributes:
        where: name in messages.
        unknown_efforts: joints with a default effort limit.
        notes: lost or wrong parts of the file.
    """

    document: ET.Element
    where: str
    unknown_efforts: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.document.get("name", "robot")

    @property
    def links(self) -> list[str]:
        """Names of the links, in file order."""
        return [e.get("name", "") for e in self.document.findall("link")]

    @property
    def joints(self) -> list[ET.Element]:
        """Joint elements, in file order."""
        return self.document.findall("joint")

    @property
    def root(self) -> str:
        """Name of the root link."""
        children = {link_of(j, "child") for j in self.joints}
        return next(link for link in self.links if link not in children)

    def text(self) -> str:
        """Return the document as XML, endless joints as continuous ones."""
        return _finite_text(self.document, "continuous")

    def model(self, root: pin.JointModel | None = None) -> pin.Model:
        """Build pinocchio's model with root joint `root`; an endless joint is one angle with infinite limits.

        Raises:
            ValueError: if pinocchio rejects the document.
            RuntimeError: if pinocchio rejects the document.
        """
        text = _finite_text(self.bare().document, "revolute")
        model = pin.buildModelFromXML(text) if root is None else pin.buildModelFromXML(text, root)
        for limits in (model.lowerPositionLimit, model.upperPositionLimit):
            turning = np.abs(limits) >= WIDE
            if root is not None:
                turning[: root.nq] = False
            limits[turning] = np.copysign(np.inf, limits[turning])
        return model

    def copy(self) -> UrdfTree:
        """Return an independent copy."""
        return UrdfTree(copied(self.document), self.where, self.unknown_efforts, self.notes)

    def bare(self) -> UrdfTree:
        """Return links with inertia and joints only, since parsers warn about visuals."""
        out = UrdfTree(_without_children(self.document), self.where, self.unknown_efforts, self.notes)
        for e in self.document:
            if e.tag not in ("link", "joint"):
                continue
            kept = copied(e) if e.tag != "link" else _without_children(e)
            if e.tag == "link":
                kept.extend(copied(c) for c in e if c.tag not in ("visual", "collision"))
            out.document.append(kept)
        return out


def _finite_text(document: ET.Element, endless: str) -> str:
    """Return XML with infinite limits in a form that other programs read; endless joints get type `endless`."""

    def ends(joint: ET.Element) -> list[float]:
        limit = joint.find("limit")
        return [] if limit is None else [float(limit.get(key, "0") or 0) for key in ("lower", "upper")]

    if np.isfinite([end for joint in document.findall("joint") for end in ends(joint)]).all():
        return ET.tostring(document, encoding="unicode")
    document = copied(document)
    for joint in document.findall("joint"):
        for limit in joint.findall("limit"):
            if endless == "continuous" and np.isinf(ends(joint)).all():
                joint.set("type", endless)
                del limit.attrib["lower"], limit.attrib["upper"]
                continue
            for key in ("lower", "upper"):
                limit.set(key, repr(min(max(float(limit.get(key, "0") or 0), -WIDE), WIDE)))
    return ET.tostring(document, encoding="unicode")


def _without_children(e: ET.Element) -> ET.Element:
    out = ET.Element(e.tag, e.attrib)
    out.text, out.tail = e.text, e.tail
    return out


def copied(e: ET.Element) -> ET.Element:
    """Return a deep copy, five times faster than `copy.deepcopy`."""
    out = _without_children(e)
    out.extend([copied(c) for c in e])
    return out


def parse_urdf(text: str, where: str) -> UrdfTree:
    """Parse and check a URDF document.

    Continuous joints become revolute with infinite limits; joints with equal limits become fixed.

    Raises:
        RobotError: if XML, tree, joint types, limits, masses or numbers are invalid.
    """
    document = parse_xml(_PROLOGUE.sub("", text, count=1), where, "a URDF")
    if document.tag != "robot":
        raise RobotError(f"{where}: not a URDF: the outermost element is <{shown(document.tag)}>, expected <robot>")
    if any("xacro" in e.tag for e in document.iter()):
        raise RobotError(f"{where}: a xacro file; turn it into a URDF first: xacro {where} > robot.urdf")
    tree = UrdfTree(document, where)
    dropped = _drop_floating_root(tree)
    if not tree.links:
        raise RobotError(f"{where}: the robot has no links")
    if len(tree.joints) > MOST_JOINTS:
        raise RobotError(f"{where}: the robot has {len(tree.joints)} joints; the maximum is {MOST_JOINTS}")
    if not document.get("name", "").strip():
        document.set("name", "robot")  # pinocchio needs one
    _check_topology(tree)
    for owner in (*tree.joints, *document.findall("link")):
        place = f"{where}: {owner.tag} '{shown(owner.get('name'))}'"
        check_numbers(owner, place)
        _turn_quaternions(owner, place)
    tree.unknown_efforts = frozenset(j.get("name", "") for j in tree.joints if _lacks_effort(j))
    tree.notes = oddities(document, where)
    names = {j.get("name", "") for j in tree.joints}
    for joint in tree.joints:
        mimic = joint.find("mimic")
        _check_joint(joint, where, mimic is not None and mimic.get("joint", "") in names)
    for link in document.findall("link"):
        complete_inertia(link)
    tree.notes = (*dropped, *tree.notes, *_keep_mimics_inside(tree), *impossible_note(document.findall("link"), where))
    return tree


def _drop_floating_root(tree: UrdfTree) -> tuple[str, ...]:
    """Remove a floating joint under a massless root, and massless links fixed to that root."""
    notes: tuple[str, ...] = ()
    floating = [j for j in tree.joints if j.get("type") == "floating"]
    for joint in floating:
        world = link_of(joint, "parent")
        others = [j for j in tree.joints if j is not joint and world in (link_of(j, "parent"), link_of(j, "child"))]
        links = {e.get("name"): e for e in tree.document.findall("link")}
        element = links.get(world)
        beside = [links.get(link_of(j, "child")) for j in others]
        leaves = all(
            j.get("type") == "fixed"
            and link_of(j, "parent") == world
            and e is not None
            and e.find("inertial") is None
            and not any(link_of(k, "parent") == link_of(j, "child") for k in tree.joints)
            for j, e in zip(others, beside, strict=True)
        )
        if element is not None and element.find("inertial") is None and others and leaves:
            for part in (*others, *(e for e in beside if e is not None)):
                tree.document.remove(part)
            names = first_few(shown(e.get("name")) for e in beside if e is not None)
            notes = (f"{tree.where}: links fixed to '{shown(world)}' are not parts of the robot; ignored: {names}",)
            others = []
        if element is not None and not others and element.find("inertial") is None:
            tree.document.remove(joint)
            tree.document.remove(element)
    return notes


def link_of(joint: ET.Element, role: str) -> str:
    """Return the 'parent' or 'child' link of a joint, or an empty string."""
    e = joint.find(role)
    return e.get("link", "") if e is not None else ""


def _check_topology(tree: UrdfTree) -> None:
    names, where = tree.links, tree.where
    links = set(names)
    for kind, given in (("link", names), ("joint", [j.get("name", "") for j in tree.joints])):
        if double := sorted(n for n, times in Counter(given).items() if times > 1):
            raise RobotError(f"{where}: {kind} name '{shown(double[0])}' is used twice")
        if not all(n.strip() for n in given):
            raise RobotError(f"{where}: a {kind} has no name")
        if odd := next((n for n in given if not n.isprintable()), None):
            raise RobotError(
                f"{where}: the {kind} name '{shown(odd)}' contains a line break or another control character"
            )
    for j in tree.joints:
        for role in ("parent", "child"):
            if link_of(j, role) not in links:
                name, link = shown(j.get("name")), shown(link_of(j, role))
                raise RobotError(f"{where}: joint '{name}' names the {role} link '{link}', which does not exist")
    children = [link_of(j, "child") for j in tree.joints]
    if twice := sorted(c for c, times in Counter(children).items() if times > 1):
        raise RobotError(f"{where}: link '{shown(twice[0])}' has two parent joints; a URDF must be a tree")
    held = set(children)
    roots = [link for link in names if link not in held]
    if len(roots) != 1:
        raise RobotError(
            f"{where}: a URDF needs exactly one root link, found {len(roots)}: {first_few(roots) or 'none'}"
        )
    below: dict[str, list[str]] = {}
    for j in tree.joints:
        below.setdefault(link_of(j, "parent"), []).append(link_of(j, "child"))
    reached, waiting = set(roots), roots
    while waiting:
        waiting = [c for link in waiting for c in below.get(link, ())]
        reached |= set(waiting)
    if lost := sorted(links - reached):
        raise RobotError(f"{where}: link '{shown(lost[0])}' is part of a loop of joints; a URDF must be a tree")


# -------- Numbers of links and joints


@dataclass(frozen=True)
class _Numbers:
    """Requirement of an attribute: `count` numbers from `least` to `most`."""

    count: int = 1
    least: float = -math.inf
    most: float = math.inf

    def fault(self, text: str) -> str:
        try:
            if not text.isascii() or "_" in text:  # valid in Python, not for other URDF readers
                raise ValueError
            values = [float(v) for v in text.split()]
        except ValueError:
            values = [math.nan]
        if len(values) != self.count or any(math.isnan(v) for v in values):
            return "is not a number" if self.count == 1 else f"must be {_COUNTS[self.count]} numbers"
        if min(values) < self.least:
            return "must not be negative" if self.least == 0 else f"must be at least {self.least:g}"
        return f"must be at most {self.most:g}" if max(values) > self.most else ""


_COUNTS = {3: "three", 4: "four"}
_PLACE, _ANGLES = _Numbers(3, -FARTHEST, FARTHEST), _Numbers(3, -TURNED, TURNED)
_SIZE, _ANY, _NOT_NEGATIVE = _Numbers(1, 0.0, FARTHEST), _Numbers(1, -MOST, MOST), _Numbers(1, 0.0)
_NUMBERS: dict[str, dict[str, _Numbers]] = {  # by element
    "origin": {"xyz": _PLACE, "rpy": _ANGLES, "quat_xyzw": _Numbers(4, -1.001, 1.001)},
    "axis": {"xyz": _PLACE},
    "mass": {"value": _Numbers(1, 0.0, MOST)},
    "inertia": dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), _ANY),
    "limit": {
        "lower": _Numbers(),
        "upper": _Numbers(),
        "velocity": _NOT_NEGATIVE,
        "effort": _NOT_NEGATIVE,
        **dict.fromkeys(("acceleration", "deceleration"), _NOT_NEGATIVE),  # of URDF 1.2
    },
    "mimic": {"multiplier": _ANY, "offset": _ANY},
    "dynamics": dict.fromkeys(("damping", "friction"), _Numbers(1, 0.0, MOST)),
    "box": {"size": _Numbers(3, 0.0, FARTHEST)},
    "sphere": {"radius": _SIZE},
    "cylinder": {"radius": _SIZE, "length": _SIZE},
    "capsule": {"radius": _SIZE, "length": _SIZE},
    "mesh": {"scale": _PLACE},
}


def check_numbers(owner: ET.Element, place: str) -> None:
    """Check all numbers of a link or joint.

    Raises:
        RobotError: if a count is wrong, or if a number is NaN or out of range.
    """
    for e in owner.iter():
        for key, wanted in _NUMBERS.get(e.tag, {}).items():
            text = e.get(key)
            if text is None or (e.tag == "limit" and not text.strip()):
                continue
            if fault := wanted.fault(text):
                said = f" has mass {shown(text)}; it" if e.tag == "mass" else f": {key} of its <{e.tag}>"
                raise RobotError(f"{place}{said} {fault}, got '{shown(text)}'")


def _turn_quaternions(owner: ET.Element, place: str) -> None:
    """Convert quaternions of URDF 1.2 to roll, pitch, yaw."""
    for e in owner.iter("origin"):
        if (text := e.attrib.pop("quat_xyzw", None)) is None:
            continue
        q = np.array([float(v) for v in text.split()])
        if e.get("rpy") is not None:
            raise RobotError(f"{place}: its <origin> has rpy and quat_xyzw: give one of them")
        if not abs(float(np.linalg.norm(q)) - 1) < NOT_UNIT:
            raise RobotError(f"{place}: quat_xyzw of its <origin> must have length 1, got '{shown(text)}'")
        set_angles(e, pin.Quaternion(q / np.linalg.norm(q)).toRotationMatrix())


def _keep_mimics_inside(tree: UrdfTree) -> tuple[str, ...]:
    """Narrow leaders so that followers stay in range; if impossible, ignore the follower's range with a note."""
    freed = dict[str, None]()
    joints = {j.get("name", ""): j for j in tree.joints}
    mimics = {name: m for name, j in joints.items() if (m := j.find("mimic")) is not None}
    for name in mimics:
        chain = [name]
        while (m := mimics.get(chain[-1])) is not None and (leader := m.get("joint", "")) in joints:
            if leader in chain:
                raise RobotError(f"{tree.where}: joint '{shown(name)}' mimics itself through '{shown(leader)}'")
            chain.append(leader)
        for follower, leader in pairwise(chain):
            if not _narrow(joints[leader], joints[follower], mimics[follower]):
                freed[shown(follower)] = None
    if not freed:
        return ()
    them = f"{len(freed)} mimic joint(s) that their leaders move beyond their ranges ({first_few(list(freed))})"
    return (f"{tree.where}: {them}: the ranges of the leaders apply",)


def _narrow(leader: ET.Element, follower: ET.Element, mimic: ET.Element) -> bool:
    """Narrow a leader's range to its follower's; return False if nothing remains, and widen the follower's."""
    limits, own = leader.find("limit"), follower.find("limit")
    multiplier, offset = float(mimic.get("multiplier", "1")), float(mimic.get("offset", "0"))
    if limits is None or own is None or "fixed" in (leader.get("type"), follower.get("type")):
        return True
    least, most = (float(own.get(k, "0")) for k in ("lower", "upper"))
    low, high = whole = tuple(float(limits.get(k, "0")) for k in ("lower", "upper"))
    if abs(multiplier) > 1e-9:
        ends = ((least - offset) / multiplier, (most - offset) / multiplier)
        low, high = max(min(ends), low), min(max(ends), high)
    inside = multiplier * low + offset if abs(multiplier) > 1e-9 else offset
    if not (low < high and least <= inside <= most):
        reach = whole if abs(multiplier) > 1e-9 else (0.0, 0.0)  # 0 times infinity is NaN
        ends = multiplier * reach[0] + offset, multiplier * reach[1] + offset
        own.set("lower", repr(min(ends)))
        own.set("upper", repr(max(ends)))
        return False
    limits.set("lower", repr(low))
    limits.set("upper", repr(high))
    return True


def _lacks_effort(joint: ET.Element) -> bool:
    limit = joint.find("limit")
    return limit is None or not 0 < float(limit.get("effort", "0") or 0) < math.inf


def _check_joint(joint: ET.Element, where: str, follows: bool = False) -> None:
    name, kind = shown(joint.get("name")), joint.get("type")
    if kind in ("floating", "planar"):
        raise RobotError(
            f"{where}: joint '{name}' is '{kind}', which moves the robot's base: remove it and its parent link; the "
            "robot file states whether the base floats"
        )
    if kind not in (*MOVING, "fixed"):
        what = "has no type" if kind is None else f"is '{shown(kind)}'"
        near = nearest_names(kind or "", (*MOVING, "fixed"), 1)
        advice = f"did you mean {near[0]}?" if near else "use revolute, continuous, prismatic or fixed"
        raise RobotError(f"{where}: joint '{name}' {what}; {advice}")
    if kind == "fixed":
        return
    if not float(np.linalg.norm(axis_of(joint))) > 1e-9:
        raise RobotError(f"{where}: joint '{name}': its axis must not be zero")
    if (axis := joint.find("axis")) is not None and axis.get("xyz") is None:
        axis.set("xyz", "1 0 0")
    limit = joint.find("limit")
    if kind == "continuous":
        joint.set("type", "revolute")
        if limit is None:
            limit = ET.SubElement(joint, "limit")
        limit.set("lower", str(-math.inf))
        limit.set("upper", str(math.inf))
    elif kind == "revolute" and limit is not None and not limit.get("lower") and not limit.get("upper"):
        limit.set("lower", str(-math.pi))
        limit.set("upper", str(math.pi))
    if follows and (limit is None or not float(limit.get("lower", "0") or 0) < float(limit.get("upper", "0") or 0)):
        limit = ET.SubElement(joint, "limit") if limit is None else limit  # its leader sets the range
        limit.set("lower", "0")
        limit.set("upper", str(NO_RANGE))
    if limit is None:
        raise RobotError(f"{where}: joint '{name}' has no <limit>; give lower, upper, velocity and effort")
    lower, upper, velocity, effort = (
        float(limit.get(key, "0") or 0) for key in ("lower", "upper", "velocity", "effort")
    )
    if lower == upper:
        _lock(joint, lower)
        return
    if not lower < upper:
        raise RobotError(f"{where}: joint '{name}': lower limit {lower:g} is not below the upper limit {upper:g}")
    if kind == "prismatic":
        lower, upper = max(lower, -FARTHEST), min(upper, FARTHEST)
    limit.set("lower", str(lower if lower > -WIDE else -math.inf))
    limit.set("upper", str(upper if upper < WIDE else math.inf))
    # Many URDFs write 0 for an unknown velocity or effort; such a robot could not move.
    limit.set("velocity", str(velocity if 0 < velocity < UNLIMITED else SPEED))
    limit.set("effort", str(min(effort, MOST) if 0 < effort < math.inf else EFFORT))


def _lock(joint: ET.Element, value: float) -> None:
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
    """Return the axis (3,) of a joint in its frame, not normalised; default x."""
    e = joint.find("axis")
    return np.array([float(v) for v in (e.get("xyz", "1 0 0") if e is not None else "1 0 0").split()])


def placement(e: ET.Element | None) -> pin.SE3:
    """Return the pose of an <origin>; default identity."""
    if e is None:
        return pin.SE3.Identity()
    xyz = [float(v) for v in e.get("xyz", "0 0 0").split()]
    rpy = [float(v) for v in e.get("rpy", "0 0 0").split()]
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))


def set_placement(joint: ET.Element, X: pin.SE3) -> None:
    """Write a pose into the <origin> of a joint."""
    e = joint.find("origin")
    if e is None:
        e = ET.SubElement(joint, "origin")
    e.set("xyz", " ".join(f"{v:.15g}" for v in X.translation))
    set_angles(e, X.rotation)


def set_angles(origin: ET.Element, R: np.ndarray) -> None:
    """Write a rotation (3, 3) into an <origin>."""
    origin.set("rpy", " ".join(f"{v:.15g}" for v in pin.rpy.matrixToRpy(R)))
