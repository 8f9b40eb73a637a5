"""Quadratic program with bounds and soft rows, small and dense, solved exactly by a dual active set, compiled.

minimise  1/2 x' H x + g' x + rho/2 sum_i s_i^2
subject to  low <= x <= high                       (hard)
            a_i . x >= b_i - s_i,  s_i >= 0        (soft, at the price rho)

The rows are inequality constraints of a robot's step: distances to keep. Bounds on the variables can always be met,
and the slack makes every row possible, so the program always has a solution: there is nothing to fail. The method is
that of Goldfarb and Idnani (1983): start from the unconstrained optimum, add the most violated constraint, drop those
whose multiplier would turn negative. The working set's system keeps its factor: a constraint that joins adds a row to
it, one that leaves costs the rows behind it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.cholesky import cholesky, dot, factor_from, grown, solve_factored

TOLERANCE = 1e-10


class BoxQp(NamedTuple):
    """The numbers of the program.

    Attributes:
        H: (n, n) positive definite, lower triangle used. g: (n,).
        low, high: (n,) with low <= high.
        A: (>= rows, n), b: (>= rows,): soft rows a . x >= b.
    """

    H: np.ndarray
    g: np.ndarray
    low: np.ndarray
    high: np.ndarray
    A: np.ndarray
    b: np.ndarray


@kernel
def solve_box_qp(problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray) -> int:
    """Solve the program of this file.

    Args:
        problem: its numbers. rows: how many rows count.
        rho: price of the slack; large against H.
        x: (n,) filled with the solution, inside the bounds to the last bit.
        multipliers: (>= n + rows,) filled: of the bounds (positive at low, negative at high), then of the rows.

    Returns:
        iterations used; -1 where H is not positive definite (x is then the point of the box nearest to zero), -2 where
        the iterations ran out (x is inside the bounds, but not the optimum).
    """
    H, g, low, high, A, b = problem
    n, m = g.shape[0], g.shape[0] + rows
    L = np.empty((n, n))
    for i in range(m):
        multipliers[i] = 0.0
    if not cholesky(H, n, L):
        for i in range(n):
            x[i] = min(max(0.0, low[i]), high[i])
        return -1
    for i in range(n):
        x[i] = -g[i]
    solve_factored(L, n, x)
    # Y: H^-1 times a constraint's normal, filled when the constraint first matters; a bound's normal is a unit vector.
    Y = np.empty((m, n))
    known = np.zeros(m, dtype=np.bool_)

    work = np.empty(m, dtype=np.int64)  # constraints in the working set
    side = np.zeros(m)  # +1: a . x >= b, or x >= low; -1: x <= high
    # The working set could hold all m, but hardly ever holds more than n: memory for that is cheaper to get.
    room = min(m, n + 8)
    S, F = np.empty((room, room)), np.empty((room, room))
    r, half, column = np.empty(m), np.empty(m), np.empty(m)
    count, used = 0, 0
    limit = 20 * m + 50
    while used < limit:
        # The most violated constraint that is not in the working set.
        worst, p, sign = -TOLERANCE, -1, 1.0
        for i in range(n):
            if side[i] == 0.0:
                if x[i] - low[i] < worst:
                    worst, p, sign = x[i] - low[i], i, 1.0
                if high[i] - x[i] < worst:
                    worst, p, sign = high[i] - x[i], i, -1.0
        for i in range(rows):
            if side[n + i] == 0.0:
                s = dot(A[i], x, n) - b[i]
                if s < worst:
                    worst, p, sign = s, n + i, 1.0
        if p < 0:
            break
        if not known[p]:
            known[p] = True
            for k in range(n):
                Y[p, k] = A[p - n, k] if p >= n else 0.0
            if p < n:
                Y[p, p] = 1.0
            solve_factored(L, n, Y[p])
        for i in range(count):
            column[i] = sign * side[work[i]] * _product(A, Y, work[i], p, n)
        own = _product(A, Y, p, p, n) + (1.0 / rho if p >= n else 0.0)
        t_p = 0.0
        while used < limit:
            used += 1
            # r: how the multipliers of the working set give way; curvature: how fast the constraint closes.
            curvature = own
            for i in range(count):
                t = column[i]
                for k in range(i):
                    t -= F[i, k] * half[k]
                half[i] = t / F[i, i]
                curvature -= half[i] * half[i]
            for i in range(count - 1, -1, -1):
                t = half[i]
                for k in range(i + 1, count):
                    t -= F[k, i] * r[k]
                r[i] = t / F[i, i]
            step, blocking = np.inf, -1
            if curvature > 1e-14 * own:
                s = x[p] - low[p] if p < n and sign > 0 else 0.0
                if p < n and sign < 0:
                    s = high[p] - x[p]
                if p >= n:
                    s = t_p / rho - b[p - n] + dot(A[p - n], x, n)
                step = max(0.0, -s / curvature)
            for i in range(count):
                size = side[work[i]] * multipliers[work[i]]
                if r[i] > 0.0 and size < step * r[i]:
                    step, blocking = size / r[i], i
            if step == np.inf:  # it depends on the working set but for rounding: nothing more to gain from it
                side[p] = sign
                break
            for k in range(n):
                x[k] += step * sign * Y[p, k]
            for i in range(count):
                back = step * r[i] * side[work[i]]
                multipliers[work[i]] -= back
                for k in range(n):
                    x[k] -= back * Y[work[i], k]
            t_p += step
            multipliers[p] = sign * t_p
            if blocking < 0:
                if count == room:
                    room = m
                    S, F = grown(S, room), grown(F, room)
                work[count], side[p] = p, sign
                for i in range(count):
                    S[count, i], F[count, i] = column[i], half[i]
                S[count, count], F[count, count] = own, np.sqrt(curvature)
                count += 1
                break
            gone = work[blocking]
            side[gone], multipliers[gone] = 0.0, 0.0
            count -= 1
            for i in range(blocking, count):
                work[i], column[i] = work[i + 1], column[i + 1]
                for k in range(blocking):
                    S[i, k] = S[i + 1, k]
                for k in range(blocking, i + 1):
                    S[i, k] = S[i + 1, k + 1]
            factor_from(S, blocking, count, F)
    for i in range(n):
        x[i] = min(max(x[i], low[i]), high[i])
    return used if used < limit else -2


@kernel
def _product(A: np.ndarray, Y: np.ndarray, i: int, j: int, n: int) -> float:
    """a_i . H^-1 a_j of two constraints' normals."""
    if i < n:
        return Y[j, i]
    if j < n:
        return Y[i, j]
    return dot(A[i - n], Y[j], n)
