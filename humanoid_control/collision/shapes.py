"""Solid shapes of robot links: spheres, capsules, boxes, cylinders, ellipsoids, elliptic capsules [m].

Coordinates are those of the link. `bounding_sphere()` returns centre (3,) and radius [m]. `ShapeArrays` holds all
shapes of a mechanism for kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3, I1
from humanoid_control.errors import RobotError, UnknownNameError, shown
from humanoid_control.files import text, within


def fibonacci_sphere(count: int) -> np.ndarray:
    """Return unit vectors (count, 3), evenly spread on a spherical Fibonacci lattice."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)


SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, ELLIPTIC_CAPSULE = range(6)
KIND_NAMES = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "elliptic_capsule")
Vec3 = tuple[float, float, float]


def bounding_radius(kind: int, size: np.ndarray) -> float:
    """Return the distance from the centre to the farthest point [m]."""
    if kind == BOX:
        return float(np.linalg.norm(size[:3]))
    wide, cap, h = float(max(size[0], size[1])), float(size[2]), float(size[3])
    if wide <= cap or (sine := h * cap / (wide**2 - cap**2)) >= 1:
        return h + cap
    # The farthest point of a flat cap lies between its rim and its pole.
    return float(np.sqrt(wide**2 * (1 - sine**2) + (h + cap * sine) ** 2))


@dataclass(frozen=True)
class Sphere:
    """Ball."""

    kind: ClassVar[str] = "sphere"
    center: Vec3
    radius: float

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        return np.array(self.center), self.radius


@dataclass(frozen=True)
class Capsule:
    """All points within `radius` of the segment from p0 to p1."""

    kind: ClassVar[str] = "capsule"
    p0: Vec3
    p1: Vec3
    radius: float

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        p0, p1 = np.array(self.p0), np.array(self.p1)
        return (p0 + p1) / 2, float(np.linalg.norm(p1 - p0)) / 2 + self.radius


@dataclass(frozen=True)
class Box:
    """Box with side lengths `size`, rotated by roll, pitch, yaw about its centre."""

    kind: ClassVar[str] = "box"
    center: Vec3
    size: Vec3
    rpy: Vec3 = (0.0, 0.0, 0.0)

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        return np.array(self.center), float(np.linalg.norm(self.size)) / 2


@dataclass(frozen=True)
class Cylinder:
    """Cylinder around the segment from p0 to p1, flat at both ends."""

    kind: ClassVar[str] = "cylinder"
    p0: Vec3
    p1: Vec3
    radius: float

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        p0, p1 = np.array(self.p0), np.array(self.p1)
        half = float(np.linalg.norm(p1 - p0)) / 2
        return (p0 + p1) / 2, float(np.hypot(half, self.radius))


@dataclass(frozen=True)
class Ellipsoid:
    """Ellipsoid with semi-axes along x, y, z of the link."""

    kind: ClassVar[str] = "ellipsoid"
    center: Vec3
    semi_axes: Vec3

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        return np.array(self.center), max(self.semi_axes)


@dataclass(frozen=True)
class EllipticCapsule:
    """Elliptical cylinder along link z with half-ellipsoid caps (Dube 2012, section 4.3.2).

    Attributes:
        top_center: centre of the top cap, `l` above the bottom cap.
        a: semi-axis along y.
        b: semi-axis along x.
    """

    kind: ClassVar[str] = "elliptic_capsule"
    top_center: Vec3
    a: float
    b: float
    c: float
    l: float  # noqa: E741  (the symbol of Dube 2012)

    def bounding_sphere(self) -> tuple[np.ndarray, float]:
        middle = np.array(self.top_center) - np.array([0.0, 0.0, self.l / 2])
        return middle, bounding_radius(ELLIPTIC_CAPSULE, np.array([self.b, self.a, self.c, self.l / 2]))


Shape = Sphere | Capsule | Box | Cylinder | Ellipsoid | EllipticCapsule
SIZES = ("radius", "a", "b", "c", "size", "semi_axes")  # fields that must be positive
SMALLEST = 1e-6  # [m] distances to thinner solids lose all digits
KINDS: dict[str, type] = {k.kind: k for k in (Sphere, Capsule, Box, Cylinder, Ellipsoid, EllipticCapsule)}


@dataclass(frozen=True)
class LinkShape:
    """Named shape on a link.

    Attributes:
        against: only links from which it is kept apart: from their shapes against this link, or else from all others.
            Empty: kept apart from all shapes with an empty list.
    """

    name: str
    link: str
    shape: Shape
    against: tuple[str, ...] = ()


def shape_from_row(row: dict[str, Any], where: str) -> LinkShape:
    """Read one row of a collision table: `{name, link, shape, ...numbers of that shape}`.

    Raises:
        UnknownNameError: if the shape is unknown.
        RobotError: if a key is missing, a value not finite, or a size not positive.
    """
    if not isinstance(row, dict):
        raise RobotError(f"{where}: a shape must be a mapping with name, link, shape and its numbers, got {shown(row)}")
    name = shown(row.get("name", "?"))
    place = f"shape '{name}' in {where}"
    if (cls := KINDS.get(str(row.get("shape")))) is None:
        raise UnknownNameError("shape", str(row.get("shape")), KINDS, hint=f"({place})")
    if "link" not in row:
        raise RobotError(f"{place} lacks the key 'link'")
    values: dict[str, Any] = {}
    for f in fields(cls):
        if f.name in row:
            v = within(row, f.name, (3,) if f.type == "Vec3" else (), place)
            if f.name in SIZES and not (v >= SMALLEST).all():
                raise RobotError(f"{place}: {f.name} must be positive, got {shown(row[f.name])}")
            if f.name == "l" and v < 0:
                raise RobotError(f"{place}: l must not be negative, got {shown(row[f.name])}")
            values[f.name] = v.tolist() if v.ndim == 0 else tuple(v.tolist())
        elif f.default is MISSING:
            raise RobotError(f"{place} lacks a number: '{f.name}'")
    against = row.get("against", ())
    if not isinstance(against, (list, tuple)) or not all(isinstance(link, str) for link in against):
        raise RobotError(f"{place}: against must be a list of links, got {shown(against)}")
    name = text(row, "name", place) if "name" in row else "?"
    return LinkShape(name, text(row, "link", place), cls(**values), tuple(against))


def shape_to_row(item: LinkShape) -> dict[str, Any]:
    """Convert a shape to a mapping for YAML."""
    numbers = {f.name: getattr(item.shape, f.name) for f in fields(item.shape)}
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in numbers.items()}
    only = {"against": list(item.against)} if item.against else {}
    return {"name": item.name, "link": item.link, "shape": item.shape.kind, **plain, **only}


# -------- Shapes as arrays for kernels


class ShapeArrays(NamedTuple):
    """S shapes, each centred in a frame fixed to a joint.

    All except the box are a segment from -h to h along z, swept by an ellipsoid (Minkowski sum): a ball for sphere and
    capsule, a disc for the cylinder, half axes (b, a, c) for the elliptic capsule.

    Attributes:
        kinds: SPHERE ... ELLIPTIC_CAPSULE (S,).
        sizes: half axes x, y, z of the ellipsoid or box, and half length h (S, 4) [m]:
            sphere (r, r, r, 0), capsule (r, r, r, h), box (x, y, z, 0), cylinder (r, r, 0, h),
            ellipsoid (x, y, z, 0), elliptic capsule (x, y, z, h).
        R: rotation in the joint frame (S, 3, 3).
        p: origin in the joint frame, centre of the bounding sphere (S, 3) [m].
        radii: radius of the bounding sphere (S,) [m].
    """

    kinds: I1
    sizes: F2
    joint: I1
    R: F3
    p: F2
    radii: F1

    @classmethod
    def build(
        cls,
        kinds: Sequence[str],
        sizes: Sequence[Sequence[float]],
        joint: Sequence[int],
        R: Sequence[np.ndarray],
        p: Sequence[np.ndarray],
    ) -> ShapeArrays:
        """Build arrays from one entry a shape; `kinds` are names of KIND_NAMES."""
        kind = np.array([KIND_NAMES.index(k) for k in kinds], dtype=np.int64)
        size = np.array(sizes, dtype=float).reshape(-1, 4)
        return cls(
            kind,
            size,
            np.array(joint, dtype=np.int64),
            np.array(R, dtype=float).reshape(-1, 3, 3),
            np.array(p, dtype=float).reshape(-1, 3),
            np.array([bounding_radius(int(k), s) for k, s in zip(kind, size, strict=True)], dtype=float),
        )

    def contains(self, k: int, points: np.ndarray) -> np.ndarray:
        """Return True (...) for points (..., 3) [m] inside shape k, in its frame."""
        size, at = self.sizes[k], np.abs(points)
        if self.kinds[k] == BOX:
            return np.asarray((at <= size[:3]).all(axis=-1))
        wide = (at[..., :2] / size[:2]) ** 2
        beyond = np.maximum(at[..., 2] - size[3], 0.0)
        cap = (beyond / size[2]) ** 2 if size[2] > 0 else np.where(beyond > 0.0, np.inf, 0.0)
        return np.asarray(wide.sum(axis=-1) + cap <= 1.0)
