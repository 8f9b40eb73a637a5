"""Second pass of the O(n) solver: articulated inertias and forces, from the leaves to the environment.

Schwienbacher 2014, algorithm 2.3 and eq. (2.76) to (2.87), corrected.
"""

from __future__ import annotations

import math

from humanoid_control.compiled.array_types import F1, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.layout import (
    BIAS,
    BODY_INERTIA,
    COLUMNS,
    COORD,
    CROSS,
    DRIFT,
    FIRST,
    FORCE,
    FREE_ACCELERATION,
    GEARED,
    GRAD,
    GROUP_DRIFT,
    GROUP_JACOBIAN,
    GROUP_ORIGIN,
    GROUP_TURN,
    INERTIA,
    JOINT_INERTIA,
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
    ORIGIN,
    OUTSIDE,
    PARENT_INERTIA,
    RATE,
    REVOLUTE,
    ROTOR,
    SINGLE,
    SPIN,
    TURN,
    TURN_0,
    UNIT_FORCE,
    WORK,
)
from humanoid_control.multibody.spatial import (
    add_inertia_up,
    cross,
    force_up,
    inertia_times,
    six,
    spatial_dot,
    subtract_square,
    subtract_vector,
    symmetric_times,
)


@inlined
def rotor_terms(floats: F1, i: int, W: F1, po: int) -> tuple[float, float, float, float, float, float, float]:
    """Return a spinning leaf in its parent's frame: axis e, Jz, and its moment at zero accelerations."""
    # Symmetric and massless, the rotor looks the same at any angle.
    k, o, w = i * NF, (i + 1) * NW, po + OMEGA
    ex, ey, ez = floats[k + TURN_0 + 6], floats[k + TURN_0 + 7], floats[k + TURN_0 + 8]
    rate, bias, j = W[o + RATE], W[o + BIAS], k + PARENT_INERTIA
    wx, wy, wz = W[w] + ex * rate, W[w + 1] + ey * rate, W[w + 2] + ez * rate
    lx, ly, lz = symmetric_times(floats, j, wx, wy, wz)
    # In the parent's frame I is constant, so L = I omega changes by I e bias, and rotates with the parent.
    cx, cy, cz = cross(W[w], W[w + 1], W[w + 2], lx, ly, lz)
    spun = floats[k + BODY_INERTIA + 5] * bias
    nx, ny, nz = cx + ex * spun, cy + ey * spun, cz + ez * spun
    return ex, ey, ez, floats[k + BODY_INERTIA + 5], nx, ny, nz


@kernel
def inertia_pass(t: Tables, tau: F1, armature: F1, w: Work) -> None:
    """Compute propagation quantities of all nodes, last to first, after `kinematics_pass`."""
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
            subsystem_inertia(t, n, tau, armature, w)


@inlined
def _joint(ints: I2, i: int, W: F1, o: int) -> tuple[float, float]:
    # U = M J and w = M b - f of a body with one axis; J^T M J and J^T w are returned.
    x, h, m, u, f = o + INERTIA, o + CROSS, o + LINEAR, o + UNIT_FORCE, o + FORCE
    nx, ny, nz, fx, fy, fz = inertia_times(W, o, six(W, o + DRIFT))
    W[f], W[f + 1], W[f + 2] = nx - W[f], ny - W[f + 1], nz - W[f + 2]
    W[f + 3], W[f + 4], W[f + 5] = fx - W[f + 3], fy - W[f + 4], fz - W[f + 5]
    # J selects the z column of M: rows 2 (angular) or 5 (linear).
    if ints[i, MOTION] == REVOLUTE:
        W[u], W[u + 1], W[u + 2] = W[x + 2], W[x + 4], W[x + 5]
        W[u + 3], W[u + 4], W[u + 5] = W[h + 6], W[h + 7], W[h + 8]
        return W[u + 2], W[f + 2]
    W[u], W[u + 1], W[u + 2] = W[h + 2], W[h + 5], W[h + 8]
    W[u + 3], W[u + 4], W[u + 5] = W[m + 2], W[m + 4], W[m + 5]
    return W[u + 5], W[f + 5]


@inlined
def _single(ints: I2, i: int, tau: F1, armature: F1, W: F1, po: int) -> None:
    o, c, u, f = (i + 1) * NW, ints[i, COORD], (i + 1) * NW + UNIT_FORCE, (i + 1) * NW + FORCE
    d, w = _joint(ints, i, W, o)
    # Armature acts on the joint only, not on the parent.
    d += armature[c]
    p = (tau[c] - w) / d
    W[o + JOINT_INERTIA], W[o + FREE_ACCELERATION] = d, p
    if po == 0:
        return
    # The parent feels M - U U^T / d and the force w + U p, with p the free joint acceleration.
    subtract_square(W, o + INERTIA, six(W, u), 1.0 / d)
    add_inertia_up(W, o, o + TURN, o + ORIGIN, po + INERTIA)
    passed = (
        W[u] * p + W[f],
        W[u + 1] * p + W[f + 1],
        W[u + 2] * p + W[f + 2],
        W[u + 3] * p + W[f + 3],
        W[u + 4] * p + W[f + 4],
        W[u + 5] * p + W[f + 5],
    )
    subtract_vector(W, po + FORCE, force_up(W, o + TURN, o + ORIGIN, passed))


@inlined
def _rotor(ints: I2, i: int, floats: F1, tau: F1, armature: F1, W: F1, po: int) -> None:
    o, c = (i + 1) * NW, ints[i, COORD]
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(floats, i, W, po)
    d = jz + armature[c]
    p = (tau[c] - (ex * nx + ey * ny + ez * nz)) / d
    W[o + JOINT_INERTIA], W[o + FREE_ACCELERATION] = d, p
    if po == 0:
        return
    # A rotor adds I - e e^T Jz^2 / d to the parent's angular inertia only.
    k, j, s = po + INERTIA, i * NF + PARENT_INERTIA, jz * jz / d
    W[k] += floats[j] - s * ex * ex
    W[k + 1] += floats[j + 1] - s * ex * ey
    W[k + 2] += floats[j + 2] - s * ex * ez
    W[k + 3] += floats[j + 3] - s * ey * ey
    W[k + 4] += floats[j + 4] - s * ey * ez
    W[k + 5] += floats[j + 5] - s * ez * ez
    g = po + FORCE
    W[g] -= nx + jz * p * ex
    W[g + 1] -= ny + jz * p * ey
    W[g + 2] -= nz + jz * p * ez


@inlined
def _geared(ints: I2, floats: F1, nodes: I2, n: int, members: I1, tau: F1, armature: F1, W: F1) -> None:
    """Process a link and its rotors, without matrices."""
    first, last, po = nodes[n, FIRST], nodes[n, LAST], nodes[n, OUTSIDE] * NW
    i = members[first]
    o, c, u = (i + 1) * NW, ints[i, COORD], (i + 1) * NW + UNIT_FORCE
    d, w = _joint(ints, i, W, o)
    d += armature[c]
    bx, by, bz, cx, cy, cz = force_up(W, o + TURN, o + ORIGIN, six(W, u))
    nx, ny, nz, fx, fy, fz = force_up(W, o + TURN, o + ORIGIN, six(W, o + FORCE))
    if po != 0:
        add_inertia_up(W, o, o + TURN, o + ORIGIN, po + INERTIA)
    k = po + INERTIA
    for m in range(first + 1, last):
        r = members[m]
        ex, ey, ez, jz, rx, ry, rz = rotor_terms(floats, r, W, po)
        ratio = W[(r + 1) * NW + GRAD]
        # Rotor inertia acts on the joint with the square of the ratio.
        d += ratio * ratio * jz
        w += ratio * (ex * rx + ey * ry + ez * rz)
        s = ratio * jz
        bx, by, bz = bx + s * ex, by + s * ey, bz + s * ez
        nx, ny, nz = nx + rx, ny + ry, nz + rz
        if po != 0:
            j = r * NF + PARENT_INERTIA
            for e in range(6):
                W[k + e] += floats[j + e]
    p = (tau[c] - w) / d
    W[o + JOINT_INERTIA], W[o + FREE_ACCELERATION] = d, p
    # From here on the link's row holds the unit force on the parent.
    W[u], W[u + 1], W[u + 2], W[u + 3], W[u + 4], W[u + 5] = bx, by, bz, cx, cy, cz
    if po == 0:
        return
    subtract_square(W, k, (bx, by, bz, cx, cy, cz), 1.0 / d)
    subtract_vector(W, po + FORCE, (nx + bx * p, ny + by * p, nz + bz * p, fx + cx * p, fy + cy * p, fz + cz * p))


# -------- Sub-systems


@kernel
def subsystem_inertia(t: Tables, n: int, tau: F1, armature: F1, w: Work) -> None:
    """Compute P_S, p_S, K_S and k_S of a sub-system; its outside parent receives K_S and k_S.

    The work of the group holds M_S (then its Cholesky factor), Y = L^-1 B_S, and y = L^-1 (Q_S - f_S).
    """
    ints, floats, nodes, members, group_columns = t.ints, t.floats, t.nodes, t.members, t.group_columns
    W, J, S = w.W, w.J, w.S
    size, first, s = nodes[n, NCOLUMNS], nodes[n, COLUMNS], nodes[n, WORK]
    po = nodes[n, OUTSIDE] * NW
    yb, yr = s + size * size, s + size * size + 6 * size
    # Clear the sums of the previous call.
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
    # K_S = sum of M_i - Y^T Y, k_S likewise: a Schur complement over the group's coordinates.
    for c in range(size):
        b, y = six(S, yb + 6 * c), S[yr + c]
        subtract_square(W, po + INERTIA, b, 1.0)
        subtract_vector(W, po + FORCE, (b[0] * y, b[1] * y, b[2] * y, b[3] * y, b[4] * y, b[5] * y))


@inlined
def _add_member(ints: I2, i: int, W: F1, po: int, J: F1, S: F1, s: int, size: int) -> None:
    o, j0 = (i + 1) * NW, ints[i, GROUP_JACOBIAN]
    f, yb, yr = o + FORCE, s + size * size, s + size * size + 6 * size
    x = inertia_times(W, o, six(W, o + GROUP_DRIFT))
    x = (x[0] - W[f], x[1] - W[f + 1], x[2] - W[f + 2], x[3] - W[f + 3], x[4] - W[f + 4], x[5] - W[f + 5])
    for c in range(size):
        a = j0 + 6 * c
        S[yr + c] -= spatial_dot(J, a, x)
        unit = inertia_times(W, o, six(J, a))
        for d in range(c + 1):
            S[s + c * size + d] += spatial_dot(J, j0 + 6 * d, unit)
        if po != 0:
            y = force_up(W, o + GROUP_TURN, o + GROUP_ORIGIN, unit)
            for j in range(6):
                S[yb + 6 * c + j] += y[j]
    if po != 0:
        add_inertia_up(W, o, o + GROUP_TURN, o + GROUP_ORIGIN, po + INERTIA)
        subtract_vector(W, po + FORCE, force_up(W, o + GROUP_TURN, o + GROUP_ORIGIN, x))


@inlined
def _add_rotor(ints: I2, i: int, floats: F1, W: F1, po: int, S: F1, s: int, size: int) -> None:
    o, j, g = (i + 1) * NW, i * NF + PARENT_INERTIA, po + FORCE
    yb, yr = s + size * size, s + size * size + 6 * size
    ex, ey, ez, jz, nx, ny, nz = rotor_terms(floats, i, W, po)
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
def _factorise(S: F1, s: int, size: int, with_parent: bool) -> None:
    # M_S = L L^T, Y = L^-1 B_S and y = L^-1 (Q_S - f_S), in place.
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
