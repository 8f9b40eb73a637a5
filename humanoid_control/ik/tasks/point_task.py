"""A point brought somewhere: in the world, or relative to another point and seen from a moving frame."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.ik.tasks.base import VectorTask
from humanoid_control.ik.tasks.point import WORLD_AXES, Point, skew
from humanoid_control.robots import Robot


class PointTask(VectorTask):
    """x = A^T (p - o): a point p, from another point o where one is given, in the axes A of a frame or of the world.

    With the centre of mass for p it is the balance task, with that for o and a foot for p the source's foot task.
    """

    def __init__(
        self,
        name: str,
        point: Point,
        origin: Point | None = None,
        axes: int | None = None,
        weight: float = 1.0,
        gain: float = 30.0,
    ) -> None:
        """Make the task; its target is zero until it is set.

        Args:
            name: for reports.
            point: what moves.
            origin: from where it is measured; default: the world's origin.
            axes: id of the frame in whose axes it is measured; default: the world's.
            weight, gain: as of every task.
        """
        super().__init__(name, np.zeros(3), weight, gain)
        self.point, self.origin, self.axes = point, origin, axes

    def _apart(self, robot: Robot, data: pin.Data) -> np.ndarray:
        p = self.point.position(robot, data)
        return p if self.origin is None else p - self.origin.position(robot, data)

    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        d = self._apart(robot, data)
        return d if self.axes is None else data.oMf[self.axes].rotation.T @ d

    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        J = self.point.jacobian(robot, data)
        if self.origin is not None:
            J = J - self.origin.jacobian(robot, data)
        if self.axes is None:
            return J
        J_turn = data.J[3:] * robot.support[robot.model.frames[self.axes].parentJoint]
        return data.oMf[self.axes].rotation.T @ (J + skew(self._apart(robot, data)) @ J_turn)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = self.point.drift(robot, data)
        if self.origin is not None:
            a = a - self.origin.drift(robot, data)
        if self.axes is None:
            return a
        # x = A^T d, with A' = [omega] A: the derivative twice.
        A = data.oMf[self.axes].rotation
        d, x_dot = self._apart(robot, data), self.jacobian(robot, data, q) @ v
        omega = pin.getFrameVelocity(robot.model, data, self.axes, WORLD_AXES).angular
        alpha = pin.getFrameClassicalAcceleration(robot.model, data, self.axes, WORLD_AXES).angular
        seen = A @ x_dot  # d' - omega x d
        d_dot = seen + np.cross(omega, d)
        return A.T @ (a - np.cross(alpha, d) - np.cross(omega, d_dot) - np.cross(omega, seen))
