"""Writing and reading only what changes gives exactly what the ordinary conversion gives."""

import contextlib

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray, UVCoordinate

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.messages import target_markers
from humanoid_control.nodes.base.serialized_markers import MOST_MARKERS, MarkerReader, SerializedMarkers

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


def random_marker(rng):
    """A marker with something, or nothing, in every field."""
    n = [int(rng.integers(0, 4)) for _ in range(6)]
    m = Marker(ns="n" * n[0], text="ü" * n[1], id=int(rng.integers(-9, 9)), action=int(rng.choice([0, 0, 2])))
    m.header.frame_id, m.header.stamp = "f" * n[2], Time(sec=int(rng.integers(2**31)), nanosec=5)
    p, o = m.pose.position, m.pose.orientation
    p.x, p.y, p.z, o.x, o.y, o.z, o.w = rng.normal(size=7)
    m.points, m.colors = [Point(x=1.0)] * n[3], [ColorRGBA(r=0.5)] * n[4]
    m.texture_resource, m.texture.header.frame_id, m.texture.format = "t" * n[5], "g" * n[4], "png" * n[3]
    m.texture.data, m.uv_coordinates = bytes(n[2]), [UVCoordinate(u=0.5)] * n[1]
    m.mesh_resource, m.mesh_file.filename, m.mesh_file.data = "r" * n[0], "m" * n[5], bytes(n[4])
    m.frame_locked, m.mesh_use_embedded_materials = bool(n[3] % 2), bool(n[2] % 2)
    m.lifetime.sec, m.lifetime.nanosec = (0x5A5A0000, 1) if n[1] == 1 else (n[0], n[1])
    return m


def test_every_field_is_walked_over():
    rng, reader = np.random.default_rng(2), MarkerReader(lambda ns, text: f"{ns}|{text}")
    for _ in range(300):
        message = MarkerArray(markers=[random_marker(rng) for _ in range(rng.integers(0, 6))])
        data = serialize_message(message)
        for _again in range(2):
            read = reader.read(data)
            added = [m for m in message.markers if m.action == Marker.ADD]
            assert read.names == tuple(f"{m.ns}|{m.text}" for m in added)
            assert read.frames == tuple(m.header.frame_id for m in added) and read.passed_over == 0
            assert [tuple(p[:3]) for p in read.poses] == [
                (m.pose.position.x, m.pose.position.y, m.pose.position.z) for m in added
            ]
    assert reader.read_in_full < 310, "what came before is known"


def test_no_more_markers_are_read_than_a_bound_and_large_messages_are_not_learnt():
    reader = MarkerReader()
    read = reader.read(serialize_message(target_markers([f"n{k}" for k in range(1000)])))
    assert read.names == tuple(f"n{k}" for k in range(MOST_MARKERS)) and read.passed_over == 1000 - MOST_MARKERS
    assert len(read.poses) == len(read.frames) == MOST_MARKERS
    assert not reader._known
    for k in range(100):
        reader.read(serialize_message(target_markers(["x" * k])))
    assert len(reader._known) <= 16


def test_bytes_that_are_no_message_are_refused_in_one_line():
    rng, whole = np.random.default_rng(3), serialize_message(target_markers(NAMES))
    for n in range(len(whole)):
        with pytest.raises(ConfigError, match="not a MarkerArray"):
            MarkerReader().read(whole[: n & ~3] if n > 8 else b"\0\1\0\0")
    for _ in range(500):
        data = bytearray(whole)
        for _k in range(3):
            data[int(rng.integers(4, len(data)))] = int(rng.integers(256))
        with contextlib.suppress(ConfigError):
            read = MarkerReader().read(bytes(data))
            assert len(read.names) == len(read.poses) <= MOST_MARKERS


def test_a_large_message_of_another_byte_order_is_refused():
    with pytest.raises(ConfigError, match="another byte order"):
        MarkerReader().read(b"\0\0\0\0" + bytes(100_000))
