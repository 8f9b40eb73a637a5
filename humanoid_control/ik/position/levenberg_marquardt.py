"""Levenberg-Marquardt: between Gauss-Newton and steepest descent, as the last step turned out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import lapack

from humanoid_control.ik.position.base import PositionSolver, Solution
from humanoid_control.ik.position.problem import Problem
from humanoid_control.ik.position.stopping import Stop, StopSettings
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


class LevenbergMarquardt(PositionSolver):
    """d = -(J^T J + mu E)^-1 J^T r; mu falls after steps that did what was foretold, and rises after others.

    Nielsen's rule (1999). Only steps that lower the residual are taken, so it needs no line search and ends, like
    every descent, at the nearest posture where a target is out of reach.

    Attributes:
        start: first mu, relative to the largest diagonal entry of J^T J.
    """

    def __init__(
        self, robot: Robot, stop: StopSettings | None = None, moving: Moving | None = None, start: float = 1e-3
    ) -> None:
        super().__init__(robot, stop, moving)
        self.start = start

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,)."""
        problem = Problem(self.robot, tasks, self.moving, self.data)
        r, J = problem.both(q)
        H, g = J.T @ J, J.T @ r
        diagonal = np.diag_indices_from(H)
        mu, rise = self.start * max(float(H[diagonal].max(initial=0.0)), 1e-12), 2.0
        previous: np.ndarray | None = None
        history, k = [float(np.linalg.norm(r))], 0
        while True:
            end = self.stop.fired(k, r, previous, g)
            if end is None and (not np.isfinite(r).all() or mu > 1e14):
                end = Stop.PROGRESS
            if end is not None:
                return Solution(q, history[-1], k, end, tuple(history), problem.residuals, problem.jacobians)
            k += 1
            B = H.copy()
            B[diagonal] += mu
            _, d, info = lapack.dposv(B, -g, lower=1)
            there = problem.moved(q, d)
            r_there = problem.residual(there) if info == 0 else r
            foretold = 0.5 * float(d @ (mu * d - g))
            gained = 0.5 * (float(r @ r) - float(r_there @ r_there))
            if info == 0 and gained > 0.0 and foretold > 0.0:
                previous, q = r, there
                r, J = problem.both(q)
                H, g = J.T @ J, J.T @ r
                mu, rise = mu * max(1 / 3, 1 - (2 * gained / foretold - 1) ** 3), 2.0
            else:
                mu, rise, previous = mu * rise, 2 * rise, None
            history.append(float(np.linalg.norm(r)))
