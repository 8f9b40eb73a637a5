"""Third pass of the O(n) solver: accelerations from the environment to the leaves.

Schwienbacher 2014, algorithms 2.1 and 2.4, eq. (2.79), (2.90): Featherstone's algorithm with sub-systems.
"""

from __future__ import annotations

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.multibody.arrays import Tables, Work
from humanoid_control.multibody.inertia_pass import inertia_pass, subsystem_inertia
from humanoid_control.multibody.kinematics_pass import add_wrenches, kinematics_pass
from humanoid_control.multibody.layout import (
    ACC,
    BODY_INERTIA,
    COLUMNS,
    COORD,
    DRIFT,
    FIRST,
    FORCE,
    FREE_ACCELERATION,
    GEARED,
    GROUP_DRIFT,
    GROUP_JACOBIAN,
    GROUP_ORIGIN,
    GROUP_TURN,
    INERTIA,
    JOINT_INERTIA,
    KIND,
    LAST,
    MOTION,
    NCOLUMNS,
    NF,
    NW,
    ORIGIN,
    OUTSIDE,
    PARENT,
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
    Vector6,
    acceleration_down,
    add_inertia_up,
    force_up,
    inertia_times,
    motion_down,
    six,
    spatial_dot,
    subtract_vector,
)


@kernel
def articulated_body(t: Tables, q: F1, v: F1, tau: F1, wrench: F2, armature: F1, w: Work, qdd: F1) -> None:
    """Fill accelerations qdd (nv,) in O(n): three passes over the tree; arguments as in `ForwardDynamics`."""
    kinematics_pass(t, q, v, w)
    add_wrenches(t, wrench, w)
    inertia_pass(t, tau, armature, w)
    acceleration_pass(t, w, qdd)


@kernel
def acceleration_pass(t: Tables, w: Work, qdd: F1) -> None:
    """Fill generalised accelerations qdd (nv,) and the accelerations of the bodies."""
    ints, floats, nodes, members, W = t.ints, t.floats, t.nodes, t.members, w.W
    for n in range(nodes.shape[0]):
        kind, po = nodes[n, KIND], nodes[n, OUTSIDE] * NW
        i = members[nodes[n, FIRST]]
        o, p = (i + 1) * NW, po + ACC
        # qdd = (tau - J^T w) / d - (U / d)^T C a_p, with the first term from the inertia pass.
        if kind == SINGLE:
            x = acceleration_down(W, o, po)
            a = W[o + FREE_ACCELERATION] - spatial_dot(W, o + UNIT_FORCE, x) / W[o + JOINT_INERTIA]
            qdd[ints[i, COORD]] = a
            _accelerate(ints[i, MOTION], W, o, x, a)
        elif kind == ROTOR:
            k = i * NF
            z = k + TURN_0 + 6  # the joint axis
            along = W[p] * floats[z] + W[p + 1] * floats[z + 1] + W[p + 2] * floats[z + 2]
            a = W[o + FREE_ACCELERATION] - floats[k + BODY_INERTIA + 5] * along / W[o + JOINT_INERTIA]
            qdd[ints[i, COORD]] = a
        # UNIT_FORCE of a geared link is in the axes of its parent.
        elif kind == GEARED:
            along = spatial_dot(W, o + UNIT_FORCE, six(W, p))
            a = W[o + FREE_ACCELERATION] - along / W[o + JOINT_INERTIA]
            qdd[ints[i, COORD]] = a
            _accelerate(ints[i, MOTION], W, o, acceleration_down(W, o, po), a)
        else:
            subsystem_acceleration(t, n, w, qdd)


@inlined
def _accelerate(motion: int, W: F1, o: int, x: Vector6, a: float) -> None:
    # a_i = C a_p + J qdd + b.
    b, t = o + DRIFT, o + ACC
    W[t], W[t + 1], W[t + 2] = x[0] + W[b], x[1] + W[b + 1], x[2] + W[b + 2]
    W[t + 3], W[t + 4], W[t + 5] = x[3] + W[b + 3], x[4] + W[b + 4], x[5] + W[b + 5]
    if motion == REVOLUTE:
        W[t + 2] += a
    else:
        W[t + 5] += a


@kernel
def subsystem_acceleration(t: Tables, n: int, w: Work, qdd: F1) -> None:
    ints, nodes, members, columns, W, J, S = t.ints, t.nodes, t.members, t.group_columns, w.W, w.J, w.S
    po = nodes[n, OUTSIDE] * NW
    size, first, s, p = nodes[n, NCOLUMNS], nodes[n, COLUMNS], nodes[n, WORK], po + ACC
    yb, yr = s + size * size, s + size * size + 6 * size
    for c in range(size - 1, -1, -1):  # qdd = L^-T (y - Y a_p)
        b = yb + 6 * c
        x = S[yr + c]
        # The environment does not accelerate.
        if po != 0:
            for k in range(6):
                x -= S[b + k] * W[p + k]
        for e in range(c + 1, size):
            x -= S[s + e * size + c] * qdd[columns[first + e]]
        qdd[columns[first + c]] = x / S[s + c * size + c]
    for m in range(nodes[n, FIRST], nodes[n, LAST]):
        i = members[m]
        # A rotor is not needed further down: it is a leaf.
        if ints[i, SPIN] == 1:
            continue
        o, j0 = (i + 1) * NW, ints[i, GROUP_JACOBIAN]
        x0, x1, x2, x3, x4, x5 = motion_down(W, o + GROUP_TURN, o + GROUP_ORIGIN, six(W, p))
        h, k0 = o + GROUP_DRIFT, o + ACC
        W[k0], W[k0 + 1], W[k0 + 2] = x0 + W[h], x1 + W[h + 1], x2 + W[h + 2]
        W[k0 + 3], W[k0 + 4], W[k0 + 5] = x3 + W[h + 3], x4 + W[h + 4], x5 + W[h + 5]
        for c in range(size):
            a = qdd[columns[first + c]]
            for k in range(6):
                W[k0 + k] += J[j0 + 6 * c + k] * a


@kernel
def base_acceleration(t: Tables, tau: F1, armature: F1, w: Work, qdd: F1) -> None:
    """Fill the acceleration of a free base with prescribed joint accelerations: six equations (Table 2.3: Type 1).

    Requires `kinematics_pass`. Only the first body may be free, without loops. In tau, armature and qdd (nv,) the base
    entries are force, inertia and output.
    """
    ints, W = t.ints, w.W
    for i in range(ints.shape[0] - 1, 0, -1):
        o, po = (i + 1) * NW, ints[i, PARENT] * NW
        row = 2 if ints[i, MOTION] == REVOLUTE else 5
        # Prescribed joint acceleration acts as drift.
        W[o + DRIFT + row] += qdd[ints[i, COORD]]
        f = o + FORCE
        y = inertia_times(W, o, six(W, o + DRIFT))
        y = (y[0] - W[f], y[1] - W[f + 1], y[2] - W[f + 2], y[3] - W[f + 3], y[4] - W[f + 4], y[5] - W[f + 5])
        subtract_vector(W, po + FORCE, force_up(W, o + TURN, o + ORIGIN, y))
        add_inertia_up(W, o, o + TURN, o + ORIGIN, po + INERTIA)
    subsystem_inertia(t, 0, tau, armature, w)
    subsystem_acceleration(t, 0, w, qdd)
