"""What is said of two swept-sphere volumes whose cores touch or pierce each other."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import Vec, along, cross, dot, mul, norm, perpendicular, sub
from humanoid_control.collision.ssv_lanes import (
    DISTANCE,
    FIRST,
    LANES,
    LINE,
    NORMAL,
    POINT,
    POINT_0,
    POINT_1,
    RADIUS,
    SECOND,
    TRIANGLE,
    put,
    vector,
)
from humanoid_control.jit import kernel


@kernel
def separate_meeting_cores(code: int, block: np.ndarray, i: int) -> None:
    """Give a lane whose cores touch or pierce the distance -r0 - r1 and a normal that a rule chooses (E-20).

    Of the triangles' normals the one along which the centres are farther apart; of two crossing lines their common
    perpendicular; else any direction at a right angle to the longest edge.
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
