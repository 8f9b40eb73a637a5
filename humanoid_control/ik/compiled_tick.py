"""Tick of a solver: its tasks and limits packed for the kernel, and the turns of custom ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from humanoid_control.collision.pair_distance import NearPairs, PairsFound
from humanoid_control.compiled.packed import Packed
from humanoid_control.errors import ConfigError
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.integrate import Integration
from humanoid_control.ik.limits.idle_joints import START, IdleJointLimit
from humanoid_control.ik.limits.limit import (
    AccelerationLimit,
    ConfigurationLimit,
    IkState,
    JointSideLimit,
    Limit,
    RangeLimits,
    SoftRows,
    VelocityLimit,
)
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit
from humanoid_control.ik.solver import STOP, IkSettings
from humanoid_control.ik.task_rows import stacked
from humanoid_control.ik.task_table import PackedGoals, TaskTable, is_tabled
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import Task
from humanoid_control.ik.tick import (
    ACCELERATION,
    APART,
    CUSTOM,
    CUSTOM_ROWS,
    IDLE,
    NEAR,
    NOTHING,
    NUMBERS,
    RANGE,
    REDUCE,
    SIDE,
    SPEED,
    TickNumbers,
    TickTables,
    tick,
)
from humanoid_control.ik.velocity_program import SolverArrays
from humanoid_control.kinematics.forward_kinematics import WorldPoses
from humanoid_control.kinematics.joint_limits import JointLimits
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs

KINDS: dict[type[Limit], int] = {
    VelocityLimit: SPEED,
    SelfCollisionLimit: APART,
    IdleJointLimit: IDLE,
    JointSideLimit: SIDE,
    ConfigurationLimit: RANGE,
    AccelerationLimit: ACCELERATION,
}
NO_TABLE: Any = np.zeros(1, dtype=np.int64)  # stands for a table that the solver does not have
PAIR_TABLES = ("monitor", "path", "pair_rows", "recovery")
Hook = Callable[[IkState], None]


def _no_hook(state: IkState) -> None:
    """Stand for a compiled step."""


class CompiledTick:
    """Compiled tick of tasks and limits, packed once.

    Known classes of tasks and limits, one of each limit, are compiled. All others are custom: they have their turn in
    Python (`fill_custom_rows`).

    Attributes:
        is_custom: a task or a limit needs the `IkState` of the tick.
    """

    def __init__(
        self, robot: Robot, dofs: DofSelection, program: Packed[SolverArrays], limits: Sequence[Limit]
    ) -> None:
        """Prepare for the limits of a solver; call `follow` and `configure` next.

        Raises:
            ConfigError: if more than one is a SelfCollisionLimit, or the program has not enough rows for them.
        """
        pairs = [m for m in limits if isinstance(m, SelfCollisionLimit)]
        if len(pairs) > 1:
            raise ConfigError(f"a solver has at most one SelfCollisionLimit, got {len(pairs)}: remove all others")
        rows, room = sum(m.max_rows(robot) for m in limits), len(program.record.rows.b) - 1
        if rows > room:
            raise ConfigError(f"limits with {rows} rows in a solver created for {room}: create a new solver")
        self.robot, self._dofs, self._program, self._counts = robot, dofs, program, np.zeros(2, dtype=np.int64)
        self.is_custom = False
        self._norm, self._size = (np.empty(robot.nv), np.empty(robot.nv)), robot.nq + robot.nv + NUMBERS
        self._settings: IkSettings | None = None
        self._idle_key: tuple[bool, float] | None = None
        self._world: WorldPoses | None = None
        self._found, self._pair_tables = PairsFound.buffer(0), dict.fromkeys(PAIR_TABLES, NO_TABLE)
        self._apart = next(iter(pairs), None)
        self._measures = self._apart is not None and not self._apart.exact
        if self._apart is not None:
            self._pack_pairs(self._apart)
        self._known: dict[int, Any] = {}
        self._custom_limits: list[Limit] = []
        self._order, self._hooks = self._steps_of(limits)
        self._idle: IdleJointLimit | None = self._known.get(IDLE)
        self._last = len(self._order)

    def _steps_of(self, limits: Sequence[Limit]) -> tuple[np.ndarray, list[Hook]]:
        """Sort the limits into known and custom ones; return the steps of `order`, and what CUSTOM steps call."""
        steps: list[tuple[int, Hook]] = []
        for limit in limits:
            kind = self._kind(limit)
            if isinstance(limit, SelfCollisionLimit):
                steps.append((APART, _no_hook))
            elif kind != CUSTOM:
                self._known[kind] = limit
                steps.append((kind, _no_hook))
            if kind == CUSTOM:
                self._custom_limits.append(limit)
                steps.append((CUSTOM, partial(self._tighten, limit)))
        if self._custom_limits:
            steps.insert(0, (CUSTOM, self._update))
        steps.append((REDUCE, _no_hook))
        # Rows depend on the bounds of the free velocities.
        for limit in self._custom_limits:
            of_pairs = limit.monitor.count if isinstance(limit, SelfCollisionLimit) else 0
            if limit.max_rows(self.robot) > of_pairs:
                steps.append((CUSTOM, partial(self._add_rows, limit)))
        return np.array([kind for kind, _ in steps], dtype=np.int64), [hook for _, hook in steps]

    def _kind(self, limit: Limit) -> int:
        """Return the kind of a limit; CUSTOM for all other classes, and for a second limit of a kind."""
        kind = KINDS.get(type(limit), CUSTOM)
        # Idle joints depend on the pairs of their own SelfCollisionLimit, the kernel on those of the solver.
        other = isinstance(limit, IdleJointLimit) and limit.self_collision is not self._apart
        return CUSTOM if other or kind in self._known else kind

    def _pack_pairs(self, apart: SelfCollisionLimit) -> None:
        record, monitor = self._program.record, apart.monitor
        self._pair_rows = Packed(apart.pair_rows(self._dofs, record.bounds, record.rows))
        self._pair_tables |= {"pair_rows": self._pair_rows.table, "recovery": apart.recovery.packed.table}
        if apart.path is None or not isinstance(monitor, ShapePairs):
            self._found = PairsFound.buffer(monitor.count)
            return
        self._world, self._found = monitor.poses.world, monitor.arrays.found
        self._pair_tables |= {"monitor": monitor.packed.table, "path": apart.path.packed.table}

    # -- tasks and settings -------------------------------------------------------------------------------------

    def follow(self, tasks: Sequence[Task]) -> None:
        """Set the tasks of the next ticks.

        Raises:
            ConfigError: if the target of a task was never set.
        """
        postures = [t for t in tasks if type(t) is PostureTask]
        self._custom_tasks = [t for t in tasks if type(t) is not PostureTask and not is_tabled(t)]
        self.is_custom = bool(self._custom_limits or self._custom_tasks)
        self._tasks = TaskTable(self.robot, self._dofs, [t for t in tasks if is_tabled(t)], self._world)
        self._goals = PackedGoals(postures)
        self._settings = None

    def fill_custom_rows(self, state: IkState) -> None:
        """Fill the rows of the tasks that compute them by themselves; call before `configure`."""
        table, gain = self._tasks, state.settings.max_gain / state.dt
        rows = stacked(self.robot, state.data, state.q, self._custom_tasks, self._dofs, gain)
        if len(rows.v) != table.custom_rows:
            table = self._tasks = TaskTable(self.robot, self._dofs, table.tasks, self._world, len(rows.v))
            self._settings = None
        arrays = table.packed.record
        arrays.J[table.rows :], arrays.v[table.rows :] = rows.J, rows.v

    def configure(self, settings: IkSettings, acceleration: np.ndarray, braking: np.ndarray) -> None:
        """Set the settings and the limits of `IkState` after `follow`; unchanged packed records are kept."""
        idle, s = self._idle, settings
        key = None if idle is None else (idle.enabled, idle.gain)
        if s is self._settings and key == self._idle_key:
            return
        self._settings, self._idle_key, r, sides = s, key, self.robot, self._known.get(SIDE)
        limits = JointLimits(r.lower, r.upper, r.velocity)
        self._range = Packed(RangeLimits(limits, acceleration[r.iv :].copy(), braking))
        weights = {name: float(getattr(s, name)) for name in TickNumbers._fields if hasattr(s, name)}
        numbers = TickNumbers(**weights, idle_gain=0.0 if idle is None else float(idle.gain), idle_start=START)
        off = idle is not None and not idle.enabled
        self._packed = Packed(
            TickTables(
                program=self._program.table,
                tasks=self._tasks.packed.table,
                range=self._range.table,
                idle=NO_TABLE if idle is None else idle.packed.table,
                sides=NO_TABLE if sides is None else sides.packed.table,
                **self._pair_tables,
                with_pairs=self._apart is not None,
                exact=self._apart is not None and not self._measures,
                swept=s.swept,
                stops=s.on_penetration == STOP,
                order=np.where(self._order == IDLE, NOTHING, self._order) if off else self._order,
                counts=self._counts,
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

    # -- every tick ---------------------------------------------------------------------------------------------

    def run(self, q: np.ndarray, v: np.ndarray, dt: float, state: IkState | None = None) -> np.ndarray:
        """Return the outcome (nq + nv + NUMBERS,) of `tick` after dt [s].

        Args:
            state: for custom limits.
        """
        out, table = np.empty(self._size), self._packed.table
        if self._measures:
            self._measure(q)
        step = tick(table, q, v, dt, 0, out)
        while step < self._last:
            assert state is not None
            self._hooks[step](state)
            step = tick(table, q, v, dt, step + 1, out)
        return out

    def _measure(self, q: np.ndarray) -> None:
        """Hand over the near pairs of a monitor that is not compiled."""
        apart, settings = self._apart, self._settings
        assert apart is not None and settings is not None
        near = apart.near = apart.monitor.update(q, np.full(apart.monitor.count, settings.activation))
        self._counts[NEAR] = len(near)
        for own, given in zip(self._found, near.found, strict=True):
            own[: len(near)] = given

    def _update(self, state: IkState) -> None:
        """Update all custom limits, with the near pairs of this tick at hand."""
        if self._apart is not None:
            found = self._found.first(int(self._counts[NEAR]))
            self._apart.near = NearPairs(found, self._apart.monitor.joints)
            self._apart.penetration_depth = max(0.0, -float(found.distance.min(initial=np.inf)))
        for limit in self._custom_limits:
            limit.update(state)

    def _tighten(self, limit: Limit, state: IkState) -> None:
        limit.tighten(state, self._program.record.lower, self._program.record.upper)

    def _add_rows(self, limit: Limit, state: IkState) -> None:
        """Write the rows of a custom limit behind those of the custom limits before it."""
        program, first = self._program.record, int(self._counts[CUSTOM_ROWS])
        out = SoftRows(*(a[first:] for a in program.rows))
        self._counts[CUSTOM_ROWS] += limit.free_rows(state, program.bounds, out)
