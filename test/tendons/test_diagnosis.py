"""A tendon that lies is named and left out, the estimate goes on, and an honest one is taken back (TE-18)."""

import numpy as np
import pytest

from humanoid_control.tendons.estimator import diagnosis
from humanoid_control.tendons.estimator.diagnosis import innovation_test, is_honest
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.settings import EstimatorSettings
from humanoid_control.tendons.mappings.polynomial import fit_polynomial_on_grid
from humanoid_control.tendons.tendon import TendonGroup
from test.reference.straight_tendons import ARM_LENGTHS, JOINTS, LIMITS, MUSCLES, random_walk

GROUP = TendonGroup("arm", JOINTS, (), MUSCLES)
BEGIN, END, TOTAL = 200, 800, 1600
A, B = MUSCLES.index("biceps"), MUSCLES.index("deltoid_rear")


@pytest.fixture(scope="module")
def mapping():
    return fit_polynomial_on_grid(ARM_LENGTHS, (7, 7, 7, 7), 5)


@pytest.fixture(scope="module")
def motion(mapping):
    q = random_walk(LIMITS, LIMITS.mean(axis=1), TOTAL, np.deg2rad(1), 11)
    return q, mapping.lengths(q) + 1e-4 * np.random.default_rng(3).standard_normal((TOTAL, 10))


def slack(z):
    z[:, A] += np.minimum(np.arange(len(z)) * 1e-3, 0.1)


def broken(z):
    z[:, A] -= np.minimum(np.arange(len(z)) * 1e-3, 0.2)


def stuck(z):
    z[:, A] = z[0, A]


def swapped(z):
    z[:, [A, B]] = z[:, [B, A]]


def missing(z):
    z[:, A] = np.nan


@pytest.mark.parametrize("kind", ["absolute", "r2"])
@pytest.mark.parametrize("fault", [slack, broken, stuck, swapped, missing])
def test_a_lying_tendon_is_named_and_left_out(mapping, motion, fault, kind):
    q, clean = motion
    z = clean.copy()
    fault(z[BEGIN:END])
    estimator = TendonEstimator([GROUP], {"arm": mapping}, EstimatorSettings(kind, length_noise=1e-4))
    estimator.reset(dict(zip(JOINTS, q[0], strict=True)))
    error, said, false_alarms = [], set(), set()
    for k, (a, truth) in enumerate(zip(z, q, strict=True)):
        error.append(estimator.step(a) - truth)
        report = estimator.faults.report() if k % 20 == 0 or k == END - 1 else {}
        (said if k >= BEGIN else false_alarms).update(report)
        if k == END - 1:
            at_end = report
    worst = np.rad2deg(np.abs(error).max(axis=1))
    wrong = {MUSCLES[A], MUSCLES[B]} if fault is swapped else {MUSCLES[A]}
    assert not false_alarms and said == wrong
    if kind == "r2" and fault in (slack, broken):
        # only while it runs away does a change of length lie; at rest its changes are honest again
        assert worst[BEGIN:].max() < 15
    else:
        assert set(at_end) == wrong
        for text in at_end.values():
            assert fault.__name__ in text
        assert worst[BEGIN:].max() < 10
    assert estimator.faults.report() == {} and worst[-200:].max() < 2


def test_a_tendon_without_tension_is_left_out_at_once(mapping, motion):
    q, z = motion
    z = z[:50].copy()
    z[:, A] += 0.02
    tensions = np.full(10, 30.0)
    tensions[A] = 0.5
    estimator = TendonEstimator([GROUP], {"arm": mapping}, EstimatorSettings("absolute", slack_tension=2.0))
    estimator.reset(dict(zip(JOINTS, q[0], strict=True)))
    for a, truth in zip(z, q, strict=False):
        assert np.rad2deg(np.abs(estimator.step(a, tensions) - truth)).max() < 2
    assert estimator.faults.report() == {"biceps": "slack: tension 0.5 N is below 2 N"}


def test_without_any_tendon_the_estimate_holds_and_grows_unsure(mapping, motion):
    q, z = motion
    estimator = TendonEstimator([GROUP], {"arm": mapping}, EstimatorSettings("absolute"))
    estimator.reset(dict(zip(JOINTS, q[0], strict=True)))
    for a in z[:30]:
        estimator.step(a)
    held, before = estimator.theta.copy(), estimator.deviation.copy()
    for _ in range(30):
        estimator.step(np.full(10, np.nan))
    assert np.array_equal(estimator.theta, held) and (estimator.deviation > 1.5 * before).all()
    for a, truth in zip(z[60:90], q[60:90], strict=True):  # and it comes back by itself
        error = estimator.step(a) - truth
    assert np.rad2deg(np.abs(error)).max() < 1 and not estimator.faults.report()


# -------- Test of the innovations


@pytest.mark.parametrize("tendons", [2, 10, 40])
def test_an_honest_filter_is_doubted_no_more_often_than_the_limit_says(tendons, monkeypatch):
    """Chernoff's bound holds, and is not so far off that it would miss much: at one in a hundred, to be counted."""
    monkeypatch.setattr(diagnosis, "UNLIKELY", 1e-2)
    test, rng, alarms, updates = innovation_test(tendons), np.random.default_rng(tendons), 0, 40_000
    for nis, one in rng.chisquare((tendons - 1, 1), (updates, 2)):
        alarms += not is_honest(test, nis + one, tendons, one)
    assert 1e-4 < alarms / updates < 1e-2


def test_a_tendon_that_lies_raises_no_doubt_and_two_do_within_four_updates():
    """The innovations are those of the update before the gate: one liar is the largest, and is left out."""
    rng = np.random.default_rng(0)
    for liars, doubted in ((0, False), (1, False), (2, True)):
        test, found = innovation_test(10), []
        for _ in range(200):
            squares = rng.standard_normal(10) ** 2
            squares[:liars] = 900.0
            found.append(not is_honest(test, squares.sum(), 10, squares.max()))
        assert found[3:] == [doubted] * 197 and not any(found[:2]), "a single burst is no reason for doubt"
    for _ in range(200):
        squares = rng.standard_normal(10) ** 2
        honest = is_honest(test, squares.sum(), 10, squares.max())
    assert honest, "it forgets"
