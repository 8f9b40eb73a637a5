"""How far a task is from a singularity, as a number and as a cost (section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.ik.objectives.base import Objective
from humanoid_control.ik.tasks.base import Task, prepare
from humanoid_control.robots import Robot

STEP = 1e-6  # of the finite differences


def manipulability(J: np.ndarray) -> float:
    """Yoshikawa's measure sqrt(det(J J^T)), the product of the singular values (4.22); 0 for a tall J."""
    if J.shape[0] > J.shape[1]:
        return 0.0
    return float(np.sqrt(max(np.linalg.det(J @ J.T), 0.0)))


def condition_number(J: np.ndarray) -> float:
    """Largest over smallest singular value; infinite where the rows depend on each other."""
    sigma = np.linalg.svd(J, compute_uv=False)
    if not len(sigma) or J.shape[0] > J.shape[1] or sigma[-1] <= np.finfo(float).eps * sigma[0] * max(J.shape):
        return float("inf")
    return float(sigma[0] / sigma[-1])


class ManipulabilityCost(Objective):
    """H = -weight w(q), so that minimising it leads away from the singularities of some tasks.

    The gradient is by central differences over the joints that are given: two forward kinematics a joint, some 10 us
    each. For a floating base name the joints of the limb; the base would make every limb look regular.
    """

    def __init__(
        self, robot: Robot, tasks: Sequence[Task], joints: Sequence[str] | None = None, weight: float = 1.0
    ) -> None:
        """Make the cost.

        Args:
            robot: whose.
            tasks: whose stacked Jacobian is measured.
            joints: the joints by which the tasks are to be done; default: all.
            weight: of the measure.

        Raises:
            UnknownNameError: a joint the robot does not have.
        """
        self.tasks, self.weight = list(tasks), weight
        names = robot.joint_names if joints is None else joints
        self.columns = np.array([robot.iv + robot.joint_index(n) for n in names], dtype=int)
        self._data = robot.model.createData()

    def measure(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        """w(q)."""
        J = np.vstack([t.weight * t.rows(robot, data, q)[0] for t in self.tasks])
        return manipulability(J[:, self.columns])

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return -self.weight * self.measure(robot, data, q)

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out, dv = np.zeros(robot.nv), np.zeros(robot.nv)
        for k in self.columns:
            w = []
            for sign in (1.0, -1.0):
                dv[k] = sign * STEP
                there = pin.integrate(robot.model, q, dv)
                prepare(robot, self._data, there)
                w.append(self.measure(robot, self._data, there))
            dv[k] = 0.0
            out[k] = -self.weight * (w[0] - w[1]) / (2 * STEP)
        return out
