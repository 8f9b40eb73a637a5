"""One tick: near pairs, cost of the tasks, bounds and rows of the limits, solution, check of the path to the stop.

`tick` is one compiled call. It pauses where a custom limit has its turn, and continues after it. Custom tasks add their
rows before it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairsFound
from humanoid_control.compiled.array_types import F1, I1, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.ik.integrate import Integration, advance
from humanoid_control.ik.limits.collision_recovery import (
    GRADIENT,
    HOMING,
    RecoveryState,
    homing_gain,
    reset_recovery,
    update_recovery,
)
from humanoid_control.ik.limits.idle_joints import IdleJoints, ReturnRule, hold_joints
from humanoid_control.ik.limits.limit import (
    JointSides,
    RangeLimits,
    RangeSpeeds,
    keep_configuration,
    keep_sides,
    keep_slow,
    keep_speed,
)
from humanoid_control.ik.limits.self_collision import (
    PATH_SHARE,
    CollisionLaw,
    PairRows,
    fill_pair_rows,
    watch_faster_pairs,
    watch_pairs,
)
from humanoid_control.ik.limits.stopping_path import Braking, PathArrays, max_safe_scale
from humanoid_control.ik.task_table import GoalTable, TableArrays, fill_rows
from humanoid_control.ik.tasks.task import TaskGoal
from humanoid_control.ik.velocity_program import (
    SolverArrays,
    add_posture,
    begin_cost,
    fill_cost,
    largest_slack,
    reduce_bounds,
    solve_program,
)
from humanoid_control.kinematics.joint_limits import JointLimits, keep_acceleration
from humanoid_control.robots.self_collision import MonitorArrays

# Steps of `order`: one for each limit, then REDUCE. NOTHING stands for a limit that is switched off.
NOTHING, SPEED, APART, IDLE, SIDE, RANGE, ACCELERATION, CUSTOM, REDUCE = range(9)
# Numbers at the end of an outcome, of these meanings.
ITERATIONS, SHARE, ROWS, SLACK, VIOLATION, DEPTH, STAGE = range(7)
NUMBERS = 7
NEAR, CUSTOM_ROWS = range(2)  # places in `counts`


class TickTables(NamedTuple):
    """Packed records and values of one tick.

    Attributes:
        with_pairs: keep pairs of shapes apart.
        exact: the pairs are measured by `monitor`; otherwise they are in `found` before the tick.
        swept: check the path to the stop.
        stops: brake in penetration.
        order: steps of the bounds, in order of precedence.
        counts: number of near pairs and of custom rows (2,).
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
    recovery: Table[RecoveryState]
    with_pairs: bool
    exact: bool
    swept: bool
    stops: bool
    order: I1
    counts: I1
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
    recovery_timeout: float
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
def tick(table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, begin: int, out: np.ndarray) -> int:
    """Compute one tick, or its part up to the next custom limit.

    Args:
        begin: step of `order` to continue at; 0: a new tick.
        out: next q (nq,), v (nv,) and NUMBERS numbers, filled.

    Returns:
        Step of the custom limit whose turn it is; the length of `order` at the end of the tick.
    """
    t, numbers = unpack(table, TickTables), out[q.shape[0] + v.shape[0] :]
    if begin == 0:
        t.counts[CUSTOM_ROWS] = 0
        numbers[VIOLATION] = numbers[DEPTH] = numbers[STAGE] = 0.0
        if t.with_pairs:
            watch(table, q, v, dt, numbers)
        fill_task_cost(table, q, v, dt, numbers[STAGE] != GRADIENT)
    step = fill_bounds(table, q, v, dt, begin, numbers)
    if step == t.order.shape[0]:
        solve(table, q, v, dt, out, numbers)
    return step


@kernel
def watch(table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, numbers: np.ndarray) -> None:
    """Find the near pairs, and update the recovery by the deepest one; fill its DEPTH [m] and STAGE."""
    t, closest = unpack(table, TickTables), np.inf
    n = t.numbers
    if t.exact:
        law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.acceleration, GRADIENT)
        t.counts[NEAR] = watch_pairs(t.monitor, q, v, law, n.activation)
    for r in range(t.counts[NEAR]):
        closest = min(closest, t.found.distance[r])
    if closest < 0.0:
        update_recovery(t.recovery, closest, q, n.recovery_timeout, dt)
        numbers[DEPTH], numbers[STAGE] = -closest, unpack(t.recovery, RecoveryState).stage[0]
    else:
        reset_recovery(t.recovery)


@kernel(allocates=True)
def found_pairs(found: PairsFound, count: int) -> PairsFound:
    """Return a view of the first `count` pairs."""
    first = PairsFound(
        found.pair[:count], found.distance[:count], found.normal[:count], found.point_1[:count], found.point_2[:count]
    )
    return first


@kernel
def fill_task_cost(table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, homing: bool) -> None:
    """Fill the cost of all tasks, or of homing; call after `watch`."""
    t = unpack(table, TickTables)
    n, rows = t.numbers, unpack(t.tasks, TableArrays)
    # A gain above 1 / dt would overshoot within one tick.
    max_gain = n.max_gain / dt
    begin_cost(v, n.damping, n.smoothing, t.diagonal, t.linear)
    # The rows of pairs need the joint twists that this computes, also while homing.
    fill_rows(t.tasks, q, max_gain, t.exact)
    if homing:
        # One posture replaces all tasks.
        home, rows.J[:, :] = unpack(t.recovery, RecoveryState).home, 0.0
        gain = min(homing_gain(t.recovery, q, n.joint_recovery_speed), max_gain)
        add_posture(home.velocity, home.target, q, home.numbers[0], gain, t.diagonal, t.linear)
    else:
        for k in range(t.goals.shape[0]):
            goal = unpack(unpack(t.goals[k], GoalTable).words, TaskGoal)
            gain = min(goal.numbers[1], max_gain)
            add_posture(goal.velocity, goal.target, q, goal.numbers[0], gain, t.diagonal, t.linear)
    fill_cost(t.program, rows.J, rows.v, t.diagonal, t.linear)


@kernel(allocates=True)
def fill_bounds(
    table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, begin: int, numbers: np.ndarray
) -> int:
    """Tighten the bounds by the steps of `order` from `begin` to the next custom limit, and return its step.

    Fills the worst range violation [rad]. REDUCE computes the bounds of the free velocities, and hardest braking.
    """
    t, depth = unpack(table, TickTables), numbers[DEPTH]
    n, program, iv = t.numbers, unpack(t.program, SolverArrays), v.shape[0] - t.limits.lower.shape[0]
    lower, upper = program.lower, program.upper
    if begin == 0:
        # No bounds before the first limit.
        for c in range(v.shape[0]):
            lower[c], upper[c] = -np.inf, np.inf
    # Later limits have precedence.
    for step in range(begin, t.order.shape[0]):
        kind = t.order[step]
        if kind == CUSTOM:
            return step
        if kind == SPEED:
            keep_speed(t.limits.velocity, n.velocity_scale, n.base_velocity, lower, upper)
        elif kind == APART and depth > 0.0:
            keep_slow(n.recovery_joint_speed, lower[iv:], upper[iv:])
        elif kind == IDLE and depth == 0.0:
            rule = ReturnRule(min(n.idle_gain, n.max_gain / dt), n.joint_recovery_speed, n.idle_start * dt, n.margin)
            found = found_pairs(t.found, t.counts[NEAR])
            hold_joints(t.idle, q, v, rule, found, lower, upper)
        elif kind == SIDE:
            keep_sides(t.sides, q, dt, lower, upper)
        elif kind == RANGE:
            speeds = RangeSpeeds(n.joint_recovery_speed, n.recovery_joint_speed, n.range_ease)
            numbers[VIOLATION] = keep_configuration(t.range, q, dt, speeds, v, lower, upper)
        elif kind == ACCELERATION:
            keep_acceleration(lower[iv:], upper[iv:], v[iv:], t.acceleration[iv:], dt)
        elif kind == REDUCE:
            reduce_bounds(t.program, v, iv, dt)
    return t.order.shape[0]


@kernel(allocates=True)
def solve(
    table: Table[TickTables], q: np.ndarray, v: np.ndarray, dt: float, out: np.ndarray, numbers: np.ndarray
) -> None:
    """Solve the program within its bounds and rows, slow down if the path to the stop is blocked, and integrate."""
    t = unpack(table, TickTables)
    n, program, near = t.numbers, unpack(t.program, SolverArrays), t.counts[NEAR]
    stage, desired, iv = int(numbers[STAGE]), np.empty(v.shape[0]), v.shape[0] - t.limits.lower.shape[0]
    rows, used, again, share = t.counts[CUSTOM_ROWS], 0, True, 1.0
    # Repeat while the solution is so fast that further pairs come within their activation distance.
    while again:
        # Rows use decelerations of free velocities, the monitor those of all velocities.
        if t.with_pairs:
            law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.free_acceleration, stage)
            twists, found = unpack(t.tasks, TableArrays).twists, found_pairs(t.found, near)
            rows = fill_pair_rows(t.pair_rows, found, twists, law, t.counts[CUSTOM_ROWS])
        used = solve_program(t.program, rows, 2.0 * n.slack_weight)
        again, dofs = False, program.dofs
        for c in range(v.shape[0]):
            desired[c] = dofs.factor[c] * program.x[dofs.column[c]] if dofs.column[c] >= 0 else 0.0
        if t.exact and used >= 0 and stage == GRADIENT:
            law = CollisionLaw(n.margin, n.barrier_gain, n.pair_recovery_speed, t.acceleration, GRADIENT)
            more = watch_faster_pairs(t.monitor, iv, desired, law, n.activation, dt, near)
            again, near = more > near, more
    if used < 0 or (t.stops and numbers[DEPTH] > 0.0):
        # No solution, or none wanted: brake at the acceleration limits.
        share, desired[:] = 0.0, program.brake
    elif t.exact and t.swept and stage <= HOMING:
        # Scale between braking and the solution so that the path to the stop keeps part of the margin.
        braking = Braking(dt, t.acceleration[iv:], PATH_SHARE * n.margin)
        share = max_safe_scale(t.path, q, program.brake[iv:], desired[iv:], braking)
        if share < 1.0:
            for c in range(v.shape[0]):
                desired[c] = program.brake[c] + share * (desired[c] - program.brake[c])
    # Violation of the rows after slowing.
    numbers[SLACK] = largest_slack(t.program, rows, desired) if rows > 0 else 0.0
    numbers[ITERATIONS], numbers[SHARE], numbers[ROWS] = used, share, rows
    advance(t.integration, q, desired, dt, out)
