"""Mass matrix by composite bodies, and O(n^3) solvers.

The sparse solver factors M = L^T L from the leaves without fill-in (Featherstone; Schwienbacher 2014, section 2.17).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.inertia_pass import rotor_terms
from humanoid_control.multibody.kinematics_pass import add_wrenches, kinematics_pass
from humanoid_control.multibody.layout import (
    COORD,
    DRIFT,
    FORCE,
    FREE,
    GRAD,
    GROUP_DRIFT,
    GROUP_JACOBIAN,
    INERTIA,
    MOTION,
    NC,
    NF,
    NW,
    ORIGIN,
    PARENT,
    PARENT_INERTIA,
    REVOLUTE,
    SPIN,
    TURN,
)
from humanoid_control.multibody.spatial import (
    Vector6,
    add_inertia_up,
    force_up,
    inertia_times,
    motion_down,
    six,
    spatial_dot,
    symmetric_times,
)


@kernel
def fill_mass_matrix(t: Tables, tau: F1, armature: F1, w: Work) -> None:
    """Fill M = sum J_i^T M_i J_i and rhs = tau - sum J_i^T (M_i b_i - f_i), in tree order.

    Requires `kinematics_pass` and a zeroed tree pattern of M.
    """
    ints, floats, rank, W, J, M, rhs = t.ints, t.floats, t.rank, w.W, w.J, w.M, w.rhs
    nb = ints.shape[0]
    for k in range(rank.shape[0]):
        rhs[rank[k]] = tau[k]
        M[rank[k], rank[k]] += armature[k]
    for i in range(nb):  # acceleration of each body at qdd = 0, and the force for it
        if ints[i, SPIN] == 1:
            continue
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        h, f, b = o + GROUP_DRIFT, o + FORCE, o + DRIFT
        # a_i = C a_p + b at qdd = 0, then f = M a - f_external.
        x = motion_down(W, o + TURN, o + ORIGIN, six(W, po + GROUP_DRIFT))
        for j in range(6):
            W[h + j] = x[j] + W[b + j]
        y = inertia_times(W, o, six(W, h))
        for j in range(6):
            W[f + j] = y[j] - W[f + j]
    for i in range(nb - 1, -1, -1):
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        if ints[i, SPIN] == 1:
            rotor = _loaded_rotor(floats, i, W, po)
            for c in range(ints[i, NC]):
                rhs[rank[ints[i, COORD + c]]] -= W[o + GRAD + c] * rotor.moment
            _couple_rotor(ints, i, rank, W, J, rotor, M)
            if po != 0:
                _add_rotor(floats, i * NF + PARENT_INERTIA, rotor, W, po)
            continue
        f, g = o + FORCE, po + FORCE
        # After the children have added theirs, M_i is the composite inertia of the subtree.
        for c in range(ints[i, NC]):
            rhs[rank[ints[i, COORD + c]]] -= _along(ints, i, c, W, J, six(W, f))
            unit = inertia_times(W, o, _direction(ints, i, c, W, J))
            _column(ints, i, rank, W, J, unit, c, M)
        if po != 0:
            add_inertia_up(W, o, o + TURN, o + ORIGIN, po + INERTIA)
            x = force_up(W, o + TURN, o + ORIGIN, six(W, f))
            for j in range(6):
                W[g + j] += x[j]


@inlined
def _direction(ints: I2, i: int, c: int, W: F1, J: F1) -> Vector6:
    # Column c of J_i: motion relative to the parent per unit rate.
    if ints[i, MOTION] >= FREE:
        return six(J, ints[i, GROUP_JACOBIAN] + 6 * c)
    g = W[(i + 1) * NW + GRAD + c]
    if ints[i, MOTION] == REVOLUTE:
        return 0.0, 0.0, g, 0.0, 0.0, 0.0
    return 0.0, 0.0, 0.0, 0.0, 0.0, g


@inlined
def _along(ints: I2, i: int, c: int, W: F1, J: F1, f: Vector6) -> float:
    # Row c of J_i^T f.
    if ints[i, MOTION] >= FREE:
        return spatial_dot(J, ints[i, GROUP_JACOBIAN] + 6 * c, f)
    return W[(i + 1) * NW + GRAD + c] * (f[2] if ints[i, MOTION] == REVOLUTE else f[5])


@inlined
def _column(ints: I2, i: int, rank: I1, W: F1, J: F1, unit: Vector6, c: int, M: F2) -> None:
    """Couple coordinate c of body i, with force `unit` per unit acceleration, to own and ancestor coordinates."""
    k = rank[ints[i, COORD + c]]
    for d in range(ints[i, NC]):  # both orders of a pair occur
        m = rank[ints[i, COORD + d]]
        # Lower triangle only.
        if m <= k:
            M[k, m] += _along(ints, i, d, W, J, unit)
    p = ints[i, PARENT] - 1
    if p >= 0:
        o = (i + 1) * NW
        _above(ints, p, rank, W, J, force_up(W, o + TURN, o + ORIGIN, unit), k, M)


class LoadedRotor(NamedTuple):
    """Spinning leaf at qdd = 0: axis, inertia Jz, required moment, and its axial component."""

    axis: tuple[float, float, float]
    jz: float
    need: tuple[float, float, float]
    moment: float


@inlined
def _loaded_rotor(floats: F1, i: int, W: F1, po: int) -> LoadedRotor:
    j, h = i * NF + PARENT_INERTIA, po + GROUP_DRIFT
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(floats, i, W, po)
    # `rotor_terms` has no parent acceleration.
    lx, ly, lz = symmetric_times(floats, j, W[h], W[h + 1], W[h + 2])
    nx, ny, nz = nx + lx, ny + ly, nz + lz
    return LoadedRotor((ex, ey, ez), jz, (nx, ny, nz), ex * nx + ey * ny + ez * nz)


@inlined
def _couple_rotor(ints: I2, i: int, rank: I1, W: F1, J: F1, rotor: LoadedRotor, M: F2) -> None:
    o, p, jz = (i + 1) * NW, ints[i, PARENT] - 1, rotor.jz
    ex, ey, ez = rotor.axis
    for c in range(ints[i, NC]):
        gc, rc = W[o + GRAD + c], rank[ints[i, COORD + c]]
        for d in range(ints[i, NC]):
            rd = rank[ints[i, COORD + d]]
            if rd <= rc:
                M[rc, rd] += gc * W[o + GRAD + d] * jz
        if p >= 0:
            _above(ints, p, rank, W, J, (gc * jz * ex, gc * jz * ey, gc * jz * ez, 0.0, 0.0, 0.0), rc, M)


@inlined
def _add_rotor(floats: F1, j: int, rotor: LoadedRotor, W: F1, po: int) -> None:
    # A rotor adds inertia about its parent's origin, and no mass.
    nx, ny, nz = rotor.need
    for e in range(6):
        W[po + INERTIA + e] += floats[j + e]
    W[po + FORCE] += nx
    W[po + FORCE + 1] += ny
    W[po + FORCE + 2] += nz


@kernel
def _above(ints: I2, b: int, rank: I1, W: F1, J: F1, f: Vector6, k: int, M: F2) -> None:
    """Couple rank k, with force f on body b per unit acceleration, to b and its ancestors."""
    while b >= 0:
        for c in range(ints[b, NC]):
            m = rank[ints[b, COORD + c]]
            s = _along(ints, b, c, W, J, f)
            if m == k:  # a shared coordinate couples to itself from both sides
                M[k, k] += 2 * s
            elif m < k:
                M[k, m] += s
            else:
                M[m, k] += s
        # Transport the force to the next ancestor.
        o = (b + 1) * NW
        f = force_up(W, o + TURN, o + ORIGIN, f)
        b = ints[b, PARENT] - 1


# -------- Solvers


@kernel
def dense_solve(M: F2, x: F1) -> None:
    """Solve M x = b in place; the lower triangle of M becomes its factor."""
    n = M.shape[0]
    # Left-looking Cholesky M = L L^T, then forward and backward substitution.
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
def clear_pattern(M: F2, lam: I1) -> None:
    """Zero the tree pattern of M; other entries are unused."""
    for k in range(lam.shape[0]):
        j = k
        while j >= 0:
            M[k, j] = 0.0
            j = lam[j]


@kernel
def sparse_factor(M: F2, lam: I1) -> None:
    """Factor M = L^T L in place, with the tree pattern of M (Featherstone; section 2.17).

    Args:
        M: (n, n) lower triangle.
        lam: (n,) parent of each row, -1: none.
    """
    # Leaves first: elimination fills only ancestor entries.
    for k in range(M.shape[0] - 1, -1, -1):
        s = math.sqrt(M[k, k])
        M[k, k] = s
        r = 1.0 / s
        # Scale row k, then subtract its outer product from ancestor rows.
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
def sparse_solve(M: F2, lam: I1, x: F1) -> None:
    """Solve M x = b in place by `sparse_factor`."""
    sparse_factor(M, lam)
    sparse_substitute(M, lam, x)


@kernel
def sparse_substitute(M: F2, lam: I1, x: F1) -> None:
    """Solve M x = b in place, with the factor L of `sparse_factor`."""
    n = M.shape[0]
    # L^T y = b from the leaves, then L x = y from the root.
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


@kernel
def mass_matrix(t: Tables, q: F1, v: F1, tau: F1, wrench: F2, armature: F1, w: Work) -> None:
    kinematics_pass(t, q, v, w)
    add_wrenches(t, wrench, w)
    w.M[:] = 0.0
    fill_mass_matrix(t, tau, armature, w)


@kernel
def solve_dense(t: Tables, q: F1, v: F1, tau: F1, wrench: F2, armature: F1, w: Work, qdd: F1) -> None:
    """Fill qdd by dense Cholesky."""
    mass_matrix(t, q, v, tau, wrench, armature, w)
    dense_solve(w.M, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]


@kernel
def solve_sparse(t: Tables, q: F1, v: F1, tau: F1, wrench: F2, armature: F1, w: Work, qdd: F1) -> None:
    """Fill qdd by reversed sparse Cholesky."""
    kinematics_pass(t, q, v, w)
    add_wrenches(t, wrench, w)
    clear_pattern(w.M, t.lam)
    fill_mass_matrix(t, tau, armature, w)
    sparse_solve(w.M, t.lam, w.rhs)
    for k in range(t.rank.shape[0]):
        qdd[k] = w.rhs[t.rank[k]]
