"""A MarkerArray whose shape never changes, written as bytes: poses, colours, points and stamps are put in place.

A hundred markers as Python messages take some 10 ms to fill and to serialize; this takes some 0.1 ms.
"""

from __future__ import annotations

import copy
import struct

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point
from rclpy.serialization import serialize_message
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

POSE, RGBA, XYZ = 7, 4, 3
PROBE = 0x5A5A0000
ADD, DELETE = (np.frombuffer(struct.pack("<i", a), dtype=np.uint8) for a in (Marker.ADD, Marker.DELETE))


class MarkerTemplate:
    """The bytes of one MarkerArray, with the places of all that may change.

    The places are found once, by serializing a copy with values that occur nowhere else.
    """

    def __init__(self, message: MarkerArray) -> None:
        probe, count = copy.deepcopy(message), len(message.markers)
        for k, m in enumerate(probe.markers):
            m.header.stamp, m.action = Time(sec=PROBE + k, nanosec=k + 1), -PROBE - k
            p, o = m.pose.position, m.pose.orientation
            p.x, p.y, p.z, o.x, o.y, o.z, o.w = _doubles(k, 0, POSE)
            m.color = ColorRGBA(**dict(zip("rgba", _floats(k, 0), strict=True)))
            m.points = [Point(**dict(zip("xyz", _doubles(k, i + 3, XYZ), strict=True))) for i in range(len(m.points))]
            m.colors = [ColorRGBA(**dict(zip("rgba", _floats(k, i + 1), strict=True))) for i in range(len(m.colors))]
        raw = serialize_message(probe)
        self._bytes = np.frombuffer(serialize_message(message), dtype=np.uint8).copy()
        every = range(count)
        self._stamp = np.array([_find(raw, struct.pack("<iI", PROBE + k, k + 1)) for k in every])[:, None] + np.arange(
            8
        )
        self._action = np.array([_find(raw, struct.pack("<i", -PROBE - k)) for k in every])[:, None] + np.arange(4)
        pose = [_find(raw, struct.pack("<7d", *_doubles(k, 0, POSE))) for k in every]
        self._pose = np.array(pose)[:, None] + np.arange(8 * POSE)
        self._color = np.array([_find(raw, struct.pack("<4f", *_floats(k, 0))) for k in every])[:, None] + np.arange(16)
        self._points, self._colors = {}, {}
        for k, m in enumerate(probe.markers):
            if m.points:
                at = _find(raw, struct.pack("<3d", *_doubles(k, 3, XYZ)))
                self._points[k] = slice(at, at + 8 * XYZ * len(m.points))
            if m.colors:
                at = _find(raw, struct.pack("<4f", *_floats(k, 1)))
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


def _find(raw: bytes, pattern: bytes) -> int:
    at = raw.find(pattern)
    assert at >= 0 and raw.find(pattern, at + 1) < 0, "a probe value must occur exactly once"
    return at
