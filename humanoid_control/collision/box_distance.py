"""Signed distance of two boxes in closed form: by separating axes for overlap, by active bounds otherwise.

Coordinates are those of the first box. The second box has the centre t and the axes C (columns). Points are x with
|x_i| <= a_i and t + C y with |y_j| <= b_j; v = t + C y - x leads from one to the other. A segment (core of a capsule)
is a box without width.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.numerics.vec3 import Vec, add, along, dot, mul, norm, rotate, sub

NEAR = 1e-3  # [m] below this distance, round-off in v affects the normal
FLAT = 1e-14  # sine of the angle below which an edge lies along a face
PARALLEL = 1e-6  # sine below which two edges are parallel: their cross product has lost too many digits
STEPS = 16
CLIMBS = 8
SETTLED = 1e-12  # [m] smallest gain of the gap that counts as progress
EXACT = 1e-14  # gap between the bounds of a distance, relative to the size of the problem


class TwoBoxes(NamedTuple):
    """Two boxes, or a box and a segment.

    Attributes:
        a: half sides of the first box [m]; (0, 0, h) for a segment.
        t: centre of the second box, first frame [m].
        c0: first axis of the second box; c1 and c2 are the others.
    """

    a: Vec
    b: Vec
    t: Vec
    c0: Vec
    c1: Vec
    c2: Vec


@inlined
def two_boxes(a: Vec, R1: np.ndarray, p1: Vec, b: Vec, R2: np.ndarray, p2: Vec) -> TwoBoxes:
    """Build two boxes from half sides, rotations (3, 3) and centres in the world."""
    x, y, z = p2[0] - p1[0], p2[1] - p1[1], p2[2] - p1[2]
    u0, u1, u2 = (R1[0, 0], R1[1, 0], R1[2, 0]), (R1[0, 1], R1[1, 1], R1[2, 1]), (R1[0, 2], R1[1, 2], R1[2, 2])
    w0, w1, w2 = (R2[0, 0], R2[1, 0], R2[2, 0]), (R2[0, 1], R2[1, 1], R2[2, 1]), (R2[0, 2], R2[1, 2], R2[2, 2])
    t = (dot(u0, (x, y, z)), dot(u1, (x, y, z)), dot(u2, (x, y, z)))
    c0 = (dot(u0, w0), dot(u1, w0), dot(u2, w0))
    c1 = (dot(u0, w1), dot(u1, w1), dot(u2, w1))
    c2 = (dot(u0, w2), dot(u1, w2), dot(u2, w2))
    return TwoBoxes(a, b, t, c0, c1, c2)


@inlined
def _axes_of(boxes: TwoBoxes, v: Vec) -> Vec:
    """Return C^T v."""
    return (dot(boxes.c0, v), dot(boxes.c1, v), dot(boxes.c2, v))


@inlined
def _point(boxes: TwoBoxes, y: Vec) -> Vec:
    """Return t + C y."""
    return along(along(along(boxes.t, y[0], boxes.c0), y[1], boxes.c1), y[2], boxes.c2)


# -------- Separating axes


@inlined
def _reach(half: Vec, n: Vec) -> float:
    """Return the extent of a box along n."""
    return half[0] * abs(n[0]) + half[1] * abs(n[1]) + half[2] * abs(n[2])


@inlined
def _gap(boxes: TwoBoxes, n: Vec) -> float:
    """Return the gap along a unit vector n."""
    return dot(boxes.t, n) - _reach(boxes.a, n) - _reach(boxes.b, _axes_of(boxes, n))


@inlined
def _edge_gap(boxes: TwoBoxes, best: float, n: Vec, c: Vec, which: int) -> tuple:
    """Return the better (gap, n) of the best axis so far and an edge pair.

    The edges are `which` of the first box and one along c of the second.
    """
    # Cross product of the axis `which` of the first box and c.
    u = (0.0, -c[2], c[1]) if which == 0 else (c[2], 0.0, -c[0]) if which == 1 else (-c[1], c[0], 0.0)
    m2 = dot(u, u)
    if m2 < PARALLEL * PARALLEL:
        return best, n
    m, lead = 1.0 / math.sqrt(m2), dot(boxes.t, u)
    gap = (abs(lead) - _reach(boxes.a, u) - _reach(boxes.b, _axes_of(boxes, u))) * m
    # prefer a face axis of equal quality: its normal is exact
    if gap > best + 1e-12:
        return gap, mul(m if lead >= 0.0 else -m, u)
    return best, n


@inlined
def _face_gap(best: float, n: Vec, gap: float, lead: float, axis: Vec) -> tuple:
    """Return the better (gap, n) of the best axis so far and a face axis with the centre distance `lead`."""
    if gap > best:
        return gap, mul(math.copysign(1.0, lead), axis)
    return best, n


@kernel
def widest_gap(boxes: TwoBoxes) -> tuple:
    """Return (d, n): the widest gap over the axes of faces and edge pairs.

    It is the signed distance for d <= 0 (the Minkowski difference has no other faces), otherwise a lower bound.
    """
    a, b, t, c0, c1, c2 = boxes
    s = _axes_of(boxes, t)  # centre of the first box in the frame of the second one, mirrored
    best, n = -np.inf, (1.0, 0.0, 0.0)
    # Faces of the first box, then of the second one, then the nine edge pairs.
    gap = abs(t[0]) - a[0] - b[0] * abs(c0[0]) - b[1] * abs(c1[0]) - b[2] * abs(c2[0])
    best, n = _face_gap(best, n, gap, t[0], (1.0, 0.0, 0.0))
    gap = abs(t[1]) - a[1] - b[0] * abs(c0[1]) - b[1] * abs(c1[1]) - b[2] * abs(c2[1])
    best, n = _face_gap(best, n, gap, t[1], (0.0, 1.0, 0.0))
    gap = abs(t[2]) - a[2] - b[0] * abs(c0[2]) - b[1] * abs(c1[2]) - b[2] * abs(c2[2])
    best, n = _face_gap(best, n, gap, t[2], (0.0, 0.0, 1.0))
    if b[0] == 0.0 and b[1] == 0.0:  # a segment has one edge, and no face
        for which in range(3):
            best, n = _edge_gap(boxes, best, n, c2, which)
        return best, n
    best, n = _face_gap(best, n, abs(s[0]) - b[0] - _reach(a, c0), s[0], c0)
    best, n = _face_gap(best, n, abs(s[1]) - b[1] - _reach(a, c1), s[1], c1)
    best, n = _face_gap(best, n, abs(s[2]) - b[2] - _reach(a, c2), s[2], c2)
    for which in range(3):
        best, n = _edge_gap(boxes, best, n, c0, which)
        best, n = _edge_gap(boxes, best, n, c1, which)
        best, n = _edge_gap(boxes, best, n, c2, which)
    return best, n


# -------- Boxes that are apart


@inlined
def _pinned(z: float, half: float) -> float:
    """Return -1 or 1 at that bound, 0 for a free coordinate."""
    at = half * (1.0 - 1e-14)  # a coordinate at its bound stays there in spite of round-off
    return 1.0 if z >= at else (-1.0 if z <= -at else 0.0)


@inlined
def _clipped(x: Vec, half: Vec) -> Vec:
    return (
        min(max(x[0], -half[0]), half[0]),
        min(max(x[1], -half[1]), half[1]),
        min(max(x[2], -half[2]), half[2]),
    )


@inlined
def _held(k: Vec, half: Vec, y: Vec) -> Vec:
    """Replace pinned coordinates by their bounds."""
    return (
        k[0] * half[0] if k[0] != 0.0 else y[0],
        k[1] * half[1] if k[1] != 0.0 else y[1],
        k[2] * half[2] if k[2] != 0.0 else y[2],
    )


@inlined
def _masked(k: Vec, v: Vec) -> Vec:
    return (
        v[0] if k[0] != 0.0 else 0.0,
        v[1] if k[1] != 0.0 else 0.0,
        v[2] if k[2] != 0.0 else 0.0,
    )


@inlined
def _nearest_of(boxes: TwoBoxes, i: Vec, j: Vec, y: Vec) -> tuple:
    """Return (ok, y): free coordinates of y that minimise |v|; False if three are free.

    Args:
        i: pinned coordinates of the first box, signed.
        j: pinned coordinates of the second box, signed.
        y: coordinates of the second box, kept where they have no influence.
    """
    free = (j[0] == 0.0) + (j[1] == 0.0) + (j[2] == 0.0)
    if free == 0:
        return True, y
    if free == 3:
        return False, y
    # v vanishes along free coordinates of the first box, so only its pinned ones count
    rest = _masked(i, sub(_point(boxes, y), _held(i, boxes.a, (0.0, 0.0, 0.0))))
    e0, e1, e2 = _masked(i, boxes.c0), _masked(i, boxes.c1), _masked(i, boxes.c2)
    # Least squares in one or two unknowns; a vanishing determinant means parallel edges: keep one coordinate.
    if free == 1:
        e = e0 if j[0] == 0.0 else (e1 if j[1] == 0.0 else e2)
        ee = dot(e, e)
        step = -dot(e, rest) / ee if ee > FLAT * FLAT else 0.0
        if j[0] == 0.0:
            return True, (y[0] + step, y[1], y[2])
        if j[1] == 0.0:
            return True, (y[0], y[1] + step, y[2])
        return True, (y[0], y[1], y[2] + step)
    e, f = (e1, e2) if j[0] != 0.0 else ((e0, e2) if j[1] != 0.0 else (e0, e1))
    ee, ff, ef, er, fr = dot(e, e), dot(f, f), dot(e, f), -dot(e, rest), -dot(f, rest)
    det = ee * ff - ef * ef
    if det > FLAT * FLAT:
        g, h = (er * ff - fr * ef) / det, (fr * ee - er * ef) / det
    elif ee >= ff:
        g, h = er / ee if ee > FLAT * FLAT else 0.0, 0.0
    else:
        g, h = 0.0, fr / ff if ff > FLAT * FLAT else 0.0
    if j[0] != 0.0:
        return True, (y[0], y[1] + g, y[2] + h)
    if j[1] != 0.0:
        return True, (y[0] + g, y[1], y[2] + h)
    return True, (y[0] + g, y[1] + h, y[2])


@kernel
def nearest_points(boxes: TwoBoxes, n: Vec) -> tuple:
    """Return the nearest points of two separated boxes, from a separating axis n.

    |v|^2 is minimal if each coordinate is at the bound towards which v pushes it, or free without push. The active set
    is updated from a guess (primal-dual active sets, Hintermueller, Ito and Kunisch 2002). The gap along v proves
    optimality.

    Returns:
        (ok, d, n, x): x on the first box, x + d n on the second; ok if proven.
    """
    a, b, t = boxes.a, boxes.b, boxes.t
    c = _axes_of(boxes, n)
    # First guess: the active set of the separating axis; a segment has no width along its first two axes.
    i = (_pinned(n[0], FLAT), _pinned(n[1], FLAT), _pinned(n[2], FLAT))
    j = (
        _pinned(-c[0], FLAT) if b[0] > 0.0 else 1.0,
        _pinned(-c[1], FLAT) if b[1] > 0.0 else 1.0,
        _pinned(-c[2], FLAT) if b[2] > 0.0 else 1.0,
    )
    y = (0.0, 0.0, 0.0)
    inside, x, d, proved = y, y, 0.0, False
    size = norm(t) + a[0] + a[1] + a[2] + b[0] + b[1] + b[2]
    for _ in range(STEPS):
        ok, y = _nearest_of(boxes, i, j, _held(j, b, y))
        if not ok:
            break
        q = _point(boxes, y)
        free = _held(i, a, q)
        # Upper bound: distance of the clipped points. Lower bound: the gap along v. Both agree at the optimum.
        inside, x = _clipped(y, b), _clipped(free, a)
        v = sub(_point(boxes, inside), x)
        d = norm(v)
        least = dot(t, v) - _reach(a, v) - _reach(b, _axes_of(boxes, v))
        proved = d > 0.0 and d * d - least <= EXACT * size * (d + 0.1 * size)  # v is only accurate to round-off of size
        v = sub(q, free)  # the unclipped points give the next active set
        c = _axes_of(boxes, v)
        k = (_pinned(free[0] + v[0], a[0]), _pinned(free[1] + v[1], a[1]), _pinned(free[2] + v[2], a[2]))
        m = (_pinned(y[0] - c[0], b[0]), _pinned(y[1] - c[1], b[1]), _pinned(y[2] - c[2], b[2]))
        if proved and k == i and m == j:
            break
        i, j = k, m
    if not proved:
        return False, d, n, x
    return True, d, mul(1.0 / d, sub(_point(boxes, inside), x)), x


# -------- Signed distance


@inlined
def _apart(boxes: TwoBoxes, n: Vec, d: float) -> TwoBoxes:
    return TwoBoxes(boxes.a, boxes.b, along(boxes.t, d, n), boxes.c0, boxes.c1, boxes.c2)


@kernel
def signed_distance(boxes: TwoBoxes) -> tuple:
    """Return the exact signed distance of two boxes.

    Boxes that overlap or nearly touch are pulled apart along the best known axis; their nearest points give the exact
    normal, also for nearly parallel edges.

    Returns:
        (ok, d, n, x): x on the first surface, x + d n on the second; ok if found.
    """
    a, b = boxes.a, boxes.b
    d, n = widest_gap(boxes)
    if d > 0.0:
        ok, e, m, x = nearest_points(boxes, n)
        if ok and e > NEAR:
            return True, e, m, x
        gap = _gap(boxes, m)
        if gap > d + SETTLED:
            d, n = gap, m
    # Pulled apart by the margin, the boxes have a well-defined normal; repeat while it gives a wider gap.
    margin = 0.1 * (norm(a) + norm(b))
    x = a
    for _ in range(CLIMBS):
        ok, _, m, x = nearest_points(_apart(boxes, n, margin - d), n)
        if not ok:
            return False, d, n, x
        gap = _gap(boxes, m)
        if gap <= d + SETTLED:
            return True, d, n, x
        d, n = gap, m
    return True, d, n, x


@kernel
def box_box(a: Vec, R1: np.ndarray, p1: Vec, b: Vec, R2: np.ndarray, p2: Vec) -> tuple:
    """Return the signed distance of two boxes by half sides, rotations and centres.

    Returns:
        (ok, d, n, x1, x2): normal to the second box, witness points x2 = x1 + d n; ok as in `signed_distance`.
    """
    ok, d, n, x = signed_distance(two_boxes(a, R1, p1, b, R2, p2))
    n, x1 = rotate(R1, n), add(p1, rotate(R1, x))
    return ok, d, n, x1, along(x1, d, n)


@inlined
def _excess(p: float, half: float) -> float:
    return p - min(max(p, -half), half)


@inlined
def _segment_apart(a: Vec, t: Vec, u: Vec) -> tuple:
    """Return the shortest vector v from a box to the segment t + s u, -1 <= s <= 1, and s; near zero for overlap."""
    low, high, s = -1.0, 1.0, 0.0
    v = t
    for _ in range(STEPS):
        v = (_excess(t[0] + s * u[0], a[0]), _excess(t[1] + s * u[1], a[1]), _excess(t[2] + s * u[2], a[2]))
        slope = dot(v, u)
        # Zero slope: the minimum, or a segment parallel to a face, where all points are equally near.
        if slope * slope <= 1e-28 * dot(v, v) * dot(u, u):
            break
        rise = u[0] * u[0] if v[0] != 0.0 else 0.0
        rise += u[1] * u[1] if v[1] != 0.0 else 0.0
        rise += u[2] * u[2] if v[2] != 0.0 else 0.0
        if slope > 0.0:
            high = s
        elif slope < 0.0:
            low = s
        if high <= low:
            break
        following = min(max(s - slope / rise, -1.0), 1.0)
        if abs(following - s) <= 1e-15:
            break
        s = following if low < following < high or abs(following) == 1.0 else 0.5 * (low + high)
    return v, s


@inlined
def segment_box(a: Vec, R: np.ndarray, p: Vec, centre: Vec, axis: Vec, half: float) -> tuple:
    """Return `box_box` of a box and a segment (centre, unit vector, half length)."""
    r = sub(centre, p)
    u0, u1, u2 = (R[0, 0], R[1, 0], R[2, 0]), (R[0, 1], R[1, 1], R[2, 1]), (R[0, 2], R[1, 2], R[2, 2])
    t, c = (dot(u0, r), dot(u1, r), dot(u2, r)), (dot(u0, axis), dot(u1, axis), dot(u2, axis))
    v, s = _segment_apart(a, t, mul(half, c))
    d, ok = norm(v), True
    if d > NEAR:
        n, x = mul(1.0 / d, v), sub(along(t, s * half, c), v)
    else:
        nowhere = (0.0, 0.0, 0.0)
        ok, d, n, x = signed_distance(TwoBoxes(a, (0.0, 0.0, half), t, nowhere, nowhere, c))
    n, x1 = rotate(R, n), add(p, rotate(R, x))
    return ok, d, n, x1, along(x1, d, n)
