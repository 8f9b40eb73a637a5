"""Quadratic program with bounds and soft rows, small and dense, solved exactly by a dual active set, compiled.

minimise  1/2 x' H x + g' x + rho/2 sum_i s_i^2
subject to  low <= x <= high                       (hard)
            a_i . x >= b_i - s_i,  s_i >= 0        (soft, at the price rho)

The rows are inequality constraints of a robot's step: distances to keep. Bounds on the variables can always be met,
and the slack makes every row possible, so the program always has a solution: there is nothing to fail. The method is
that of Goldfarb and Idnani (1983): start from the optimum under a working set of constraints whose multipliers all have
the right sign, add the most violated constraint, drop those whose multiplier would turn negative.

With the prices p of the rows its conditions are those of one symmetric system in y = (x, -p),

    w = Q y + c,    Q = [[H, A'], [A, -1/rho]],    c = (g, -b),

where w is the force of the bounds on the variables, and what the rows have to spare. Entries whose y is free have
w = 0: variables inside of their bounds, and rows of the working set. All others have a fixed y: a bound, or no price.
Sweeping Q over the free entries (Goodnight 1979: principal pivots, one after the other) leaves a table in which a
change of the working set is one pivot, and what it does to everything is a column, which is read. H is positive and
-1/rho negative, so that every pivot exists, and has their sign. So a set that is known from the last tick costs one
inversion, and every constraint that differs the square of the size.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.box_program import AT_HIGH, AT_LOW, FREE, HELD, BoxQp, Guess
from humanoid_control.numerics.box_qp_certificate import cost_gradient, is_optimal
from humanoid_control.numerics.box_qp_descent import descend
from humanoid_control.numerics.cholesky import dot
from humanoid_control.numerics.packed import uncounted
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
from humanoid_control.numerics.tiles import WIDTH, lanes, put_lanes

TOLERANCE = 1e-10
ILL_POSED = 1e9  # factor by which pivots magnify errors: beyond it, the solution is checked
LEAST_PIVOT = 1e-15  # of the diagonal of H, where a variable comes free that others determine
WELL_POSED = 1e5  # product of the largest numbers of H and its inverse: up to it, FEW steps leave ten digits
FEW = 8
ROUGH = 1e-12  # of the largest c: what may be left in w where it should be 0
POLISHES = 3  # times that a solution is made more exact, and looked at again
NOT_POSITIVE, NOT_OPTIMAL = -1, -2


@kernel
def solve_box_qp(problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray) -> int:
    """Solve the program of this file.

    Args:
        problem: its numbers.
        rows: how many rows count.
        rho: price of the slack; large against H.
        x: (n,) filled with the solution, inside the bounds to the last bit.
        multipliers: (>= n + rows,) filled: of the bounds (positive at low, negative at high), then of the rows.

    Returns:
        iterations used; -1 where H is not positive definite (x is then the point of the box nearest to zero), -2 where
        the iterations ran out, or the conditions of an optimum do not hold to five digits (x is inside the bounds).
    """
    guess = Guess(np.zeros(x.shape[0], dtype=np.int64), np.zeros(rows, dtype=np.bool_))
    return solve_box_qp_from(problem, rows, rho, x, multipliers, guess)


@kernel
def solve_box_qp_from(
    problem: BoxQp, rows: int, rho: float, x: np.ndarray, multipliers: np.ndarray, guess: Guess
) -> int:
    """As `solve_box_qp`, from a guess, on which the solution does not depend; replaced by what holds the solution."""
    n, side, live = x.shape[0], guess.side, 0
    for i in range(n):
        if problem.low[i] == problem.high[i]:
            side[i] = HELD
        elif side[i] == HELD:
            side[i] = FREE
        live += side[i] != HELD
        x[i] = problem.high[i] if side[i] == AT_HIGH else problem.low[i] if side[i] != FREE else 0.0
    for i in range(n + rows):
        multipliers[i] = 0.0
    size = live + rows
    stride = size + 1 + (-size - 1) % WIDTH
    memory, words = (
        np.empty((stride + VECTORS) * stride + PANEL * PANEL + 2 + WIDTH),
        np.empty((2, size), dtype=np.int64),
    )
    begin = -memory.ctypes.data % 64 // 8  # where a line of the cache begins
    used, sure = _solve(problem, rows, rho, x, multipliers, guess, uncounted(memory[begin:]), uncounted(words))
    memory[0], words[0, :] = 0.0, 0  # both are kept until here
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
    """Check a solution that pivots may have spoilt, and solve once more by descent where it is not the optimum.

    Args:
        problem: program, see `solve_box_qp_from`.
        rows: rows of the program.
        rho: price of the slack.
        x: (n,) solution of `solve_box_qp_from`.
        multipliers: multipliers of the solution.
        guess: working set of the solution.
        used: steps so far.

    Returns:
        steps used, or NOT_OPTIMAL.
    """
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


@kernel
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
    """The solution, in this memory, and whether its pivots have kept their digits; others as of `solve_box_qp_from`."""
    n, side = x.shape[0], guess.side
    s, count = _system(problem, rho, guess, x, memory, words)
    size, used, limit = words.shape[1], 0, 20 * (n + rows) + 50
    largest = 0.0
    for k in range(size):
        i = s.variable[k]
        if i < n and not s.table[k * s.stride + k] > 0.0:
            return NOT_POSITIVE, True
        largest = max(largest, abs(s.table[size * s.stride + k]))
    most, settled = rho if rows > 0 else 0.0, False
    s.pivots[0], s.pivots[1] = np.inf, 0.0
    for i in range(n):
        most = max(most, problem.H[i, i])
    for first in range(0, count, PANEL):
        last = min(first + PANEL, count)
        if not sweep_panel(s, first, last, n):
            return NOT_POSITIVE, True
        for q in range(last - first):
            _note_pivot(s, s.variable[first + q] < n, -1.0 / s.block[(PANEL + 1) * q])
    spread = _spread(s, problem, n)
    while True:
        _place(s)
        if not _drop_wrong(s, problem, guess):
            break
        used += 1
    for _ in range(POLISHES):
        while used < limit:
            p = _most_violated(s, problem, guess)
            if p < 0:
                break
            used += _add(s, problem, guess, p)
        exact = used <= FEW and size == n + rows and max(spread, _spread(s, problem, n)) < WELL_POSED
        if used >= limit or exact or not _polish(s, problem, rho, rows, x, multipliers, ROUGH * largest):
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


@kernel
def _system(
    problem: BoxQp, rho: float, guess: Guess, x: np.ndarray, memory: np.ndarray, words: np.ndarray
) -> tuple[SweptSystem, int]:
    """The system, nothing of it swept, and how many entries the guess leaves free, which come first.

    Args:
        x: (n,) where variables are that are held, or at a bound in the guess.
        memory: floats, as large as needed.
        words: integers, as large as needed.
    """
    H, A, side, n, size, variable = problem.H, problem.A, guess.side, x.shape[0], words.shape[1], words[0]
    stride = size + 1 + (-size - 1) % WIDTH
    T, v = memory[: stride * stride], memory[stride * stride :]
    panel, scaled = v[3 * stride :], v[(3 + PANEL) * stride :]
    swept_panel, block = v[(3 + 2 * PANEL) * stride :], v[VECTORS * stride :]
    pivots = block[PANEL * PANEL :]
    y, w, column = v[:stride], v[stride : 2 * stride], v[2 * stride : 3 * stride]
    s = SweptSystem(T, stride, variable, words[1], y, w, column, panel, scaled, swept_panel, block, pivots)
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
        for m in range(k - k % WIDTH, k):  # tiles on the diagonal are whole
            T[m * stride + k] = T[at + m]
    for k in range(size, stride):  # numbers, where no entry is
        for m in range(size if k == size else 0, stride):
            T[k * stride + m] = 0.0
    for k in range(size - size % WIDTH, size):
        for m in range(size, stride):
            T[k * stride + m] = T[c + k] if m == size else 0.0
    return s, count


@kernel
def _place(s: SweptSystem) -> None:
    """What is free in y, and w, by what is not."""
    size, stride, y, w = s.variable.shape[0], s.stride, s.y, s.w
    for i in range(0, stride, WIDTH):
        put_lanes(w, i, lanes(s.table, size * stride + i))
    for k in range(size):
        if s.swept[k] == 0 and y[k] != 0.0:
            take_column(s, k)
            add_multiple(w, y[k], s.column, stride)
    for k in range(size):
        if s.swept[k] == 1:
            y[k], w[k] = -w[k], 0.0


@kernel
def _let_go(s: SweptSystem, problem: BoxQp, guess: Guess, k: int) -> None:
    """A constraint leaves the working set: its variable comes free, or its row has no price."""
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
    """Let go what has a multiplier of the wrong sign; whether there was any."""
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
    """Entry of the constraint outside the working set that is missed most; -1 where none is."""
    n, worst, p = guess.side.shape[0], -TOLERANCE, -1
    for k in range(s.variable.shape[0]):
        i, room = s.variable[k], 0.0
        if i < n:
            if s.swept[k] == 1:
                room = min(s.y[k] - problem.low[i], problem.high[i] - s.y[k])
        elif s.swept[k] == 0:
            room = s.w[k]
        if room < worst:
            worst, p = room, k
    return p


@kernel
def _add(s: SweptSystem, problem: BoxQp, guess: Guess, p: int) -> int:
    """The constraint of entry p joins the working set, and those leave it whose multipliers would get the wrong sign.

    With a multiplier that grows by t, a force sign t on a variable or a price t of a row (a change -t of its y), the
    free y change by -a t times the column, and the others' w by a t times it; a is the sign, -1 for a row.

    Returns:
        the number of steps.
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
    """Keep the least pivot of a variable and the largest of a row; what has the wrong sign, or is no number, is worst.

    A variable's pivot is what others leave of its diagonal, and a row's is its 1/rho and what the variables add to it:
    the smaller a part of a number is left, the more of its digits are lost.
    """
    if is_variable:
        if not pivot >= s.pivots[0]:
            s.pivots[0] = pivot if pivot > 0.0 else 0.0
    elif not -pivot <= s.pivots[1]:
        s.pivots[1] = -pivot if pivot < 0.0 else np.inf


@kernel
def _spread(s: SweptSystem, problem: BoxQp, n: int) -> float:
    """Largest diagonal number of H, times that of the inverse of its free part."""
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
    """Take from y what pivots have left in w where it should be 0; whether that was more than `rough`.

    Args:
        x: (n,) filled by y, but where variables are held.
        multipliers: (>= n + rows,) filled by the forces, and by y.
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
