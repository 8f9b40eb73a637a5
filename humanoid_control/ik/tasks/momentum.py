"""Momentum tasks: the linear or angular momentum about the centre of mass that a robot should have now."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.tasks.task import Task
from humanoid_control.robots.robot import Robot


class MomentumTask(Task):
    """Have a given momentum, J v = reference, along some axes of the world.

    Momentum belongs to the velocity, so the reference is reached within a tick or not at all: there is no error that
    builds up, and no gain.

    Attributes:
        reference: (3,) momentum to have; set it anew for each tick.
        axes: (3,) which of x, y, z count.
        parts: which rows of pinocchio's centroidal map it is about.
    """

    parts: slice

    def __init__(self, name: str, reference: Sequence[float], axes: Sequence[bool], weight: float) -> None:
        super().__init__(name, weight, 0.0)
        self.axes = np.array(axes, dtype=bool)
        if self.axes.shape != (3,):
            raise ConfigError(f"task '{name}': axes must be three truth values, got {len(self.axes)}")
        self.reference = reference

    @property
    def reference(self) -> np.ndarray:
        return self._reference

    @reference.setter
    def reference(self, value: Sequence[float] | np.ndarray) -> None:
        new = np.array(value, dtype=float)
        if new.shape != (3,) or not np.isfinite(new).all():
            raise ConfigError(f"task '{self.name}': reference must be three finite numbers, got {value}")
        self._reference = new

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        A = np.array(pin.computeCentroidalMap(robot.model, data, q).reshape(6, -1)[self.parts])
        return A[self.axes], self._reference[self.axes]

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """Nothing is missing at a configuration: momentum is a matter of velocity."""
        return np.zeros(int(self.axes.sum()))

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        dA = pin.computeCentroidalMapTimeVariation(robot.model, robot.model.createData(), q, v).reshape(6, -1)
        return np.asarray((dA @ v)[self.parts][self.axes])


class AngularMomentumTask(MomentumTask):
    """Have a given angular momentum about the centre of mass [kg m^2/s] (Schwienbacher 2014, eq. (7.2))."""

    parts = slice(3, 6)

    def __init__(
        self,
        reference: Sequence[float] = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (False, False, True),
        weight: float = 1.0,
    ) -> None:
        """Make the task; without arguments: no momentum about the vertical."""
        super().__init__("angular momentum", reference, axes, weight)


class LinearMomentumTask(MomentumTask):
    """Have a given linear momentum M dc/dt [kg m/s].

    With the reference M (dc_ref/dt + k (c_ref - c)) it moves the centre of mass to c_ref.
    """

    parts = slice(0, 3)

    def __init__(
        self,
        reference: Sequence[float] = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (True, True, True),
        weight: float = 1.0,
    ) -> None:
        super().__init__("linear momentum", reference, axes, weight)
