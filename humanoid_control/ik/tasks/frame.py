"""A frame brought to a pose, in the world or relative to another frame."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.ik.orientation import rotation_error
from humanoid_control.ik.tasks.base import Task
from humanoid_control.ik.tasks.orientation_task import OrientationTask
from humanoid_control.ik.tasks.point import WORLD_AXES, FramePoint
from humanoid_control.ik.tasks.point_task import PointTask
from humanoid_control.robots import Robot


class FrameTask(Task):
    """Bring a frame to a pose in the world: three rows of position [m], three of orientation [rad] (C.9-C.12).

    Attributes:
        X_target: the pose. target_velocity, target_turn: (3,) its velocity [m/s] and angular velocity [rad/s].
    """

    def __init__(
        self, name: str, frame: int, weight: float = 1.0, gain: float = 30.0, orientation_weight: float = 0.3
    ) -> None:
        super().__init__(name, weight, gain)
        self.frame, self.orientation_weight = frame, float(orientation_weight)
        self.X_target = pin.SE3.Identity()
        self.target_velocity, self.target_turn = np.zeros(3), np.zeros(3)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        X = data.oMf[self.frame]
        turn = rotation_error(X.rotation, self.X_target.rotation)
        return np.concatenate([self.X_target.translation - X.translation, self.orientation_weight * turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J = np.array(pin.getFrameJacobian(robot.model, data, self.frame, WORLD_AXES))
        J[3:] *= self.orientation_weight
        v = self.gain * self.error(robot, data, q)
        v[:3] += self.target_velocity
        v[3:] += self.orientation_weight * self.target_turn
        return J, v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = pin.getFrameClassicalAcceleration(robot.model, data, self.frame, WORLD_AXES)
        return np.concatenate([a.linear, self.orientation_weight * a.angular])


class RelativeFrameTask(Task):
    """Bring a frame to a pose relative to another frame of the same robot, such as one hand to the other.

    Attributes:
        place: the three rows of position, in the other frame's axes. turn: the three of orientation.
    """

    def __init__(
        self,
        name: str,
        robot: Robot,
        frame: int,
        relative_to: int,
        weight: float = 1.0,
        gain: float = 30.0,
        orientation_weight: float = 0.3,
    ) -> None:
        super().__init__(name, weight, gain)
        origin = FramePoint(robot, relative_to)
        self.place = PointTask(name, FramePoint(robot, frame), origin, relative_to, weight, gain)
        self.turn = OrientationTask(name, frame, relative_to, weight, gain)
        self.orientation_weight = float(orientation_weight)

    @property
    def X_target(self) -> pin.SE3:
        """The pose that is wanted, in the other frame."""
        return pin.SE3(self.turn.target, self.place.target)

    @X_target.setter
    def X_target(self, X: pin.SE3) -> None:
        self.turn.target, self.place.target = np.array(X.rotation), np.array(X.translation)

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        turn = self.orientation_weight * self.turn.error(robot, data, q)
        return np.concatenate([self.place.error(robot, data, q), turn])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        self.place.gain = self.turn.gain = self.gain
        (J, v), (J_turn, v_turn) = self.place.rows(robot, data, q), self.turn.rows(robot, data, q)
        w = self.orientation_weight
        return np.vstack([J, w * J_turn]), np.concatenate([v, w * v_turn])

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        turn = self.orientation_weight * self.turn.drift(robot, data, q, v)
        return np.concatenate([self.place.drift(robot, data, q, v), turn])
