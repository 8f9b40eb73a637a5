"""The inertia matrix by composite bodies, and the right-hand side that goes with it."""

from __future__ import annotations

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.layout import (
    COORD,
    FREE,
    GRAD,
    HAT_B,
    INERTIA,
    IP,
    JHAT,
    MOTION,
    NC,
    NF,
    NW,
    PARENT,
    REVOLUTE,
    SPIN,
    A,
    B,
    F,
    R,
)
from humanoid_control.multibody.spatial import add_inertia_up, force_up, inertia_times, motion_down
from humanoid_control.multibody.spinning import rotor_terms


@kernel
def inertia_matrix(t, tau, armature, w):
    """M = sum J_i^T M_i J_i and tau - sum J_i^T (M_i b_i - f_i), after `forward1`, in the order of the tree.

    Args:
        t: `Tables`. tau, armature: (nv,).
        w: `Work`; M is zero in the lower triangle where the tree joins, and is filled; so is rhs.
    """
    ints, floats, rank, W, J, M, rhs = t.ints, t.floats, t.rank, w.W, w.J, w.M, w.rhs
    nb = ints.shape[0]
    for k in range(rank.shape[0]):
        rhs[rank[k]] = tau[k]
        M[rank[k], rank[k]] += armature[k]
    for i in range(nb):  # acceleration of each body at qdd = 0, and the force that it needs
        if ints[i, SPIN] == 1:
            continue
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        h, f, b, s = o + HAT_B, o + F, o + B, po + HAT_B
        x = motion_down(W, o + A, o + R, W[s], W[s + 1], W[s + 2], W[s + 3], W[s + 4], W[s + 5])
        for j in range(6):
            W[h + j] = x[j] + W[b + j]
        y = inertia_times(W, o, W[h], W[h + 1], W[h + 2], W[h + 3], W[h + 4], W[h + 5])
        for j in range(6):
            W[f + j] = y[j] - W[f + j]
    for i in range(nb - 1, -1, -1):
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        if ints[i, SPIN] == 1:
            _rotor(ints, i, floats, rank, W, po, J, M, rhs)
            continue
        f, g = o + F, po + F
        _project(ints, i, rank, W, J, W[f], W[f + 1], W[f + 2], W[f + 3], W[f + 4], W[f + 5], rhs)
        if ints[i, MOTION] >= FREE:
            for c in range(6):
                j = ints[i, JHAT] + 6 * c
                y = inertia_times(W, o, J[j], J[j + 1], J[j + 2], J[j + 3], J[j + 4], J[j + 5])
                _column(ints, i, rank, W, J, y, ints[i, COORD + c], 1.0, M)
        else:
            if ints[i, MOTION] == REVOLUTE:
                y = inertia_times(W, o, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
            else:
                y = inertia_times(W, o, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
            for c in range(ints[i, NC]):
                _column(ints, i, rank, W, J, y, ints[i, COORD + c], W[o + GRAD + c], M)
        if po != 0:
            add_inertia_up(W, o, o + A, o + R, W, po + INERTIA)
            x = force_up(W, o + A, o + R, W[f], W[f + 1], W[f + 2], W[f + 3], W[f + 4], W[f + 5])
            for j in range(6):
                W[g + j] += x[j]


@inlined
def _project(ints, i, rank, W, J, n0, n1, n2, f0, f1, f2, rhs):
    """Take J_i^T [n; f] off the right-hand side."""
    if ints[i, MOTION] >= FREE:
        for c in range(6):
            j = ints[i, JHAT] + 6 * c
            rhs[rank[ints[i, COORD + c]]] -= (
                J[j] * n0 + J[j + 1] * n1 + J[j + 2] * n2 + J[j + 3] * f0 + J[j + 4] * f1 + J[j + 5] * f2
            )
    else:
        along = n2 if ints[i, MOTION] == REVOLUTE else f2
        for c in range(ints[i, NC]):
            rhs[rank[ints[i, COORD + c]]] -= W[(i + 1) * NW + GRAD + c] * along


@kernel
def _column(ints, i, rank, W, J, y, coordinate, scale, M):
    """Couple one coordinate of body i, whose unit acceleration needs the force y, with all above it."""
    k = rank[coordinate]
    n0, n1, n2, f0, f1, f2 = y
    own, b = True, i
    while b >= 0:
        o = (b + 1) * NW
        if ints[b, MOTION] >= FREE:
            for c in range(6):
                j = ints[b, JHAT] + 6 * c
                s = J[j] * n0 + J[j + 1] * n1 + J[j + 2] * n2 + J[j + 3] * f0 + J[j + 4] * f1 + J[j + 5] * f2
                _add(M, k, rank[ints[b, COORD + c]], scale * s, own)
        else:
            along = n2 if ints[b, MOTION] == REVOLUTE else f2
            for c in range(ints[b, NC]):
                _add(M, k, rank[ints[b, COORD + c]], scale * W[o + GRAD + c] * along, own)
        own = False
        n0, n1, n2, f0, f1, f2 = force_up(W, o + A, o + R, n0, n1, n2, f0, f1, f2)
        b = ints[b, PARENT] - 1


@inlined
def _add(M, k, m, s, own):
    """Into the lower triangle. Two bodies with the same coordinate couple it with itself, from both sides."""
    if k == m:
        M[k, k] += s if own else 2 * s
    elif own:
        if m < k:
            M[k, m] += s
    elif m < k:
        M[k, m] += s
    else:
        M[m, k] += s


@inlined
def _rotor(ints, i, floats, rank, W, po, J, M, rhs):
    o, k, h = (i + 1) * NW, i * NF, po + HAT_B
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(ints, i, floats, W, po)
    j = k + IP
    # `rotor_terms` knows the parent's velocity, not what accelerates it.
    nx += floats[j] * W[h] + floats[j + 1] * W[h + 1] + floats[j + 2] * W[h + 2]
    ny += floats[j + 1] * W[h] + floats[j + 3] * W[h + 1] + floats[j + 4] * W[h + 2]
    nz += floats[j + 2] * W[h] + floats[j + 4] * W[h + 1] + floats[j + 5] * W[h + 2]
    along = ex * nx + ey * ny + ez * nz
    p = ints[i, PARENT] - 1
    for c in range(ints[i, NC]):
        gc, rc = W[o + GRAD + c], rank[ints[i, COORD + c]]
        rhs[rc] -= gc * along
        for d in range(ints[i, NC]):
            rd = rank[ints[i, COORD + d]]
            if rd <= rc:
                M[rc, rd] += gc * W[o + GRAD + d] * jz
        if p >= 0:
            y = (gc * jz * ex, gc * jz * ey, gc * jz * ez, 0.0, 0.0, 0.0)
            _above(ints, p, rank, W, J, y, rc, M)
    if p >= 0:
        for e in range(6):
            W[po + INERTIA + e] += floats[j + e]
        W[po + F] += nx
        W[po + F + 1] += ny
        W[po + F + 2] += nz


@kernel
def _above(ints, b, rank, W, J, y, k, M):
    """Couple the rank k, whose unit acceleration needs the force y on body b, with b and all above it."""
    n0, n1, n2, f0, f1, f2 = y
    while b >= 0:
        o = (b + 1) * NW
        if ints[b, MOTION] >= FREE:
            for c in range(6):
                j = ints[b, JHAT] + 6 * c
                s = J[j] * n0 + J[j + 1] * n1 + J[j + 2] * n2 + J[j + 3] * f0 + J[j + 4] * f1 + J[j + 5] * f2
                _add(M, k, rank[ints[b, COORD + c]], s, False)
        else:
            along = n2 if ints[b, MOTION] == REVOLUTE else f2
            for c in range(ints[b, NC]):
                _add(M, k, rank[ints[b, COORD + c]], W[o + GRAD + c] * along, False)
        n0, n1, n2, f0, f1, f2 = force_up(W, o + A, o + R, n0, n1, n2, f0, f1, f2)
        b = ints[b, PARENT] - 1
