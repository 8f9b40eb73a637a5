"""Capsules and boxes around link meshes.

A body is cut into slabs until its shapes protrude little. A slab gets a capsule, or a clearly smaller box; all mesh
points are enclosed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull, QhullError, cKDTree

from humanoid_control.collision.shapes import Box, Capsule, LinkShape, fibonacci_sphere
from humanoid_control.robots.description.urdf import UrdfTree
from humanoid_control.robots.guess.bodies import Bodies, bodies_of, vec3

OVERLAP = 0.004  # [m] of neighbouring slabs
CLOSE = 0.012  # [m] smaller excess is not cut further
MOST, MOST_SMALL, SMALL = 5, 2, 0.14  # shapes of a body; of a body below SMALL [m]
CUTS = (0.3, 0.4, 0.5, 0.6, 0.7)  # tried cuts along each box axis
TRIED = 3000  # points on which cuts are compared
PREFER_CAPSULE = 1.4  # tolerated volume of a capsule over the box
GROWTH = 1e-4  # [m] added for rounding to four decimals in files


@dataclass(frozen=True)
class BodyFit:
    """Shapes around one body.

    Attributes:
        outside_max: largest protrusion of shapes beyond meshes [m].
        outside_mean: mean protrusion [m].
        inside_max: largest protrusion of a mesh beyond the shapes [m].
    """

    link: str
    shapes: tuple[LinkShape, ...]
    outside_max: float
    outside_mean: float
    inside_max: float


def fit_bodies(bodies: Bodies, tell: Callable[[float, str], None] = lambda share, text: None) -> list[BodyFit]:
    """Fit shapes to all bodies with meshes; mirror images get mirrored shapes.

    Args:
        tell: called before each body with the finished share, 0 to 1, and its name.
    """
    found: dict[str, BodyFit] = {}
    for k, (body, points) in enumerate(bodies.points.items()):
        tell(k / len(bodies.points), body)
        twin = bodies.twins.get(body, body)
        if body in found:
            continue
        if twin == body or twin not in bodies.points:
            found[body] = _fit_body(body, points)
            continue
        fit = found[body] = _fit_body(body, np.vstack([points, bodies.image(twin, bodies.points[twin])]))
        images = [bodies.image_shape(body, s.shape) for s in fit.shapes if isinstance(s.shape, Capsule | Box)]
        found[twin] = replace(fit, link=twin, shapes=_named(twin, images))
    return [found[body] for body in bodies.points]


def fitted_links(tree: UrdfTree, fits: list[BodyFit]) -> set[str]:
    """Return the links enclosed by fits."""
    held = {fit.link for fit in fits}
    return {link for link, (body, _) in bodies_of(tree).items() if body in held}


# -------- One body


@dataclass(frozen=True)
class _Piece:
    points: np.ndarray
    axes: np.ndarray
    shape: Capsule | Box
    volume: float
    excess: float


def _fit_body(link: str, points: np.ndarray) -> BodyFit:
    near = cKDTree(points)
    most = MOST if np.ptp(points, axis=0).max() > SMALL else MOST_SMALL
    pieces = _pieces(points, near, most, CLOSE)
    outside, inside = _deviation(points, near, pieces)
    rows = _named(link, [p.shape for p in pieces])
    return BodyFit(link, rows, float(outside.max(initial=0.0)), float(outside.mean()) if len(outside) else 0.0, inside)


def _named(link: str, shapes: Sequence[Capsule | Box]) -> tuple[LinkShape, ...]:
    names = [f"{link}_fit" if k == 0 else f"{link}_fit{k + 1}" for k in range(len(shapes))]
    return tuple(LinkShape(n, link, s) for n, s in zip(names, shapes, strict=True))


def shapes_around(points: np.ndarray, surface: np.ndarray, most: int, close: float) -> list[Capsule | Box]:
    """Return at most `most` shapes that enclose points (n, 3) of a mesh.

    Args:
        surface: (m, 3) of the whole mesh.
        close: smaller excess is not cut further [m].
    """
    return [piece.shape for piece in _pieces(points, cKDTree(surface), most, close)]


def _pieces(points: np.ndarray, near: cKDTree, most: int, close: float) -> list[_Piece]:
    pieces = [_piece(points, near)]
    done: list[_Piece] = []
    while pieces and len(pieces) + len(done) < most:
        worst = pieces.pop(int(np.argmax([p.excess for p in pieces])))
        halves = _cut(worst, near) if worst.excess > close else None
        if halves is None:
            done.append(worst)
        else:
            pieces += halves
    return done + pieces


def _cut(piece: _Piece, near: cKDTree) -> list[_Piece] | None:
    """Split a piece where the parts have the smallest boxes; None if impossible."""
    local = piece.points @ piece.axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    best, least = None, np.inf
    some = local[:: max(1, len(local) // TRIED)]
    for k in range(3):
        for share in CUTS:
            at = low[k] + share * (high[k] - low[k])
            parts = [some[some[:, k] <= at + OVERLAP], some[some[:, k] >= at - OVERLAP]]
            if min(len(p) for p in parts) < 4 or max(len(p) for p in parts) == len(some):
                continue
            volume = sum(float(np.prod(np.ptp(p, axis=0))) for p in parts)
            if volume < least:
                best, least = (k, at), volume
    if best is None:
        return None
    k, at = best
    return [_piece(piece.points[p], near) for p in (local[:, k] <= at + OVERLAP, local[:, k] >= at - OVERLAP)]


def _piece(points: np.ndarray, near: cKDTree) -> _Piece:
    hull = _hull_points(points)
    axes, low, high = _box_axes(hull)
    half = (high - low) / 2 + GROWTH
    capsule, volume = _capsule(hull, axes)
    shape: Capsule | Box = capsule
    if volume > PREFER_CAPSULE * (box := float(np.prod(2 * half))):
        centre, rpy = (low + high) / 2 @ axes, pin.rpy.matrixToRpy(np.ascontiguousarray(axes.T))
        shape, volume = Box(vec3(centre), vec3(2 * half), vec3(rpy)), box
    excess = float(_stand_out(shape, [hull], near).max(initial=0.0))
    return _Piece(points, axes, shape, volume, excess)


def _hull_points(points: np.ndarray) -> np.ndarray:
    try:
        return points[ConvexHull(points).vertices]
    except QhullError:  # flat set of points
        return points


def _box_axes(points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return axes (rows) and bounds of a small box around points."""
    _, _, principal = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    best, least = np.eye(3), np.inf
    for start in (principal, np.eye(3)):
        for k in range(3):
            for angle in np.radians(np.arange(0.0, 90.0, 5.0 if start is principal else 90.0)):
                a, b = start[(k + 1) % 3], start[(k + 2) % 3]
                u = np.cos(angle) * a + np.sin(angle) * b
                axes = np.stack([u, np.cross(start[k], u), start[k]])
                volume = float(np.prod(np.ptp(points @ axes.T, axis=0) + GROWTH))
                if volume < 0.999 * least:
                    best, least = axes, volume
    if np.linalg.det(best) < 0:
        best = best * [[1.0], [1.0], [-1.0]]
    local = points @ best.T
    return best, local.min(axis=0), local.max(axis=0)


def _capsule(points: np.ndarray, axes: np.ndarray) -> tuple[Capsule, float]:
    """Return a small capsule around points, near one of three axes, and its volume."""
    from scipy.optimize import minimize  # slow import

    centre, size = (points.min(axis=0) + points.max(axis=0)) / 2, float(np.ptp(points, axis=0).max())
    best = min(range(3), key=lambda k: _around(points, axes[k], centre)[0])
    u, e1, e2 = axes[best], axes[(best + 1) % 3], axes[(best + 2) % 3]

    def around(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
        return _around(points, u + x[0] * e1 + x[1] * e2, centre + size * (x[2] * e1 + x[3] * e2))

    options = {"maxfev": 150, "initial_simplex": SIMPLEX}
    found = minimize(lambda x: around(x)[0], np.zeros(4), method="Nelder-Mead", options=options)
    volume, p0, p1, radius = around(found.x)
    return Capsule(vec3(p0), vec3(p1), round(radius + GROWTH, 5)), volume


def _around(points: np.ndarray, axis: np.ndarray, origin: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, float]:
    """Return the capsule around points with a given axis line: volume, ends, radius."""
    u = axis / np.linalg.norm(axis)
    p = points - origin
    along = p @ u
    away = np.einsum("ij,ij->i", p, p) - along**2
    radius = float(np.sqrt(max(away.max(), 0.0)))
    cap = np.sqrt(np.maximum(radius**2 - away, 0.0))
    low, high = float((along + cap).min()), float((along - cap).max())
    if low > high:  # a sphere, centre between
        low = high = (low + high) / 2
        radius = float(np.sqrt(((along - low) ** 2 + away).max()))
    return float(np.pi * radius**2 * (high - low + 4 / 3 * radius)), origin + low * u, origin + high * u, radius


SIMPLEX = np.vstack([np.zeros(4), np.diag([0.15, 0.15, 0.08, 0.08])])


# -------- Deviation of shapes from meshes


BALL = fibonacci_sphere(160)


def _surface(shape: Capsule | Box) -> np.ndarray:
    if isinstance(shape, Capsule):
        p0, p1 = np.array(shape.p0), np.array(shape.p1)
        axis = (p1 - p0) / max(float(np.linalg.norm(p1 - p0)), 1e-12)
        ends = [(p1 if up else p0) + shape.radius * BALL[(BALL @ axis >= 0) == up] for up in (True, False)]
        rim = BALL - np.outer(BALL @ axis, axis)
        rim = shape.radius * rim / np.linalg.norm(rim, axis=1)[:, None]
        at = np.linspace(0.0, 1.0, len(rim))[:, None]
        return np.vstack([*ends, p0 + at * (p1 - p0) + rim])
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 7)] * 3), axis=-1).reshape(-1, 3)
    grid = grid[np.abs(grid).max(axis=1) == 1] * np.array(shape.size) / 2
    return grid @ pin.rpy.rpyToMatrix(*shape.rpy).T + np.array(shape.center)


def _depth(shape: Capsule | Box, points: np.ndarray) -> np.ndarray:
    """Return signed distances (n,) of points, negative inside; outside boxes along face normals."""
    if isinstance(shape, Box):
        local = (points - np.array(shape.center)) @ pin.rpy.rpyToMatrix(*shape.rpy)
        return np.max(np.abs(local) - np.array(shape.size) / 2, axis=1)
    p0, u = np.array(shape.p0), np.array(shape.p1) - np.array(shape.p0)
    s = np.clip((points - p0) @ u / max(float(u @ u), 1e-300), 0.0, 1.0)
    return np.linalg.norm(points - p0 - s[:, None] * u, axis=1) - shape.radius


def _stand_out(shape: Capsule | Box, hulls: list[np.ndarray], near: cKDTree) -> np.ndarray:
    return _distances(_surface(shape), hulls, near)


def _distances(x: np.ndarray, hulls: list[np.ndarray], near: cKDTree) -> np.ndarray:
    """Return mesh distances (n,) of the points x outside all hulls."""
    for hull in hulls:
        try:
            planes = ConvexHull(hull).equations
        except QhullError:
            continue
        x = x[(x @ planes[:, :3].T + planes[:, 3]).max(axis=1) > 1e-9]
    return near.query(x)[0] if len(x) else np.zeros(0)


def _deviation(points: np.ndarray, near: cKDTree, pieces: list[_Piece]) -> tuple[np.ndarray, float]:
    """Return the protrusion of the joint surface (n,), and the largest of a mesh point [m]."""
    hulls = [_hull_points(p.points) for p in pieces]
    outside = []
    for k, piece in enumerate(pieces):
        x = _surface(piece.shape)
        others = [_depth(p.shape, x) for j, p in enumerate(pieces) if j != k]
        outside.append(_distances(x[np.min(others, axis=0) > 0] if others else x, hulls, near))
    inside = float(np.maximum(np.min([_depth(p.shape, points) for p in pieces], axis=0), 0.0).max())
    return np.concatenate(outside), inside
