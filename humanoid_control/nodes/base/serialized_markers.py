"""Serialized MarkerArrays, written and read in place.

Only stamps, poses, colours and points change in a marker stream. With known byte offsets, a message takes some 20 us
instead of 0.5 ms.
"""

from __future__ import annotations

import copy
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from rclpy.serialization import deserialize_message, serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.statistics import SampleWindow

POSE, RGBA, XYZ = 7, 4, 3
PROBE = 0x5A5A0000
ADD, DELETE = (np.frombuffer(struct.pack("<i", a), dtype=np.uint8) for a in (Marker.ADD, Marker.DELETE))
ROOM, SMOOTH = 1.3, 10  # free time needed, in multiples of the mean cost; messages in that mean
IDLE = 0.1  # [s] between checks for subscribers
HEADER, LITTLE_ENDIAN = 4, b"\x00\x01"  # bytes before a message, and the first two of them
MOST_MARKERS = 256  # markers read from a message, which bounds its time to about 2 ms
LEARNT = 32768  # [bytes] maximum message size whose layout is remembered
_COUNT, _ACTION, _STAMP = struct.Struct("<I"), struct.Struct("<i"), struct.Struct("<iI")


class MarkerMessageLayout:
    """Byte indices of the variable fields of a MarkerArray with M markers.

    Attributes:
        stamp: each stamp (M, 8).
        action: each action (M, 4).
        pose: x, y, z and quaternion x, y, z, w (M, 56).
        color: red, green, blue, alpha (M, 16).
        points: marker -> slice of its points, if any.
        colors: marker -> slice of its point colours, if any.
    """

    def __init__(self, message: MarkerArray) -> None:
        """Find the offsets by probe values, which overwrite the message."""
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
    """MarkerArray of constant shape as bytes for `Publisher.publish`."""

    def __init__(self, message: MarkerArray) -> None:
        self._layout = MarkerMessageLayout(copy.deepcopy(message))
        self._bytes = np.frombuffer(serialize_message(message), dtype=np.uint8).copy()

    def set_stamp(self, stamp: Time) -> None:
        self._bytes[self._layout.stamp] = np.frombuffer(struct.pack("<iI", stamp.sec, stamp.nanosec), dtype=np.uint8)

    def set_positions(self, positions: np.ndarray) -> None:
        """Set the positions (M, 3) [m] of all markers."""
        self._bytes[self._layout.pose[:, : 8 * XYZ]] = _view(positions, "<f8", len(positions))

    def set_poses(self, first: int, poses: np.ndarray) -> None:
        """Set poses (K, 7) of markers from `first`: x, y, z and quaternion x, y, z, w."""
        if len(poses):
            self._bytes[self._layout.pose[first : first + len(poses)]] = _view(poses, "<f8", len(poses))

    def set_colors(self, first: int, colors: np.ndarray) -> None:
        """Set colours (K, 4) of markers from `first`: red, green, blue, alpha, 0 .. 1."""
        if len(colors):
            self._bytes[self._layout.color[first : first + len(colors)]] = _view(colors, "<f4", len(colors))

    def set_points(self, marker: int, points: np.ndarray, colors: np.ndarray | None = None) -> None:
        """Set all points (N, 3) [m] of a marker, and optionally colours (N, 4)."""
        self._bytes[self._layout.points[marker]] = _view(points, "<f8", 1)[0]
        if colors is not None:
            self._bytes[self._layout.colors[marker]] = _view(colors, "<f4", 1)[0]

    def show(self, marker: int, visible: bool) -> None:
        self._bytes[self._layout.action[marker]] = ADD if visible else DELETE

    def bytes(self) -> bytes:
        return self._bytes.tobytes()


@dataclass(frozen=True)
class MarkerPoses:
    """Markers as arrays.

    Attributes:
        poses: x, y, z and quaternion x, y, z, w (M, 7).
        stamp: stamp of the first marker [s].
        frames: frames of the poses (M).
        passed_over: number of markers beyond the limit.
    """

    names: tuple[str, ...]
    poses: np.ndarray
    stamp: float
    frames: tuple[str, ...] = ()
    passed_over: int = 0


class _Shape:
    """Layout of a message, with its added markers."""

    def __init__(self, data: bytes, name_of: Callable[[str, str], str]) -> None:
        """Find the offsets of up to `MOST_MARKERS` markers.

        Raises:
            ConfigError: if the bytes are not a MarkerArray.
        """
        try:
            count, places = _marker_places(memoryview(data)[HEADER:])
        except (struct.error, IndexError):
            raise ConfigError(f"{len(data)} bytes that are not a MarkerArray: ignored") from None
        added = [k for k, m in enumerate(places) if m.action == Marker.ADD]
        self.names = tuple(name_of(places[k].ns, places[k].text) for k in added)
        self.frames, self.passed_over = tuple(places[k].frame for k in added), count - len(places)
        self._stamp, self._pose = _places([m.stamp for m in places], 8), _places([m.pose for m in places], 8 * POSE)
        first = np.array([places[k].pose - HEADER for k in added], dtype=int).reshape(-1, 1) // 8
        self._doubles = first + np.arange(POSE)  # the numbers start at multiples of 8 after the header
        self._mask = self._values = np.zeros(0, dtype=np.int64)
        self._end, self._rest = 0, b""

    def learn(self, data: bytes) -> None:
        """Prepare `fits`: compare 8-byte words, with the numbers masked."""
        mask = np.full(len(data), 0xFF, dtype=np.uint8)
        mask[self._stamp] = mask[self._pose] = 0
        words = len(data) // 8
        self._mask, self._end = mask[: 8 * words].view(np.int64), 8 * words
        self._values = np.frombuffer(data, np.int64, words) & self._mask
        self._rest = data[self._end :]  # other fields follow the last pose

    def fits(self, data: bytes) -> bool:
        same = np.frombuffer(data, np.int64, len(self._mask)) & self._mask
        return bool((same == self._values).all()) and data[self._end :] == self._rest

    def read(self, data: bytes) -> MarkerPoses:
        sec, nanosec = _STAMP.unpack_from(data, int(self._stamp[0, 0])) if len(self._stamp) else (0, 0)
        poses = np.frombuffer(data, "<f8", (len(data) - HEADER) // 8, HEADER)[self._doubles]
        return MarkerPoses(self.names, poses, sec + 1e-9 * nanosec, self.frames, self.passed_over)


class MarkerReader:
    """Reader of added markers in serialized MarkerArrays; known layouts are reused.

    Attributes:
        read_in_full: number of messages with an unknown layout.
    """

    def __init__(self, name_of: Callable[[str, str], str] = lambda ns, text: ns, shapes: int = 16) -> None:
        """Create a reader.

        Args:
            name_of: returns the name of a marker from its ns and its text.
            shapes: number of layouts to remember.
        """
        self._name_of, self._shapes = name_of, shapes
        self._known: dict[int, _Shape] = {}  # by message length
        self.read_in_full = 0

    def read(self, data: bytes) -> MarkerPoses:
        """Read a message.

        Raises:
            ConfigError: if the bytes are not a MarkerArray.
        """
        if data[:2] != LITTLE_ENDIAN:
            data = _little_endian(data)
        shape = self._known.get(len(data))
        if shape is None or not shape.fits(data):
            shape = _Shape(data, self._name_of)
            self.read_in_full += 1
            if len(data) <= LEARNT:
                shape.learn(data)
                if len(self._known) >= self._shapes and len(data) not in self._known:
                    del self._known[next(iter(self._known))]
                self._known[len(data)] = shape
        return shape.read(data)


# -------- Offsets in the bytes of a MarkerArray (CDR aligns every number to its size, after the header)


class _MarkerPlace(NamedTuple):
    """Offsets and decoded fields of a marker."""

    stamp: int
    pose: int
    action: int
    frame: str
    ns: str
    text: str


def _marker_places(body: memoryview) -> tuple[int, list[_MarkerPlace]]:
    """Return the number of markers, and offsets of the first `MOST_MARKERS`."""
    (count,) = _COUNT.unpack_from(body, 0)
    at, places = 4, []
    for _ in range(min(count, MOST_MARKERS)):
        stamp = _aligned(at, 4)
        frame, at = _text(body, stamp + 8)
        ns, at = _text(body, at)
        at = _aligned(at, 4) + 8  # id, type
        (action,) = _ACTION.unpack_from(body, at)
        pose = _aligned(at + 4, 8)
        n, at = _sequence(body, pose + 8 * POSE + 8 * XYZ + 4 * RGBA + 8 + 1)  # scale, color, lifetime, frame_locked
        at = _aligned(at, 8) + 8 * XYZ * n if n else at  # points
        n, at = _sequence(body, at)
        at = _after_text(body, at + 4 * RGBA * n)  # colors, texture_resource
        at = _after_text(body, _after_text(body, _aligned(at, 4) + 8))  # texture: stamp, frame, format
        n, at = _sequence(body, at)
        n, at = _sequence(body, at + n)
        text, at = _text(body, at + 8 * n)  # uv_coordinates
        n, at = _sequence(body, _after_text(body, _after_text(body, at)))  # mesh_resource, mesh_file
        at += n + 1
        if at > len(body):
            raise IndexError
        places.append(_MarkerPlace(stamp + HEADER, pose + HEADER, action, frame, ns, text))
    return count, places


def _aligned(at: int, size: int) -> int:
    return (at + size - 1) & -size


def _sequence(body: memoryview, at: int) -> tuple[int, int]:
    """Return length and unaligned first offset of a sequence."""
    at = _aligned(at, 4)
    return _COUNT.unpack_from(body, at)[0], at + 4


def _after_text(body: memoryview, at: int) -> int:
    n, at = _sequence(body, at)
    return at + n


def _text(body: memoryview, at: int) -> tuple[str, int]:
    """Return a zero-terminated string and its end."""
    n, at = _sequence(body, at)
    return str(body[at : at + max(n - 1, 0)], "utf-8", "replace"), at + n


def _little_endian(data: bytes) -> bytes:
    """Convert a message of another byte order."""
    if len(data) > LEARNT:
        raise ConfigError(f"a MarkerArray of {len(data)} bytes in another byte order: ignored")
    return serialize_message(deserialize_message(data, MarkerArray))


class IdlePublisher:
    """Publisher for free time between ticks.

    Attributes:
        took: cost of each message [s].
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self.took, self._next, self._cost = SampleWindow(100), 0.0, 0.0

    def publish(self, left: float, rate: float, write: Callable[[], bytes]) -> None:
        """Publish if due, subscribed and short enough; after a full period of delay, publish anyway.

        Args:
            left: time to the next tick [s].
            rate: rate of the messages [Hz]; 0: none.
            write: returns the serialized message.
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


def _view(values: np.ndarray, kind: str, rows: int) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=kind).view(np.uint8).reshape(rows, -1)


def _doubles(marker: int, place: int, count: int) -> list[float]:
    return [1.0e17 + 1.0e12 * marker + 1024.0 * (10 * place + i + 1) for i in range(count)]


def _floats(marker: int, place: int) -> list[float]:
    return [float(2**22 + n) for n in (marker // 4096, marker % 4096, place, 2**22)]


def _find(raw: bytes, pattern: bytes) -> int:
    at = raw.find(pattern)
    assert at >= 0 and raw.find(pattern, at + 1) < 0, "a probe value must occur exactly once"
    return at


def _just_before(raw: bytes, at: int, pattern: bytes) -> int:
    """Return the offset of 4 bytes before `at`, possibly followed by 4 bytes of padding.

    Padding is uninitialised and may repeat the pattern.
    """
    for start in (at - 8, at - 4):
        if raw[start : start + 4] == pattern:
            return start
    raise AssertionError("the action must precede the pose")


def _places(starts: list[int], size: int) -> np.ndarray:
    return np.array(starts, dtype=int).reshape(-1, 1) + np.arange(size)
