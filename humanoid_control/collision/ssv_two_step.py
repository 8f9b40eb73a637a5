"""The source's own form of the line-triangle distance, in two steps with 21 cases, beside our unified one.

It measures two edges at most where the unified form measures three, but branches on the way, so pairs cannot be
measured side by side. `humanoid bench distance` shows both.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import Vec, along, dot, sub
from humanoid_control.collision.ssv_lanes import FIRST, LANES, SECOND, finish, vector
from humanoid_control.collision.ssv_lines import inverse, unit
from humanoid_control.collision.ssv_triangles import Candidate, edge_edge, line_triangle, nearer, over, plane
from humanoid_control.jit import kernel

PARALLEL = 1e-10  # sine of the angle between line and plane (eq. (6.45))
INSIDE, VERTEX_0, EDGE_01, VERTEX_1, EDGE_12, VERTEX_2, EDGE_20 = range(7)


@kernel
def region(a: float, b: float) -> int:
    """The region of table 6.2 that the point v0 + a e0 + b e1 of the triangle's plane lies in."""
    if a >= 0.0 and b >= 0.0:
        return INSIDE if a + b < 1.0 else EDGE_12
    if a + b >= 1.0:
        return VERTEX_1 if b < 0.0 else VERTEX_2
    if a < 0.0:
        return VERTEX_0 if b < 0.0 else EDGE_20
    return EDGE_01


@kernel
def _edge(which: int, w: Vec, u: Vec, uu: float, iu: float, e0: Vec, e1: Vec) -> Candidate:
    """The segment from w along u and one edge of the triangle: EDGE_01, EDGE_12 or EDGE_20."""
    if which == EDGE_01:
        ee = dot(e0, e0)
        dd, a, s = edge_edge(e0, ee, inverse(ee), u, uu, iu, w)
        return dd, a, 0.0, s, 0.0
    if which == EDGE_20:
        ee = dot(e1, e1)
        dd, a, s = edge_edge(e1, ee, inverse(ee), u, uu, iu, w)
        return dd, 0.0, a, s, 0.0
    e2 = sub(e1, e0)
    ee = dot(e2, e2)
    dd, a, s = edge_edge(e2, ee, inverse(ee), u, uu, iu, sub(w, e0))
    return dd, 1.0 - a, a, s, 0.0


@kernel
def line_triangle_two_step(w: Vec, u: Vec, e0: Vec, e1: Vec) -> Candidate:
    """As `line_triangle`, by the steps of section 6.4.5: the point of the line nearest to the plane, then its region.

    A vertex region means the nearer of both edges there, not the vertex (E-9). A line parallel to the plane goes to
    the unified form.
    """
    n, k0, k1 = plane(e0, e1)
    uu, nu = dot(u, u), dot(n, u)
    if not abs(nu) > PARALLEL * (dot(n, n) * uu) ** 0.5:
        return line_triangle(w, u, e0, e1)
    iu = inverse(uu)
    s = unit(-dot(n, w) / nu)
    y = along(w, s, u)
    a, b = dot(y, k0), dot(y, k1)
    at = region(a, b)
    if at == INSIDE:
        return over(y, a, b, e0, e1), a, b, s, 0.0
    if at in (EDGE_01, EDGE_12, EDGE_20):
        return _edge(at, w, u, uu, iu, e0, e1)
    before = EDGE_01 if at == VERTEX_1 else EDGE_20
    after = EDGE_01 if at == VERTEX_0 else EDGE_12
    return nearer(_edge(before, w, u, uu, iu, e0, e1), _edge(after, w, u, uu, iu, e0, e1))


@kernel
def two_step_block(block: np.ndarray, count: int) -> None:
    """The first `count` lanes of a block of lines and triangles, one after the other."""
    for i in range(count):
        p, q = vector(block, FIRST, i), vector(block, SECOND, i)
        u = sub(vector(block, FIRST + 3, i), p)
        e0, e1 = sub(vector(block, SECOND + 3, i), q), sub(vector(block, SECOND + 6, i), q)
        _, a, b, s, _ = line_triangle_two_step(sub(p, q), u, e0, e1)
        finish(block, i, along(p, s, u), along(along(q, a, e0), b, e1))


@kernel
def measure_blocks_two_step(blocks: np.ndarray, total: int) -> None:
    """As `measure_blocks` for lines and triangles."""
    for b in range(blocks.shape[0]):
        two_step_block(blocks[b], min(LANES, total - b * LANES))
