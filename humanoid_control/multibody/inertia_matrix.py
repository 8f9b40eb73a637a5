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
from humanoid_control.multibody.spatial import (
    add_inertia_up,
    dot,
    force_up,
    inertia_times,
    motion_down,
    symmetric_times,
)
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
        for c in range(ints[i, NC]):
            rhs[rank[ints[i, COORD + c]]] -= _along(
                ints, i, c, W, J, W[f], W[f + 1], W[f + 2], W[f + 3], W[f + 4], W[f + 5]
            )
            x = _direction(ints, i, c, W, J)
            y = inertia_times(W, o, x[0], x[1], x[2], x[3], x[4], x[5])
            _column(ints, i, rank, W, J, y, c, M)
        if po != 0:
            add_inertia_up(W, o, o + A, o + R, W, po + INERTIA)
            x = force_up(W, o + A, o + R, W[f], W[f + 1], W[f + 2], W[f + 3], W[f + 4], W[f + 5])
            for j in range(6):
                W[g + j] += x[j]


@inlined
def _direction(ints, i, c, W, J):
    """Motion of body i against its parent for a unit rate of its coordinate c: that column of J_i."""
    if ints[i, MOTION] >= FREE:
        j = ints[i, JHAT] + 6 * c
        return J[j], J[j + 1], J[j + 2], J[j + 3], J[j + 4], J[j + 5]
    g = W[(i + 1) * NW + GRAD + c]
    if ints[i, MOTION] == REVOLUTE:
        return 0.0, 0.0, g, 0.0, 0.0, 0.0
    return 0.0, 0.0, 0.0, 0.0, 0.0, g


@inlined
def _along(ints, i, c, W, J, n0, n1, n2, f0, f1, f2):
    """What the wrench [n; f] on body i does along the body's coordinate c: that row of J_i^T [n; f]."""
    if ints[i, MOTION] >= FREE:
        return dot(J, ints[i, JHAT] + 6 * c, n0, n1, n2, f0, f1, f2)
    return W[(i + 1) * NW + GRAD + c] * (n2 if ints[i, MOTION] == REVOLUTE else f2)


@inlined
def _column(ints, i, rank, W, J, y, c, M):
    """Couple coordinate c of body i, whose unit acceleration needs the force y, with its others and all above it."""
    k = rank[ints[i, COORD + c]]
    n0, n1, n2, f0, f1, f2 = y
    for d in range(ints[i, NC]):  # each pair comes twice, once from either side
        m = rank[ints[i, COORD + d]]
        if m <= k:
            M[k, m] += _along(ints, i, d, W, J, n0, n1, n2, f0, f1, f2)
    p = ints[i, PARENT] - 1
    if p >= 0:
        o = (i + 1) * NW
        _above(ints, p, rank, W, J, force_up(W, o + A, o + R, n0, n1, n2, f0, f1, f2), k, M)


@inlined
def _rotor(ints, i, floats, rank, W, po, J, M, rhs):
    o, k, h = (i + 1) * NW, i * NF, po + HAT_B
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(ints, i, floats, W, po)
    j = k + IP
    # `rotor_terms` knows the parent's velocity, not what accelerates it.
    lx, ly, lz = symmetric_times(floats, j, W[h], W[h + 1], W[h + 2])
    nx, ny, nz = nx + lx, ny + ly, nz + lz
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
        for c in range(ints[b, NC]):
            m = rank[ints[b, COORD + c]]
            s = _along(ints, b, c, W, J, n0, n1, n2, f0, f1, f2)
            if m == k:  # bodies that share a coordinate couple it with itself, from both sides
                M[k, k] += 2 * s
            elif m < k:
                M[k, m] += s
            else:
                M[m, k] += s
        o = (b + 1) * NW
        n0, n1, n2, f0, f1, f2 = force_up(W, o + A, o + R, n0, n1, n2, f0, f1, f2)
        b = ints[b, PARENT] - 1
