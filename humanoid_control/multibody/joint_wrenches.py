"""What a joint transmits: the wrench from the parent on a body and all that hangs on it (section 2.9)."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.multibody.body_forces import force_needed, moment_of_rotor
from humanoid_control.multibody.dynamics import ForwardDynamics
from humanoid_control.multibody.layout import A0, MASS, MC, NF, NW, PARENT, SPIN, A, G, R
from humanoid_control.multibody.spatial import cross, force_up, turn


def joint_wrenches(dynamics: ForwardDynamics, qdd: np.ndarray, wrench: np.ndarray | None = None) -> np.ndarray:
    """Wrenches (bodies, 6), [moment, force] at each body's origin in its axes, from its parent on the body.

    Along the joint's axis it is the joint's own torque or force; across it what the bearing carries. Where bodies
    share a coordinate, the sum of gradient times wrench along each axis is the generalised force. A rotor's is in the
    axes of its joint that do not turn with it.

    Args:
        dynamics: after the call by the recursive solver that gave the accelerations qdd (nv,).
        wrench: (bodies, 6) the impressed forces of that call.
    """
    a, out = dynamics.arrays, np.zeros((len(dynamics.model.bodies), 6))
    transmitted(a.tables, a.work, qdd, np.zeros_like(out) if wrench is None else wrench, out)
    return out


@kernel
def transmitted(t, w, qdd, wrench, out):
    """Fill out (bodies, 6): see `joint_wrenches`; out is zero before."""
    ints, floats, W = t.ints, t.floats, w.W
    for i in range(ints.shape[0] - 1, -1, -1):
        o, k, p = (i + 1) * NW, i * NF, ints[i, PARENT]
        if ints[i, SPIN] == 1:
            nx, ny, nz = moment_of_rotor(ints, i, floats, W, p * NW, qdd)
            out[i, 0], out[i, 1], out[i, 2] = turn(floats, k + A0, nx, ny, nz)
            if p > 0:
                out[p - 1, 0] += nx
                out[p - 1, 1] += ny
                out[p - 1, 2] += nz
            continue
        m, gx, gy, gz = floats[k + MASS], W[o + G], W[o + G + 1], W[o + G + 2]
        cx, cy, cz = cross(floats[k + MC], floats[k + MC + 1], floats[k + MC + 2], gx, gy, gz)
        nx, ny, nz, fx, fy, fz = force_needed(floats, k, W, o)
        out[i, 0] += nx - cx - wrench[i, 0]
        out[i, 1] += ny - cy - wrench[i, 1]
        out[i, 2] += nz - cz - wrench[i, 2]
        out[i, 3] += fx - m * gx - wrench[i, 3]
        out[i, 4] += fy - m * gy - wrench[i, 4]
        out[i, 5] += fz - m * gz - wrench[i, 5]
        if p > 0:
            x = force_up(W, o + A, o + R, out[i, 0], out[i, 1], out[i, 2], out[i, 3], out[i, 4], out[i, 5])
            for j in range(6):
                out[p - 1, j] += x[j]
