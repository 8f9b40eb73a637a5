"""Joint states and IMU readings that wait as bytes until a tick needs them.

A driver publishes several readings per step of a slow controller. Each is checked against the previous one, so none may
be skipped, but deserialising and checking one by one costs more than the step itself.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState

from humanoid_control.estimation import named_twice
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.base.messages import ENCODING, STAMP
from humanoid_control.nodes.walking import sensors as limits
from humanoid_control.nodes.walking.sensors import IMU, JOINTS, Sensors
from humanoid_control.robots import Robot

LITTLE_ENDIAN = b"\x00\x01"
LENGTH, NUMBER = struct.Struct("<I"), 8  # number of elements of a sequence; bytes of a float64
BEGIN = ENCODING + STAMP.size  # place of the frame
# orientation, angular velocity and linear acceleration, each followed by a covariance of 9; -1 marks unknown ones
IMU_NUMBERS, COVARIANCES = 37, [4, 16, 28]
MOST_WAITING = 1000  # messages; ticks take them long before


class SerializedSensors(Sensors):
    """Sensors without force sensors, which check the waiting messages in one pass.

    Only if all of them are faultless, the last ones become the newest readings. Otherwise each is taken as by
    `Sensors`, in order of arrival, with its reports.
    """

    def __init__(self, robot: Robot, health: Health, local_frame: Callable[[str], str] = str) -> None:
        self._layout: _JointLayout | None = None
        super().__init__(robot, (), health, local_frame)

    def reset(self) -> None:
        super().reset()
        self._waiting: deque[tuple[str, bytes]] = deque(maxlen=MOST_WAITING)
        self._newest: dict[str, int] = {}

    def add(self, key: str, data: bytes) -> None:
        """Let a serialized message wait; `key` is JOINTS or IMU."""
        self._waiting.append((key, data))
        self._newest[key] = _stamp(data)

    @property
    def waiting_instant(self) -> int | None:
        """Stamp shared by the newest messages [ns], which may be faulty; None where stamps differ."""
        joints = self._newest.get(JOINTS)
        return joints if joints is not None and joints == self._newest.get(IMU) else None

    def take(self) -> None:
        """Take all waiting messages."""
        waiting = list(self._waiting)
        self._waiting.clear()
        joints, imu = ([data for k, data in waiting if k == key] for key in (JOINTS, IMU))
        accept_joints, accept_imu = self._checked_joints(joints), self._checked_imu(imu)
        if accept_joints is not None and accept_imu is not None:
            accept_joints()
            accept_imu()
            return
        for key, data in waiting:
            if key == JOINTS:
                message = deserialize_message(data, JointState)
                self.on_joints(message)
                self._layout = _JointLayout.of(data, message)
            else:
                self.on_imu(deserialize_message(data, Imu))

    def _checked_joints(self, messages: Sequence[bytes]) -> Callable[[], None] | None:
        """Return a function that accepts joint states, or None if they need the checks of each."""
        layout, (names, places, own) = self._layout, self._order
        if not messages:
            return _nothing
        if layout is None or not len(own) or JOINTS not in self._stamps:
            return None
        rows = _rows(messages, layout.size)
        if rows is None or (rows[:, layout.fixed] != layout.values).any():
            return None
        q, v = (_numbers(rows, at, len(names))[:, places] for at in (layout.position, layout.velocity))
        # comparisons with values that are not numbers are false, which also holds for a joint without reading
        fastest, turned = self.robot.velocity[own], self._turns.counted(own, q)
        if turned is None or not (np.abs(v) <= np.minimum(limits.FASTEST * fastest, limits.IMPOSSIBLE)).all():
            return None
        stamps = np.array([self._stamps[JOINTS], *map(_stamp, messages)])
        reach = limits.LEAPT + fastest * (1e-9 * np.maximum(np.diff(stamps), 0))[:, None]
        if not (np.abs(np.diff(turned, axis=0, prepend=self._q[None, own])) <= reach).all():
            return None

        def accept() -> None:
            self._q[own], _ = self._turns.unwrap(own, q[-1])
            self._v[own] = v[-1]
            self._accepted(JOINTS, stamps)

        return accept

    def _checked_imu(self, messages: Sequence[bytes]) -> Callable[[], None] | None:
        """Return a function that accepts IMU readings, or None if they need the checks of each."""
        before = self._imu
        if not messages:
            return _nothing
        if before is None or IMU not in self._stamps or (numbers := self._imu_numbers(messages)) is None:
            return None
        o = np.concatenate([before.orientation[None], numbers[:, :4]])
        w = np.concatenate([before.angular_velocity[None], numbers[:, 13:16]])
        lengths, speed = _norms(o), _norms(w)
        if not (
            (numbers[:, COVARIANCES] >= 0.0).all()
            and (numbers[:, [4, 8]] <= limits.USELESS).all()
            and (np.abs(lengths - 1.0) <= limits.UNIT).all()
            and (speed[1:] <= limits.FASTEST_TURN).all()
            and (_norms(numbers[:, 25:28]) <= limits.HARDEST).all()
        ):
            return None
        stamps = np.array([self._stamps[IMU], *map(_stamp, messages)])
        since = 1e-9 * np.maximum(np.diff(stamps), 0)
        cosines = np.einsum("ij,ij->i", o[1:], o[:-1]) / (lengths[1:] * lengths[:-1])
        turned = 2.0 * np.arccos(np.minimum(np.abs(cosines), 1.0))
        if (turned - np.maximum(speed[1:], speed[:-1]) * since > limits.TURNED).any():
            return None
        if (_norms(w[1:] - w[:-1]) > limits.SUDDEN + limits.ANGULAR * since).any():
            return None

        def accept() -> None:
            last = numbers[-1]
            orientation = last[:4] / float(np.linalg.norm(last[:4]))
            self._imu, self._odd = ImuReading(orientation, last[13:16], last[25:28]), None
            self._accepted(IMU, stamps)

        return accept

    def _imu_numbers(self, messages: Sequence[bytes]) -> np.ndarray | None:
        """Return the numbers (k, 37) of readings in the root link, or None if some are something else."""
        first = messages[0]
        if len(first) < BEGIN + LENGTH.size or first[:2] != LITTLE_ENDIAN:
            return None
        end = BEGIN + LENGTH.size + LENGTH.unpack_from(first, BEGIN)[0]
        at = _aligned(end, NUMBER)
        rows = _rows(messages, at + IMU_NUMBERS * NUMBER)
        if rows is None or any(m[:2] != LITTLE_ENDIAN or m[BEGIN:end] != first[BEGIN:end] for m in messages):
            return None
        frame = self._local_frame(first[BEGIN + LENGTH.size : end - 1].decode(errors="replace"))
        return _numbers(rows, at, IMU_NUMBERS) if frame in ("", self.robot.root_link) else None

    def _accepted(self, key: str, stamps: np.ndarray) -> None:
        """Note the stamps of faultless messages, after that of the reading before them [ns]."""
        if (stamps[1:] != stamps[:-1]).any():  # a repeated message carries no new information
            self._stamps[key] = int(stamps[-1])
            self.silence[key] = 0.0
        self._health.clear(key)


class _JointLayout(NamedTuple):
    """Places in the bytes of joint states with equal names.

    Attributes:
        fixed: places of the bytes that all such messages share; bytes between them are padding with any value.
        values: these bytes.
        position: place of the first position.
        velocity: place of the first velocity.
        size: bytes of the message.
    """

    fixed: np.ndarray
    values: np.ndarray
    position: int
    velocity: int
    size: int

    @classmethod
    def of(cls, data: bytes, message: JointState) -> _JointLayout | None:
        """Return the layout of a message, or None if its numbers need other checks."""
        n = len(message.name)
        faulty = not n or not len(message.position) == len(message.velocity) == n or named_twice(message.name)
        if data[:2] != LITTLE_ENDIAN or faulty:
            return None
        at, fixed = BEGIN, [np.arange(2)]
        for is_text in (True, False, *(True for _ in range(n)), False):  # frame; number of names; names; of positions
            begin = _aligned(at, LENGTH.size)
            at = begin + LENGTH.size + (LENGTH.unpack_from(data, begin)[0] if is_text else 0)
            fixed.append(np.arange(begin, at))
        position = _aligned(at, NUMBER)
        counted = position + n * NUMBER
        places = np.concatenate([*fixed, np.arange(counted, counted + LENGTH.size)])
        values = np.frombuffer(data, np.uint8)[places]
        velocity = _aligned(counted + LENGTH.size, NUMBER)
        return cls(places, values, position, velocity, len(data))


def _stamp(data: bytes) -> int:
    sec, nanosec = STAMP.unpack_from(data, ENCODING)
    return int(sec * 10**9 + nanosec)


def _aligned(at: int, size: int) -> int:
    """Return the place at or after `at` where a number of `size` bytes may begin; CDR counts after the header."""
    return at + (ENCODING - at) % size


def _rows(messages: Sequence[bytes], size: int) -> np.ndarray | None:
    """Return the bytes (k, size) of messages, or None if one has another size."""
    if any(len(data) != size for data in messages):
        return None
    return np.frombuffer(b"".join(messages), np.uint8).reshape(len(messages), size)


def _numbers(rows: np.ndarray, at: int, count: int) -> np.ndarray:
    """Return `count` numbers of each message."""
    return np.ascontiguousarray(rows[:, at : at + count * NUMBER]).view("<f8")


def _norms(vectors: np.ndarray) -> np.ndarray:
    """Return the length of each row."""
    return np.sqrt(np.einsum("ij,ij->i", vectors, vectors))


def _nothing() -> None:
    """Accept no message."""
