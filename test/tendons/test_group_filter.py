"""Filter of one group with calibrated lengths: accuracy, consistency, calibration (TE-10, TE-15)."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from humanoid_control.tendons import EstimatorSettings, TendonGroup
from humanoid_control.tendons.estimator.diagnosis import ChiSquareMean, nees
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from test.reference.straight_tendons import ARM_LENGTHS, EXACT, JOINTS, LIMITS, MUSCLES, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)


@pytest.fixture(scope="module")
def mapping():
    return fit_polynomial_on_grid(ARM_LENGTHS, (7, 7, 7, 7), 5)


def test_the_absolute_filter_knows_how_wrong_it_is(mapping):
    """NEES over independent runs and NIS over all steps stay within the bounds of an honest filter."""
    step, noise = np.deg2rad(0.5), 1e-3
    settings = EstimatorSettings(
        "absolute", length_noise=noise, step_noise=step, motion_noise=0.0, limits="off", gate=0.0
    )
    errors, innovations = ChiSquareMean(), ChiSquareMean()
    for seed in range(30):
        rng = np.random.default_rng(seed)
        f = GroupFilter(GROUP, mapping, settings)
        q = LIMITS.mean(axis=1)
        f.reset(q + np.deg2rad(2) * rng.standard_normal(4), np.full(4, np.deg2rad(2)))
        for _ in range(30):
            q = q + step * rng.standard_normal(4)
            f.step(mapping.lengths(q) + noise * rng.standard_normal(10))
            innovations.add(f.nis, f.count)
        errors.add(nees(f.theta - q, f.covariance), 4)
    for mean in (errors, innovations):
        low, high = mean.bounds(0.999)
        assert low < mean.per_degree < high


def test_an_overconfident_filter_shows(mapping):
    settings = EstimatorSettings("absolute", length_noise=2e-4, step_noise=1e-3, predict="hold", limits="off", gate=0.0)
    f, innovations, rng = GroupFilter(GROUP, mapping, settings), ChiSquareMean(), np.random.default_rng(0)
    q = LIMITS.mean(axis=1)
    f.reset(q)
    for _ in range(50):
        f.step(mapping.lengths(q) + 1e-3 * rng.standard_normal(10))
        innovations.add(f.nis, f.count)
    assert innovations.per_degree > 2 * innovations.bounds(0.999)[1]


def test_calibrated_lengths_give_the_angles(mapping):
    """T2 for one group: below 1 deg after a start 10 deg off, without and with 0.1 mm of noise."""
    for noise in (0.0, 1e-4):
        start = np.deg2rad([30, -10, 10, -50])
        q = random_walk(LIMITS, start, 600, np.deg2rad(1), 7)
        f = GroupFilter(GROUP, mapping, EstimatorSettings("absolute", length_noise=max(noise, 1e-4)))
        f.reset(start + np.deg2rad(10))
        rng = np.random.default_rng(1)
        error = np.array([f.step(mapping.lengths(a) + noise * rng.standard_normal(10)) - a for a in q])
        assert np.rad2deg(np.sqrt(np.mean(error[100:] ** 2, axis=0))).max() < 1.0


def test_lengths_zeroed_at_a_known_posture_are_calibrated(mapping):
    f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute"))
    q, counts = np.deg2rad([20, -10, 5, -60]), np.linspace(-0.3, 0.4, 10)  # encoders count from anywhere
    f.reset(q)
    f.zero(EXACT.lengths(q) + counts, q)
    there = np.deg2rad([25, -15, 10, -70])
    for _ in range(20):
        f.step(EXACT.lengths(there) + counts)
    assert np.abs(f.theta - there).max() < np.deg2rad(0.01)


def test_a_far_update_ends_where_the_posture_is_most_probable():
    """30 to 40 deg off, of which a linear update makes half: the mode that SciPy finds, and the lengths' covariance."""
    noise, rng = 1e-4, np.random.default_rng(0)
    for _ in range(10):
        truth = LIMITS.mean(axis=1) + 0.4 * np.ptp(LIMITS, axis=1) * rng.uniform(-1, 1, 4)
        prior, sigma = truth + np.deg2rad(rng.choice([-1, 1], 4) * rng.uniform(10, 15, 4)), np.full(4, np.deg2rad(20))
        z = EXACT.lengths(truth) + noise * rng.standard_normal(10)
        f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=noise, gate=1e6, limits="off"))
        f.reset(prior, sigma)
        f.step(z)
        scale = np.hypot(sigma, np.deg2rad(0.2))  # with what a step adds

        def residual(q, z=z, prior=prior, scale=scale):
            return np.concatenate([(z - EXACT.lengths(q)) / noise, (q - prior) / scale])

        best = least_squares(residual, truth)
        information = best.jac.T @ best.jac
        off = f.theta - best.x
        assert off @ information @ off < 9.5, "as near as noise leaves 95 of 100 estimates"
        share = np.linalg.eigvals(information @ f.covariance).real
        assert share.min() > 0.8 and share.max() < 6.0, (
            "what is neglected counts as noise, and less so at each iteration"
        )
        assert 0.3 < f.nis / (2 * best.cost) < 1.1
