"""The smallest swept-sphere volume of one kind around points, as far as a search finds it.

The radius is the largest distance of a point from the core, so every try holds all points; the core is moved until
the volume is least (Nelder and Mead).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from humanoid_control.collision.jit import along, cross, dot, kernel, norm, row, sub
from humanoid_control.collision.ssv_lines import inverse, point_line
from humanoid_control.collision.ssv_triangles import point_triangle

TINY = 1e-12  # [m] what rounding may leave outside
RECTANGLE = np.array([[-1.0, -1.0], [1.0, -1.0], [1.0, 1.0], [-1.0, 1.0]])
Fit = tuple[float, np.ndarray, float]  # volume [m^3], vertices of the core (1, 2, 3 or more, 3), radius [m]


@kernel
def farthest(points: np.ndarray, core: np.ndarray) -> float:
    """Largest distance of points (n, 3) from a point, line, triangle or flat convex polygon (m, 3) [m]."""
    worst = 0.0
    for k in range(points.shape[0]):
        p = row(points, k)
        w = sub(p, row(core, 0))
        nearest = dot(w, w)
        if core.shape[0] == 2:
            u = sub(row(core, 1), row(core, 0))
            c = along(w, -point_line(w, u, inverse(dot(u, u))), u)
            nearest = dot(c, c)
        for t in range(1, core.shape[0] - 1):
            e0, e1 = sub(row(core, t), row(core, 0)), sub(row(core, t + 1), row(core, 0))
            nearest = min(nearest, point_triangle(w, e0, e1)[0])
        worst = max(worst, nearest)
    return worst**0.5


@kernel
def swept_volume(core: np.ndarray, radius: float) -> float:
    """Volume [m^3] of a point, line, triangle or flat convex polygon (m, 3) swept by a sphere."""
    area, outline, count = 0.0, 0.0, core.shape[0]
    for k in range(count):
        outline += norm(sub(row(core, (k + 1) % count), row(core, k)))
        if 1 <= k < count - 1:
            area += 0.5 * norm(cross(sub(row(core, k), row(core, 0)), sub(row(core, k + 1), row(core, 0))))
    return 2.0 * area * radius + 0.5 * math.pi * outline * radius**2 + 4.0 / 3.0 * math.pi * radius**3


def _search(
    points: np.ndarray, core_of: Callable[[np.ndarray], np.ndarray], starts: list[np.ndarray], size: float
) -> Fit:
    """The least volume found from several starts.

    Args:
        points: (n, 3) to be held.
        core_of: parameters -> core (m, 3).
        starts: parameters.
        size: of what the points fill [m]; a first step goes a tenth of it.
    """

    from scipy.optimize import minimize  # slow to import, and seldom needed

    def volume(x: np.ndarray) -> float:
        core = core_of(x)
        return swept_volume(core, farthest(points, core))

    def descend(x: np.ndarray) -> np.ndarray:
        simplex = np.vstack([x, x + 0.1 * size * np.eye(len(x))])
        options = {"xatol": 1e-5 * size, "fatol": 1e-7 * size**3, "maxiter": 150 * len(x), "initial_simplex": simplex}
        return minimize(volume, x, method="Nelder-Mead", options=options).x

    points = np.ascontiguousarray(points)
    # From its own result once more: the first search may have stopped where its simplex collapsed.
    core = core_of(min((descend(descend(x)) for x in starts), key=volume))
    radius = farthest(points, core) + TINY
    return swept_volume(core, radius), core, radius


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
    return _search(points, lambda x: x.reshape(1, 3), [(low + high) / 2], float((high - low).max()))


def fit_line(points: np.ndarray) -> Fit:
    """A line volume around points (n, 3)."""
    middle, axes, half = _principal(points)
    reaches = [max(half[k] - max(np.delete(half, k)), 0.0) * axes[k] for k in range(2)]
    starts = [np.concatenate([middle - r, middle + r]) for r in reaches]
    return _search(points, lambda x: x.reshape(2, 3), starts, 2 * half[0])


def fit_triangle(points: np.ndarray) -> Fit:
    """A triangle volume around points (n, 3), from triangles that lie in the plane of the long axes."""
    middle, axes, half = _principal(points)
    a, b = (max(half[k] - half[2], 0.1 * half[0]) * axes[k] for k in (0, 1))
    tips = [(a, b), (-a, b), (b, a), (-b, a)]
    starts = [np.concatenate([middle - tip, middle + tip + side, middle + tip - side]) for tip, side in tips]
    return _search(points, lambda x: x.reshape(3, 3), starts, 2 * half[0])


def fit_rectangle(points: np.ndarray) -> Fit:
    """A rectangle, four vertices in order, swept by a sphere around points (n, 3)."""
    return fit_polygon(points, RECTANGLE)


def fit_polygon(points: np.ndarray, polygon: np.ndarray, axes: np.ndarray | None = None) -> Fit:
    """A flat convex polygon, stretched along two axes, swept by a sphere around points (n, 3).

    Args:
        points: (n, 3).
        polygon: (m, 2) corners in order, in -1..1, for instance RECTANGLE.
        axes: (3, 3) rows: the polygon's two and its normal, all kept; None: the search turns them, too. With given
            axes the polygon stays in the middle of the points along both, so that what is symmetric stays so.
    """
    from scipy.spatial.transform import Rotation  # slow to import, and seldom needed

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

    x = np.concatenate([np.maximum(half[:2] - half[2], 0.0), np.zeros(1 if axes is not None else 6)])
    return _search(points, core_of, [x], size)
