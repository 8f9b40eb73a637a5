"""Where all joints of a model are, as plain arrays for the distance kernels."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.jit import kernel
from humanoid_control.robots.moving_tree import joint_axis


class JointPoses:
    """Forward kinematics of a whole model, with a fixed or a floating base, into arrays that are used again.

    Reading the same numbers out of pinocchio's data, one joint after the other, takes ten times longer.

    Attributes:
        R, p: (njoints, 3, 3), (njoints, 3) poses in the world, joint 0 being the world itself.
        arrays: the first arguments of `joint_poses`. floating: whether the base floats.
    """

    def __init__(self, model: pin.Model) -> None:
        """Prepare for a model whose joints have one degree of freedom, but for a floating base."""
        n = model.njoints
        self.floating = n > 1 and model.joints[1].nq == 7
        self._parent = np.array(model.parents.tolist(), dtype=np.int64)
        self._R0 = np.array([X.rotation for X in model.jointPlacements])
        self._p0 = np.array([X.translation for X in model.jointPlacements])
        self._axis, self._slides = np.zeros((n, 3)), np.zeros(n, dtype=np.bool_)
        self._index = np.array([j.idx_q for j in model.joints], dtype=np.int64)
        for j in range(2 if self.floating else 1, n):
            self._axis[j], self._slides[j] = joint_axis(model, j)
        self.R, self.p = np.tile(np.eye(3), (n, 1, 1)), np.zeros((n, 3))
        self.arrays = (self._parent, self._R0, self._p0, self._axis, self._slides, self._index)

    def update(self, q: np.ndarray) -> None:
        """Fill R and p for the configuration q (nq,)."""
        joint_poses(*self.arrays, self.floating, q, self.R, self.p)


@kernel
def joint_poses(
    parent: np.ndarray,
    R0: np.ndarray,
    p0: np.ndarray,
    axis: np.ndarray,
    slides: np.ndarray,
    index: np.ndarray,
    floating: bool,
    q: np.ndarray,
    out_R: np.ndarray,
    out_p: np.ndarray,
) -> None:
    """Poses of the joints 1 .. N - 1 in the world; see JointPoses for what the arrays hold."""
    for j in range(1, parent.shape[0]):
        b = parent[j]
        if floating and j == 1:
            x, y, z, w = q[3], q[4], q[5], q[6]
            e00, e01, e02 = 1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)
            e10, e11, e12 = 2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)
            e20, e21, e22 = 2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)
            t0, t1, t2 = q[0], q[1], q[2]
        else:
            value = q[index[j]]
            ux, uy, uz = axis[j, 0], axis[j, 1], axis[j, 2]
            if slides[j]:
                c, s = 1.0, 0.0
                t0, t1, t2 = value * ux, value * uy, value * uz
            else:
                c, s = np.cos(value), np.sin(value)
                t0, t1, t2 = 0.0, 0.0, 0.0
            t = 1.0 - c
            e00, e01, e02 = c + ux * ux * t, ux * uy * t - uz * s, ux * uz * t + uy * s
            e10, e11, e12 = uy * ux * t + uz * s, c + uy * uy * t, uy * uz * t - ux * s
            e20, e21, e22 = uz * ux * t - uy * s, uz * uy * t + ux * s, c + uz * uz * t
        for i in range(3):
            a0 = out_R[b, i, 0] * R0[j, 0, 0] + out_R[b, i, 1] * R0[j, 1, 0] + out_R[b, i, 2] * R0[j, 2, 0]
            a1 = out_R[b, i, 0] * R0[j, 0, 1] + out_R[b, i, 1] * R0[j, 1, 1] + out_R[b, i, 2] * R0[j, 2, 1]
            a2 = out_R[b, i, 0] * R0[j, 0, 2] + out_R[b, i, 1] * R0[j, 1, 2] + out_R[b, i, 2] * R0[j, 2, 2]
            out_R[j, i, 0] = a0 * e00 + a1 * e10 + a2 * e20
            out_R[j, i, 1] = a0 * e01 + a1 * e11 + a2 * e21
            out_R[j, i, 2] = a0 * e02 + a1 * e12 + a2 * e22
            at = out_p[b, i] + out_R[b, i, 0] * p0[j, 0] + out_R[b, i, 1] * p0[j, 1] + out_R[b, i, 2] * p0[j, 2]
            out_p[j, i] = at + a0 * t0 + a1 * t1 + a2 * t2
