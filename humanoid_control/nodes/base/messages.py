"""Fast messages, quality-of-service profiles, increasing stamps."""

from __future__ import annotations

import struct
import time
from array import array
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Point, Pose, Quaternion, Vector3
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState as JointStateMessage
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.estimation import JointPlausibility, named_twice
from humanoid_control.kinematics.joint_state import JointState

if TYPE_CHECKING:  # the supervisor and the recorder must not load the robot libraries
    from humanoid_control.robots import Robot

WORLD = "world"
PAUSED = "simulator/paused"  # topic: whether simulated time is paused
GROUND_TRUTH = "ground_truth/odometry"  # topic of the simulator; controllers must not use it
AHEAD = 50_000_000  # [ns] lead of a stamp that shows that the clock was set back
PROBE = 1.2345678912345e17  # unique value, found again in the bytes of a message
ENCODING, STAMP = 4, struct.Struct("<iI")  # header bytes of a message; format of a stamp, the first field
SET_BACK = 1_000_000_000  # [ns] larger backward steps of the clock are followed

# Fast streams of which only the newest message counts. Publishers are reliable, so any subscriber matches, and keep a
# few messages for slow recorders. Subscribers use best effort, so lost messages cause no delay.
STREAM_OUT = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)
STREAM_IN = QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# Polled streams: all messages since the last call.
POLLED_IN = QoSProfile(depth=100, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# Slow messages, also delivered to late subscribers.
LATCHED = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
# Messages that should all arrive, with history for late subscribers.
KEPT = QoSProfile(
    depth=20,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
# Messages that should all arrive.
EVENTS = QoSProfile(depth=20, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)
# Recordings that play faster than a busy subscriber reads.
PLAYED = QoSProfile(depth=2000, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)


def floats(values: np.ndarray) -> array:
    """Return a float64 sequence field, three times faster than from an ndarray."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def joint_state(names: Sequence[str]) -> JointStateMessage:
    return JointStateMessage(name=list(names))


def fill_joint_state(
    message: JointStateMessage,
    stamp: Time,
    position: np.ndarray,
    velocity: np.ndarray | None = None,
    effort: np.ndarray | None = None,
) -> JointStateMessage:
    """Fill and return a reused message."""
    message.header.stamp = stamp
    message.position = floats(position)
    if velocity is not None:
        message.velocity = floats(velocity)
    if effort is not None:
        message.effort = floats(effort)
    return message


class SerializedJointState:
    """JointState of fixed joints as bytes for `Publisher.publish`."""

    def __init__(self, names: Sequence[str]) -> None:
        kinds, n = ("position", "velocity", "effort"), len(names)
        probes = [PROBE * (k + 1) for k in range(len(kinds))]
        arrays = {kind: [probe] * n for kind, probe in zip(kinds, probes, strict=True)}
        self._bytes = bytearray(serialize_message(JointStateMessage(name=list(names), **arrays)))
        starts = [self._bytes.find(struct.pack("<d", probe)) for probe in probes]
        self._arrays = [np.frombuffer(self._bytes, "<f8", n, at) for at in starts]

    def fill(self, stamp: Time, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray) -> bytes:
        """Return the serialized message with a stamp and arrays (n,)."""
        STAMP.pack_into(self._bytes, ENCODING, stamp.sec, stamp.nanosec)
        for place, values in zip(self._arrays, (position, velocity, effort), strict=True):
            place[:] = values
        return bytes(self._bytes)


def message_of(state: JointState, stamp: Time, message: JointStateMessage) -> JointStateMessage | None:
    """Return the known joints of a record as a message.

    Args:
        state: record; NaN where a position is unknown.
        message: reused message of all joints; a new one is created if some are unknown.

    Returns:
        The message, or None if no joint is known.
    """
    known = np.isfinite(state.q)
    if known.all():
        return fill_joint_state(message, stamp, state.q, state.v)
    if not known.any():
        return None
    part = joint_state([name for name, k in zip(state.names, known, strict=True) if k])
    return fill_joint_state(part, stamp, state.q[known], state.v[known])


def state_of(message: JointStateMessage) -> JointState:
    """Return a message as a record; missing fields are NaN."""
    n = len(message.name)
    q, v, effort = (
        np.array(values, dtype=float) if len(values) == n else np.full(n, np.nan)
        for values in (message.position, message.velocity, message.effort)
    )
    return JointState(tuple(message.name), q, v, effort, seconds(message.header.stamp))


def malformed(message: JointStateMessage) -> str:
    """Return why positions of a message are unreadable; empty: readable."""
    if len(message.position) != len(message.name):
        return f"{len(message.position)} positions for {len(message.name)} names: ignored"
    if twice := named_twice(message.name):
        return f"joint '{twice[:60]}' is named twice: ignored"
    return ""


class JointPositions:
    """Newest plausible joint positions from messages.

    Attributes:
        values: positions (n,) in robot order [rad]; NaN until received.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self._plausible = JointPlausibility(robot.joint_names, robot.lower, robot.upper, robot.velocity)
        self.reset()

    def reset(self) -> None:
        self.values = np.full(self._robot.n, np.nan)
        self._plausible.reset()
        self._malformed = ""

    def take(self, message: JointStateMessage) -> tuple[np.ndarray, np.ndarray]:
        """Read a message; implausible values are skipped.

        Returns:
            Indices (k,) and positions (k,) [rad] of the named joints; empty if malformed.
        """
        self._malformed = malformed(message)
        if self._malformed:
            return np.zeros(0, int), np.zeros(0)
        if message.name != self._order[0]:
            self._order = (list(message.name), *self._robot.order_of(message.name))
        _, places, joints = self._order
        q = np.asarray(message.position, dtype=float)[places]
        use = self._plausible.check(joints, q, time.monotonic())
        self.values[joints[use]] = q[use]
        return joints, q

    @property
    def problem(self) -> str:
        """Fault of the messages; empty: none."""
        return self._malformed or self._plausible.problem(time.monotonic())

    @property
    def known(self) -> bool:
        """True once every joint was received."""
        return bool(np.isfinite(self.values).all())


def target_markers(names: Sequence[str], frame: str = WORLD, radius: float = 0.025) -> MarkerArray:
    """Return a MarkerArray with one ball per target, named by ns."""
    color = ColorRGBA(r=1.0, g=0.45, b=0.1, a=0.9)
    markers = []
    for k, name in enumerate(names):
        m = Marker(ns=name, id=k, type=Marker.SPHERE, action=Marker.ADD, color=color)
        m.header.frame_id = frame
        m.scale = Vector3(x=2 * radius, y=2 * radius, z=2 * radius)
        m.pose = Pose(orientation=Quaternion(w=1.0))
        markers.append(m)
    return MarkerArray(markers=markers)


def segments_marker(ns: str, color: tuple[float, float, float], width: float, frame: str = WORLD) -> Marker:
    m = Marker(ns=ns, id=0, type=Marker.LINE_LIST, action=Marker.ADD)
    m.header.frame_id = frame
    m.color = ColorRGBA(r=color[0], g=color[1], b=color[2], a=1.0)
    m.scale.x = width
    m.pose.orientation.w = 1.0
    return m


def points_of(positions: np.ndarray) -> list[Point]:
    return [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]


def seconds(stamp: Time) -> float:
    return stamp.sec + 1e-9 * stamp.nanosec


def age_of(stamp: Time, clock: Any) -> float:
    """Return the age of a stamp [s]; a zero stamp means now."""
    sent = seconds(stamp)
    return 1e-9 * clock.now().nanoseconds - sent if sent else 0.0


def stamp_of(nanoseconds: int) -> Time:
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


def diagnostic_array(
    statuses: Mapping[str, tuple[int, str, Mapping[str, Any]]], robot: str, stamp: Time
) -> DiagnosticArray:
    """Return diagnostics from level, message and values by name."""
    out = DiagnosticArray(
        status=[
            DiagnosticStatus(
                level=bytes([int(level)]),
                name=name,
                message=text,
                hardware_id=robot,
                values=[KeyValue(key=k, value=str(v)) for k, v in values.items()],
            )
            for name, (level, text, values) in statuses.items()
        ]
    )
    out.header.stamp = stamp
    return out


class RisingStamps:
    """Increasing stamps; clocks set back by over a second are followed."""

    def __init__(self) -> None:
        self._last: int | None = None

    def next(self, now: int) -> int:
        """Return the stamp at clock time `now`, both [ns]."""
        if self._last is not None and self._last - now < SET_BACK:
            now = max(now, self._last + 1)
        self._last = now
        return now


class PeriodicStamps:
    """Stamps on a grid of whole periods [ns].

    Late ticks use later grid points. If stamps lead the clock too far, it was set back, and the grid restarts.
    """

    def __init__(self, period: int) -> None:
        self.period = period
        self.restart()

    def restart(self) -> None:
        self._last: int | None = None

    def next(self, now: int) -> Time:
        """Return the stamp of a message published at `now` [ns]."""
        if self._last is None or self._last - now > max(AHEAD, 2 * self.period):
            self._last = now
        else:
            self._last += self.period * max(1, (now - self._last) // self.period)
        return stamp_of(self._last)
