"""Weighted resolved motion rate with null-space objectives, without pseudo-inverse or projector (algorithm 4.3)."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.box_qp import cholesky, solve_factored
from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.jit import kernel

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
    task, null = np.zeros(len(z)), np.array(z, dtype=float)
    w = _weighted_step(J, v, mobility, null.copy(), damping, task, null)
    return task, null, max(w, 0.0), w >= 0.0


@kernel
def _weighted_step(
    J: np.ndarray,
    v: np.ndarray,
    mobility: np.ndarray,
    z: np.ndarray,
    damping: float,
    task: np.ndarray,
    null: np.ndarray,
) -> float:
    """As `weighted_step`, into task and null (k,); the manipulability, or -1 where there is no factor."""
    m, k = J.shape
    WJ, B = np.empty((m, k)), np.empty((m, m))
    x, y = np.empty(m), np.empty(m)
    for i in range(m):
        s = 0.0
        for c in range(k):
            WJ[i, c] = J[i, c] * mobility[c]
            s += J[i, c] * z[c]
        x[i], y[i] = v[i], s
    for i in range(m):
        for j in range(i + 1):
            s = 0.0
            for c in range(k):
                s += WJ[i, c] * J[j, c]
            B[i, j] = s
        B[i, i] += damping * damping
    L = np.empty((m, m))
    if not cholesky(B, m, L):
        task[:], null[:] = 0.0, 0.0
        return -1.0
    solve_factored(L, m, x)
    solve_factored(L, m, y)
    task[:], null[:] = 0.0, z
    w = 1.0
    for i in range(m):
        w *= L[i, i]
        for c in range(k):
            task[c] += WJ[i, c] * x[i]
            null[c] -= WJ[i, c] * y[i]
    return w


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
