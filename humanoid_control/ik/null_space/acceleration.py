"""Resolved acceleration: resolved rate one derivative higher (Schwienbacher 2014, 4.3.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import check_time_step
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import keep_inside
from humanoid_control.ik.null_space.least_squares import DEPENDENT, rescue_damping
from humanoid_control.ik.null_space.objectives import Objective
from humanoid_control.ik.null_space.velocity_solver import SolverSettings
from humanoid_control.ik.null_space.weighted_step import weighted_step
from humanoid_control.ik.solver import StepReport
from humanoid_control.ik.tasks.task import Task, prepare_second_order
from humanoid_control.robots.robot import Robot


class ResolvedAcceleration:
    """Solver from task accelerations to joint accelerations (4.20), integrated by trapezoids (4.21).

    Task space: a = J# (x'' + K_v (x' - J v) + K_x e - J' v), with the critically damped loop K_x = k^2, K_v = 2 k of a
    task gain k <= max_gain / dt. In the null space v converges to the velocity -alpha_N W^-1 grad H^T of the
    objectives, or to rest.

    Attributes:
        null_damping: convergence rate of the null-space velocity [1/s].
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
        null_damping: float = 10.0,
    ) -> None:
        self.robot, self.objectives = robot, list(objectives)
        self.settings, self.dofs = settings or SolverSettings(), dofs or DofSelection(robot)
        self.null_damping, self.data = null_damping, robot.model.createData()
        self.reset()

    def reset(self) -> None:
        """Start from rest."""
        self.v, self.acceleration = np.zeros(self.robot.nv), np.zeros(self.robot.nv)

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """Compute the next configuration, its velocity and a report; see `IkSolver.step`."""
        check_time_step(dt, "inverse kinematics")
        r, s, m = self.robot, self.settings, self.dofs
        prepare_second_order(r, self.data, q, self.v)
        J, a_desired = self._rows(q, tasks, dt)
        gradient = np.zeros(r.nv)
        for objective in self.objectives:
            gradient += objective.gradient(r, self.data, q)
        u_desired = -s.null_gain * m.mobility * m.reduce(gradient)
        u = self.v[m.free]
        # A rate above 1 / dt would overshoot within one tick.
        z = min(self.null_damping, 1.0 / dt) * (u_desired - u)
        task, null, w, ok = weighted_step(J, a_desired, m.mobility, z)
        # Dependent rows: repeat with just enough damping to factorise.
        damping = 0.0
        if not ok or not w > 0.0:
            damping, ok = max(rescue_damping(J, m.mobility), 1e-12), False
            task, null, _, _ = weighted_step(J, a_desired, m.mobility, z, damping)
        a, note = task + null, "" if ok else DEPENDENT
        if not np.isfinite(a).all():
            a, ok, note = -u / dt, False, "not a number in the tasks: the robot stops"
        v_next, scale = m.expand(u + a * dt), 1.0
        if s.clamp:
            scale = min(1.0, float(np.min(r.velocity / np.maximum(np.abs(v_next[r.iv :]), 1e-300), initial=1.0)))
            v_next = scale * v_next
        # Trapezoidal rule (4.21).
        v_mean = 0.5 * (self.v + v_next)
        q_next = pin.integrate(r.model, q, v_mean * dt)
        if s.keep_range:
            self._keep_range(q, q_next, v_next)
        r.follow(q_next[r.iq :])
        residual = float(np.linalg.norm(J @ a - a_desired))
        self.acceleration, self.v = (v_next - self.v) / dt, v_next
        return q_next, v_next, StepReport(ok, residual, w, damping, 1.0, scale, 1, note)

    def _rows(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray]:
        r, Js, desired = self.robot, [], []
        for task in tasks:
            J, v = task.rows(r, self.data, q)
            if task.weight == 0.0:
                continue
            error = task.error(r, self.data, q)
            k = min(task.gain, self.settings.max_gain / dt)
            v_error = v - task.gain * error - J @ self.v
            a = 2 * k * v_error + k * k * error - task.drift(r, self.data, q, self.v)
            if task.acceleration is not None:
                a = a + task.acceleration
            Js.append(task.weight * J)
            desired.append(task.weight * a)
        if not Js:
            return np.zeros((0, self.dofs.k)), np.zeros(0)
        return self.dofs.reduce(np.concatenate(Js)), np.concatenate(desired)

    def _keep_range(self, q: np.ndarray, q_next: np.ndarray, v_next: np.ndarray) -> None:
        r, joints = self.robot, q_next[self.robot.iq :]
        free = joints.copy()
        keep_inside(q[r.iq :], r.lower, r.upper, joints)
        v_next[r.iv :][joints != free] = 0.0
