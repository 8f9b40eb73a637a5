"""The inertia matrix by composite bodies, and the right-hand side that goes with it.

Also here:

* Symmetric systems: dense Cholesky, and the reversed sparse one that keeps the pattern of a tree (no fill-in).
* The O(n^3) solvers: inertia matrix, then Cholesky, dense or along the branches (section 2.17).
"""

from __future__ import annotations

import math

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.articulated_inertia import rotor_terms
from humanoid_control.multibody.forward_kinematics import add_wrenches, forward1
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

# -------- The inertia matrix by composite bodies, and the right-hand side that goes with it


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


# -------- Symmetric systems: dense Cholesky, and the reversed sparse one that keeps the pattern of a tree (no fill-in)


@kernel
def dense_solve(M, x):
    """Solve M x = b in place; the lower triangle of M is given and becomes its factor."""
    n = M.shape[0]
    for j in range(n):
        s = M[j, j]
        for k in range(j):
            s -= M[j, k] * M[j, k]
        s = math.sqrt(s)
        M[j, j] = s
        r = 1.0 / s
        for i in range(j + 1, n):
            s = M[i, j]
            for k in range(j):
                s -= M[i, k] * M[j, k]
            M[i, j] = s * r
    for i in range(n):
        s = x[i]
        for k in range(i):
            s -= M[i, k] * x[k]
        x[i] = s / M[i, i]
    for i in range(n - 1, -1, -1):
        s = x[i] / M[i, i]
        x[i] = s
        for k in range(i):
            x[k] -= M[i, k] * s


@kernel
def clear_pattern(M, lam):
    """Zero where a column is an ancestor of its row; the rest is never looked at."""
    for k in range(lam.shape[0]):
        j = k
        while j >= 0:
            M[k, j] = 0.0
            j = lam[j]


@kernel
def sparse_factor(M, lam):
    """M = L^T L in place, L in the lower triangle with the pattern of M (Featherstone; section 2.17).

    Args:
        M: (n, n), lower triangle, entries only where a column is an ancestor of its row.
        lam: (n,) parent of each row, smaller than the row; -1 for none.
    """
    for k in range(M.shape[0] - 1, -1, -1):
        s = math.sqrt(M[k, k])
        M[k, k] = s
        r = 1.0 / s
        i = lam[k]
        while i >= 0:
            M[k, i] *= r
            i = lam[i]
        i = lam[k]
        while i >= 0:
            f = M[k, i]
            j = i
            while j >= 0:
                M[i, j] -= f * M[k, j]
                j = lam[j]
            i = lam[i]


@kernel
def sparse_solve(M, lam, x):
    """Solve M x = b in place by L^T L; see `sparse_factor`."""
    sparse_factor(M, lam)
    n = M.shape[0]
    for i in range(n - 1, -1, -1):
        s = x[i] / M[i, i]
        x[i] = s
        j = lam[i]
        while j >= 0:
            x[j] -= M[i, j] * s
            j = lam[j]
    for i in range(n):
        s = x[i]
        j = lam[i]
        while j >= 0:
            s -= M[i, j] * x[j]
            j = lam[j]
        x[i] = s / M[i, i]


# -------- The O(n^3) solvers: inertia matrix, then Cholesky, dense or along the branches (section 2.17)


@kernel
def dense_matrix(t, q, v, tau, wrench, armature, w):
    """Inertia matrix and right-hand side, in the order of the tree, into the work arrays."""
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    w.M[:] = 0.0
    inertia_matrix(t, tau, armature, w)


@kernel
def accelerate_dense(t, q, v, tau, wrench, armature, w, qdd):
    """Accelerations into qdd by a dense Cholesky decomposition."""
    dense_matrix(t, q, v, tau, wrench, armature, w)
    dense_solve(w.M, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]


@kernel
def accelerate_sparse(t, q, v, tau, wrench, armature, w, qdd):
    """Accelerations into qdd by the reversed sparse Cholesky decomposition."""
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    clear_pattern(w.M, t.lam)
    inertia_matrix(t, tau, armature, w)
    sparse_solve(w.M, t.lam, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]
