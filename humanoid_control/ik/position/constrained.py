"""Constrained goals: tasks inside joint ranges, half-spaces and clearances (after Badler's JACK)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.position.solver import PositionSolver, Solution, Stop, StopSettings, TaskResidual
from humanoid_control.ik.tasks.points import HalfSpaceTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.robots.robot import Robot, joint_columns

UNBOUNDED = 1e30
SLACK_WEIGHT = 1e6  # slack weight of a row that no step satisfies; large relative to J^T J
PENALTY = 2.0  # factor of the largest multiplier so far: weight of violations in the merit function
NEGLIGIBLE = 1e-8  # [m] violation that counts as none: rounding of the programs would hide the last small steps


class Inequality(Protocol):
    """Constraint h(q) >= 0 of any number of rows."""

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return h (p,) and dh/dv (p, nv), with `data` from `prepare`."""
        ...


class HalfSpaceConstraint:
    """Constraint that keeps a point on one side of a plane."""

    def __init__(self, task: HalfSpaceTask) -> None:
        self.task = task

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([self.task.height(robot, data)]), self.task.plane.jacobian(robot, data, q)


class ClearanceConstraint:
    """Constraint that keeps all pairs of shapes apart."""

    def __init__(self, robot: Robot, margin: float = 0.01, horizon: float = 0.15) -> None:
        self.margin, self.horizon, self.pairs = margin, horizon, robot.collision_monitor()
        self._at_rest = self.pairs.largest_margins(robot)

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        near = self.pairs.update(q, self.horizon)
        if not len(near):
            return np.zeros(0), np.zeros((0, robot.nv))
        return near.distance - np.minimum(self.margin, self._at_rest[near.pair]), near.gradient(joint_columns(data))


class ConstrainedGoals(PositionSolver):
    """Solver of the best posture inside the joint ranges and all constraints.

    Sequential quadratic programming: Gauss-Newton goals with an adapted mu E, linearised constraints, exact ranges.
    Steps must lower 1/2 |r|^2 + penalty * (sum of the violations). The penalty is twice the largest multiplier so far.
    """

    def __init__(
        self,
        robot: Robot,
        constraints: Sequence[Inequality] = (),
        stop: StopSettings | None = None,
        dofs: DofSelection | None = None,
    ) -> None:
        super().__init__(robot, stop, dofs)
        self.constraints = list(constraints)
        m, r = self.dofs, robot
        lower, upper = np.full(r.nv, -UNBOUNDED), np.full(r.nv, UNBOUNDED)
        lower[r.iv :], upper[r.iv :] = r.range_within(UNBOUNDED)
        self._lower, self._upper = lower[m.free], upper[m.free]

    def _constraints(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        found = [c.rows(self.robot, self.data, q) for c in self.constraints]
        h = np.concatenate([f[0] for f in found]) if found else np.zeros(0)
        G = np.concatenate([f[1] for f in found]) if found else np.zeros((0, self.robot.nv))
        return h, self.dofs.reduce(G)

    def _range(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        x = np.concatenate([np.zeros(self.robot.iv), q[self.robot.iq :]])[self.dofs.free]
        return self._lower - x, self._upper - x

    def solve(self, q: np.ndarray, tasks: Sequence[Task]) -> Solution:
        """Iterate from q (nq,), which may violate the constraints and is clipped to the joint ranges."""
        q = np.array(q)
        joints = q[self.robot.iq :]
        joints[:] = np.clip(joints, self.robot.lower, self.robot.upper)
        problem = TaskResidual(self.robot, tasks, self.dofs, self.data)
        mu, penalty, k, previous = 1e-3, 1.0, 0, None
        r, J = problem.residual_and_jacobian(q)
        h, G = self._constraints(q)
        history = [float(np.linalg.norm(r))]
        end: Stop | None = None
        while end is None:
            d, multiplier, ok = self._program(q, J, r, h, G, mu)
            penalty = max(penalty, PENALTY * multiplier)
            there = problem.moved(q, d)
            np.clip(there[self.robot.iq :], self.robot.lower, self.robot.upper, out=there[self.robot.iq :])
            r_there, J_there = problem.residual_and_jacobian(there)
            h_there, G_there = self._constraints(there)
            k += 1
            if ok and np.isfinite(r_there).all() and _merit(r_there, h_there, penalty) < _merit(r, h, penalty):
                previous, q, r, J, h, G = r, there, r_there, J_there, h_there, G_there
                mu = max(mu / 5, 1e-9)
                history.append(float(np.linalg.norm(r)))
                if float(h.min(initial=0.0)) >= -NEGLIGIBLE:
                    end = self.stop.fired(k, r, previous, d)
            else:
                mu *= 8
                end = Stop.PROGRESS if mu > 1e10 else None
            if end is None and k >= self.stop.iterations:
                end = Stop.ITERATIONS
        return Solution(q, history[-1], k, end, tuple(history), problem.residuals, problem.jacobians)

    def _program(
        self, q: np.ndarray, J: np.ndarray, r: np.ndarray, h: np.ndarray, G: np.ndarray, mu: float
    ) -> tuple[np.ndarray, float, bool]:
        """Return the minimiser (k,) of 1/2 |r + J d|^2 + mu/2 |d|^2 with h + G d >= 0 and joints in range.

        Also return the largest multiplier, and validity.
        """
        H = J.T @ J
        H[np.diag_indices_from(H)] += mu
        low, high = self._range(q)
        d, multipliers = np.empty(len(low)), np.empty(len(low) + len(h))
        G, g = np.ascontiguousarray(G), np.ascontiguousarray(J.T @ r)
        done = solve_box_qp(BoxQp(H, g, low, high, G, -h), len(h), SLACK_WEIGHT, d, multipliers)
        multiplier = float(np.abs(multipliers[len(low) :]).max(initial=0.0))
        return d, multiplier, done >= 0 and bool(np.isfinite(d).all())


def _merit(r: np.ndarray, h: np.ndarray, penalty: float) -> float:
    return 0.5 * float(r @ r) + penalty * float(np.sum(np.maximum(-h - NEGLIGIBLE, 0.0)))
