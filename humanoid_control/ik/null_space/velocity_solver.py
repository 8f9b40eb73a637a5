"""Base of all null-space velocity solvers.

One tick (Schwienbacher 2014, Fig. 4.3): task rows, objectives, resolution of the rows, velocity limits, integration. A
ramp smooths changes of the task set.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError, check_time_step
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import explicit_euler
from humanoid_control.ik.null_space.objectives import Objective
from humanoid_control.ik.solver import StepReport
from humanoid_control.ik.task_rows import Rows, TaskStack
from humanoid_control.ik.tasks.task import Task, TickData
from humanoid_control.numerics.minimum_jerk import PEAK_ACCELERATION, PEAK_SPEED, minimum_jerk
from humanoid_control.robots.robot import Robot

NOT_FINITE = "not a number in the tasks: the robot holds"


@dataclass(frozen=True)
class SwitchSettings:
    """Bounds of joint motion after a change of the task set.

    Attributes:
        acceleration: [rad/s^2].
        jerk: [rad/s^3].
    """

    acceleration: float = 20.0
    jerk: float = 400.0
    max_time: float = 2.0

    def __post_init__(self) -> None:
        if not (self.acceleration > 0 and self.jerk > 0 and self.max_time > 0):
            raise ConfigError("switching: acceleration, jerk and max_time must be positive")

    def ramp_time(self, jump: float) -> float:
        """Return the ramp time [s] for which a velocity jump [rad/s] keeps the bounds."""
        # Peaks of a minimum-jerk ramp of unit height: slope 1.875 / T, curvature 5.77 / T^2.
        by_acceleration = PEAK_SPEED * jump / self.acceleration
        by_jerk = float(np.sqrt(PEAK_ACCELERATION * jump / self.jerk))
        return min(max(by_acceleration, by_jerk), self.max_time)


@dataclass(frozen=True)
class SolverSettings:
    """Settings of all velocity solvers.

    Attributes:
        null_gain: alpha_N (Schwienbacher 2014, eq. 4.12).
        max_gain: limit of task gains as a share of 1 / dt: up to 1 without overshoot, from 2 on unstable (4.15).
        clamp: keep joint speed limits by slowing null-space motion first, then all motion.
        switch: ramp after task changes; None: the velocity may jump.
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
    """Velocity (k,) of the tasks, and of the objectives in the null space."""

    task: np.ndarray
    null: np.ndarray
    manipulability: float = float("nan")
    damping: float = 0.0
    ok: bool = True
    note: str = ""


class VelocitySolver(ABC):
    """Base of solvers from task velocities, with feedback of task errors, to joint velocities."""

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
        """Discard the state of earlier ticks."""
        self.v, self._u = np.zeros(self.robot.nv), np.zeros(self.dofs.k)
        if self._switching is not None:
            self._switching.reset()

    @property
    def data(self) -> pin.Data:
        """Kinematics, Jacobians and frame placements at the start of the last tick."""
        return self._data.get()

    @abstractmethod
    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> ResolvedVelocity:
        """Compute the free velocities.

        Args:
            z: desired free velocities of the objectives (k,).
        """

    def velocity(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, StepReport]:
        """Return the velocity (nv,) of this tick and a report, without moving."""
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
        """Return the next configuration (nq,), the velocity (nv,) and a report, by explicit Euler (4.16)."""
        v, report = self.velocity(q, tasks, dt)
        return explicit_euler(self.robot, q, v, dt, self.settings.keep_range), v, report

    def _null_velocity(self, q: np.ndarray) -> np.ndarray:
        if not self.objectives:
            return np.zeros(self.dofs.k)
        gradient = np.zeros(self.robot.nv)
        for objective in self.objectives:
            gradient += objective.gradient(self.robot, self.data, q)
        return self.dofs.downhill(self.settings.null_gain, gradient)


# -------- Changes of the task set


class TaskSwitching:
    """Ramp of joint velocities after a change of the task set (Schwienbacher 2014, section 5.1, after Gienger).

    The motion of a removed task fades in the null space; the desired velocity of an added task fades in from its
    present one. Changes during a ramp start a new one; the acceleration may then jump within the bound.
    """

    def __init__(self, settings: SwitchSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Discard the tasks and velocities of earlier ticks."""
        self._tasks: list[Task] | None = None
        self._age = self._time = 0.0
        self._offset = np.zeros(0)
        self._added: dict[int, np.ndarray] = {}

    def remaining(self) -> float:
        """Share of the old motion: 1 at the change, 0 after the ramp."""
        return 0.0 if self._time <= 0 else 1.0 - minimum_jerk(min(self._age / self._time, 1.0))

    def changed(self, tasks: Sequence[Task]) -> bool:
        """True if the set of tasks differs from the previous tick."""
        return self._tasks is not None and {id(t) for t in tasks} != {id(t) for t in self._tasks}

    def start_ramp(self, tasks: Sequence[Task], rows: Rows, u_desired: np.ndarray, u_before: np.ndarray) -> None:
        """Start a ramp."""
        known = {id(t) for t in self._tasks or ()}
        if self.remaining() > 0.0:  # tasks that still fade in continue to do so
            known -= set(self._added)
        parts = zip(tasks, rows.parts, strict=True)
        self._added = {id(t): rows.J[part] @ u_before for t, part in parts if id(t) not in known}
        self._offset = u_before - u_desired
        self._age, self._time = 0.0, self.settings.ramp_time(float(np.abs(self._offset).max(initial=0.0)))

    def task_velocities(self, tasks: Sequence[Task], rows: Rows) -> np.ndarray:
        """Return the desired row velocities (m,), with added tasks fading in."""
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
        """Return the old velocity (k,) that continues in the null space."""
        keep = self.remaining()
        return keep * self._offset if keep > 0.0 else np.zeros(k)

    def end_tick(self, tasks: Sequence[Task], dt: float) -> None:
        """Store the tasks and advance the time."""
        self._tasks = list(tasks)
        self._age += dt


# -------- Velocity limits


@kernel
def velocity_scales(task: np.ndarray, null: np.ndarray, limit: np.ndarray) -> tuple[float, float]:
    """Return factors (null, all) with |all (task + null_factor null)| <= limit.

    If the task part alone is too fast, all motion is scaled.
    """
    fits = True
    for i in range(limit.shape[0]):
        fits &= abs(task[i] + null[i]) <= limit[i]
    if fits:
        return 1.0, 1.0
    low, high, share = 0.0, 1.0, 1.0
    possible = True
    # Intersect the intervals of null factors that each joint allows.
    for i in range(limit.shape[0]):
        if null[i] != 0.0:
            a, b = (limit[i] - task[i]) / null[i], (-limit[i] - task[i]) / null[i]
            low, high = max(low, min(a, b)), min(high, max(a, b))
        else:
            possible &= abs(task[i]) <= limit[i]
        # Factor for the task part alone.
        share = min(share, limit[i] / max(abs(task[i]), 1e-300))
    # As much null-space motion as all joints allow.
    if possible and low <= high:
        return high, 1.0
    return 0.0, share


@kernel(allocates=True)
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
    """Combine both parts of the velocity, slowed to the limits.

    Args:
        task: free velocities of the tasks (k,).
        null: free velocities in the null space (k,).
        limit: speed limits of the last n of nv velocities (n,).

    Returns:
        u (k,) and v (nv,), zero for non-finite input; whether all is finite; factors of `velocity_scales`; |J u -
        v_desired|.
    """
    n, nv, k = limit.shape[0], column_of.shape[0], task.shape[0]
    u, v = np.empty(k), np.empty(nv)
    null_scale, speed_scale = 1.0, 1.0
    # Scale in joint space: a free velocity may move several joints at different ratios.
    if clamp:
        a, b = np.zeros(n), np.zeros(n)
        for i in range(n):
            c = column_of[nv - n + i]
            if c >= 0:
                a[i], b[i] = factor[nv - n + i] * task[c], factor[nv - n + i] * null[c]
        null_scale, speed_scale = velocity_scales(a, b, limit)
    finite = True
    # Non-finite input stops the robot.
    for c in range(k):
        u[c] = speed_scale * (task[c] + null_scale * null[c])
        finite &= np.isfinite(u[c])
    if not finite:
        u[:] = 0.0
    # v = S u
    for i in range(nv):
        v[i] = factor[i] * u[column_of[i]] if column_of[i] >= 0 else 0.0
    square = 0.0
    # Residual of the rows after slowing.
    for i in range(v_desired.shape[0]):
        s = -v_desired[i]
        for c in range(k):
            s += J[i, c] * u[c]
        square += s * s
    return u, v, finite, null_scale, speed_scale, np.sqrt(square)
