"""Joints brought to angles, each a row of its own.

Also here:

* The joints held near a posture.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.tasks.task import Task, VectorTask
from humanoid_control.robots.robot import Robot

# -------- Joints brought to angles, each a row of its own


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


# -------- The joints held near a posture


class PostureTask(Task):
    """Keep the joints near a posture, so that joints no other task needs have somewhere to be."""

    def __init__(
        self, posture: np.ndarray, weights: np.ndarray | None = None, weight: float = 0.05, gain: float = 2.0
    ) -> None:
        """Make the task.

        Args:
            posture: (n,) [rad].
            weights: (n,) relative weight of each joint, default 1.
            weight, gain: as of every task.
        """
        super().__init__("posture", weight, gain)
        self.posture = np.array(posture, dtype=float)
        self.weights = np.ones(len(posture)) if weights is None else np.array(weights, dtype=float)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.weights * (self.posture - robot.joints(q))

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.zeros((robot.n, robot.nv))
        J[:, robot.iv :] = np.diag(self.weights)
        return J, self.gain * self.error(robot, data, q)

    def add_to(self, robot: Robot, data: pin.Data, q: np.ndarray, H: np.ndarray, g: np.ndarray) -> None:
        w, k = self.weight**2 * self.weights, np.arange(robot.iv, robot.nv)
        H[k, k] += w * self.weights
        g[k] -= w * self.gain * self.error(robot, data, q)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(robot.n)
