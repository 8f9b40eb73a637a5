"""Weighted resolved motion rate with null-space objectives, without pseudo-inverse or projector (algorithm 4.3)."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.rows import Rows

RESCUE = 1e-4  # damping where the rows depend on each other, relative to the largest row


def weighted_step(
    J: np.ndarray, v: np.ndarray, mobility: np.ndarray, z: np.ndarray, damping: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Algorithm 4.3 for its two parts at once: one Cholesky factor, two right-hand sides.

    The velocity is task + null, with task = W^-1 J^T B^-1 v and null = z - W^-1 J^T B^-1 J z, B = J W^-1 J^T +
    damping^2 E. Without damping this is (4.12): the tasks exactly, with the least |u|_W, and z as far as they allow.

    Args:
        J: (m, k). v: (m,). mobility: (k,) diagonal of W^-1. z: (k,) wished velocities.
        damping: lambda.

    Returns:
        task (k,), null (k,), the manipulability sqrt(det(J W^-1 J^T)) (with the damping, if any), and whether B could
        be factored.
    """
    m = len(v)
    if not m:
        return np.zeros(len(z)), z, 1.0, True
    WJ = mobility[:, None] * J.T
    B = J @ WJ
    B[np.arange(m), np.arange(m)] += damping * damping
    L, x, info = lapack.dposv(B, np.stack([v, J @ z], axis=1), lower=1)
    if info != 0:
        return np.zeros(len(z)), np.zeros(len(z)), 0.0, False
    parts = WJ @ x
    return parts[:, 0], z - parts[:, 1], float(np.prod(np.diagonal(L))), True


class ResolvedRate(VelocitySolver):
    """All tasks exactly, objectives in what they leave, least weighted velocity: the method that runs on Lola.

    Priorities are not looked at. Tasks that contradict each other, or a singular posture, have no exact answer; then
    the damped one is given and the report says so.
    """

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        task, null, w, ok = weighted_step(rows.J, v, self.moving.mobility, z)
        if ok and w > 0.0:
            return Resolved(task, null, w)
        largest = float(np.max(np.einsum("ij,j,ij->i", rows.J, self.moving.mobility, rows.J), initial=0.0))
        damping = RESCUE * float(np.sqrt(largest)) if largest > 0 else 1.0
        task, null, _, _ = weighted_step(rows.J, v, self.moving.mobility, z, damping)
        return Resolved(task, null, 0.0, damping, False, "tasks depend on each other: damped")
