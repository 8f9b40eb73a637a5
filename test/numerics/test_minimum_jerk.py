"""Minimum-jerk profile: from rest to rest, symmetric, and the one of least jerk."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial

from humanoid_control.numerics.minimum_jerk import minimum_jerk

PROFILE = Polynomial([0, 0, 0, 10, -15, 6])


def jerk(profile):
    """Integral of the squared jerk over the whole path."""
    return (profile.deriv(3) ** 2).integ()(1.0)


def test_it_goes_from_rest_to_rest_and_is_symmetric():
    s = np.linspace(0, 1, 101)
    np.testing.assert_allclose(minimum_jerk(s), PROFILE(s), atol=1e-14)
    assert (minimum_jerk(0.0), minimum_jerk(1.0)) == (0.0, 1.0)
    for order in (1, 2):
        assert PROFILE.deriv(order)(np.array([0.0, 1.0])) == pytest.approx([0.0, 0.0])
    np.testing.assert_allclose(minimum_jerk(s) + minimum_jerk(1 - s), 1.0, atol=1e-12)


def test_a_share_alone_and_one_of_many_are_the_same_number():
    s = np.random.default_rng(0).uniform(0, 1, 1000)
    assert [minimum_jerk(float(a)) for a in s] == minimum_jerk(s).tolist()


def test_no_other_profile_with_these_ends_has_less_jerk():
    bump = Polynomial([0, 0, 0, 1]) * Polynomial([1, -1]) ** 3  # at rest at both ends
    for amount in (-0.5, 0.1, 2.0):
        assert jerk(PROFILE + amount * bump) > jerk(PROFILE)
