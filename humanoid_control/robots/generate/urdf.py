"""URDF text of a robot from its source file, with provenance.

Rows of the `visual` table become primitives.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from humanoid_control.collision.shapes import Capsule, Ellipsoid, EllipticCapsule, LinkShape
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.description.urdf import BASE_LINK
from humanoid_control.robots.generate.source import RobotSource

# -------- Visuals

DEFAULT_COLOR = "body"
DEFAULT_COLORS = {"body": [0.80, 0.82, 0.85, 1.0], "joint": [0.25, 0.27, 0.30, 1.0]}


@dataclass(frozen=True)
class Primitive:
    """URDF geometry with its pose in the link frame.

    `size`: (x, y, z) of a box, (radius, length) of a cylinder about its z, (radius,) of a sphere.
    """

    kind: str
    size: tuple[float, ...]
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    color: str


def visuals_of(source: RobotSource) -> dict[str, list[Primitive]]:
    """Return the primitives of every link, from the `visual` table or else from collision shapes."""
    rows = [r for row in source.visual for r in _with_mirror(row)]
    out: dict[str, list[Primitive]] = {}
    for row in rows:
        out.setdefault(row["link"], []).extend(primitives_of_row(row, source.name))
    if not rows:
        for item in source.collision:
            out.setdefault(item.link, []).extend(primitives_of_shape(item, DEFAULT_COLOR))
    return out


def primitives_of_shape(item: LinkShape, color: str) -> list[Primitive]:
    """Return a collision shape as URDF primitives.

    Elliptic capsules and ellipsoids become inscribed cylinders and spheres: shapes that the controller separates are
    separate in the URDF too.
    """
    s = item.shape
    if isinstance(s, EllipticCapsule):
        return _inside_elliptic_capsule(s, color)
    if isinstance(s, Ellipsoid):
        return _inside_ellipsoid(s, color)
    if isinstance(s, Capsule):
        return _capsule(s.p0, s.p1, s.radius, color)
    if s.kind == "cylinder":
        return [_cylinder(s.p0, s.p1, s.radius, color)]  # type: ignore[union-attr]
    if s.kind == "box":
        return [Primitive("box", s.size, s.center, s.rpy, color)]  # type: ignore[union-attr]
    return [_sphere(s.center, s.radius, color)]  # type: ignore[union-attr]


DISCS = 3  # across an ellipse
STEPS = np.radians([0.0, 20.0, 42.0, 64.0])  # of the end of an elliptic capsule: where a cylinder touches it


def _inscribed_discs(long: float, short: float) -> list[tuple[float, float]]:
    """Return discs (place on the long axis, radius) inscribed in an ellipse."""
    angle = (np.arange(DISCS) + 0.5) * np.pi / DISCS - np.pi / 2
    focal = long * long - short * short  # discs that touch on both sides have their centres within focal / long
    if focal <= 0.0:
        return [(0.0, short)]
    places = focal / long * np.sin(angle)
    return [(float(y), float(short * np.sqrt(1 - y * y / focal))) for y in places]


def _inside_elliptic_capsule(s: EllipticCapsule, color: str) -> list[Primitive]:
    """Return inscribed upright cylinders, side by side at several heights."""
    middle, wide = np.array([*s.top_center[:2], s.top_center[2] - s.l / 2]), int(s.a >= s.b)
    out = []
    for step in STEPS:
        up = np.array([0.0, 0.0, s.l / 2 + s.c * np.sin(step)])
        for place, radius in _inscribed_discs(*(np.cos(step) * v for v in (max(s.a, s.b), min(s.a, s.b)))):
            at = middle + place * np.eye(3)[wide]
            out.append(_cylinder(at - up, at + up, radius, color))
    return out


def _inside_ellipsoid(s: Ellipsoid, color: str) -> list[Primitive]:
    """Return inscribed spheres along the longest axis."""
    axis = np.eye(3)[int(np.argmax(s.semi_axes))]
    discs = _inscribed_discs(max(s.semi_axes), min(s.semi_axes))
    return [_sphere(np.array(s.center) + place * axis, radius, color) for place, radius in discs]


def _with_mirror(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the row and, on request, its mirror image.

    Points mirror as (x, -y, z), roll and yaw change sign.
    """
    if not row.get("mirror"):
        return [row]
    other = dict(row)
    if row["link"].startswith("l_"):
        other["link"] = "r_" + row["link"][2:]
    for key in ("center", "p0", "p1"):
        if key in row:
            x, y, z = row[key]
            other[key] = [x, -y, z]
    if "rpy" in row:
        r, p, y = row["rpy"]
        other["rpy"] = [-r, p, -y]
    return [row, other]


def primitives_of_row(row: dict[str, Any], robot: str) -> list[Primitive]:
    """Return the primitives of a row of the `visual` table.

    Raises:
        UnknownNameError: if the shape is unknown.
        RobotError: if a number is missing.
    """
    shape, link = row.get("shape", "?"), row.get("link")
    if shape not in SHAPES:
        raise UnknownNameError("visual shape", shape, SHAPES, hint=f"(link '{link}' of {robot})")
    try:
        return SHAPES[shape](row, row.get("color", DEFAULT_COLOR))
    except KeyError as e:
        raise RobotError(f"{robot}: visual '{shape}' of link '{link}' lacks {e}") from None


def _t(v: Any) -> Any:
    return tuple(float(x) for x in v)


def _sphere(center: Any, radius: float, color: str) -> Primitive:
    return Primitive("sphere", (float(radius),), _t(center), (0.0, 0.0, 0.0), color)


def _cylinder(p0: Any, p1: Any, radius: float, color: str) -> Primitive:
    p0, p1 = np.array(p0, float), np.array(p1, float)
    length = float(np.linalg.norm(p1 - p0))
    z = (p1 - p0) / length
    # roll, pitch, yaw that turn the z axis onto the cylinder's axis; yaw about the axis itself is free, so roll = 0.
    rpy = (0.0, float(np.arctan2(np.hypot(z[0], z[1]), z[2])), float(np.arctan2(z[1], z[0])))
    return Primitive("cylinder", (float(radius), length), _t((p0 + p1) / 2), rpy, color)


def _capsule(p0: Any, p1: Any, radius: float, color: str) -> list[Primitive]:
    ends = [_sphere(p, radius, color) for p in (p0, p1)]
    return ends[:1] if np.allclose(p0, p1) else [_cylinder(p0, p1, radius, color), *ends]


def _taper(p0: Any, p1: Any, radii: Any, color: str) -> list[Primitive]:
    """Return a tapered limb: two unequal spheres and four inclined cylinders within their hull.

    The cylinders start on a ring around the larger centre and meet at the smaller sphere.
    """
    (R, big), (r, small) = sorted(zip(map(float, radii), map(_t, (p0, p1)), strict=True), reverse=True)
    d = np.array(small) - np.array(big)
    d /= np.linalg.norm(d)
    # The ring is laid out from the lateral axis, so that a mirrored limb has the mirrored ring.
    lateral = np.array([1.0, 0.0, 0.0] if abs(d[1]) > 0.99 else [0.0, 1.0, 0.0])
    e1 = lateral - (lateral @ d) * d
    e1 /= np.linalg.norm(e1)
    e2 = np.cross(d, e1)
    ring = [np.array(big) + (R - r) * (np.cos(t) * e1 + np.sin(t) * e2) for t in np.arange(4) * np.pi / 2]
    return [_sphere(big, R, color), *(_cylinder(p, small, r, color) for p in ring), _sphere(small, r, color)]


def _slab(center: Any, size: Any, radius: float, axis: str, rpy: Any, color: str) -> list[Primitive]:
    """Return a box with rounded edges parallel to `axis`: two crossed boxes and four cylinders."""
    k = "xyz".index(axis)
    i, j = (n for n in range(3) if n != k)
    full, c, R = np.array(size, float), np.array(center, float), Rotation.from_euler("xyz", rpy)
    r = min(float(radius), full[i] / 2, full[j] / 2)
    along = np.eye(3)[k] * full[k] / 2
    out = []
    for n in (i, j):
        core = full - 2 * r * np.eye(3)[n]
        if core[n] > 1e-9:
            out.append(Primitive("box", _t(core), _t(c), _t(rpy), color))
    half = full / 2 - r
    for m in _corners(np.where(np.arange(3) == k, 0.0, half)):
        out.append(_cylinder(c + R.apply(m - along), c + R.apply(m + along), r, color))
    return out


def _stadium(center: Any, size: Any, color: str) -> list[Primitive]:
    return _slab(center, size, min(size[0], size[1]) / 2, "z", (0, 0, 0), color)


def _rounded_box(center: Any, size: Any, radius: float, rpy: Any, color: str) -> list[Primitive]:
    """Return a box with rounded edges and corners: three boxes, twelve cylinders, eight spheres, no duplicates."""
    r = float(min(radius, min(size) / 2))
    half = np.array(size, float) / 2 - r
    c, R = np.array(center, float), Rotation.from_euler("xyz", rpy)
    out = []
    for k in range(3):
        grown = 2 * half + 2 * r * np.eye(3)[k]
        if np.all(grown > 1e-9):
            out.append(Primitive("box", _t(grown), _t(c), _t(rpy), color))
    for k in range(3):
        along = np.eye(3)[k] * half[k]
        if half[k] > 1e-9:
            for m in _corners(half - along):
                out.append(_cylinder(c + R.apply(m - along), c + R.apply(m + along), r, color))
    return out + [_sphere(c + R.apply(m), r, color) for m in _corners(half)]


def _corners(half: np.ndarray) -> list[np.ndarray]:
    """Return the distinct corners of a box with these half sides."""
    signs = [(1.0, -1.0) if h > 1e-9 else (0.0,) for h in half]
    return [np.array([x, y, z]) * half for x in signs[0] for y in signs[1] for z in signs[2]]


def _rpy(row: dict[str, Any]) -> Any:
    return row.get("rpy", (0.0, 0.0, 0.0))


SHAPES: dict[str, Callable[[dict[str, Any], str], list[Primitive]]] = {
    "box": lambda r, c: [Primitive("box", _t(r["size"]), _t(r["center"]), _t(_rpy(r)), c)],
    "sphere": lambda r, c: [_sphere(r["center"], r["radius"], c)],
    "cylinder": lambda r, c: [_cylinder(r["p0"], r["p1"], r["radius"], c)],
    "capsule": lambda r, c: _capsule(r["p0"], r["p1"], r["radius"], c),
    "taper": lambda r, c: _taper(r["p0"], r["p1"], r["radii"], c),
    "slab": lambda r, c: _slab(r["center"], r["size"], r["radius"], r["axis"], _rpy(r), c),
    "stadium": lambda r, c: _stadium(r["center"], r["size"], c),
    "rounded_box": lambda r, c: _rounded_box(r["center"], r["size"], r["radius"], _rpy(r), c),
}


# -------- The document


def urdf_text(source: RobotSource) -> str:
    """Return the URDF document.

    A massless `base_link` precedes the root link, since ROS tools (KDL) need a root without inertia.
    """
    robot = ET.Element("robot", name=source.name)
    for line in _header(source):
        robot.append(ET.Comment(f" {line} "))
    for name, rgba in {**DEFAULT_COLORS, **source.colors}.items():
        ET.SubElement(ET.SubElement(robot, "material", name=name), "color", rgba=_nums(rgba))
    ET.SubElement(robot, "link", name=BASE_LINK)
    joint = ET.SubElement(robot, "joint", name="base_joint", type="fixed")
    ET.SubElement(joint, "parent", link=BASE_LINK)
    ET.SubElement(joint, "child", link=source.root_link)
    visuals = visuals_of(source)
    for link in source.links:
        _link(robot, link, source, visuals.get(link["name"], []))
    for row in source.joints:
        _joint(robot, row)
    ET.indent(robot, "  ")
    return '<?xml version="1.0"?>\n' + ET.tostring(robot, encoding="unicode") + "\n"


def _header(source: RobotSource) -> list[str]:
    p = source.provenance
    return [
        f"{source.title}: generated by `humanoid robots build` from urdf/source/{source.name}.yaml; edit that file.",
        f"{p['published']} values published, {p['recalled']} recalled (not verified), {p['estimated']} estimated: "
        "do not quote the recalled and estimated ones as data of the real robot.",
        *(f"{tag}: {text}".replace("--", "-") for tag, text in sorted(source.references.items())),
    ]


def _link(robot: ET.Element, link: dict[str, Any], source: RobotSource, visuals: list[Primitive]) -> None:
    e = ET.SubElement(robot, "link", name=link["name"])
    inertial = ET.SubElement(e, "inertial")
    ET.SubElement(inertial, "origin", xyz=_nums(link["com"]), rpy="0 0 0")
    ET.SubElement(inertial, "mass", value=_num(link["mass"]))
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    ET.SubElement(inertial, "inertia", {k: _num(v) for k, v in zip(names, link["inertia"], strict=True)})
    for p in visuals:
        visual = _geometry(e, "visual", p)
        ET.SubElement(visual, "material", name=p.color)
    for item in source.collision:
        if item.link == link["name"]:
            for p in primitives_of_shape(item, ""):
                _geometry(e, "collision", p).set("name", item.name)


def _geometry(link: ET.Element, tag: str, p: Primitive) -> ET.Element:
    e = ET.SubElement(link, tag)
    ET.SubElement(e, "origin", xyz=_nums(p.xyz), rpy=_nums(p.rpy))
    g = ET.SubElement(e, "geometry")
    if p.kind == "box":
        ET.SubElement(g, "box", size=_nums(p.size))
    elif p.kind == "cylinder":
        ET.SubElement(g, "cylinder", radius=_num(p.size[0]), length=_num(p.size[1]))
    else:
        ET.SubElement(g, "sphere", radius=_num(p.size[0]))
    return e


def _joint(robot: ET.Element, row: dict[str, Any]) -> None:
    e = ET.SubElement(robot, "joint", name=row["name"], type=row["type"])
    ET.SubElement(e, "parent", link=row["parent"])
    ET.SubElement(e, "child", link=row["child"])
    ET.SubElement(e, "origin", xyz=_nums(row["xyz"]), rpy=_nums(row["rpy"]))
    ET.SubElement(e, "axis", xyz=_nums(row["axis"]))
    to_si = math.radians if row["type"] == "revolute" else float
    ET.SubElement(
        e,
        "limit",
        lower=_num(to_si(row["lower"])),
        upper=_num(to_si(row["upper"])),
        velocity=_num(row["velocity"]),
        effort=_num(row["effort"]),
    )
    if "mimic" in row:
        m = row["mimic"]
        ET.SubElement(
            e, "mimic", joint=m["joint"], multiplier=_num(m.get("multiplier", 1)), offset=_num(m.get("offset", 0))
        )


def _num(v: float) -> str:
    """Format a number with 9 significant digits, without '-0'."""
    text = f"{float(v):.9g}"
    return "0" if float(text) == 0 else text


def _nums(values: Any) -> str:
    return " ".join(_num(v) for v in values)
