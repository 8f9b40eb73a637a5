"""Points of the robot, and tasks of positions, lines, planes and half-spaces (Schwienbacher 2014, 4.2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.task import Task, TaskGoal, VectorTask, frame_of, known_robot, name_of
from humanoid_control.robots.robot import Robot, joint_columns

WORLD_AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


class Point(ABC):
    """Point and its derivatives in the world frame, with `data` from `prepare`."""

    label = "point"

    @abstractmethod
    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Return the position (3,) [m]."""

    @abstractmethod
    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Return the Jacobian of the position (3, nv)."""

    @abstractmethod
    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        """Return the acceleration (3,) [m/s^2] for zero joint acceleration, after `prepare_second_order`."""


class FramePoint(Point):
    """Point fixed in a frame: its origin, or `offset` (3,) in its axes [m]."""

    def __init__(self, robot: Robot, frame: str | int, offset: Sequence[float] = (0.0, 0.0, 0.0)) -> None:
        """Select the frame, by name or id as in `frame_of`."""
        self.frame, self.offset = frame_of(robot, frame), np.array(offset, dtype=float)
        self.label = name_of(robot, frame)
        self._support = robot.ancestor_mask[robot.model.frames[self.frame].parentJoint]
        self._E = np.hstack([np.eye(3), np.zeros((3, 3))])

    def position(self, robot: Robot, data: pin.Data) -> np.ndarray:
        return data.oMf[self.frame].act(self.offset)

    def jacobian(self, robot: Robot, data: pin.Data) -> np.ndarray:
        self._E[:, 3:] = -pin.skew(self.position(robot, data))
        return (self._E @ joint_columns(data)) * self._support

    def drift(self, robot: Robot, data: pin.Data) -> np.ndarray:
        a = pin.getFrameClassicalAcceleration(robot.model, data, self.frame, WORLD_AXES)
        omega = pin.getFrameVelocity(robot.model, data, self.frame, WORLD_AXES).angular
        r = data.oMf[self.frame].rotation @ self.offset
        return a.linear + np.cross(a.angular, r) + np.cross(omega, np.cross(omega, r))


def point_of(robot: Robot, what: str | int | Point) -> tuple[Point, str]:
    """Return a Point, or the FramePoint of a name or frame id; and its label."""
    point = what if isinstance(what, Point) else FramePoint(robot, what)
    return point, point.label


class PointTask(VectorTask):
    """x = A^T (p - o): point p relative to the origin o, in the axes A of a frame or of the world.

    With the centre of mass as p it is the balance task.
    """

    def __init__(
        self,
        robot: Robot,
        point: str | int | Point,
        origin: str | int | Point | None = None,
        axes: str | int | None = None,
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        """Select points and axes; other arguments as in `Task`.

        Args:
            origin: default: the world origin.
            axes: frame; default: the world.
        """
        self.point, label = point_of(robot, point)
        self.origin = None if origin is None else point_of(robot, origin)[0]
        self.axes = None if axes is None else frame_of(robot, axes)
        super().__init__(robot, 3, label if name is None else name, weight, gain)

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
        J_turn = joint_columns(data)[3:] * robot.ancestor_mask[robot.model.frames[self.axes].parentJoint]
        return data.oMf[self.axes].rotation.T @ (J + pin.skew(self._apart(robot, data)) @ J_turn)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = self.point.drift(robot, data)
        if self.origin is not None:
            a = a - self.origin.drift(robot, data)
        if self.axes is None:
            return a
        # x = A^T d with A' = [omega] A, differentiated twice
        A = data.oMf[self.axes].rotation
        d, x_dot = self._apart(robot, data), self.jacobian(robot, data, q) @ v
        omega = pin.getFrameVelocity(robot.model, data, self.axes, WORLD_AXES).angular
        alpha = pin.getFrameClassicalAcceleration(robot.model, data, self.axes, WORLD_AXES).angular
        seen = A @ x_dot  # d' - omega x d
        d_dot = seen + np.cross(omega, d)
        return A.T @ (a - np.cross(alpha, d) - np.cross(omega, d_dot) - np.cross(omega, seen))


class PointsTask(Task):
    """Positions of points in the world, three rows a point."""

    def __init__(
        self,
        robot: Robot,
        points: Sequence[str | int],
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str = "points",
    ) -> None:
        """Select points or links, by name or frame id as in `frame_of`."""
        super().__init__(name, weight, gain)
        if isinstance(points, str):
            raise ConfigError(
                f"task '{name}': a list of points or links is needed, got the single name '{points}': give [{points!r}]"
            )
        self.robot, self.frames = known_robot(robot), [frame_of(robot, what) for what in points]
        self._targets: np.ndarray | None = None
        self._values, self._velocities = np.zeros((len(self.frames), 3)), np.zeros((len(self.frames), 3))
        self._support = np.repeat(
            robot.ancestor_mask[[robot.model.frames[f].parentJoint for f in self.frames]], 3, axis=0
        )
        # Velocity of a point p from a twist at the world origin: [1, -[p]x] (v, omega).
        self._point_of_twist = np.tile(np.hstack([np.eye(3), np.zeros((3, 3))]), (len(self.frames), 1, 1))

    @property
    def targets(self) -> np.ndarray:
        """Desired positions (P, 3) [m]."""
        return self._known(self._targets)

    @targets.setter
    def targets(self, value: np.ndarray) -> None:
        self._put(self._values, "targets", value)
        self._targets = self._values

    @property
    def velocities(self) -> np.ndarray:
        """Desired velocities (P, 3) [m/s]."""
        return self._velocities

    @velocities.setter
    def velocities(self, value: np.ndarray | None) -> None:
        self._put_velocity(self._velocities, value)

    def goal(self) -> TaskGoal:
        return self._goal(self.targets, self._velocities)

    def set_target(self, targets: np.ndarray, velocities: np.ndarray | None = None) -> None:
        """Set the desired positions (P, 3) [m] and velocities (P, 3) [m/s], default zero."""
        self.targets, self.velocities = targets, velocities

    def set_target_from(self, q: np.ndarray) -> None:
        self.set_target(self.robot.frame_positions(q, self.frames))

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return (self.targets - self._positions(data)).ravel()

    def _positions(self, data: pin.Data) -> np.ndarray:
        return np.array([data.oMf[f].translation for f in self.frames])

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p, E = self._positions(data), self._point_of_twist
        E[:, 0, 4], E[:, 0, 5] = p[:, 2], -p[:, 1]
        E[:, 1, 3], E[:, 1, 5] = -p[:, 2], p[:, 0]
        E[:, 2, 3], E[:, 2, 4] = p[:, 1], -p[:, 0]
        J = (E.reshape(-1, 6) @ joint_columns(data)) * self._support
        return J, (self.velocities + self.gain * (self.targets - p)).ravel()

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        a = [pin.getFrameClassicalAcceleration(robot.model, data, f, WORLD_AXES).linear for f in self.frames]
        return np.concatenate(a) if a else np.zeros(0)


# -------- Points with some freedom


def _unit(name: str, direction: Sequence[float]) -> np.ndarray:
    length = float(np.linalg.norm(direction))
    if not length > 0:
        raise ConfigError(f"task '{name}': the direction must have a length, got {list(direction)}")
    return np.array(direction, dtype=float) / length


class LineTask(VectorTask):
    """Point on the line through `through` (3,) [m] along `direction` (3,): two rows [m]."""

    def __init__(
        self,
        robot: Robot,
        point: str | int | Point,
        through: Sequence[float],
        direction: Sequence[float],
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        self.point, label = point_of(robot, point)
        super().__init__(robot, 2, label if name is None else name, weight, gain)
        self.through, self.target = np.array(through, dtype=float), np.zeros(2)
        self.across = np.linalg.svd(_unit(self.name, direction)[None])[2][1:]

    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.across @ (self.point.position(robot, data) - self.through)

    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.across @ self.point.jacobian(robot, data)

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.across @ self.point.drift(robot, data)


class PlaneTask(VectorTask):
    """Point on the plane through `through` (3,) [m] with the normal `normal` (3,): one row [m]."""

    def __init__(
        self,
        robot: Robot,
        point: str | int | Point,
        through: Sequence[float],
        normal: Sequence[float],
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        self.point, label = point_of(robot, point)
        super().__init__(robot, 1, label if name is None else name, weight, gain)
        self.through, self.target = np.array(through, dtype=float), np.zeros(1)
        self.normal = _unit(self.name, normal)

    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return np.array([self.normal @ (self.point.position(robot, data) - self.through)])

    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return (self.normal @ self.point.jacobian(robot, data))[None]

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.array([self.normal @ self.point.drift(robot, data)])


class HalfSpaceTask(Task):
    """Point on the side of a plane to which `normal` points: one row outside, none inside."""

    def __init__(
        self,
        robot: Robot,
        point: str | int | Point,
        through: Sequence[float],
        normal: Sequence[float],
        *,
        weight: float = 1.0,
        gain: float = 30.0,
        name: str | None = None,
    ) -> None:
        self.plane = PlaneTask(robot, point, through, normal, weight=weight, gain=gain, name=name)
        super().__init__(self.plane.name, weight, gain)

    def height(self, robot: Robot, data: pin.Data) -> float:
        """Return the distance of the point from the plane [m]; negative outside."""
        return float(self.plane.normal @ (self.plane.point.position(robot, data) - self.plane.through))

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        h = self.height(robot, data)
        return np.array([-h]) if h < 0 else np.zeros(0)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        e = self.error(robot, data, q)
        if not len(e):
            return np.zeros((0, robot.nv)), e
        return self.plane.jacobian(robot, data, q), self.gain * e

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self.plane.drift(robot, data, q, v)[: len(self.error(robot, data, q))]
