"""Tracked points brought to places in the world, all in one task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.tasks.base import Task
from humanoid_control.ik.tasks.point import WORLD_AXES
from humanoid_control.robots import Robot


class PointsTask(Task):
    """Bring tracked points to places in the world, which may themselves move: three rows a point.

    Attributes:
        targets, velocities: (P, 3) where the points should be and how fast they should move [m], [m/s].
    """

    def __init__(self, robot: Robot, frames: Sequence[int], weight: float = 1.0, gain: float = 30.0) -> None:
        """Make the task; the targets are where the points are in the neutral posture."""
        super().__init__("points", weight, gain)
        self.frames = list(frames)
        self.targets = robot.frame_positions(robot.q("neutral"), self.frames)
        self.velocities = np.zeros((len(self.frames), 3))
        self._support = np.repeat(robot.support[[robot.model.frames[f].parentJoint for f in self.frames]], 3, axis=0)
        # Velocity of a point p from a twist at the world origin: [1, -[p]x] (v, omega).
        self._point_of_twist = np.tile(np.hstack([np.eye(3), np.zeros((3, 3))]), (len(self.frames), 1, 1))

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return (self.targets - self._positions(data)).ravel()

    def _positions(self, data: pin.Data) -> np.ndarray:
        return np.array([data.oMf[f].translation for f in self.frames])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, E = self._positions(data), self._point_of_twist
        E[:, 0, 4], E[:, 0, 5] = p[:, 2], -p[:, 1]
        E[:, 1, 3], E[:, 1, 5] = -p[:, 2], p[:, 0]
        E[:, 2, 3], E[:, 2, 4] = p[:, 1], -p[:, 0]
        J = (E.reshape(-1, 6) @ data.J) * self._support
        return J, (self.velocities + self.gain * (self.targets - p)).ravel()

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = [pin.getFrameClassicalAcceleration(robot.model, data, f, WORLD_AXES).linear for f in self.frames]
        return np.concatenate(a) if a else np.zeros(0)
