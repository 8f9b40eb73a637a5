"""The solid shapes of robots as swept-sphere volumes that hold them, and how much larger these are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.collision.point_distance import point_solid
from humanoid_control.collision.shape_arrays import KIND_NAMES
from humanoid_control.collision.ssv_batch import distances
from humanoid_control.collision.ssv_enclose import RECTANGLE, TINY, fit_polygon, swept_volume
from humanoid_control.collision.ssv_fit import circumscribed_sphere, volumes
from humanoid_control.collision.ssv_segments import Ssv
from humanoid_control.robots.geometry import elliptic_capsule_points, half_axes, rotation_of_z_onto
from humanoid_control.robots.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Shape, Sphere

# [m] a thicker box, or end of an elliptic capsule, is cut into layers, whose rounded edges stand out less.
THICK_BOX, THICK_END = 0.14, 0.2
OCTAGON = np.array([[math.cos(t), math.sin(t)] for t in (np.arange(8) + 0.5) * math.pi / 4])
SAMPLES = 20000


@dataclass(frozen=True)
class Enlargement:
    """How much larger volumes are than the shape they hold.

    Attributes:
        excess: how far they reach out of the shape at the most [m].
        volume_ratio: their volume by that of the shape, sampled to about 1 %.
    """

    excess: float
    volume_ratio: float


def ssvs_of_shape(shape: Shape, name: str) -> tuple[Ssv, ...]:
    """Swept-sphere volumes that hold a shape.

    Sphere and capsule become a point and a line, exactly. A cylinder becomes the line of least volume around it, a
    box two triangles, or two for each layer of a thick one, an ellipsoid two. An elliptic capsule, whose ends are
    flat, becomes two triangles that fit its middle and an octagon around each end.

    Args:
        shape: in the frame of its link.
        name: of the volumes, numbered where there are several.
    """
    if isinstance(shape, Sphere):
        return volumes(np.array([shape.center]), shape.radius, name)
    if isinstance(shape, Capsule):
        return volumes(np.array([shape.p0, shape.p1]), shape.radius, name)
    if isinstance(shape, Cylinder):
        return volumes(*_around_cylinder(shape), name)
    if isinstance(shape, Box):
        return _around_box(shape, name)
    points = outline(shape)
    if isinstance(shape, Ellipsoid):
        return volumes(*_plate(points, int(np.argmin(np.ptp(points, axis=0)))), name)
    return _around_elliptic_capsule(points, shape, name)


def _around_cylinder(shape: Cylinder) -> tuple[np.ndarray, float]:
    """The core may be shorter than the cylinder: its balls then stand out at the side, but less at the ends."""
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    p0, p1 = np.array(shape.p0), np.array(shape.p1)
    half = float(np.linalg.norm(p1 - p0)) / 2
    middle, axis = (p0 + p1) / 2, rotation_of_z_onto(p1 - p0)[:, 2]

    def radius(short: float) -> float:
        return math.hypot(shape.radius, short)

    def volume(short: float) -> float:
        return swept_volume(np.array([[0.0, 0, 0], [0, 0, 2 * (half - short)]]), radius(short))

    short = float(minimize_scalar(volume, bounds=(0.0, half), method="bounded").x) if half > 0 else 0.0
    reach = (half - short) * axis
    return np.array([middle - reach, middle + reach]), radius(short) + TINY


def _around_box(shape: Box, name: str) -> tuple[Ssv, ...]:
    R, half = pin.rpy.rpyToMatrix(*shape.rpy), np.array(shape.size) / 2
    order = np.argsort(-half, kind="stable")
    layers = math.ceil(2 * half[order[2]] / THICK_BOX - 1e-9)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    out: list[Ssv] = []
    for k in range(layers):
        layer = corners.copy()
        layer[:, order[2]] = layer[:, order[2]] / layers + (2 * k + 1 - layers) / layers * half[order[2]]
        _, core, radius = fit_polygon(layer @ R.T + np.array(shape.center), RECTANGLE, R.T[order])
        out += volumes(core, radius, name if layers == 1 else f"{name}_layer{k + 1}")
    return tuple(out)


def _plate(points: np.ndarray, across: int) -> tuple[np.ndarray, float]:
    """A rectangle at right angles to an axis of the link, swept around points."""
    along = [k for k in range(3) if k != across]
    return fit_polygon(points, RECTANGLE, np.eye(3)[[*along, across]])[1:]


def _around_elliptic_capsule(points: np.ndarray, shape: EllipticCapsule, name: str) -> tuple[Ssv, ...]:
    """The middle as long as its plate's round ends stay within the shape's; the rest is left to the octagons."""
    low, high = float(points[:, 2].min()), float(points[:, 2].max())
    centre, half = (low + high) / 2, (high - low) / 2 - min(shape.a, shape.b)
    if half <= 0.0:
        return _octagons(points, low, high, name)
    middle = between(points, 2, centre - half, centre + half)
    return (
        *volumes(*_plate(middle, 0 if shape.b <= shape.a else 1), name),
        *_octagons(points, centre + half, high, f"{name}_top"),
        *_octagons(points, low, centre - half, f"{name}_bottom"),
    )


def _octagons(points: np.ndarray, low: float, high: float, name: str) -> tuple[Ssv, ...]:
    """Swept octagons around what lies between two heights, one or several on top of each other."""
    layers = math.ceil((high - low) / THICK_END)
    out: list[Ssv] = []
    for k in range(layers):
        a, b = (low + (high - low) * (k + s) / layers for s in (0, 1))
        _, core, radius = fit_polygon(between(points, 2, a, b), OCTAGON, np.eye(3))
        out += volumes(core, radius, name if layers == 1 else f"{name}_layer{k + 1}")
    return tuple(out)


def outline(shape: Shape) -> np.ndarray:
    """Corners (n, 3) of a polyhedron, at most 1 % larger, that holds an ellipsoid or elliptic capsule."""
    if isinstance(shape, Ellipsoid):
        b, a, c = shape.semi_axes
        return elliptic_capsule_points(a, b, c, 0.0) + np.array(shape.center)
    assert isinstance(shape, EllipticCapsule)
    return elliptic_capsule_points(shape.a, shape.b, shape.c, shape.l) + np.array(shape.top_center)


def between(points: np.ndarray, axis: int, low: float, high: float) -> np.ndarray:
    """Corners (m, 3) of what two planes across an axis leave of the convex hull of points (n, 3)."""
    from scipy.spatial import ConvexHull  # slow to import, and seldom needed

    edges = {tuple(sorted(e)) for t in ConvexHull(points).simplices for e in ((t[0], t[1]), (t[1], t[2]), (t[2], t[0]))}
    out = [points[(points[:, axis] >= low) & (points[:, axis] <= high)]]
    for cut in (low, high):
        for i, j in edges:
            a, b = points[i], points[j]
            if (a[axis] - cut) * (b[axis] - cut) < 0:
                out.append((a + (cut - a[axis]) / (b[axis] - a[axis]) * (b - a))[None])
    return np.vstack(out)


def excess(shape: Shape, ssvs: tuple[Ssv, ...]) -> float:
    """How far volumes reach out of a shape at the most [m].

    The distance from a convex shape is a convex function, so that it is largest on the balls around the vertices.
    """
    ball = circumscribed_sphere(2000)
    ball /= np.linalg.norm(ball, axis=1)[:, None]
    return float(max(signed_distances(shape, np.array(v) + s.radius * ball).max() for s in ssvs for v in s.vertices))


def enlargement(shape: Shape, ssvs: tuple[Ssv, ...]) -> Enlargement:
    """How much larger volumes are than the shape they were made for."""
    low = np.min([np.array(v) - s.radius for s in ssvs for v in s.vertices], axis=0)
    high = np.max([np.array(v) + s.radius for s in ssvs for v in s.vertices], axis=0)
    x = np.random.default_rng(0).uniform(low, high, (SAMPLES, 3))
    held, zero = np.zeros(SAMPLES, dtype=bool), np.zeros(SAMPLES)
    for s in ssvs:
        core = np.broadcast_to(np.array(s.vertices), (SAMPLES, len(s.vertices), 3))
        held |= distances("p" + s.type[0], x[:, None], zero, core, zero + s.radius).distance <= 0
    own = signed_distances(shape, x) <= 0
    return Enlargement(excess(shape, ssvs), float(held.sum() / max(own.sum(), 1)))


def signed_distances(shape: Shape, points: np.ndarray) -> np.ndarray:
    """Exact signed distance (n,) of points (n, 3) in the frame of the link from a shape."""
    if isinstance(shape, (Sphere, Capsule)):
        ends = [shape.center] if isinstance(shape, Sphere) else [shape.p0, shape.p1]
        core = np.broadcast_to(np.array(ends), (len(points), len(ends), 3))
        zero = np.zeros(len(points))
        return distances("p" + "pl"[core.shape[1] - 1], points[:, None], zero, core, zero + shape.radius).distance
    size, X = half_axes(shape)
    kind = KIND_NAMES.index(shape.kind)
    local = (points - X.translation) @ X.rotation
    return np.array([point_solid(kind, tuple(x), *size)[0] for x in local])
