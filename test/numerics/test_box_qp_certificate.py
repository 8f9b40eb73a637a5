"""The check of a solution, and programs whose pivots lose their digits: solved are those that pass, and they are."""

import numpy as np
import pytest

from humanoid_control.numerics.box_program import BoxQp, Guess
from humanoid_control.numerics.box_qp import solve_box_qp_from
from humanoid_control.numerics.box_qp_certificate import is_optimal, optimality_error
from test.numerics.test_box_qp import problem


def excess(p, rho, x):
    """Bound of how much more than the least x costs, relative to the cost: the first-order gap over the box.

    A convex cost lies above its tangent, so that it is nowhere less than at the vertex to which the tangent falls most.
    """
    H, g, low, high, A, b, y = (np.asarray(a, dtype=np.longdouble) for a in (*p, x))
    slack = np.maximum(0, b - A @ y)
    gradient = H @ y + g - rho * (A.T @ slack)
    gap = np.maximum(gradient * (y - low), gradient * (y - high)).sum()
    return float(gap / (1 + abs(y @ (H @ y) / 2 + g @ y + rho * (slack @ slack) / 2)))


def program(rng, least, scale=1.0):
    H, g, low, high, A, b = problem(rng, True)
    return BoxQp(H + (least - 1e-4) * np.eye(len(g)), g, low, high, scale * A, scale * b)


def solved(p, rho, guess):
    n, rows = len(p.g), len(p.b)
    x, multipliers = np.empty(n), np.empty(n + rows + 1)
    return x, multipliers, solve_box_qp_from(p, rows, rho, x, multipliers, guess)


@pytest.mark.parametrize("least", [1e-8, 1e-10])
def test_nearly_singular_programs_with_a_high_price_are_solved(least):
    """The pivots alone left 129 and 168 of 250 without the conditions of an optimum, some with infinite numbers."""
    rng = np.random.default_rng(4)
    for _ in range(250):
        p = program(rng, least)
        x, m, used = solved(p, 1e6, Guess.nothing(len(p.g), len(p.b)))
        assert used >= 0 and is_optimal(p, len(p.b), 1e6, x)
        assert (x >= p.low).all() and (x <= p.high).all()
        # the check bounds the gradient; without fused multiplications one of 250 costs 0.14 % more than the least
        assert excess(p, 1e6, x) < 2e-3
        left = p.H @ x + p.g - m[: len(p.g)] - p.A.T @ m[len(p.g) : -1]
        moving = p.low < p.high
        assert np.abs(left[moving]).max() < 1e-4 * max(np.abs(p.g).max(), np.abs(m).max())


def test_whatever_is_called_solved_passes_the_check():
    """From good and bad guesses, over sixteen decades of price, rows and least eigenvalue; few are refused."""
    rng, refused, count = np.random.default_rng(1), 0, 3000
    for k in range(count):
        p = program(rng, 10.0 ** rng.integers(-12, -2), 10.0 ** rng.uniform(-1, 2))
        n, rho = len(p.g), 10.0 ** rng.integers(2, 10)
        side = [rng.integers(-1, 2, n), np.ones(n), -np.ones(n), np.zeros(n)][k % 4].astype(np.int64)
        x, _, used = solved(p, rho, Guess(side, rng.random(len(p.b)) < (0.5 if k % 3 else 1.0)))
        assert (x >= p.low).all() and (x <= p.high).all()
        assert used < 0 or is_optimal(p, len(p.b), rho, x)
        refused += used < 0
    assert refused < 0.01 * count


def test_numbers_that_are_not_finite_are_not_solved():
    for place in ("H", "g", "A", "b"):
        p = program(np.random.default_rng(8), 1e-2)
        assert len(p.b)
        getattr(p, place)[-1] = np.nan
        x, _, used = solved(p, 1e4, Guess(np.zeros(len(p.g), dtype=np.int64), np.ones(len(p.b), dtype=bool)))
        assert used < 0, place
        assert (x >= p.low).all() and (x <= p.high).all()


def test_what_a_bound_holds_is_no_error_and_what_it_does_not_is():
    p = BoxQp(np.eye(2), np.array([-5.0, 0.5]), -np.ones(2), np.ones(2), np.zeros((0, 2)), np.zeros(0))
    assert optimality_error(p, 0, 1.0, np.array([1.0, -0.5])) == 0.0
    assert optimality_error(p, 0, 1.0, np.array([0.9, -0.5])) == pytest.approx(4.1 / 5.0)
    assert optimality_error(p, 0, 1.0, np.array([1.0, 1.0])) == pytest.approx(1.5 / 5.0)
    assert not is_optimal(p, 0, 1.0, np.array([np.nan, 0.0]))


def test_rows_pull_by_their_price():
    p = BoxQp(np.eye(1), np.zeros(1), -np.ones(1), np.ones(1), np.ones((2, 1)), np.array([0.5, 9.0]))
    assert optimality_error(p, 1, 99.0, np.array([0.495])) < 1e-12, "only the first row counts"
    assert optimality_error(p, 1, 99.0, np.array([0.3])) > 0.9
