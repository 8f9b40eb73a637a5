"""Tasks that leave a point some freedom: on a line, on a plane, on one side of a plane (Schwienbacher 2014, 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.points import Point, point_of
from humanoid_control.ik.tasks.task import Task, VectorTask
from humanoid_control.robots.robot import Robot


def _unit(name: str, direction: Sequence[float]) -> np.ndarray:
    length = float(np.linalg.norm(direction))
    if not length > 0:
        raise ConfigError(f"task '{name}': the direction must have a length, got {list(direction)}")
    return np.array(direction, dtype=float) / length


class LineTask(VectorTask):
    """Bring a point onto the line through `through` (3,) [m] along `direction` (3,): two rows [m]."""

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
    """Bring a point onto the plane through `through` (3,) [m] with the normal `normal` (3,): one row [m]."""

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
    """Keep a point on the side of a plane to which `normal` shows: one row while it is outside, none inside."""

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
        """Distance of the point from the plane [m]; negative outside."""
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
