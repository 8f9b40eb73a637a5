"""Tick in one compiled call, for the known classes of limits; other classes of tasks add their rows before it.

`WholeBodyIk` handles other classes of limits, and shapes in penetration, step by step with the same kernels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairsFound
from humanoid_control.compiled.array_types import F1, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import Integration, advance
from humanoid_control.ik.limits.idle_joints import START, IdleJointLimit, IdleJoints, ReturnRule, hold_joints
from humanoid_control.ik.limits.limit import (
    AccelerationLimit,
    ConfigurationLimit,
    JointSideLimit,
    JointSides,
    Limit,
    RangeLimits,
    RangeSpeeds,
    VelocityLimit,
    keep_configuration,
    keep_sides,
    keep_speed,
)
from humanoid_control.ik.limits.self_collision import (
    GRADIENT,
    PATH_SHARE,
    CollisionLaw,
    PairRows,
    SelfCollisionLimit,
    fill_pair_rows,
    watch_faster_pairs,
    watch_pairs,
)
from humanoid_control.ik.limits.stopping_path import Braking, PathArrays, max_safe_scale
from humanoid_control.ik.solver import IkSettings
from humanoid_control.ik.task_rows import stacked
from humanoid_control.ik.task_table import GoalTable, PackedGoals, TableArrays, TaskTable, fill_rows, is_tabled
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import Task, TaskGoal, TickData
from humanoid_control.ik.velocity_program import (
    SolverArrays,
    add_posture,
    begin_cost,
    fill_cost,
    largest_slack,
    reduce_bounds,
    solve_program,
)
from humanoid_control.kinematics.forward_kinematics import WorldPoses
from humanoid_control.kinematics.joint_limits import JointLimits, keep_acceleration
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import MonitorArrays, ShapePairs

SPEED, APART, IDLE, SIDE, RANGE, ACCELERATION = range(6)
KINDS: dict[type[Limit], int] = {
    VelocityLimit: SPEED,
    SelfCollisionLimit: APART,
    IdleJointLimit: IDLE,
    JointSideLimit: SIDE,
    ConfigurationLimit: RANGE,
    AccelerationLimit: ACCELERATION,
}
METHODS = ("update", "tighten", "rows", "free_rows")
OWN = {kind: [getattr(kind, name) for name in METHODS] for kind in KINDS}
PENETRATING = 1
NUMBERS = 5  # iterations, share of the velocity, rows, slack, range violation: the end of an outcome
NO_TABLE: Any = np.zeros(1, dtype=np.int64)  # stands for a table that the solver does not have
PAIR_TABLES = ("monitor", "path", "pair_rows")


class TickTables(NamedTuple):
    """Packed records and values of one tick.

    Attributes:
        swept: check the path to the stop.
        goals: goals of the PostureTasks (`PackedGoals`).
        acceleration: acceleration limits (nv,).
        diagonal: quadratic cost of the velocity (nv,).
    """

    program: Table[SolverArrays]
    tasks: Table[TableArrays]
    range: Table[RangeLimits]
    idle: Table[IdleJoints]
    sides: Table[JointSides]
    monitor: Table[MonitorArrays]
    path: Table[PathArrays]
    pair_rows: Table[PairRows]
    with_pairs: bool
    swept: bool
    order: I1
    goals: I2
    found: PairsFound
    acceleration: F1
    free_acceleration: F1
    diagonal: F1
    linear: F1
    limits: JointLimits
    integration: Integration
    numbers: TickNumbers


class TickNumbers(NamedTuple):
    """Numbers of IkSettings, and of the return of idle joints."""

    damping: float
    smoothing: float
    velocity_scale: float
    base_velocity: float
    joint_recovery_speed: float
    recovery_joint_speed: float
    range_ease: float
    margin: float
    activation: float
    barrier_gain: float
    pair_recovery_speed: float
    slack_weight: float
    max_gain: float
    idle_gain: float
    idle_start: float


# -------- Kernels


@kernel(allocates=True)
def tick(table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, out: np.ndarray) -> int:
    """Compute one tick.

    Args:
        out: next q (nq,), v (nv,) and NUMBERS numbers, filled.

    Returns:
        0, or PENETRATING: then nothing is filled.
    """
    t = unpack(table, TickTables)
    # Shapes in penetration need the recovery, which is not compiled.
    near = watch(t, q, v) if t.with_pairs else 0
    if near < 0:
        return PENETRATING
    fill_task_cost(t, q, v, dt)
    violation = fill_bounds(t, q, v, dt, near)
    rows, used, again = 0, 0, True
    n, program = t.numbers, unpack(t.program, SolverArrays)
    share, desired, iv = 1.0, np.empty(v.shape[0]), v.shape[0] - t.limits.lower.shape[0]
    # Repeat while the solution is so fast that further pairs come within their activation distance.
    while again:
        # Rows use decelerations of free velocities, the monitor those of all velocities.
        if t.with_pairs:
            law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.free_acceleration, GRADIENT)
            found = found_pairs(t.found, near)
            rows = fill_pair_rows(t.pair_rows, found, unpack(t.tasks, TableArrays).twists, law)
        used = solve_program(t.program, rows, 2.0 * n.slack_weight)
        again, dofs = False, program.dofs
        for c in range(v.shape[0]):
            desired[c] = dofs.factor[c] * program.x[dofs.column[c]] if dofs.column[c] >= 0 else 0.0
        if t.with_pairs and used >= 0:
            law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.acceleration, GRADIENT)
            more = watch_faster_pairs(t.monitor, iv, desired, law, n.activation, dt, near)
            again, near = more > near, more
    if used < 0:
        # No solution: brake at the acceleration limits.
        share, desired[:] = 0.0, program.brake
    else:
        if t.with_pairs and t.swept:
            # Scale between braking and the solution so that the path to the stop keeps part of the margin.
            braking = Braking(dt, t.acceleration[iv:], PATH_SHARE * n.margin)
            share = max_safe_scale(t.path, q, program.brake[iv:], desired[iv:], braking)
            if share < 1.0:
                for c in range(v.shape[0]):
                    desired[c] = program.brake[c] + share * (desired[c] - program.brake[c])
    # Violation of the rows after slowing.
    slack = largest_slack(t.program, rows, desired) if rows > 0 else 0.0
    advance(t.integration, q, desired, dt, out)
    last = q.shape[0] + v.shape[0]
    out[last], out[last + 1], out[last + 2] = used, share, rows
    out[last + 3], out[last + 4] = slack, violation
    return 0


@kernel
def watch(t: TickTables, q: np.ndarray, v: np.ndarray) -> int:
    """Return the number of possible rows at q; -1 in penetration."""
    n = t.numbers
    law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.acceleration, GRADIENT)
    count = watch_pairs(t.monitor, q, v, law, n.activation)
    for r in range(count):
        if t.found.distance[r] < 0.0:
            return -1
    return count


@kernel(allocates=True)
def found_pairs(found: PairsFound, count: int) -> PairsFound:
    """Return a view of the first `count` pairs."""
    first = PairsFound(
        found.pair[:count], found.distance[:count], found.normal[:count], found.point_1[:count], found.point_2[:count]
    )
    return first


@kernel
def fill_task_cost(t: TickTables, q: np.ndarray, v: np.ndarray, dt: float) -> None:
    """Fill the cost of all tasks; call after `watch`."""
    n, rows = t.numbers, unpack(t.tasks, TableArrays)
    begin_cost(v, n.damping, n.smoothing, t.diagonal, t.linear)
    for k in range(t.goals.shape[0]):
        goal = unpack(unpack(t.goals[k], GoalTable).words, TaskGoal)
        # A gain above 1 / dt would overshoot within one tick.
        gain = min(goal.numbers[1], n.max_gain / dt)
        add_posture(goal.velocity, goal.target, q, goal.numbers[0], gain, t.diagonal, t.linear)
    fill_rows(t.tasks, q, n.max_gain / dt, t.with_pairs)
    fill_cost(t.program, rows.J, rows.v, t.diagonal, t.linear)


@kernel(allocates=True)
def fill_bounds(t: TickTables, q: np.ndarray, v: np.ndarray, dt: float, near: int) -> float:
    """Fill the bounds of all limits in order, and the braking velocity; return the worst range violation [rad]."""
    n, program, violation = t.numbers, unpack(t.program, SolverArrays), 0.0
    lower, upper, iv = program.lower, program.upper, v.shape[0] - t.limits.lower.shape[0]
    # No bounds before the first limit.
    for c in range(v.shape[0]):
        lower[c], upper[c] = -np.inf, np.inf
    # Later limits have precedence.
    for kind in t.order:
        if kind == SPEED:
            keep_speed(t.limits.velocity, n.velocity_scale, n.base_velocity, lower, upper)
        elif kind == IDLE:
            rule = ReturnRule(min(n.idle_gain, n.max_gain / dt), n.joint_recovery_speed, n.idle_start * dt, n.margin)
            found = found_pairs(t.found, near)
            hold_joints(t.idle, q, v, rule, found, lower, upper)
        elif kind == SIDE:
            keep_sides(t.sides, q, dt, lower, upper)
        elif kind == RANGE:
            speeds = RangeSpeeds(n.joint_recovery_speed, n.recovery_joint_speed, n.range_ease)
            violation = keep_configuration(t.range, q, dt, speeds, v, lower, upper)
        elif kind == ACCELERATION:
            keep_acceleration(lower[iv:], upper[iv:], v[iv:], t.acceleration[iv:], dt)
    reduce_bounds(t.program, v, iv, dt)
    return violation


# -------- The tick of a solver


class CompiledTick:
    """Compiled tick of known tasks and limits, packed once."""

    def __init__(
        self, robot: Robot, dofs: DofSelection, program: Packed[SolverArrays], limits: Sequence[Limit]
    ) -> None:
        """Prepare for the limits of a solver; call `follow` and `configure` next."""
        self.robot, self._dofs, self._program = robot, dofs, program
        self._apart = next((m for m in limits if type(m) is SelfCollisionLimit), None)
        self.idle = next((m for m in limits if type(m) is IdleJointLimit), None)
        sides = next((m for m in limits if type(m) is JointSideLimit), None)
        self._sides = NO_TABLE if sides is None else sides.packed.table
        self._settings: IkSettings | None = None
        self._idle_key: tuple[bool | None, float] = (None, 0.0)
        self._order = np.array([KINDS[type(m)] for m in limits], dtype=np.int64)
        self._norm, self._size = (np.empty(robot.nv), np.empty(robot.nv)), robot.nq + robot.nv + NUMBERS
        self._world: WorldPoses | None = None
        self._found, self._pair_tables = PairsFound.buffer(0), dict.fromkeys(PAIR_TABLES, NO_TABLE)
        if self._apart is not None:
            apart, monitor, record = self._apart, self._apart.monitor, program.record
            assert isinstance(monitor, ShapePairs) and apart.path is not None
            rows = Packed(apart.pair_rows(dofs, record.bounds, record.rows))
            self._kept, self._world, self._found = rows, monitor.poses.world, monitor.arrays.found
            packed: list[Packed[Any]] = [monitor.packed, apart.path.packed, rows]
            self._pair_tables = {name: p.table for name, p in zip(PAIR_TABLES, packed, strict=True)}

    @staticmethod
    def knows_limits(limits: Sequence[Limit]) -> bool:
        """Return True if all limits have different compiled kinds, without replaced methods, and shapes are exact."""
        kinds = [type(m) for m in limits]
        exact = all(isinstance(m.monitor, ShapePairs) for m in limits if isinstance(m, SelfCollisionLimit))
        own = all(k in OWN and [getattr(k, name) for name in METHODS] == OWN[k] for k in kinds)
        return exact and own and len(set(kinds)) == len(kinds)

    def follow(self, tasks: Sequence[Task]) -> None:
        """Set the tasks of the next ticks.

        Raises:
            ConfigError: if the target of a task was never set.
        """
        postures = [t for t in tasks if type(t) is PostureTask]
        self._foreign = [t for t in tasks if type(t) is not PostureTask and not is_tabled(t)]
        self._tasks = TaskTable(self.robot, self._dofs, [t for t in tasks if is_tabled(t)], self._world)
        self._goals = PackedGoals(postures)
        self._settings = None

    def fill_foreign_rows(self, data: TickData, q: np.ndarray, max_gain: float) -> None:
        """Fill the rows of the tasks that compute them by themselves, at q (nq,); call before `configure`."""
        if not self._foreign:
            return
        rows, table = stacked(self.robot, data.at(q), q, self._foreign, self._dofs, max_gain), self._tasks
        if len(rows.v) != table.foreign:
            table = self._tasks = TaskTable(self.robot, self._dofs, table.tasks, self._world, len(rows.v))
            self._settings = None
        arrays = table.packed.record
        arrays.J[table.rows :], arrays.v[table.rows :] = rows.J, rows.v

    def configure(self, settings: IkSettings, acceleration: np.ndarray, braking: np.ndarray) -> None:
        """Set the settings and the limits of `IkState` after `follow`; unchanged packed records are kept."""
        r, apart, idle, s = self.robot, self._apart, self.idle, settings
        key = (None, 0.0) if idle is None else (idle.enabled, idle.gain)
        if s is self._settings and key == self._idle_key:
            return
        self._settings, self._idle_key = s, key
        limits = JointLimits(r.lower, r.upper, r.velocity)
        self._range = Packed(RangeLimits(limits, acceleration[r.iv :].copy(), braking))
        weights = {name: float(getattr(s, name)) for name in TickNumbers._fields if hasattr(s, name)}
        numbers = TickNumbers(**weights, idle_gain=0.0 if idle is None else float(idle.gain), idle_start=START)
        order = self._order if idle is None or idle.enabled else self._order[self._order != IDLE]
        self._packed = Packed(
            TickTables(
                program=self._program.table,
                tasks=self._tasks.packed.table,
                range=self._range.table,
                idle=NO_TABLE if idle is None else idle.packed.table,
                sides=self._sides,
                **self._pair_tables,
                with_pairs=apart is not None,
                swept=s.swept,
                order=order,
                goals=self._goals.table,
                found=self._found,
                acceleration=acceleration,
                free_acceleration=self._dofs.reduce_limits(acceleration),
                diagonal=self._norm[0],
                linear=self._norm[1],
                limits=limits,
                integration=Integration.of(r),
                numbers=numbers,
            )
        )

    def run(self, q: np.ndarray, v: np.ndarray, dt: float) -> np.ndarray | None:
        """Return the outcome (nq + nv + NUMBERS,) of `tick` after dt [s]; None in penetration."""
        out = np.empty(self._size)
        return None if tick(self._packed.table, q, v, dt, out) == PENETRATING else out
