"""Fitting of swept-sphere volumes around points and solid shapes.

The radius is the largest distance from the core; the core minimises the volume (Nelder and Mead).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import elliptic_capsule_points, rotation_of_z_onto
from humanoid_control.collision.shapes import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    EllipticCapsule,
    Shape,
    Sphere,
    fibonacci_sphere,
)
from humanoid_control.collision.ssv.distance_kernels import inverse, point_line, point_triangle
from humanoid_control.collision.ssv.segments import Volume
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.numerics.vec3 import along, cross, dot, norm, row, sub

# -------- One kind of volume around points

TINY = 1e-12  # [m] allowance for rounding
RECTANGLE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
Fit = tuple[float, np.ndarray, float]  # volume [m^3], vertices of the core (1, 2, 3 or more, 3), radius [m]


@kernel
def farthest(points: np.ndarray, core: np.ndarray) -> float:
    """Return the largest distance [m] of points (n, 3) from a core (m, 3): point, line or flat convex polygon."""
    worst = 0.0
    for k in range(points.shape[0]):
        p = row(points, k)
        w = sub(p, row(core, 0))
        nearest = dot(w, w)
        if core.shape[0] == 2:
            u = sub(row(core, 1), row(core, 0))
            c = along(w, -point_line(w, u, inverse(dot(u, u))), u)
            nearest = dot(c, c)
        # A polygon is a fan of triangles about its first vertex.
        for t in range(1, core.shape[0] - 1):
            e0, e1 = sub(row(core, t), row(core, 0)), sub(row(core, t + 1), row(core, 0))
            nearest = min(nearest, point_triangle(w, e0, e1)[0])
        worst = max(worst, nearest)
    return worst**0.5


@kernel
def swept_volume(core: np.ndarray, radius: float) -> float:
    """Return the volume [m^3] of a swept core (m, 3)."""
    area, outline, count = 0.0, 0.0, core.shape[0]
    for k in range(count):
        outline += norm(sub(row(core, (k + 1) % count), row(core, k)))
        if 1 <= k < count - 1:
            area += 0.5 * norm(cross(sub(row(core, k), row(core, 0)), sub(row(core, k + 1), row(core, 0))))
    # Steiner's formula: plate on both sides, half cylinders along the outline, one ball at the corners.
    return 2.0 * area * radius + 0.5 * math.pi * outline * radius**2 + 4.0 / 3.0 * math.pi * radius**3


def _search(
    points: np.ndarray, core_of: Callable[[np.ndarray], np.ndarray], starts: list[np.ndarray], size: float
) -> Fit:
    """Return the least volume found from several starts."""

    from scipy.optimize import minimize  # slow to import, rarely used

    def volume(x: np.ndarray) -> float:
        core = core_of(x)
        return swept_volume(core, farthest(points, core))

    def descend(x: np.ndarray) -> np.ndarray:
        # The first simplex spans a tenth of the size along each parameter.
        simplex = np.vstack([x, x + 0.1 * size * np.eye(len(x))])
        options = {"xatol": 1e-5 * size, "fatol": 1e-7 * size**3, "maxiter": 150 * len(x), "initial_simplex": simplex}
        return minimize(volume, x, method="Nelder-Mead", options=options).x

    points = np.ascontiguousarray(points)
    # Restart from the result: the first search may have stopped at a collapsed simplex.
    core = core_of(min((descend(descend(x)) for x in starts), key=volume))
    radius = farthest(points, core) + TINY
    return swept_volume(core, radius), core, radius


def _principal(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (middle, axes as rows with the longest first, half extents along them)."""
    _, _, axes = np.linalg.svd(points - points.mean(0), full_matrices=True)
    local = points @ axes.T
    low, high = local.min(0), local.max(0)
    # Longest extent first.
    order = np.argsort(low - high, kind="stable")
    axes = axes[order]
    return ((low + high) / 2)[order] @ axes, axes, ((high - low) / 2)[order]


def fit_point(points: np.ndarray) -> Fit:
    """Fit a ball around points (n, 3)."""
    low, high = points.min(0), points.max(0)
    return _search(points, lambda x: x.reshape(1, 3), [(low + high) / 2], float((high - low).max()))


def fit_line(points: np.ndarray) -> Fit:
    """Fit a line volume around points (n, 3)."""
    middle, axes, half = _principal(points)
    # Cores along the two longest axes, shortened by the radius.
    reaches = [max(half[k] - max(np.delete(half, k)), 0.0) * axes[k] for k in range(2)]
    starts = [np.concatenate([middle - r, middle + r]) for r in reaches]
    return _search(points, lambda x: x.reshape(2, 3), starts, 2 * half[0])


def fit_triangle(points: np.ndarray) -> Fit:
    """Fit a triangle volume around points (n, 3), from triangles in the plane of the long axes."""
    middle, axes, half = _principal(points)
    a, b = (max(half[k] - half[2], 0.1 * half[0]) * axes[k] for k in (0, 1))
    tips = [(a, b), (-a, b), (b, a), (-b, a)]
    starts = [np.concatenate([middle - tip, middle + tip + side, middle + tip - side]) for tip, side in tips]
    return _search(points, lambda x: x.reshape(3, 3), starts, 2 * half[0])


def fit_rectangle(points: np.ndarray) -> Fit:
    """Fit a swept rectangle around points (n, 3)."""
    return fit_polygon(points, RECTANGLE)


def fit_polygon(points: np.ndarray, polygon: np.ndarray, axes: np.ndarray | None = None) -> Fit:
    """Fit a swept flat convex polygon, stretched along two axes.

    Args:
        points: (n, 3) [m].
        polygon: corners in order (m, 2), in -1..1.
        axes: fixed rows: two axes and the normal (3, 3), with the polygon centred; None: free.
    """
    from scipy.spatial.transform import Rotation  # slow to import, rarely used

    if axes is None:
        middle, start, half = _principal(points)
    else:
        local = points @ axes.T
        middle, start, half = (local.min(0) + local.max(0)) / 2 @ axes, axes, np.ptp(local, axis=0) / 2
    size = 2 * max(float(half.max()), TINY)

    def core_of(x: np.ndarray) -> np.ndarray:
        turned = start if axes is not None else start @ Rotation.from_rotvec(x[3:6] / size).as_matrix().T
        at = middle + x[2] * turned[2] + (x[6] * turned[0] + x[7] * turned[1] if axes is None else 0.0)
        return at + (polygon * np.abs(x[:2])) @ turned[:2]

    # Start: the plate of the extents without the radius at its rim.
    x = np.concatenate([np.maximum(half[:2] - half[2], 0.0), np.zeros(1 if axes is not None else 6)])
    return _search(points, core_of, [x], size)


# -------- Volumes around points

WORTHWHILE = 0.9  # a volume with one more vertex must be a tenth smaller
DIRECTIONS = 500  # points on an ellipsoid
FITS: dict[str, Callable[[np.ndarray], Fit]] = {
    "point": fit_point,
    "line": fit_line,
    "triangle": fit_triangle,
    "rectangle": fit_rectangle,
}


def fit_volumes(points: np.ndarray, shape: str = "auto", name: str = "fit") -> tuple[Volume, ...]:
    """Return the smallest volume found around points.

    Args:
        points: in the link frame (n, 3) [m].
        shape: 'point', 'line', 'triangle', 'rectangle' (two triangles), or 'auto': the simplest unless more vertices
            save a tenth.
        name: a rectangle's triangles get name_1 and name_2.

    Raises:
        UnknownNameError: if the shape is unknown.
        RobotError: if there are no points or non-finite ones.
    """
    if shape not in (*FITS, "auto"):
        raise UnknownNameError("shape", shape, [*FITS, "auto"])
    p = np.asarray(points, dtype=float).reshape(-1, 3)
    if not len(p) or not np.isfinite(p).all():
        raise RobotError(f"'{name}' cannot be fitted: it needs at least one point, all finite")
    p = hull_points(p)
    best: Fit | None = None
    for kind in FITS if shape == "auto" else (shape,):
        found = FITS[kind](p)
        if best is None or found[0] < WORTHWHILE * best[0]:
            best = found
    assert best is not None
    _, core, radius = best
    return core_volumes(core, radius, name)


def core_volumes(core: np.ndarray, radius: float, name: str) -> tuple[Volume, ...]:
    """Convert a core of one to three vertices, or a flat polygon in order, to volumes."""

    def one(rows: np.ndarray, label: str) -> Volume:
        vertices = tuple((float(x), float(y), float(z)) for x, y, z in rows)
        return Volume(label, ("point", "line", "triangle")[len(rows) - 1], float(radius), vertices)

    if len(core) < 4:
        return (one(core, name),)
    return tuple(one(core[[0, k, k + 1]], f"{name}_{k}") for k in range(1, len(core) - 1))


def hull_points(points: np.ndarray) -> np.ndarray:
    """Return the corners (m, 3) of the convex hull; all points if coplanar."""
    from scipy.spatial import ConvexHull, QhullError  # slow to import, rarely used

    if len(points) < 5:
        return points
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:
        return points


def inertia_points(mass: float, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Return points around the uniform ellipsoid with this mass and inertia.

    Args:
        center: (3,) [m].
        inertia: about the centre (3, 3) [kg m^2].

    Raises:
        RobotError: if no body has this mass and inertia.
    """
    moments, R = np.linalg.eigh(np.asarray(inertia, dtype=float))
    # Uniform ellipsoid: I_x = m (b^2 + c^2) / 5, solved for the squared half axes.
    squares = 2.5 * (moments.sum() - 2 * moments) / mass if mass > 0 else np.array([-1.0])
    if not (squares > -1e-9 * np.abs(squares).max()).all():
        raise RobotError("a link with this mass and inertia is physically impossible: draw its volumes by hand")
    return np.asarray(center) + (circumscribed_sphere() * np.sqrt(np.maximum(squares, 0.0))) @ R.T


def circumscribed_sphere(count: int = DIRECTIONS) -> np.ndarray:
    """Return the corners (count, 3) of an even polyhedron around the unit ball."""
    from scipy.spatial import ConvexHull  # slow to import, rarely used

    n = fibonacci_sphere(count)
    return n / -ConvexHull(n).equations[:, 3].max()


# -------- Volumes that hold a shape

# [m] thicker boxes, or ends of elliptic capsules, are cut into layers: thin layers protrude less.
THICK_BOX, THICK_END = 0.14, 0.2
OCTAGON = np.array([[math.cos(t), math.sin(t)] for t in (np.arange(8) + 0.5) * math.pi / 4])


def volumes_of_shape(shape: Shape, name: str) -> tuple[Volume, ...]:
    """Return swept-sphere volumes that contain a shape.

    Sphere and capsule are exact. A cylinder becomes a line, a box two triangles a layer, an ellipsoid two triangles, an
    elliptic capsule two triangles and an octagon around each flat end.
    """
    if isinstance(shape, Sphere):
        return core_volumes(np.array([shape.center]), shape.radius, name)
    if isinstance(shape, Capsule):
        return core_volumes(np.array([shape.p0, shape.p1]), shape.radius, name)
    if isinstance(shape, Cylinder):
        return core_volumes(*_around_cylinder(shape), name)
    if isinstance(shape, Box):
        return _around_box(shape, name)
    points = outline(shape)
    if isinstance(shape, Ellipsoid):
        return core_volumes(*_plate(points, int(np.argmin(np.ptp(points, axis=0)))), name)
    return _around_elliptic_capsule(points, shape, name)


def _around_cylinder(shape: Cylinder) -> tuple[np.ndarray, float]:
    """Fit a line, possibly shorter than the cylinder."""
    from scipy.optimize import minimize_scalar  # slow to import, rarely used

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


def _around_box(shape: Box, name: str) -> tuple[Volume, ...]:
    R, half = pin.rpy.rpyToMatrix(*shape.rpy), np.array(shape.size) / 2
    order = np.argsort(-half, kind="stable")
    layers = math.ceil(2 * half[order[2]] / THICK_BOX - 1e-9)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    out: list[Volume] = []
    for k in range(layers):
        layer = corners.copy()
        layer[:, order[2]] = layer[:, order[2]] / layers + (2 * k + 1 - layers) / layers * half[order[2]]
        _, core, radius = fit_polygon(layer @ R.T + np.array(shape.center), RECTANGLE, R.T[order])
        out += core_volumes(core, radius, name if layers == 1 else f"{name}_layer{k + 1}")
    return tuple(out)


def _plate(points: np.ndarray, across: int) -> tuple[np.ndarray, float]:
    """Fit a swept rectangle orthogonal to an axis."""
    along = [k for k in range(3) if k != across]
    return fit_polygon(points, RECTANGLE, np.eye(3)[[*along, across]])[1:]


def _around_elliptic_capsule(points: np.ndarray, shape: EllipticCapsule, name: str) -> tuple[Volume, ...]:
    """Fit a plate with rounded ends inside the shape, and octagons at the ends."""
    low, high = float(points[:, 2].min()), float(points[:, 2].max())
    centre, half = (low + high) / 2, (high - low) / 2 - min(shape.a, shape.b)
    if half <= 0.0:
        return _octagons(points, low, high, name)
    middle = between(points, 2, centre - half, centre + half)
    return (
        *core_volumes(*_plate(middle, 0 if shape.b <= shape.a else 1), name),
        *_octagons(points, centre + half, high, f"{name}_top"),
        *_octagons(points, low, centre - half, f"{name}_bottom"),
    )


def _octagons(points: np.ndarray, low: float, high: float, name: str) -> tuple[Volume, ...]:
    """Fit swept octagons between two heights, in layers."""
    layers = math.ceil((high - low) / THICK_END)
    out: list[Volume] = []
    for k in range(layers):
        a, b = (low + (high - low) * (k + s) / layers for s in (0, 1))
        _, core, radius = fit_polygon(between(points, 2, a, b), OCTAGON, np.eye(3))
        out += core_volumes(core, radius, name if layers == 1 else f"{name}_layer{k + 1}")
    return tuple(out)


def outline(shape: Shape) -> np.ndarray:
    """Return the corners (n, 3) of a polyhedron, at most 1 % larger, around a shape."""
    if isinstance(shape, Ellipsoid):
        b, a, c = shape.semi_axes
        return elliptic_capsule_points(a, b, c, 0.0) + np.array(shape.center)
    assert isinstance(shape, EllipticCapsule)
    return elliptic_capsule_points(shape.a, shape.b, shape.c, shape.l) + np.array(shape.top_center)


def between(points: np.ndarray, axis: int, low: float, high: float) -> np.ndarray:
    """Return the corners (m, 3) of the convex hull of points (n, 3) between two planes."""
    from scipy.spatial import ConvexHull  # slow to import, rarely used

    edges = {tuple(sorted(e)) for t in ConvexHull(points).simplices for e in ((t[0], t[1]), (t[1], t[2]), (t[2], t[0]))}
    out = [points[(points[:, axis] >= low) & (points[:, axis] <= high)]]
    for cut in (low, high):
        for i, j in edges:
            a, b = points[i], points[j]
            if (a[axis] - cut) * (b[axis] - cut) < 0:
                out.append((a + (cut - a[axis]) / (b[axis] - a[axis]) * (b - a))[None])
    return np.vstack(out)
