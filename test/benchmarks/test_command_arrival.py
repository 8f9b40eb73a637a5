"""Which command answers which targets, found from stamps alone."""

import struct

import numpy as np
import pytest

from evidence.benchmarks.nodes.command_arrival import COMMAND_STAMP, MARKER_STAMP, answers, stamp_at


def stream(period, delays, jitter, seed=0):
    """Stamps of targets at 50 Hz, of commands, and the commands that answer, as the node makes them."""
    rng = np.random.default_rng(seed)
    targets = 0.02 * np.arange(len(delays)) + rng.uniform(0, 0.002, len(delays))
    arrived = targets + delays
    regular = period * np.arange(-5, 0.02 / period * (len(delays) + 2)) + 0.0007
    regular = regular + jitter * np.abs(rng.normal(size=len(regular)))
    kind = np.concatenate([np.zeros(len(regular), int) - 1, np.arange(len(delays))])
    stamps = np.concatenate([regular, arrived + 2e-5])
    order = np.argsort(stamps)
    return targets, stamps[order], np.argsort(order)[len(regular) :], kind[order]


@pytest.mark.parametrize("period", [0.004, 0.002])
def test_the_extra_command_is_found_also_behind_regular_ones(period):
    delays = np.random.default_rng(1).uniform(2e-4, 5e-3, 300)
    targets, commands, truth, _ = stream(period, delays, 2e-5)
    found = answers(targets, commands, period)
    known = found >= 0
    assert known.mean() > 0.95
    error = commands[found[known]] - commands[truth[known]]
    assert np.mean(np.abs(error) < 2e-4) > 0.95, "also where a regular command fell between targets and answer"
    first = np.searchsorted(commands, targets, side="right")
    assert np.mean(first == truth) < 0.8, "the first command behind the stamp is often not the answer"


def test_where_no_extra_command_was_made_the_later_one_is_taken():
    commands = 0.004 * np.arange(20.0)
    found = answers(np.array([0.0199]), commands, 0.004)
    assert commands[found[0]] == pytest.approx(0.024)


def test_targets_without_neighbours_are_left_out():
    commands = 0.004 * np.arange(5.0)
    assert answers(np.array([-1.0, 1.0]), commands, 0.004).tolist() == [-1, -1]
    assert answers(np.array([]), commands, 0.004).tolist() == []


def test_stamps_are_read_from_bytes():
    pytest.importorskip("rclpy", reason="needs ROS 2")
    from builtin_interfaces.msg import Time
    from rclpy.serialization import serialize_message
    from sensor_msgs.msg import JointState
    from visualization_msgs.msg import Marker, MarkerArray

    command, marker = JointState(name=["a"], position=[1.0]), Marker(ns="hand")
    command.header.stamp = marker.header.stamp = Time(sec=1_700_000_000, nanosec=123_456_789)
    assert stamp_at(serialize_message(command), COMMAND_STAMP) == 1_700_000_000_123_456_789
    assert stamp_at(serialize_message(MarkerArray(markers=[marker])), MARKER_STAMP) == 1_700_000_000_123_456_789
    with pytest.raises(struct.error):
        stamp_at(b"\x00" * 6, COMMAND_STAMP)
