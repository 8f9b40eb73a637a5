"""Samples of tendon lengths that imply a motion no joint can do are left out, however well all tendons agree."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.estimator.estimator import TendonEstimator
from humanoid_control.tendons.estimator.plausibility import TendonPlausibility
from humanoid_control.tendons.estimator.samples import TendonSamples
from humanoid_control.tendons.estimator.settings import EstimatorSettings
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


@pytest.mark.parametrize("fault", ["nothing was read", "all 0.3 m longer"])
def test_a_first_sample_that_no_posture_has_is_left_out_however_often_it_comes(mappings, fault):
    """Before the first good sample nothing else can be said against it: it put the estimate beyond all ranges."""
    _, z = path(mappings)
    long = np.full(z.shape[1], 0.4)  # [m] of paths in the posture where all joints are zero
    e = TendonEstimator(GROUPS, mappings)
    e.zero(long, dict.fromkeys(e.joint_names, 0.0))
    assert TendonPlausibility(e, SPEED).check(0.0, FAULTS[fault](z[0] + long)), "counted lengths begin anywhere"
    judge = TendonPlausibility(e, SPEED, placed=True)
    for k in range(10):
        assert not judge.check(k * DT, FAULTS[fault](z[k] + long))
        assert "outside all postures" in judge.problem and judge.problem.endswith("ignored")
    spoilt = z[10] + long
    spoilt[0] = 0.0
    assert judge.check(0.1, spoilt), "one tendon alone is judged against the others"
    judge.reset()
    assert all(judge.check(k * DT, z[k] + long) for k in range(11, 100)) and not judge.problem
    assert not judge.check(1.0, FAULTS[fault](z[100] + long)), "nor later"
    for end in GIRDLE_LIMITS.T:
        judge.reset()
        assert judge.check(0.0, plant(mappings, end[None])[0] + long), "the ends of the ranges are possible"


def test_joints_that_really_are_elsewhere_are_believed_after_three_samples(mappings):
    q, z = path(mappings)
    there = plant(mappings, GIRDLE_LIMITS.min(axis=1)[None] * 0.5 + 0.5 * GIRDLE_LIMITS.mean(axis=1))[0]
    z = np.vstack([z[:100], np.tile(there, (100, 1))])
    _, said = estimates(mappings, q, z)
    assert [bool(text) for text in said[98:106]] == [False, False, True, True, True, False, False, False]
    assert said[102].endswith("accepted, 3 in a row agree")


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


@pytest.mark.parametrize("observation", ["absolute", "r2", "r3"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_estimator_without_a_node_leaves_out_a_sample_that_no_joint_can_follow(mappings, fault, observation):
    """Samples are counted there, and no speed limit is known: `largest_step` bounds the motion between two of them."""
    q, z = path(mappings)
    long, neutral = np.full(z.shape[1], 0.4), dict.fromkeys((j for g in GROUPS for j in g.own), 0.0)
    change = FAULTS[fault] or (lambda _: plant(mappings, GIRDLE_LIMITS.min(axis=1)[None])[0] + long)

    def worst_step(spoilt, **settings):
        e = TendonEstimator(GROUPS, mappings, EstimatorSettings(observation, **settings))
        e.zero(long, neutral)
        e.reset(dict(zip((j for g in GROUPS for j in g.own), q[0], strict=True)))
        angles, said = [], []
        for k, lengths in enumerate(z[:200] + long):
            angles.append(e.step(change(lengths) if k in spoilt else lengths))
            said.append(e.problem)
        assert [bool(text) for text in said] == [k in spoilt and not settings for k in range(200)]
        return np.abs(np.diff(angles[1:], axis=0)).max()

    control = worst_step(())
    assert worst_step((150,)) < control + 0.05
    assert worst_step((150,), largest_step=0.0) > control + 0.5, "the fault matters"
    if observation == "absolute" and fault != "the lengths of another posture":
        assert worst_step((0,)) < control + 0.05, "a first sample of no posture"


def test_a_tendon_that_jumps_alone_does_not_cost_the_sample(mappings):
    q, z = path(mappings)
    z[150:, 3] += 0.3  # m, more than any motion of its joints makes in a sample
    _, said = estimates(mappings, q, z)
    assert not any(said)


def test_a_sample_without_lengths_hides_no_jump(mappings):
    """The sample before is remembered tendon by tendon, also where samples in between lack some or all."""
    _, z = path(mappings)
    judge = TendonPlausibility(TendonEstimator(GROUPS, mappings), SPEED)
    assert judge.check(0.0, z[0]) and judge.check(DT, np.full(z.shape[1], np.nan))
    assert not judge.check(2 * DT, z[2] + 0.3) and "speed limit" in judge.problem
    judge.place()
    assert not judge.check(3 * DT, z[3] + 0.3) and "outside all postures" in judge.problem
