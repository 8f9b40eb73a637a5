"""Primal descent for `box_qp`: slower, but accurate where the pivots of the dual method lose digits.

The cost with slack is a convex, piecewise quadratic function of x. Each step is a Newton step in the free variables,
with an exact line search up to the first bound. At zero free gradient, the bound with the largest pull is released.
Matrix and gradient are recomputed in each step.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.box_program import AT_HIGH, AT_LOW, FREE, BoxQp
from humanoid_control.numerics.box_qp_certificate import cost_gradient
from humanoid_control.numerics.cholesky import dot

FLAT = 1e-13  # gradient of free variables, relative to its terms, that counts as zero
HELD_RIGHTLY = 1e-11  # relative gradient up to which a bound on the wrong side is kept
CALM = 3  # full Newton steps in the same piece after which no digits can be gained
LEAST_PIVOT = 1e-16  # relative to the diagonal, where rounding leaves less


@kernel(allocates=True)
def descend(problem: BoxQp, rows: int, rho: float, x: np.ndarray, side: np.ndarray) -> int:
    """Lower the cost from x to its optimum, and return the number of steps.

    Args:
        x: start, then solution (n,).
    """
    n, low, high = x.shape[0], problem.low, problem.high
    gradient, step, short, change = np.empty(n), np.empty(n), np.empty(rows), np.empty(rows)
    index, M, calm, limit = np.empty(n, dtype=np.int64), np.empty((n, n)), 0, 10 * (n + rows) + 50
    # Start within the bounds.
    for i in range(n):
        x[i] = min(max(x[i] if np.isfinite(x[i]) else 0.0, low[i]), high[i])
        side[i] = AT_LOW if x[i] <= low[i] else AT_HIGH if x[i] >= high[i] else FREE
    for used in range(limit):
        scale = cost_gradient(problem, rows, rho, x, gradient)
        if not np.isfinite(scale):
            return used
        worst = 0.0
        for i in range(n):
            if side[i] == FREE:
                worst = max(worst, abs(gradient[i]))
        # Free variables are optimal: release a bound, or end.
        if worst <= FLAT * scale or calm >= CALM:
            calm, i = 0, _strongest_pull(problem, gradient, side)
            if i < 0 or abs(gradient[i]) <= HELD_RIGHTLY * scale:
                return used
            side[i] = FREE
        free = 0
        for i in range(n):
            step[i] = 0.0
            if side[i] == FREE:
                index[free] = i
                free += 1
        for r in range(rows):
            short[r] = problem.b[r] - dot(problem.A[r], x, n)
        _newton_step(problem, rho, short, index[:free], M, gradient, step)
        for r in range(rows):
            change[r] = -dot(problem.A[r], step, n)
        reach, first = np.inf, -1  # share of the step up to the first bound
        for k in range(free):
            i = index[k]
            room = (high[i] if step[i] > 0.0 else low[i]) - x[i]
            if step[i] != 0.0 and room / step[i] < reach:
                reach, first = room / step[i], i
        share, same = _line_search(problem, rho, short, change, gradient, step, reach)
        if not np.isfinite(share):
            return used
        for k in range(free):
            i = index[k]
            x[i] = min(max(x[i] + share * step[i], low[i]), high[i])
        calm = calm + 1 if same and share < reach else 0
        # The step ended at a bound, which now holds its variable.
        if share >= reach:
            side[first] = AT_HIGH if step[first] > 0.0 else AT_LOW
            x[first] = high[first] if step[first] > 0.0 else low[first]
    return limit


@kernel
def _strongest_pull(problem: BoxQp, gradient: np.ndarray, side: np.ndarray) -> int:
    """Return the variable with the largest pull away from its bound; -1 if none."""
    found, most = -1, 0.0
    for i in range(gradient.shape[0]):
        if side[i] != FREE and problem.low[i] < problem.high[i]:
            pull = -side[i] * gradient[i]
            if pull > most:
                found, most = i, pull
    return found


@kernel
def _newton_step(
    problem: BoxQp,
    rho: float,
    short: np.ndarray,
    index: np.ndarray,
    M: np.ndarray,
    gradient: np.ndarray,
    step: np.ndarray,
) -> None:
    """Fill the Newton step of the free variables within the present piece of the cost.

    Args:
        short: b - A x (rows,).
        index: free variables, increasing (F,).
        step: step (n,), free entries filled.
    """
    free = index.shape[0]
    for k in range(free):
        for m in range(k + 1):
            M[k, m] = problem.H[index[k], index[m]]
    # Violated rows add rho a a' to the Hessian.
    for r in range(short.shape[0]):
        if short[r] > 0.0:
            for k in range(free):
                a = rho * problem.A[r, index[k]]
                for m in range(k + 1):
                    M[k, m] += a * problem.A[r, index[m]]
    for k in range(free):  # Cholesky factor in place
        for m in range(k):
            M[k, m] = (M[k, m] - dot(M[k], M[m], m)) / M[m, m]
        left = M[k, k] - dot(M[k], M[k], k)
        M[k, k] = np.sqrt(max(left, LEAST_PIVOT * abs(M[k, k]), 1e-300))
    for k in range(free):
        s = -gradient[index[k]]
        for m in range(k):
            s -= M[k, m] * step[index[m]]
        step[index[k]] = s / M[k, k]
    for k in range(free - 1, -1, -1):
        s = step[index[k]]
        for m in range(k + 1, free):
            s -= M[m, k] * step[index[m]]
        step[index[k]] = s / M[k, k]


@kernel
def _line_search(
    problem: BoxQp,
    rho: float,
    short: np.ndarray,
    change: np.ndarray,
    gradient: np.ndarray,
    step: np.ndarray,
    reach: float,
) -> tuple[float, bool]:
    """Return the optimal share of the step, at most `reach`, or NaN; and whether no row changes its piece.

    The slope is piecewise linear: rows enter or leave where `short + share * change` crosses zero.

    Args:
        short: b - A x (rows,).
        change: change of `short` over the whole step (rows,).
        reach: share at the first bound, or infinite.
    """
    n, rows, slope, bend = step.shape[0], short.shape[0], 0.0, 0.0
    # Slope and curvature of the cost along the step.
    for i in range(n):
        slope += gradient[i] * step[i]
        if step[i] != 0.0:
            bend += problem.H[i, i] * step[i] * step[i] + 2.0 * step[i] * dot(problem.H[i], step, i)
    for r in range(rows):
        if short[r] > 0.0 or (short[r] == 0.0 and change[r] > 0.0):
            bend += rho * change[r] * change[r]
    at, pieces = 0.0, 0
    if not (np.isfinite(slope) and np.isfinite(bend)):
        return np.nan, False
    if slope >= 0.0:
        return 0.0, True
    while pieces <= rows:
        end, crossed = reach, -1
        for r in range(rows):
            if change[r] != 0.0:
                cross = -short[r] / change[r]
                if at < cross < end:
                    end, crossed = cross, r
        # Zero of the slope on this piece; beyond its end, continue on the next piece.
        if not bend > 0.0:
            least = end
        else:
            least = at - slope / bend
        if least <= end:
            return least, pieces == 0
        if crossed < 0:
            return reach, False
        slope += bend * (end - at)
        at, pieces = end, pieces + 1
        for r in range(rows):
            if change[r] != 0.0 and -short[r] / change[r] == end:
                bend += (rho if change[r] > 0.0 else -rho) * change[r] * change[r]
    return at, False
