"""Velocity solver: the base of all null-space methods, with what they share.

One tick of closed-loop inverse kinematics (Schwienbacher 2014, Fig. 4.3): rows of the tasks, gradient of the
objectives, a method that resolves the rows (`resolve`), velocity limits, integration; and a ramp of the velocities
where the set of tasks changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import explicit_euler
from humanoid_control.ik.null_space.objectives import Objective
from humanoid_control.ik.solver import StepReport
from humanoid_control.ik.task_rows import Rows, TaskStack
from humanoid_control.ik.tasks.task import Task, TickData
from humanoid_control.jit import kernel
from humanoid_control.numerics.minimum_jerk import PEAK_ACCELERATION, PEAK_SPEED, minimum_jerk
from humanoid_control.robots.robot import Robot

NOT_FINITE = "not a number in the tasks: the robot holds"


@dataclass(frozen=True)
class SwitchSettings:
    """Bounds on what a change of the task set may do to a joint.

    Attributes:
        acceleration: [rad/s^2].
        jerk: [rad/s^3].
        max_time: longest ramp [s].
    """

    acceleration: float = 20.0
    jerk: float = 400.0
    max_time: float = 2.0

    def __post_init__(self) -> None:
        if not (self.acceleration > 0 and self.jerk > 0 and self.max_time > 0):
            raise ConfigError("switching: acceleration, jerk and max_time must be positive")

    def ramp_time(self, jump: float) -> float:
        """Length of the ramp with which a jump of velocity [rad/s] keeps the bounds [s]."""
        by_acceleration = PEAK_SPEED * jump / self.acceleration
        by_jerk = float(np.sqrt(PEAK_ACCELERATION * jump / self.jerk))
        return min(max(by_acceleration, by_jerk), self.max_time)


@dataclass(frozen=True)
class SolverSettings:
    """Settings of all velocity solvers.

    Attributes:
        null_gain: alpha_N, gain of the objectives in the null space (Schwienbacher 2014, eq. 4.12).
        max_gain: a task's gain is held to this share of 1 / dt: up to 1 an error dies away without overshoot, from
            2 on the loop is unstable (4.15 in steps of dt); infinite: gains are taken as they are.
        clamp: keep joint speed limits, by slowing the null-space motion first and all of it after that.
        keep_range: keep joint angles inside their range.
        switch: how the set of tasks may change without a jump of velocity; None: it may jump.
    """

    null_gain: float = 1.0
    max_gain: float = 1.0
    clamp: bool = True
    keep_range: bool = True
    switch: SwitchSettings | None = None

    def __post_init__(self) -> None:
        if not self.null_gain >= 0 or not self.max_gain > 0:
            raise ConfigError(
                f"solver: null_gain >= 0 and max_gain > 0 are needed, got {self.null_gain:g}, {self.max_gain:g}"
            )


@dataclass(frozen=True)
class ResolvedVelocity:
    """The two parts of a velocity (k,): that of the tasks, and that of the objectives in the tasks' null space."""

    task: np.ndarray
    null: np.ndarray
    manipulability: float = float("nan")
    damping: float = 0.0
    ok: bool = True
    note: str = ""


class VelocitySolver(ABC):
    """Base of all solvers from task velocities, with feedback of the task errors, to joint velocities.

    Attributes:
        robot: the robot.
        objectives: null-space objectives; they may change between ticks.
        settings: settings; they may change between ticks.
        dofs: free velocities.
        v: (nv,) velocity of the last tick.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        dofs: DofSelection | None = None,
    ) -> None:
        self.robot, self.objectives = robot, list(objectives)
        self.settings, self.dofs = settings or SolverSettings(), dofs or DofSelection(robot)
        self._data, self._stack = TickData(robot), TaskStack(robot, self.dofs)
        s = self.settings.switch
        self._switching = TaskSwitching(s) if s is not None else None
        self.reset()

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        self.v, self._u = np.zeros(self.robot.nv), np.zeros(self.dofs.k)
        if self._switching is not None:
            self._switching.reset()

    @property
    def data(self) -> pin.Data:
        """Kinematics, Jacobians and frame placements where the last tick began."""
        return self._data.get()

    @abstractmethod
    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        """The free velocities for some rows.

        Args:
            rows: J, priorities.
            v: (m,) desired task velocities.
            z: (k,) free velocities that the objectives desire.
        """

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        """The velocity (nv,) of this tick, without moving; arguments as of `step`."""
        check_time_step(dt, "inverse kinematics")
        r, s, m = self.robot, self.settings, self.dofs
        rows = self._stack.rows(self._data.at(q), q, tasks, s.max_gain / dt)
        z = self._null_velocity(q)
        v_desired = rows.v
        if self._switching is not None:
            if self._switching.changed(tasks):
                at_once = self.resolve(rows, rows.v, z)
                self._switching.start_ramp(tasks, rows, at_once.task + at_once.null, self._u)
            v_desired, z = self._switching.task_velocities(tasks, rows), z + self._switching.fading_velocity(m.k)
        found = self.resolve(rows, v_desired, z)
        u, v, finite, null_scale, speed_scale, residual = apply_velocity_limits(
            found.task, found.null, m.column_of, m.factor, r.velocity, s.clamp, rows.J, v_desired
        )
        ok, note = (found.ok, found.note) if finite else (False, NOT_FINITE)
        self._u, self.v = u, v
        if self._switching is not None:
            self._switching.end_tick(tasks, dt)
        return v, StepReport(ok, residual, found.manipulability, found.damping, null_scale, speed_scale, 1, note)

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) and a report, by explicit Euler (4.16).

        Args:
            q: (nq,) configuration now.
            tasks: to be served.
            dt: [s] > 0.
        """
        v, report = self.velocity(q, tasks, dt)
        return explicit_euler(self.robot, q, v, dt, self.settings.keep_range), v, report

    def _null_velocity(self, q: np.ndarray) -> np.ndarray:
        """z = -alpha_N W^-1 grad H^T (k,)."""
        if not self.objectives:
            return np.zeros(self.dofs.k)
        gradient = np.zeros(self.robot.nv)
        for objective in self.objectives:
            gradient += objective.gradient(self.robot, self.data, q)
        return self.dofs.downhill(self.settings.null_gain, gradient)


# -------- Changes of the task set


class TaskSwitching:
    """Ramp of the joint velocities after a change of the task set (Schwienbacher 2014, section 5.1, after Gienger).

    The motion that a removed task had caused continues in the null space and fades. An added task first desires the
    velocity that it has already, and its own fades in. Both together leave the velocity as it was at the first tick,
    and do not touch the tasks that stay. A change before the ramp is over begins a new one from the velocity of that
    moment; the acceleration may then jump, by no more than the bound.
    """

    def __init__(self, settings: SwitchSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget the tasks and velocities of earlier ticks."""
        self._tasks: list[Task] | None = None
        self._age = self._time = 0.0
        self._offset = np.zeros(0)
        self._added: dict[int, np.ndarray] = {}

    def remaining(self) -> float:
        """Share of the old motion that is still kept: 1 at the change, 0 when the ramp is over."""
        return 0.0 if self._time <= 0 else 1.0 - minimum_jerk(min(self._age / self._time, 1.0))

    def changed(self, tasks: Sequence[Task]) -> bool:
        """True where the set of tasks is another than at the tick before."""
        return self._tasks is not None and {id(t) for t in tasks} != {id(t) for t in self._tasks}

    def start_ramp(self, tasks: Sequence[Task], rows: Rows, u_desired: np.ndarray, u_before: np.ndarray) -> None:
        """Start a ramp.

        Args:
            tasks: tasks of this tick.
            rows: rows of this tick.
            u_desired: (k,) free velocities to which they would lead without a ramp.
            u_before: (k,) those of the tick before.
        """
        known = {id(t) for t in self._tasks or ()}
        if self.remaining() > 0.0:  # tasks that were still fading in continue doing so
            known -= set(self._added)
        parts = zip(tasks, rows.parts, strict=True)
        self._added = {id(t): rows.J[part] @ u_before for t, part in parts if id(t) not in known}
        self._offset = u_before - u_desired
        self._age, self._time = 0.0, self.settings.ramp_time(float(np.abs(self._offset).max(initial=0.0)))

    def task_velocities(self, tasks: Sequence[Task], rows: Rows) -> np.ndarray:
        """Desired velocities of the rows this tick (m,), with added tasks fading in."""
        keep = self.remaining()
        if keep == 0.0:
            return rows.v
        v = rows.v.copy()
        for task, part in zip(tasks, rows.parts, strict=True):
            was = self._added.get(id(task))
            if was is not None and len(was) == part.stop - part.start:
                v[part] += keep * (was - v[part])
        return v

    def fading_velocity(self, k: int) -> np.ndarray:
        """The old velocity (k,) that continues in the null space this tick."""
        keep = self.remaining()
        return keep * self._offset if keep > 0.0 else np.zeros(k)

    def end_tick(self, tasks: Sequence[Task], dt: float) -> None:
        """Remember the tasks and let time pass."""
        self._tasks = list(tasks)
        self._age += dt


# -------- Velocity limits


@kernel
def velocity_scales(task: np.ndarray, null: np.ndarray, limit: np.ndarray) -> tuple[float, float]:
    """Factors (null, all) with |all (task + null_factor null)| <= limit; both 1 where nothing is too fast.

    As much of the null-space motion as fits is kept: it does not touch the tasks, so slowing it costs them nothing.
    Where even without it the task is too fast, all is slowed evenly, which keeps the direction in which tasks move.

    Args:
        task: (n,) part of the velocity that serves the tasks.
        null: (n,) part in their null space.
        limit: (n,) > 0.
    """
    fits = True
    for i in range(limit.shape[0]):
        fits &= abs(task[i] + null[i]) <= limit[i]
    if fits:
        return 1.0, 1.0
    low, high, share = 0.0, 1.0, 1.0
    possible = True
    for i in range(limit.shape[0]):
        if null[i] != 0.0:
            a, b = (limit[i] - task[i]) / null[i], (-limit[i] - task[i]) / null[i]
            low, high = max(low, min(a, b)), min(high, max(a, b))
        else:
            possible &= abs(task[i]) <= limit[i]
        share = min(share, limit[i] / max(abs(task[i]), 1e-300))
    if possible and low <= high:
        return high, 1.0
    return 0.0, share


@kernel
def apply_velocity_limits(
    task: np.ndarray,
    null: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    limit: np.ndarray,
    clamp: bool,
    J: np.ndarray,
    v_desired: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, bool, float, float, float]:
    """The velocity of the tick from its two parts, slowed to the limits, and how far it is from what the tasks desire.

    Args:
        task: (k,) free velocities of the tasks.
        null: (k,) free velocities in the null space.
        column_of: (nv,) see `DofSelection`.
        factor: (nv,) see `DofSelection`.
        limit: (n,) speed limits of the joints, the last n of the nv velocities.
        clamp: whether they are to be kept.
        J: (m, k) Jacobian of the tasks' rows.
        v_desired: (m,) desired values of the tasks' rows.

    Returns:
        u (k,) and v (nv,), zero where an input is not a number; whether all is finite; the factors of
        `velocity_scales`; the length of J u - v_desired.
    """
    n, nv, k = limit.shape[0], column_of.shape[0], task.shape[0]
    u, v = np.empty(k), np.empty(nv)
    null_scale, speed_scale = 1.0, 1.0
    if clamp:
        a, b = np.zeros(n), np.zeros(n)
        for i in range(n):
            c = column_of[nv - n + i]
            if c >= 0:
                a[i], b[i] = factor[nv - n + i] * task[c], factor[nv - n + i] * null[c]
        null_scale, speed_scale = velocity_scales(a, b, limit)
    finite = True
    for c in range(k):
        u[c] = speed_scale * (task[c] + null_scale * null[c])
        finite &= np.isfinite(u[c])
    if not finite:
        u[:] = 0.0
    for i in range(nv):
        v[i] = factor[i] * u[column_of[i]] if column_of[i] >= 0 else 0.0
    square = 0.0
    for i in range(v_desired.shape[0]):
        s = -v_desired[i]
        for c in range(k):
            s += J[i, c] * u[c]
        square += s * s
    return u, v, finite, null_scale, speed_scale, np.sqrt(square)
