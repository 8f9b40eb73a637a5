"""What all velocity solvers share: rows, objectives, speed limits, integration. How rows are resolved differs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.ik.objectives import Objective
from humanoid_control.ik.solvers.clamp import settle
from humanoid_control.ik.solvers.integrate import explicit_euler
from humanoid_control.ik.solvers.interface import SolverSettings, StepReport
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.ik.solvers.stack import TaskStack
from humanoid_control.ik.solvers.switching import Switching
from humanoid_control.ik.tasks import Task, prepare
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class Resolved:
    """The two parts of a velocity (k,): for the tasks, and the objectives' within what the tasks leave."""

    task: np.ndarray
    null: np.ndarray
    manipulability: float = float("nan")
    damping: float = 0.0
    ok: bool = True
    note: str = ""


class VelocitySolver(ABC):
    """One tick of closed-loop inverse kinematics (Fig. 4.3): task velocities with drift correction to joint velocities.

    Attributes:
        robot, objectives, settings, moving: what it was made with; objectives and settings may change between ticks.
        v: (nv,) velocity of the last tick.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
    ) -> None:
        self.robot, self.objectives = robot, list(objectives)
        self.settings, self.moving = settings or SolverSettings(), moving or Moving(robot)
        self.data = robot.model.createData()
        self._stack = TaskStack(robot, self.moving)
        s = self.settings.switch
        self._switching = Switching(s) if s is not None else None
        self.reset()

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        self.v, self._u = np.zeros(self.robot.nv), np.zeros(self.moving.k)
        if self._switching is not None:
            self._switching.reset()

    @abstractmethod
    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        """The free velocities for some rows.

        Args:
            rows: J, priorities.
            v: (m,) task velocities that are wanted.
            z: (k,) free velocities that the objectives want.
        """

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        """The velocity (nv,) of this tick, without moving; arguments as of `step`."""
        r, s, m = self.robot, self.settings, self.moving
        prepare(r, self.data, q)
        rows = self._stack.rows(self.data, q, tasks, s.gain_share / dt)
        z = self._wished(q)
        wanted = rows.v
        if self._switching is not None:
            if self._switching.changed(tasks):
                at_once = self.resolve(rows, rows.v, z)
                self._switching.begin(tasks, rows, at_once.task + at_once.null, self._u)
            wanted, z = self._switching.blended(tasks, rows), z + self._switching.leftover(m.k)
        got = self.resolve(rows, wanted, z)
        u, v = np.empty(m.k), np.empty(r.nv)
        finite, null_scale, speed_scale, unserved = settle(
            got.task, got.null, m.column_of, m.factor, r.velocity, s.clamp, rows.J, wanted, u, v
        )
        ok, note = (got.ok, got.note) if finite else (False, "not a number in the tasks: the robot holds")
        self._u, self.v = u, v
        if self._switching is not None:
            self._switching.end_tick(tasks, dt)
        return v, StepReport(ok, unserved, got.manipulability, got.damping, null_scale, speed_scale, 1, note)

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) and a report, by explicit Euler (4.16).

        Args:
            q: (nq,) where the robot is.
            tasks: what to do.
            dt: [s] > 0.
        """
        v, report = self.velocity(q, tasks, dt)
        return explicit_euler(self.robot, q, v, dt, self.settings.keep_range), v, report

    def _wished(self, q: np.ndarray) -> np.ndarray:
        """z = -alpha_N W^-1 grad H^T (k,)."""
        if not self.objectives:
            return np.zeros(self.moving.k)
        gradient = np.zeros(self.robot.nv)
        for objective in self.objectives:
            gradient += objective.gradient(self.robot, self.data, q)
        return self.moving.downhill(self.settings.null_gain, gradient)
