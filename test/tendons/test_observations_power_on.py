"""r3 compares with the lengths at power-on for ever: their noise must not count as new (TE-13, 7.3)."""

import numpy as np
import pytest
from scipy.stats import chi2

from humanoid_control.tendons.estimator.diagnosis import nees
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.tendon import TendonGroup
from test.reference.straight_tendons import ARM_LENGTHS, JOINTS, LIMITS, MUSCLES, Pulleys, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)
START = np.deg2rad([30, -30, 30, -30])
NOISE, STEP, SPREAD = 1e-4, np.deg2rad(1.0), np.deg2rad(10.0)


@pytest.fixture(scope="module")
def mapping():
    return fit_polynomial_on_grid(ARM_LENGTHS, (7, 7, 7, 7), 6)


def walked(mapping, seed, steps, sigma=STEP):
    """A walk, its lengths with noise, and r3 having taken the first, from a start as far off as it is told."""
    rng = np.random.default_rng(seed + 100)
    q = np.vstack([START, random_walk(LIMITS, START, steps, sigma, seed)])
    z = mapping.lengths(q) + NOISE * rng.standard_normal((len(q), 10))
    f = GroupFilter(GROUP, mapping, EstimatorSettings("r3", length_noise=NOISE))
    f.reset(START + SPREAD * rng.standard_normal(4), np.full(4, SPREAD))
    f.step(z[0])
    return q, z, f


def all_at_once(G, z, guess, constants):
    """Mean and covariance of (theta_K, theta_0, n_0) by least squares over a whole walk with constant moment arms G.

    Unknown are the angles at all moments and one offset of each tendon, of which nothing is known before.
    """
    (k, m), d = z.shape, G.shape[1]
    spread, step, noise = constants
    rows, right = [np.eye(d, d * k + m) / spread], [guess / spread]
    for j in range(k):
        row = np.zeros((m, d * k + m))
        row[:, d * j : d * j + d], row[:, d * k :] = G / noise, np.eye(m) / noise
        rows.append(row)
        right.append(z[j] / noise)
        if j:
            motion = np.zeros((d, d * k + m))
            motion[:, d * (j - 1) : d * (j + 1)] = np.hstack([-np.eye(d), np.eye(d)]) / step
            rows.append(motion)
            right.append(np.zeros(d))
    A, b = np.vstack(rows), np.concatenate(right)
    x = np.linalg.lstsq(A, b, rcond=None)[0]
    wanted = np.zeros((2 * d + m, d * k + m))
    wanted[:d, d * (k - 1) : d * k] = wanted[d : 2 * d, :d] = np.eye(d)
    wanted[2 * d :, :d], wanted[2 * d :, d * k :] = -G, -np.eye(m)  # n_0 = z_0 - G theta_0 - offset
    mean = wanted @ x
    mean[2 * d :] += z[0]
    return mean, wanted @ np.linalg.inv(A.T @ A) @ wanted.T


def test_it_is_the_least_squares_of_all_lengths_ever_seen():
    """With constant moment arms the filter must give, to the last digits, what all lengths together say."""
    pulleys, spread, step, noise = Pulleys(JOINTS, MUSCLES, LIMITS), 0.3, 0.02, 1e-3
    settings = EstimatorSettings(
        "r3", length_noise=noise, step_noise=step, start_noise=spread, predict="hold", motion_noise=0.0, limits="off"
    )
    rng = np.random.default_rng(3)
    q = np.cumsum(np.vstack([START, step * rng.standard_normal((40, 4))]), axis=0)
    z = q @ pulleys.arms.T + noise * rng.standard_normal((41, 10)) + 0.1
    f, guess = GroupFilter(GROUP, pulleys, settings), START + spread * rng.standard_normal(4)
    f.reset(guess)
    for a in z:
        f.step(a)
    # the filter lets the angles stray before the first lengths too
    mean, covariance = all_at_once(pulleys.arms, z, guess, (np.hypot(spread, step), step, noise))
    deviation = np.sqrt(np.diagonal(covariance))
    assert np.abs((f.x - mean) / deviation).max() < 1e-6
    assert np.abs((f.P - covariance) / np.outer(deviation, deviation)).max() < 1e-6
    assert deviation[8:].min() > 0.15 * noise  # 40 steps do not tell the noise of the first lengths


@pytest.mark.parametrize("sigma", [1.0, 0.3])
def test_it_is_as_wrong_as_it_says(mapping, sigma):
    """NEES of the angles now and of those at power-on, over walks: as large as there are angles."""
    now, first = [], []
    for seed in range(16):
        q, z, f = walked(mapping, seed, 300, np.deg2rad(sigma))
        for a in z[1:]:
            f.step(a)
        now.append(nees(f.theta - q[-1], f.covariance))
        first.append(nees(f.x[4:8] - q[0], f.P[4:8, 4:8]))
    low, high = chi2.ppf([0.001, 0.999], 4 * len(now))
    assert low < sum(now) < high and low < sum(first) < high


def test_it_is_as_sure_as_the_lengths_allow(mapping):
    """Cramer-Rao: no unbiased estimate is surer than the inverse of the information in all lengths, at the true angles
    and with the offset of each tendon unknown."""
    q, z, f = walked(mapping, 1, 150)
    for a in z[1:]:
        f.step(a)
    jacobians = mapping.evaluate(q)[1]
    size = 4 * len(q) + 10
    information = np.zeros((size, size))
    information[:4, :4] += np.eye(4) / SPREAD**2
    for k, G in enumerate(jacobians):
        row = np.zeros((10, size))
        row[:, 4 * k : 4 * k + 4], row[:, -10:] = G, np.eye(10)
        information += row.T @ row / NOISE**2
    least = np.sqrt(np.diagonal(np.linalg.inv(information)))
    ratio = np.sqrt(np.diagonal(f.P)[:8]) / np.concatenate([least[-14:-10], least[:4]])
    assert ratio.min() > 0.8 and ratio.max() < 1.5


def test_a_new_start_knows_nothing_of_the_old_noise(mapping):
    """After a reset and after starting afresh the noise of the first lengths is that of the lengths now."""
    _, z, f = walked(mapping, 0, 50)
    for a in z[1:]:
        f.step(a)
    assert np.abs(f.x[8:]).max() > 0 and np.diagonal(f.P)[8:].max() < NOISE**2
    f.restart()
    assert not f.x[8:].any() and np.array_equal(f.P[8:, 8:], NOISE**2 * np.eye(10)) and not f.P[:8, 8:].any()
    f.step(z[-1])
    assert np.abs(f.observation.nu).max() < 1e-12  # compared with itself
