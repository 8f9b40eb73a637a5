"""Force plates of the node `human_motion`: topics `plates/plate1` and so on."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from geometry_msgs.msg import WrenchStamped
from rclpy.serialization import deserialize_message

from humanoid_control.errors import ConfigError
from humanoid_control.human.live.live_forces import PlateWrench
from humanoid_control.nodes.base.serialized_markers import HEADER, LITTLE_ENDIAN
from humanoid_control.nodes.base.tick_node import TickNode

try:  # not in the ROS wheels; without it, the parameter `plate_frames` defines frames
    import tf2_ros
    from rclpy.time import Time
except ImportError:
    tf2_ros = None

_LENGTH = struct.Struct("<I")
SILENCE = 0.1  # [s] after which the load of a plate is unknown
LARGEST = 1e5  # bound of forces [N] and torques [N m]


def parse_frames(rows: list[str]) -> dict[str, pin.SE3]:
    """Parse world poses `name=x,y,z` or `name=x,y,z,qx,qy,qz,qw` [m].

    Raises:
        ConfigError: if a row is malformed.
    """
    out = {}
    for row in rows:
        name, equals, text = row.partition("=")
        try:
            numbers = [float(v) for v in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) == 3:
            numbers += [0.0, 0.0, 0.0, 1.0]
        good = equals and name.strip() and len(numbers) == 7 and np.isfinite(numbers).all()
        if not good or abs(np.linalg.norm(numbers[3:]) - 1) > 0.01:
            raise ConfigError(
                f"plate_frames contains '{row}': write name=x,y,z or name=x,y,z,qx,qy,qz,qw, in metres, with a "
                "quaternion of length 1"
            )
        numbers[3:] = (np.array(numbers[3:]) / np.linalg.norm(numbers[3:])).tolist()
        out[name.strip()] = pin.XYZQUATToSE3(np.array(numbers))
    return out


def read_wrench(data: bytes) -> tuple[str, np.ndarray]:
    """Return frame, and force and torque (6,), of a serialized WrenchStamped.

    Raises:
        ConfigError: if the bytes are not a WrenchStamped.
    """
    if data[:2] != LITTLE_ENDIAN:
        m = deserialize_message(data, WrenchStamped)
        f, t = m.wrench.force, m.wrench.torque
        return m.header.frame_id, np.array([f.x, f.y, f.z, t.x, t.y, t.z])
    try:
        (length,) = _LENGTH.unpack_from(data, HEADER + 8)  # after the stamp
        end = HEADER + 12 + length
        begin = end + (HEADER - end) % 8  # CDR aligns numbers to their size, counted after the header
        numbers = np.frombuffer(data, dtype="<f8", count=6, offset=begin)
    except (struct.error, ValueError):
        raise ConfigError(f"{len(data)} bytes that are not a WrenchStamped: ignored") from None
    return data[HEADER + 12 : end - 1].decode("utf-8", "replace"), numbers


class _Place(NamedTuple):
    """Placement of a plate in person axes.

    Attributes:
        carry: matrix (6, 6) that moves wrenches to the ground origin.
        normal: surface normal (3,) towards the person.
        at: point of the surface (3,) [m].
    """

    carry: np.ndarray
    normal: np.ndarray
    at: np.ndarray

    @classmethod
    def of(cls, X: pin.SE3, turn: np.ndarray) -> _Place:
        """Return the placement of a world pose; `turn` (3, 3): person axes to world."""
        R, at = turn.T @ X.rotation, turn.T @ X.translation
        carry = np.zeros((6, 6))
        carry[:3, :3] = carry[3:, 3:] = R
        carry[3:, :3] = pin.skew(at) @ R
        return cls(carry, R[:, 2] if X.rotation[2, 2] >= 0 else -R[:, 2], at)


@dataclass
class _Plate:
    """Readings of one plate since the last frame."""

    total: np.ndarray
    count: int = 0
    last: np.ndarray | None = None
    frame: str = ""
    heard: float = float("-inf")
    nonsense: float = float("-inf")  # time of the last rejected message
    placed: tuple[pin.SE3, np.ndarray, _Place] | None = None  # for this pose and these person axes


class PlateInput:
    """Newest forces of all plates, averaged over the messages since the last frame."""

    def __init__(self, node: TickNode, count: int, frames: dict[str, pin.SE3], world: str) -> None:
        """Subscribe.

        Args:
            frames: known poses in the world.
        """
        self._world, self._frames = world, {world: pin.SE3.Identity(), "": pin.SE3.Identity(), **frames}
        self.problems: dict[str, str] = {}
        self._plates = {f"plates/plate{k + 1}": _Plate(np.zeros(6)) for k in range(count)}
        self._polls: list[Callable[[], None]] = []
        for topic in self._plates:
            self._polls.append(node.poll(WrenchStamped, topic, lambda data, topic=topic: self._take(topic, data)))
        self._buffer: Any = None
        if tf2_ros is not None and count:
            self._buffer = tf2_ros.Buffer()
            self._listener = tf2_ros.TransformListener(self._buffer, node)

    def _take(self, topic: str, data: bytes) -> None:
        plate, (frame, wrench) = self._plates[topic], read_wrench(data)
        if not (np.abs(wrench) < LARGEST).all():
            plate.nonsense = time.monotonic()
            return
        if frame != plate.frame:
            plate.frame, plate.total, plate.count = frame, np.zeros(6), 0
        plate.total += wrench
        plate.count += 1
        plate.last, plate.heard = wrench, time.monotonic()

    def poll(self) -> None:
        for poll in self._polls:
            poll()

    def take(self, now: float, turn: np.ndarray) -> tuple[dict[str, PlateWrench], bool]:
        """Return plate wrenches in person axes, and whether all plates were received and located.

        Args:
            now: monotonic time [s].
            turn: rotation (3, 3) from person axes to the world.
        """
        self.poll()
        out, all_heard = {}, True
        self.problems = {}
        for topic, plate in self._plates.items():
            if plate.last is None or now - plate.heard > SILENCE:
                wrong = now - plate.nonsense <= SILENCE
                why = "sends non-numeric or implausible forces" if wrong else "is silent"
                self.problems[topic] = f"{topic} {why}: no moments"
                all_heard = False
                continue
            X = self._pose(plate.frame)
            if X is None:
                self.problems[topic] = (
                    f"{topic} is in the frame '{plate.frame[:60]}', whose pose is unknown: no moments; publish its "
                    "transform, or add it to plate_frames"
                )
                all_heard = False
                continue
            wrench = plate.total / plate.count if plate.count > 1 else plate.last
            plate.total, plate.count = np.zeros(6), 0
            if plate.placed is None or plate.placed[0] is not X or plate.placed[1] is not turn:
                plate.placed = X, turn, _Place.of(X, turn)
            place = plate.placed[2]
            out[topic] = PlateWrench(place.carry @ wrench, place.normal, place.at)
        return out, all_heard

    def _pose(self, frame: str) -> pin.SE3 | None:
        if frame in self._frames:
            return self._frames[frame]
        if self._buffer is None:
            return None
        try:
            t = self._buffer.lookup_transform(self._world, frame, Time()).transform
        except Exception:  # tf2 exceptions have no common base class
            return None
        numbers = [t.translation.x, t.translation.y, t.translation.z]
        numbers += [t.rotation.x, t.rotation.y, t.rotation.z, t.rotation.w]
        if not np.isfinite(numbers).all() or abs(np.linalg.norm(numbers[3:]) - 1) > 0.1:
            return None
        return pin.XYZQUATToSE3(np.array(numbers))
