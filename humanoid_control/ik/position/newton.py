"""Newton-Raphson: the root of the residual by the generalised inverse (algorithm 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from humanoid_control.errors import ConfigError
from humanoid_control.ik.position.base import PositionSolver, Solution
from humanoid_control.ik.position.problem import Problem
from humanoid_control.ik.position.stopping import Stop, StopSettings
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


class NewtonRaphson(PositionSolver):
    """q := q - J# r with J# = W^-1 J^T (J W^-1 J^T)^-1 (4.3): quadratic near a regular root, nothing to hold on to
    without one.

    Attributes:
        refresh: J is computed anew at every so many iterations only; the iterations between are cheaper, and more.
    """

    def __init__(
        self, robot: Robot, stop: StopSettings | None = None, moving: Moving | None = None, refresh: int = 1
    ) -> None:
        super().__init__(robot, stop, moving)
        if refresh < 1:
            raise ConfigError(f"Newton-Raphson: refresh must be 1 or more, got {refresh}")
        self.refresh = refresh

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,).

        Raises:
            ConfigError: more rows than free velocities (m <= n is needed).
        """
        problem, mobility = Problem(self.robot, tasks, self.moving, self.data), self.moving.mobility
        previous: np.ndarray | None = None
        history: list[float] = []
        k = 0
        while True:
            if k % self.refresh == 0:
                r, J = problem.both(q)
                if len(r) > self.moving.k:
                    raise ConfigError(
                        f"Newton-Raphson: {len(r)} rows for {self.moving.k} free velocities; "
                        "leave tasks out, or use least squares"
                    )
                WJ = mobility[:, None] * J.T
                factor, info = lapack.dpotrf(J @ WJ, lower=1) if len(r) else (np.zeros((0, 0)), 0)
            else:
                r = problem.residual(q)
            history.append(float(np.linalg.norm(r)))
            end = self.stop.fired(k, r, previous, None)
            if end is None and (info != 0 or not np.isfinite(r).all() or len(r) != len(factor)):
                end = Stop.SINGULAR
            if end is not None:
                return Solution(q, history[-1], k, end, tuple(history), problem.residuals, problem.jacobians)
            q = problem.moved(q, -WJ @ lapack.dpotrs(factor, r, lower=1)[0])
            previous, k = r, k + 1
