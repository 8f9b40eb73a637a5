"""Where the shapes of a mechanism are in the world."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import kernel


@kernel
def shape_poses(
    joint_R: np.ndarray,
    joint_p: np.ndarray,
    shape_joint: np.ndarray,
    R_local: np.ndarray,
    p_local: np.ndarray,
    out_R: np.ndarray,
    out_p: np.ndarray,
) -> None:
    """Poses of all shapes in the world.

    Args:
        joint_R, joint_p: (J, 3, 3), (J, 3) poses of the joints' frames in the world.
        shape_joint, R_local, p_local: `joint`, `R`, `p` of ShapeArrays.
        out_R, out_p: (S, 3, 3), (S, 3), filled.
    """
    for s in range(shape_joint.shape[0]):
        j = shape_joint[s]
        for r in range(3):
            a, b, c = joint_R[j, r, 0], joint_R[j, r, 1], joint_R[j, r, 2]
            for k in range(3):
                out_R[s, r, k] = a * R_local[s, 0, k] + b * R_local[s, 1, k] + c * R_local[s, 2, k]
            out_p[s, r] = joint_p[j, r] + a * p_local[s, 0] + b * p_local[s, 1] + c * p_local[s, 2]
