"""The check of a solution: it passes what is right, and finds each wrong answer of a nearly singular program."""

import numpy as np
import pytest

from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp
from humanoid_control.numerics.box_qp_certificate import SAFE_RATIO, is_optimal, optimality_error
from test.numerics.test_box_qp import problem


def cost(p, rho, x):
    slack = np.maximum(0.0, p.b - p.A @ x)
    return 0.5 * x @ p.H @ x + p.g @ x + 0.5 * rho * slack @ slack


def descended(p, rho, x):
    """A point of less cost where a few steps of coordinate descent find one."""
    x = x.copy()
    for _ in range(30):
        for i in range(len(x)):
            short = np.maximum(0.0, p.b - p.A @ x)
            slope = p.H[i] @ x + p.g[i] - rho * p.A[:, i] @ short
            bend = p.H[i, i] + rho * (p.A[short > 0, i] ** 2).sum()
            x[i] = np.clip(x[i] - slope / bend, p.low[i], p.high[i])
    return x


def solved(rng, least, rho):
    H, g, low, high, A, b = problem(rng, True)
    H = H + (least - 1e-4) * np.eye(len(g))
    p = BoxQp(H, g, low, high, A, b)
    x, multipliers = np.empty(len(g)), np.empty(len(g) + len(b) + 1)
    assert solve_box_qp(p, len(b), rho, x, multipliers) >= 0
    return p, x


@pytest.mark.parametrize("rho", [1e3, 1e4])
def test_solutions_within_the_safe_range_pass(rho):
    rng = np.random.default_rng(3)
    for _ in range(150):
        p, x = solved(rng, rho / SAFE_RATIO, rho)
        assert is_optimal(p, len(p.b), rho, x)


def test_a_wrong_answer_of_a_nearly_singular_program_is_found():
    """H with 1e-8 or 1e-10 and a price of 1e6: what descent improves by a millionth does not pass."""
    rng, rho, wrong = np.random.default_rng(4), 1e6, 0
    for k in range(200):
        p, x = solved(rng, 1e-8 if k % 2 else 1e-10, rho)
        finite = bool(np.isfinite(x).all())
        better = not finite or cost(p, rho, descended(p, rho, x)) < cost(p, rho, x) - 1e-6 * (1 + abs(cost(p, rho, x)))
        wrong += better
        assert not (better and is_optimal(p, len(p.b), rho, x))
    assert wrong > 20, "the program is hard enough to show it"


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
