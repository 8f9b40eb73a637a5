"""Members of a sub-system relative to the sub-system's own frame: eq. (2.77a), (2.78)."""

from __future__ import annotations

from humanoid_control.jit import inlined
from humanoid_control.multibody.layout import (
    FREE,
    GRAD,
    HAT_A,
    HAT_B,
    HAT_R,
    JHAT,
    LEVEL,
    LOCAL,
    MOTION,
    NC,
    PARENT,
    PRISMATIC,
    REVOLUTE,
    A,
    B,
    R,
)
from humanoid_control.multibody.spatial import motion_down, turn_back


@inlined
def extend_group(ints, i, W, o, po, J, columns):
    """Turn, origin, Jacobian and velocity-dependent acceleration of member i in its group.

    Args:
        columns: (bodies,) number of coordinates of each body's group.
    """
    n, j0 = columns[i], ints[i, JHAT]
    b, h = o + B, o + HAT_B
    if ints[i, LEVEL] == 0:
        for j in range(9):
            W[o + HAT_A + j] = W[o + A + j]
        for j in range(3):
            W[o + HAT_R + j] = W[o + R + j]
        for j in range(6):
            W[h + j] = W[b + j]
        if ints[i, MOTION] >= FREE:
            return
        for j in range(6 * n):
            J[j0 + j] = 0.0
    else:
        _below_a_member(W, o, po)
        p0 = ints[ints[i, PARENT] - 1, JHAT]
        for c in range(n):
            s = p0 + 6 * c
            t = j0 + 6 * c
            J[t], J[t + 1], J[t + 2], J[t + 3], J[t + 4], J[t + 5] = motion_down(
                W, o + A, o + R, J[s], J[s + 1], J[s + 2], J[s + 3], J[s + 4], J[s + 5]
            )
    if ints[i, MOTION] <= PRISMATIC:
        row = 2 if ints[i, MOTION] == REVOLUTE else 5
        for c in range(ints[i, NC]):
            J[j0 + 6 * ints[i, LOCAL + c] + row] += W[o + GRAD + c]


@inlined
def _below_a_member(W, o, po):
    e, pe = o + HAT_A, po + HAT_A
    for row in range(3):
        x, y, z = W[o + A + 3 * row], W[o + A + 3 * row + 1], W[o + A + 3 * row + 2]
        for c in range(3):
            W[e + 3 * row + c] = x * W[pe + c] + y * W[pe + 3 + c] + z * W[pe + 6 + c]
    x, y, z = turn_back(W, pe, W[o + R], W[o + R + 1], W[o + R + 2])
    W[o + HAT_R] = W[po + HAT_R] + x
    W[o + HAT_R + 1] = W[po + HAT_R + 1] + y
    W[o + HAT_R + 2] = W[po + HAT_R + 2] + z
    b, h, ph = o + B, o + HAT_B, po + HAT_B
    wx, wy, wz, ux, uy, uz = motion_down(W, o + A, o + R, W[ph], W[ph + 1], W[ph + 2], W[ph + 3], W[ph + 4], W[ph + 5])
    W[h], W[h + 1], W[h + 2] = wx + W[b], wy + W[b + 1], wz + W[b + 2]
    W[h + 3], W[h + 4], W[h + 5] = ux + W[b + 3], uy + W[b + 4], uz + W[b + 5]
