"""Points that move with the robot: on a link, the centre of mass of all of it, or of one limb."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import RobotError
from humanoid_control.robots import Robot

WORLD_AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def skew(a: np.ndarray) -> np.ndarray:
    """The matrix (3, 3) of the cross product a x."""
    return np.array([[0.0, -a[2], a[1]], [a[2], 0.0, -a[0]], [-a[1], a[0], 0.0]])


class Point(ABC):
    """A point and its derivatives, in the world frame, at what `prepare` has computed in `data`."""

    @abstractmethod
    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Where it is (3,) [m]."""

    @abstractmethod
    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Its velocity by v, (3, nv)."""

    @abstractmethod
    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Its acceleration (3,) [m/s^2] while the joints do not accelerate, after `prepare_second_order`."""


class FramePoint(Point):
    """A point fixed in a frame: its origin, or `offset` (3,) from it in its axes [m] (eq. 5.7)."""

    def __init__(self, robot: Robot, frame: int, offset: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        self.frame, self.offset = frame, np.array(offset, dtype=float)
        self._support = robot.support[robot.model.frames[frame].parentJoint]
        self._E = np.hstack([np.eye(3), np.zeros((3, 3))])

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        return data.oMf[self.frame].act(self.offset)

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        self._E[:, 3:] = -skew(self.position(robot, data))
        return (self._E @ data.J) * self._support

    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        a = pin.getFrameClassicalAcceleration(robot.model, data, self.frame, WORLD_AXES)
        omega = pin.getFrameVelocity(robot.model, data, self.frame, WORLD_AXES).angular
        r = data.oMf[self.frame].rotation @ self.offset
        return a.linear + np.cross(a.angular, r) + np.cross(omega, np.cross(omega, r))


class CenterOfMass(Point):
    """The centre of mass of the whole robot, links that are held still included (as `Robot.center_of_mass`)."""

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        pin.jacobianCenterOfMass(robot.model, data, False)
        held, m = robot.model.inertias[0], float(data.mass[0])
        return (m * data.com[0] + held.mass * held.lever) / (m + held.mass)

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        J = pin.jacobianCenterOfMass(robot.model, data, False)
        return J * self._moving_share(robot, data)

    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        pin.centerOfMass(robot.model, data, pin.KinematicLevel.ACCELERATION, False)
        return data.acom[0] * self._moving_share(robot, data)

    @staticmethod
    def _moving_share(robot: Robot, data: pin.Data) -> float:
        m = float(data.mass[0])
        return m / (m + robot.model.inertias[0].mass)


class LimbCenterOfMass(Point):
    """The centre of mass of some joints' links, such as an arm's."""

    def __init__(self, robot: Robot, joints: Sequence[int]) -> None:
        """Make it.

        Args:
            robot: whose.
            joints: pinocchio joint ids.

        Raises:
            RobotError: the links have no mass.
        """
        self.joints = list(joints)
        inertias = [robot.model.inertias[j] for j in self.joints]
        self.masses, self.levers = [float(i.mass) for i in inertias], [np.array(i.lever) for i in inertias]
        self.mass = sum(self.masses)
        if not self.mass > 0:
            raise RobotError(f"{robot.name}: the links of {[robot.model.names[j] for j in joints]} have no mass")
        self._support = np.array(self.masses) @ robot.support[self.joints] / self.mass  # share of mass a joint carries
        self._carries = robot.support[self.joints].T * (np.array(self.masses) / self.mass)

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        return np.array(self.masses) / self.mass @ self._centres(data)

    def _centres(self, data: pin.Data) -> np.ndarray:
        return np.array([data.oMi[j].act(c) for j, c in zip(self.joints, self.levers, strict=True)])

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        # A joint moves the mass m it carries at the centre c of that mass: m (v + omega x c).
        J, moment = data.J, (self._carries @ self._centres(data)).T
        turn = np.empty((3, robot.nv))
        turn[0] = J[4] * moment[2] - J[5] * moment[1]
        turn[1] = J[5] * moment[0] - J[3] * moment[2]
        turn[2] = J[3] * moment[1] - J[4] * moment[0]
        return J[:3] * self._support + turn

    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        total = np.zeros(3)
        for j, m, c in zip(self.joints, self.masses, self.levers, strict=True):
            a, v = data.a[j], data.v[j]
            at_centre = a.linear + np.cross(a.angular, c) + np.cross(v.angular, v.linear + np.cross(v.angular, c))
            total += m * (data.oMi[j].rotation @ at_centre)
        return total / self.mass
