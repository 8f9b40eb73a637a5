"""Weighted resolved motion rate with null-space objectives, without pseudo-inverse or projector (algorithm 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.cholesky import cholesky
from humanoid_control.ik.objectives import Objective
from humanoid_control.ik.small_cholesky import solve_factored
from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.interface import SolverSettings, StepReport
from humanoid_control.ik.solvers.momentum_tracking import MomentumTracking
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.tasks import Task
from humanoid_control.jit import kernel
from humanoid_control.robots import Robot

DEPENDENT = "tasks depend on each other: damped"
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
    w, WJ, L = factored_rows(J, mobility, damping)
    if w < 0.0:
        return np.zeros(len(z)), np.zeros(len(z)), 0.0, False
    return task_part(WJ, L, np.ascontiguousarray(v, dtype=float)), null_part(J, WJ, L, z), w, True


@kernel
def factored_rows(J: np.ndarray, mobility: np.ndarray, damping: float) -> tuple[float, np.ndarray, np.ndarray]:
    """(sqrt(det B), J W^-1 (m, k), L (m, m)) with L L^T = B = J W^-1 J^T + damping^2 E; -1 where B has no factor."""
    m, k = J.shape
    WJ, B, L = np.empty((m, k)), np.zeros((m, m)), np.empty((m, m))
    columns = np.empty((k, m))
    for i in range(m):
        for c in range(k):
            WJ[i, c] = J[i, c] * mobility[c]
            columns[c, i] = J[i, c]
    for i in range(m):  # along the columns: several entries of B with one instruction
        for c in range(k):
            s = WJ[i, c]
            for j in range(i + 1):
                B[i, j] += s * columns[c, j]
        B[i, i] += damping * damping
    if not cholesky(B, m, L):
        return -1.0, WJ, L
    w = 1.0
    for i in range(m):
        w *= L[i, i]
    return w, WJ, L


@kernel
def task_part(WJ: np.ndarray, L: np.ndarray, v: np.ndarray) -> np.ndarray:
    """W^-1 J^T B^-1 v (k,)."""
    m, k = WJ.shape
    x, out = v.copy(), np.zeros(k)
    solve_factored(L, m, x)
    for i in range(m):
        for c in range(k):
            out[c] += WJ[i, c] * x[i]
    return out


@kernel
def null_part(J: np.ndarray, WJ: np.ndarray, L: np.ndarray, z: np.ndarray) -> np.ndarray:
    """What of z (k,) leaves the tasks alone: z - W^-1 J^T B^-1 J z."""
    m, k = WJ.shape
    y, out = np.empty(m), z.copy()
    for i in range(m):
        s = 0.0
        for c in range(k):
            s += J[i, c] * z[c]
        y[i] = s
    solve_factored(L, m, y)
    for i in range(m):
        for c in range(k):
            out[c] -= WJ[i, c] * y[i]
    return out


class ResolvedRate(VelocitySolver):
    """All tasks exactly, objectives in what they leave, least weighted velocity: the method that runs on Lola.

    Priorities are not looked at. Tasks that contradict each other, or a singular posture, have no exact answer; then
    the damped one is given and the report says so.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
        momentum: MomentumTracking | None = None,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, moving: as of every velocity solver.
            momentum: angular momentum to track in the null space, besides what the objectives want there.
        """
        super().__init__(robot, objectives, settings, moving)
        self.momentum = momentum

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        if self.momentum is not None:
            self.momentum.place(self.data, q)
        return super().velocity(q, tasks, dt)

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        J, m = rows.J, self.moving
        w, WJ, L = factored_rows(J, m.mobility, 0.0)
        ok, damping = w > 0.0, 0.0
        if not ok:
            largest = float(np.max(np.einsum("ij,j,ij->i", J, m.mobility, J), initial=0.0))
            damping = RESCUE * float(np.sqrt(largest)) if largest > 0 else 1.0
            factor, WJ, L = factored_rows(J, m.mobility, damping)
            if factor < 0.0:  # what is not a number has no factor with any damping
                return Resolved(np.zeros(m.k), np.zeros(m.k), 0.0, damping, False, DEPENDENT)
        task = task_part(WJ, L, v)
        if self.momentum is not None:
            z = z + m.downhill(1.0, self.momentum.rates(m.expand(task)))
        null = null_part(J, WJ, L, z)
        return Resolved(task, null, w) if ok else Resolved(task, null, 0.0, damping, False, DEPENDENT)
