"""Speed limits: the null-space motion gives way first, then everything, and the direction of the task stays.

Also here:

* Tasks that come and go at run time without a jump of the joint velocities (source: section 5.1, after Gienger).
* The one interface of all solvers, and what a tick reports.
* What all velocity solvers share: rows, objectives, speed limits, integration. How rows are resolved differs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import explicit_euler
from humanoid_control.ik.null_space.objectives import Objective
from humanoid_control.ik.task_rows import Rows, TaskStack
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.jit import kernel
from humanoid_control.robots.robot import Robot

# -------- Speed limits: the null-space motion gives way first, then everything, and the direction of the task stays


@kernel
def slowed(task: np.ndarray, null: np.ndarray, limit: np.ndarray) -> tuple[float, float]:
    """Factors (null, all) with |all (task + null_factor null)| <= limit; both 1 where nothing is too fast.

    As much of the null-space motion as fits is kept: it does not touch the tasks, so slowing it costs them nothing.
    Where even without it the task is too fast, all is slowed evenly, which keeps the direction in which tasks move.

    Args:
        task, null: (n,) the two parts of the velocity.
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
def settle(
    task: np.ndarray,
    null: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    limit: np.ndarray,
    clamp: bool,
    J: np.ndarray,
    wanted: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
) -> tuple[bool, float, float, float]:
    """From the two parts of the free velocities to the velocity of the tick, and what it leaves unserved.

    Args:
        task, null: (k,) free velocities.
        column_of, factor: (nv,) of DofSelection.
        limit: (n,) speed limits of the joints, the last n of the nv velocities.
        clamp: whether they are to be kept.
        J, wanted: (m, k), (m,) the tasks' rows.
        u, v: (k,), (nv,) filled; zero where an input is not a number.

    Returns:
        whether all is finite, the factors of `slowed`, and the length of J u - wanted.
    """
    n, nv, k = limit.shape[0], v.shape[0], u.shape[0]
    null_scale, speed_scale = 1.0, 1.0
    if clamp:
        a, b = np.zeros(n), np.zeros(n)
        for i in range(n):
            c = column_of[nv - n + i]
            if c >= 0:
                a[i], b[i] = factor[nv - n + i] * task[c], factor[nv - n + i] * null[c]
        null_scale, speed_scale = slowed(a, b, limit)
    finite = True
    for c in range(k):
        u[c] = speed_scale * (task[c] + null_scale * null[c])
        finite &= np.isfinite(u[c])
    if not finite:
        u[:] = 0.0
    for i in range(nv):
        v[i] = factor[i] * u[column_of[i]] if column_of[i] >= 0 else 0.0
    square = 0.0
    for i in range(wanted.shape[0]):
        s = -wanted[i]
        for c in range(k):
            s += J[i, c] * u[c]
        square += s * s
    return finite, null_scale, speed_scale, np.sqrt(square)


# -------- Tasks that come and go at run time without a jump of the joint velocities (source: section 5.1

STEEPEST, BENT = 1.875, 5.7735  # largest slope and curvature of the smooth step, for a ramp of length 1


@dataclass(frozen=True)
class SwitchSettings:
    """Bounds on what a change of the task set may do to a joint.

    Attributes:
        acceleration: [rad/s^2]. jerk: [rad/s^3].
        longest: the ramp takes at the most this long [s].
    """

    acceleration: float = 20.0
    jerk: float = 400.0
    longest: float = 2.0

    def __post_init__(self) -> None:
        if not (self.acceleration > 0 and self.jerk > 0 and self.longest > 0):
            raise ConfigError("switching: acceleration, jerk and longest must be positive")

    def ramp_time(self, jump: float) -> float:
        """How long the ramp must be so that a jump of velocity [rad/s] keeps the bounds [s]."""
        return min(max(STEEPEST * jump / self.acceleration, float(np.sqrt(BENT * jump / self.jerk))), self.longest)


def smooth_step(x: float) -> float:
    """From 0 to 1 with no slope and no curvature at either end."""
    x = min(max(x, 0.0), 1.0)
    return x * x * x * (10.0 + x * (6.0 * x - 15.0))


class Switching:
    """What is left over of the velocity before a change, and how it fades.

    A task that leaves frees motion: what the joints did for it goes on in the null space and fades. A task that comes
    wants motion: it first wants what it gets already, and its own wish fades in. Both together leave the velocity as
    it was at the first tick, and the tasks that stay never notice. A change before the ramp is over begins a new one
    from the velocity of that moment; the acceleration may then jump, by no more than the bound.
    """

    def __init__(self, settings: SwitchSettings) -> None:
        self.settings = settings
        self.reset()

    def reset(self) -> None:
        """Forget the tasks and velocities of earlier ticks."""
        self._tasks: list[Task] | None = None
        self._age = self._time = 0.0
        self._left = np.zeros(0)
        self._new: dict[int, np.ndarray] = {}
        self._before: np.ndarray | None = None

    def fading(self) -> float:
        """Share of the old motion that is still kept, 1 at the change, 0 when it is over."""
        return 0.0 if self._time <= 0 else 1.0 - smooth_step(self._age / self._time)

    def changed(self, tasks: Sequence[Task]) -> bool:
        """Whether the set of tasks is another than at the tick before."""
        return self._tasks is not None and {id(t) for t in tasks} != {id(t) for t in self._tasks}

    def begin(self, tasks: Sequence[Task], rows: Rows, wanted: np.ndarray, before: np.ndarray) -> None:
        """Start a ramp.

        Args:
            tasks, rows: those of this tick.
            wanted: (k,) the free velocities they would lead to at once.
            before: (k,) those of the tick before.
        """
        known = {id(t) for t in self._tasks or ()}
        if self.fading() > 0.0:  # those that were still coming go on coming
            known -= set(self._new)
        mine = zip(tasks, rows.parts, strict=True)
        self._new = {id(t): rows.J[part] @ before for t, part in mine if id(t) not in known}
        self._left = before - wanted
        self._age, self._time = 0.0, self.settings.ramp_time(float(np.abs(self._left).max(initial=0.0)))

    def blended(self, tasks: Sequence[Task], rows: Rows) -> np.ndarray:
        """What the rows want this tick (m,), with new tasks fading in."""
        keep = self.fading()
        if keep == 0.0:
            return rows.v
        v = rows.v.copy()
        for task, part in zip(tasks, rows.parts, strict=True):
            was = self._new.get(id(task))
            if was is not None and len(was) == part.stop - part.start:
                v[part] += keep * (was - v[part])
        return v

    def leftover(self, k: int) -> np.ndarray:
        """Velocity (k,) that goes on in the null space this tick."""
        keep = self.fading()
        return keep * self._left if keep > 0.0 else np.zeros(k)

    def end_tick(self, tasks: Sequence[Task], dt: float) -> None:
        """Remember the tasks and let time pass."""
        self._tasks = list(tasks)
        self._age += dt


# -------- The one interface of all solvers, and what a tick reports


@dataclass(frozen=True)
class SolverSettings:
    """What differential solvers have in common.

    Attributes:
        null_gain: alpha_N, how eagerly the null space lowers the objectives (4.12).
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
class StepReport:
    """What became of one tick.

    Attributes:
        ok: the answer is what the method promises; if not, `note` says what was done instead.
        unserved: length of J v - v_desired over all rows, weighted: what the tasks wanted and did not get this tick.
        manipulability: sqrt(det(J W^-1 J^T)) of the weighted rows; NaN where the method does not compute it.
        damping: lambda in use.
        null_scale, speed_scale: factors by which the null-space motion, and then everything, was slowed.
        iterations: 1 for differential methods.
        note: one line for the log, or empty.
    """

    ok: bool = True
    unserved: float = 0.0
    manipulability: float = float("nan")
    damping: float = 0.0
    null_scale: float = 1.0
    speed_scale: float = 1.0
    iterations: int = 1
    note: str = ""


class IkSolver(Protocol):
    """Whatever turns tasks into the next configuration."""

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> tuple[np.ndarray, np.ndarray, StepReport]:
        """The next configuration (nq,), the velocity (nv,) that leads there, and a report.

        Args:
            q: (nq,) where the robot is.
            tasks: what to do; with their `level` where the solver knows priorities.
            dt: [s] > 0.
        """
        ...

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        ...


# -------- What all velocity solvers share: rows, objectives, speed limits, integration. How rows are resolved differs


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
        robot, objectives, settings, dofs: what it was made with; objectives and settings may change between ticks.
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
        self.data = robot.model.createData()
        self._stack = TaskStack(robot, self.dofs)
        s = self.settings.switch
        self._switching = Switching(s) if s is not None else None
        self.reset()

    def reset(self) -> None:
        """Forget what earlier ticks left."""
        self.v, self._u = np.zeros(self.robot.nv), np.zeros(self.dofs.k)
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
        r, s, m = self.robot, self.settings, self.dofs
        prepare(r, self.data, q)
        rows = self._stack.rows(self.data, q, tasks, s.max_gain / dt)
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
            return np.zeros(self.dofs.k)
        gradient = np.zeros(self.robot.nv)
        for objective in self.objectives:
            gradient += objective.gradient(self.robot, self.data, q)
        return self.dofs.downhill(self.settings.null_gain, gradient)
