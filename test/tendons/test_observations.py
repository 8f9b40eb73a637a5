"""Angles from changes of length alone: what the printed equations can do, and what works (TE-13, T4)."""

from itertools import pairwise

import numpy as np
import pytest

from humanoid_control.tendons.estimator.diagnosis import observability, relative_observability
from humanoid_control.tendons.estimator.group_filter import GroupFilter
from humanoid_control.tendons.estimator.kalman import Estimate
from humanoid_control.tendons.estimator.observations import (
    InstantArms,
    TwoInstantNoise,
    compare_instants,
    mean_squared_hessian,
    moved_angles,
)
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.exact import GeometryMapping
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.tendon import TendonGroup
from test.reference.straight_tendons import ARM_LENGTHS, JOINTS, LIMITS, MUSCLES, Pulleys, arm, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)
START, GUESS = np.deg2rad([30, -30, 30, -30]), np.deg2rad([0, 0, 0, -45])
DEGREE = np.deg2rad(1.0)


@pytest.fixture(scope="module")
def mapping():
    return fit_polynomial_on_grid(ARM_LENGTHS, (7, 7, 7, 7), 6)


def walk(mapping, seed, noise, steps=1500, sigma=DEGREE):
    q = np.vstack([START, random_walk(LIMITS, START, steps, sigma, seed)])
    return q, mapping.lengths(q) + noise * np.random.default_rng(seed + 100).standard_normal((len(q), 10))


def errors(mapping, settings, noise, seeds, **kinds):
    """(seeds, 4) mean absolute error over the last fifth of the walk [deg]."""
    out = []
    for seed in seeds:
        q, z = walk(mapping, seed, noise, **kinds)
        f = GroupFilter(GROUP, mapping, settings)
        f.reset(GUESS)
        f.zero(z[0], np.zeros(4))  # the wrong calibration; relative observations are blind to it
        error = np.array([f.step(a) for a in z]) - q
        out.append(np.abs(np.rad2deg(error[-len(q) // 5 :])).mean(axis=0))
    return np.array(out)


def test_the_printed_filter_is_dead_reckoning(mapping):
    """T4c: innovation and Jacobian as printed give no correction at all, whatever the noise and the covariance."""
    q, z = walk(mapping, 1, 1e-4, steps=200, sigma=0.2 * DEGREE)
    reckoned, theta = [GUESS], GUESS
    for before, after in pairwise(z):
        theta = theta + np.linalg.pinv(mapping.jacobian(theta)) @ (after - before)
        reckoned.append(theta)
    for noise, spread in ((1e-5, 0.1), (1e-3, 1.0)):
        settings = EstimatorSettings("literal", length_noise=noise, start_noise=spread, limits="off", gate=0.0)
        f = GroupFilter(GROUP, mapping, settings)
        f.reset(GUESS)
        for k, a in enumerate(z):
            f.predict(a)
            predicted = f.theta.copy()
            f.correct()
            assert np.abs(f.theta - predicted).max() < 1e-9
            assert np.abs(f.theta - reckoned[k]).max() < 1e-7
        assert k == 200 and f.count == 10
    assert np.rad2deg(np.abs(theta - q[-1])).max() > 10  # and so the wrong start stays


def test_a_wrong_zero_stays_wrong_with_the_absolute_filter(mapping):
    """T4a."""
    settings = EstimatorSettings("absolute", length_noise=5e-4, limits="off", gate=0.0)
    assert np.median(errors(mapping, settings, 1e-4, range(3), steps=600), axis=0)[:3].min() > 10


@pytest.mark.parametrize(
    "kind,median,worst,step,sigma",
    [("r1", 5, 20, 0.02, 1.0), ("r2", 1, 5, 0.2, 1.0), ("r3", 1, 5, 1.0, 1.0), ("r2", 2, 5, 0.2, 0.3)],
)
def test_changes_of_length_alone_find_the_posture(mapping, kind, median, worst, step, sigma):
    """T4b: from errors of 30 deg; the median over seeds, and the worst of any joint and seed [deg]."""
    settings = EstimatorSettings(kind, length_noise=1e-4, step_noise=step * DEGREE)
    found = errors(mapping, settings, 1e-4, range(5), sigma=sigma * DEGREE)
    assert np.median(found, axis=0).max() < median and found.max() < worst


@pytest.mark.parametrize("kind", ["r1", "r2", "r3"])
def test_at_rest_nothing_is_learnt(mapping, kind):
    f = GroupFilter(GROUP, mapping, EstimatorSettings(kind, length_noise=1e-4))
    f.reset(GUESS)
    before = np.diagonal(f.covariance).copy()
    z = mapping.lengths(START)
    for _ in range(100):
        f.step(z)
    assert (np.diagonal(f.covariance) >= before * (1 - 1e-9)).all()
    assert np.abs(f.theta - GUESS).max() < 1e-9


@pytest.mark.parametrize("kind", ["r2", "r3"])
def test_noise_at_rest_teaches_little(mapping, kind):
    """7.4: errors of the estimated motion look like changes of the moment arms; they must not pass for knowledge."""
    sure = []
    for seed in range(6):
        f = GroupFilter(GROUP, mapping, EstimatorSettings(kind, length_noise=1e-4))
        f.reset(GUESS, np.full(4, np.deg2rad(10)))
        z = mapping.lengths(START) + 1e-4 * np.random.default_rng(seed).standard_normal((2000, 10))
        for a in z:
            f.step(a)
        sure.append(np.rad2deg(np.sqrt(f.variance)).min())
        assert np.rad2deg(np.abs(f.theta - GUESS)).max() < 1
    assert min(sure) > 9.9


def test_two_instants_are_compared_by_their_exact_jacobian_less_what_noise_explains(mapping):
    """Finite differences of f(now) - f(before); where the motion is uncertain the change of a moment arm counts by its
    square less the variance from that, and with much of it not at all."""
    now, before = START, START + np.deg2rad([12, -8, 10, -9])
    x, step, P = np.concatenate([now, before]), 1e-6, 0.1 * np.eye(8)
    G, Gb = mapping.jacobian(now), mapping.jacobian(before)
    rows = [(change(mapping, x + step * e) - change(mapping, x - step * e)) / (2 * step) for e in np.eye(8)]
    hessian, r = mean_squared_hessian(mapping), np.full(10, 1e-8)
    sure = TwoInstantNoise(hessian, r, np.zeros(4))
    H, R = np.zeros((10, 8)), np.zeros(10)
    compare_instants(Estimate(x, 0 * P), InstantArms(G, G, Gb), sure, 2.0, H, R)
    assert np.abs(H - np.array(rows).T).max() < 1e-8 and np.array_equal(R, r)
    compare_instants(Estimate(x, P), InstantArms(G, Gb, Gb), sure, 2.0, H, R)
    assert np.array_equal(H[:, 4:], -H[:, :4])  # at rest the posture changes nothing
    neglected = 0.5 * np.sum((now - before) ** 2) * 0.01 * hessian.sum(axis=(1, 2))
    assert np.allclose(R, r + neglected)
    unsure = sure._replace(motion=np.deg2rad([1, 2, 0.5, 3]) ** 2)
    compare_instants(Estimate(x, P), InstantArms(G, G, Gb), unsure, 3.0, H, R)
    noise = np.einsum("iae,e->ia", hessian, unsure.motion)
    kept = np.sign(G - Gb) * np.sqrt(np.maximum((G - Gb) ** 2 - 9 * noise, 0))
    assert np.abs(H[:, 4:] - (kept - G)).max() < 1e-12 and np.array_equal(H[:, :4], G)
    assert 0 < np.count_nonzero(kept) < kept.size
    assert np.allclose(R, r + neglected + 0.1 * noise.sum(axis=1))


def test_a_joint_rests_until_it_leaves_its_noise_behind(mapping):
    """Four joints that all moved by 2 deg, one of them hardly seen: its motion may be noise."""
    before, move = START, np.deg2rad(2.0)
    x = np.concatenate([before + move, before])
    deviation = np.deg2rad([0.1, 0.4, 0.6, 0.3])  # by the noise of the lengths alone
    B, moved = np.diag(deviation**2) / 1e-8, np.zeros(4)
    noise = TwoInstantNoise(mean_squared_hessian(mapping), np.full(10, 1e-8), np.zeros(4))
    assert moved_angles(Estimate(x, np.zeros((8, 8))), B, noise, 4.0, moved) == 3
    assert np.array_equal(moved == x[:4], [True, True, False, True]) and moved[2] == before[2]
    assert np.allclose(noise.motion, deviation**2)
    # far from the truth the moment arms are wrong, and the motion with them; that makes it uncertain, but no rest
    assert moved_angles(Estimate(x, 0.3 * np.eye(8)), B, noise, 4.0, moved) == 3
    mixed = 0.3 * move**2 * noise.hessian.sum(axis=(1, 2)).mean()
    assert np.allclose(noise.motion, deviation**2 * (1 + mixed / 1e-8))


def change(mapping, x):
    return mapping.lengths(x[:4]) - mapping.lengths(x[4:])


@pytest.mark.parametrize("kind", ["r1", "r2", "r3"])
def test_constant_moment_arms_tell_nothing_of_the_posture(kind):
    """7.4: without a change of moment arms the start error cannot be seen, and the filter must know it."""
    pulleys = Pulleys(JOINTS, MUSCLES, LIMITS)
    f = GroupFilter(GROUP, pulleys, EstimatorSettings(kind, length_noise=1e-4, limits="off"))
    f.reset(GUESS)
    q, z = walk(pulleys, 0, 0.0, steps=100)
    for a in z:
        f.step(a)
    assert np.abs((f.theta - q[-1]) - (GUESS - START)).max() < 1e-3
    assert np.sqrt(np.diagonal(f.covariance)).min() > np.deg2rad(29)
    assert relative_observability(pulleys, q).rank == 0


def test_as_many_tendons_as_joints_leave_no_innovation(mapping):
    """7.4: four tendons for four joints explain every change of length; nothing is left over to correct with."""
    four = [0, 2, 5, 8]
    names = tuple(MUSCLES[i] for i in four)
    few = GeometryMapping(lambda q: tuple(a[:, four] for a in arm(q)), JOINTS, names, LIMITS)
    path = walk(mapping, 0, 0.0, steps=60)[0]
    assert relative_observability(few, path, 1e-6).smallest < 1e-12
    assert relative_observability(mapping, path, 1e-6).observable


def test_an_unseen_direction_is_named(mapping):
    G = mapping.jacobian(START).copy()
    assert observability(G, JOINTS).observable
    G[:, 2] = 0.0
    seen = observability(G, JOINTS)
    assert not seen.observable and seen.joints == ("gh_yaw",) and seen.smallest < 1e-15 and seen.rank == 3
    assert "unobservable along gh_yaw" in str(seen)
    assert observability(G[:2], JOINTS).rank == 2
