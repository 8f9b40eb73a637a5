"""What the robot is asked to do, each as rows of J v = v_desired."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

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

    def add_to(self, robot: Robot, data: pin.Data, q: np.ndarray, H: np.ndarray, g: np.ndarray) -> None:
        """Add the task to the cost 1/2 v^T H v + g^T v of the whole problem."""
        J, v = self.rows(robot, data, q)
        A = self.weight * J
        H += A.T @ A
        g -= A.T @ (self.weight * v)

    @abstractmethod
    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Reached minus wanted, negated: what is still missing, (m,) [m] or [rad]."""


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

    def add_to(self, robot: Robot, data: pin.Data, q: np.ndarray, H: np.ndarray, g: np.ndarray) -> None:
        w, k = self.weight**2 * self.weights, np.arange(robot.iv, robot.nv)
        H[k, k] += w * self.weights
        g[k] -= w * self.gain * self.error(robot, data, q)
