"""Writing and reading only what changes gives exactly what the ordinary conversion gives."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message, serialize_message
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.nodes.base.messages import target_markers
from humanoid_control.nodes.base.serialized_markers import MarkerReader, SerializedMarkers

NAMES = ("a", "l_wrist", "", "a rather long name of a target", "ü")


def written(markers, stamp, positions):
    """The bytes of a message with this stamp and these positions (M, 3) [m]."""
    markers.set_stamp(stamp)
    markers.set_positions(positions)
    return markers.bytes()


def fill_positions(message, stamp, positions):
    """The ordinary way to move the markers of an array; positions (M, 3) [m]."""
    for m, (x, y, z) in zip(message.markers, np.asarray(positions, float).tolist(), strict=True):
        m.header.stamp = stamp
        m.pose.position.x, m.pose.position.y, m.pose.position.z = x, y, z
    return message


def test_written_bytes_are_the_message():
    rng, markers = np.random.default_rng(0), SerializedMarkers(target_markers(NAMES))
    for k in range(50):
        positions, stamp = (
            rng.normal(size=(5, 3)) * 10.0 ** rng.integers(-5, 5),
            Time(sec=1000 + k, nanosec=int(rng.integers(10**9))),
        )
        got = deserialize_message(written(markers, stamp, positions), MarkerArray)
        wanted = fill_positions(target_markers(NAMES), stamp, positions)
        assert got == deserialize_message(serialize_message(wanted), MarkerArray)


@pytest.mark.parametrize("value", [np.nan, np.inf, -0.0, 1e300])
def test_odd_numbers_pass_unchanged(value):
    markers, reader = SerializedMarkers(target_markers(("a",))), MarkerReader()
    got = reader.read(written(markers, Time(sec=1), np.full((1, 3), value))).poses[0, :3]
    assert np.array_equal(got, np.full(3, value), equal_nan=True)


def test_read_is_what_the_ordinary_conversion_gives():
    rng, reader = np.random.default_rng(1), MarkerReader()
    for _ in range(60):
        n = int(rng.integers(0, 5))
        message = target_markers([f"t{rng.integers(3)}" * int(rng.integers(1, 4)) for _ in range(n)])
        for m in message.markers:
            p, o = m.pose.position, m.pose.orientation
            p.x, p.y, p.z, o.x, o.y, o.z, o.w = rng.normal(size=7)
            m.header.stamp = Time(sec=int(rng.integers(2**31)), nanosec=int(rng.integers(10**9)))
            m.action = int(rng.choice([Marker.ADD, Marker.DELETE]))
            m.text = "x" * int(rng.integers(5))
        read = reader.read(serialize_message(message))
        added = [m for m in message.markers if m.action == Marker.ADD]
        assert read.names == tuple(m.ns for m in added)
        wanted = [
            [p.x, p.y, p.z, o.x, o.y, o.z, o.w] for p, o in ((m.pose.position, m.pose.orientation) for m in added)
        ]
        assert np.array_equal(read.poses, np.array(wanted).reshape(-1, 7))
        if message.markers:
            s = message.markers[0].header.stamp
            assert read.stamp == pytest.approx(s.sec + 1e-9 * s.nanosec)


def test_a_stream_is_read_in_full_only_once():
    markers, reader = SerializedMarkers(target_markers(NAMES)), MarkerReader()
    for k in range(20):
        reader.read(written(markers, Time(sec=k), np.full((5, 3), float(k))))
    assert reader.read_in_full == 1


def test_a_change_elsewhere_is_seen():
    """Same length, another name: the old layout must not be believed."""
    reader = MarkerReader()
    first, second = target_markers(("abc", "def")), target_markers(("abc", "xyz"))
    assert reader.read(serialize_message(first)).names == ("abc", "def")
    assert reader.read(serialize_message(second)).names == ("abc", "xyz")
