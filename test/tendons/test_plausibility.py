"""Samples of tendon lengths that imply a motion no joint can do are left out, however well all tendons agree."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.plausibility import TendonPlausibility
from humanoid_control.tendons.estimator.samples import TendonSamples
from test.reference.straight_tendons import GIRDLE_LIMITS
from test.tendons.test_estimator import GROUPS, fitted, plant

SPEED, DT = np.full(8, 6.0), 0.01


@pytest.fixture(scope="module")
def mappings():
    return {g.name: fitted(g) for g in GROUPS}


def path(mappings, seconds=3.0):
    """Smooth angles (T, 8) of all joints, at most 1.5 rad/s, and the lengths (T, M) along them."""
    middle, span = GIRDLE_LIMITS.mean(axis=1), np.ptp(GIRDLE_LIMITS, axis=1)
    t = DT * np.arange(int(seconds / DT))[:, None]
    q = middle + 0.25 * span * np.sin(np.linspace(1.0, 2.0, 8) * t)
    assert np.abs(np.diff(q, axis=0)).max() / DT < 1.5
    return q, plant(mappings, q)


def estimates(mappings, q, z):
    """Estimates (T, J) behind the judge, and what it said of each sample."""
    e = TendonEstimator(GROUPS, mappings)
    order = [[j for g in GROUPS for j in g.own].index(j) for j in e.joint_names]
    judge = TendonPlausibility(e, SPEED[order])
    e.reset(dict(zip((j for g in GROUPS for j in g.own), q[0], strict=True)))
    out, said = [], []
    for k, lengths in enumerate(z):
        use = judge.check(k * DT, lengths)
        said.append(judge.problem)
        out.append(e.step(lengths if use else np.full(len(lengths), np.nan)))
    return np.array(out), said


FAULTS = {
    "nothing was read": lambda z: 0.0 * z,
    "the lengths of another posture": None,
    "all 0.3 m longer": lambda z: z + 0.3,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_one_sample_that_no_joint_can_follow_moves_no_estimate(mappings, fault):
    q, z = path(mappings)
    control, said = estimates(mappings, q, z)
    assert not any(said)
    spoilt = z.copy()
    change = FAULTS[fault] or (lambda _: plant(mappings, GIRDLE_LIMITS.min(axis=1)[None])[0])
    spoilt[150] = change(spoilt[150])
    found, said = estimates(mappings, q, spoilt)
    assert "times its speed limit" in said[150] and said[150].endswith("left out")
    assert not any(said[:150] + said[151:])
    assert np.abs(np.diff(found, axis=0)).max() < np.abs(np.diff(control, axis=0)).max() + 0.05


def test_joints_that_really_are_elsewhere_are_believed_after_three_samples(mappings):
    q, z = path(mappings)
    there = plant(mappings, GIRDLE_LIMITS.min(axis=1)[None] * 0.5 + 0.5 * GIRDLE_LIMITS.mean(axis=1))[0]
    z = np.vstack([z[:100], np.tile(there, (100, 1))])
    _, said = estimates(mappings, q, z)
    assert [bool(text) for text in said[98:106]] == [False, False, True, True, True, False, False, False]
    assert said[102].endswith("believed, 3 in a row agree")


def test_the_velocity_after_a_jump_is_that_of_the_samples_that_agree(mappings):
    q, z = path(mappings)
    e = TendonEstimator(GROUPS, mappings)
    judge = TendonPlausibility(e, SPEED)
    e.reset(dict(zip((j for g in GROUPS for j in g.own), q[0], strict=True)))
    judge.check(0.0, z[0])
    far = plant(mappings, q + 0.3 * np.ptp(GIRDLE_LIMITS, axis=1))
    for k in range(1, 4):
        assert judge.check(k * DT, far[k]) == (k == 3)
    assert judge.velocity is not None and 0.0 < np.abs(judge.velocity).max() < 3.0


def test_a_path_of_no_length_was_not_measured():
    samples = TendonSamples(["a", "b"], 0.01, relative=False)
    assert np.isnan(samples.accept(0.0, ["a", "b"], [0.0, 0.2]).lengths).tolist() == [True, False]
    counted = TendonSamples(["a", "b"], 0.01)
    assert counted.accept(0.0, ["a", "b"], [0.0, 0.2]).lengths.tolist() == [0.0, 0.2]
    with pytest.raises(ConfigError):
        samples.accept(0.1, ["a"], [-0.1])
