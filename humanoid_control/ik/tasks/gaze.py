"""An axis of a link aimed at a point: looking, pointing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.base import Task
from humanoid_control.ik.tasks.point import FramePoint, skew
from humanoid_control.robots import Robot

STRAIGHT = 1e-9  # [rad] nearer than this to straight ahead, or straight behind, the series replaces the quotient


class GazeTask(Task):
    """Aim an axis of a frame at a point: two rows, the sight line's angle across the axis [rad].

    The rows are the components of the angle in two directions square to the axis. They are smooth everywhere but
    straight behind, where every direction is as good as another.

    Attributes:
        target: (3,) point to look at, in the world [m]. velocity: (3,) how fast it moves [m/s].
    """

    def __init__(
        self,
        name: str,
        robot: Robot,
        frame: int,
        axis: Sequence[float] = (1.0, 0.0, 0.0),
        weight: float = 1.0,
        gain: float = 30.0,
    ) -> None:
        """Make the task.

        Args:
            name: for reports.
            robot: whose.
            frame: which looks.
            axis: (3,) direction in that frame, of any length.
            weight, gain: as of every task.

        Raises:
            ConfigError: the axis has no direction.
        """
        super().__init__(name, weight, gain)
        length = float(np.linalg.norm(axis))
        if not length > 0:
            raise ConfigError(f"task '{name}': the axis must have a direction, got {list(axis)}")
        self.axis = np.array(axis, dtype=float) / length
        self.eye, self.frame = FramePoint(robot, frame), frame
        self.across = np.linalg.svd(self.axis[None])[2][1:]  # (2, 3) two directions square to the axis
        self.target, self.velocity = np.array([1e3, 0.0, 0.0]), np.zeros(3)

    def angle(self, data: pin.Data) -> float:
        """Angle between the axis and the sight line [rad]."""
        u = self._sight(data)[0]
        return float(np.arctan2(np.linalg.norm(self.across @ u), self.axis @ u))

    def _sight(self, data: pin.Data) -> tuple[np.ndarray, float]:
        """Direction to the target in the frame's axes, and the distance."""
        X = data.oMf[self.frame]
        d = X.rotation.T @ (self.target - X.translation)
        length = max(float(np.linalg.norm(d)), 1e-12)
        return d / length, length

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        u = self._sight(data)[0]
        side, c = self.across @ u, float(self.axis @ u)
        s = float(np.linalg.norm(side))
        if s < STRAIGHT:
            return side if c > 0 else np.array([np.pi, 0.0])
        return side * (np.arctan2(s, c) / s)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        X, (u, length) = data.oMf[self.frame], self._sight(data)
        side, c = self.across @ u, float(self.axis @ u)
        s = max(float(np.linalg.norm(side)), STRAIGHT)
        # e = k(c) B u, with k = angle / sine: de = (k B + k' B u a^T) du.
        k = np.arctan2(s, c) / s if s > STRAIGHT or c < 0 else 1.0
        dk = (k * c - 1) / s**2 if s > 1e-4 else -1.0 / 3.0
        D = k * self.across + dk * np.outer(side, self.axis)
        # u turns against the frame, and moves across the line of sight as the eye and the target move.
        J_turn = data.J[3:] * robot.support[robot.model.frames[self.frame].parentJoint]
        square = (np.eye(3) - np.outer(u, u)) / length
        A_T = X.rotation.T
        J_u = skew(u) @ A_T @ J_turn - square @ A_T @ self.eye.jacobian(robot, data)
        return -D @ J_u, self.gain * self.error(robot, data, q) + D @ square @ A_T @ self.velocity
