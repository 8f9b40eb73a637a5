"""Whole-body inverse kinematics: tasks within limits, one velocity a tick."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import NearPairs
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import check_time_step
from humanoid_control.ik.free_velocities import Bounds, DofSelection
from humanoid_control.ik.integrate import keep_inside
from humanoid_control.ik.limits.limit import ConfigurationLimit, IkState, Limit, SoftRows
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit, default_limits
from humanoid_control.ik.solver import STOP, IkSettings, StepReport
from humanoid_control.ik.task_rows import TaskStack
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask
from humanoid_control.ik.tasks.joints import JointTask, PostureTask
from humanoid_control.ik.tasks.task import Task, TickData, known_robot
from humanoid_control.ik.tick import NUMBERS, CompiledTick
from humanoid_control.ik.velocity_program import (
    SolverArrays,
    add_posture,
    begin_cost,
    fill_cost,
    largest_slack,
    reduce_bounds,
    solve_program,
)
from humanoid_control.numerics.box_program import Guess
from humanoid_control.robots.robot import Robot


class IkStatus(enum.Enum):
    """Outcome of a tick, with its message as value."""

    OPTIMAL = ""
    SLOWED = "slowed: the path to the stop is not clear"
    HOMING = "homing: there is no other way out of a collision"
    STOPPED_BY_PENETRATION = "shapes are inside each other: the robot stops"
    NO_SOLUTION = "no solution: the robot stops"

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class IkReport(StepReport):
    """Report of one tick of the whole-body solver.

    The velocity is brake + `speed_scale` (desired - brake), with the hardest braking as brake; `speed_scale` is below 1
    if the path to the stop is blocked. `note` is the message of the status.
    `task_residual` and `manipulability` are NaN.

    Attributes:
        look: function that finds the pairs `near`.
        rows: number of rows besides bounds.
        slack: violation of the worst row [m/s]; 0 if all are met.
        penetration_depth: depth of the worst pair [m].
        limit_violation: distance of the worst joint outside its range [rad].
    """

    task_residual: float = float("nan")
    status: IkStatus = IkStatus.OPTIMAL
    look: Callable[[], NearPairs] = NearPairs.none
    rows: int = 0
    slack: float = 0.0
    penetration_depth: float = 0.0
    limit_violation: float = 0.0

    @cached_property
    def near(self) -> NearPairs:
        """Pairs near enough to matter at the previous velocity; found on access."""
        return self.look()


class IkResult:
    """Result of one tick; unpacks into (q, v, report). The report is created on access."""

    __slots__ = ("_make", "_report", "ok", "q", "v")

    def __init__(self, q: np.ndarray, v: np.ndarray, ok: bool, make: Callable[[], IkReport]) -> None:
        """Store the result; `make` creates the report."""
        self.q, self.v, self.ok, self._make = q, v, ok, make
        self._report: IkReport | None = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.q, self.v, self.report))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, key: int) -> Any:
        return (self.q, self.v, self.report)[key]

    @property
    def report(self) -> IkReport:
        """Report of the tick."""
        if self._report is None:
            self._report = self._make()
        return self._report

    @property
    def near(self) -> NearPairs:
        """Pairs of shapes considered as rows of the problem."""
        return self.report.near

    @property
    def status(self) -> IkStatus:
        """Outcome: the limit that restricted the robot, if any."""
        return self.report.status


class WholeBodyIk:
    """Weighted least squares over all tasks within limits: joint range, speed, acceleration and self-collision.

    minimise  sum_i w_i^2 |J_i v - v_i|^2 + damping^2 |v|^2 + smoothing^2 |v - v_previous|^2 + slack_weight |s|^2
    subject to  lower <= v <= upper, and A v >= b - s                               of all limits.

    Bounds are always feasible, and slack makes every row feasible. Afterwards the path to the next posture and to the
    stop is checked; if it is blocked, the velocity moves towards braking.

    Attributes:
        limits: limits in order of precedence.
        v: velocity of the last tick (nv,).
    """

    def __init__(
        self,
        robot: Robot,
        settings: IkSettings | None = None,
        limits: Sequence[Limit] | None = None,
        dofs: DofSelection | None = None,
    ) -> None:
        """Build the solver and compile its kernels.

        Args:
            settings: weights, and parameters of the default limits; replaceable between ticks.
            limits: constraints on every velocity; default: `default_limits`.
            dofs: free velocities; default: all.
        """
        self.robot, self.settings, self.dofs = known_robot(robot), settings or IkSettings(), dofs or DofSelection(robot)
        self.limits = default_limits(robot) if limits is None else list(limits)
        self.self_collision = next((m for m in self.limits if isinstance(m, SelfCollisionLimit)), None)
        self._range = next((m for m in self.limits if isinstance(m, ConfigurationLimit)), None)
        self._data, self._stack = TickData(robot), TaskStack(robot, self.dofs)
        k, self._with_rows = self.dofs.k, [m for m in self.limits if m.max_rows(robot)]
        most = sum(m.max_rows(robot) for m in self.limits)
        # One row more than possible: candidates that are dropped are written there.
        rows = SoftRows(np.zeros((most + 1, k)), np.zeros(most + 1), np.ones(most + 1))
        memory = SolverArrays(
            H=np.zeros((k, k)),
            g=np.zeros(k),
            lower=np.empty(robot.nv),
            upper=np.empty(robot.nv),
            brake=np.zeros(robot.nv),
            acceleration=np.zeros(robot.nv),
            dofs=self.dofs.map,
            free=self.dofs.free,
            bounds=Bounds(np.zeros(k), np.zeros(k)),
            rows=rows,
            x=np.zeros(k),
            multipliers=np.zeros(k + most),
            guess=Guess.nothing(k, most + 1),
        )
        self._limited_by: IkSettings | None = None
        self._limits = np.empty(0), np.empty(0)
        self._memory, self._later_rows = Packed(memory), dict[int, SoftRows]()
        self._norm = np.empty(robot.nv), np.empty(robot.nv)  # diagonal and linear cost of v itself
        self._tick: CompiledTick | None = None
        self._tick_limits: list[Limit] | None = None
        self._tick_tasks: list[Task] | None = None
        self._compile()

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the compiled tick, which holds addresses."""
        return vars(self) | {"_tick": None, "_tick_limits": None, "_tick_tasks": None}

    def _compile(self) -> None:
        """Step with every kind of task, so that no later tick waits for the compiler."""
        r = self.robot
        joint = JointTask(r, r.joint_names[:1])
        joint.set_target_from(r.q())
        tasks = [PostureTask(r), AngularMomentumTask(), joint]
        self.reset()
        self.step(r.q(), tasks, 0.01)
        if self._tick is not None:
            self._step_by_step(r.q(), tasks, 0.01)
        self.reset()

    def reset(self) -> None:
        """Discard earlier ticks: the robot is at rest."""
        self.v, guess = np.zeros(self.robot.nv), self._memory.record.guess
        guess.side[:], guess.works[:] = 0, False
        for limit in self.limits:
            limit.reset()

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> IkResult:
        """Compute the next configuration.

        Raises:
            ConfigError: if a target was never set, or dt is not positive and finite.
        """
        check_time_step(dt, "inverse kinematics")
        q = np.ascontiguousarray(q, dtype=float)
        compiled = self._compiled_for(tasks, q, dt)
        outcome = None if compiled is None else compiled.run(q, self.v, dt)
        return self._step_by_step(q, tasks, dt) if outcome is None else self._result(outcome, q, dt)

    @property
    def data(self) -> pin.Data:
        """Kinematics, Jacobians and frame placements at the start of the last tick."""
        return self._data.get()

    # -- in one call --------------------------------------------------------------------------------------------

    def _compiled_for(self, tasks: Sequence[Task], q: np.ndarray, dt: float) -> CompiledTick | None:
        """Return the compiled tick with these tasks; None if it does not support a limit."""
        if self.limits != self._tick_limits:
            known = CompiledTick.knows_limits(self.limits)
            self._tick = CompiledTick(self.robot, self.dofs, self._memory, self.limits) if known else None
            self._tick_limits, self._tick_tasks = list(self.limits), None
        if self._tick is None:
            return None
        if self._tick_tasks is None or self._tick_tasks != (given := list(tasks)):
            given = list(tasks)
            self._tick_tasks = None
            self._tick.follow(given)
            self._tick_tasks = given
        self._tick.fill_foreign_rows(self._data, q, self.settings.max_gain / dt)
        self._tick.configure(self.settings, *self._accelerations())
        return self._tick

    def _result(self, numbers: np.ndarray, q: np.ndarray, dt: float) -> IkResult:
        """Build the result of a compiled tick from q, by its outcome."""
        apart, nq, begun, before = self.self_collision, self.robot.nq, q.copy(), self.v
        self.v = numbers[nq:-NUMBERS]
        self._data.later(begun)
        used, violation = int(numbers[-5]), float(numbers[-1])
        if self._range is not None:
            self._range.violation = violation
        near: Callable[[], NearPairs] = NearPairs.none
        if apart is not None:
            if apart.penetration_depth > 0.0:
                apart.penetration_depth = 0.0
                apart.recovery.reset()
            near = apart.near_later(begun, before, self.settings, self._limits[0], self.v, dt)

        def report() -> IkReport:
            share = float(numbers[-4])
            status = IkStatus.NO_SOLUTION if used < 0 else IkStatus.SLOWED if share < 1.0 else IkStatus.OPTIMAL
            return IkReport(
                used >= 0,
                speed_scale=share,
                iterations=used,
                note=status.value,
                status=status,
                look=near,
                rows=int(numbers[-3]),
                slack=float(numbers[-2]),
                limit_violation=violation,
            )

        return IkResult(numbers[:nq], self.v, used >= 0, report)

    # -- step by step -------------------------------------------------------------------------------------------

    def _step_by_step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> IkResult:
        """Compute the tick for any classes, with recovery from collisions."""
        s, r = self.settings, self.robot
        state = IkState(r, s, self.dofs, self._data.at(q), q, self.v, dt, *self._accelerations())
        for limit in self.limits:
            limit.update(state)
        home = None if self.self_collision is None else self.self_collision.homing_task(state)
        self._fill_cost(state, tasks if home is None else [home])
        self._fill_bounds(state)
        rows = self._fill_rows(state)
        used, apart = solve_program(self._memory.table, rows, 2 * s.slack_weight), self.self_collision
        while used >= 0 and apart is not None:
            more = apart.look_again(apart.near, state, self.dofs.expand(self._memory.record.x))
            if more is apart.near:
                break
            apart.near = more
            rows = self._fill_rows(state)
            used = solve_program(self._memory.table, rows, 2 * s.slack_weight)
        ok = used >= 0
        v, scale, status = self._velocity(state, ok)
        slack = float(largest_slack(self._memory.table, rows, v)) if rows else 0.0
        found = NearPairs.none() if apart is None else apart.near
        near: Callable[[], NearPairs] | None = None
        if apart is not None and apart.exact:
            near = apart.near_later(q.copy(), self.v, s, state.acceleration, v, dt)
        self.v = v
        report = IkReport(
            ok,
            speed_scale=scale,
            iterations=used,
            note=status.value,
            status=status,
            look=near or (lambda: found),
            rows=rows,
            slack=slack,
            penetration_depth=0.0 if apart is None else apart.penetration_depth,
            limit_violation=0.0 if self._range is None else self._range.violation,
        )
        return IkResult(self._integrate(q, dt), v, ok, lambda: report)

    def _accelerations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return acceleration limits (nv,) and braking (n,), updated with the settings."""
        s, r = self.settings, self.robot
        if s is not self._limited_by:
            own = r.accelerations_within(s.acceleration, s.acceleration_scale)
            all_limits = np.concatenate([np.full(r.iv, s.acceleration), own.acceleration])
            self._limited_by, self._limits = s, (all_limits, own.braking)
            self._memory.record.acceleration[:] = all_limits
        return self._limits

    def _velocity(self, state: IkState, ok: bool) -> tuple[np.ndarray, float, IkStatus]:
        """Return the safe part of the solution (nv,), its share, and the status."""
        apart, brake = self.self_collision, self._memory.record.brake
        if not ok:
            return brake.copy(), 0.0, IkStatus.NO_SOLUTION
        v, scale, status = self.dofs.expand(self._memory.record.x), 1.0, IkStatus.OPTIMAL
        if apart is None:
            return v, scale, status
        if apart.penetration_depth > 0 and self.settings.on_penetration == STOP:
            return brake.copy(), 0.0, IkStatus.STOPPED_BY_PENETRATION
        scale = apart.safe_scale(state, brake, v)
        if scale < 1.0:
            v, status = brake + scale * (v - brake), IkStatus.SLOWED
        return v, scale, IkStatus.HOMING if apart.recovery.is_homing else status

    def _integrate(self, q: np.ndarray, dt: float) -> np.ndarray:
        r = self.robot
        q_next = pin.integrate(r.model, q, self.v * dt)
        joints = q_next[r.iq :]
        keep_inside(q[r.iq :], r.lower, r.upper, joints)
        if r.mimic:
            r.follow(joints)
        return q_next

    def _fill_cost(self, state: IkState, tasks: Sequence[Task]) -> None:
        s, q, memory = self.settings, state.q, self._memory.table
        diagonal, linear = self._norm
        begin_cost(self.v, s.damping, s.smoothing, diagonal, linear)
        max_gain = s.max_gain / state.dt
        for task in tasks:
            if type(task) is PostureTask:
                gain = min(task.gain, max_gain)
                add_posture(task.weights, task.posture, q, float(task.weight), gain, diagonal, linear)
        rows = self._stack.rows(state.data, q, [t for t in tasks if type(t) is not PostureTask], max_gain)
        fill_cost(memory, rows.J, rows.v, diagonal, linear)

    def _fill_bounds(self, state: IkState) -> None:
        """Fill the bounds and the velocity of hardest braking."""
        m = self._memory.record
        m.lower[:], m.upper[:] = -np.inf, np.inf
        for limit in self.limits:
            limit.tighten(state, m.lower, m.upper)
        reduce_bounds(self._memory.table, self.v, self.robot.iv, state.dt)

    def _fill_rows(self, state: IkState) -> int:
        """Fill the rows within those bounds and return their number."""
        m, count = self._memory.record, 0
        for limit in self._with_rows:
            out = m.rows
            if count:  # same object for the same count, so that limits may cache data of it
                out = self._later_rows.setdefault(count, SoftRows(*(a[count:] for a in m.rows)))
            count += limit.free_rows(state, m.bounds, out)
        return count
