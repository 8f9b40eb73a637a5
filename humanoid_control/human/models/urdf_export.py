"""Export of a person as a URDF.

A three-axis joint becomes three joints with massless links. Joints that share a coordinate mimic one joint. A knee with
sliding shank becomes a hinge about its mean axis: with rotation R(q) and translation t(q), points a (parent) and b
(child) minimise sum |t(q) + R(q) b - a|^2.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass

import numpy as np

from humanoid_control.errors import RobotError
from humanoid_control.human.elements import GROUND, AnatomicalJoint, Coordinate, CoordinateAxis, OffsetFrame, PersonBody
from humanoid_control.human.functions import Function
from humanoid_control.human.model import Person

BASE = "base_link"
EFFORT, SPEED = 1000.0, 50.0  # [N m or N], [rad/s or m/s]: placeholders, a person's model has no limits
UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # y up -> z up
SAMPLES = 41


@dataclass(frozen=True, eq=False)
class UrdfExport:
    """URDF text, and a sentence for each deviation."""

    text: str
    notes: tuple[str, ...]


def urdf_of(person: Person) -> UrdfExport:
    """Return the URDF; its root `base_link` (z up) on the first body is free.

    Raises:
        RobotError: if a nonlinear joint has several coordinates, or a coupling is nonlinear.
    """
    robot, notes = ET.Element("robot", name=person.name.strip().replace(" ", "_") or "person"), list[str]()
    up = person.gravity / -np.linalg.norm(person.gravity)
    X = OffsetFrame(UP if up[1] > 0.9 else np.eye(3))
    _link(robot, BASE, None)
    known, taken = {c.name: c for c in person.all_coordinates}, set[str]()
    follows = {c.dependent: c for c in person.couplings}
    bodies = {b.name: b for b in person.bodies}
    for joint in person.joints:
        if joint.parent == GROUND:
            _link(robot, joint.child, bodies[joint.child])
            _fixed(robot, BASE, joint.child, X)
            names = sorted({a.coordinate for a in (*joint.rotations, *joint.translations) if a.coordinate})
            if names:
                notes.append(f"{', '.join(names)} are the floating base's: not in the URDF")
            continue
        if not all(a.function.linear for a in (*joint.rotations, *joint.translations)):
            joint, worst = mean_hinge(joint, known)
            turned, slid = worst
            notes.append(
                f"{joint.name}: a hinge at its mean axis, up to {1e3 * slid:.1f} mm and "
                f"{np.rad2deg(turned):.1f} deg off"
            )
        _chain(robot, joint, bodies[joint.child], known, (taken, follows))
    ET.indent(robot, "  ")
    return UrdfExport('<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode") + "\n", tuple(notes))


# -------- Mean hinges


def mean_hinge(joint: AnatomicalJoint, known: dict[str, Coordinate]) -> tuple[AnatomicalJoint, tuple[float, float]]:
    """Return the nearest hinge of a one-coordinate joint, and its deviation [rad, m].

    Raises:
        RobotError: without a single coordinate with range and rotation.
    """
    names = {a.coordinate for a in (*joint.rotations, *joint.translations) if a.coordinate}
    if len(names) != 1:
        raise RobotError(
            f"joint '{joint.name}' moves with {len(names)} coordinates and is not straight: no hinge approximates it"
        )
    (name,) = names
    c = known[name]
    # Splines continue as straight lines beyond their points: the range ends there.
    points = [a.function.x for a in (*joint.rotations, *joint.translations) if a.function.x]
    lower, upper = max([c.lower, *(x[0] for x in points)]), min([c.upper, *(x[-1] for x in points)])
    if not (np.isfinite([lower, upper]).all() and c.rotational and lower < upper):
        raise RobotError(f"joint '{joint.name}': '{name}' is not an angle with a range: no hinge can be found")
    q = np.linspace(lower, upper, SAMPLES)
    R, t = _moved(joint, q)
    middle = SAMPLES // 2
    turns = np.array([_rotation_vector(R[middle].T @ r) for r in R])
    axis = np.linalg.svd(turns)[2][0]
    angle = turns @ axis
    slope = float(((q - q[middle]) @ angle) / ((q - q[middle]) @ (q - q[middle])))
    if abs(slope) < 1e-6:
        raise RobotError(f"joint '{joint.name}' hardly turns: no hinge approximates it")
    axis, slope = axis * np.sign(slope), round(abs(slope), 9)
    hinge = np.array([R[middle] @ _rotation(axis, slope * (u - q[middle])) for u in q])
    A = np.concatenate([np.hstack([np.eye(3), -h]) for h in hinge])
    a, b = np.linalg.lstsq(A, t.ravel(), rcond=None)[0].reshape(2, 3)
    slid = float(np.linalg.norm(t + hinge @ b - a, axis=1).max())
    turned = max(float(np.linalg.norm(_rotation_vector(h.T @ r))) for h, r in zip(hinge, R, strict=True))
    start = R[middle] @ _rotation(axis, -slope * q[middle])  # at coordinate 0
    P = joint.P @ OffsetFrame(start, a)
    C = joint.C @ OffsetFrame(p=b)  # child frame relative to the hinge
    turn = CoordinateAxis(axis, Function((0.0, slope)), name)
    return AnatomicalJoint(joint.name, joint.parent, joint.child, P, C, (turn,)), (turned, slid)


def _moved(joint: AnatomicalJoint, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return joint rotations (n, 3, 3) and translations (n, 3)."""
    R, t = np.tile(np.eye(3), (len(q), 1, 1)), np.zeros((len(q), 3))
    for a in joint.translations:
        t += np.outer(a.function(q), a.vector / np.linalg.norm(a.vector))
    for a in joint.rotations:
        R = R @ np.array([_rotation(a.vector / np.linalg.norm(a.vector), v) for v in a.function(q)])
    return R, t


def _rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    K = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def _rotation_vector(R: np.ndarray) -> np.ndarray:
    """Return axis times angle, below half a turn."""
    v = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    s, c = np.linalg.norm(v) / 2, (np.trace(R) - 1) / 2
    return np.asarray(v / 2 if s < 1e-12 else v / (2 * s) * np.arctan2(s, c))


# -------- Elements


def _text(values: np.ndarray) -> str:
    return " ".join(repr(float(v)) for v in values)


def _link(robot: ET.Element, name: str, body: PersonBody | None) -> None:
    link = ET.SubElement(robot, "link", name=name)
    if body is None or body.mass == 0.0:
        return
    inertial = ET.SubElement(link, "inertial")
    ET.SubElement(inertial, "origin", xyz=_text(body.com), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=repr(float(body.mass)))
    i = body.inertia
    values = {"ixx": i[0, 0], "ixy": i[0, 1], "ixz": i[0, 2], "iyy": i[1, 1], "iyz": i[1, 2], "izz": i[2, 2]}
    ET.SubElement(inertial, "inertia", {k: repr(float(v)) for k, v in values.items()})


def _joint_element(robot: ET.Element, kind: str, name: str, parent: str, child: str) -> ET.Element:
    joint = ET.SubElement(robot, "joint", name=name, type=kind)
    ET.SubElement(joint, "parent", link=parent)
    ET.SubElement(joint, "child", link=child)
    return joint


def _origin(joint: ET.Element, X: OffsetFrame) -> None:
    R = X.R
    pitch = float(np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0])))
    yaw = float(np.arctan2(R[1, 0], R[0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)  # roll from the rest after yaw, valid also at a pitch of 90 deg
    roll = float(np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1]))
    ET.SubElement(joint, "origin", xyz=_text(X.p), rpy=_text(np.array([roll, pitch, yaw])))


def _fixed(robot: ET.Element, parent: str, child: str, X: OffsetFrame) -> None:
    _origin(_joint_element(robot, "fixed", f"{child}_fixed", parent, child), X)


def _chain(
    robot: ET.Element,
    joint: AnatomicalJoint,
    body: PersonBody,
    known: dict[str, Coordinate],
    state: tuple[set[str], dict],
) -> None:
    """Add one-axis links: translations along parent axes, then rotations."""
    taken, follows = state
    parent, X, count = joint.parent, joint.P, 0
    for axis, kind in [*((a, "prismatic") for a in joint.translations), *((a, "revolute") for a in joint.rotations)]:
        unit = axis.vector / np.linalg.norm(axis.vector)
        offset = axis.function.gain * axis.function.coefficients[0]
        slope = axis.function.gain * axis.function.coefficients[1] if len(axis.function.coefficients) > 1 else 0.0
        still = OffsetFrame(p=offset * unit) if kind == "prismatic" else OffsetFrame(_rotation(unit, offset))
        if slope == 0.0 or not axis.coordinate:
            X = X @ still
            continue
        count += 1
        child = f"{joint.child}_axis{count}"
        _link(robot, child, None)
        first = axis.coordinate not in taken and axis.coordinate not in follows and abs(slope) == 1.0
        name = axis.coordinate if first else f"{axis.coordinate}_of_{joint.child}"
        element = _joint_element(robot, kind, name, parent, child)
        _origin(element, X @ still)
        direction = unit * np.sign(slope) if first else unit
        ET.SubElement(element, "axis", xyz=_text(direction))
        leader, factor, shift = axis.coordinate, slope, 0.0
        if axis.coordinate in follows:
            coupling = follows[axis.coordinate]
            f = coupling.function
            if not f.linear:
                raise RobotError(
                    f"'{axis.coordinate}' follows '{coupling.independent}' nonlinearly: a URDF supports only linear "
                    "mimic joints"
                )
            line = [*f.coefficients, 0.0][:2]
            leader, factor, shift = coupling.independent, slope * f.gain * line[1], slope * f.gain * line[0]
        c = known[leader]
        ends = (c.lower, c.upper) if first else sorted((factor * c.lower + shift, factor * c.upper + shift))
        _limits(element, *ends)
        if first:
            taken.add(axis.coordinate)
        else:
            _mimic(robot, element, leader, (factor, shift), (known, taken))
        parent, X = child, OffsetFrame()
    _link(robot, joint.child, body)
    _fixed(robot, parent, joint.child, X @ joint.C.inverse())


def _limits(element: ET.Element, lower: float, upper: float) -> None:
    lower, upper = (float(np.clip(np.nan_to_num(v, posinf=100, neginf=-100), -100, 100)) for v in (lower, upper))
    ET.SubElement(element, "limit", lower=repr(lower), upper=repr(upper), effort=repr(EFFORT), velocity=repr(SPEED))


def _mimic(
    robot: ET.Element,
    element: ET.Element,
    leader: str,
    line: tuple[float, float],
    state: tuple[dict[str, Coordinate], set[str]],
) -> None:
    """Mimic the coordinate's joint, created if needed."""
    known, taken = state
    if leader not in taken:
        taken.add(leader)
        c, link = known[leader], f"{leader}_value"
        _link(robot, link, None)
        own = _joint_element(robot, "revolute" if c.rotational else "prismatic", leader, BASE, link)
        _origin(own, OffsetFrame())
        ET.SubElement(own, "axis", xyz="0 0 1")
        _limits(own, c.lower, c.upper)
    ET.SubElement(element, "mimic", joint=leader, multiplier=repr(float(line[0])), offset=repr(float(line[1])))
