"""Rotors: bodies without mass that spin about an axis of their parent, about which they are symmetric.

Also here:

* The sub-system's part of the second recursion: closing a small loop by a small dense system, eq. (2.76)-(2.87).
* Second recursion: from the leaves to the environment, inertias and forces as the parent feels them.
"""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import (
    A0,
    BIAS,
    COLUMNS,
    COORD,
    CROSS,
    FIRST,
    GEARED,
    GRAD,
    HAT_A,
    HAT_B,
    HAT_R,
    INERTIA,
    IO,
    IP,
    JHAT,
    KIND,
    LAST,
    LINEAR,
    LOCAL,
    MOTION,
    NC,
    NCOLUMNS,
    NF,
    NW,
    OMEGA,
    OUTSIDE,
    RATE,
    REVOLUTE,
    ROTOR,
    SINGLE,
    SPIN,
    WORK,
    A,
    B,
    D,
    F,
    P,
    R,
    U,
)
from humanoid_control.multibody.spatial import (
    add_inertia_up,
    cross,
    dot,
    force_up,
    inertia_times,
    subtract_square,
    symmetric_times,
    take_off,
)

# -------- Rotors: bodies without mass that spin about an axis of their parent, about which they are symmetric


@inlined
def rotor_terms(ints, i, floats, W, po):
    """A spinning leaf in its parent's frame: its axis e, Jz, and the moment it needs at zero accelerations.

    Symmetric about its axis and without mass, it looks the same at any angle.
    """
    k, o, w = i * NF, (i + 1) * NW, po + OMEGA
    ex, ey, ez = floats[k + A0 + 6], floats[k + A0 + 7], floats[k + A0 + 8]
    rate, bias, j = W[o + RATE], W[o + BIAS], k + IP
    wx, wy, wz = W[w] + ex * rate, W[w + 1] + ey * rate, W[w + 2] + ez * rate
    lx, ly, lz = symmetric_times(floats, j, wx, wy, wz)
    # In the parent's frame I does not turn, so L = I omega changes there by I e bias, and turns with the parent.
    cx, cy, cz = cross(W[w], W[w + 1], W[w + 2], lx, ly, lz)
    spun = floats[k + IO + 5] * bias
    nx, ny, nz = cx + ex * spun, cy + ey * spun, cz + ez * spun
    return ex, ey, ez, floats[k + IO + 5], nx, ny, nz


# -------- The sub-system's part of the second recursion: closing a small loop by a small dense system


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


# -------- Second recursion: from the leaves to the environment, inertias and forces as the parent feels them


@kernel
def backward(t, tau, armature, w):
    """Propagation quantities of all nodes, last to first (algorithm 2.3, corrected: E5-E8).

    Args:
        t: `Tables` of the model. w: `Work` after `forward1`.
        tau: generalised forces Q (nv). armature: inertia added to each coordinate (nv).
    """
    ints, floats, nodes, members, W = t.ints, t.floats, t.nodes, t.members, w.W
    for n in range(nodes.shape[0] - 1, -1, -1):
        kind = nodes[n, KIND]
        i = members[nodes[n, FIRST]]
        if kind == SINGLE:
            _single(ints, i, tau, armature, W, nodes[n, OUTSIDE] * NW)
        elif kind == ROTOR:
            _rotor(ints, i, floats, tau, armature, W, nodes[n, OUTSIDE] * NW)
        elif kind == GEARED:
            _geared(ints, floats, nodes, n, members, tau, armature, W)
        else:
            subsystem_backward(t, n, tau, armature, w)


@inlined
def _joint(ints, i, W, o):
    """U = M J and w = M b - f of a body with one axis; returns J^T M J and J^T w."""
    x, h, m, u, b, f = o + INERTIA, o + CROSS, o + LINEAR, o + U, o + B, o + F
    nx, ny, nz, fx, fy, fz = inertia_times(W, o, W[b], W[b + 1], W[b + 2], W[b + 3], W[b + 4], W[b + 5])
    W[f], W[f + 1], W[f + 2] = nx - W[f], ny - W[f + 1], nz - W[f + 2]
    W[f + 3], W[f + 4], W[f + 5] = fx - W[f + 3], fy - W[f + 4], fz - W[f + 5]
    if ints[i, MOTION] == REVOLUTE:
        W[u], W[u + 1], W[u + 2] = W[x + 2], W[x + 4], W[x + 5]
        W[u + 3], W[u + 4], W[u + 5] = W[h + 6], W[h + 7], W[h + 8]
        return W[u + 2], W[f + 2]
    W[u], W[u + 1], W[u + 2] = W[h + 2], W[h + 5], W[h + 8]
    W[u + 3], W[u + 4], W[u + 5] = W[m + 2], W[m + 4], W[m + 5]
    return W[u + 5], W[f + 5]


@inlined
def _single(ints, i, tau, armature, W, po):
    o, c, u, f = (i + 1) * NW, ints[i, COORD], (i + 1) * NW + U, (i + 1) * NW + F
    d, w = _joint(ints, i, W, o)
    d += armature[c]
    p = (tau[c] - w) / d
    W[o + D], W[o + P] = d, p
    if po == 0:
        return
    subtract_square(W, o + INERTIA, W[u], W[u + 1], W[u + 2], W[u + 3], W[u + 4], W[u + 5], 1.0 / d)
    add_inertia_up(W, o, o + A, o + R, W, po + INERTIA)
    nx, ny, nz, fx, fy, fz = force_up(
        W,
        o + A,
        o + R,
        W[u] * p + W[f],
        W[u + 1] * p + W[f + 1],
        W[u + 2] * p + W[f + 2],
        W[u + 3] * p + W[f + 3],
        W[u + 4] * p + W[f + 4],
        W[u + 5] * p + W[f + 5],
    )
    take_off(W, po + F, nx, ny, nz, fx, fy, fz)


@inlined
def _rotor(ints, i, floats, tau, armature, W, po):
    o, k, c = (i + 1) * NW, i * NF, ints[i, COORD]
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(ints, i, floats, W, po)
    d = jz + armature[c]
    p = (tau[c] - (ex * nx + ey * ny + ez * nz)) / d
    W[o + D], W[o + P] = d, p
    if po == 0:
        return
    t, j, s = po + INERTIA, k + IP, jz * jz / d
    W[t] += floats[j] - s * ex * ex
    W[t + 1] += floats[j + 1] - s * ex * ey
    W[t + 2] += floats[j + 2] - s * ex * ez
    W[t + 3] += floats[j + 3] - s * ey * ey
    W[t + 4] += floats[j + 4] - s * ey * ez
    W[t + 5] += floats[j + 5] - s * ez * ez
    g = po + F
    W[g] -= nx + jz * p * ex
    W[g + 1] -= ny + jz * p * ey
    W[g + 2] -= nz + jz * p * ez


@inlined
def _geared(ints, floats, nodes, n, members, tau, armature, W):
    """A link and the rotors that turn with it: the sub-system of one coordinate, without its matrices."""
    first, last, po = nodes[n, FIRST], nodes[n, LAST], nodes[n, OUTSIDE] * NW
    i = members[first]
    o, c, u = (i + 1) * NW, ints[i, COORD], (i + 1) * NW + U
    f = o + F
    d, w = _joint(ints, i, W, o)
    d += armature[c]
    bx, by, bz, cx, cy, cz = force_up(W, o + A, o + R, W[u], W[u + 1], W[u + 2], W[u + 3], W[u + 4], W[u + 5])
    nx, ny, nz, fx, fy, fz = force_up(W, o + A, o + R, W[f], W[f + 1], W[f + 2], W[f + 3], W[f + 4], W[f + 5])
    if po != 0:
        add_inertia_up(W, o, o + A, o + R, W, po + INERTIA)
    t = po + INERTIA
    for m in range(first + 1, last):
        r = members[m]
        ex, ey, ez, jz, rx, ry, rz = rotor_terms(ints, r, floats, W, po)
        ratio = W[(r + 1) * NW + GRAD]
        d += ratio * ratio * jz
        w += ratio * (ex * rx + ey * ry + ez * rz)
        s = ratio * jz
        bx, by, bz = bx + s * ex, by + s * ey, bz + s * ez
        nx, ny, nz = nx + rx, ny + ry, nz + rz
        if po != 0:
            j = r * NF + IP
            for e in range(6):
                W[t + e] += floats[j + e]
    p = (tau[c] - w) / d
    W[o + D], W[o + P] = d, p
    # From here on the row of the link holds B, seen by the parent, in place of U.
    W[u], W[u + 1], W[u + 2], W[u + 3], W[u + 4], W[u + 5] = bx, by, bz, cx, cy, cz
    if po == 0:
        return
    subtract_square(W, t, bx, by, bz, cx, cy, cz, 1.0 / d)
    take_off(W, po + F, nx + bx * p, ny + by * p, nz + bz * p, fx + cx * p, fy + cy * p, fz + cz * p)
