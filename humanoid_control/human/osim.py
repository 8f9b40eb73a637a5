"""Reader of OpenSim models (.osim), versions 20302 to 30000 and from 40000 on.

Muscles, contact and wrapping are omitted and counted; other unknown parts are rejected.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from humanoid_control.documents import parse_xml, read_xml_text
from humanoid_control.errors import RobotError, first_few, shown, told_of
from humanoid_control.files import why
from humanoid_control.human.elements import (
    GROUND,
    AnatomicalJoint,
    Coordinate,
    CoordinateAxis,
    Coupling,
    Marker,
    OffsetFrame,
    PersonBody,
)
from humanoid_control.human.functions import Function
from humanoid_control.human.model import Person

OLDEST, JOINTS_APART = 20302, 40000  # document versions
_ONE = Function((0.0, 1.0))
_X, _Y, _Z = np.eye(3)
# Rotation and translation axes of joints in the order of their coordinates (Seth et al. 2018, Simbody's mobilizers).
_SIMPLE: dict[str, tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]] = {
    "WeldJoint": ((), ()),
    "PinJoint": ((_Z,), ()),
    "UniversalJoint": ((_X, _Y), ()),
    "BallJoint": ((_X, _Y, _Z), ()),
    "GimbalJoint": ((_X, _Y, _Z), ()),
    "SliderJoint": ((), (_X,)),
    "PlanarJoint": ((_Z,), (_X, _Y)),
    "FreeJoint": ((_X, _Y, _Z), (_X, _Y, _Z)),
}
_KNOWN_ELSEWHERE = {
    "ConstantCurvatureJoint": "a type of nimblephysics only",
    "ScapulothoracicJoint": "a plugin joint of the shoulder",
}
_SPLINES = ("SimmSpline", "NaturalCubicSpline", "natCubicSpline")
_COUNTED = {"ForceSet": "force", "ContactGeometrySet": "contact geometry", "ControllerSet": "controller",
            "ProbeSet": "probe", "ComponentSet": "component"}  # fmt: skip


def read_osim(path: str | Path) -> Person:
    """Return the person of an OpenSim model; `notes` lists omitted parts.

    Raises:
        RobotError: if the file, its version, or a part is not supported.
    """
    path = Path(path)
    try:
        text = read_xml_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise RobotError(f"{path}: cannot be read: {why(error)}") from None
    return parse_osim(text, str(path))


def parse_osim(text: str, where: str) -> Person:
    """Return the person of a text; messages name it `where`."""
    document = parse_xml(text, where, "an OpenSim model")
    model = document.find("Model") if document.tag == "OpenSimDocument" else None
    if model is None:
        raise RobotError(f"{where}: not an OpenSim model: its outermost elements must be OpenSimDocument and Model")
    try:
        version = int(document.get("Version", ""))
    except ValueError:
        raise RobotError(f"{where}: contains no version of OpenSim: save it with OpenSim again") from None
    if version < OLDEST:
        raise RobotError(f"{where}: is of version {version}, before {OLDEST}: save it with OpenSim 4 again")
    with told_of(where):
        return _OsimReader(model, version).person()


def objects(parent: ET.Element, name: str) -> list[ET.Element]:
    """Return the elements of a set, or []."""
    found = parent.find(name)
    if found is None:
        return []
    inner = found.find("objects")
    return list(found if inner is None else inner)


def text_of(element: ET.Element, key: str, default: str = "") -> str:
    """Return the stripped text of a child."""
    found = element.find(key)
    return default if found is None or found.text is None else found.text.strip()


def numbers_of(element: ET.Element, key: str, count: int = 0, default: tuple[float, ...] | None = None) -> np.ndarray:
    """Return the finite numbers of a child.

    Args:
        count: 0: any.
        default: if missing or empty.

    Raises:
        RobotError: if invalid or missing.
    """
    text = text_of(element, key)
    if not text and default is not None:
        return np.array(default)
    try:
        values = np.array([float(word) for word in text.split()])
    except ValueError:
        values = np.array([math.nan])
    if not np.isfinite(values).all() or (count and len(values) != count) or not len(values):
        named = shown(element.get("name", element.tag))
        wanted = "a number" if count == 1 else f"{count} numbers" if count else "numbers"
        raise RobotError(f"'{named}': {key} must be {wanted}, got '{shown(text)}'")
    return values


def flag(element: ET.Element, key: str, default: bool = False) -> bool:
    """Return the truth value of a child element."""
    return text_of(element, key, str(default)).lower() in ("true", "1", "yes")


def rotation_xyz(angles: np.ndarray) -> np.ndarray:
    """Return R_x R_y R_z of three body-fixed angles [rad]."""
    (cx, cy, cz), (sx, sy, sz) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [cy * cz, -cy * sz, sy],
            [sx * sy * cz + cx * sz, -sx * sy * sz + cx * cz, -sx * cy],
            [-cx * sy * cz + sx * sz, cx * sy * sz + sx * cz, cx * cy],
        ]
    )


def read_function(element: ET.Element, where: str) -> Function:
    """Return a function of one coordinate; RobotError if not supported."""
    kind = element.tag
    with told_of(where):
        if kind == "Constant":
            return Function((float(numbers_of(element, "value", 1, (0.0,))[0]),))
        if kind == "LinearFunction":
            slope, offset = numbers_of(element, "coefficients", 2)
            return Function((float(offset), float(slope)))
        if kind == "PolynomialFunction":
            return Function(tuple(float(c) for c in numbers_of(element, "coefficients")[::-1]))
        if kind in _SPLINES:
            x, y = numbers_of(element, "x"), numbers_of(element, "y")
            return Function((), tuple(x.tolist()), tuple(y.tolist()))
        if kind == "MultiplierFunction":
            inner = _function_within(element, where)
            return inner.scaled(float(numbers_of(element, "scale", 1, (1.0,))[0]))
    raise RobotError(f"{where}: {shown(kind)} is not supported: replace it by a spline or a polynomial")


def _function_within(element: ET.Element, where: str) -> Function:
    """Return the function in <function><Kind .../></function> or <Kind name="function"/>."""
    wrapped = element.find("function")
    candidates = list(wrapped) if wrapped is not None else [e for e in element if e.get("name") == "function"]
    if not candidates:
        raise RobotError(f"{where}: contains no function: add one")
    return read_function(candidates[0], where)


class _OsimReader:
    """Reader of one model element."""

    def __init__(self, model: ET.Element, version: int) -> None:
        self.model, self.apart = model, version >= JOINTS_APART
        self.frames: dict[str, tuple[str, OffsetFrame]] = {}  # path of a named frame -> body, pose in the body
        self.coordinates: list[Coordinate] = []

    def person(self) -> Person:
        """Return the person."""
        bodies = [e for e in objects(self.model, "BodySet") if e.get("name") != GROUND]
        self._component_frames([*bodies, *self.model.findall("Ground")])
        joints = [self._joint(*pair) for pair in self._joint_elements(bodies)]
        couplings, notes = self._constraints()
        gravity = numbers_of(self.model, "gravity", 3, (0.0, -9.80665, 0.0))
        return Person(
            self.model.get("name") or "person",
            tuple(self._body(e) for e in bodies),
            tuple(joints),
            tuple(self.coordinates),
            tuple(self._markers()),
            tuple(couplings),
            gravity,
            (*self._left_out(), *notes),
        )

    # -------- Bodies and frames

    def _body(self, element: ET.Element) -> PersonBody:
        if element.find("inertia") is not None:
            xx, yy, zz, xy, xz, yz = numbers_of(element, "inertia", 6)
        else:
            xx, yy, zz, xy, xz, yz = (
                float(numbers_of(element, f"inertia_{k}", 1, (0.0,))[0]) for k in ("xx", "yy", "zz", "xy", "xz", "yz")
            )
        mass = float(numbers_of(element, "mass", 1, (0.0,))[0])
        com = numbers_of(element, "mass_center", 3, (0.0, 0.0, 0.0))
        return PersonBody(element.get("name", ""), mass, com, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))

    def _component_frames(self, bodies: list[ET.Element]) -> None:
        """Store offset frames of bodies and ground."""
        for body in bodies:
            name = body.get("name") or GROUND
            for offset in body.iter("PhysicalOffsetFrame"):
                path = f"/bodyset/{name}/{offset.get('name')}"
                self.frames[path] = self.frames[path.removeprefix("/bodyset")] = name, _offset(offset)

    def _body_of(self, path: str, local: dict[str, ET.Element], where: str, depth: int = 0) -> tuple[str, OffsetFrame]:
        """Return the body of a frame, and its pose there."""
        name = path.rpartition("/")[2]
        if path in self.frames:
            return self.frames[path]
        if name in local and depth <= len(local):
            inner = local[name]
            parent = text_of(inner, "socket_parent") or text_of(inner, "socket_parent_frame")
            body, X = self._body_of(parent, local, where, depth + 1)
            return body, X @ _offset(inner)
        if not name or name in local:
            raise RobotError(f"{where}: its frame '{shown(path)}' belongs to no body: give one")
        return name, OffsetFrame()

    # -------- Joints

    def _joint_elements(self, bodies: list[ET.Element]) -> Iterator[tuple[ET.Element, str]]:
        """Yield joints, with their body in old versions."""
        if self.apart:
            yield from ((e, "") for e in objects(self.model, "JointSet"))
            return
        for body in bodies:
            for joint in body.findall("Joint/*"):
                yield joint, body.get("name", "")

    def _joint(self, element: ET.Element, holder: str) -> AnatomicalJoint:
        name, kind = element.get("name", holder), element.tag
        where = f"joint '{shown(name)}'"
        if kind != "CustomJoint" and kind not in _SIMPLE:
            whose = f": it is {_KNOWN_ELSEWHERE[kind]}" if kind in _KNOWN_ELSEWHERE else ": replace it by a CustomJoint"
            raise RobotError(f"{where}: {shown(kind)} is not supported{whose}")
        if flag(element, "reverse"):
            raise RobotError(f"{where}: is reversed: swap its parent and its child")
        if holder:
            parent, child = text_of(element, "parent_body"), holder
            P = _place(element, "location_in_parent", "orientation_in_parent")
            C = _place(element, "location", "orientation")
            found = objects(element, "CoordinateSet")
        else:
            local = {e.get("name", ""): e for e in element.findall("frames/*")}
            parent, P = self._body_of(text_of(element, "socket_parent_frame"), local, where)
            child, C = self._body_of(text_of(element, "socket_child_frame"), local, where)
            found = element.findall("coordinates/Coordinate")
        if kind == "CustomJoint":
            rotations, translations = _custom_axes(element, where)
            lengths = {a.coordinate for a in translations} - {a.coordinate for a in rotations}
        else:
            rotations, translations = _simple_axes(kind, [e.get("name", "") for e in found], where)
            lengths = {a.coordinate for a in translations}
        for e in found:
            with told_of(where):
                self.coordinates.append(_coordinate(e, lengths))
        return AnatomicalJoint(name, parent, child, P, C, rotations, translations)

    # -------- Markers, constraints, omitted parts

    def _markers(self) -> Iterator[Marker]:
        for element in objects(self.model, "MarkerSet"):
            if element.tag != "Marker":
                continue
            name = element.get("name", "")
            where = f"marker '{shown(name)}'"
            path = text_of(element, "socket_parent_frame") or text_of(element, "body")
            body, X = self._body_of(path, {}, where)
            place = X.p + X.R @ numbers_of(element, "location", 3)
            if body != GROUND:
                yield Marker(name, body, place, flag(element, "fixed"))

    def _constraints(self) -> tuple[list[Coupling], list[str]]:
        couplings: list[Coupling] = []
        off: list[str] = []
        for element in objects(self.model, "ConstraintSet"):
            name, kind = shown(element.get("name", "")), element.tag
            if not flag(element, "isEnforced", True) or flag(element, "isDisabled"):
                off.append(name)
                continue
            if kind != "CoordinateCouplerConstraint":
                raise RobotError(f"constraint '{name}': {shown(kind)} is not supported: remove it, or switch it off")
            independent = text_of(element, "independent_coordinate_names").split()
            if len(independent) != 1:
                raise RobotError(f"constraint '{name}': follows {len(independent)} coordinates: only one is supported")
            holder = element.find("coupled_coordinates_function")
            inside = list(holder) if holder is not None else []
            if not inside:
                raise RobotError(f"constraint '{name}': contains no function: add one")
            function = read_function(inside[0], f"constraint '{name}'")
            factor = float(numbers_of(element, "scale_factor", 1, (1.0,))[0])
            dependent = text_of(element, "dependent_coordinate_name")
            couplings.append(Coupling(dependent, independent[0], function.scaled(factor)))
        notes = [f"constraints that are switched off were ignored: {first_few(off)}"] if off else []
        return couplings, notes

    def _left_out(self) -> list[str]:
        """Return a sentence on omitted parts, or []."""
        counts: Counter[str] = Counter()
        for name, word in _COUNTED.items():
            for element in objects(self.model, name):
                counts["muscle" if "Muscle" in element.tag else word] += 1
        for objects_of in self.model.iter("WrapObjectSet"):
            counts["wrap object"] += len(objects_of.findall("objects/*"))
        if not counts:
            return []
        told = ", ".join(f"{count} {word}{'s' * (count > 1)}" for word, count in sorted(counts.items()))
        return [f"ignored: {told}"]


def _place(element: ET.Element, location: str, orientation: str) -> OffsetFrame:
    zero = (0.0, 0.0, 0.0)
    return OffsetFrame(rotation_xyz(numbers_of(element, orientation, 3, zero)), numbers_of(element, location, 3, zero))


def _offset(element: ET.Element) -> OffsetFrame:
    return _place(element, "translation", "orientation")


def _coordinate(element: ET.Element, lengths: set[str]) -> Coordinate:
    name = element.get("name", "")
    prescribed = flag(element, "prescribed") and element.find("prescribed_function") is not None
    lower, upper = numbers_of(element, "range", 2, (-math.inf, math.inf)) if text_of(element, "range") else (
        -math.inf, math.inf)  # fmt: skip
    return Coordinate(
        name,
        name not in lengths,
        _prescribed(element, name) if prescribed else float(numbers_of(element, "default_value", 1, (0.0,))[0]),
        float(lower),
        float(upper),
        flag(element, "clamped"),
        prescribed or flag(element, "locked"),
    )


def _prescribed(element: ET.Element, name: str) -> float:
    """Return the prescribed constant; a function of time raises RobotError."""
    holder = element.find("prescribed_function")
    inner = list(holder) if holder is not None else []
    where = f"the coordinate '{shown(name)}'"
    if len(inner) != 1:
        raise RobotError(f"{where} is prescribed without a function: set <prescribed> to false")
    function = read_function(inner[0], where)
    if not function.constant:
        raise RobotError(
            f"{where} is prescribed by a function of time, which is not supported: set <prescribed> to false"
        )
    return float(function.coefficients[0] * function.gain)


def _simple_axes(
    kind: str, names: list[str], where: str
) -> tuple[tuple[CoordinateAxis, ...], tuple[CoordinateAxis, ...]]:
    turning, sliding = _SIMPLE[kind]
    if len(names) != len(turning) + len(sliding):
        wanted = len(turning) + len(sliding)
        raise RobotError(f"{where}: a {kind} has {wanted} coordinates, the file gives {len(names)}: add or remove some")
    rotations = tuple(CoordinateAxis(a, _ONE, name) for a, name in zip(turning, names, strict=False))
    return rotations, tuple(
        CoordinateAxis(a, _ONE, name) for a, name in zip(sliding, names[len(turning) :], strict=True)
    )


def _custom_axes(element: ET.Element, where: str) -> tuple[tuple[CoordinateAxis, ...], tuple[CoordinateAxis, ...]]:
    """Return the three rotations and three translations of a CustomJoint."""
    transform = element.find("SpatialTransform")
    found = {e.get("name", ""): e for e in transform.iter("TransformAxis")} if transform is not None else {}
    axes = []
    for name in (f"{kind}{k}" for kind in ("rotation", "translation") for k in (1, 2, 3)):
        if name not in found:
            raise RobotError(
                f"{where}: lacks the axis {name}: a CustomJoint has three rotations and three translations"
            )
        axis, told = found[name], f"{where}, {name}"
        coordinates = text_of(axis, "coordinates").split()
        if len(coordinates) > 1:
            raise RobotError(f"{told}: depends on {len(coordinates)} coordinates: only one is supported")
        with told_of(told):
            vector = numbers_of(axis, "axis", 3)
            if not np.linalg.norm(vector) > 0:
                raise RobotError(f"{told}: has an axis of no length: give it a direction")
        has_function = axis.find("function") is not None or any(e.get("name") == "function" for e in axis)
        default = _ONE if coordinates else Function((0.0,))
        function = _function_within(axis, told) if has_function else default
        if not coordinates and not function.constant:
            raise RobotError(f"{told}: its function has no coordinate: add one")
        axes.append(CoordinateAxis(vector, function, coordinates[0] if coordinates else ""))
    return tuple(axes[:3]), tuple(axes[3:])
