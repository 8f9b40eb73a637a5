"""MarkerArrays that repeat: only the numbers that change are written to, or read from, their serialized bytes.

Converting seven markers between Python and the wire costs 0.5 ms each way, because a marker has some fifty fields. In a
stream of targets only stamps and poses change. Their places in the bytes are found once, by serializing a copy with
values that occur nowhere else; after that a message costs some 20 us. Bytes that differ anywhere else are read in full.


Also here:

* A MarkerArray whose shape never changes, written as bytes: poses, colours, points and stamps are put in place.
* Markers published between the ticks of a node: only while somebody listens, and only where there is room.
"""

from __future__ import annotations

import copy
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.nodes.base.statistics import Samples

# -------- MarkerArrays that repeat: only the numbers that change are written to, or read from, their serialized bytes

POSE = 7
PROBE = 0x5A5A0000


class Layout:
    """Where stamps and poses stand in the bytes of a MarkerArray of a given shape.

    Attributes:
        template: (N,) the bytes, uint8.
        pose: (M, 7, 8) indices of the bytes of x, y, z and quaternion x, y, z, w. stamp: (M, 8) of the stamps.
    """

    def __init__(self, message: MarkerArray, data: bytes | None = None) -> None:
        """Find the places.

        Args:
            message: of the shape. data: its bytes, where they are known; the message is used up then.
        """
        probe = copy.deepcopy(message) if data is None else message
        for k, m in enumerate(probe.markers):
            m.header.stamp = Time(sec=PROBE + k, nanosec=k + 1)
            p, o = m.pose.position, m.pose.orientation
            p.x, p.y, p.z, o.x, o.y, o.z, o.w = (_probe_value(k, i) for i in range(POSE))
        raw = serialize_message(probe)
        self.template = np.frombuffer(serialize_message(message) if data is None else data, dtype=np.uint8).copy()
        m = len(probe.markers)
        stamps = [_find(raw, struct.pack("<iI", PROBE + k, k + 1)) for k in range(m)]
        poses = [[_find(raw, struct.pack("<d", _probe_value(k, i))) for i in range(POSE)] for k in range(m)]
        self.stamp = np.array(stamps, dtype=int).reshape(m, 1) + np.arange(8)
        self.pose = np.array(poses, dtype=int).reshape(m, POSE, 1) + np.arange(8)
        constant = np.ones(len(self.template), dtype=bool)
        constant[self.stamp] = constant[self.pose] = False
        self.constant = np.flatnonzero(constant)


def _probe_value(marker: int, number: int) -> float:
    return 1.0e17 + 1.0e9 * marker + 64.0 * (number + 1)


def _find(raw: bytes, pattern: bytes) -> int:
    at = raw.find(pattern)
    assert at >= 0 and raw.find(pattern, at + 1) < 0, "a probe value must occur exactly once"
    return at


class MarkerWriter:
    """Serialized copies of one MarkerArray with new stamps and positions, ready for `Publisher.publish`."""

    def __init__(self, message: MarkerArray) -> None:
        self._layout = Layout(message)
        self._bytes = self._layout.template.copy()
        self._positions = self._layout.pose[:, :3].reshape(-1)

    def write(self, stamp: Time, positions: np.ndarray) -> bytes:
        """The message with this stamp on every marker and these positions (M, 3) [m]."""
        now = np.frombuffer(struct.pack("<iI", stamp.sec, stamp.nanosec), dtype=np.uint8)
        self._bytes[self._layout.stamp] = now
        self._bytes[self._positions] = np.ascontiguousarray(positions, dtype="<f8").view(np.uint8).reshape(-1)
        return self._bytes.tobytes()


@dataclass(frozen=True)
class MarkerPoses:
    """What a stream of targets says: names, poses (M, 7) x y z and quaternion, time of the first stamp [s]."""

    names: tuple[str, ...]
    poses: np.ndarray
    stamp: float


@dataclass(frozen=True)
class _Known:
    """A shape that was learnt: where its numbers are, and which markers count."""

    layout: Layout
    rows: np.ndarray
    names: tuple[str, ...]

    def fits(self, raw: np.ndarray) -> bool:
        """Whether the bytes have this shape."""
        layout = self.layout
        return bool(np.array_equal(raw[layout.constant], layout.template[layout.constant]))


class MarkerReader:
    """Reads names, poses and stamps of the markers to be added from serialized MarkerArrays.

    Several shapes are remembered, so that markers may come and go. A shape is learnt at once when none is known, later
    only when it comes twice in a row: learning takes longer than reading in full.
    """

    def __init__(self, name_of: Callable[[Marker], str] = lambda m: m.ns, shapes: int = 16) -> None:
        """Prepare.

        Args:
            name_of: the name of a marker.
            shapes: how many are remembered.
        """
        self._name_of, self._shapes = name_of, shapes
        self._known: dict[int, _Known] = {}  # by length of the message
        self._strange = -1
        self.read_in_full = 0

    def read(self, data: bytes) -> MarkerPoses:
        """The contents of a message."""
        raw = np.frombuffer(data, dtype=np.uint8)
        known = self._known.get(len(raw))
        if known is not None and known.fits(raw):
            stamps, layout = known.layout.stamp, known.layout
            stamp = struct.unpack("<iI", raw[stamps[0]].tobytes()) if len(stamps) else (0, 0)
            return MarkerPoses(known.names, raw[layout.pose].view("<f8")[:, :, 0][known.rows], _seconds(*stamp))
        return self._read_in_full(data)

    def _read_in_full(self, data: bytes) -> MarkerPoses:
        message = deserialize_message(data, MarkerArray)
        self.read_in_full += 1
        added = [k for k, m in enumerate(message.markers) if m.action == Marker.ADD]
        names = tuple(self._name_of(message.markers[k]) for k in added)
        poses = [_numbers(message.markers[k]) for k in added]
        first = message.markers[0].header.stamp if message.markers else Time()
        stamp = _seconds(first.sec, first.nanosec)
        contents = MarkerPoses(names, np.array(poses, dtype=float).reshape(-1, POSE), stamp)
        if not self._known or self._strange == len(data):
            if len(self._known) >= self._shapes:
                del self._known[next(iter(self._known))]
            self._known[len(data)] = _Known(Layout(message, data), np.array(added, dtype=int), names)
        self._strange = len(data)
        return contents


def _numbers(m: Marker) -> tuple[float, ...]:
    p, o = m.pose.position, m.pose.orientation
    return p.x, p.y, p.z, o.x, o.y, o.z, o.w


def _seconds(sec: int, nanosec: int) -> float:
    return sec + 1e-9 * nanosec


# -------- A MarkerArray whose shape never changes, written as bytes: poses, colours

POSE_marker_template, RGBA, XYZ = 7, 4, 3
PROBE_marker_template = 0x5A5A0000
ADD, DELETE = (np.frombuffer(struct.pack("<i", a), dtype=np.uint8) for a in (Marker.ADD, Marker.DELETE))


class MarkerTemplate:
    """The bytes of one MarkerArray, with the places of all that may change.

    The places are found once, by serializing a copy with values that occur nowhere else.
    """

    def __init__(self, message: MarkerArray) -> None:
        probe, count = copy.deepcopy(message), len(message.markers)
        for k, m in enumerate(probe.markers):
            m.header.stamp, m.action = Time(sec=PROBE_marker_template + k, nanosec=k + 1), -PROBE_marker_template - k
            p, o = m.pose.position, m.pose.orientation
            p.x, p.y, p.z, o.x, o.y, o.z, o.w = _doubles(k, 0, POSE_marker_template)
            m.color = ColorRGBA(**dict(zip("rgba", _floats(k, 0), strict=True)))
            m.points = [Point(**dict(zip("xyz", _doubles(k, i + 3, XYZ), strict=True))) for i in range(len(m.points))]
            m.colors = [ColorRGBA(**dict(zip("rgba", _floats(k, i + 1), strict=True))) for i in range(len(m.colors))]
        raw = serialize_message(probe)
        self._bytes = np.frombuffer(serialize_message(message), dtype=np.uint8).copy()
        every = range(count)
        self._stamp = np.array(
            [_find_marker_template(raw, struct.pack("<iI", PROBE_marker_template + k, k + 1)) for k in every]
        )[:, None] + np.arange(8)
        self._action = np.array(
            [_find_marker_template(raw, struct.pack("<i", -PROBE_marker_template - k)) for k in every]
        )[:, None] + np.arange(4)
        pose = [_find_marker_template(raw, struct.pack("<7d", *_doubles(k, 0, POSE_marker_template))) for k in every]
        self._pose = np.array(pose)[:, None] + np.arange(8 * POSE_marker_template)
        self._color = np.array([_find_marker_template(raw, struct.pack("<4f", *_floats(k, 0))) for k in every])[
            :, None
        ] + np.arange(16)
        self._points, self._colors = {}, {}
        for k, m in enumerate(probe.markers):
            if m.points:
                at = _find_marker_template(raw, struct.pack("<3d", *_doubles(k, 3, XYZ)))
                self._points[k] = slice(at, at + 8 * XYZ * len(m.points))
            if m.colors:
                at = _find_marker_template(raw, struct.pack("<4f", *_floats(k, 1)))
                self._colors[k] = slice(at, at + 4 * RGBA * len(m.colors))

    def set_stamp(self, stamp: Time) -> None:
        """The same stamp on every marker."""
        self._bytes[self._stamp] = np.frombuffer(struct.pack("<iI", stamp.sec, stamp.nanosec), dtype=np.uint8)

    def set_poses(self, first: int, poses: np.ndarray) -> None:
        """Poses (K, 7) of the markers from `first` on: x, y, z and quaternion x, y, z, w."""
        if len(poses):
            self._bytes[self._pose[first : first + len(poses)]] = _view(poses, "<f8", len(poses))

    def set_colors(self, first: int, colors: np.ndarray) -> None:
        """Colours (K, 4) of the markers from `first` on: red, green, blue, alpha, 0 .. 1."""
        if len(colors):
            self._bytes[self._color[first : first + len(colors)]] = _view(colors, "<f4", len(colors))

    def set_points(self, marker: int, points: np.ndarray, colors: np.ndarray | None = None) -> None:
        """All points (N, 3) [m] of a marker, and their colours (N, 4) where it has one for each."""
        self._bytes[self._points[marker]] = _view(points, "<f8", 1)[0]
        if colors is not None:
            self._bytes[self._colors[marker]] = _view(colors, "<f4", 1)[0]

    def show(self, marker: int, visible: bool) -> None:
        """Add a marker, or delete it where it is shown."""
        self._bytes[self._action[marker]] = ADD if visible else DELETE

    def bytes(self) -> bytes:
        """The message."""
        return self._bytes.tobytes()


def _view(values: np.ndarray, kind: str, rows: int) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=kind).view(np.uint8).reshape(rows, -1)


def _doubles(marker: int, place: int, count: int) -> list[float]:
    return [1.0e17 + 1.0e12 * marker + 1024.0 * (10 * place + i + 1) for i in range(count)]


def _floats(marker: int, place: int) -> list[float]:
    """Whole numbers that a 32-bit float holds exactly."""
    return [float(2**22 + 2048 * marker + RGBA * place + i) for i in range(RGBA)]


def _find_marker_template(raw: bytes, pattern: bytes) -> int:
    at = raw.find(pattern)
    assert at >= 0 and raw.find(pattern, at + 1) < 0, "a probe value must occur exactly once"
    return at


# -------- Markers published between the ticks of a node: only while somebody listens, and only where there is room

ROOM, SMOOTH = 1.3, 10  # a message needs so much of its mean time, over so many messages
IDLE = 0.1  # [s] between looks whether somebody listens


class BetweenTicks:
    """Decides when the next message of a publisher is made, and remembers how long messages take.

    Attributes:
        took: how long each message took [s].
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self.took, self._next, self._cost = Samples(100), 0.0, 0.0

    def publish(self, left: float, rate: float, write: Callable[[], bytes]) -> None:
        """Publish what `write` makes, if it is time.

        Where ticks leave no room, a message that is a whole period late is made all the same.

        Args:
            left: time to the next tick [s]. rate: of the messages [Hz]; 0: none.
        """
        now = time.monotonic()
        if rate <= 0 or now < self._next:
            return
        if not self._publisher.get_subscription_count():
            self._next = now + IDLE
            return
        if left < ROOM * self._cost and now < self._next + 1.0 / rate:
            return
        self._next = max(self._next + 1.0 / rate, now)
        self._publisher.publish(write())
        took = time.monotonic() - now
        self.took.add(took)
        self._cost += (took - self._cost) / SMOOTH
