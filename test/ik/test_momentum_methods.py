"""Algorithm 4.3, the two methods' formulas, each against the same written out with dense inverses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.null_space.momentum_tracking import clamped, reducing_rates, rmrc, weighting_inverse
from humanoid_control.studies.schwienbacher2014.momentum_walkers import FreeJointGains, repulsion


@pytest.mark.parametrize("dense", [False, True])
def test_rates_are_those_of_inverse_and_projector(dense):
    """Eq. (4.12) with the weighted inverse and N formed explicitly; the task is met whatever the null-space vector."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        J, xdot, y = rng.normal(size=(22, 28)), rng.normal(size=22), rng.normal(size=28)
        w = rng.uniform(0.1, 3, 28)
        A = rng.normal(size=(28, 28))
        W_inverse = A @ A.T + np.eye(28) if dense else np.diag(w)
        inverse = W_inverse @ J.T @ np.linalg.inv(J @ W_inverse @ J.T)
        wanted = inverse @ xdot - (np.eye(28) - inverse @ J) @ W_inverse @ y
        found = rmrc(J, xdot, W_inverse if dense else w, y)
        assert np.allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())
        assert np.allclose(J @ found, xdot, atol=1e-8)


@given(st.integers(0, 10_000), st.integers(2, 40), st.integers(1, 3), st.floats(0.01, 10))
def test_inverse_of_the_momentum_weighting_is_the_inverse(seed, n, axes, delta):
    """To 1e-10 of the largest entry, for one axis (rank one) and for more."""
    J = np.random.default_rng(seed).normal(size=(axes, n))
    W = delta * np.eye(n) + J.T @ J
    assert np.abs(weighting_inverse(J, delta) - np.linalg.inv(W)).max() < 1e-10 / delta


def test_one_axis_is_the_printed_formula_with_a_number_below():
    J = np.random.default_rng(2).normal(size=28)
    printed = (np.eye(28) - np.outer(J, J) / (0.5 + J @ J)) / 0.5
    assert np.abs(weighting_inverse(J[None], 0.5) - printed).max() < 1e-12


def test_modes_of_one_axis_are_their_formulas():
    rng = np.random.default_rng(3)
    for _ in range(20):
        J, e = rng.normal(size=6) * 0.3, float(rng.normal())
        size, surplus = np.linalg.norm(J), np.array([e])
        assert np.allclose(reducing_rates(J[None], surplus, "thesis"), J * e / size**3)
        assert np.allclose(reducing_rates(J[None], surplus, "unit"), J * e / size)
        assert np.allclose(reducing_rates(J[None], surplus, "damped", 0.2), J * e / (size**2 + 0.04))
        assert np.allclose(J @ reducing_rates(J[None], surplus, "damped", 0.0), e)


@pytest.mark.parametrize("mode", ["unit", "damped"])
def test_rates_stay_bounded_where_the_levers_vanish(mode):
    """The printed normalisation grows without bound there (which is why its rates are clamped); these two do not."""
    e = np.array([1.0])
    sizes = [np.linalg.norm(reducing_rates(np.full((1, 6), s), e, mode)) for s in (1e-1, 1e-3, 1e-6, 0.0)]
    assert max(sizes) <= 5.0 + 1e-9
    assert np.linalg.norm(reducing_rates(np.full((1, 6), 1e-3), e, "thesis")) > 1e4


@given(st.integers(0, 1000), st.floats(0.1, 100))
def test_clamped_rates_keep_limits_and_direction(seed, size):
    rng = np.random.default_rng(seed)
    rates, limit = size * rng.normal(size=6), rng.uniform(0.5, 8, 6)
    kept = clamped(rates, limit)
    assert (np.abs(kept) <= limit * (1 + 1e-12)).all()
    assert np.allclose(kept * np.linalg.norm(rates), rates * np.linalg.norm(kept), atol=1e-9 * size**2)
    if (np.abs(rates) <= limit).all():
        assert np.array_equal(kept, rates)


def test_repulsion_starts_smoothly_and_is_given_at_contact():
    """Eq. (5.15): value and slope continuous at both joints, s0 at d = 0, linear growth inside."""
    g, h = FreeJointGains(), 1e-9
    a, t = g.activation, g.blend

    def law(d):
        return float(repulsion(np.array([d]), g.separation, a, t)[0])

    assert law(0.0) == pytest.approx(g.separation) and law(a) == 0.0 and law(2 * a) == 0.0
    for joint in (t * a, a):
        assert law(joint + h) == pytest.approx(law(joint - h), abs=1e-5)
        left, right = (law(joint) - law(joint - 1e-6)) / 1e-6, (law(joint + 1e-6) - law(joint)) / 1e-6
        assert left == pytest.approx(right, abs=0.05)
    assert law(-a) > law(0.0) > law(t * a) > 0


def test_mistakes_are_named():
    with pytest.raises(UnknownNameError, match="did you mean thesis"):
        reducing_rates(np.ones((1, 3)), np.ones(1), "thesys")
    with pytest.raises(ConfigError, match="delta must be positive"):
        weighting_inverse(np.ones((1, 3)), 0.0)
