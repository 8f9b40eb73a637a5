"""How far to go along a direction: constant, exact, Armijo's rule, the conditions of Wolfe and Powell (section 4.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from humanoid_control.errors import ConfigError

Line = Callable[[float], float]
"""A number at the step length alpha: the cost, or its slope."""


class StepSize(Protocol):
    """A rule for the step length."""

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        """The step length; 0 where none is found.

        Args:
            cost, slope: of alpha; the slope costs a Jacobian.
            cost_0, slope_0: at alpha = 0, slope_0 < 0.
        """
        ...


class ConstantStep:
    """Always the same length, whatever comes of it."""

    def __init__(self, alpha: float = 1.0) -> None:
        if not alpha > 0:
            raise ConfigError(f"step length must be positive, got {alpha:g}")
        self._alpha = alpha

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        return self._alpha


class ExactLineSearch:
    """The first minimum along the line, to a relative accuracy."""

    def __init__(self, start: float = 1.0, tolerance: float = 1e-6) -> None:
        self.start, self.tolerance = start, tolerance

    def alpha(self, cost: Line, slope: Line, cost_0: float, slope_0: float) -> float:
        from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

        # Bracket the minimum: go out while it falls, or come in while it does not.
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
    """Halve from alpha_0 until the cost falls by a share of what its slope promises."""

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
    """Armijo's condition, and the slope must have lost a share of itself, so that steps are not too short either.

    By bisection from alpha_0: in where the cost does not fall enough, out where it still falls steeply.
    """

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
