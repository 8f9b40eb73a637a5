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
from humanoid_control.ik.compiled_tick import CompiledTick
from humanoid_control.ik.free_velocities import Bounds, DofSelection
from humanoid_control.ik.limits.collision_recovery import GRADIENT
from humanoid_control.ik.limits.limit import ConfigurationLimit, IkState, Limit, SoftRows
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit, default_limits
from humanoid_control.ik.solver import STOP, IkSettings, StepReport
from humanoid_control.ik.tasks.joints import PostureTask
from humanoid_control.ik.tasks.task import Task, TickData, known_robot
from humanoid_control.ik.tick import DEPTH, ITERATIONS, NUMBERS, VIOLATION
from humanoid_control.ik.velocity_program import SolverArrays
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
        find_near: function that finds the pairs `near`.
        rows: number of rows besides bounds.
        slack: violation of the worst row [m/s]; 0 if all are met.
        penetration_depth: depth of the worst pair [m].
        limit_violation: distance of the worst joint outside its range [rad].
    """

    task_residual: float = float("nan")
    status: IkStatus = IkStatus.OPTIMAL
    find_near: Callable[[], NearPairs] = NearPairs.none
    rows: int = 0
    slack: float = 0.0
    penetration_depth: float = 0.0
    limit_violation: float = 0.0

    @cached_property
    def near(self) -> NearPairs:
        """Pairs near enough to matter at the previous velocity; found on access."""
        return self.find_near()


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
        self._data, k, most = TickData(robot), self.dofs.k, sum(m.max_rows(robot) for m in self.limits)
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
        self._memory = Packed(memory)
        self._limited_by: IkSettings | None = None
        self._limits = np.empty(0), np.empty(0)
        self._tick: CompiledTick | None = None
        self._tick_limits: list[Limit] | None = None
        self._tick_tasks: list[Task] | None = None
        self.reset()
        # No later tick waits for the compiler, nor does its report.
        _ = self.step(robot.q(), [PostureTask(robot)], 0.01).near
        self.reset()

    def __getstate__(self) -> dict[str, Any]:
        """Copy without the compiled tick, which holds addresses."""
        return vars(self) | {"_tick": None, "_tick_limits": None, "_tick_tasks": None}

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
        compiled, accelerations = self._compiled_for(tasks), self._accelerations()
        state: IkState | None = None
        if compiled.is_custom:
            data = self._data.at(q)
            state = IkState(self.robot, self.settings, self.dofs, data, q, self.v, dt, *accelerations)
            compiled.fill_custom_rows(state)
        compiled.configure(self.settings, *accelerations)
        return self._result(compiled.run(q, self.v, dt, state), q, dt)

    @property
    def data(self) -> pin.Data:
        """Kinematics, Jacobians and frame placements at the start of the last tick."""
        return self._data.get()

    def _compiled_for(self, tasks: Sequence[Task]) -> CompiledTick:
        """Return the tick of these tasks, packed again if they or the limits have changed."""
        if self._tick is None or self.limits != self._tick_limits:
            self._tick = CompiledTick(self.robot, self.dofs, self._memory, self.limits)
            self._tick_limits, self._tick_tasks = list(self.limits), None
        if self._tick_tasks is None or self._tick_tasks != list(tasks):
            given, self._tick_tasks = list(tasks), None
            self._tick.follow(given)
            self._tick_tasks = given
        return self._tick

    def _accelerations(self) -> tuple[np.ndarray, np.ndarray]:
        """Return acceleration limits (nv,) and braking (n,), updated with the settings."""
        s, r = self.settings, self.robot
        if s is not self._limited_by:
            own = r.accelerations_within(s.acceleration, s.acceleration_scale)
            all_limits = np.concatenate([np.full(r.iv, s.acceleration), own.acceleration])
            self._limited_by, self._limits = s, (all_limits, own.braking)
            self._memory.record.acceleration[:] = all_limits
        return self._limits

    def _result(self, outcome: np.ndarray, q: np.ndarray, dt: float) -> IkResult:
        """Build the result of a tick from q, by its outcome."""
        s, apart, nq, begun, before = self.settings, self.self_collision, self.robot.nq, q.copy(), self.v
        used, violation = outcome.item(ITERATIONS - NUMBERS), outcome.item(VIOLATION - NUMBERS)
        depth = outcome.item(DEPTH - NUMBERS)
        self.v = outcome[nq:-NUMBERS]
        self._data.later(begun)
        if type(self._range) is ConfigurationLimit:
            self._range.violation = violation
        elif self._range is not None:  # a subclass, which has stored it by itself
            violation = self._range.violation
        near: Callable[[], NearPairs] = NearPairs.none
        if apart is not None:
            apart.penetration_depth = depth
            near = apart.deferred_near(begun, before, s, self._limits[0], self.v, dt)

        def report() -> IkReport:
            _, share, rows, slack, _, _, stage = outcome[-NUMBERS:].tolist()
            status = IkStatus.OPTIMAL
            if used < 0:
                status = IkStatus.NO_SOLUTION
            elif depth > 0.0 and s.on_penetration == STOP:
                status = IkStatus.STOPPED_BY_PENETRATION
            elif stage != GRADIENT:
                status = IkStatus.HOMING
            elif share < 1.0:
                status = IkStatus.SLOWED
            return IkReport(
                used >= 0,
                speed_scale=share,
                iterations=int(used),
                note=status.value,
                status=status,
                find_near=near,
                rows=int(rows),
                slack=slack,
                penetration_depth=depth,
                limit_violation=violation,
            )

        return IkResult(outcome[:nq], self.v, used >= 0, report)
