"""What every task is: rows of J v = v_desired, an error, and what second-order solvers ask for besides."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.robots.robot import Robot

PROBE = 1e-4  # [s] how far along a velocity the Jacobian is looked at, where a task does not know its drift


class Task(ABC):
    """One wish. The solver minimises weight^2 |J v - v_desired|^2 summed over the tasks.

    Attributes:
        name: for reports.
        weight: how much it counts against the others; units make rows comparable (1 / (m/s), 1 / (rad/s)).
        gain: how fast an error decays [1/s].
        level: priority for solvers that know strict ones: 0 is served first, the next in what 0 leaves free.
        acceleration: (m,) acceleration that is wanted besides the feedback, for second-order solvers; None: zero.
    """

    level: int = 0
    acceleration: np.ndarray | None = None

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

    def drift(self, robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The rows' acceleration dJ/dt v (m,) while the joints do not accelerate, eq. (4.18).

        This general form looks at the Jacobian a little ahead and behind; tasks that know better say so. `data` must
        hold the velocities too (`prepare_second_order`).
        """
        there = robot.model.createData()
        Jv = []
        for sign in (1.0, -1.0):
            at = pin.integrate(robot.model, q, sign * PROBE * v)
            prepare(robot, there, at)
            Jv.append(self.rows(robot, there, at)[0] @ v)
        return (Jv[0] - Jv[1]) / (2 * PROBE)


class VectorTask(Task):
    """A task whose value is a vector of numbers x = f(q), so that its error is a plain difference.

    Attributes:
        target: (m,) where the value should be. velocity: (m,) how fast it should move there.
    """

    def __init__(self, name: str, target: np.ndarray, weight: float, gain: float) -> None:
        super().__init__(name, weight, gain)
        self.target = np.array(target, dtype=float).reshape(-1)
        self.velocity = np.zeros(len(self.target))

    @abstractmethod
    def value(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """f(q), (m,)."""

    @abstractmethod
    def jacobian(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """df / dv, (m, nv)."""

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        return self.target - self.value(robot, data, q)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.jacobian(robot, data, q), self.velocity + self.gain * self.error(robot, data, q)


def prepare(robot: Robot, data: pin.Data, q: np.ndarray) -> None:
    """Compute in `data` what tasks ask for at the configuration q."""
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)


def prepare_second_order(robot: Robot, data: pin.Data, q: np.ndarray, v: np.ndarray) -> None:
    """The same, and the accelerations of all links while the joints move at v and do not accelerate."""
    pin.forwardKinematics(robot.model, data, q, v, np.zeros(robot.nv))
    prepare(robot, data, q)
