"""A frame turned to an orientation, in the world or relative to another frame (appendix C)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.ik.orientation import rotation_error
from humanoid_control.ik.tasks.base import Task
from humanoid_control.ik.tasks.point import WORLD_AXES
from humanoid_control.robots import Robot


class OrientationTask(Task):
    """Turn a frame to an orientation, by the geometric Jacobian: no angles, hence none of their singularities.

    Attributes:
        target: (3, 3) rotation matrix that is wanted, in the axes of `relative_to`, or of the world.
        velocity: (3,) angular velocity that is wanted, in the same axes [rad/s].
    """

    def __init__(
        self, name: str, frame: int, relative_to: int | None = None, weight: float = 1.0, gain: float = 30.0
    ) -> None:
        super().__init__(name, weight, gain)
        self.frame, self.relative_to = frame, relative_to
        self.target, self.velocity = np.eye(3), np.zeros(3)

    def value(self, data: pin.Data) -> np.ndarray:
        """The orientation that is reached, (3, 3)."""
        A = data.oMf[self.frame].rotation
        return A if self.relative_to is None else data.oMf[self.relative_to].rotation.T @ A

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return rotation_error(self.value(data), self.target)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        support, frames = robot.support, robot.model.frames
        share = support[frames[self.frame].parentJoint]
        v = self.velocity + self.gain * self.error(robot, data, q)
        if self.relative_to is None:
            return data.J[3:] * share, v
        share = share - support[frames[self.relative_to].parentJoint]
        return data.oMf[self.relative_to].rotation.T @ (data.J[3:] * share), v

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        model = robot.model
        alpha = pin.getFrameClassicalAcceleration(model, data, self.frame, WORLD_AXES).angular
        if self.relative_to is None:
            return alpha
        omega = pin.getFrameVelocity(model, data, self.frame, WORLD_AXES).angular
        alpha_0 = pin.getFrameClassicalAcceleration(model, data, self.relative_to, WORLD_AXES).angular
        omega_0 = pin.getFrameVelocity(model, data, self.relative_to, WORLD_AXES).angular
        return data.oMf[self.relative_to].rotation.T @ (alpha - alpha_0 - np.cross(omega_0, omega - omega_0))
