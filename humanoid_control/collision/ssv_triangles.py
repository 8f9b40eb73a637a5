"""Nearest points of triangles with points, lines and triangles, the cores of swept-sphere volumes, without a branch.

A point of a triangle is v0 + a e0 + b e1 with e0 = v1 - v0, e1 = v2 - v0 (eq. (6.5)); a candidate is a tuple
(squared distance, a, b of the triangle, and the parameters of the other core). Each candidate is measured between two
points that lie in the cores, so no triangle, however thin, gives a distance below the true one.
"""

from __future__ import annotations

import math

from humanoid_control.collision.jit import Vec, add, along, cross, dot, mul, sub
from humanoid_control.collision.ssv_lines import inverse, line_line, point_line
from humanoid_control.jit import inlined

Candidate = tuple[float, float, float, float, float]


@inlined
def nearer(best: Candidate, other: Candidate) -> Candidate:
    """The nearer of two candidates, the first of two as near."""
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
    """(n, k0, k1) of a triangle: normal (not of unit length) and the rows of S = (D^T D)^-1 D^T (eq. (6.21)).

    By cross products, which lose half as many digits on a thin triangle as the inverse of D^T D. What is not finite
    (a triangle without area) fails every test whether a point is inside.
    """
    n = cross(e0, e1)
    f = 1.0 / dot(n, n)
    return n, mul(f, cross(e1, n)), mul(f, cross(n, e0))


@inlined
def over(y: Vec, a: float, b: float, e0: Vec, e1: Vec) -> float:
    """Squared distance of y from the point (a, b) where that is in the triangle (region 0 of table 6.2), else inf."""
    c = along(along(y, -a, e0), -b, e1)
    return dot(c, c) if (a >= 0.0) & (b >= 0.0) & (a + b <= 1.0) else math.inf


@inlined
def pierce(y: Vec, h: float, a: float, b: float, z: Vec, k: float, c: float, d: float, e0: Vec, e1: Vec) -> tuple:
    """(squared distance, a, b, s) where the segment from y to z meets the triangle's inside; inf where it does not.

    Args:
        y, z: the ends. h, k: their heights over the plane, on any scale. (a, b), (c, d): their parameters.
    """
    s = h / (h - k)
    a, b = a + s * (c - a), b + s * (d - b)
    dd = over(along(y, s, sub(z, y)), a, b, e0, e1)
    return (dd if (h < 0.0) != (k < 0.0) else math.inf), a, b, s


@inlined
def edge_edge(u: Vec, uu: float, iu: float, v: Vec, vv: float, iv: float, w: Vec) -> tuple:
    """(squared distance, s, t) of two edges, as `line_line`."""
    s, t = line_line(u, uu, iu, v, vv, iv, w)
    c = along(along(w, -s, u), t, v)
    return dot(c, c), s, t


@inlined
def point_triangle(w: Vec, e0: Vec, e1: Vec) -> Candidate:
    """A point w and the triangle (0, e0, e1): the inside or the nearest of the three edges.

    Table 6.2 sends a point over a vertex region to the vertex, which is wrong where the triangle is obtuse.
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
    """The segment from w along u and the triangle (0, e0, e1): three edges, both ends over the inside, piercing.

    The unified form of section 6.4.5 with what it lacks (piercing, and ends over the inside of a parallel triangle).

    Returns:
        (squared distance, a, b, s, 0).
    """
    n, k0, k1 = plane(e0, e1)
    z = add(w, u)
    h, a, b = dot(w, n), dot(w, k0), dot(w, k1)
    k, c, d = dot(z, n), dot(z, k0), dot(z, k1)
    best = (over(w, a, b, e0, e1), a, b, 0.0, 0.0)
    best = nearer(best, (over(z, c, d, e0, e1), c, d, 1.0, 0.0))
    dd, a, b, s = pierce(w, h, a, b, z, k, c, d, e0, e1)
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
    """The inside of the triangle (0, e0, e1) with vertices and edges of the triangle (w, w + f0, w + f1)."""
    n, k0, k1 = plane(e0, e1)
    y, z = add(w, f0), add(w, f1)
    a0, b0, h0 = dot(w, k0), dot(w, k1), dot(w, n)
    a1, b1, h1 = dot(y, k0), dot(y, k1), dot(y, n)
    a2, b2, h2 = dot(z, k0), dot(z, k1), dot(z, n)
    best = (over(w, a0, b0, e0, e1), a0, b0, 0.0, 0.0)
    best = nearer(best, (over(y, a1, b1, e0, e1), a1, b1, 1.0, 0.0))
    best = nearer(best, (over(z, a2, b2, e0, e1), a2, b2, 0.0, 1.0))
    dd, a, b, s = pierce(w, h0, a0, b0, y, h1, a1, b1, e0, e1)
    best = nearer(best, (dd, a, b, s, 0.0))
    dd, a, b, s = pierce(w, h0, a0, b0, z, h2, a2, b2, e0, e1)
    best = nearer(best, (dd, a, b, 0.0, s))
    dd, a, b, s = pierce(y, h1, a1, b1, z, h2, a2, b2, e0, e1)
    return nearer(best, (dd, a, b, 1.0 - s, s))


@inlined
def triangle_triangle(e0: Vec, e1: Vec, w: Vec, f0: Vec, f1: Vec) -> Candidate:
    """The triangles (0, e0, e1) and (w, w + f0, w + f1): nine edge pairs, six vertices, six piercing edges.

    Section 6.4.6 with the piercing it lacks. A vertex over an edge is found by the edge pairs, so the vertices are
    only tested against the insides.
    """
    best = face_triangle(e0, e1, w, f0, f1)
    dd, c, d, a, b = face_triangle(f0, f1, mul(-1.0, w), e0, e1)
    best = nearer(best, (dd, a, b, c, d))
    e2, f2 = sub(e1, e0), sub(f1, f0)
    p, q, r = dot(e0, e0), dot(e1, e1), dot(e2, e2)
    x, y, z = dot(f0, f0), dot(f1, f1), dot(f2, f2)
    ip, iq, ir, ix, iy, iz = inverse(p), inverse(q), inverse(r), inverse(x), inverse(y), inverse(z)
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
