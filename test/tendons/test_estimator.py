"""Groups that share joints: exchange, accuracy beside the conventional filter, order (TE-09, TE-11, TE-12, TE-14)."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.estimator.estimator import EstimatorComparison, TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.mapping import FitTarget
from humanoid_control.tendons.mappings.polynomial import fit_polynomial
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.tendon import TendonGroup, complete_groups, joint_owners
from test.reference.straight_tendons import (
    GIRDLE_JOINTS,
    GIRDLE_LIMITS,
    SCAPULA,
    SHOULDER,
    girdle,
    random_walk,
)

SC, GH = GIRDLE_JOINTS[:4], GIRDLE_JOINTS[4:]
GROUPS = (TendonGroup("scapula", SC, GH[:3], tuple(SCAPULA)), TendonGroup("shoulder", GH, SC, tuple(SHOULDER)))


def columns(group):
    return [GIRDLE_JOINTS.index(j) for j in group.joints]


def fitted(group):
    """The group's polynomial, which also is the plant of these tests: what the filter does is tested, not the fit."""
    at = columns(group)

    def geometry(q):
        whole = np.zeros((len(q), 8))
        whole[:, at] = q
        lengths, jacobians = girdle(whole, group.tendons)
        return lengths, jacobians[:, :, at]

    limits = GIRDLE_LIMITS[at]
    target = FitTarget(geometry, group.joints, group.tendons, limits)
    return fit_polynomial(target, random_postures(limits, 2500), 4)


@pytest.fixture(scope="module")
def mappings():
    return {g.name: fitted(g) for g in GROUPS}


def plant(mappings, q):
    """(T, 18) lengths of both groups along the angles (T, 8)."""
    return np.hstack([mappings[g.name].lengths(q[:, columns(g)]) for g in GROUPS])


def run(estimator, q, z, offset=0.0):
    estimator.reset(dict(zip(GIRDLE_JOINTS, q[0] + offset, strict=True)))
    order = [GIRDLE_JOINTS.index(j) for j in estimator.joint_names]
    return np.rad2deg(np.array([estimator.step(a) for a in z]) - q[:, order])


def rms(error):
    return np.sqrt(np.mean(error[len(error) // 4 :] ** 2, axis=0))


@pytest.fixture(scope="module")
def motion(mappings):
    q = random_walk(GIRDLE_LIMITS, GIRDLE_LIMITS.mean(axis=1), 600, np.deg2rad(0.5), 3)
    return q, plant(mappings, q)


def test_shared_groups_find_all_joints_to_a_degree(mappings, motion):
    """T2: calibrated lengths with 0.1 mm of noise, start 5 deg off."""
    q, z = motion
    noisy = z + 1e-4 * np.random.default_rng(0).standard_normal(z.shape)
    estimator = TendonEstimator(GROUPS, mappings, EstimatorSettings("absolute"))
    assert rms(run(estimator, q, noisy, np.deg2rad(5))).max() < 1.0
    assert estimator.faults.report() == {}


def test_borrowed_angles_are_the_owners(mappings, motion):
    """Eqs (8)-(10): after every step value and covariance are the owner's, and nothing ties them to own angles."""
    q, z = motion
    for kind in ("absolute", "r2"):
        estimator = TendonEstimator(GROUPS, mappings, EstimatorSettings(kind))
        run(estimator, q[:40], z[:40])
        scapula, shoulder = estimator.filters
        assert np.array_equal(shoulder.theta[4:], scapula.theta[:4])
        assert np.array_equal(scapula.theta[4:], shoulder.theta[:3])
        assert np.array_equal(shoulder.covariance[4:, 4:], scapula.covariance[:4, :4])
        assert not shoulder.covariance[:4, 4:].any()


def test_the_order_of_the_groups_does_not_matter(mappings, motion):
    q, z = motion
    one = TendonEstimator(GROUPS, mappings, EstimatorSettings("absolute"))
    other = TendonEstimator(GROUPS[::-1], mappings, EstimatorSettings("absolute"))
    first, second = run(one, q[:50], z[:50]), run(other, q[:50], np.hstack([z[:50, 8:], z[:50, :8]]))
    assert np.array_equal(first, second[:, [other.joint_names.index(j) for j in one.joint_names]])


def test_sharing_keeps_borrowed_angles_better_than_the_conventional_filter(mappings, motion):
    """T3b: noise of 0.5 mm and 2 % spikes of 5 mm; the shoulder's idea of the scapula."""
    q, z = motion
    rng = np.random.default_rng(5)
    noisy = (
        z
        + 5e-4 * rng.standard_normal(z.shape)
        + 5e-3 * (rng.uniform(size=z.shape) < 0.02) * rng.choice([-1, 1], z.shape)
    )
    found = {}
    for share in (True, False):
        settings = EstimatorSettings("absolute", share=share, limits="off", gate=6.0 if share else 0.0)
        estimator = TendonEstimator(GROUPS, mappings, settings)
        estimator.reset(dict(zip(GIRDLE_JOINTS, q[0], strict=True)))
        own, borrowed = [], []
        for a, truth in zip(noisy, q, strict=True):
            estimator.step(a)
            own.append(estimator.filters[1].theta[:4] - truth[4:])
            borrowed.append(estimator.filters[1].theta[4:] - truth[:4])
        found[share] = rms(np.rad2deg(own)).max(), rms(np.rad2deg(borrowed)).max()
    assert found[True][0] < 5.0
    assert found[True][1] < found[False][1]


def test_changes_of_length_find_a_shared_arm(mappings, motion):
    """The default, r2, without calibration: from 10 deg off everywhere, most of the error goes."""
    q, z = motion
    noisy = z + 5e-5 * np.random.default_rng(2).standard_normal(z.shape)
    estimator = TendonEstimator(GROUPS, mappings, EstimatorSettings(length_noise=5e-5, borrowed_start=np.deg2rad(30)))
    error = run(estimator, q, noisy, np.deg2rad(10))
    assert np.abs(error[-100:]).mean() < 0.3 * 10


@pytest.mark.parametrize(
    "groups,message",
    [
        ((GROUPS[0],), "borrows 'gh_roll', which no group estimates"),
        ((GROUPS[0], TendonGroup("b", SC[:1], (), ("x",))), "owned by 'scapula' and 'b'"),
        ((TendonGroup("a", ("j",), ("j",), ("x",)),), "'j' is listed twice"),
        ((TendonGroup("a", ("j",), (), ()),), "has no tendon"),
    ],
)
def test_groups_that_cannot_be_are_refused(groups, message):
    with pytest.raises(ConfigError, match=message):
        joint_owners(groups)


def test_wrong_counts_and_names_are_refused(mappings):
    estimator = TendonEstimator(GROUPS, mappings)
    with pytest.raises(ConfigError, match="expected 18 lengths"):
        estimator.step(np.zeros(17))
    with pytest.raises(ConfigError, match="'knee'"):
        estimator.reset({"knee": 0.1})
    with pytest.raises(ConfigError, match="no mapping for group 'shoulder'"):
        TendonEstimator(GROUPS, {"scapula": mappings["scapula"]})


def test_completed_groups_borrow_every_joint_that_their_tendons_cross(mappings):
    """A group that leaves crossed joints out is wrong where these move; the completed one is not."""
    small = (TendonGroup("scapula", SC, GH[:1], tuple(SCAPULA)), TendonGroup("shoulder", GH, SC[:1], tuple(SHOULDER)))
    names = tuple(SCAPULA) + tuple(SHOULDER)
    crossed = np.abs(girdle(random_postures(GIRDLE_LIMITS, 10), names)[1]).max(axis=0) > 1e-9
    full = complete_groups(small, crossed, GIRDLE_JOINTS, names)
    assert set(full[0].borrow) == set(GH[:3]) and full[0].borrow[0] == GH[0] and set(full[1].borrow) == set(SC)
    assert [(g.own, g.tendons) for g in full] == [(g.own, g.tendons) for g in small]
    assert complete_groups(full, crossed, GIRDLE_JOINTS, names) == full


def test_the_difference_of_two_estimators_is_followed(mappings, motion):
    """TE-14: a calibrated absolute estimator beside one that was zeroed 5 deg off."""
    q, z = motion
    pair = EstimatorComparison(*(TendonEstimator(GROUPS, mappings, EstimatorSettings("absolute")) for _ in range(2)))
    for e in (pair.reference, pair.other):
        e.reset(dict(zip(GIRDLE_JOINTS, q[0], strict=True)))
    pair.other.zero(z[0], dict(zip(GIRDLE_JOINTS, q[0] + np.deg2rad(5), strict=True)))
    for a in z[:100]:
        theta = pair.step(a)
    assert np.rad2deg(np.abs(theta - q[99]).max()) < 1 < np.rad2deg(np.abs(pair.error).max()) < 20
    assert np.allclose(pair.other.theta - pair.reference.theta, pair.error)


def test_what_the_lengths_tell_is_known_while_running(mappings, motion):
    q, z = motion
    absolute, relative = (TendonEstimator(GROUPS, mappings, EstimatorSettings(k)) for k in ("absolute", "r2"))
    assert not relative.observability()["shoulder"].observable  # nothing has moved yet
    for estimator in (absolute, relative):
        run(estimator, q[:200], z[:200])
        seen = estimator.observability()
        assert list(seen) == ["scapula", "shoulder"] and all(o.observable and o.smallest > 0 for o in seen.values())
    G = mappings["shoulder"].jacobian(absolute.filters[1].theta)[:, :4]
    assert absolute.observability()["shoulder"].smallest == pytest.approx(np.linalg.svd(G)[1][-1])
