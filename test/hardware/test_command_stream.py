"""Commands: messages with mistakes are refused whole; between messages nothing steps, overshoots or runs on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.errors import ConfigError, HumanoidError, UnknownNameError
from humanoid_control.hardware.commands.command_stream import (
    Blend,
    CommandInterpolator,
    CommandReader,
    JointCommand,
    check_stamp,
)

NAMES = ["hip", "knee", "ankle"]
NAN = np.nan


@pytest.fixture
def reader():
    return CommandReader(NAMES, passed_over=["toe"])


def test_any_subset_in_any_order_is_a_command(reader):
    c = reader.read(["ankle", "toe", "hip"], [3.0, 9.0, 1.0], [0.3, 9.0, 0.1], [])
    np.testing.assert_array_equal(c.q, [1.0, NAN, 3.0])
    np.testing.assert_array_equal(c.v, [0.1, NAN, 0.3])
    assert np.isnan(c.tau).all()


def test_a_joint_whose_position_is_not_finite_is_not_commanded(reader):
    c = reader.read(NAMES, [1.0, NAN, np.inf], [1.0, 2.0, 3.0], [4.0, 5.0, NAN])
    np.testing.assert_array_equal(c.q, [1.0, NAN, NAN])
    np.testing.assert_array_equal(c.v, [1.0, NAN, NAN])
    np.testing.assert_array_equal(c.tau, [4.0, NAN, NAN])
    assert reader.read(NAMES, [NAN] * 3, [], []) is None
    assert reader.read([], [], [], []) is None
    assert reader.read(["toe"], [1.0], [], []) is None


@pytest.mark.parametrize(
    ("names", "position", "velocity", "says"),
    [
        (["hip", "kne"], [1.0, 2.0], [], "did you mean knee"),
        (["hip", "hip"], [1.0, 2.0], [], "hip twice"),
        (["hip", "knee"], [1.0], [], "1 values of position for 2 names"),
        (["hip", "knee"], [1.0, 2.0], [1.0, 2.0, 3.0], "3 values of velocity"),
        (["hip"], [], [1.0], "needs positions"),
    ],
)
def test_a_message_with_a_mistake_is_refused_whole_and_the_next_one_is_read(reader, names, position, velocity, says):
    for _ in range(2):
        with pytest.raises((ConfigError, UnknownNameError), match=says):
            reader.read(names, position, velocity, [])
    assert reader.read(NAMES, [1.0, 2.0, 3.0], [], []) is not None


@given(
    st.lists(st.sampled_from([*NAMES, "toe", "nose"]), max_size=5),
    *[st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=5)] * 3,
)
def test_no_message_gives_anything_but_finite_commands_for_own_joints(names, position, velocity, effort):
    reader = CommandReader(NAMES, ["toe"])
    try:
        c = reader.read(names, position, velocity, effort)
    except HumanoidError:
        return
    if c is not None:
        assert np.isfinite(c.q).any() and not np.isinf(np.concatenate(c)).any()
        assert np.isnan(c.v[np.isnan(c.q)]).all() and np.isnan(c.tau[np.isnan(c.q)]).all()


def test_old_commands_and_those_of_tomorrow_are_refused():
    check_stamp(0.4)
    check_stamp(-0.4)
    for age, says in ((0.6, "0.60 s old"), (-30.0, "from the future"), (NAN, "clocks")):
        with pytest.raises(ConfigError, match=says):
            check_stamp(age)


# -- between messages


def command(q, v=NAN, n=1):
    return JointCommand(np.full(n, float(q)), np.full(n, float(v)), np.full(n, NAN))


def stream(values, period, with_velocity=True, timeout=0.1):
    """An interpolator that was given these (q, v), the last at time 0."""
    it = CommandInterpolator(1, timeout)
    for k, (q, v) in enumerate(values):
        t = (k - len(values) + 1) * period
        it.add(command(q, v if with_velocity else NAN), t, t)
    return it


@pytest.mark.parametrize("with_velocity", [True, False])
def test_a_smooth_stream_comes_out_smooth_one_period_late(with_velocity):
    h, w = 0.02, 3.0
    it, out, k = CommandInterpolator(1, 0.1), [], 0
    for i in range(2000):
        now = i * 0.001
        if now >= k * h - 1e-9:
            v = w * np.cos(w * k * h)
            it.add(command(np.sin(w * k * h), v if with_velocity else NAN), now, k * h)
            k += 1
        out.append((now, *(x[0] for x in it.at(now))))
    t, q, v = np.array(out[200:]).T
    tolerance = 1e-4 if with_velocity else 2e-3
    assert np.abs(q - np.sin(w * (t - h))).max() < tolerance
    assert np.abs(v - w * np.cos(w * (t - h))).max() < (2e-3 if with_velocity else 0.1)
    assert np.abs(np.diff(q)).max() < 1.02 * w * 0.001


def test_a_late_command_is_extrapolated_for_one_period_and_held_then():
    it = stream([(0.00, 1.0), (0.02, 1.0), (0.04, 1.0)], 0.02)
    assert it.at(0.02)[0][0] == pytest.approx(0.04)
    assert it.at(0.03)[0][0] == pytest.approx(0.05) and it.at(0.03)[1][0] == 1.0
    for t in (0.041, 0.06, 5.0):
        assert it.at(t)[0][0] == pytest.approx(0.06) and it.at(t)[1][0] == 0.0


def test_a_stream_without_velocities_ends_at_its_last_command():
    it = stream([(0.00, 0), (0.02, 0), (0.04, 0)], 0.02, with_velocity=False)
    for t in (0.02, 0.03, 1.0):
        assert it.at(t)[0][0] == pytest.approx(0.04)


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-3, 3)), min_size=3, max_size=6))
def test_no_curve_leaves_its_span_by_more_than_speed_times_period(values):
    h = 0.02
    it = stream(values, h)
    q0, v0 = (x[0] for x in it.at(0.0))
    (q1, v1) = values[-1]
    room = max(abs(v0), abs(v1)) * h + 1e-12
    q = [it.at(t)[0][0] for t in np.linspace(0, 0.1, 60)]
    assert min(q) >= min(q0, q1) - room and max(q) <= max(q0, q1) + room


def test_joints_that_a_command_leaves_out_stay_at_their_last_one():
    it = CommandInterpolator(2, 0.1)
    it.add(JointCommand(np.array([1.0, 2.0]), np.full(2, NAN), np.array([5.0, 6.0])), 0.0, 0.0)
    for k in range(1, 5):
        it.add(JointCommand(np.array([1.0 + k, NAN]), np.full(2, NAN), np.array([7.0, NAN])), 0.01 * k, 0.01 * k)
    q, v = it.at(0.05)
    assert q[1] == 2.0 and v[1] == 0.0 and q[0] == pytest.approx(5.0) and it.tau.tolist() == [7.0, 6.0]


def test_a_gap_forgets_everything_and_a_steady_stream_is_known():
    it = CommandInterpolator(1, 0.1)
    assert np.isnan(it.at(0.0)[0]).all() and it.silent(0.0) and not it.steady(0.0, 0.2)
    for k in range(30):
        it.add(command(1.0), 0.01 * k, 0.01 * k)
        assert it.steady(0.01 * k, 0.2) == (k >= 20)
    assert it.period == pytest.approx(0.01) and not it.silent(0.38) and it.silent(0.4)
    it.add(command(-1.0), 0.5, 0.5)
    assert it.at(0.5)[0][0] == -1.0, "no curve from what was before the gap"
    assert not it.steady(0.5, 0.2)


def test_after_a_gap_joints_that_are_not_named_are_not_commanded():
    it = CommandInterpolator(2, 0.05)
    it.add(JointCommand(np.array([1.0, 2.0]), np.full(2, NAN), np.full(2, 3.0)), 0.0, 0.0)
    it.add(JointCommand(np.array([1.0, NAN]), np.full(2, NAN), np.full(2, NAN)), 0.06, 0.06)
    assert it.at(0.06)[0][0] == 1.0 and np.isnan(it.at(0.06)[0][1]) and np.isnan(it.tau).all()


def test_a_clock_that_was_set_does_no_harm():
    it = stream([(0.0, 1.0), (0.01, 1.0), (0.02, 1.0)], 0.01)
    it.add(command(0.03, 1.0), 0.01, -500.0)
    it.add(command(0.04, 1.0), 0.02, -499.99)
    assert it.period == pytest.approx(0.01) and it.at(0.03)[0][0] == pytest.approx(0.04)


# -- blend


def test_the_blend_adds_no_more_than_its_speed_and_ends_on_the_commands():
    hold, goal = np.array([0.0, 0.5]), np.array([1.0, 0.4])
    blend = Blend(hold, goal, 10.0, least=2.0, speed=0.5)
    assert blend.duration == pytest.approx(1.875 * 1.0 / 0.5)
    t = 10.0 + np.linspace(0, blend.duration, 2001)
    q = np.array([blend.at(now, goal) for now in t])
    v = np.diff(q, axis=0) / np.diff(t)[:, None]
    assert np.abs(v).max() == pytest.approx(0.5, rel=1e-3) and np.abs(v[0]).max() < 1e-3
    assert (q[0] == hold).all() and (q[-1] == goal).all()
    assert not blend.over(10.0 + blend.duration - 1e-6) and blend.over(10.0 + blend.duration)


def test_the_blend_takes_its_least_time_where_the_way_is_short():
    assert Blend(np.zeros(2), np.full(2, 0.01), 0.0, least=2.0, speed=0.5).duration == 2.0
    assert Blend(np.zeros(2), np.full(2, NAN), 0.0, least=2.0, speed=0.5).duration == 2.0


def test_joints_that_are_not_commanded_hold():
    blend = Blend(np.array([0.3, 0.6]), np.array([NAN, 0.0]), 0.0, 1.0, 1.0)
    assert blend.at(50.0, np.array([NAN, 0.1])).tolist() == pytest.approx([0.3, 0.1])


def test_a_joint_that_is_commanded_a_velocity_alone_does_not_go_back_to_its_last_position():
    it, none = CommandInterpolator(2, 0.1), np.full(2, NAN)
    it.add(JointCommand(np.array([1.0, 2.0]), none, none), 0.0, 0.0)
    it.add(JointCommand(np.array([NAN, 2.0]), np.array([0.5, NAN]), none), 0.01, 0.01)
    np.testing.assert_array_equal(it.at(0.02)[0], [NAN, 2.0])
    it.add(JointCommand(np.array([1.5, NAN]), none, none), 0.02, 0.02)
    np.testing.assert_array_equal(it.at(0.025)[0], [1.5, 2.0])
