"""Exact solver of small dense quadratic programs with bounds and soft rows, by a dual active set.

minimise  1/2 x' H x + g' x + rho/2 sum_i s_i^2
subject to  low <= x <= high                       (hard)
            a_i . x >= b_i - s_i,  s_i >= 0        (soft, at the price rho)

Bounds are always feasible, and slack makes every row feasible, so there is always a solution. Method of Goldfarb and
Idnani (1983): from the optimum of a working set with multipliers of the right sign, add the most violated constraint,
and drop constraints before their multiplier changes sign.

With the prices p of the rows, the conditions are one symmetric system in y = (x, -p),

    w = Q y + c,    Q = [[H, A'], [A, -1/rho]],    c = (g, -b),

w being the forces of the bounds and the slack of the rows. Free entries (variables inside their bounds, rows of the
working set) have w = 0. The others have a fixed y: a bound, or no price. Sweeping Q over the free entries (Goodnight
1979: principal pivots) makes each change of the working set one pivot, and its effect one column of the table. H is
positive and -1/rho negative, so every pivot exists and has their sign. A known working set costs one inversion, each
difference the square of the size.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.tiles import WIDTH, lanes, put_lanes
from humanoid_control.numerics.box_program import AT_HIGH, AT_LOW, FREE, HELD, BoxQp, Guess
from humanoid_control.numerics.box_qp_certificate import cost_gradient, is_optimal
from humanoid_control.numerics.box_qp_descent import descend
from humanoid_control.numerics.cholesky import dot
from humanoid_control.numerics.swept_system import (
    PANEL,
    VECTORS,
    SweptSystem,
    add_multiple,
    multiply,
    sweep,
    sweep_panel,
    take_column,
)

TOLERANCE = 1e-10
ILL_POSED = 1e9  # magnification of errors by pivots above which the solution is checked
LEAST_PIVOT = 1e-15  # relative to the diagonal of H, for a variable determined by others
WELL_POSED = 1e5  # product of the largest entries of H and its inverse up to which FEW steps leave ten digits
FEW = 8
ROUGH = 1e-12  # relative to the largest c: residual w that needs no polishing
POLISHES = 3  # largest number of polishing steps
NOT_POSITIVE, NOT_OPTIMAL = -1, -2


@kernel(allocates=True)
def solve_box_qp(problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray) -> int:
    """Solve the program of this file.

    Args:
        rho: price of the slack; large relative to H.
        x: solution (n,), filled, exactly within the bounds.
        multipliers: of the bounds (positive at low, negative at high), then of the rows (>= n + rows,), filled.

    Returns:
        Number of iterations; -1 if H is not positive definite (x is then the point of the box nearest to zero); -2 if
        the iterations ran out or the optimality conditions fail at five digits (x is within the bounds).
    """
    guess = Guess(np.zeros(x.shape[0], dtype=np.int64), np.zeros(rows, dtype=np.bool_))
    return solve_box_qp_from(problem, rows, rho, x, multipliers, guess)


@kernel(allocates=True)
def solve_box_qp_from(
    problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray, guess: Guess
) -> int:
    """Solve from a guess, which does not affect the solution, and replace it by the active set; see `solve_box_qp`."""
    n, side, live = x.shape[0], guess.side, 0
    for i in range(n):
        if problem.low[i] == problem.high[i]:
            side[i] = HELD
        elif side[i] == HELD:
            side[i] = FREE
        # Variables between equal bounds are constants, outside of the system.
        live += side[i] != HELD
        x[i] = problem.high[i] if side[i] == AT_HIGH else problem.low[i] if side[i] != FREE else 0.0
    for i in range(n + rows):
        multipliers[i] = 0.0
    size = live + rows
    # Rows of the table are padded to whole vectors.
    stride = size + 1 + (-size - 1) % WIDTH
    memory, words = (
        np.empty((stride + VECTORS) * stride + PANEL * PANEL + 2 + WIDTH),
        np.empty((2, size), dtype=np.int64),
    )
    begin = -memory.ctypes.data % 64 // 8  # start of a cache line
    used, sure = _solve(problem, rows, rho, x, multipliers, guess, memory[begin:], words)
    memory[0], words[0, :] = 0.0, 0  # keeps both alive until here
    if not sure:
        used = _check(problem, rows, rho, x, multipliers, guess, used)
    if used == NOT_POSITIVE:
        for i in range(n):
            x[i] = min(max(0.0, problem.low[i]), problem.high[i])
        guess.works[:] = False
    for i in range(n):
        if used == NOT_POSITIVE or side[i] == HELD:
            side[i] = FREE
    return used


@kernel
def _check(
    problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray, guess: Guess, used: int
) -> int:
    """Check a solution after pivots that may have lost digits, and solve again by descent if it is not optimal."""
    n, side = x.shape[0], guess.side
    if used >= 0 and is_optimal(problem, rows, rho, x):
        return used
    steps = max(used, 0) + descend(problem, rows, rho, x, side)
    cost_gradient(problem, rows, rho, x, multipliers)
    for i in range(n):
        if problem.low[i] == problem.high[i]:
            side[i] = HELD
        if side[i] != AT_LOW and side[i] != AT_HIGH:
            multipliers[i] = 0.0
    for r in range(rows):
        short = problem.b[r] - dot(problem.A[r], x, n)
        guess.works[r] = short > 0.0
        multipliers[n + r] = rho * max(0.0, short)
    return steps if is_optimal(problem, rows, rho, x) else NOT_OPTIMAL


@kernel(allocates=True)
def _solve(
    problem: BoxQp,
    rows: int,
    rho: float,
    x: np.ndarray,
    multipliers: np.ndarray,
    guess: Guess,
    memory: np.ndarray,
    words: np.ndarray,
) -> tuple[int, bool]:
    """Solve in the given memory; return the steps, and whether the pivots kept their digits."""
    n, side = x.shape[0], guess.side
    s, count = _system(problem, rho, guess, x, memory, words)
    size, used, limit = words.shape[1], 0, 20 * (n + rows) + 50
    largest = 0.0
    for k in range(size):
        i = s.variable[k]
        # A non-positive diagonal rules out a positive definite H.
        if i < n and not s.table[k * s.stride + k] > 0.0:
            return NOT_POSITIVE, True
        largest = max(largest, abs(s.table[size * s.stride + k]))
    most, settled = rho if rows > 0 else 0.0, False
    s.pivots[0], s.pivots[1] = np.inf, 0.0
    for i in range(n):
        most = max(most, problem.H[i, i])
    # Sweep the guessed working set in panels.
    for first in range(0, count, PANEL):
        last = min(first + PANEL, count)
        if not sweep_panel(s, first, last, n):
            return NOT_POSITIVE, True
        for q in range(last - first):
            _note_pivot(s, s.variable[first + q] < n, -1.0 / s.block[(PANEL + 1) * q])
    spread = _spread(s, problem, n)
    # Dual feasibility: drop constraints with multipliers of the wrong sign.
    while True:
        _place(s)
        if not _drop_wrong(s, problem, guess):
            break
        used += 1
    # Add violated constraints, then remove round-off by polishing; polishing may reveal new violations.
    for _ in range(POLISHES):
        while used < limit:
            p = _most_violated(s, problem, guess)
            if p < 0:
                break
            used += _add(s, problem, guess, p)
        # Few pivots on a well-conditioned system need no polishing.
        exact = used <= FEW and size == n + rows and max(spread, _spread(s, problem, n)) < WELL_POSED
        if used >= limit or exact or not _polish(s, problem, rho, rows, x, multipliers, ROUGH * largest):
            # Pivots within these bounds have kept their digits.
            settled = used < limit and most < ILL_POSED * s.pivots[0] and rho * s.pivots[1] < ILL_POSED
            break
    for k in range(size):
        i = s.variable[k]
        if i < n:
            x[i] = min(max(s.y[k], problem.low[i]), problem.high[i])
            multipliers[i] = s.w[k] if side[i] != FREE else 0.0
        else:
            multipliers[i] = -s.y[k] if guess.works[i - n] else 0.0
        settled = settled and np.isfinite(s.y[k]) and np.isfinite(s.w[k])
    return used if used < limit else NOT_OPTIMAL, settled


@kernel(allocates=True)
def _system(
    problem: BoxQp, rho: float, guess: Guess, x: np.ndarray, memory: np.ndarray, words: np.ndarray
) -> tuple[SweptSystem, int]:
    """Build the unswept system, and return it with the number of free entries of the guess, which come first."""
    H, A, side, n, size, variable = problem.H, problem.A, guess.side, x.shape[0], words.shape[1], words[0]
    stride = size + 1 + (-size - 1) % WIDTH
    T, v = memory[: stride * stride], memory[stride * stride :]
    panel, scaled = v[3 * stride :], v[(3 + PANEL) * stride :]
    swept_panel, block = v[(3 + 2 * PANEL) * stride :], v[VECTORS * stride :]
    pivots = block[PANEL * PANEL :]
    y, w, column = v[:stride], v[stride : 2 * stride], v[2 * stride : 3 * stride]
    s = SweptSystem(T, stride, variable, words[1], y, w, column, panel, scaled, swept_panel, block, pivots)
    # Free variables and working rows first: they are swept together.
    count, behind, held = 0, size, 0
    for i in range(n):
        if side[i] == FREE:
            variable[count] = i
            count += 1
        elif side[i] == HELD:
            held += 1
    rows = size - n + held
    for r in range(rows):
        if guess.works[r]:
            variable[count] = n + r
            count += 1
    for r in range(rows - 1, -1, -1):
        if not guess.works[r]:
            behind -= 1
            variable[behind] = n + r
    for i in range(n - 1, -1, -1):
        if side[i] == AT_LOW or side[i] == AT_HIGH:
            behind -= 1
            variable[behind] = i
    c = size * stride
    # Lower triangle of Q, and c; held variables are eliminated and contribute to c only.
    for k in range(size):
        i, at = variable[k], k * stride
        words[1, k], w[k], y[k] = 0, 0.0, x[i] if i < n else 0.0
        for m in range(k):
            j = variable[m]
            if i < n:
                T[at + m] = (H[i, j] if j < i else H[j, i]) if j < n else A[j - n, i]
            else:
                T[at + m] = A[i - n, j] if j < n else 0.0
        T[at + k], T[c + k] = (H[i, i], problem.g[i]) if i < n else (-1.0 / rho, -problem.b[i - n])
        if held > 0:
            for j in range(n):
                if side[j] == HELD and x[j] != 0.0:
                    T[c + k] += ((H[i, j] if j < i else H[j, i]) if i < n else A[i - n, j]) * x[j]
        for m in range(k - k % WIDTH, k):  # tiles on the diagonal are complete
            T[m * stride + k] = T[at + m]
    for k in range(size, stride):  # finite values in the padding
        for m in range(size if k == size else 0, stride):
            T[k * stride + m] = 0.0
    for k in range(size - size % WIDTH, size):
        for m in range(size, stride):
            T[k * stride + m] = T[c + k] if m == size else 0.0
    return s, count


@kernel
def _place(s: SweptSystem) -> None:
    """Compute free entries of y, and w, from fixed entries."""
    size, stride, y, w = s.variable.shape[0], s.stride, s.y, s.w
    for i in range(0, stride, WIDTH):
        put_lanes(w, i, lanes(s.table, size * stride + i))
    for k in range(size):
        # Fixed entries act on w through their columns.
        if s.swept[k] == 0 and y[k] != 0.0:
            take_column(s, k)
            add_multiple(w, y[k], s.column, stride)
    for k in range(size):
        if s.swept[k] == 1:
            y[k], w[k] = -w[k], 0.0


@kernel
def _let_go(s: SweptSystem, problem: BoxQp, guess: Guess, k: int) -> None:
    """Remove a constraint from the working set: free its variable, or clear the price of its row."""
    n, i = guess.side.shape[0], s.variable[k]
    if i < n:
        guess.side[i] = FREE
        _note_pivot(s, True, sweep(s, k, LEAST_PIVOT * problem.H[i, i]))
        s.w[k] = 0.0
    else:
        guess.works[i - n] = False
        sweep(s, k, 0.0)
        s.y[k] = 0.0


@kernel
def _drop_wrong(s: SweptSystem, problem: BoxQp, guess: Guess) -> bool:
    """Drop constraints with multipliers of the wrong sign; return True if there were any."""
    n, found = guess.side.shape[0], False
    for k in range(s.variable.shape[0]):
        i = s.variable[k]
        wrong = guess.side[i] * s.w[k] < 0.0 if i < n else guess.works[i - n] and s.y[k] > 0.0
        if wrong:
            found = True
            _let_go(s, problem, guess, k)
    return found


@kernel
def _most_violated(s: SweptSystem, problem: BoxQp, guess: Guess) -> int:
    """Return the entry of the most violated constraint outside the working set; -1 if none."""
    n, worst, p = guess.side.shape[0], -TOLERANCE, -1
    for k in range(s.variable.shape[0]):
        i, room = s.variable[k], 0.0
        if i < n:
            if s.swept[k] == 1:
                # Distance of a free variable to its nearer bound.
                room = min(s.y[k] - problem.low[i], problem.high[i] - s.y[k])
        elif s.swept[k] == 0:
            # Slack of a row outside the working set.
            room = s.w[k]
        if room < worst:
            worst, p = room, k
    return p


@kernel
def _add(s: SweptSystem, problem: BoxQp, guess: Guess, p: int) -> int:
    """Add the constraint of entry p, dropping others before their multipliers change sign; return the number of steps.

    As the multiplier grows by t (a force sign t on a variable, a price t of a row, i.e. y changes by -t), the free y
    change by -a t times the column and the other w by a t times it; a is the sign, -1 for a row.
    """
    n, size, side, y, w, column = guess.side.shape[0], s.variable.shape[0], guess.side, s.y, s.w, s.column
    i, steps, sign, bound = s.variable[p], 0, AT_LOW, 0.0
    bounds = i < n
    if bounds:
        sign = AT_LOW if y[p] < problem.low[i] else AT_HIGH
        bound = problem.low[i] if sign == AT_LOW else problem.high[i]
    a = float(sign) if bounds else -1.0
    while True:
        steps += 1
        take_column(s, p)
        # Full step: the violation becomes zero. It is shortened where another multiplier would change sign.
        missed = (bound - y[p]) * sign if bounds else -w[p]
        step, blocking = max(0.0, missed / -column[p]), -1
        for k in range(size):
            v, change = s.variable[k], a * column[k]
            if v < n:
                if s.swept[k] == 0 and side[v] * change < 0.0 and side[v] * w[k] < -step * side[v] * change:
                    step, blocking = max(side[v] * w[k], 0.0) / -(side[v] * change), k
            elif s.swept[k] == 1 and change < 0.0 and -y[k] < -step * change:
                step, blocking = max(-y[k], 0.0) / -change, k
        for k in range(size):
            if s.swept[k] == 1:
                y[k] -= step * a * column[k]
            else:
                w[k] += step * a * column[k]
        if bounds:
            w[p] += sign * step
        else:
            y[p] -= step
        if blocking < 0:
            break
        _let_go(s, problem, guess, blocking)
    pivot = sweep(s, p, 0.0)
    if bounds:
        y[p], side[i] = bound, sign
    else:
        _note_pivot(s, False, pivot)
        w[p], guess.works[i - n] = 0.0, True
    return steps


@kernel
def _note_pivot(s: SweptSystem, is_variable: bool, pivot: float) -> None:
    """Record the smallest pivot of a variable and the largest of a row; wrong signs and NaN count as worst.

    A pivot is the rest of a diagonal entry (of 1/rho plus additions for a row): a small rest has lost digits.
    """
    if is_variable:
        if not pivot >= s.pivots[0]:
            s.pivots[0] = pivot if pivot > 0.0 else 0.0
    elif not -pivot <= s.pivots[1]:
        s.pivots[1] = -pivot if pivot < 0.0 else np.inf


@kernel
def _spread(s: SweptSystem, problem: BoxQp, n: int) -> float:
    """Return the product of the largest diagonal entries of H and of the inverse of its free part."""
    most, inverse = 0.0, 0.0
    for k in range(s.variable.shape[0]):
        i = s.variable[k]
        if i < n:
            most = max(most, problem.H[i, i])
            if s.swept[k] == 1:
                inverse = max(inverse, -s.table[k * s.stride + k])
    return most * inverse


@kernel
def _polish(
    s: SweptSystem, problem: BoxQp, rho: float, rows: int, x: np.ndarray, multipliers: np.ndarray, rough: float
) -> bool:
    """Correct y for the residual w of free entries; return True if it was larger than `rough`.

    Args:
        x: filled from y, except held variables (n,).
        multipliers: filled with forces and prices (>= n + rows,).
    """
    n, size, y, w, H, A = x.shape[0], s.variable.shape[0], s.y, s.w, problem.H, problem.A
    for k in range(size):
        i = s.variable[k]
        if i < n:
            x[i] = y[k]
        else:
            multipliers[i] = -y[k]
    worst = 0.0
    for i in range(n):
        multipliers[i] = problem.g[i]
    for i in range(n):
        multipliers[i] += dot(H[i], x, i + 1)
        for j in range(i):
            multipliers[j] += H[i, j] * x[i]
    for r in range(rows):
        price = multipliers[n + r]
        if price != 0.0:
            for i in range(n):
                multipliers[i] -= price * A[r, i]
    for k in range(size):
        i = s.variable[k]
        w[k] = multipliers[i] if i < n else multipliers[i] / rho - problem.b[i - n] + dot(A[i - n], x, n)
        if s.swept[k] == 1:
            worst = max(worst, abs(w[k]))
    if worst <= rough:
        for k in range(size):
            if s.swept[k] == 1:
                w[k] = 0.0
        return False
    # One step of iterative refinement with the swept table as approximate inverse.
    left, out = s.column, s.scaled
    for k in range(s.stride):
        left[k] = w[k] if k < size and s.swept[k] == 1 else 0.0
    multiply(s, left, out)
    for k in range(size):
        if s.swept[k] == 1:
            y[k] += out[k]
            w[k] = 0.0
        else:
            w[k] -= out[k]
    return True
