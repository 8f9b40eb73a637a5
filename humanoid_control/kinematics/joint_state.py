"""Joint states, measurements, node states, and the interface of a robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np


class JointState(NamedTuple):
    """Measured, estimated or commanded joints.

    Attributes:
        q: (n,) [rad], prismatic [m].
        v: (n,) [rad/s], [m/s].
        effort: (n,) [N m], [N]; NaN: unknown.
        stamp: on the sender's clock [s].
    """

    names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    effort: np.ndarray
    stamp: float


class ImuReading(NamedTuple):
    """Inertial measurement, root link axes.

    Attributes:
        orientation: (4,) quaternion x y z w in the world.
        angular_velocity: (3,) [rad/s].
        linear_acceleration: (3,) specific force [m/s^2]: +9.81 upward at rest.
    """

    orientation: np.ndarray
    angular_velocity: np.ndarray
    linear_acceleration: np.ndarray


class Measurement(NamedTuple):
    """Reading of all sensors of a robot.

    Attributes:
        imu: of the root link.
        foot_wrenches: foot -> (6,) force [N] and torque [N m] of the ground on the foot, frame `<foot>_sole`.
    """

    joints: JointState
    imu: ImuReading
    foot_wrenches: Mapping[str, np.ndarray]


PART = ": "  # separates the names of a node and of its part in diagnostics


class NodeStatus(NamedTuple):
    """Diagnostics of a node or part: level (0 ok, 1 warning, 2 error), message, values."""

    level: int
    message: str
    values: dict[str, str]


def node_statuses(message: Any) -> dict[str, NodeStatus]:
    """Return the statuses by node (no slashes) in a diagnostic_msgs/DiagnosticArray."""
    return {s.name.strip("/"): _status(s) for s in message.status if PART not in s.name}


def part_statuses(message: Any) -> dict[tuple[str, str], NodeStatus]:
    """Return the statuses by node and part."""
    found = ((*s.name.strip("/").split(PART, 1), s) for s in message.status if PART in s.name)
    return {(node, part): _status(s) for node, part, s in found}


def _status(s: Any) -> NodeStatus:
    level = s.level[0] if isinstance(s.level, bytes) else int(s.level)
    return NodeStatus(level, s.message, {v.key: v.value for v in s.values})


class RobotInterface(Protocol):
    """Simulated or real robot as seen by a controller.

    Attributes:
        joint_names: the n joints in the order of commands.
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
        """Command the drives from now on.

        A position selects a position drive with velocity and effort as feed-forward, a velocity alone a velocity drive,
        an effort alone a torque. Values are clipped. Joints without a finite value keep their command.

        Args:
            positions: (n,) [rad], prismatic [m].
            velocities: (n,) [rad/s], [m/s].
            efforts: (n,) [N m], [N].

        Raises:
            SizeError: unless n values (a ValueError).
        """

    def read(self) -> Measurement:
        """Return the present measurement."""
