"""Third recursion: accelerations from the environment to the leaves.

Also here:

* The O(n) solver: three recursions over the tree with sub-systems (algorithm 2.1).
* A free body whose joints move as prescribed: six equations of motion for the whole robot (Table 2.3: Type 1).
"""

from __future__ import annotations

from humanoid_control.jit import inlined, kernel
from humanoid_control.multibody.articulated_inertia import backward, subsystem_backward
from humanoid_control.multibody.forward_kinematics import add_wrenches, forward1
from humanoid_control.multibody.layout import (
    A0,
    ACC,
    COLUMNS,
    COORD,
    FIRST,
    GEARED,
    HAT_A,
    HAT_B,
    HAT_R,
    INERTIA,
    IO,
    JHAT,
    KIND,
    LAST,
    MOTION,
    NCOLUMNS,
    NF,
    NW,
    OUTSIDE,
    PARENT,
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
    acceleration_down,
    add_inertia_up,
    dot,
    force_up,
    inertia_times,
    motion_down,
    take_off,
)

# -------- Third recursion: accelerations from the environment to the leaves


@kernel
def forward2(t, w, qdd):
    """Generalised accelerations into qdd (nv), bodies' accelerations into their rows (algorithm 2.4)."""
    ints, floats, nodes, members, W = t.ints, t.floats, t.nodes, t.members, w.W
    for n in range(nodes.shape[0]):
        kind, po = nodes[n, KIND], nodes[n, OUTSIDE] * NW
        i = members[nodes[n, FIRST]]
        o = (i + 1) * NW
        if kind == SINGLE:
            x = acceleration_down(W, o, po, ACC)
            a = W[o + P] - dot(W, o + U, x[0], x[1], x[2], x[3], x[4], x[5]) / W[o + D]
            qdd[ints[i, COORD]] = a
            _accelerate(ints[i, MOTION], W, o, x, a)
        elif kind == ROTOR:
            k, p = i * NF, po + ACC
            along = W[p] * floats[k + A0 + 6] + W[p + 1] * floats[k + A0 + 7] + W[p + 2] * floats[k + A0 + 8]
            qdd[ints[i, COORD]] = W[o + P] - floats[k + IO + 5] * along / W[o + D]
        elif kind == GEARED:
            p = po + ACC
            along = dot(W, o + U, W[p], W[p + 1], W[p + 2], W[p + 3], W[p + 4], W[p + 5])
            a = W[o + P] - along / W[o + D]
            qdd[ints[i, COORD]] = a
            _accelerate(ints[i, MOTION], W, o, acceleration_down(W, o, po, ACC), a)
        else:
            subsystem_forward(t, n, w, qdd)


@inlined
def _accelerate(motion, W, o, x, a):
    """a_i = C a_p + J qdd + b."""
    b, t = o + B, o + ACC
    W[t], W[t + 1], W[t + 2] = x[0] + W[b], x[1] + W[b + 1], x[2] + W[b + 2]
    W[t + 3], W[t + 4], W[t + 5] = x[3] + W[b + 3], x[4] + W[b + 4], x[5] + W[b + 5]
    if motion == REVOLUTE:
        W[t + 2] += a
    else:
        W[t + 5] += a


@kernel
def subsystem_forward(t, n, w, qdd):
    """Accelerations of the coordinates of one sub-system and of its members, eq. (2.79), (2.90)."""
    ints, nodes, members, group_columns, W, J, S = t.ints, t.nodes, t.members, t.group_columns, w.W, w.J, w.S
    po = nodes[n, OUTSIDE] * NW
    size, first, s, p = nodes[n, NCOLUMNS], nodes[n, COLUMNS], nodes[n, WORK], po + ACC
    yb, yr = s + size * size, s + size * size + 6 * size
    for c in range(size - 1, -1, -1):  # qdd = L^-T (y - Y a_p)
        b = yb + 6 * c
        x = S[yr + c]
        if po != 0:
            for k in range(6):
                x -= S[b + k] * W[p + k]
        for e in range(c + 1, size):
            x -= S[s + e * size + c] * qdd[group_columns[first + e]]
        qdd[group_columns[first + c]] = x / S[s + c * size + c]
    for m in range(nodes[n, FIRST], nodes[n, LAST]):
        i = members[m]
        if ints[i, SPIN] == 1:
            continue
        o, j0 = (i + 1) * NW, ints[i, JHAT]
        x0, x1, x2, x3, x4, x5 = motion_down(
            W, o + HAT_A, o + HAT_R, W[p], W[p + 1], W[p + 2], W[p + 3], W[p + 4], W[p + 5]
        )
        h, t = o + HAT_B, o + ACC
        W[t], W[t + 1], W[t + 2] = x0 + W[h], x1 + W[h + 1], x2 + W[h + 2]
        W[t + 3], W[t + 4], W[t + 5] = x3 + W[h + 3], x4 + W[h + 4], x5 + W[h + 5]
        for c in range(size):
            a = qdd[group_columns[first + c]]
            for k in range(6):
                W[t + k] += J[j0 + 6 * c + k] * a


# -------- The O(n) solver: three recursions over the tree with sub-systems (algorithm 2.1)


@kernel
def accelerate(t, q, v, tau, wrench, armature, w, qdd):
    """All three recursions; accelerations into qdd (nv).

    Args:
        t: `Tables`. w: `Work`. The others as for `ForwardDynamics`.
    """
    forward1(t, q, v, w)
    add_wrenches(t, wrench, w)
    backward(t, tau, armature, w)
    forward2(t, w, qdd)


# -------- A free body whose joints move as prescribed: six equations of motion for the whole robot (Table 2.3: Type 1)


@kernel
def base_acceleration(t, tau, armature, w, qdd):
    """Acceleration of the base, the first node, when all other coordinates accelerate as given; after `forward1`.

    Args:
        t: `Tables` of a model without loops whose first body is free and no other. w: `Work`.
        tau, armature: (nv,) generalised forces and added inertia; only those of the base count.
        qdd: (nv,) accelerations; the first six are written, the others are read.
    """
    W = w.W
    for i in range(t.ints.shape[0] - 1, 0, -1):
        o, po = (i + 1) * NW, t.ints[i, PARENT] * NW
        row = 2 if t.ints[i, MOTION] == REVOLUTE else 5
        W[o + B + row] += qdd[t.ints[i, COORD]]
        b, f = o + B, o + F
        y = inertia_times(W, o, W[b], W[b + 1], W[b + 2], W[b + 3], W[b + 4], W[b + 5])
        x = force_up(
            W,
            o + A,
            o + R,
            y[0] - W[f],
            y[1] - W[f + 1],
            y[2] - W[f + 2],
            y[3] - W[f + 3],
            y[4] - W[f + 4],
            y[5] - W[f + 5],
        )
        take_off(W, po + F, x[0], x[1], x[2], x[3], x[4], x[5])
        add_inertia_up(W, o, o + A, o + R, W, po + INERTIA)
    subsystem_backward(t, 0, tau, armature, w)
    subsystem_forward(t, 0, w, qdd)
