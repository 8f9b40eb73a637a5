"""Joints brought to angles, each a row of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.tasks.base import VectorTask
from humanoid_control.robots import Robot


class JointTask(VectorTask):
    """Bring named joints to angles [rad]; the target is the neutral posture until it is set."""

    def __init__(self, name: str, robot: Robot, joints: Sequence[str], weight: float = 1.0, gain: float = 30.0) -> None:
        """Make the task.

        Raises:
            UnknownNameError: a joint the robot does not have, with the nearest names.
        """
        self.joints = np.array([robot.joint_index(j) for j in joints], dtype=int)
        super().__init__(name, robot.postures["neutral"][self.joints], weight, gain)

    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return robot.joints(q)[self.joints]

    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        J = np.zeros((len(self.joints), robot.nv))
        J[np.arange(len(self.joints)), robot.iv + self.joints] = 1.0
        return J

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(len(self.joints))
