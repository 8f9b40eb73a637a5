"""Optimality check of solutions of `box_qp`, from the problem alone.

With the prices p = rho max(0, b - A x) the gradient is r = H x + g - A' p. At an optimum it vanishes except where a
bound holds x against it.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.cholesky import dot

SOLVED = 1e-5  # relative gradient that counts as optimal


@kernel
def cost_gradient(problem: BoxQp, rows: int, rho: float, x: np.ndarray, out: np.ndarray) -> float:
    """Fill the gradient of the cost (n,), including slack, and return the largest of its terms."""
    n, H, scale = x.shape[0], problem.H, 0.0
    for i in range(n):
        out[i] = 0.0
    # H x from the lower triangle.
    for i in range(n):
        out[i] += dot(H[i], x, i + 1)
        for j in range(i):
            out[j] += H[i, j] * x[i]
    for i in range(n):
        scale = max(scale, abs(out[i]), abs(problem.g[i]))
        out[i] += problem.g[i]
    for r in range(rows):
        # Only violated rows have a price.
        price = rho * (problem.b[r] - dot(problem.A[r], x, n))
        if not price <= 0.0:  # also NaN
            for i in range(n):
                pull = price * problem.A[r, i]
                scale = max(scale, abs(pull))
                out[i] -= pull
    return scale


@kernel(allocates=True)
def optimality_error(problem: BoxQp, rows: int, rho: float, x: np.ndarray) -> float:
    """Return the largest gradient entry not held by bounds, relative to its terms; 0 at an optimum, inf if invalid."""
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
    """Return True if a point is optimal to five digits of the gradient."""
    return optimality_error(problem, rows, rho, x) <= SOLVED
