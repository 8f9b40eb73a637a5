"""Six distance functions of swept-sphere volumes (Schwienbacher 2014, chapter 6), on blocks of pairs.

Blocks are structures of arrays for vector instructions: row r of lane i is at r * LANES + i. Core points are found
without branches.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.numerics.vec3 import Vec, add, along, cross, dot, mul, norm, perpendicular, sub

# -------- Layout of a block

LANES = 64
# Rows of a block: vertices of both cores and radii are inputs, the others results.
FIRST, SECOND, RADIUS, DISTANCE, NORMAL, POINT_0, POINT_1, CORE = 0, 9, 18, 20, 21, 24, 27, 30
ROWS = 31
POINT, LINE, TRIANGLE = range(3)
TYPE_NAMES = ("point", "line", "triangle")
# The code of a function is 3 * type of the first + type of the second, the simpler type first (table 6.1).
PP, PL, PT, LL, LT, TT = 0, 1, 2, 4, 5, 8
FUNCTIONS = {"pp": PP, "pl": PL, "pt": PT, "ll": LL, "lt": LT, "tt": TT}
MEET = 1e-12  # [m] below this distance the cores touch and the normal is undefined


@inlined
def vector(block: np.ndarray, row: int, i: int) -> Vec:
    """Return three rows of a lane."""
    return (block[row * LANES + i], block[(row + 1) * LANES + i], block[(row + 2) * LANES + i])


@inlined
def put(block: np.ndarray, row: int, i: int, a: Vec) -> None:
    """Set three rows of a lane."""
    block[row * LANES + i] = a[0]
    block[(row + 1) * LANES + i] = a[1]
    block[(row + 2) * LANES + i] = a[2]


@inlined
def finish(block: np.ndarray, i: int, x: Vec, y: Vec) -> None:
    """Compute distance, normal and surface points from core points x, y (eq. (6.9) to (6.11)).

    The normal is continuous until the cores meet; it is then zero until `separate_meeting_cores`.
    """
    c = sub(y, x)
    core = dot(c, c) ** 0.5
    n = mul(1.0 / core if core > MEET else 0.0, c)
    r0, r1 = block[RADIUS * LANES + i], block[(RADIUS + 1) * LANES + i]
    block[DISTANCE * LANES + i] = core - r0 - r1
    block[CORE * LANES + i] = core
    put(block, NORMAL, i, n)
    put(block, POINT_0, i, along(x, r0, n))
    put(block, POINT_1, i, along(y, -r1, n))


# -------- Points and line segments

# Two lines are parallel if sin^2 of their angle is below this, for any lengths (eq. (6.33)). The published 1e-15 allows
# for the cancellation in N = u^2 v^2 - (u.v)^2, which |u x v|^2 does not have.
# At 1e-20 the midpoint rule costs less than 1e-10 of a length.
PARALLEL = 1e-20
NO_LENGTH = 1e-30  # [m^2] an edge with a smaller squared length is a point


@inlined
def unit(x: float) -> float:
    """Clamp x to 0..1; NaN gives 0."""
    return min(max(x, 0.0), 1.0)


@inlined
def inverse(x: float) -> float:
    """Return 1 / x of a squared edge length; 0 without length, so that its parameter is 0."""
    return 1.0 / x if x > NO_LENGTH else 0.0


@inlined
def is_parallel(N: float, uu: float, vv: float, epsilon: float) -> bool:
    """Return True if edges are parallel or one has no length: N <= epsilon u^2 v^2."""
    return epsilon * uu * vv >= N


@inlined
def point_line(w: Vec, u: Vec, iu: float) -> float:
    """Return s in 0..1 of the point s u nearest to w (eq. (6.17)); iu = inverse(u.u)."""
    return unit(dot(w, u) * iu)


@inlined
def line_line(u: Vec, uu: float, iu: float, v: Vec, vv: float, iv: float, w: Vec) -> tuple:
    """Return (s, t) in 0..1 of the nearest points s u and w + t v of two segments (algorithms B.1 to B.3).

    t of the infinite lines is clamped, then s, then t again. Cross products avoid cancellation. Overlapping parallel
    segments use the middle of the overlap (table 6.5 in one formula).
    """
    uv, uw, vw = dot(u, v), dot(u, w), dot(v, w)
    m = cross(u, v)
    N = dot(m, m)
    # Infinite lines: t = -m . (u x w) / |m|^2 with m = u x v; parallel lines give NaN, hence 0.
    t = unit(-dot(m, cross(u, w)) / N)
    a, b = uw * iu, (uw + uv) * iu  # ends of the second edge along the first one
    middle = 0.5 * (max(0.0, min(a, b)) + min(1.0, max(a, b)))
    s = unit(middle if is_parallel(N, uu, vv, PARALLEL) else (uw + t * uv) * iu)
    return s, unit((s * uv - vw) * iv)


# -------- Triangles

Candidate = tuple[float, float, float, float, float]


@inlined
def nearer(best: Candidate, other: Candidate) -> Candidate:
    """Return the nearer candidate, the first one if equal."""
    c = other[0] < best[0]
    return (
        other[0] if c else best[0],
        other[1] if c else best[1],
        other[2] if c else best[2],
        other[3] if c else best[3],
        other[4] if c else best[4],
    )


@inlined
def plane(e0: Vec, e1: Vec) -> tuple:
    """Return (n, k0, k1) of a triangle: normal (any length) and rows of S = (D^T D)^-1 D^T (eq. (6.21)).

    Non-finite results (no area) fail every inside test.
    """
    n = cross(e0, e1)
    f = 1.0 / dot(n, n)
    return n, mul(f, cross(e1, n)), mul(f, cross(n, e0))


@inlined
def over(y: Vec, a: float, b: float, e0: Vec, e1: Vec) -> float:
    """Return the squared distance of y from (a, b) inside the triangle (region 0 of table 6.2), else inf."""
    c = along(along(y, -a, e0), -b, e1)
    return dot(c, c) if (a >= 0.0) & (b >= 0.0) & (a + b <= 1.0) else math.inf


class OverPlane(NamedTuple):
    """Point above a plane: height on any scale, parameters a and b of its foot."""

    point: Vec
    height: float
    a: float
    b: float


@inlined
def over_plane(point: Vec, n: Vec, k0: Vec, k1: Vec) -> OverPlane:
    """Project a point onto the `plane` (n, k0, k1)."""
    return OverPlane(point, dot(point, n), dot(point, k0), dot(point, k1))


@inlined
def pierce(y: OverPlane, z: OverPlane, e0: Vec, e1: Vec) -> tuple:
    """Return (squared distance, a, b, s) of the segment from y to z piercing the triangle; inf if it does not."""
    s = y.height / (y.height - z.height)
    a, b = y.a + s * (z.a - y.a), y.b + s * (z.b - y.b)
    dd = over(along(y.point, s, sub(z.point, y.point)), a, b, e0, e1)
    return (dd if (y.height < 0.0) != (z.height < 0.0) else math.inf), a, b, s


@inlined
def edge_edge(u: Vec, uu: float, iu: float, v: Vec, vv: float, iv: float, w: Vec) -> tuple:
    """Return (squared distance, s, t) of two edges, as in `line_line`."""
    s, t = line_line(u, uu, iu, v, vv, iv, w)
    c = along(along(w, -s, u), t, v)
    return dot(c, c), s, t


@inlined
def point_triangle(w: Vec, e0: Vec, e1: Vec) -> Candidate:
    """Return the nearest point of the triangle (0, e0, e1) to w: inside or on an edge.

    Table 6.2 maps vertex regions to the vertex, which is wrong for obtuse triangles.
    """
    _, k0, k1 = plane(e0, e1)
    a, b = dot(w, k0), dot(w, k1)
    best = (over(w, a, b, e0, e1), a, b, 0.0, 0.0)
    s = point_line(w, e0, inverse(dot(e0, e0)))
    c = along(w, -s, e0)
    best = nearer(best, (dot(c, c), s, 0.0, 0.0, 0.0))
    s = point_line(w, e1, inverse(dot(e1, e1)))
    c = along(w, -s, e1)
    best = nearer(best, (dot(c, c), 0.0, s, 0.0, 0.0))
    e2 = sub(e1, e0)
    x = sub(w, e0)
    s = point_line(x, e2, inverse(dot(e2, e2)))
    c = along(x, -s, e2)
    return nearer(best, (dot(c, c), 1.0 - s, s, 0.0, 0.0))


@inlined
def line_triangle(w: Vec, u: Vec, e0: Vec, e1: Vec) -> Candidate:
    """Return the nearest points of the segment w + s u and the triangle (0, e0, e1).

    Three edges, both ends, and piercing; section 6.4.5 lacks piercing and ends over a parallel triangle.

    Returns:
        (squared distance, a, b, s, 0).
    """
    n, k0, k1 = plane(e0, e1)
    y, z = over_plane(w, n, k0, k1), over_plane(add(w, u), n, k0, k1)
    # Ends over the inside, piercing, then the three edges.
    best = (over(w, y.a, y.b, e0, e1), y.a, y.b, 0.0, 0.0)
    best = nearer(best, (over(z.point, z.a, z.b, e0, e1), z.a, z.b, 1.0, 0.0))
    dd, a, b, s = pierce(y, z, e0, e1)
    best = nearer(best, (dd, a, b, s, 0.0))
    uu, e2 = dot(u, u), sub(e1, e0)
    iu = inverse(uu)
    ee = dot(e0, e0)
    dd, a, s = edge_edge(e0, ee, inverse(ee), u, uu, iu, w)
    best = nearer(best, (dd, a, 0.0, s, 0.0))
    ee = dot(e1, e1)
    dd, a, s = edge_edge(e1, ee, inverse(ee), u, uu, iu, w)
    best = nearer(best, (dd, 0.0, a, s, 0.0))
    ee = dot(e2, e2)
    dd, a, s = edge_edge(e2, ee, inverse(ee), u, uu, iu, sub(w, e0))
    return nearer(best, (dd, 1.0 - a, a, s, 0.0))


@inlined
def face_triangle(e0: Vec, e1: Vec, w: Vec, f0: Vec, f1: Vec) -> Candidate:
    """Compare the inside of a triangle with vertices and edges of another."""
    n, k0, k1 = plane(e0, e1)
    x = over_plane(w, n, k0, k1)
    y, z = over_plane(add(w, f0), n, k0, k1), over_plane(add(w, f1), n, k0, k1)
    best = (over(w, x.a, x.b, e0, e1), x.a, x.b, 0.0, 0.0)
    best = nearer(best, (over(y.point, y.a, y.b, e0, e1), y.a, y.b, 1.0, 0.0))
    best = nearer(best, (over(z.point, z.a, z.b, e0, e1), z.a, z.b, 0.0, 1.0))
    dd, a, b, s = pierce(x, y, e0, e1)
    best = nearer(best, (dd, a, b, s, 0.0))
    dd, a, b, s = pierce(x, z, e0, e1)
    best = nearer(best, (dd, a, b, 0.0, s))
    dd, a, b, s = pierce(y, z, e0, e1)
    return nearer(best, (dd, a, b, 1.0 - s, s))


@inlined
def triangle_triangle(e0: Vec, e1: Vec, w: Vec, f0: Vec, f1: Vec) -> Candidate:
    """Return the nearest points of two triangles: nine edge pairs, six vertices, six piercing edges.

    Section 6.4.6 lacks piercing. Edge pairs cover vertices over edges.
    """
    best = face_triangle(e0, e1, w, f0, f1)
    dd, c, d, a, b = face_triangle(f0, f1, mul(-1.0, w), e0, e1)
    best = nearer(best, (dd, a, b, c, d))
    e2, f2 = sub(e1, e0), sub(f1, f0)
    p, q, r = dot(e0, e0), dot(e1, e1), dot(e2, e2)
    x, y, z = dot(f0, f0), dot(f1, f1), dot(f2, f2)
    ip, iq, ir, ix, iy, iz = inverse(p), inverse(q), inverse(r), inverse(x), inverse(y), inverse(z)
    # Starts of the third edges.
    wf, we = add(w, f0), sub(w, e0)
    dd, s, t = edge_edge(e0, p, ip, f0, x, ix, w)
    best = nearer(best, (dd, s, 0.0, t, 0.0))
    dd, s, t = edge_edge(e0, p, ip, f1, y, iy, w)
    best = nearer(best, (dd, s, 0.0, 0.0, t))
    dd, s, t = edge_edge(e0, p, ip, f2, z, iz, wf)
    best = nearer(best, (dd, s, 0.0, 1.0 - t, t))
    dd, s, t = edge_edge(e1, q, iq, f0, x, ix, w)
    best = nearer(best, (dd, 0.0, s, t, 0.0))
    dd, s, t = edge_edge(e1, q, iq, f1, y, iy, w)
    best = nearer(best, (dd, 0.0, s, 0.0, t))
    dd, s, t = edge_edge(e1, q, iq, f2, z, iz, wf)
    best = nearer(best, (dd, 0.0, s, 1.0 - t, t))
    dd, s, t = edge_edge(e2, r, ir, f0, x, ix, we)
    best = nearer(best, (dd, 1.0 - s, s, t, 0.0))
    dd, s, t = edge_edge(e2, r, ir, f1, y, iy, we)
    best = nearer(best, (dd, 1.0 - s, s, 0.0, t))
    dd, s, t = edge_edge(e2, r, ir, f2, z, iz, sub(wf, e0))
    return nearer(best, (dd, 1.0 - s, s, 1.0 - t, t))


# -------- Penetrating cores


@kernel
def separate_meeting_cores(code: int, block: np.ndarray, i: int) -> None:
    """Give meeting cores the distance -r0 - r1 and a normal by a rule (left open in Schwienbacher 2014).

    It is the triangle normal with the larger centre distance, the common perpendicular of crossing lines, or orthogonal
    to the longest edge.
    """
    kind0, kind1 = code // 3, code % 3
    centres = sub(_centre(block, SECOND, i, kind1), _centre(block, FIRST, i, kind0))
    best, n = -1.0, (0.0, 0.0, 0.0)
    for side in range(2):
        kind, row = (kind0, FIRST) if side == 0 else (kind1, SECOND)
        if kind == TRIANGLE:
            a = vector(block, row, i)
            m = cross(sub(vector(block, row + 3, i), a), sub(vector(block, row + 6, i), a))
            length = norm(m)
            if length > 0.0:
                apart = dot(m, centres) / length
                if abs(apart) > best:
                    best, n = abs(apart), mul(-1.0 / length if apart < 0.0 else 1.0 / length, m)
    # No triangle: crossing lines, otherwise parallel lines and points.
    if best < 0.0:
        u, v = _longest(block, FIRST, i, kind0), _longest(block, SECOND, i, kind1)
        m = cross(u, v)
        length = norm(m)
        if length > 1e-10 * norm(u) * norm(v):
            n = mul(1.0 / length, m)
        else:
            n = perpendicular(u if dot(u, u) >= dot(v, v) else v)
    r0, r1 = block[RADIUS * LANES + i], block[(RADIUS + 1) * LANES + i]
    block[DISTANCE * LANES + i] = -r0 - r1
    put(block, NORMAL, i, n)
    put(block, POINT_0, i, along(vector(block, POINT_0, i), r0, n))
    put(block, POINT_1, i, along(vector(block, POINT_0, i), -r0 - r1, n))


@kernel
def _centre(block: np.ndarray, row: int, i: int, kind: int) -> Vec:
    a = vector(block, row, i)
    if kind == POINT:
        return a
    b = vector(block, row + 3, i)
    if kind == LINE:
        return (0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2]))
    c = vector(block, row + 6, i)
    return ((a[0] + b[0] + c[0]) / 3.0, (a[1] + b[1] + c[1]) / 3.0, (a[2] + b[2] + c[2]) / 3.0)


@kernel
def _longest(block: np.ndarray, row: int, i: int, kind: int) -> Vec:
    if kind == POINT:
        return (0.0, 0.0, 0.0)
    a, b = vector(block, row, i), vector(block, row + 3, i)
    u = sub(b, a)
    if kind == TRIANGLE:
        c = vector(block, row + 6, i)
        v, w = sub(c, a), sub(c, b)
        if dot(v, v) > dot(u, u):
            u = v
        if dot(w, w) > dot(u, u):
            u = w
    return u


# -------- The six functions, on blocks


@kernel
def point_point_block(block: np.ndarray, count: int) -> None:
    """PP (eq. (6.12)) for the first `count` lanes."""
    for i in range(min(count, LANES)):
        finish(block, i, vector(block, FIRST, i), vector(block, SECOND, i))


@kernel
def point_line_block(block: np.ndarray, count: int) -> None:
    """PL (eq. (6.13) to (6.18))."""
    for i in range(min(count, LANES)):
        x, p = vector(block, FIRST, i), vector(block, SECOND, i)
        u = sub(vector(block, SECOND + 3, i), p)
        finish(block, i, x, along(p, point_line(sub(x, p), u, inverse(dot(u, u))), u))


@kernel
def point_triangle_block(block: np.ndarray, count: int) -> None:
    """PT (eq. (6.19) to (6.22))."""
    for i in range(min(count, LANES)):
        x, p = vector(block, FIRST, i), vector(block, SECOND, i)
        e0, e1 = sub(vector(block, SECOND + 3, i), p), sub(vector(block, SECOND + 6, i), p)
        _, a, b, _, _ = point_triangle(sub(x, p), e0, e1)
        finish(block, i, x, along(along(p, a, e0), b, e1))


@kernel
def line_line_block(block: np.ndarray, count: int) -> None:
    """LL (algorithms B.1 to B.3)."""
    for i in range(min(count, LANES)):
        p, q = vector(block, FIRST, i), vector(block, SECOND, i)
        u, v = sub(vector(block, FIRST + 3, i), p), sub(vector(block, SECOND + 3, i), q)
        uu, vv = dot(u, u), dot(v, v)
        s, t = line_line(u, uu, inverse(uu), v, vv, inverse(vv), sub(q, p))
        finish(block, i, along(p, s, u), along(q, t, v))


@kernel
def line_triangle_block(block: np.ndarray, count: int) -> None:
    """LT (section 6.4.5)."""
    for i in range(min(count, LANES)):
        p, q = vector(block, FIRST, i), vector(block, SECOND, i)
        u = sub(vector(block, FIRST + 3, i), p)
        e0, e1 = sub(vector(block, SECOND + 3, i), q), sub(vector(block, SECOND + 6, i), q)
        _, a, b, s, _ = line_triangle(sub(p, q), u, e0, e1)
        finish(block, i, along(p, s, u), along(along(q, a, e0), b, e1))


@kernel
def triangle_triangle_block(block: np.ndarray, count: int) -> None:
    """TT (section 6.4.6)."""
    for i in range(min(count, LANES)):
        p, q = vector(block, FIRST, i), vector(block, SECOND, i)
        e0, e1 = sub(vector(block, FIRST + 3, i), p), sub(vector(block, FIRST + 6, i), p)
        f0, f1 = sub(vector(block, SECOND + 3, i), q), sub(vector(block, SECOND + 6, i), q)
        _, a, b, c, d = triangle_triangle(e0, e1, sub(q, p), f0, f1)
        finish(block, i, along(along(p, a, e0), b, e1), along(along(q, c, f0), d, f1))


@kernel
def measure_block(code: int, block: np.ndarray, count: int) -> None:
    """Measure the first `count` lanes with one function, and separate meeting cores."""
    if code == PP:
        point_point_block(block, count)
    elif code == PL:
        point_line_block(block, count)
    elif code == PT:
        point_triangle_block(block, count)
    elif code == LL:
        line_line_block(block, count)
    elif code == LT:
        line_triangle_block(block, count)
    else:
        triangle_triangle_block(block, count)
    for i in range(min(count, LANES)):
        if block[CORE * LANES + i] <= MEET:
            separate_meeting_cores(code, block, i)
