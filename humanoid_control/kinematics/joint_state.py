"""Joint states, measurements, states of nodes: records that robots, simulated or real, estimators and nodes share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np


class JointState(NamedTuple):
    """Positions, velocities and efforts of joints at one time, measured, estimated or commanded.

    Attributes:
        names: of the n joints; the arrays are in their order.
        q: (n,) [rad], of a prismatic joint [m].
        v: (n,) [rad/s], [m/s].
        effort: (n,) [N m], [N]. NaN: not known.
        stamp: time [s] on the clock of the sender.
    """

    names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    effort: np.ndarray
    stamp: float


class ImuReading(NamedTuple):
    """An inertial measurement unit in the root link, in the axes of that link.

    Attributes:
        orientation: (4,) quaternion x y z w of the link in the world.
        angular_velocity: (3,) [rad/s].
        linear_acceleration: (3,) specific force [m/s^2]: +9.81 along the upward axis at rest.
    """

    orientation: np.ndarray
    angular_velocity: np.ndarray
    linear_acceleration: np.ndarray


class Measurement(NamedTuple):
    """One reading of all sensors of a robot.

    Attributes:
        joints: of the joint encoders and drives.
        imu: of the root link.
        foot_wrenches: foot -> (6,) force [N] and torque [N m] of the ground on it, in its sole frame.
    """

    joints: JointState
    imu: ImuReading
    foot_wrenches: Mapping[str, np.ndarray]


PART = ": "  # between the names of a node and of a part of it, in diagnostics


class NodeStatus(NamedTuple):
    """Last diagnostics of a node or a part of it: level (0: ok, 1: warning, 2: error), message, values by name."""

    level: int
    message: str
    values: dict[str, str]


def node_statuses(message: Any) -> dict[str, NodeStatus]:
    """The statuses by node in a diagnostic_msgs/DiagnosticArray, live or out of a recording; names without slashes."""
    return {s.name.strip("/"): _status(s) for s in message.status if PART not in s.name}


def part_statuses(message: Any) -> dict[tuple[str, str], NodeStatus]:
    """The statuses of parts of nodes, such as the buses of a driver, by node and part; as `node_statuses`."""
    found = ((*s.name.strip("/").split(PART, 1), s) for s in message.status if PART in s.name)
    return {(node, part): _status(s) for node, part, s in found}


def _status(s: Any) -> NodeStatus:
    level = s.level[0] if isinstance(s.level, bytes) else int(s.level)
    return NodeStatus(level, s.message, {v.key: v.value for v in s.values})


class RobotInterface(Protocol):
    """A robot as a controller meets it: an engine of the simulator, or the driver of a real one.

    Attributes:
        joint_names: of the n joints, in the order of all commands.
    """

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints."""

    def command(
        self,
        positions: np.ndarray | None = None,
        velocities: np.ndarray | None = None,
        efforts: np.ndarray | None = None,
    ) -> None:
        """Tell the drives what to do from now on, each joint by what is given for it.

        A position makes a position drive, with velocity and effort as feed-forward; a velocity without a position a
        velocity drive; an effort alone a torque. Values beyond the limits are clipped. Joints for which nothing
        finite is given continue as they are.

        Args:
            positions: (n,) [rad], of a prismatic joint [m].
            velocities: (n,) [rad/s], [m/s].
            efforts: (n,) [N m], [N].

        Raises:
            SizeError: not one for each joint; it is a ValueError.
        """

    def read(self) -> Measurement:
        """Measurement of the sensors now."""
