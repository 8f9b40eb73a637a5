"""Check of a solution of `box_qp`: how far it is from the conditions of an optimum, computed from the problem alone.

The solver works on pivots of one system. Where H is nearly singular and the price of the rows is high, the pivots lose
digits. So it checks its solution there by this file, and solves once more by another method where the check fails.

The check uses nothing that the solver has computed. With the prices p = rho max(0, b - A x) the gradient of the cost is
r = H x + g - A' p. At an optimum r is 0 but where a bound holds x against it.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.cholesky import dot

SOLVED = 1e-5  # relative gradient up to which a point counts as the optimum


@kernel
def cost_gradient(problem: BoxQp, rows: int, rho: float, x: np.ndarray, out: np.ndarray) -> float:
    """Fill the gradient of the cost, the price of the slack included.

    Args:
        problem: numbers of the program.
        rows: number of rows that count.
        rho: price of the slack.
        x: (n,) point.
        out: (n,) filled.

    Returns:
        largest number of the terms it is the sum of: g, H x, and what each row adds.
    """
    n, H, scale = x.shape[0], problem.H, 0.0
    for i in range(n):
        out[i] = 0.0
    for i in range(n):
        out[i] += dot(H[i], x, i + 1)
        for j in range(i):
            out[j] += H[i, j] * x[i]
    for i in range(n):
        scale = max(scale, abs(out[i]), abs(problem.g[i]))
        out[i] += problem.g[i]
    for r in range(rows):
        price = rho * (problem.b[r] - dot(problem.A[r], x, n))
        if not price <= 0.0:  # NaN, too
            for i in range(n):
                pull = price * problem.A[r, i]
                scale = max(scale, abs(pull))
                out[i] -= pull
    return scale


@kernel
def optimality_error(problem: BoxQp, rows: int, rho: float, x: np.ndarray) -> float:
    """Return the largest part of the gradient that the bounds do not hold, relative to the terms it is the sum of.

    Args:
        problem: numbers of the program.
        rows: number of rows that count.
        rho: price of the slack.
        x: (n,) point inside the bounds.

    Returns:
        0 at an optimum; infinite where a number is not finite.
    """
    n, worst, gradient = x.shape[0], 0.0, np.empty(x.shape[0])
    scale = cost_gradient(problem, rows, rho, x, gradient)
    for i in range(n):
        if not (np.isfinite(gradient[i]) and np.isfinite(x[i])):
            return np.inf
        held = x[i] <= problem.low[i] if gradient[i] > 0.0 else x[i] >= problem.high[i]
        if not held:
            worst = max(worst, abs(gradient[i]))
    return worst / scale if scale > 0.0 else 0.0


@kernel
def is_optimal(problem: BoxQp, rows: int, rho: float, x: np.ndarray) -> bool:
    """Test whether a point is the optimum to five digits of the gradient; numbers that are not finite are not."""
    return optimality_error(problem, rows, rho, x) <= SOLVED
