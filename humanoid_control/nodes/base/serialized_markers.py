"""MarkerArrays that repeat, as bytes: only the numbers that change are written to, or read from, a serialized message.

Converting seven markers between Python and the wire costs 0.5 ms each way, because a marker has some fifty fields. In a
stream of markers only stamps, poses, colours and points change. Their places in the bytes are found once, by
serializing a copy with values that occur nowhere else; after that a message costs some 20 us. Bytes that differ
anywhere else are read in full.
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

POSE, RGBA, XYZ = 7, 4, 3
PROBE = 0x5A5A0000
ADD, DELETE = (np.frombuffer(struct.pack("<i", a), dtype=np.uint8) for a in (Marker.ADD, Marker.DELETE))
ROOM, SMOOTH = 1.3, 10  # an idle message needs so much of its mean time, over so many messages
IDLE = 0.1  # [s] between two questions whether somebody listens


class MarkerLayout:
    """Places of everything that may change in the bytes of a MarkerArray of a given shape with M markers.

    Attributes:
        stamp: (M, 8) indices of the bytes of each stamp. action: (M, 4).
        pose: (M, 56) of x, y, z and quaternion x, y, z, w. color: (M, 16) of red, green, blue, alpha.
        points, colors: marker -> slice of all its points, and of their colours, where it has any.
    """

    def __init__(self, message: MarkerArray) -> None:
        """Find the places; the message is used up."""
        markers = message.markers
        for k, m in enumerate(markers):
            m.header.stamp, m.action = Time(sec=PROBE + k, nanosec=k + 1), -PROBE - k
            p, o = m.pose.position, m.pose.orientation
            p.x, p.y, p.z, o.x, o.y, o.z, o.w = _doubles(k, 0, POSE)
            m.color = ColorRGBA(**dict(zip("rgba", _floats(k, 0), strict=True)))
            if m.points:
                m.points[0] = Point(**dict(zip("xyz", _doubles(k, 1, XYZ), strict=True)))
            if m.colors:
                m.colors[0] = ColorRGBA(**dict(zip("rgba", _floats(k, 1), strict=True)))
        raw, every = serialize_message(message), range(len(markers))
        self.stamp = _places([_find(raw, struct.pack("<iI", PROBE + k, k + 1)) for k in every], 8)
        poses = [_find(raw, struct.pack("<7d", *_doubles(k, 0, POSE))) for k in every]
        self.pose = _places(poses, 8 * POSE)
        self.action = _places([_just_before(raw, at, struct.pack("<i", -PROBE - k)) for k, at in enumerate(poses)], 4)
        self.color = _places([_find(raw, struct.pack("<4f", *_floats(k, 0))) for k in every], 4 * RGBA)
        self.points, self.colors = {}, {}
        for k, m in enumerate(markers):
            if m.points:
                at = _find(raw, struct.pack("<3d", *_doubles(k, 1, XYZ)))
                self.points[k] = slice(at, at + 8 * XYZ * len(m.points))
            if m.colors:
                at = _find(raw, struct.pack("<4f", *_floats(k, 1)))
                self.colors[k] = slice(at, at + 4 * RGBA * len(m.colors))


class SerializedMarkers:
    """One MarkerArray whose shape never changes, as bytes that are ready for `Publisher.publish`."""

    def __init__(self, message: MarkerArray) -> None:
        self._layout = MarkerLayout(copy.deepcopy(message))
        self._bytes = np.frombuffer(serialize_message(message), dtype=np.uint8).copy()

    def set_stamp(self, stamp: Time) -> None:
        """The same stamp on every marker."""
        self._bytes[self._layout.stamp] = np.frombuffer(struct.pack("<iI", stamp.sec, stamp.nanosec), dtype=np.uint8)

    def set_positions(self, positions: np.ndarray) -> None:
        """Positions (M, 3) [m] of all markers."""
        self._bytes[self._layout.pose[:, : 8 * XYZ]] = _view(positions, "<f8", len(positions))

    def set_poses(self, first: int, poses: np.ndarray) -> None:
        """Poses (K, 7) of the markers from `first` on: x, y, z and quaternion x, y, z, w."""
        if len(poses):
            self._bytes[self._layout.pose[first : first + len(poses)]] = _view(poses, "<f8", len(poses))

    def set_colors(self, first: int, colors: np.ndarray) -> None:
        """Colours (K, 4) of the markers from `first` on: red, green, blue, alpha, 0 .. 1."""
        if len(colors):
            self._bytes[self._layout.color[first : first + len(colors)]] = _view(colors, "<f4", len(colors))

    def set_points(self, marker: int, points: np.ndarray, colors: np.ndarray | None = None) -> None:
        """All points (N, 3) [m] of a marker, and their colours (N, 4) where it has one for each."""
        self._bytes[self._layout.points[marker]] = _view(points, "<f8", 1)[0]
        if colors is not None:
            self._bytes[self._layout.colors[marker]] = _view(colors, "<f4", 1)[0]

    def show(self, marker: int, visible: bool) -> None:
        """Add a marker, or delete it where it is shown."""
        self._bytes[self._layout.action[marker]] = ADD if visible else DELETE

    def bytes(self) -> bytes:
        """The message."""
        return self._bytes.tobytes()


@dataclass(frozen=True)
class MarkerPoses:
    """Markers as arrays: names, poses (M, 7) x y z and quaternion x y z w, and the time of the first stamp [s]."""

    names: tuple[str, ...]
    poses: np.ndarray
    stamp: float


class _Shape:
    """A shape that was learnt from the bytes of a message: the places of its numbers, and the markers that count."""

    def __init__(self, message: MarkerArray, data: bytes, rows: list[int], names: tuple[str, ...]) -> None:
        """Learn it; the message is used up."""
        layout = MarkerLayout(message)
        self.stamp, self.pose = layout.stamp, layout.pose
        self.rows, self.names = np.array(rows, dtype=int), names
        template = np.frombuffer(data, dtype=np.uint8)
        constant = np.ones(len(template), dtype=bool)
        constant[self.stamp] = constant[self.pose] = False
        self._constant = np.flatnonzero(constant)
        self._values = template[self._constant]

    def fits(self, raw: np.ndarray) -> bool:
        """Test whether bytes have this shape."""
        return bool(np.array_equal(raw[self._constant], self._values))


class MarkerReader:
    """Names, poses and stamp of the markers to be added, read from serialized MarkerArrays.

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
        self._known: dict[int, _Shape] = {}  # by length of the message
        self._unknown_length = -1
        self.read_in_full = 0

    def read(self, data: bytes) -> MarkerPoses:
        """The contents of a message."""
        raw = np.frombuffer(data, dtype=np.uint8)
        shape = self._known.get(len(raw))
        if shape is None or not shape.fits(raw):
            return self._read_in_full(data)
        sec, nanosec = struct.unpack("<iI", raw[shape.stamp[0]].tobytes()) if len(shape.stamp) else (0, 0)
        return MarkerPoses(shape.names, raw[shape.pose].view("<f8")[shape.rows], sec + 1e-9 * nanosec)

    def _read_in_full(self, data: bytes) -> MarkerPoses:
        message = deserialize_message(data, MarkerArray)
        self.read_in_full += 1
        added = [k for k, m in enumerate(message.markers) if m.action == Marker.ADD]
        names = tuple(self._name_of(message.markers[k]) for k in added)
        poses = np.array([_numbers(message.markers[k]) for k in added], dtype=float).reshape(-1, POSE)
        first = message.markers[0].header.stamp if message.markers else Time()
        contents = MarkerPoses(names, poses, first.sec + 1e-9 * first.nanosec)
        if not self._known or self._unknown_length == len(data):
            if len(self._known) >= self._shapes:
                del self._known[next(iter(self._known))]
            self._known[len(data)] = _Shape(message, data, added, names)
        self._unknown_length = len(data)
        return contents


class IdlePublisher:
    """Publishes between the ticks of a node: only while somebody listens, and only where there is room.

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


def _numbers(m: Marker) -> tuple[float, ...]:
    p, o = m.pose.position, m.pose.orientation
    return p.x, p.y, p.z, o.x, o.y, o.z, o.w


def _view(values: np.ndarray, kind: str, rows: int) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=kind).view(np.uint8).reshape(rows, -1)


def _doubles(marker: int, place: int, count: int) -> list[float]:
    return [1.0e17 + 1.0e12 * marker + 1024.0 * (10 * place + i + 1) for i in range(count)]


def _floats(marker: int, place: int) -> list[float]:
    """Whole numbers that a 32-bit float holds exactly."""
    return [float(2**22 + n) for n in (marker // 4096, marker % 4096, place, 2**22)]


def _find(raw: bytes, pattern: bytes) -> int:
    at = raw.find(pattern)
    assert at >= 0 and raw.find(pattern, at + 1) < 0, "a probe value must occur exactly once"
    return at


def _just_before(raw: bytes, at: int, pattern: bytes) -> int:
    """Place of the 4 bytes of a pattern before `at`, or before the 4 bytes of padding that may stand there.

    Padding is not written: it holds anything, even the pattern itself from a message before.
    """
    for start in (at - 8, at - 4):
        if raw[start : start + 4] == pattern:
            return start
    raise AssertionError("the action must stand before the pose")


def _places(starts: list[int], size: int) -> np.ndarray:
    """(M, size) indices of the bytes of fields that start there."""
    return np.array(starts, dtype=int).reshape(-1, 1) + np.arange(size)
