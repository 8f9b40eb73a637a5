"""The six distance functions of swept-sphere volumes, each on a block of pairs."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import along, dot, sub
from humanoid_control.collision.ssv_lanes import (
    CORE,
    FIRST,
    LANES,
    LL,
    LT,
    MEET,
    PL,
    PP,
    PT,
    SECOND,
    finish,
    vector,
)
from humanoid_control.collision.ssv_lines import inverse, line_line, point_line
from humanoid_control.collision.ssv_meeting import separate_meeting_cores
from humanoid_control.collision.ssv_triangles import line_triangle, point_triangle, triangle_triangle
from humanoid_control.jit import kernel


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
    """Measure the first `count` lanes by the function of this code, and give meeting cores a normal."""
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
