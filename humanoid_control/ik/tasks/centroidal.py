"""Centroidal tasks: centre of mass of the robot or of a limb; linear and angular momentum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.ik.tasks.points import Point, PointTask
from humanoid_control.ik.tasks.task import Task, TaskGoal
from humanoid_control.robots.robot import Robot, joint_columns


class CenterOfMass(Point):
    """Centre of mass of the whole robot, including fixed links (as `Robot.center_of_mass`)."""

    label = "center of mass"

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        pin.jacobianCenterOfMass(robot.model, data, False)
        held, m = robot.model.inertias[0], float(data.mass[0])
        return (m * data.com[0] + held.mass * held.lever) / (m + held.mass)

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        J = pin.jacobianCenterOfMass(robot.model, data, False).reshape(3, -1)
        return J * self._moving_share(robot, data)

    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        pin.centerOfMass(robot.model, data, pin.KinematicLevel.ACCELERATION, False)
        return data.acom[0] * self._moving_share(robot, data)

    @staticmethod
    def _moving_share(robot: Robot, data: pin.Data) -> float:
        m = float(data.mass[0])
        return m / (m + robot.model.inertias[0].mass)


class LimbCenterOfMass(Point):
    """Centre of mass of the links of some joints, such as an arm."""

    label = "center of mass of a limb"

    def __init__(self, robot: Robot, joints: Sequence[int]) -> None:
        """Select the links.

        Args:
            joints: joint ids of pinocchio.
        """
        self.joints = list(joints)
        inertias = [robot.model.inertias[j] for j in self.joints]
        self.masses, self.levers = [float(i.mass) for i in inertias], [np.array(i.lever) for i in inertias]
        self.mass = sum(self.masses)
        if not self.mass > 0:
            raise RobotError(f"{robot.name}: the links of {[robot.model.names[j] for j in joints]} have no mass")
        self._shares = np.array(self.masses) / self.mass
        # For each column of the Jacobian: the share of the mass that it moves, and the share of each joint in it.
        self._support = np.array(self.masses) @ robot.ancestor_mask[self.joints] / self.mass
        self._carries = robot.ancestor_mask[self.joints].T * self._shares

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        return self._shares @ self._centres(data)

    def _centres(self, data: pin.Data) -> np.ndarray:
        return np.array([data.oMi[j].act(c) for j, c in zip(self.joints, self.levers, strict=True)])

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        # A joint moves the mass m that it carries, with centre c: m (v + omega x c).
        J, moment = joint_columns(data), (self._carries @ self._centres(data)).T
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


class CenterOfMassTask(PointTask):
    """Balance task: centre of mass of the robot at a world position."""

    def __init__(self, robot: Robot, *, weight: float = 1.0, gain: float = 30.0, name: str = "center_of_mass") -> None:
        """Weight, gain [1/s] and name as in `Task`."""
        super().__init__(robot, CenterOfMass(), weight=weight, gain=gain, name=name)


# -------- Momentum


class MomentumTask(Task):
    """Momentum J v = reference along some world axes.

    Momentum depends on velocity only: there is no error and no gain.
    """

    parts: slice

    def __init__(self, name: str, reference: Sequence[float], axes: Sequence[bool], weight: float) -> None:
        super().__init__(name, weight, 0.0)
        self.axes = np.array(axes, dtype=bool)
        if self.axes.shape != (3,):
            raise ConfigError(f"task '{name}': axes must be three truth values, got {len(self.axes)}")
        self.axes.flags.writeable = False  # the number of rows is read once
        self._reference = np.zeros(3)
        self.reference = reference

    def goal(self) -> TaskGoal:
        return self._goal(self._reference)

    @property
    def reference(self) -> np.ndarray:
        """Desired momentum (3,); set it for each tick."""
        return self._reference

    @reference.setter
    def reference(self, value: Sequence[float] | np.ndarray) -> None:
        new = np.array(value, dtype=float)
        if new.shape != (3,) or not np.isfinite(new).all():
            raise ConfigError(f"task '{self.name}': reference must be three finite numbers, got {value}")
        self._reference[:] = new

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A = np.array(pin.computeCentroidalMap(robot.model, data, q).reshape(6, -1)[self.parts])
        return A[self.axes], self._reference[self.axes]

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Return zeros: momentum has no error."""
        return np.zeros(int(self.axes.sum()))

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        dA = pin.computeCentroidalMapTimeVariation(robot.model, robot.model.createData(), q, v).reshape(6, -1)
        return np.asarray((dA @ v)[self.parts][self.axes])


class AngularMomentumTask(MomentumTask):
    """Angular momentum about the centre of mass [kg m^2/s] (Schwienbacher 2014, eq. (7.2))."""

    parts = slice(3, 6)

    def __init__(
        self,
        reference: Sequence[float] = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (False, False, True),
        weight: float = 1.0,
    ) -> None:
        """Default: no momentum about the vertical."""
        super().__init__("angular momentum", reference, axes, weight)


class LinearMomentumTask(MomentumTask):
    """Linear momentum M dc/dt [kg m/s].

    The reference M (dc_ref/dt + k (c_ref - c)) moves the centre of mass to c_ref.
    """

    parts = slice(0, 3)

    def __init__(
        self,
        reference: Sequence[float] = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (True, True, True),
        weight: float = 1.0,
    ) -> None:
        super().__init__("linear momentum", reference, axes, weight)
