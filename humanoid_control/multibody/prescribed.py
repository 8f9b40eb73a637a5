"""A free body whose joints move as prescribed: six equations of motion for the whole robot (Table 2.3: Type 1)."""

from __future__ import annotations

from humanoid_control.jit import kernel
from humanoid_control.multibody.forward2 import subsystem_forward
from humanoid_control.multibody.group_backward import subsystem_backward
from humanoid_control.multibody.layout import COORD, INERTIA, MOTION, NW, PARENT, REVOLUTE, A, B, F, R
from humanoid_control.multibody.spatial import add_inertia_up, force_up, inertia_times, take_off


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
