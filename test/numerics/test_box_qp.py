"""The small quadratic program against daqp on the same problem with its slack written out, and its own conditions."""

import daqp
import numpy as np
import pytest

from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp

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
