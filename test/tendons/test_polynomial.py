"""Polynomial joint-muscle mappings against dense least squares and finite differences (TE-02, TE-04)."""

import numpy as np
import pytest
from numpy.polynomial.legendre import legvander

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import MappingInterrupted
from humanoid_control.tendons.mappings.polynomial import (
    fit_polynomial,
    fit_polynomial_on_grid,
    legendre_rows,
    monomials,
)
from humanoid_control.tendons.mappings.postures import grid_axes, grid_postures, random_postures
from test.reference.straight_tendons import ARM, ARM_LENGTHS, EXACT, LIMITS, arm


def dense_fit(postures, degree, caps=None):
    """Values of the least-squares polynomial at the postures, by the whole regression matrix."""
    x = (postures - LIMITS.mean(axis=1)) * 2 / (LIMITS[:, 1] - LIMITS[:, 0])
    powers = monomials(4, degree, caps).exponents
    phi = np.prod(x[:, None, :] ** powers[None], axis=2)
    return phi @ np.linalg.lstsq(phi, arm(postures)[0], rcond=None)[0]


@pytest.mark.parametrize("counts", [(5, 5, 5, 5), (7, 3, 6, 5)])
def test_the_grid_regression_is_the_dense_regression(counts):
    postures = grid_postures(grid_axes(LIMITS, counts))
    mapping = fit_polynomial_on_grid(ARM_LENGTHS, counts, degree=4)
    caps = np.minimum(np.array(counts) - 1, 4)
    wanted = dense_fit(postures, 4, caps)
    found = mapping.lengths(postures) + mapping.zero_offset
    assert np.abs(found - wanted).max() < 1e-10
    assert mapping.fit.rms == pytest.approx(np.sqrt(np.mean((wanted - arm(postures)[0]) ** 2)), rel=1e-5)


def test_powers_that_a_grid_cannot_see_do_not_change_its_fit():
    counts = (4, 4, 4, 4)
    postures = grid_postures(grid_axes(LIMITS, counts))
    mapping = fit_polynomial_on_grid(ARM_LENGTHS, counts, degree=5)
    assert np.abs(mapping.lengths(postures) + mapping.zero_offset - dense_fit(postures, 5)).max() < 1e-8


def test_the_streamed_regression_is_the_dense_regression():
    postures = random_postures(LIMITS, 9000, seed=3)  # more than one chunk
    mapping = fit_polynomial(ARM_LENGTHS, postures, degree=4)
    assert np.abs(mapping.lengths(postures) + mapping.zero_offset - dense_fit(postures, 4)).max() < 1e-8


@pytest.fixture(scope="module")
def degree5():
    return fit_polynomial_on_grid(ARM_LENGTHS, (8, 8, 7, 7), degree=5)


def test_degree_five_fits_the_arm_to_a_millimetre_and_its_moment_arms_to_three_percent(degree5):
    q = random_postures(LIMITS, 2000, seed=1)
    lengths, jacobians = EXACT.evaluate(q)
    there, slopes = degree5.evaluate(q)
    error = there - lengths
    assert np.sqrt(np.mean((error - error.mean(axis=0)) ** 2)) < 1e-3
    assert np.sqrt(np.mean((slopes - jacobians) ** 2)) < 0.03 * np.abs(jacobians).max()


def test_zero_is_zero_and_what_was_taken_off_is_reported(degree5):
    assert np.abs(degree5.lengths(np.zeros(4))).max() < 1e-15
    error = degree5.zero_offset - arm(np.zeros((1, 4)))[0][0]
    assert degree5.fit.zero_error == np.abs(error).max() < 2e-3


@pytest.mark.parametrize("degree", [1, 2, 5])
def test_jacobian_and_its_change_are_the_derivatives(degree):
    mapping = fit_polynomial_on_grid(ARM_LENGTHS, (6, 6, 6, 6), degree)
    rng = np.random.default_rng(0)
    for q in random_postures(LIMITS, 5, seed=2):
        v, h = rng.standard_normal(4), 1e-6
        columns = [(mapping.lengths(q + h * e) - mapping.lengths(q - h * e)) / (2 * h) for e in np.eye(4)]
        assert np.abs(np.stack(columns, axis=1) - mapping.jacobian(q)).max() < 1e-8
        found = mapping.jacobian_directional(q, v)
        columns = [(mapping.jacobian(q + h * e) @ v - mapping.jacobian(q - h * e) @ v) / (2 * h) for e in np.eye(4)]
        assert np.abs(np.stack(columns, axis=1) - found).max() < 1e-7


def test_the_geometry_changes_its_jacobian_as_its_second_derivatives_say():
    mapping = EXACT
    q, v, h = np.array([0.4, -0.3, 0.2, -1.0]), np.array([0.3, -0.2, 0.5, 0.1]), 1e-6
    columns = [(mapping.jacobian(q + h * e) @ v - mapping.jacobian(q - h * e) @ v) / (2 * h) for e in np.eye(4)]
    assert np.abs(np.stack(columns, axis=1) - mapping.jacobian_directional(q, v)).max() < 1e-7
    assert not mapping.jacobian_directional(q, np.zeros(4)).any()


def test_many_postures_at_once_are_the_postures_one_by_one(degree5):
    q = random_postures(LIMITS, 7, seed=5)
    lengths, jacobians = degree5.evaluate(q)
    for k in range(7):
        one = degree5.evaluate(q[k])
        assert np.array_equal(one[0], lengths[k]) and np.array_equal(one[1], jacobians[k])


def test_building_reports_its_progress_and_can_be_interrupted():
    shares = []
    fit_polynomial(ARM_LENGTHS, random_postures(LIMITS, 20000), 2, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0 and len(shares) == 3
    with pytest.raises(MappingInterrupted, match="nothing was kept"):
        fit_polynomial_on_grid(ARM_LENGTHS, (5,) * 4, 2, progress=lambda _: False)


def test_angles_that_cannot_be_are_refused_in_one_line(degree5):
    with pytest.raises(ConfigError, match="expected 4 angles"):
        degree5.lengths(np.zeros(3))
    with pytest.raises(ConfigError, match="'gh_yaw' is not finite"):
        degree5.lengths(np.array([0, 0, np.nan, 0]))


def test_the_arms_muscles_are_all_used():
    assert len(ARM) == 10 and np.linalg.matrix_rank(arm(np.array([[0.3, 0.1, 0.2, -0.8]]))[1][0]) == 4


def test_products_of_legendre_polynomials_are_numpys_and_a_constant_needs_no_more_room():
    rng = np.random.default_rng(2)
    for degree in (0, 1, 4):
        x, exponents = rng.uniform(-1, 1, (7, 3)), rng.integers(0, degree + 1, (5, 3))
        room, out = np.full(3 * (degree + 1) + 4, np.nan), np.empty((7, 5))
        legendre_rows(x, exponents, room[: 3 * (degree + 1)].reshape(3, -1), out)
        factors = legvander(x, degree)[:, np.arange(3), exponents]
        assert out == pytest.approx(factors.prod(axis=2))
        assert np.isnan(room[-4:]).all(), "what lies behind is not touched"
