"""What the robot is asked to do, each as rows of J v = v_desired."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots import Robot


class Task(ABC):
    """One wish. The solver minimises weight^2 |J v - v_desired|^2 summed over the tasks.

    Attributes:
        name: for reports.
        weight: how much it counts against the others; units make rows comparable (1 / (m/s), 1 / (rad/s)).
        gain: how fast an error decays [1/s].
    """

    def __init__(self, name: str, weight: float, gain: float) -> None:
        if not weight >= 0 or not gain >= 0:
            raise ConfigError(f"task '{name}': weight and gain must not be negative, got {weight:g} and {gain:g}")
        self.name, self.weight, self.gain = name, float(weight), float(gain)

    @abstractmethod
    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Jacobian (m, nv) and desired task velocity (m,), at the configuration q already computed in `data`."""

    @abstractmethod
    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Reached minus wanted, negated: what is still missing, (m,) [m] or [rad]."""


class PointTask(Task):
    """Bring a tracked point to a place in the world, which may itself move."""

    def __init__(self, name: str, frame: int, weight: float = 1.0, gain: float = 30.0) -> None:
        super().__init__(name, weight, gain)
        self.frame = frame
        self.target = np.zeros(3)
        self.target_velocity = np.zeros(3)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.target - data.oMf[self.frame].translation

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = pin.getFrameJacobian(robot.model, data, self.frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:3]
        return J, self.target_velocity + self.gain * self.error(robot, data, q)


class FrameTask(Task):
    """Bring a frame to a pose in the world: three rows of position [m], three of orientation [rad]."""

    def __init__(
        self, name: str, frame: int, weight: float = 1.0, gain: float = 30.0, orientation_weight: float = 0.3
    ) -> None:
        super().__init__(name, weight, gain)
        self.frame, self.orientation_weight = frame, float(orientation_weight)
        self.X_target = pin.SE3.Identity()
        self.target_velocity = np.zeros(3)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        X = data.oMf[self.frame]
        turn = X.rotation @ pin.log3(X.rotation.T @ self.X_target.rotation)
        return np.concatenate([self.X_target.translation - X.translation, self.orientation_weight * turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.array(pin.getFrameJacobian(robot.model, data, self.frame, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED))
        J[3:] *= self.orientation_weight
        v = self.gain * self.error(robot, data, q)
        v[:3] += self.target_velocity
        return J, v


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
