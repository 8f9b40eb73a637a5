"""Stamps that keep their distance, and positions that can be."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.messages import (
    SET_BACK,
    JointPositions,
    PeriodicStamps,
    RisingStamps,
    SerializedJointState,
    stamp_of,
)
from humanoid_control.robots import load_robot

PERIOD = 10_000_000


def ns(time):
    return time.sec * 10**9 + time.nanosec


@given(st.lists(st.tuples(st.sampled_from([1, 1, 1, 2, 7]), st.integers(0, PERIOD - 1)), max_size=40))
def test_stamps_are_whole_periods_apart_and_near_the_present(ticks):
    """Ticks as the loop makes them: some are skipped, each is late by less than a period."""
    stamps, due, last = PeriodicStamps(PERIOD), 10**15, None
    for skip, late in ticks:
        due += skip * PERIOD
        stamp = ns(stamps.next(due + late))
        if last is not None:
            assert stamp - last >= PERIOD and (stamp - last) % PERIOD == 0
        assert abs(due + late - stamp) <= PERIOD
        last = stamp


def test_a_clock_that_is_set_back_begins_anew():
    stamps = PeriodicStamps(PERIOD)
    stamps.next(10**12)
    assert ns(stamps.next(10**11)) == 10**11
    assert ns(stamps.next(10**11 + PERIOD)) == 10**11 + PERIOD


@given(st.lists(st.one_of(st.integers(-3 * 10**7, 10**7), st.just(0), st.just(-3 * SET_BACK)), max_size=60))
def test_each_stamp_is_later_than_the_last_whatever_the_clock_does(steps):
    """A clock that jitters, stands still, goes back a little, or is set back by seconds: only that is followed."""
    stamps, now, last = RisingStamps(), 10**15, None
    for step in steps:
        now += step
        stamp = stamps.next(now)
        set_back = last is not None and last - now >= SET_BACK
        assert last is None or stamp > last or set_back
        assert stamp >= now and (stamp == now or stamp == last + 1)
        last = stamp


def test_positions_are_those_that_can_be_and_problems_are_named():
    robot = load_robot("hrp2", "fixed")
    known, home = JointPositions(robot), robot.postures["neutral"]
    elbow = robot.index["l_elbow_flexion"]

    def take(q, names=robot.joint_names):
        known.take(JointState(name=list(names), position=np.asarray(q, dtype=float).tolist()))
        return known.values[elbow]

    assert take(home) == home[elbow] and known.known and known.problem == ""
    odd = home.copy()
    odd[elbow] = 1e308
    assert take(odd) == home[elbow] and "l_elbow_flexion at 1e+308 rad" in known.problem
    assert take([0.4], ["l_elbow_flexion", "r_elbow_flexion"]) == home[elbow]
    assert "1 positions for 2 names" in known.problem
    assert take([home[elbow], 0.4], ["l_elbow_flexion"] * 2) == home[elbow] and "named twice" in known.problem
    odd[elbow] = home[elbow] + 1.0
    assert [take(odd) for _ in range(3)] == [home[elbow], home[elbow], odd[elbow]] and "accepted" in known.problem
    known.reset()
    assert not known.known and known.problem == ""


NAMES = st.text(st.characters(min_codepoint=1, exclude_categories=["Cs"]), max_size=9)


@given(st.lists(NAMES, min_size=1, max_size=9), st.integers(0, 2**60))
def test_a_joint_state_written_as_bytes_is_read_as_the_message(names, nanoseconds):
    """Whatever the names, which shift all that follows; NaN stays, as effort that is not known has it."""
    written, rng = SerializedJointState(names), np.random.default_rng(len(names))
    for _ in range(2):
        q, v = rng.normal(size=(2, len(names)))
        effort = np.where(rng.random(len(names)) < 0.5, np.nan, 1.0)
        got = deserialize_message(written.fill(stamp_of(nanoseconds), q, v, effort), JointState)
        assert got.name == names and ns(got.header.stamp) == nanoseconds
        np.testing.assert_array_equal([got.position, got.velocity, got.effort], [q, v, effort])
