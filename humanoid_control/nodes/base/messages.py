"""Messages filled and read cheaply, the quality of service of every kind of topic, and stamps that grow."""

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

if TYPE_CHECKING:  # the supervisor and the recorder load no robot, nor the libraries for it
    from humanoid_control.robots import Robot

WORLD = "world"
PAUSED = "simulator/paused"  # whether simulated time stands still
GROUND_TRUTH = "ground_truth/odometry"  # of the simulator: nothing that controls a robot reads it
AHEAD = 50_000_000  # [ns] stamps that are farther ahead of the clock show that it was set back: no tick is so late
PROBE = 1.2345678912345e17  # found again among the bytes of a message
ENCODING, STAMP = 4, struct.Struct("<iI")  # bytes before a message, and the first of what has a header
SET_BACK = 1_000_000_000  # [ns] a clock that was set back by more is followed

# Fast streams of which only the newest counts. Publishers are reliable, so that any subscriber can have them, and keep
# a few messages for one that comes late to take them all, as a recorder does (with one, a busy machine lost half);
# subscribers take best effort, so that a lost message is not waited for.
STREAM_OUT = QoSProfile(depth=10, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)
STREAM_IN = QoSProfile(depth=1, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# A stream that is taken where it is needed, all that came since.
POLLED_IN = QoSProfile(depth=100, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.BEST_EFFORT)
# Slow messages that late subscribers must still get.
LATCHED = QoSProfile(
    depth=1,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
# Messages that should all arrive, also the last ones before a subscriber was there.
KEPT = QoSProfile(
    depth=20,
    history=HistoryPolicy.KEEP_LAST,
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)
# Messages that should all arrive.
EVENTS = QoSProfile(depth=20, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)
# A recording that is played faster than a busy subscriber reads.
PLAYED = QoSProfile(depth=2000, history=HistoryPolicy.KEEP_LAST, reliability=ReliabilityPolicy.RELIABLE)


def floats(values: np.ndarray) -> array:
    """A float64 sequence field from an array; three times cheaper than handing over the ndarray."""
    return array("d", np.ascontiguousarray(values, dtype=np.float64).tobytes())


def joint_state(names: Sequence[str]) -> JointStateMessage:
    """An empty message for the given joints."""
    return JointStateMessage(name=list(names))


def fill_joint_state(
    message: JointStateMessage,
    stamp: Time,
    position: np.ndarray,
    velocity: np.ndarray | None = None,
    effort: np.ndarray | None = None,
) -> JointStateMessage:
    """Set the stamp and the arrays of a message that is used again and again."""
    message.header.stamp = stamp
    message.position = floats(position)
    if velocity is not None:
        message.velocity = floats(velocity)
    if effort is not None:
        message.effort = floats(effort)
    return message


class SerializedJointState:
    """One JointState of the same joints again and again, as bytes that are ready for `Publisher.publish`.

    Setting and publishing it costs a third of what a message object costs.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Prepare, with all arrays; names: of the n joints."""
        kinds, n = ("position", "velocity", "effort"), len(names)
        probes = [PROBE * (k + 1) for k in range(len(kinds))]
        arrays = {kind: [probe] * n for kind, probe in zip(kinds, probes, strict=True)}
        self._bytes = bytearray(serialize_message(JointStateMessage(name=list(names), **arrays)))
        starts = [self._bytes.find(struct.pack("<d", probe)) for probe in probes]
        self._arrays = [np.frombuffer(self._bytes, "<f8", n, at) for at in starts]

    def fill(self, stamp: Time, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray) -> bytes:
        """The message with a stamp and arrays (n,)."""
        STAMP.pack_into(self._bytes, ENCODING, stamp.sec, stamp.nanosec)
        for place, values in zip(self._arrays, (position, velocity, effort), strict=True):
            place[:] = values
        return bytes(self._bytes)


def message_of(state: JointState, stamp: Time, message: JointStateMessage) -> JointStateMessage | None:
    """Positions and velocities of a record as a message.

    Args:
        state: NaN where a position is not known.
        stamp: of the message.
        message: for all joints of the record, used again and again; where some are not known a new one is made.

    Returns:
        The joints that are known; None where none is.
    """
    known = np.isfinite(state.q)
    if known.all():
        return fill_joint_state(message, stamp, state.q, state.v)
    if not known.any():
        return None
    part = joint_state([name for name, k in zip(state.names, known, strict=True) if k])
    return fill_joint_state(part, stamp, state.q[known], state.v[known])


def state_of(message: JointStateMessage) -> JointState:
    """A message as a record; NaN where it does not give a value for each name."""
    n = len(message.name)
    q, v, effort = (
        np.array(values, dtype=float) if len(values) == n else np.full(n, np.nan)
        for values in (message.position, message.velocity, message.effort)
    )
    return JointState(tuple(message.name), q, v, effort, seconds(message.header.stamp))


def malformed(message: JointStateMessage) -> str:
    """Reason for which the positions of a message cannot be read; empty where they can."""
    if len(message.position) != len(message.name):
        return f"{len(message.position)} positions for {len(message.name)} names: passed over"
    if twice := named_twice(message.name):
        return f"joint '{twice[:60]}' is named twice: passed over"
    return ""


class JointPositions:
    """The newest plausible position of each joint of a robot, from `JointState` messages that name them in any order.

    Attributes:
        values: (n,) in the robot's order [rad]; NaN until heard.
    """

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self._plausible = JointPlausibility(robot.joint_names, robot.lower, robot.upper, robot.velocity)
        self.forget()

    def forget(self) -> None:
        """Nothing is known any more."""
        self.values = np.full(self._robot.n, np.nan)
        self._plausible.forget()
        self._malformed = ""

    def take(self, message: JointStateMessage) -> tuple[np.ndarray, np.ndarray]:
        """Read a message; joints that it does not name, or not plausibly, keep their positions.

        Returns:
            Indices (k,) of the joints that it names, and what it says of their positions (k,) [rad]; none where it is
            malformed.
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
        """Words for what is wrong with the messages; empty where nothing is."""
        return self._malformed or self._plausible.problem(time.monotonic())

    @property
    def known(self) -> bool:
        """True once every joint has been heard of."""
        return bool(np.isfinite(self.values).all())


def target_markers(names: Sequence[str], frame: str = WORLD, radius: float = 0.025) -> MarkerArray:
    """A MarkerArray with one ball a target: ns is the target's name."""
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
    """A LINE_LIST marker: one message for a whole stick figure."""
    m = Marker(ns=ns, id=0, type=Marker.LINE_LIST, action=Marker.ADD)
    m.header.frame_id = frame
    m.color = ColorRGBA(r=color[0], g=color[1], b=color[2], a=1.0)
    m.scale.x = width
    m.pose.orientation.w = 1.0
    return m


def points_of(positions: np.ndarray) -> list[Point]:
    """Positions (N, 3) as geometry_msgs points."""
    return [Point(x=x, y=y, z=z) for x, y, z in positions.tolist()]


def seconds(stamp: Time) -> float:
    """A stamp in seconds."""
    return stamp.sec + 1e-9 * stamp.nanosec


def age_of(stamp: Time, clock: Any) -> float:
    """Age of a stamp by a node's clock [s]; negative: ahead of it; 0: the stamp is zero, which stands for now."""
    sent = seconds(stamp)
    return 1e-9 * clock.now().nanoseconds - sent if sent else 0.0


def stamp_of(nanoseconds: int) -> Time:
    """Nanoseconds as a stamp."""
    return Time(sec=nanoseconds // 10**9, nanosec=nanoseconds % 10**9)


def diagnostic_array(
    statuses: Mapping[str, tuple[int, str, Mapping[str, Any]]], robot: str, stamp: Time
) -> DiagnosticArray:
    """Diagnostics of a robot's parts: level, message and values by name."""
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
    """Stamps of which each is later than the one before, whatever the clock and the load do.

    One that would not be comes 1 ns after the last. A clock that was set back by more than a second is followed.
    """

    def __init__(self) -> None:
        self._last: int | None = None

    def next(self, now: int) -> int:
        """The stamp for this time of the clock, both [ns]."""
        if self._last is not None and self._last - now < SET_BACK:
            now = max(now, self._last + 1)
        self._last = now
        return now


class PeriodicStamps:
    """Stamps at whole periods after the first one: never two closer than a period, however late the ticks are.

    Late ticks take later places on the grid. Where the first tick was late the stamps are ahead of the present by as
    much; where they are ahead by more, the clock was set back, and the grid begins anew.
    """

    def __init__(self, period: int) -> None:
        """A grid with this period [ns]."""
        self.period = period
        self.restart()

    def restart(self) -> None:
        """The next stamp is the present."""
        self._last: int | None = None

    def next(self, now: int) -> Time:
        """The stamp of a message that is published now [ns]."""
        if self._last is None or self._last - now > max(AHEAD, 2 * self.period):
            self._last = now
        else:
            self._last += self.period * max(1, (now - self._last) // self.period)
        return stamp_of(self._last)
