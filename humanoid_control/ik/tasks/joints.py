"""Tasks of joints: target angles, or a posture."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.tasks.task import Task, TaskGoal, VectorTask, known_robot
from humanoid_control.robots.robot import Robot


class JointTask(VectorTask):
    """Target angles of named joints [rad], one row each."""

    def __init__(
        self, robot: Robot, joints: Sequence[str], *, weight: float = 1.0, gain: float = 30.0, name: str | None = None
    ) -> None:
        """Select the joints.

        Raises:
            UnknownNameError: if the robot has no such joint.
            ConfigError: if joints is a single name.
        """
        if isinstance(joints, str):
            raise ConfigError(f"a joint task takes a list of joints, got the single name '{joints}': give [{joints!r}]")
        self.joints = np.array([known_robot(robot).joint_index(j) for j in joints], dtype=int)
        super().__init__(robot, len(self.joints), ", ".join(joints) if name is None else name, weight, gain)

    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return robot.joints(q)[self.joints]

    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        J = np.zeros((len(self.joints), robot.nv))
        J[np.arange(len(self.joints)), robot.iv + self.joints] = 1.0
        return J

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(len(self.joints))


class PostureTask(Task):
    """Posture (n,) of joints that no other task needs."""

    def __init__(
        self,
        robot: Robot,
        posture: str | np.ndarray = "neutral",
        weights: np.ndarray | None = None,
        *,
        weight: float = 0.05,
        gain: float = 2.0,
        name: str = "posture",
    ) -> None:
        """Select the posture; other arguments as in `Task`.

        Args:
            posture: name of a posture, or angles (n,) [rad].
            weights: relative joint weights (n,), default 1.

        Raises:
            UnknownNameError: if the robot has no such posture.
            ConfigError: if posture or weights have another length.
        """
        super().__init__(name, weight, gain)
        if isinstance(posture, str) and posture not in known_robot(robot).postures:
            raise UnknownNameError("posture", posture, robot.postures, hint=f"(robot {robot.name})")
        self.robot, self._posture, self._weights = known_robot(robot), np.zeros(robot.n), np.ones(robot.n)
        if weights is not None:
            self.weights = weights
        self.set_target(robot.postures[posture] if isinstance(posture, str) else posture)

    @property
    def posture(self) -> np.ndarray:
        """Desired joint angles (n,) [rad]."""
        return self._posture

    @posture.setter
    def posture(self, value: np.ndarray) -> None:
        self._put(self._posture, "posture", value)

    @property
    def weights(self) -> np.ndarray:
        """Relative weight of each joint (n,)."""
        return self._weights

    @weights.setter
    def weights(self, value: np.ndarray) -> None:
        self._put(self._weights, "weights", value)

    def goal(self) -> TaskGoal:
        return self._goal(self._posture, self._weights)

    def set_target(self, posture: np.ndarray) -> None:
        """Set the posture (n,) [rad]."""
        self.posture = posture

    def set_target_from(self, q: np.ndarray) -> None:
        self.set_target(self.robot.joints(q))

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.weights * (self.posture - robot.joints(q))

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.zeros((robot.n, robot.nv))
        J[:, robot.iv :] = np.diag(self.weights)
        return J, self.gain * self.error(robot, data, q)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.zeros(robot.n)
