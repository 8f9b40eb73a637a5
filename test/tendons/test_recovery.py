"""Filters that are sure of a wrong posture: the test that tells, the search that mends it; neither in nominal use."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from humanoid_control.tendons import EstimatorSettings, TendonGroup, read_mjcf
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.recovery import MeasuredPosture, PostureFit
from humanoid_control.tendons.mappings.exact import exact_mapping
from test.reference.straight_tendons import EXACT, JOINTS, LIMITS, MUSCLES, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)
START, WRONG = np.deg2rad([30.0, -30.0, 30.0, -30.0]), np.deg2rad([-10.0, 20.0, -30.0, -90.0])
NOISE = 1e-4


def walk(steps, seed, sigma=1.0):
    """Angles (T, 4) [rad] and lengths with noise (T, 10) [m]."""
    q = random_walk(LIMITS, START, steps, np.deg2rad(sigma), seed)
    z = np.array([EXACT.lengths(a) for a in q])
    return q, z + NOISE * np.random.default_rng(seed).standard_normal(z.shape)


def run(f, q, z):
    """(T,) largest error of each step [deg], and the same in deviations that the filter gives."""
    errors = []
    for angles, row in zip(q, z, strict=True):
        off = np.abs(f.step(row) - angles)
        errors.append((np.rad2deg(off.max()), (off / np.sqrt(f.variance)).max()))
    return np.array(errors).T


def test_a_filter_that_is_sure_of_a_wrong_posture_finds_the_right_one():
    """60 deg off with a deviation of 0.1 deg: by a search, or once the deviation is inflated by itself."""
    recoveries = 0
    for seed in range(3):
        q, z = walk(300, seed)
        f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
        f.reset(WRONG, np.full(4, np.deg2rad(0.1)))
        error, ratio = run(f, q, z)
        assert f.search.alarms >= 1, "doubted"
        recoveries += f.recoveries
        assert np.median(error[-200:]) < 2.0 and np.median(ratio[-200:]) < 5.0
        assert error[25:].max() < 10.0, "it took longer than a quarter of a second at 100 Hz"
    assert recoveries >= 1, "a search finds it"


def test_an_honest_filter_is_never_doubted():
    """No alarm and no search in hundreds of steps, from a start 20 deg off."""
    q, z = walk(600, 10, 0.5)
    f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
    f.reset(np.clip(q[0] + np.deg2rad(20), *LIMITS.T))
    run(f, q, z)
    assert f.honest and f.search.alarms == 0 and f.recoveries == 0


def test_lying_tendons_are_no_reason_to_go_elsewhere():
    """Two of ten that read 8 mm too long are left out, and the posture stays."""
    q, z = walk(400, 3, 0.5)
    z[100:, 1] += 8e-3
    z[150:, 7] += 8e-3
    f = GroupFilter(GROUP, EXACT, EstimatorSettings("absolute", length_noise=NOISE))
    f.reset(q[0])
    error, _ = run(f, q, z)
    assert f.recoveries == 0 and np.median(error[-200:]) < 1.0


def test_the_estimator_takes_the_tendons_back_that_a_wrong_posture_made_it_leave_out():
    q, z = walk(200, 4)
    estimator = TendonEstimator([GROUP], {"arm": EXACT}, EstimatorSettings("absolute", length_noise=NOISE))
    (f,) = estimator.filters
    f.reset(WRONG, np.full(4, np.deg2rad(0.1)))
    estimate = np.array([estimator.step(row) for row in z])
    assert f.recoveries >= 1 and not estimator.faults.excluded.any()
    assert np.rad2deg(np.abs(estimate - q)[50:].max()) < 5.0


def test_the_posture_of_lengths_is_scipys_least_squares():
    """The same minimum, and the covariance of its Jacobian."""
    rng = np.random.default_rng(1)
    z = EXACT.lengths(START) + NOISE * rng.uniform(-1, 1, 10)
    near, start = START + np.deg2rad(8) * rng.standard_normal(4), np.full(4, np.deg2rad(30))
    fit = PostureFit(EXACT, MeasuredPosture(z, NOISE, LIMITS, 0.03, near, start), near)
    for _ in fit.converge():
        pass

    def residual(theta):
        return np.concatenate([(z - EXACT.lengths(theta)) / NOISE, (theta - near) / start])

    found = least_squares(residual, START, xtol=1e-14, ftol=1e-14, gtol=1e-12)
    assert fit.cost == pytest.approx(2 * found.cost, abs=0.05)
    P = np.linalg.inv(found.jac.T @ found.jac)
    off = fit.theta - found.x
    assert off @ np.linalg.solve(P, off) < 0.05
    np.testing.assert_allclose(fit.covariance(), P, rtol=0.15, atol=0.05 * np.abs(P).max())


def test_the_thumb_of_a_human_hand_is_found_again(model_file):
    """23 joints and 39 tendons walk by 4 deg a step: the thumb was lost for most of the time, and surely."""
    pytest.importorskip("mujoco", reason="needs the package mujoco, to read the model")
    geometry = read_mjcf(model_file("muscles/myo_sim/hand/myohand.xml")).geometry()
    group = TendonGroup("hand", geometry.joint_names, (), geometry.tendon_names)
    lost = []
    for seed in range(2):
        rng, (low, high) = np.random.default_rng(seed), geometry.limits.T
        q, v = geometry.limits.mean(axis=1), np.zeros(len(low))
        f = GroupFilter(group, exact_mapping(geometry), EstimatorSettings("absolute", length_noise=NOISE))
        f.reset(q)
        for _ in range(500):
            v = 0.9 * v + np.sqrt(0.19) * np.deg2rad(4) * rng.standard_normal(len(q))
            q = np.clip(q + v, low, high)
            f.step(geometry.lengths(q) + NOISE * rng.standard_normal(len(group.tendons)))
            off = np.abs(f.theta - q)
            lost.append(((off > np.deg2rad(10)) & (off > 5 * np.sqrt(f.variance))).any())
    assert np.mean(lost) < 0.1
