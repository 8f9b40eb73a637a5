"""A first set of swept-sphere volumes around given points: the vertices of a mesh, or a body's inertia ellipsoid.

Every fit holds all points: the radius is the largest distance of a point from the core, and the core is moved until
the volume is least (Nelder and Mead). It is a start for an editor, not proven to be the smallest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize
from scipy.spatial import ConvexHull, QhullError
from scipy.spatial.transform import Rotation

from humanoid_control.collision.ssv_segments import Ssv
from humanoid_control.errors import RobotError, UnknownNameError

SHAPES = ("point", "line", "triangle", "rectangle")
WORTHWHILE = 0.9  # a volume with one more vertex must save a tenth
TINY = 1e-12  # [m] what rounding may leave outside
RECTANGLE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
DIRECTIONS = 1000  # points on an ellipsoid
Fit = tuple[float, np.ndarray, float]  # volume [m^3], vertices of the core (1, 2, 3 or more, 3), radius [m]


def fit_ssv(points: np.ndarray, shape: str = "auto", name: str = "fit") -> tuple[Ssv, ...]:
    """The smallest volume found around points.

    Args:
        points: (n, 3) in the frame of the link [m]; only their convex hull counts.
        shape: 'point', 'line', 'triangle', 'rectangle' (two triangles), or 'auto': the simplest of which none with
            more vertices is a tenth smaller.
        name: of the volume; a rectangle's triangles are name_1 and name_2.

    Raises:
        UnknownNameError: another shape.
        RobotError: no points, or points that are not finite.
    """
    if shape not in (*SHAPES, "auto"):
        raise UnknownNameError("shape", shape, [*SHAPES, "auto"])
    p = np.asarray(points, dtype=float).reshape(-1, 3)
    if not len(p) or not np.isfinite(p).all():
        raise RobotError(f"'{name}' cannot be fitted: it needs at least one point, all finite")
    p = hull_points(p)
    best: Fit | None = None
    for kind in SHAPES if shape == "auto" else (shape,):
        found = _FITS[kind](p)
        if best is None or found[0] < WORTHWHILE * best[0]:
            best = found
    assert best is not None
    _, core, radius = best
    return volumes(core, radius, name)


def volumes(core: np.ndarray, radius: float, name: str) -> tuple[Ssv, ...]:
    """A core of one, two or three vertices, or of more, in order around a flat polygon, as volumes."""

    def one(rows: np.ndarray, label: str) -> Ssv:
        vertices = tuple((float(x), float(y), float(z)) for x, y, z in rows)
        return Ssv(label, ("point", "line", "triangle")[len(rows) - 1], float(radius), vertices)

    if len(core) < 4:
        return (one(core, name),)
    return tuple(one(core[[0, k, k + 1]], f"{name}_{k}") for k in range(1, len(core) - 1))


def hull_points(points: np.ndarray) -> np.ndarray:
    """The corners (m, 3) of the convex hull of points (n, 3); all of them where they lie in a plane."""
    if len(points) < 5:
        return points
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:
        return points


def inertia_points(mass: float, center: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """Points around the solid ellipsoid of uniform density that has this mass and inertia: what to fit a link by.

    Args:
        mass: [kg]. center: (3,) centre of mass [m].
        inertia: (3, 3) about the centre of mass [kg m^2].

    Raises:
        RobotError: no mass, or an inertia that no body has.
    """
    moments, R = np.linalg.eigh(np.asarray(inertia, dtype=float))
    squares = 2.5 * (moments.sum() - 2 * moments) / mass if mass > 0 else np.array([-1.0])
    if not (squares > -1e-9 * np.abs(squares).max()).all():
        raise RobotError("a link with this mass and inertia does not exist: draw its volumes by hand")
    return np.asarray(center) + (circumscribed_sphere() * np.sqrt(np.maximum(squares, 0.0))) @ R.T


def circumscribed_sphere(count: int = DIRECTIONS) -> np.ndarray:
    """Corners (count, 3) of a polyhedron that holds the unit ball, evenly spread."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    n = np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)
    return n / -ConvexHull(n).equations[:, 3].max()


def distances_from(points: np.ndarray, core: np.ndarray) -> np.ndarray:
    """Distance (n,) of points from a point, line or triangle (1 to 3, 3)."""
    p = points - core[0]
    if len(core) == 1:
        return np.sqrt((p * p).sum(1))
    if len(core) == 2:
        return np.sqrt(_squares_from_line(p, core[1] - core[0]))
    best = np.full(len(p), np.inf)
    for k in range(3):
        best = np.minimum(best, _squares_from_line(p - (core[k] - core[0]), core[(k + 1) % 3] - core[k]))
    D = (core[1:] - core[0]).T
    s = p @ np.linalg.pinv(D).T
    over = (s >= 0).all(1) & (s.sum(1) <= 1)
    c = p[over] - s[over] @ D.T
    best[over] = np.minimum(best[over], (c * c).sum(1))
    return np.sqrt(best)


def _squares_from_line(p: np.ndarray, u: np.ndarray) -> np.ndarray:
    s = np.clip(p @ u / max(float(u @ u), 1e-300), 0, 1)
    c = p - s[:, None] * u
    return (c * c).sum(1)


def swept_volume(core: np.ndarray, radius: float) -> float:
    """Volume [m^3] of a point, line or triangle (1 to 3, 3) swept by a sphere."""
    area = float(np.linalg.norm(np.cross(core[1] - core[0], core[2] - core[0]))) / 2 if len(core) == 3 else 0.0
    outline = float(np.linalg.norm(np.roll(core, -1, axis=0) - core, axis=1).sum())
    return _swept(area, outline, radius)


def _search(enclosing: Callable[[np.ndarray], Fit], starts: list[np.ndarray], size: float) -> Fit:
    """The least volume found from several starts.

    Args:
        enclosing: parameters -> volume, core and radius around all points.
        starts: parameters.
        size: how far a first step goes [m].
    """

    def descend(x: np.ndarray) -> np.ndarray:
        simplex = np.vstack([x, x + 0.1 * size * np.eye(len(x))])
        options = {"xatol": 1e-6 * size, "fatol": 1e-8 * size**3, "maxiter": 400 * len(x), "initial_simplex": simplex}
        return minimize(lambda y: enclosing(y)[0], x, method="Nelder-Mead", options=options).x

    # From its own result once more: the first search may have stopped where its simplex collapsed.
    found = [enclosing(descend(descend(x))) for x in starts]
    volume, core, radius = min(found, key=lambda f: f[0])
    return volume, core, radius + TINY


def _around(points: np.ndarray, vertices: int) -> Callable[[np.ndarray], Fit]:
    def enclosing(x: np.ndarray) -> Fit:
        core = x.reshape(vertices, 3)
        radius = float(distances_from(points, core).max())
        return swept_volume(core, radius), core, radius

    return enclosing


def _principal(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(middle, axes as rows with the longest first, half extents along them)."""
    _, _, axes = np.linalg.svd(points - points.mean(0), full_matrices=True)
    local = points @ axes.T
    low, high = local.min(0), local.max(0)
    order = np.argsort(low - high, kind="stable")
    axes = axes[order]
    return ((low + high) / 2)[order] @ axes, axes, ((high - low) / 2)[order]


def fit_point(points: np.ndarray) -> Fit:
    """A ball around points (n, 3)."""
    low, high = points.min(0), points.max(0)
    return _search(_around(points, 1), [(low + high) / 2], float((high - low).max()))


def fit_line(points: np.ndarray) -> Fit:
    """A line volume around points (n, 3)."""
    middle, axes, half = _principal(points)
    reaches = [max(half[k] - max(np.delete(half, k)), 0.0) * axes[k] for k in range(2)]
    return _search(_around(points, 2), [np.concatenate([middle - r, middle + r]) for r in reaches], 2 * half[0])


def fit_triangle(points: np.ndarray) -> Fit:
    """A triangle volume around points (n, 3), from triangles that lie in the plane of the long axes."""
    middle, axes, half = _principal(points)
    a, b = (max(half[k] - half[2], 0.1 * half[0]) * axes[k] for k in (0, 1))
    tips = [(a, b), (-a, b), (b, a), (-b, a)]
    starts = [np.concatenate([middle - tip, middle + tip + side, middle + tip - side]) for tip, side in tips]
    return _search(_around(points, 3), starts, 2 * half[0])


def fit_rectangle(points: np.ndarray) -> Fit:
    """A rectangle, four vertices in order, swept by a sphere around points (n, 3)."""
    return fit_polygon(points, RECTANGLE)


def fit_polygon(points: np.ndarray, polygon: np.ndarray, axes: np.ndarray | None = None) -> Fit:
    """A flat convex polygon, stretched along two axes, swept by a sphere around points (n, 3).

    Args:
        points: (n, 3).
        polygon: (m, 2) corners in order, for instance RECTANGLE, in -1..1.
        axes: (3, 3) rows: the polygon's two and its normal, all kept; None: the search turns them, too. With given
            axes the polygon stays in the middle of the points along both, so that what is symmetric stays so.
    """
    if axes is None:
        middle, start, half = _principal(points)
    else:
        local = points @ axes.T
        middle, start, half = (local.min(0) + local.max(0)) / 2 @ axes, axes, np.ptp(local, axis=0) / 2
    size = 2 * max(float(half.max()), 1e-9)

    def enclosing(x: np.ndarray) -> Fit:
        turned = start if axes is not None else start @ Rotation.from_rotvec(x[3:6] / size).as_matrix().T
        at = middle + x[2] * turned[2] + (x[6] * turned[0] + x[7] * turned[1] if axes is None else 0.0)
        corners = polygon * np.abs(x[:2])
        p = (points - at) @ turned.T
        radius = float(np.sqrt((_squares_from_polygon(p[:, :2], corners) + p[:, 2] ** 2).max()))
        return _swept(*_area_and_outline(corners), radius), at + corners @ turned[:2], radius

    x = np.concatenate([np.maximum(half[:2] - half[2], 0.0), np.zeros(1 if axes is not None else 6)])
    return _search(enclosing, [x], size)


def _squares_from_polygon(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Squared distance (n,) of points (n, 2) from a convex polygon (m, 2), zero inside."""
    u = np.roll(corners, -1, axis=0) - corners
    w = p[:, None] - corners
    inside = (u[:, 0] * w[..., 1] - u[:, 1] * w[..., 0] >= 0).all(1) | (
        u[:, 0] * w[..., 1] - u[:, 1] * w[..., 0] <= 0
    ).all(1)
    s = np.clip((w * u).sum(2) / np.maximum((u * u).sum(1), 1e-300), 0, 1)
    c = w - s[..., None] * u
    return np.where(inside, 0.0, (c * c).sum(2).min(1))


def _area_and_outline(corners: np.ndarray) -> tuple[float, float]:
    following = np.roll(corners, -1, axis=0)
    area = abs(float((corners[:, 0] * following[:, 1] - corners[:, 1] * following[:, 0]).sum())) / 2
    return area, float(np.linalg.norm(following - corners, axis=1).sum())


def _swept(area: float, outline: float, radius: float) -> float:
    return 2 * area * radius + np.pi / 2 * outline * radius**2 + 4 / 3 * np.pi * radius**3


_FITS: dict[str, Callable[[np.ndarray], Fit]] = {
    "point": fit_point,
    "line": fit_line,
    "triangle": fit_triangle,
    "rectangle": fit_rectangle,
}
