"""The sub-system's part of the second recursion: closing a small loop by a small dense system, eq. (2.76)-(2.87)."""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import (
    COLUMNS,
    FIRST,
    GRAD,
    HAT_A,
    HAT_B,
    HAT_R,
    INERTIA,
    IP,
    JHAT,
    LAST,
    LOCAL,
    NC,
    NCOLUMNS,
    NF,
    NW,
    OUTSIDE,
    SPIN,
    WORK,
    F,
)
from humanoid_control.multibody.spatial import add_inertia_up, dot, force_up, inertia_times, subtract_square, take_off
from humanoid_control.multibody.spinning import rotor_terms


@kernel
def subsystem_backward(t, n, tau, armature, w):
    """P_S, p_S, K_S and k_S of one sub-system; its parent outside receives K_S and k_S.

    The group's work holds M_S (its Cholesky factor), then Y = L^-1 B_S, then y = L^-1 (Q_S - f_S).
    """
    ints, floats, nodes, members, group_columns = t.ints, t.floats, t.nodes, t.members, t.group_columns
    W, J, S = w.W, w.J, w.S
    size, first, s = nodes[n, NCOLUMNS], nodes[n, COLUMNS], nodes[n, WORK]
    po = nodes[n, OUTSIDE] * NW
    yb, yr = s + size * size, s + size * size + 6 * size
    for j in range(size * size + 7 * size):
        S[s + j] = 0.0
    for c in range(size):
        k = group_columns[first + c]
        S[s + c * size + c] = armature[k]
        S[yr + c] = tau[k]
    for m in range(nodes[n, FIRST], nodes[n, LAST]):
        i = members[m]
        if ints[i, SPIN] == 1:
            _add_rotor(ints, i, floats, W, po, S, s, size)
        else:
            _add_member(ints, i, W, po, J, S, s, size)
    _factorise(S, s, size, po != 0)
    if po == 0:
        return
    for c in range(size):
        b, y = yb + 6 * c, S[yr + c]
        n0, n1, n2, f0, f1, f2 = S[b], S[b + 1], S[b + 2], S[b + 3], S[b + 4], S[b + 5]
        subtract_square(W, po + INERTIA, n0, n1, n2, f0, f1, f2, 1.0)
        take_off(W, po + F, n0 * y, n1 * y, n2 * y, f0 * y, f1 * y, f2 * y)


@inlined
def _add_member(ints, i, W, po, J, S, s, size):
    o, j0 = (i + 1) * NW, ints[i, JHAT]
    h, f, yb, yr = o + HAT_B, o + F, s + size * size, s + size * size + 6 * size
    nx, ny, nz, fx, fy, fz = inertia_times(W, o, W[h], W[h + 1], W[h + 2], W[h + 3], W[h + 4], W[h + 5])
    nx, ny, nz = nx - W[f], ny - W[f + 1], nz - W[f + 2]
    fx, fy, fz = fx - W[f + 3], fy - W[f + 4], fz - W[f + 5]
    for c in range(size):
        a = j0 + 6 * c
        S[yr + c] -= dot(J, a, nx, ny, nz, fx, fy, fz)
        m0, m1, m2, m3, m4, m5 = inertia_times(W, o, J[a], J[a + 1], J[a + 2], J[a + 3], J[a + 4], J[a + 5])
        for d in range(c + 1):
            S[s + c * size + d] += dot(J, j0 + 6 * d, m0, m1, m2, m3, m4, m5)
        if po != 0:
            x = force_up(W, o + HAT_A, o + HAT_R, m0, m1, m2, m3, m4, m5)
            for j in range(6):
                S[yb + 6 * c + j] += x[j]
    if po != 0:
        add_inertia_up(W, o, o + HAT_A, o + HAT_R, W, po + INERTIA)
        p0, p1, p2, p3, p4, p5 = force_up(W, o + HAT_A, o + HAT_R, nx, ny, nz, fx, fy, fz)
        take_off(W, po + F, p0, p1, p2, p3, p4, p5)


@inlined
def _add_rotor(ints, i, floats, W, po, S, s, size):
    o, j, g = (i + 1) * NW, i * NF + IP, po + F
    yb, yr = s + size * size, s + size * size + 6 * size
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(ints, i, floats, W, po)
    along = ex * nx + ey * ny + ez * nz
    for c in range(ints[i, NC]):
        lc, gc = ints[i, LOCAL + c], W[o + GRAD + c]
        S[yr + lc] -= gc * along
        S[yb + 6 * lc] += gc * jz * ex
        S[yb + 6 * lc + 1] += gc * jz * ey
        S[yb + 6 * lc + 2] += gc * jz * ez
        for d in range(ints[i, NC]):
            ld = ints[i, LOCAL + d]
            if ld <= lc:
                S[s + lc * size + ld] += gc * W[o + GRAD + d] * jz
    for e in range(6):
        W[po + INERTIA + e] += floats[j + e]
    W[g] -= nx
    W[g + 1] -= ny
    W[g + 2] -= nz


@inlined
def _factorise(S, s, size, with_parent):
    """M_S = L L^T in place; Y = L^-1 B_S and y = L^-1 (Q_S - f_S) in place."""
    yb, yr = s + size * size, s + size * size + 6 * size
    for c in range(size):
        for d in range(c + 1):
            x = S[s + c * size + d]
            for e in range(d):
                x -= S[s + c * size + e] * S[s + d * size + e]
            if c == d:
                S[s + c * size + c] = math.sqrt(x)
            else:
                S[s + c * size + d] = x / S[s + d * size + d]
        r = 1.0 / S[s + c * size + c]
        y = S[yr + c]
        for e in range(c):
            y -= S[s + c * size + e] * S[yr + e]
        S[yr + c] = y * r
        if with_parent:
            for k in range(6):
                x = S[yb + 6 * c + k]
                for e in range(c):
                    x -= S[s + c * size + e] * S[yb + 6 * e + k]
                S[yb + 6 * c + k] = x * r
