"""A small quadratic program with bounds and soft rows, solved exactly by a dual active set, compiled.

minimise  1/2 x' H x + g' x + rho/2 sum_i s_i^2
subject to  low <= x <= high                       (hard)
            a_i . x >= b_i - s_i,  s_i >= 0        (soft, at the price rho)

The rows are inequality constraints of a robot's step: distances to keep. Bounds on the variables can always be met,
and the slack makes every row possible, so the program always has a solution: there is nothing to fail. The method is
that of Goldfarb and Idnani (1983): start from the unconstrained optimum, add the most violated constraint, drop those
whose multiplier would turn negative. The working set stays small, so its system is factored anew each time.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

TOLERANCE = 1e-10


@kernel
def cholesky(M: np.ndarray, n: int, L: np.ndarray) -> bool:
    """Factor the leading n x n block of M = L L'; False where it is not positive definite."""
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if not s > 0.0:
                    return False
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return True


@kernel
def solve_factored(L: np.ndarray, n: int, b: np.ndarray) -> None:
    """b := (L L')^-1 b, for the leading n entries."""
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for k in range(i + 1, n):
            s -= L[k, i] * b[k]
        b[i] = s / L[i, i]


@kernel
def solve_box_qp(
    H: np.ndarray,
    g: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    A: np.ndarray,
    b: np.ndarray,
    rows: int,
    rho: float,
    x: np.ndarray,
    multipliers: np.ndarray,
) -> int:
    """Solve the program of this file.

    Args:
        H: (n, n) positive definite, lower triangle used. g: (n,).
        low, high: (n,) with low <= high.
        A: (>= rows, n), b: (>= rows,): soft rows a . x >= b.
        rows: how many of them count.
        rho: price of the slack; large against H.
        x: (n,) filled with the solution, inside the bounds to the last bit.
        multipliers: (>= n + rows,) filled: of the bounds (positive at low, negative at high), then of the rows.

    Returns:
        iterations used; -1 where H is not positive definite (x is then the point of the box nearest to zero), -2 where
        the iterations ran out (x is inside the bounds, but not the optimum).
    """
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

    most = n + rows
    work = np.empty(most, dtype=np.int64)  # constraints in the working set
    side = np.zeros(m)  # +1: a . x >= b, or x >= low; -1: x <= high
    S, F = np.empty((most, most)), np.empty((most, most))
    r = np.empty(most)
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
                s = -b[i]
                for k in range(n):
                    s += A[i, k] * x[k]
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
        t_p = 0.0
        while used < limit:
            used += 1
            # r: how the multipliers of the working set give way; curvature: how fast the constraint closes.
            for i in range(count):
                r[i] = sign * side[work[i]] * _product(A, Y, work[i], p, n)
                for k in range(i + 1):
                    S[i, k] = side[work[i]] * side[work[k]] * _product(A, Y, work[i], work[k], n)
                if work[i] >= n:
                    S[i, i] += 1.0 / rho
            curvature = _product(A, Y, p, p, n) + (1.0 / rho if p >= n else 0.0)
            own = curvature
            independent = True
            if count > 0:
                independent = cholesky(S, count, F)
                c = r[:count].copy()
                solve_factored(F, count, r)
                for i in range(count):
                    curvature -= c[i] * r[i]
            step, blocking = np.inf, -1
            if independent and curvature > 1e-14 * own:
                s = x[p] - low[p] if p < n and sign > 0 else 0.0
                if p < n and sign < 0:
                    s = high[p] - x[p]
                if p >= n:
                    s = t_p / rho - b[p - n]
                    for k in range(n):
                        s += A[p - n, k] * x[k]
                step = max(0.0, -s / curvature)
            for i in range(count):
                size = side[work[i]] * multipliers[work[i]]
                if r[i] > 0.0 and size < step * r[i]:
                    step, blocking = size / r[i], i
            if step == np.inf:
                side[p] = 0.0
                break
            for k in range(n):
                move = sign * Y[p, k]
                for i in range(count):
                    move -= r[i] * side[work[i]] * Y[work[i], k]
                x[k] += step * move
            for i in range(count):
                multipliers[work[i]] -= step * r[i] * side[work[i]]
            t_p += step
            multipliers[p] = sign * t_p
            if blocking < 0:
                work[count], side[p] = p, sign
                count += 1
                break
            gone = work[blocking]
            side[gone], multipliers[gone] = 0.0, 0.0
            for i in range(blocking, count - 1):
                work[i] = work[i + 1]
            count -= 1
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
    s = 0.0
    for k in range(n):
        s += A[i - n, k] * Y[j, k]
    return s
