"""How a robot looks: rows of the source's `visual` table become the primitives that every URDF tool can draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.shapes import Capsule, EllipticCapsule, LinkShape
from humanoid_control.robots.source import RobotSource

DEFAULT_COLOR = "body"
DEFAULT_COLORS = {"body": [0.80, 0.82, 0.85, 1.0], "joint": [0.25, 0.27, 0.30, 1.0]}


@dataclass(frozen=True)
class Primitive:
    """One URDF geometry with its pose in the link frame.

    `size` is (x, y, z) for a box, (radius, length) for a cylinder around its own z, (radius,) for a sphere.
    """

    kind: str
    size: tuple[float, ...]
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    color: str


def visuals_of(source: RobotSource) -> dict[str, list[Primitive]]:
    """The primitives of every link: from the `visual` table, or from the collision shapes where it is silent."""
    rows = [r for row in source.visual for r in _with_mirror(row)]
    out: dict[str, list[Primitive]] = {}
    for row in rows:
        out.setdefault(row["link"], []).extend(_primitives(row, source.name))
    if not rows:
        for item in source.collision:
            out.setdefault(item.link, []).extend(primitives_of_shape(item, DEFAULT_COLOR))
    return out


def primitives_of_shape(item: LinkShape, color: str) -> list[Primitive]:
    """A collision shape as URDF primitives: exact for box, sphere, cylinder and capsule.

    An elliptic capsule becomes an upright prism with rounded sides of the same width, depth and height, which holds
    it inside; an ellipsoid becomes the sphere of its mean semi-axis.
    """
    s = item.shape
    if isinstance(s, EllipticCapsule):
        middle = [s.top_center[0], s.top_center[1], s.top_center[2] - s.l / 2]
        return _stadium(middle, [2 * s.b, 2 * s.a, s.l + 2 * s.c], color)
    if isinstance(s, Capsule):
        return _capsule(np.array(s.p0), np.array(s.p1), s.radius, color)
    if s.kind == "ellipsoid":
        return [Primitive("sphere", (float(np.mean(s.semi_axes)),), s.center, (0, 0, 0), color)]  # type: ignore[union-attr]
    if s.kind == "cylinder":
        return [_cylinder(np.array(s.p0), np.array(s.p1), s.radius, color)]  # type: ignore[union-attr]
    if s.kind == "box":
        return [Primitive("box", s.size, s.center, s.rpy, color)]  # type: ignore[union-attr]
    return [Primitive("sphere", (s.radius,), s.center, (0, 0, 0), color)]  # type: ignore[union-attr]


def _with_mirror(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The row, and its mirror image on the right side when the row asks for it.

    A left link `l_...` is mirrored onto `r_...`; on a middle link the mirror image lies on the other side of the
    same link. Points mirror as (x, -y, z), roll and yaw change sign.
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


def _primitives(row: dict[str, Any], robot: str) -> list[Primitive]:
    color = row.get("color", DEFAULT_COLOR)
    shape = row.get("shape", "?")
    try:
        if shape == "rounded_box":
            return _rounded_box(row["center"], row["size"], row["radius"], row.get("rpy", [0, 0, 0]), color)
        if shape == "stadium":
            return _stadium(row["center"], row["size"], color)
        if shape == "box":
            return [Primitive("box", _t(row["size"]), _t(row["center"]), _t(row.get("rpy", [0, 0, 0])), color)]
        if shape == "sphere":
            return [Primitive("sphere", (float(row["radius"]),), _t(row["center"]), (0.0, 0.0, 0.0), color)]
        if shape == "cylinder":
            return [_cylinder(np.array(row["p0"], float), np.array(row["p1"], float), row["radius"], color)]
        if shape == "capsule":
            return _capsule(np.array(row["p0"], float), np.array(row["p1"], float), row["radius"], color)
    except KeyError as e:
        raise RobotError(f"{robot}: visual '{shape}' of link '{row.get('link')}' lacks {e}") from None
    raise UnknownNameError(
        "visual shape",
        shape,
        ["rounded_box", "stadium", "box", "sphere", "cylinder", "capsule"],
        hint=f"(link '{row.get('link')}' of {robot})",
    )


def _t(v: Any) -> Any:
    return tuple(float(x) for x in v)


def _cylinder(p0: np.ndarray, p1: np.ndarray, radius: float, color: str) -> Primitive:
    d = p1 - p0
    length = float(np.linalg.norm(d))
    z = d / length
    # roll, pitch, yaw that turn the z axis onto the cylinder's axis; yaw about the axis itself is free, so roll = 0.
    rpy = (0.0, float(np.arctan2(np.hypot(z[0], z[1]), z[2])), float(np.arctan2(z[1], z[0])))
    return Primitive("cylinder", (float(radius), length), _t((p0 + p1) / 2), rpy, color)


def _capsule(p0: np.ndarray, p1: np.ndarray, radius: float, color: str) -> list[Primitive]:
    ends = [Primitive("sphere", (float(radius),), _t(p), (0.0, 0.0, 0.0), color) for p in (p0, p1)]
    return ends if np.allclose(p0, p1) else [_cylinder(p0, p1, radius, color), *ends]


def _stadium(center: Any, size: Any, color: str) -> list[Primitive]:
    """An upright prism whose cross-section is a stadium: flat front and back, half-round sides (or the reverse)."""
    dx, dy, h = (float(v) for v in size)
    c = np.array(center, float)
    r = min(dx, dy) / 2
    half = abs(dy - dx) / 2
    axis = np.array([0.0, 1.0, 0.0]) if dy >= dx else np.array([1.0, 0.0, 0.0])
    up = np.array([0.0, 0.0, h / 2])
    if half < 1e-6:
        return [_cylinder(c - up, c + up, r, color)]
    core = (dx, 2 * half, h) if dy >= dx else (2 * half, dy, h)
    sides = [_cylinder(c + s * half * axis - up, c + s * half * axis + up, r, color) for s in (1, -1)]
    return [Primitive("box", core, _t(c), (0.0, 0.0, 0.0), color), *sides]


def _rounded_box(center: Any, size: Any, radius: float, rpy: Any, color: str) -> list[Primitive]:
    """A box with rounded edges and corners: three crossed boxes, twelve edge cylinders, eight corner balls."""
    r = float(min(radius, min(size) / 2))
    half = np.array(size, float) / 2 - r
    c, R = np.array(center, float), Rotation.from_euler("xyz", rpy)
    out = []
    for k in range(3):
        grown = 2 * half
        grown[k] += 2 * r
        if np.all(grown > 1e-9):
            out.append(Primitive("box", _t(grown), _t(c), _t(rpy), color))
    signs = [np.array([i, j, k], float) for i in (1, -1) for j in (1, -1) for k in (1, -1)]
    out += [Primitive("sphere", (r,), _t(c + R.apply(s * half)), (0.0, 0.0, 0.0), color) for s in signs]
    for k in range(3):
        if half[k] < 1e-9:
            continue
        along = np.eye(3)[k] * half[k]
        for s in {tuple(np.where(np.arange(3) == k, 0.0, s)) for s in signs}:
            m = np.array(s) * half
            out.append(_cylinder(c + R.apply(m - along), c + R.apply(m + along), r, color))
    return sorted(out, key=lambda p: (p.kind, p.xyz, p.size))
