"""A first set of swept-sphere volumes around given points: the vertices of a mesh, or a body's inertia ellipsoid.

It holds all points and is a start for an editor, not proven to be the smallest.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from humanoid_control.collision.ssv_enclose import Fit, fit_line, fit_point, fit_rectangle, fit_triangle
from humanoid_control.collision.ssv_segments import Ssv
from humanoid_control.errors import RobotError, UnknownNameError

WORTHWHILE = 0.9  # a volume with one more vertex must save a tenth
DIRECTIONS = 500  # points on an ellipsoid
FITS: dict[str, Callable[[np.ndarray], Fit]] = {
    "point": fit_point,
    "line": fit_line,
    "triangle": fit_triangle,
    "rectangle": fit_rectangle,
}


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
    from scipy.spatial import ConvexHull, QhullError  # slow to import, and seldom needed

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
    from scipy.spatial import ConvexHull  # slow to import, and seldom needed

    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    n = np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)
    return n / -ConvexHull(n).equations[:, 3].max()
