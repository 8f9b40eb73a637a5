"""Check of a solution of `box_qp`: how far it is from the conditions of an optimum, computed from the problem alone.

The solver works on pivots of one system. Where H is nearly singular and the price of the rows is high, the pivots lose
digits, and the solver may return a point that is not the optimum. It is exact as long as the price over the smallest
eigenvalue of H is at most `SAFE_RATIO`; beyond it, check each solution.

The check does not use what the solver has computed. With the prices p = rho max(0, b - A x) the gradient of the cost is
r = H x + g - A' p. At an optimum r is 0 but where a bound holds x against it.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.numerics.box_qp import BoxQp

SAFE_RATIO = 1e6
"""Price rho over the smallest eigenvalue of H, up to which solutions are exact to five digits of the gradient."""
SOLVED = 1e-5  # relative gradient up to which a point counts as the optimum


def optimality_error(problem: BoxQp, rows: int, rho: float, x: np.ndarray) -> float:
    """Return the largest part of the gradient that the bounds do not hold, relative to the terms it is the sum of.

    Args:
        problem: numbers of the program.
        rows: number of rows that count.
        rho: price of the slack.
        x: (n,) point inside the bounds.
    """
    H = np.tril(problem.H) + np.tril(problem.H, -1).T
    A, b = problem.A[:rows], problem.b[:rows]
    prices = rho * np.maximum(0.0, b - A @ x)
    parts = np.stack([H @ x, problem.g, -A.T @ prices if rows else np.zeros_like(x)])
    gradient = parts.sum(axis=0)
    held = np.where(gradient > 0, x <= problem.low, x >= problem.high)
    scale = float(np.abs(parts).max()) or 1.0
    return float(np.abs(np.where(held, 0.0, gradient)).max(initial=0.0)) / scale


def is_optimal(problem: BoxQp, rows: int, rho: float, x: np.ndarray) -> bool:
    """Test whether a point is the optimum to five digits of the gradient; numbers that are not finite are not."""
    return optimality_error(problem, rows, rho, x) <= SOLVED
