"""Joint positions that cannot be are refused by name; the robot that really is elsewhere is believed."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.estimation import JointPlausibility, named_twice

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
    assert encoder.send(0.9) == [False, True] and "1.40 rad from where it was" in encoder.problem
    assert encoder.send(-0.49) == [True, True]
    assert encoder.send(0.9, dt=0.5) == [True, True], "half a second later it may be there"


def test_three_in_a_row_that_agree_are_believed_with_a_word():
    encoder = Encoder()
    encoder.send(-0.5)
    assert [encoder.send(0.9 + 0.01 * k)[0] for k in range(4)] == [False, False, True, True]
    assert "hip at 0.92" in encoder.problem and "believed" in encoder.problem
    encoder.send(0.9, dt=2.5)
    assert encoder.problem == ""
    assert [encoder.send(q)[0] for q in (-0.9, 0.9, -0.9, 0.9, -0.9, 0.9)] == [False, True] * 3, "not in a row"
    assert not any(encoder.send(q)[0] for q in (-0.9, -0.3, -0.9, -0.3, -0.9, -0.3)), "they do not agree"


def test_beyond_the_range_where_the_robot_is_it_stays_believed_but_not_a_turn_farther():
    encoder = Encoder()
    encoder.send(0.9)
    assert [encoder.send(1.8)[0] for _ in range(5)] == [False, False, True, True, True]
    assert "believed" in encoder.problem
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
    encoder.judge.forget()
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
