"""The small quadratic program against daqp on the same problem with its slack written out, and its own conditions."""

import daqp
import numpy as np
import pytest

from humanoid_control.numerics.box_qp import AT_HIGH, AT_LOW, FREE, BoxQp, Guess, solve_box_qp, solve_box_qp_from

RHO = 1e4


def solve(H, g, low, high, A, b):
    x, multipliers = np.empty(len(g)), np.empty(len(g) + len(b) + 1)
    used = solve_box_qp(BoxQp(H, g, low, high, A, b), len(b), RHO, x, multipliers)
    return x, multipliers[: len(g) + len(b)], used


def cost(x, H, g, A, b):
    slack = np.maximum(0, b - A @ x)
    return 0.5 * x @ H @ x + g @ x + 0.5 * RHO * slack @ slack


def reference(H, g, low, high, A, b):
    n, k = len(g), len(b)
    big = np.zeros((n + k, n + k))
    big[:n, :n], big[n:, n:] = H, RHO * np.eye(k)
    free = np.full(k, 1e30)
    rows = np.ascontiguousarray(np.hstack([A, np.eye(k)]))
    upper, lower = np.concatenate([high, free, free]), np.concatenate([low, -free, b])
    x, _, flag, _ = daqp.solve(big, np.concatenate([g, np.zeros(k)]), rows, upper, lower, np.zeros(n + 2 * k, np.int32))
    assert flag > 0
    return np.clip(x[:n], low, high)


def problem(rng, hard):
    n, k = int(rng.integers(2, 22)), int(rng.integers(0, 12))
    B = rng.normal(size=(n // 2 if hard else n, n))
    H = B.T @ B + (1e-4 if hard else 1e-2) * np.eye(n)
    low, high = -rng.uniform(0, 1, n), rng.uniform(0, 1, n)
    A, b = rng.normal(size=(k, n)), rng.normal(size=k) * 0.5
    if hard:
        high[0] = low[0]  # a joint that may not move
        if k > 2:  # one row twice, and one that contradicts it
            A[1], A[2], b[2] = A[0], -A[0], 0.1 - b[0]
    return H, 3 * rng.normal(size=n), low, high, A, b


@pytest.mark.parametrize("hard", [False, True])
def test_as_good_as_another_solver(hard):
    rng = np.random.default_rng(1)
    for _ in range(150):
        H, g, low, high, A, b = problem(rng, hard)
        x, _, used = solve(H, g, low, high, A, b)
        assert used >= 0
        assert (x >= low).all() and (x <= high).all()
        ours, theirs = cost(x, H, g, A, b), cost(reference(H, g, low, high, A, b), H, g, A, b)
        assert ours <= theirs + 2e-6 * (1 + abs(theirs))


def test_the_conditions_of_an_optimum_hold():
    """Stationarity, signs of the multipliers, and no force from a constraint that is not touched."""
    rng = np.random.default_rng(2)
    for _ in range(100):
        H, g, low, high, A, b = problem(rng, False)
        n = len(g)
        x, m, _ = solve(H, g, low, high, A, b)
        assert np.allclose(H @ x + g, m[:n] + A.T @ m[n:], atol=1e-6)
        assert (m[n:] >= -1e-9).all()
        assert np.allclose(m[n:], RHO * np.maximum(0, b - A @ x), atol=1e-4 * (1 + abs(m).max()))
        inside = (x > low + 1e-8) & (x < high - 1e-8)
        assert np.allclose(m[:n][inside], 0, atol=1e-8)
        assert (m[:n][x <= low + 1e-8] >= -1e-8).all() and (m[:n][x >= high - 1e-8] <= 1e-8).all()


def test_rows_nobody_can_meet_are_broken_as_little_as_possible():
    x, _, used = solve(np.eye(1), np.zeros(1), -np.ones(1), np.ones(1), np.array([[1.0], [-1.0]]), np.array([2.0, 2.0]))
    assert used >= 0
    assert x == pytest.approx([0.0], abs=1e-9)
    x, _, _ = solve(np.eye(1), np.zeros(1), -np.ones(1), np.ones(1), np.array([[1.0]]), np.array([5.0]))
    assert x == pytest.approx([1.0])


def test_an_indefinite_cost_moves_nothing_and_says_so():
    x, _, used = solve(-np.eye(2), np.ones(2), -np.ones(2), np.array([1.0, -0.5]), np.zeros((0, 2)), np.zeros(0))
    assert used == -1
    assert x.tolist() == [0.0, -0.5]


def warm(H, g, low, high, A, b, guess):
    x, multipliers = np.empty(len(g)), np.empty(len(g) + len(b))
    used = solve_box_qp_from(BoxQp(H, g, low, high, A, b), len(b), RHO, x, multipliers, guess)
    return x, multipliers, used


@pytest.mark.parametrize("hard", [False, True])
def test_any_guess_leads_to_the_solution_and_the_right_one_at_once(hard):
    """Also one that contradicts the solution, holds all variables, or rows that say the opposite of each other."""
    rng = np.random.default_rng(5)
    for k in range(200):
        numbers = problem(rng, hard)
        _, g, low, high, _, b = numbers
        n = len(g)
        x, m, _ = solve(*numbers)
        side = [rng.integers(-1, 2, n), np.full(n, AT_LOW), np.full(n, AT_HIGH), np.zeros(n, dtype=int)][k % 4]
        guess = Guess(side.astype(np.int64), rng.random(len(b)) < (0.5 if k % 3 else 1.0))
        y, price, used = warm(*numbers, guess)
        tolerance = 1e-5 if hard else 1e-7
        assert used >= 0 and np.abs(x - y).max() < tolerance
        assert np.allclose(m, price, atol=1e4 * tolerance * (1 + np.abs(m).max()))
        at = np.where(guess.side == AT_LOW, low, np.where(guess.side == AT_HIGH, high, y))
        assert np.array_equal(y, at) and (guess.side[low == high] == FREE).all()
        assert (price[n:][~guess.works] == 0).all() and (price[n:] >= 0).all()
        z, _, again = warm(*numbers, guess)
        assert again <= 1 and np.abs(y - z).max() < tolerance


def test_programs_that_change_little_are_followed_in_few_steps():
    """From tick to tick one or two bounds change, of thirty that are held: that is what a guess saves."""
    rng, n = np.random.default_rng(6), 40
    J = rng.normal(size=(30, n)) * (rng.random((30, n)) < 0.4)
    H, low, high = J.T @ J + 1e-3 * np.eye(n), -np.ones(n), np.ones(n)
    A, b, guess = rng.normal(size=(3, n)), -rng.uniform(0.0, 0.5, 3), Guess.nothing(n, 3)
    target, cold, steps, held = 6 * rng.normal(size=30), 0, 0, 0
    for _ in range(100):
        target += 0.03 * rng.normal(size=30)
        g = -J.T @ target
        x, _, used = warm(H, g, low, high, A, b, guess)
        y, _, anew = solve(H, g, low, high, A, b)
        assert np.abs(x - y).max() < 1e-8
        cold, steps, held = cold + anew, steps + used, held + np.count_nonzero(guess.side)
    assert held > 1000 and steps < 0.1 * cold


def test_an_indefinite_cost_is_found_whatever_the_guess():
    for side in (FREE, AT_LOW):
        guess = Guess(np.array([side, side]), np.ones(1, dtype=bool))
        x, _, used = warm(-np.eye(2), np.ones(2), -np.ones(2), np.ones(2), np.ones((1, 2)), np.zeros(1), guess)
        assert used == -1 and x.tolist() == [0.0, 0.0] and not guess.side.any() and not guess.works.any()


def test_many_steps_through_ill_posed_sets_leave_no_error():
    """Conditions of the optimum to round-off, where H is all but singular and some tasks weigh 1e5: 70 steps each."""
    rng, n, steps = np.random.default_rng(0), 38, 0
    for damping in (1e-6, 1e-3):
        for _ in range(25):
            J, weight = rng.normal(size=(24, n)), np.where(rng.random(24) < 0.4, 1e5, 1.0)
            H, g = (J.T * weight) @ J + damping * np.eye(n), -(J.T * weight) @ (0.2 * rng.normal(size=24))
            low, high, A, b = -0.05 * rng.random(n), 0.05 * rng.random(n), rng.normal(size=(6, n)), rng.normal(size=6)
            x, m, used = solve(H, g, low, high, A, 0.02 * b)
            left = H @ x + g - m[:n] - A.T @ m[n:]
            assert used > 0 and np.abs(left).max() < 2e-11 * np.abs(g).max()
            steps += used
    assert steps > 50 * 50
