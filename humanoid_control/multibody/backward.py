"""Second recursion: from the leaves to the environment, inertias and forces as the parent feels them."""

from __future__ import annotations

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.group_backward import subsystem_backward
from humanoid_control.multibody.layout import (
    COORD,
    CROSS,
    FIRST,
    GEARED,
    GRAD,
    INERTIA,
    IP,
    KIND,
    LAST,
    LINEAR,
    MOTION,
    NF,
    NW,
    OUTSIDE,
    REVOLUTE,
    ROTOR,
    SINGLE,
    A,
    B,
    D,
    F,
    P,
    R,
    U,
)
from humanoid_control.multibody.spatial import add_inertia_up, force_up, inertia_times, subtract_square, take_off
from humanoid_control.multibody.spinning import rotor_terms


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
