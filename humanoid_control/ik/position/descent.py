"""Descent: minimisation of 1/2 |f(q) - x|^2 (Schwienbacher 2014, algorithm 4.2), by direction (4.5) and step rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from scipy.linalg import lapack

from humanoid_control.errors import ConfigError
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.position.solver import PositionSolver, Solution, Stop, StopSettings, TaskResidual
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.robot import Robot

# -------- Directions


class DescentDirection(Protocol):
    """Method that computes the next direction d = -B^-1 g."""

    def reset(self) -> None:
        """Restart."""
        ...

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        """Return d (k,) from the Jacobian (m, k) and the gradient g = J^T r (k,)."""
        ...

    def update(self, s: np.ndarray, y: np.ndarray) -> None:
        """Update B with a step s (k,) and the change y (k,) of the gradient."""
        ...


class SteepestDescent:
    """B = E."""

    def reset(self) -> None:
        """No state."""

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        return -g

    def update(self, s: np.ndarray, y: np.ndarray) -> None:
        """No update."""


class GaussNewton:
    """B = J^T J + delta E: Newton's method without the curvature of f (exact in Schwienbacher 2014)."""

    def __init__(self, delta: float = 1e-6) -> None:
        self.delta = delta

    def reset(self) -> None:
        """No state."""

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        B = J.T @ J
        B[np.diag_indices_from(B)] += self.delta
        _, d, info = lapack.dposv(B, -g, lower=1)
        return d if info == 0 else -g

    def update(self, s: np.ndarray, y: np.ndarray) -> None:
        """No update."""


class Bfgs:
    """Quasi-Newton: B^-1 from the changes of the gradient (Broyden, Fletcher, Goldfarb, Shanno)."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Restart with B = E."""
        self._inverse: np.ndarray | None = None

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        return -g if self._inverse is None else -self._inverse @ g

    def update(self, s: np.ndarray, y: np.ndarray) -> None:
        curvature = float(s @ y)
        if curvature <= 1e-12 * float(np.linalg.norm(s) * np.linalg.norm(y)):
            return  # keep B positive definite
        if self._inverse is None:
            self._inverse = np.eye(len(s)) * (curvature / float(y @ y))
        By = self._inverse @ y
        self._inverse = (
            self._inverse
            + np.outer(s, s) * ((curvature + float(y @ By)) / curvature**2)
            - (np.outer(By, s) + np.outer(s, By)) / curvature
        )


class ConjugateGradient:
    """d = -g + beta d_before with beta of Polak and Ribiere; negative beta restarts."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Restart with steepest descent."""
        self._g: np.ndarray | None = None
        self._d: np.ndarray | None = None

    def direction(self, J: np.ndarray, g: np.ndarray) -> np.ndarray:
        d = -g
        if self._g is not None and self._d is not None:
            beta = max(0.0, float(g @ (g - self._g)) / max(float(self._g @ self._g), 1e-300))
            d = d + beta * self._d
        if float(d @ g) >= 0.0:
            d = -g
        self._g, self._d = g, d
        return d

    def update(self, s: np.ndarray, y: np.ndarray) -> None:
        """No update."""


# -------- Step lengths

Line = Callable[[float], float]
"""Cost or slope as a function of the step length alpha."""


class StepSize(Protocol):
    """Rule of the step length."""

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        """Return the step length; 0 if none is found."""
        ...


class ConstantStep:
    """Constant step length."""

    def __init__(self, alpha: float = 1.0) -> None:
        if not alpha > 0:
            raise ConfigError(f"step length must be positive, got {alpha:g}")
        self._alpha = alpha

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        return self._alpha


class ExactLineSearch:
    """First minimum along the line, to a relative accuracy."""

    def __init__(self, start: float = 1.0, tolerance: float = 1e-6) -> None:
        self.start, self.tolerance = start, tolerance

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        from scipy.optimize import minimize_scalar  # slow to import, rarely used

        # Bracket the minimum: expand while the cost falls, or contract until it falls.
        high, best = self.start, cost(self.start)
        if best < cost_0:
            while high < 1e6 and (ahead := cost(2 * high)) < best:
                high, best = 2 * high, ahead
            high *= 2
        else:
            while high > 1e-16 and cost(high / 2) >= cost_0:
                high /= 2
        found = minimize_scalar(cost, bounds=(0.0, high), method="bounded", options={"xatol": self.tolerance * high})
        return float(found.x) if found.fun < cost_0 else 0.0


class Armijo:
    """Armijo's rule: halve alpha until the cost falls by a share of its linear prediction."""

    def __init__(self, start: float = 1.0, share: float = 1e-4, shrink: float = 0.5) -> None:
        if not (start > 0 and 0 < share < 1 and 0 < shrink < 1):
            raise ConfigError("Armijo: start > 0, and share and shrink between 0 and 1 are needed")
        self.start, self.share, self.shrink = start, share, shrink

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        alpha = self.start
        for _ in range(60):
            if cost(alpha) <= cost_0 + self.share * alpha * slope_0:
                return alpha
            alpha *= self.shrink
        return 0.0


class WolfePowell:
    """Armijo's condition and a minimum decrease of the slope, against too short steps."""

    def __init__(self, start: float = 1.0, share: float = 1e-4, flat: float = 0.9) -> None:
        if not (start > 0 and 0 < share < flat < 1):
            raise ConfigError("Wolfe-Powell: start > 0 and 0 < share < flat < 1 are needed")
        self.start, self.share, self.flat = start, share, flat

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        low, high, alpha, fallen = 0.0, float("inf"), self.start, 0.0
        for _ in range(60):
            if cost(alpha) > cost_0 + self.share * alpha * slope_0:
                high = alpha
            elif slope(alpha) < self.flat * slope_0:
                low = fallen = alpha
            else:
                return alpha
            alpha = 2 * low if high == float("inf") else 0.5 * (low + high)
        return fallen


# -------- Solver


class Descent(PositionSolver):
    """Descent with one direction method and one step rule, also for unreachable targets.

    Attributes:
        refresh: iterations between Jacobians; an outdated one without descent is recomputed.
    """

    def __init__(
        self,
        robot: Robot,
        direction: DescentDirection | None = None,
        step_size: StepSize | None = None,
        stop: StopSettings | None = None,
        dofs: DofSelection | None = None,
        refresh: int = 1,
    ) -> None:
        super().__init__(robot, stop, dofs)
        if refresh < 1:
            raise ConfigError(f"descent: refresh must be 1 or more, got {refresh}")
        self.direction, self.step_size, self.refresh = direction or GaussNewton(), step_size or WolfePowell(), refresh

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,)."""
        problem = TaskResidual(self.robot, tasks, self.dofs, self.data)
        self.direction.reset()
        r, J = problem.residual_and_jacobian(q)
        g, age, k = J.T @ r, 0, 0
        previous: np.ndarray | None = None
        history = [float(np.linalg.norm(r))]
        while True:
            # An outdated gradient may be small by chance; only a new one ends the iteration.
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
                (r, J), age, previous = problem.residual_and_jacobian(q), 0, None
                g = J.T @ r
                continue
            q = problem.moved(q, alpha * d)
            age = (age + 1) % self.refresh
            previous, g_before = r, g
            if age == 0:
                r, J = problem.residual_and_jacobian(q)
            else:
                r = problem.residual(q)
                if len(r) != len(J):
                    (r, J), age = problem.residual_and_jacobian(q), 0
            g = J.T @ r
            self.direction.update(alpha * d, g - g_before)
            k += 1
            history.append(float(np.linalg.norm(r)))
        return Solution(q, history[-1], k, end or Stop.SINGULAR, tuple(history), problem.residuals, problem.jacobians)

    def _along(self, problem: TaskResidual, q: np.ndarray, d: np.ndarray, r: np.ndarray, g: np.ndarray) -> float:
        """Return the step length along d."""

        def cost(alpha: float) -> float:
            return 0.5 * float(np.sum(problem.residual(problem.moved(q, alpha * d)) ** 2))

        def slope(alpha: float) -> float:
            # Along the line the body velocity is d throughout, also for a rotating base: no transport is necessary.
            residual, J = problem.residual_and_jacobian(problem.moved(q, alpha * d))
            return float(residual @ (J @ d))

        return self.step_size.alpha(cost, slope, 0.5 * float(r @ r), float(g @ d))
