"""The repulsive law: continuity, limits, potential, and the steps for which it is stable (eq. 5.11 to 5.15)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.ik.null_space import repulsion, repulsion_potential, stable_contact_gradient

A, S = st.floats(0.005, 0.3), st.floats(0.01, 100)


@pytest.mark.parametrize("t", [0.0, 0.4, 0.5, 0.6, 0.99])
def test_value_and_slope_are_continuous_and_the_law_is_s0_at_contact(t):
    """T-09, at the joint of line and curve and at the activation distance."""
    a, s, h = 0.05, 3.0, 1e-9
    assert repulsion(np.array([0.0]), a, s, t) == pytest.approx(s)
    assert repulsion(np.array([a, 2 * a]), a, s, t) == pytest.approx([0, 0])
    for d in (t * a, a):
        left, here, right = repulsion(np.array([d - h, d, d + h]), a, s, t)
        steepest = 2 * s / (a * (1 + t))
        assert abs(left - here) <= 1.01 * steepest * h and abs(here - right) <= 1.01 * steepest * h
        k = 1e-5
        before, at, after = repulsion(np.array([d - k, d, d + k]), a, s, t)
        bend = 2 * s / (a * a * (1 - t * t))
        assert abs((at - before) - (after - at)) <= 1.01 * bend * k * k + 1e-12


def test_blend_0_is_the_quadratic_law_and_blend_1_the_linear_one():
    d, a, s = np.linspace(-0.02, 0.08, 101), 0.05, 3.0
    inside = d < a
    assert np.allclose(repulsion(d, a, s, 1.0), np.where(inside, s * (1 - d / a), 0.0))
    assert np.allclose(repulsion(d, a, s, 1 - 1e-9), np.where(inside, s * (1 - d / a), 0.0), atol=1e-6)
    positive = d >= 0
    quadratic = np.where(inside, s / a**2 * (d - a) ** 2, 0.0)
    assert np.allclose(repulsion(d, a, s, 0.0)[positive], quadratic[positive])


def test_closed_forms_of_value_and_slope_at_the_joint():
    for t, share in ((0.4, 0.4286), (0.5, 0.3333), (0.6, 0.25)):
        assert repulsion(np.array([t]), 1.0, 1.0, t) == pytest.approx(share, abs=1e-4)
        line = repulsion(np.array([0.0, 0.1]), 1.0, 1.0, t)
        assert (line[0] - line[1]) / 0.1 == pytest.approx(2 / (1 + t))


@given(A, S, st.floats(0, 1), st.floats(-1, 1.5))
def test_law_is_minus_the_derivative_of_its_potential_and_never_attracts(a, s, t, x):
    d, h = np.array([x * a]), 1e-6 * a
    g = repulsion(d, a, s, t)
    assert g >= 0 and repulsion(d - 0.1 * a, a, s, t) >= g  # decreasing
    up, down = (repulsion_potential(d + e, a, s, t) for e in (h, -h))
    assert -(up - down) / (2 * h) == pytest.approx(g, rel=1e-4, abs=1e-4 * s)
    assert repulsion_potential(np.array([a]), a, s, t) == pytest.approx(0, abs=1e-12 * s)


@pytest.mark.parametrize(("share", "settles"), [(0.5, True), (0.99, True), (1.9, True), (2.1, False)])
def test_stability_rule_of_the_contact_gradient_has_the_edge_where_it_says(share, settles):
    """One pair on one joint, drawn to contact by a constant speed: it comes to rest below twice the rule, not above."""
    dt, a, t, mobility, gain = 0.004, 0.05, 0.5, 0.3, 1.0
    s = share * float(stable_contact_gradient(gain, dt, a, t, mobility))
    drawn = gain * mobility * s * 0.6  # rests on the line, where the law is steepest
    d, seen = 0.8 * a, []
    for _ in range(4000):
        d += dt * (gain * mobility * float(repulsion(np.array([d]), a, s, t)[0]) - drawn)
        seen.append(d)
    end = np.ptp(seen[-50:])
    assert end < 1e-9 if settles else end > 1e-4
    if share < 1:
        assert np.all(np.diff(seen) <= 1e-12), "no overshoot below the rule"
