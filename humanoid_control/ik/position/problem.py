"""Tasks as one residual r(q) = f(q) - x, with its Jacobian and how often each was computed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.tasks import Task, prepare
from humanoid_control.robots import Robot


class Problem:
    """Residual and Jacobian of some tasks, by the free velocities.

    Orientation rows have the geometric Jacobian. It differs from the derivative of the angle-axis error by a factor
    that leaves the error's own direction alone; the gradient J^T r is therefore exact, far from the target too.

    Attributes:
        residuals, jacobians: how often each was computed.
    """

    def __init__(self, robot: Robot, tasks: Sequence[Task], moving: Moving, data: pin.Data) -> None:
        self.robot, self.tasks = robot, [t for t in tasks if t.weight > 0]
        self.moving, self.data = moving, data
        self.residuals = self.jacobians = 0

    def residual(self, q: np.ndarray) -> np.ndarray:
        """r (m,), weighted."""
        self.residuals += 1
        prepare(self.robot, self.data, q)
        return self._residual(q)

    def _residual(self, q: np.ndarray) -> np.ndarray:
        parts = [-t.weight * t.error(self.robot, self.data, q) for t in self.tasks]
        return np.concatenate(parts) if parts else np.zeros(0)

    def both(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """r (m,) and J (m, k)."""
        r = self.residual(q)
        self.jacobians += 1
        if not len(r):
            return r, np.zeros((0, self.moving.k))
        J = np.concatenate([t.weight * t.rows(self.robot, self.data, q)[0] for t in self.tasks])
        return r, self.moving.reduce(J)

    def moved(self, q: np.ndarray, step: np.ndarray) -> np.ndarray:
        """The configuration a step (k,) of the free velocities away."""
        return pin.integrate(self.robot.model, q, self.moving.expand(step))
