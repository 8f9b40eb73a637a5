"""Export of a person as an OpenSim model (.osim, version 40000), with full precision.

In OpenSim a coordinate belongs to one joint: further joints get coupled coordinates.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from humanoid_control.human.elements import GROUND, AnatomicalJoint, Coordinate, CoordinateAxis, Coupling, OffsetFrame
from humanoid_control.human.functions import Function
from humanoid_control.human.model import Person

VERSION = "40000"
IDENTITY = Function((0.0, 1.0))


def osim_text(person: Person) -> str:
    """Return the text of the model file."""
    document = ET.Element("OpenSimDocument", Version=VERSION)
    model = ET.SubElement(document, "Model", name=_name(person.name))
    ET.SubElement(model, "Ground", name=GROUND)
    _numbers(model, "gravity", person.gravity)
    bodies = _set(model, "BodySet")
    for b in person.bodies:
        element = ET.SubElement(bodies, "Body", name=b.name)
        _numbers(element, "mass", [b.mass])
        _numbers(element, "mass_center", b.com)
        i = b.inertia
        _numbers(element, "inertia", [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]])
    joints, followers = _set(model, "JointSet"), list[Coupling]()
    taken: set[str] = set()
    known = {c.name: c for c in person.all_coordinates}
    for j in person.joints:
        followers += _joint(joints, j, known, taken)
    constraints = _set(model, "ConstraintSet")
    for coupling in (*person.couplings, *followers):
        _coupling(constraints, coupling)
    markers = _set(model, "MarkerSet")
    for m in person.markers:
        element = ET.SubElement(markers, "Marker", name=_name(m.name))
        ET.SubElement(element, "socket_parent_frame").text = f"/bodyset/{m.body}"
        _numbers(element, "location", m.place)
        ET.SubElement(element, "fixed").text = str(m.anatomical).lower()
    ET.indent(document, "\t")
    return '<?xml version="1.0" encoding="UTF-8" ?>\n' + ET.tostring(document, encoding="unicode") + "\n"


def rotation_angles(R: np.ndarray) -> np.ndarray:
    """Return three body-fixed angles [rad] with R = R_x R_y R_z."""
    y = float(np.arctan2(R[0, 2], np.hypot(R[0, 0], R[0, 1])))
    x = float(np.arctan2(-R[1, 2], R[2, 2]))
    # z from the rest after x, valid also at gimbal lock
    c, s = np.cos(x), np.sin(x)
    z = float(np.arctan2(c * R[1, 0] + s * R[2, 0], c * R[1, 1] + s * R[2, 1]))
    return np.array([x, y, z])


# -------- Elements


def _name(name: str) -> str:
    """Return a valid OpenSim component name."""
    return name.strip().replace(" ", "_").replace("/", "_") or "unnamed"


def _set(model: ET.Element, kind: str) -> ET.Element:
    return ET.SubElement(ET.SubElement(model, kind, name=kind.lower()), "objects")


def _numbers(parent: ET.Element, key: str, values: object) -> None:
    flat = np.atleast_1d(np.asarray(values, dtype=float)).ravel()
    ET.SubElement(parent, key).text = " ".join(repr(float(v)) for v in flat)


def _joint(parent: ET.Element, joint: AnatomicalJoint, known: dict[str, Coordinate], taken: set[str]) -> list[Coupling]:
    """Write a joint; return couplings to coordinates of earlier joints."""
    axes = (*joint.rotations, *joint.translations)
    kind = "CustomJoint" if axes else "WeldJoint"
    element = ET.SubElement(parent, kind, name=joint.name)
    for which, body in (("parent", joint.parent), ("child", joint.child)):
        ET.SubElement(element, f"socket_{which}_frame").text = f"{body}_of_{joint.name}"
    own: dict[str, str] = {}
    followers = []
    if axes:
        coordinates = ET.SubElement(element, "coordinates")
        for name in dict.fromkeys(a.coordinate for a in axes if a.coordinate):
            own[name] = name if name not in taken else f"{name}_{joint.child}"
            if name in taken:
                followers.append(Coupling(own[name], name, IDENTITY))
            taken.add(name)
            _coordinate(coordinates, own[name], known[name])
    frames = ET.SubElement(element, "frames")
    for body, frame in ((joint.parent, joint.P), (joint.child, joint.C)):
        _frame(frames, f"{body}_of_{joint.name}", body, frame)
    if axes:
        transform = ET.SubElement(element, "SpatialTransform")
        for kind, rows in (("rotation", joint.rotations), ("translation", joint.translations)):
            for k, axis in enumerate(_three(rows), 1):
                _axis(transform, f"{kind}{k}", axis, own)
    return followers


def _coordinate(parent: ET.Element, name: str, c: Coordinate) -> None:
    element = ET.SubElement(parent, "Coordinate", name=name)
    _numbers(element, "default_value", [c.default])
    if np.isfinite([c.lower, c.upper]).all():
        _numbers(element, "range", [c.lower, c.upper])
    ET.SubElement(element, "clamped").text = str(c.clamped).lower()
    ET.SubElement(element, "locked").text = str(c.locked).lower()


def _frame(parent: ET.Element, name: str, body: str, frame: OffsetFrame) -> None:
    element = ET.SubElement(parent, "PhysicalOffsetFrame", name=name)
    ET.SubElement(element, "socket_parent").text = "/ground" if body == GROUND else f"/bodyset/{body}"
    _numbers(element, "translation", frame.p)
    _numbers(element, "orientation", rotation_angles(frame.R))


def _three(axes: tuple[CoordinateAxis, ...]) -> list[CoordinateAxis]:
    """Return three independent axes, constant ones added."""
    out = list(axes)
    for unit in np.eye(3):
        have = np.array([a.vector for a in out]).reshape(-1, 3)
        if len(out) < 3 and np.linalg.matrix_rank(np.vstack([have, unit]), tol=1e-3) > np.linalg.matrix_rank(
            have, tol=1e-3
        ):
            out.append(CoordinateAxis(unit, Function((0.0,))))
    while len(out) < 3:  # parallel axes: no unit vector raises the rank any more
        out.append(CoordinateAxis(np.eye(3)[len(out)], Function((0.0,))))
    return out


def _axis(parent: ET.Element, name: str, axis: CoordinateAxis, own: dict[str, str]) -> None:
    element = ET.SubElement(parent, "TransformAxis", name=name)
    ET.SubElement(element, "coordinates").text = own.get(axis.coordinate, "")
    _numbers(element, "axis", axis.vector)
    _function(element, axis.function, "function")


def _function(parent: ET.Element, f: Function, name: str) -> None:
    if f.x:
        element = ET.SubElement(parent, "SimmSpline", name=name)
        _numbers(element, "x", f.x)
        _numbers(element, "y", f.gain * np.array(f.y))
    elif f.constant:
        _numbers(ET.SubElement(parent, "Constant", name=name), "value", [f.gain * f.coefficients[0]])
    elif f.linear:
        element = ET.SubElement(parent, "LinearFunction", name=name)
        _numbers(element, "coefficients", f.gain * np.array(f.coefficients[1::-1]))
    else:
        element = ET.SubElement(parent, "PolynomialFunction", name=name)
        _numbers(element, "coefficients", f.gain * np.array(f.coefficients[::-1]))


def _coupling(parent: ET.Element, c: Coupling) -> None:
    element = ET.SubElement(parent, "CoordinateCouplerConstraint", name=f"{c.dependent}_follows")
    ET.SubElement(element, "isEnforced").text = "true"
    holder = ET.SubElement(element, "coupled_coordinates_function")
    _function(holder, c.function, "function")
    ET.SubElement(element, "independent_coordinate_names").text = c.independent
    ET.SubElement(element, "dependent_coordinate_name").text = c.dependent
    _numbers(element, "scale_factor", [1.0])
