"""Joint positions that cannot be are refused by name; the robot that really is elsewhere is believed."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.estimation import JointFilter, JointPlausibility, named_twice

NAMES, LOWER, UPPER, SPEED = ("hip", "knee"), np.array([-1.0, 0.0]), np.array([1.0, 2.0]), np.array([3.0, 6.0])
BOTH, DT = np.array([0, 1]), 0.004


class Encoder:
    """Samples at a steady rate."""

    def __init__(self, lower=LOWER, upper=UPPER):
        self.judge, self.t = JointPlausibility(NAMES, lower, upper, SPEED), 0.0

    def send(self, hip, knee=1.0, dt=DT):
        self.t += dt
        return self.judge.check(BOTH, np.array([hip, knee]), self.t).tolist()

    @property
    def problem(self):
        return self.judge.problem(self.t)


def test_all_that_a_joint_may_do_is_used():
    encoder, rng = Encoder(), np.random.default_rng(0)
    for k in range(1000):
        q = np.sin(3 * k * DT) + rng.normal(0, 0.01)  # at its speed limit, noise, slightly beyond its limits
        assert encoder.send(q) == [True, True] and encoder.problem == ""


@pytest.mark.parametrize("bad", [1e308, -1e308, 3.0, -2.0, 1.6])
def test_beyond_the_range_is_refused_by_name_value_and_bound(bad):
    encoder = Encoder()
    assert encoder.send(0.0) == [True, True]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert encoder.send(bad) == [False, True], "the other joint's is used"
    assert f"hip at {bad:.4g} rad" in encoder.problem and "-1.00 .. 1.00" in encoder.problem
    assert encoder.send(0.01) == [True, True]
    encoder.send(0.01, dt=2.5)
    assert encoder.problem == ""


def test_a_jump_is_refused_and_a_place_to_which_it_fits_is_not():
    encoder = Encoder()
    encoder.send(-0.5)
    assert encoder.send(0.9) == [False, True] and "1.40 rad from the previous position" in encoder.problem
    assert encoder.send(-0.49) == [True, True]
    assert encoder.send(0.9, dt=0.5) == [True, True], "half a second later it may be there"


def test_three_in_a_row_that_agree_are_believed_with_a_word():
    encoder = Encoder()
    encoder.send(-0.5)
    assert [encoder.send(0.9 + 0.01 * k)[0] for k in range(4)] == [False, False, True, True]
    assert "hip at 0.92" in encoder.problem and "accepted" in encoder.problem
    encoder.send(0.9, dt=2.5)
    assert encoder.problem == ""
    assert [encoder.send(q)[0] for q in (-0.9, 0.9, -0.9, 0.9, -0.9, 0.9)] == [False, True] * 3, "not in a row"
    assert not any(encoder.send(q)[0] for q in (-0.9, -0.3, -0.9, -0.3, -0.9, -0.3)), "they do not agree"


def test_beyond_the_range_where_the_robot_is_it_stays_believed_but_not_a_turn_farther():
    encoder = Encoder()
    encoder.send(0.9)
    assert [encoder.send(1.8)[0] for _ in range(5)] == [False, False, True, True, True]
    assert "accepted" in encoder.problem
    assert not any(encoder.send(9.0)[0] for _ in range(10)) and "refused" in encoder.problem
    assert not any(encoder.send(1e308)[0] for _ in range(10))


def test_not_a_number_is_not_used_and_counts_for_nothing():
    encoder = Encoder()
    encoder.send(0.0)
    for q in (np.nan, np.inf, -np.inf):
        assert encoder.send(q) == [False, True] and encoder.problem == ""
    assert encoder.send(0.01) == [True, True]


def test_a_joint_without_limits_turns_on_but_not_to_any_number():
    encoder = Encoder(np.full(2, -np.inf), np.full(2, np.inf))
    assert encoder.send(500.0) == [True, True]
    assert encoder.send(500.01) == [True, True]
    assert not any(encoder.send(1e9)[0] for _ in range(5))


def test_forgotten_and_shifted():
    encoder = Encoder()
    encoder.send(-0.9)
    encoder.judge.shift(-5.0)
    encoder.t -= 5.0
    assert encoder.send(0.9) == [False, True], "no five seconds passed"
    encoder.judge.reset()
    assert encoder.send(0.9) == [True, True] and encoder.problem == ""


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=40))
def test_whatever_comes_what_is_used_lies_within_a_turn_of_the_range(values):
    encoder = Encoder()
    for q in values:
        if encoder.send(q)[0]:
            assert LOWER[0] - 2 * np.pi <= q <= UPPER[0] + 2 * np.pi
    assert len(encoder.problem) < 300


def test_names_that_come_twice():
    assert named_twice(["a", "b", "c", "b"]) == "b" and named_twice(["a", "b"]) == named_twice([]) == ""


def turning(lower, upper, wrap=True, speed=1.0, limit=10.0, seconds=8.0, dt=0.01):
    """A joint that turns on under an encoder of one turn: its judge, the samples used, and a filter behind it."""
    judge = JointPlausibility(("table",), np.array([lower]), np.array([upper]), np.array([limit]))
    behind, out, one = JointFilter(("table",), 30.0), [], np.array([0])
    for k in range(int(seconds / dt)):
        q = speed * k * dt
        sample = np.array([(q + np.pi) % (2 * np.pi) - np.pi if wrap else q])
        use = judge.check(one, sample, k * dt)
        for joint, velocity in judge.restarts.items():
            behind.restart(joint, k * dt, sample[joint], velocity)
        behind.update(k * dt, np.where(use, sample, np.nan))
        out.append((q, sample[0], use[0], behind.velocity[0]))
    return judge, np.array(out)


@pytest.mark.parametrize("end", [np.inf, 1000.0])
def test_whole_turns_are_taken_out_of_a_joint_without_ends(end):
    judge, rows = turning(-end, end)
    q, used, good, velocity = rows.T
    assert good.all() and judge.problem(8.0) == "" and np.abs(used - q).max() < 1e-9
    assert np.abs(velocity[30:] - 1.0).max() < 1e-3, "it turns at 1 rad/s all the time"
    _, straight = turning(-end, end, wrap=False)
    assert np.abs(straight[:, 1] - straight[:, 0]).max() < 1e-9
    _, back = turning(-end, end, speed=-2.0)
    assert np.abs(back[:, 1] - back[:, 0]).max() < 1e-9


@pytest.mark.parametrize("end", [3.2, 5.0])
def test_a_jump_by_a_whole_turn_of_a_joint_with_ends_is_refused_as_long_as_it_lasts(end):
    judge, rows = turning(-end, end, seconds=5.0)
    _, used, good, velocity = rows.T
    assert good[:314].all() and not good[315:].any() and (used[:314] > -0.1).all()
    assert np.abs(velocity).max() < 10.0
    assert "jumped by a whole turn" in judge.problem(5.0) and "refused" in judge.problem(5.0)
    assert judge.check(np.array([0]), np.array([3.1]), 5.01).all(), "it is back"


def test_a_filter_begins_again_where_samples_agree_with_their_velocity_alone():
    judge = JointPlausibility(NAMES, LOWER, UPPER, SPEED)
    behind, dt = JointFilter(NAMES, 30.0), 0.004
    fastest = []
    for k in range(400):
        q = np.array([-0.8 + 0.5 * k * dt + (0.9 if k >= 200 else 0.0), 1.0])
        use = judge.check(BOTH, q, k * dt)
        for joint, velocity in judge.restarts.items():
            assert velocity == pytest.approx(0.5)
            behind.restart(joint, k * dt, q[joint], velocity)
        behind.update(k * dt, np.where(use, q, np.nan))
        fastest.append(abs(behind.velocity[0]))
    assert max(fastest) < 0.6 and behind.position[0] == pytest.approx(q[0], abs=1e-6)


def test_the_velocity_of_a_restart_is_inside_the_speed_limit():
    judge = JointPlausibility(NAMES, LOWER, UPPER, SPEED)
    judge.check(BOTH, np.array([-1.0, 1.0]), 0.0)
    for k in (1, 2, 3):
        judge.check(BOTH, np.array([0.6 + 0.03 * k, 1.0]), 0.004 * k)
    assert judge.restarts == {0: 3.0}


def test_a_command_of_a_whole_turn_is_a_motion():
    judge = JointPlausibility(("table",), np.array([-1e3]), np.array([1e3]), np.array([10.0]), encoders=False)
    asked = [(0.0, True), (2 * np.pi, False), (2 * np.pi, False), (2 * np.pi, True)]
    for k, (q, used) in enumerate(asked):
        sample = np.array([q])
        assert judge.check(np.array([0]), sample, 0.01 * k) == [used] and sample[0] == q
