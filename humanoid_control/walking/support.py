"""Support of the stance soles: polygon, clipped zero-moment point, and foot wrenches.

Polygons are convex arrays (k, 2) of corners, counter-clockwise.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack

BOTH = -1  # both feet stand
CHANGES = 50  # load shares tried in each direction
EXACT = 1e-6  # [m]


# -------- Polygons


@kernel(allocates=True)
def convex_hull(points: np.ndarray) -> np.ndarray:
    """Return corners (k, 2) of the convex hull of points (m, 2) (Andrew's monotone chain)."""
    m = points.shape[0]
    order = np.arange(m)
    for i in range(1, m):  # insertion sort by x, then y
        k, j = order[i], i - 1
        while j >= 0 and (
            points[order[j], 0] > points[k, 0]
            or (points[order[j], 0] == points[k, 0] and points[order[j], 1] > points[k, 1])
        ):
            order[j + 1] = order[j]
            j -= 1
        order[j + 1] = k
    out, n = np.empty((2 * m + 1, 2)), 0
    # first the lower chain from left to right, then the upper chain back
    for chain in range(2):
        start = n
        for i in range(m):
            p = points[order[i if chain == 0 else m - 1 - i]]
            while n - start > 1:
                a, b = out[n - 2], out[n - 1]
                # keep b only if a, b, p turn left
                if (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]) > 0.0:
                    break
                n -= 1
            out[n] = p
            n += 1
        # the last point of a chain is the first of the next
        n -= 1
    return out[:n].copy()


@kernel(allocates=True)
def nearest_in_polygon(polygon: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the point (2,) of a polygon nearest to p (2,)."""
    k, outside, least = polygon.shape[0], False, np.inf
    best = p.copy()
    for i in range(k):
        a, b = polygon[i], polygon[(i + 1) % k]
        dx, dy, x, y = b[0] - a[0], b[1] - a[1], p[0] - a[0], p[1] - a[1]
        # counter-clockwise edges: a negative cross product means outside
        outside = outside or dx * y - dy * x < 0.0
        # projection on the edge, clipped to its ends
        s = min(max((x * dx + y * dy) / max(dx * dx + dy * dy, 1e-18), 0.0), 1.0)
        far = (x - s * dx) ** 2 + (y - s * dy) ** 2
        if far < least:
            least, best[0], best[1] = far, a[0] + s * dx, a[1] + s * dy
    return best if outside else p.copy()


@kernel(allocates=True)
def edge_distance(polygon: np.ndarray, p: np.ndarray) -> float:
    """Return the distance of p (2,) from the polygon edge: positive inside, negative outside [m]."""
    k, depth = polygon.shape[0], np.inf
    for i in range(k):
        a, b = polygon[i], polygon[(i + 1) % k]
        dx, dy = b[0] - a[0], b[1] - a[1]
        depth = min(depth, (dx * (p[1] - a[1]) - dy * (p[0] - a[0])) / np.hypot(dx, dy))
    # inside, the nearest edge line is exact; outside, corners count too
    if depth >= 0.0:
        return depth
    near = nearest_in_polygon(polygon, p)
    return -np.hypot(p[0] - near[0], p[1] - near[1])


# -------- Two soles


class Soles(NamedTuple):
    """Both soles and their planned poses.

    Attributes:
        lower: (2, 2) lower corners of the support rectangles, in sole frames [m].
        upper: (2, 2) upper corners [m].
        R: (2, 3, 3) rotations in the world.
        p: (2, 3) positions in the world [m].
    """

    lower: F2
    upper: F2
    middle: F2
    R: F3
    p: F2
    margin: float


@kernel(allocates=True)
def support_polygon(table: Table[Soles], swinging: int) -> np.ndarray:
    """Return corners (k, 2) of the hull of the stance soles, less the margin.

    Args:
        swinging: swing foot, or BOTH.
    """
    s = unpack(table, Soles)
    points, n = np.empty((8, 2)), 0
    for k in range(2):
        if k == swinging:
            continue
        x0, y0 = s.lower[k, 0] + s.margin, s.lower[k, 1] + s.margin
        x1, y1 = s.upper[k, 0] - s.margin, s.upper[k, 1] - s.margin
        for x, y in ((x0, y0), (x1, y0), (x1, y1), (x0, y1)):
            points[n, 0] = s.R[k, 0, 0] * x + s.R[k, 0, 1] * y + s.p[k, 0]
            points[n, 1] = s.R[k, 1, 0] * x + s.R[k, 1, 1] * y + s.p[k, 1]
            n += 1
    # one rectangle is convex already
    return points[:4].copy() if n == 4 else convex_hull(points)


@kernel
def _local(s: Soles, k: int, p: np.ndarray) -> tuple[float, float]:
    """Return a point (2,) of the world in a sole frame, clipped to the sole less its margin."""
    dx, dy = p[0] - s.p[k, 0], p[1] - s.p[k, 1]
    # R^T (p - p_sole) in the plane
    x = s.R[k, 0, 0] * dx + s.R[k, 1, 0] * dy
    y = s.R[k, 0, 1] * dx + s.R[k, 1, 1] * dy
    x = min(max(x, s.lower[k, 0] + s.margin), s.upper[k, 0] - s.margin)
    return x, min(max(y, s.lower[k, 1] + s.margin), s.upper[k, 1] - s.margin)


@kernel(allocates=True)
def _inside(s: Soles, k: int, p: np.ndarray) -> np.ndarray:
    """Return the world point (2,) of a sole, less the margin, nearest to p along the sole axes."""
    x, y = _local(s, k, p)
    R, at = s.R[k], s.p[k]
    return np.array([at[0] + R[0, 0] * x + R[0, 1] * y, at[1] + R[1, 0] * x + R[1, 1] * y])


@kernel(allocates=True)
def left_share(table: Table[Soles], swinging: int, zmp: np.ndarray) -> float:
    """Return the load share of the left foot, by the ZMP (2,) between both middles."""
    s = unpack(table, Soles)
    if swinging != BOTH:
        return 1.0 if swinging == 1 else 0.0
    # projection on the line from the right to the left middle, clipped to its ends
    a, b = _middle(s, 0), _middle(s, 1)
    d = a - b
    return min(max(((zmp[0] - b[0]) * d[0] + (zmp[1] - b[1]) * d[1]) / (d[0] ** 2 + d[1] ** 2), 0.0), 1.0)


@kernel(allocates=True)
def _middle(s: Soles, k: int) -> np.ndarray:
    x, y = s.middle[k, 0], s.middle[k, 1]
    R, at = s.R[k], s.p[k]
    return np.array([at[0] + R[0, 0] * x + R[0, 1] * y, at[1] + R[1, 0] * x + R[1, 1] * y])


@kernel(allocates=True)
def distribute(table: Table[Soles], swinging: int, zmp: np.ndarray, weight: float, out: np.ndarray) -> None:
    """Compute normal force and moments of both feet for a ZMP.

    In double support, the shares follow the line between the sole middles; the offset from the line is equal on both.
    Beyond a sole edge the other foot compensates, else the shares change.

    Args:
        swinging: swing foot, or BOTH.
        zmp: (2,) inside the support [m].
        weight: robot weight [N].
        out: (2, 3) result: force [N], moments about x and y of the sole frames [N m].
    """
    s = unpack(table, Soles)
    share = left_share(table, swinging, zmp)
    a, b = zmp.copy(), zmp.copy()
    if swinging == BOTH:
        first, second = _middle(s, 0), _middle(s, 1)
        rest = zmp - second - share * (first - second)
        share, a, b = _both(s, zmp, share, first + rest, second + rest)
    for k in range(2):
        x, y = _local(s, k, a if k == 0 else b)
        force = weight * (share if k == 0 else 1.0 - share)
        # a pressure point (x, y) has the moments M_x = y F, M_y = -x F
        out[k, 0], out[k, 1], out[k, 2] = force, y * force, -x * force


@kernel(allocates=True)
def _both(
    s: Soles, zmp: np.ndarray, left: float, first: np.ndarray, second: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the left share and pressure points of both feet with the mean zmp (2,), near the given ones."""
    least, share, left_point, right_point = np.inf, left, first, second
    for i in range(2 * CHANGES + 1):
        # search outward from the given share: left, left + d, left - d, ...
        size = ((i + 1) // 2) / CHANGES
        x = min(max(left + (size if i % 2 else -size), 0.0), 1.0)
        a, b = first, second
        for _ in range(4):
            # alternate projections: clip one foot, give the rest to the other
            a = _inside(s, 0, a)
            if x < 1.0:
                b = _inside(s, 1, (zmp - x * a) / (1.0 - x))
            if x > 0.0:
                a = _inside(s, 0, (zmp - (1.0 - x) * b) / x)
        missing = np.abs(x * a + (1.0 - x) * b - zmp).max()
        # keep the best share found, if none is exact
        if missing < least - 1e-9:
            least, share, left_point, right_point = missing, x, a, b
        if missing < EXACT:
            break
    return share, left_point, right_point


# -------- Feedback


class ZmpRequest(NamedTuple):
    """Input of the feedback in a tick.

    Attributes:
        xi: (2,) measured DCM [m].
        xi_ref: (2,) planned [m].
        zmp_ref: (2,) planned [m].
        integral: (2,) of the error, updated [m].
        most: bound of its components [m].
    """

    xi: F1
    xi_ref: F1
    zmp_ref: F1
    integral: F1
    most: float


@kernel(allocates=True)
def ask_for_zmp(
    table: Table[Soles], swinging: int, request: Table[ZmpRequest], gain: float, rate: float, weight: float
) -> tuple[np.ndarray, float, float, np.ndarray]:
    """Return the stabilising ZMP, p = p_ref + gain (xi - xi_ref) + integral.

    Args:
        swinging: swing foot, or BOTH.
        gain: gain of the error.
        rate: integral gain times tick.
        weight: robot weight [N].

    Returns:
        The point (2,) clipped to the support, the clipped distance, the distance from the support edge less the margin,
            all [m]; wrenches (2, 3) as in `distribute`.
    """
    r = unpack(request, ZmpRequest)
    polygon = support_polygon(table, swinging)
    error = r.xi - r.xi_ref
    wanted = r.zmp_ref + gain * error + r.integral
    inside = nearest_in_polygon(polygon, wanted)
    cut = np.hypot(wanted[0] - inside[0], wanted[1] - inside[1])
    # anti-windup: integrate only while the point is not clipped
    if cut < 1e-9:
        for i in range(2):
            r.integral[i] = min(max(r.integral[i] + rate * error[i], -r.most), r.most)
    wrenches = np.zeros((2, 3))
    distribute(table, swinging, inside, weight, wrenches)
    return inside, cut, edge_distance(polygon, inside), wrenches
