"""Inverse kinematics as the minimisation of 1/2 |f(q) - x|^2, direction by direction (algorithm 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.position.base import PositionSolver, Solution
from humanoid_control.ik.position.directions import Direction, GaussNewton
from humanoid_control.ik.position.problem import Problem
from humanoid_control.ik.position.step_size import StepSize, WolfePowell
from humanoid_control.ik.position.stopping import Stop, StopSettings
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


class Descent(PositionSolver):
    """Goes downhill from the start, in the directions of one method, by the step lengths of one rule.

    Made for targets that cannot be reached: it ends where no small motion comes nearer.

    Attributes:
        refresh: the Jacobian is computed anew at every so many iterations only. A stale one may point uphill; where it
            leads nowhere it is computed anew at once.
    """

    def __init__(
        self,
        robot: Robot,
        direction: Direction | None = None,
        step_size: StepSize | None = None,
        stop: StopSettings | None = None,
        moving: Moving | None = None,
        refresh: int = 1,
    ) -> None:
        super().__init__(robot, stop, moving)
        if refresh < 1:
            raise ConfigError(f"descent: refresh must be 1 or more, got {refresh}")
        self.direction, self.step_size, self.refresh = direction or GaussNewton(), step_size or WolfePowell(), refresh

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,)."""
        problem = Problem(self.robot, tasks, self.moving, self.data)
        self.direction.reset()
        r, J = problem.both(q)
        g, age, k = J.T @ r, 0, 0
        previous: np.ndarray | None = None
        history = [float(np.linalg.norm(r))]
        while True:
            # A stale gradient may be small by chance; only a fresh one ends the iteration.
            end = self.stop.fired(k, r, previous, g if age == 0 else None)
            if end is not None or not np.isfinite(r).all():
                break
            d = self.direction.direction(J, g)
            alpha = self._along(problem, q, d, r, g) if float(d @ g) < 0.0 else 0.0
            if alpha == 0.0:
                if age == 0:
                    end = Stop.PROGRESS
                    break
                self.direction.reset()
                (r, J), age, previous = problem.both(q), 0, None
                g = J.T @ r
                continue
            q = problem.moved(q, alpha * d)
            age = (age + 1) % self.refresh
            previous, g_before = r, g
            if age == 0:
                r, J = problem.both(q)
            else:
                r = problem.residual(q)
                if len(r) != len(J):
                    (r, J), age = problem.both(q), 0
            g = J.T @ r
            self.direction.moved(alpha * d, g - g_before)
            k += 1
            history.append(float(np.linalg.norm(r)))
        return Solution(q, history[-1], k, end or Stop.SINGULAR, tuple(history), problem.residuals, problem.jacobians)

    def _along(self, problem: Problem, q: np.ndarray, d: np.ndarray, r: np.ndarray, g: np.ndarray) -> float:
        """The step length along d."""

        def cost(alpha: float) -> float:
            return 0.5 * float(np.sum(problem.residual(problem.moved(q, alpha * d)) ** 2))

        def slope(alpha: float) -> float:
            # Along the line the body velocity is d throughout, also of a turning base: no transport is needed.
            residual, J = problem.both(problem.moved(q, alpha * d))
            return float(residual @ (J @ d))

        return self.step_size.alpha(cost, slope, 0.5 * float(r @ r), float(g @ d))
