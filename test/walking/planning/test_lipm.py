"""The pendulum's closed form against differential equations solved by SciPy."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad, solve_bvp, solve_ivp

from humanoid_control.walking.planning.lipm import SampledPath, ZmpPath, follow_dcm

OMEGA = 3.3


def path(seed=0, pieces=6, omega=OMEGA):
    rng = np.random.default_rng(seed)
    t = 0.4 + np.concatenate([[0.0], np.cumsum(rng.uniform(0.05, 0.7, pieces))])
    return ZmpPath.of(t, rng.uniform(-0.3, 0.3, (pieces + 1, 2)), omega)


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_solves_the_boundary_value_problem(seed):
    """c'' = w^2 (c - p) from the path's c and c' at its start to rest at its end."""
    way = path(seed)
    t = np.unique(np.concatenate([np.linspace(a, b, 40) for a, b in zip(way.t[:-1], way.t[1:], strict=True)]))
    c0 = way.p[0] + [0.02, -0.01]
    for k in (0, 1):

        def rhs(s, y, k=k):
            p = np.interp(s, way.t, way.p[:, k])
            return np.array([y[1], OMEGA**2 * (y[0] - p)])

        def ends(a, b, k=k):  # the centre of mass now; at the end the divergent component is at rest
            return np.array([a[0] - c0[k], b[0] + b[1] / OMEGA - way.p[-1, k]])

        guess = np.array([np.interp(t, way.t, way.p[:, k]), np.zeros_like(t)])
        solution = solve_bvp(rhs, ends, t, guess, tol=1e-9, max_nodes=20000)
        assert solution.success
        xi = solution.sol(t)[0] + solution.sol(t)[1] / OMEGA
        assert np.abs(xi - [way.dcm(s)[k] for s in t]).max() < 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_forward_integration_of_the_pendulum_stays_on_it(seed):
    """xi' = w (xi - p): over one piece, where its own instability does not drown the answer."""
    way = path(seed)
    for a, b in zip(way.t[:-1], way.t[1:], strict=True):
        run = solve_ivp(lambda s, xi: OMEGA * (xi - way.zmp(s)), (a, b - 1e-9), way.dcm(a), rtol=1e-11, atol=1e-13)
        assert np.allclose(run.y[:, -1], way.dcm(b), atol=1e-7)


def test_the_divergent_component_is_the_future_of_the_zero_moment_point():
    """xi(t) = w int_t^inf exp(-w (s - t)) p(s) ds, also before the first corner and after the last one."""
    way = path(4)
    for t in (way.t[0] - 0.3, way.t[0], way.t[2] + 0.01, way.t[-1] - 0.01, way.t[-1] + 1):
        for k in (0, 1):
            late = max(t, way.t[-1])
            corners = [t, *(s for s in way.t if s > t)]
            total = sum(
                quad(lambda s, k=k, t=t: OMEGA * np.exp(-OMEGA * (s - t)) * way.zmp(s)[k], a, b, epsabs=1e-12)[0]
                for a, b in pairwise(corners)
            )
            total += way.p[-1, k] * np.exp(-OMEGA * (late - t))
            assert way.dcm(t)[k] == pytest.approx(total, abs=1e-9)


def test_corners_are_where_the_point_is_and_it_is_held_outside():
    way = path(5)
    for t, p in zip(way.t, way.p, strict=True):
        assert np.allclose(way.zmp(t), p)
    assert np.allclose(way.zmp(way.t[0] - 1), way.p[0])
    assert np.allclose(way.zmp(way.t[-1] + 1), way.p[-1])
    assert np.allclose(way.dcm(way.t[-1] + 1), way.p[-1])
    assert np.allclose(way.dcm(way.t[1] - 1e-12), way.dcm(way.t[1]), atol=1e-9)


def test_two_corners_at_one_time_are_a_jump_of_the_point_not_of_the_divergent_component():
    way = ZmpPath.of(np.array([0.0, 0.5, 0.5, 1.0]), np.array([[0, 0], [0, 0], [0.1, 0], [0.1, 0]]), OMEGA)
    assert np.allclose(way.dcm(0.5 - 1e-9), way.dcm(0.5 + 1e-9), atol=1e-8)
    assert way.zmp(0.5 - 1e-9)[0] == pytest.approx(0)
    assert way.zmp(0.5 + 1e-9)[0] == pytest.approx(0.1)


def test_the_centre_of_mass_follows_exactly_while_the_divergent_component_moves_evenly():
    c, a, b, dt = np.array([0.1, -0.2]), np.array([0.15, 0.0]), np.array([0.3, 0.1]), 0.25
    run = solve_ivp(lambda s, x: OMEGA * (a + (b - a) * s / dt - x), (0, dt), c, rtol=1e-11, atol=1e-13)
    assert np.allclose(follow_dcm(c, a, b, OMEGA, dt), run.y[:, -1], atol=1e-10)


def test_samples_are_met_and_joined_by_straight_lines():
    t = np.array([0.0, 0.1, 0.3])
    p, xi = np.array([[0.0, 1], [1, 1], [1, 3]]), np.array([[2.0, 0], [4, 0], [4, 8]])
    way = SampledPath(t, p, xi, OMEGA)
    assert way.zmp(0.05).tolist() == [0.5, 1]
    assert way.dcm(0.2).tolist() == [4, 4]
    assert way.dcm(-1).tolist() == [2, 0]
    assert way.zmp(9).tolist() == [1, 3]
