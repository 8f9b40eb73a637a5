"""Quadratic program with bounds and soft rows, small and dense, solved exactly by a dual active set, compiled.

minimise  1/2 x' H x + g' x + rho/2 sum_i s_i^2
subject to  low <= x <= high                       (hard)
            a_i . x >= b_i - s_i,  s_i >= 0        (soft, at the price rho)

The rows are inequality constraints of a robot's step: distances to keep. Bounds on the variables can always be met,
and the slack makes every row possible, so the program always has a solution: there is nothing to fail. The method is
that of Goldfarb and Idnani (1983): start from the optimum under a working set of constraints whose multipliers all have
the right sign, add the most violated constraint, drop those whose multiplier would turn negative.

A variable at a bound leaves the system: what is factored is H of the free variables, from which one that is bound is
taken, and to which one that comes free is added, at the cost of its square. So a robot whose joints are mostly at their
bounds costs less, not more, and a working set that is known from the last tick costs one factorisation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import B1, I1
from humanoid_control.numerics.cholesky import dot, upper_cholesky

TOLERANCE = 1e-10
FREE, AT_LOW, AT_HIGH, HELD = 0, 1, -1, 2  # HELD: between two equal bounds


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


class Guess(NamedTuple):
    """Constraints that may hold a solution, as of a program like it; a wrong guess only costs time.

    Attributes:
        side: (n,) FREE, AT_LOW or AT_HIGH of each variable. works: (>= rows,) whether a row does.
    """

    side: I1
    works: B1

    @classmethod
    def nothing(cls, n: int, rows: int) -> Guess:
        """No constraint does."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros(rows, dtype=np.bool_))


class WorkingSet(NamedTuple):
    """Working set of n variables and some rows, with what is factored for it.

    Attributes:
        side: (n,) FREE, AT_LOW, AT_HIGH or HELD.
        free: (n,) the free variables, in the order of U. place: (n,) where each is among them.
        H: (n, n) both triangles. U: (n, n) upper, U' U = H of the free ones.
        row: (rows,) those in the set. works: (rows,) which are.
        K: (rows, n) of each row in the set U^-T a, by the free ones. S: (rows, rows) factor of K K' + 1 / rho.
        force: (n,) multipliers of the bounds. price: (rows,) those of the rows in the set, in their order.
        z, turn: (n,), (rows,) changes of x and of `price` as a constraint's multiplier grows. push: (n,) of `force`.
        y: (n,) memory.
    """

    side: np.ndarray
    free: np.ndarray
    place: np.ndarray
    H: np.ndarray
    U: np.ndarray
    row: np.ndarray
    works: np.ndarray
    K: np.ndarray
    S: np.ndarray
    force: np.ndarray
    price: np.ndarray
    z: np.ndarray
    turn: np.ndarray
    push: np.ndarray
    y: np.ndarray


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
    guess = Guess(np.zeros(x.shape[0], dtype=np.int64), np.zeros(rows, dtype=np.bool_))
    return solve_box_qp_from(problem, rows, rho, x, multipliers, guess)


@kernel
def solve_box_qp_from(
    problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray, guess: Guess
) -> int:
    """As `solve_box_qp`, from a guess, on which the solution does not depend; replaced by what holds the solution."""
    n, side = x.shape[0], guess.side
    for i in range(n + rows):
        multipliers[i] = 0.0
    w = _working_set(problem, rows, guess)
    f = _factor_free(problem, w)
    if f < 0:
        for i in range(n):
            x[i] = min(max(0.0, problem.low[i]), problem.high[i])
            side[i] = FREE
        guess.works[:] = False
        return -1
    used, r, limit = 0, 0, 20 * (n + rows) + 50
    for i in range(rows):
        if w.works[i]:
            w.row[r] = i
            _place_row(problem, rho, w, f, r, False)
            r += 1
    while True:
        _optimum(problem, rho, w, f, r, x)
        before = f, r
        f, r = _drop_wrong(problem, rho, w, f, r)
        if before == (f, r):
            break
        used += 1
    while used < limit:
        p, sign = _most_violated(problem, rows, w, x)
        if p < 0:
            break
        f, r, steps = _add(problem, rho, w, f, r, x, p, sign)
        used += steps
    for i in range(n):
        x[i] = min(max(x[i], problem.low[i]), problem.high[i])
        multipliers[i] = w.force[i] if side[i] != FREE else 0.0
        if side[i] == HELD:
            side[i] = FREE
    for i in range(r):
        multipliers[n + w.row[i]] = w.price[i]
    return used if used < limit else -2


@kernel
def _working_set(problem: BoxQp, rows: int, guess: Guess) -> WorkingSet:
    """Memory, with the variables that a guess binds; equal bounds always do."""
    side, n, H = guess.side, guess.side.shape[0], problem.H
    index, vectors, room = np.empty((3, max(n, rows)), dtype=np.int64), np.zeros((4, n)), np.empty((2, rows))
    w = WorkingSet(
        side,
        index[0],
        index[1],
        np.empty((n, n)),
        np.empty((n, n)),
        index[2],
        guess.works[:rows],
        np.empty((rows, n)),
        np.empty((rows, rows)),
        vectors[0],
        room[0],
        vectors[1],
        room[1],
        vectors[2],
        vectors[3],
    )
    for i in range(n):
        for j in range(i + 1):
            w.H[i, j] = w.H[j, i] = H[i, j]
        if problem.low[i] == problem.high[i]:
            side[i] = HELD
        elif side[i] == HELD:
            side[i] = FREE
    return w


@kernel
def _factor_free(problem: BoxQp, w: WorkingSet) -> int:
    """Factor H of the free variables: how many they are, -1 where H is not positive definite."""
    f, n, U = 0, w.side.shape[0], w.U
    for i in range(n):
        w.place[i] = -1
        if w.side[i] == FREE:
            w.free[f], w.place[i] = i, f
            f += 1
        elif not w.H[i, i] > 0.0:
            return -1
    for i in range(f):
        a = w.free[i]
        for j in range(i, f):
            U[i, j] = w.H[a, w.free[j]]
    return f if upper_cholesky(U, f) else -1


@kernel
def _forward(U: np.ndarray, first: int, f: int, y: np.ndarray) -> None:
    """y := U^-T y, of whose first numbers so many are zero."""
    for k in range(first, f):
        s = y[k] / U[k, k]
        y[k] = s
        if s != 0.0:
            for j in range(k + 1, f):
                y[j] -= U[k, j] * s


@kernel
def _backward(U: np.ndarray, f: int, y: np.ndarray) -> None:
    """y := U^-1 y."""
    for k in range(f - 1, -1, -1):
        y[k] = (y[k] - dot(U[k, k + 1 : f], y[k + 1 : f], f - k - 1)) / U[k, k]


@kernel
def _release(w: WorkingSet, i: int, f: int) -> None:
    """Variable i comes free, after f others: a column more of U."""
    U, y = w.U, w.y
    for k in range(f):
        y[k] = w.H[i, w.free[k]]
    _forward(U, 0, f, y)
    s = w.H[i, i] - dot(y, y, f)
    for k in range(f):
        U[k, f] = y[k]
    U[f, f] = np.sqrt(max(s, 1e-15 * w.H[i, i]))
    w.free[f], w.place[i], w.side[i], w.force[i] = i, f, FREE, 0.0


@kernel
def _bind(w: WorkingSet, i: int, f: int) -> None:
    """Variable i, one of f, is free no more: its column leaves U, which rotations make a triangle again."""
    U, d = w.U, w.place[i]
    for k in range(f):
        for j in range(max(k - 1, d), f - 1):
            U[k, j] = U[k, j + 1]
    for k in range(d, f - 1):
        w.free[k] = w.free[k + 1]
        w.place[w.free[k]] = k
        size = np.sqrt(U[k, k] * U[k, k] + U[k + 1, k] * U[k + 1, k])
        c, s = U[k, k] / size, U[k + 1, k] / size
        for j in range(k, f - 1):
            t = U[k, j]
            U[k, j] = c * t + s * U[k + 1, j]
            U[k + 1, j] = c * U[k + 1, j] - s * t
    w.place[i] = -1


@kernel
def _optimum(problem: BoxQp, rho: float, w: WorkingSet, f: int, r: int, x: np.ndarray) -> None:
    """Optimum x (n,) under the working set of f free variables and r rows, and its multipliers.

    H_FF x_F = - (g + H x_B)_F + K_R' price, and the rows of the set have the slack price / rho.
    """
    g, A, n = w.push, problem.A, x.shape[0]
    for i in range(n):
        g[i] = problem.g[i]
        x[i] = 0.0
    for i in range(n):
        if w.side[i] != FREE:
            x[i] = problem.high[i] if w.side[i] == AT_HIGH else problem.low[i]
            if x[i] != 0.0:
                for j in range(n):
                    g[j] += x[i] * w.H[i, j]
    for k in range(f):
        w.y[k] = -g[w.free[k]]
    _forward(w.U, 0, f, w.y)
    for k in range(r):
        w.price[k] = problem.b[w.row[k]] - dot(w.K[k], w.y, f) - dot(A[w.row[k]], x, n)
    _solve_rows(w, r, w.price)
    for k in range(r):
        for j in range(f):
            w.y[j] += w.price[k] * w.K[k, j]
    _backward(w.U, f, w.y)
    for k in range(f):
        i = w.free[k]
        x[i] = w.y[k]
        for j in range(n):
            g[j] += x[i] * w.H[i, j]
    for k in range(r):
        for j in range(n):
            g[j] -= w.price[k] * A[w.row[k], j]
    for i in range(n):
        w.force[i] = g[i] if w.side[i] != FREE else 0.0


@kernel
def _drop_wrong(problem: BoxQp, rho: float, w: WorkingSet, f: int, r: int) -> tuple:
    """Drop what of a guess has multipliers of the wrong sign: (f, r) after it."""
    before, kept = f, 0
    for i in range(w.side.shape[0]):
        if (w.side[i] == AT_LOW and w.force[i] < 0.0) or (w.side[i] == AT_HIGH and w.force[i] > 0.0):
            _release(w, i, f)
            f += 1
    for k in range(r):
        if w.price[k] < 0.0:
            w.works[w.row[k]] = False
        else:
            w.row[kept] = w.row[k]
            kept += 1
    if f > before or kept < r:
        for k in range(kept):
            _place_row(problem, rho, w, f, k, False)
    return f, kept


@kernel
def _solve_rows(w: WorkingSet, r: int, y: np.ndarray) -> None:
    """y := (K K' + 1 / rho)^-1 y of the r rows in the set."""
    S = w.S
    for k in range(r):
        y[k] = (y[k] - dot(S[k], y, k)) / S[k, k]
    for k in range(r - 1, -1, -1):
        y[k] /= S[k, k]
        for j in range(k):
            y[j] -= S[k, j] * y[k]


@kernel
def _place_row(problem: BoxQp, rho: float, w: WorkingSet, f: int, k: int, fresh: bool) -> None:
    """Row k of those in the set: its K where that is not fresh, and its row of S."""
    K, S, A = w.K, w.S, problem.A
    if not fresh:
        for j in range(f):
            K[k, j] = A[w.row[k], w.free[j]]
        _forward(w.U, 0, f, K[k])
    for j in range(k):
        S[k, j] = (dot(K[k], K[j], f) - dot(S[k], S[j], j)) / S[j, j]
    S[k, k] = np.sqrt(max(dot(K[k], K[k], f) + 1.0 / rho - dot(S[k], S[k], k), 1e-300))


@kernel
def _direction(problem: BoxQp, rho: float, w: WorkingSet, f: int, r: int, p: int, sign: int) -> float:
    """Changes of x (`z`), of the rows' prices (`turn`) and of the forces (`push`) by the multiplier of constraint p.

    Returns:
        how fast the constraint closes.
    """
    z, n, A, push = w.z, w.side.shape[0], problem.A, w.push
    first = 0
    if p < n:
        first = w.place[p]
        for k in range(f):
            w.y[k] = 0.0
        w.y[first] = sign
    else:
        for k in range(f):
            w.y[k] = A[p - n, w.free[k]]
    _forward(w.U, first, f, w.y)
    for k in range(r):
        w.turn[k] = -dot(w.K[k], w.y, f)
    _solve_rows(w, r, w.turn)
    for k in range(r):
        for j in range(f):
            w.y[j] += w.turn[k] * w.K[k, j]
    _backward(w.U, f, w.y)
    for i in range(n):
        z[i] = 0.0
        push[i] = -A[p - n, i] if p >= n else 0.0
    for k in range(f):
        z[w.free[k]] = w.y[k]
    if f < n:
        for k in range(f):
            i = w.free[k]
            for j in range(n):
                push[j] += z[i] * w.H[i, j]
        for k in range(r):
            for j in range(n):
                push[j] -= w.turn[k] * A[w.row[k], j]
    return sign * z[p] if p < n else dot(A[p - n], z, n) + 1.0 / rho


@kernel
def _add(problem: BoxQp, rho: float, w: WorkingSet, f: int, r: int, x: np.ndarray, p: int, sign: int) -> tuple:
    """Constraint p joins the working set, and those leave it whose multipliers would get the wrong sign.

    Args:
        f, r: how many variables are free, and how many rows are in the set. sign: AT_LOW, or AT_HIGH of a variable.

    Returns:
        (f, r, steps).
    """
    n, own, steps = x.shape[0], 0.0, 0
    while True:
        steps += 1
        curvature = _direction(problem, rho, w, f, r, p, sign)
        if p >= n:
            missed = problem.b[p - n] - own / rho - dot(problem.A[p - n], x, n)
        else:
            missed = problem.low[p] - x[p] if sign == AT_LOW else x[p] - problem.high[p]
        step, blocking = max(0.0, missed / curvature), -1
        for i in range(n):
            side = w.side[i]
            if side in (AT_LOW, AT_HIGH):
                down = -side * w.push[i]
                if down > 0.0 and side * w.force[i] < step * down:
                    step, blocking = max(side * w.force[i], 0.0) / down, i
        for k in range(r):
            if w.turn[k] < 0.0 and w.price[k] < -step * w.turn[k]:
                step, blocking = max(w.price[k], 0.0) / -w.turn[k], n + k
        own += step
        for i in range(n):
            x[i] += step * w.z[i]
            if w.side[i] != FREE:
                w.force[i] += step * w.push[i]
        for k in range(r):
            w.price[k] += step * w.turn[k]
        if blocking < 0:
            break
        if blocking < n:
            _release(w, blocking, f)
            f += 1
        else:
            k = blocking - n
            w.works[w.row[k]] = False
            r -= 1
            for i in range(k, r):
                w.row[i], w.price[i] = w.row[i + 1], w.price[i + 1]
                for j in range(f):
                    w.K[i, j] = w.K[i + 1, j]
        for k in range(0 if blocking < n else blocking - n, r):
            _place_row(problem, rho, w, f, k, blocking >= n)
    if p < n:
        _bind(w, p, f)
        f -= 1
        x[p] = problem.low[p] if sign == AT_LOW else problem.high[p]
        w.side[p], w.force[p] = sign, sign * own
        for k in range(r):
            _place_row(problem, rho, w, f, k, False)
    else:
        w.row[r], w.works[p - n], w.price[r] = p - n, True, own
        _place_row(problem, rho, w, f, r, False)
        r += 1
    return f, r, steps


@kernel
def _most_violated(problem: BoxQp, rows: int, w: WorkingSet, x: np.ndarray) -> tuple:
    """Constraint outside the working set that is missed most, n + i for a row, -1 where none is; its side."""
    n, worst, p, sign = x.shape[0], -TOLERANCE, -1, AT_LOW
    for i in range(n):
        if w.side[i] == FREE:
            if x[i] - problem.low[i] < worst:
                worst, p, sign = x[i] - problem.low[i], i, AT_LOW
            if problem.high[i] - x[i] < worst:
                worst, p, sign = problem.high[i] - x[i], i, AT_HIGH
    for i in range(rows):
        if not w.works[i]:
            s = dot(problem.A[i], x, n) - problem.b[i]
            if s < worst:
                worst, p, sign = s, n + i, AT_LOW
    return p, sign
