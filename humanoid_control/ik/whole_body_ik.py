"""Whole-body inverse kinematics: one tick turns tasks into the joint velocity that serves them best within limits."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import NearPairs
from humanoid_control.ik.free_velocities import Bounds, DofMap, DofSelection
from humanoid_control.ik.integrate import keep_inside
from humanoid_control.ik.limits.limit import ConfigurationLimit, IkState, Limit, SoftRows, fill_braking
from humanoid_control.ik.limits.self_collision import SelfCollisionLimit, default_limits
from humanoid_control.ik.solver import STOP, IkSettings, StepReport
from humanoid_control.ik.task_rows import TaskStack, is_tabled
from humanoid_control.ik.tasks.centroidal import AngularMomentumTask
from humanoid_control.ik.tasks.joints import JointTask, PostureTask
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp
from humanoid_control.numerics.packed import Packed, unpack
from humanoid_control.robots.robot import Robot

NOTHING_NEAR = NearPairs.none()
NOT_FINITE = -3


class IkStatus(enum.Enum):
    """Outcome of a tick, and the sentence that says it."""

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

    The velocity is brake + `speed_scale` (desired - brake), brake being the one that brakes hardest: below 1 where the
    path to the stop asked for it. `note` is the sentence of the status.

    Neither `task_residual` nor `manipulability` is computed: both are NaN. `iterations` are those of the active set.

    Attributes:
        status: what became of the tick.
        near: pairs of shapes that were looked at as possible rows of the problem.
        rows: how many rows the problem had beside its bounds.
        slack: by how much the worst row was missed [m/s]; 0 where all were met.
        penetration_depth: of the worst pair [m], 0 where none is inside.
        limit_violation: how far the worst joint is outside its range [rad], 0 where none is.
    """

    task_residual: float = float("nan")
    status: IkStatus = IkStatus.OPTIMAL
    near: NearPairs = NOTHING_NEAR
    rows: int = 0
    slack: float = 0.0
    penetration_depth: float = 0.0
    limit_violation: float = 0.0


class IkResult(NamedTuple):
    """Result of one tick; it unpacks into (q, v, report) as that of every other solver.

    Attributes:
        q: (nq,) the configuration after the step.
        v: (nv,) the velocity that leads there.
        report: what became of the tick.
    """

    q: np.ndarray
    v: np.ndarray
    report: IkReport

    @property
    def near(self) -> NearPairs:
        """The pairs of shapes that were looked at as possible rows of the problem."""
        return self.report.near

    @property
    def status(self) -> IkStatus:
        """The outcome of the tick: whether, and by what, the robot was held back."""
        return self.report.status

    @property
    def ok(self) -> bool:
        """The solver found the optimum; if not, the robot was told to stop."""
        return self.report.ok


class WholeBodyIk:
    """Weighted least squares over all tasks, within limits: joint range, speed, acceleration and self-collision.

    minimise  sum_i w_i^2 |J_i v - v_i|^2 + damping^2 |v|^2 + smoothing^2 |v - v_previous|^2 + slack_weight |s|^2
    subject to  lower <= v <= upper, and A v >= b - s                               of all limits.

    Bounds can always be met and the slack makes every row possible, so there always is an answer. Afterwards the path
    to the next posture and on to the stop is checked, and the velocity brought nearer to braking where it is blocked.

    Attributes:
        limits: in the order of their precedence.
        self_collision: the limit among them that keeps shapes apart, if there is one.
        v: (nv,) velocity of the last tick.
    """

    def __init__(
        self,
        robot: Robot,
        settings: IkSettings | None = None,
        limits: Sequence[Limit] | None = None,
        dofs: DofSelection | None = None,
    ) -> None:
        """Make the solver.

        Args:
            robot: whose.
            settings: weights, and numbers of the default limits; may be replaced between ticks.
            limits: what every velocity keeps; default: `default_limits`.
            dofs: which velocities are free; default: all.
        """
        self.robot, self.settings, self.dofs = robot, settings or IkSettings(), dofs or DofSelection(robot)
        self.limits = default_limits(robot) if limits is None else list(limits)
        self.self_collision = next((m for m in self.limits if isinstance(m, SelfCollisionLimit)), None)
        self._range = next((m for m in self.limits if isinstance(m, ConfigurationLimit)), None)
        self.data, self._stack = robot.model.createData(), TaskStack(robot, self.dofs)
        k, self._with_rows = self.dofs.k, [m for m in self.limits if m.max_rows(robot)]
        most = sum(m.max_rows(robot) for m in self.limits)
        # One row more than there can be: what is left out is written there.
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
        )
        self._limited_by: IkSettings | None = None
        self._limits = np.empty(0), np.empty(0)
        self._memory, self._later_rows = Packed(memory), dict[int, SoftRows]()
        self._norm = np.empty(robot.nv), np.empty(robot.nv)  # diagonal and linear part of the cost of v itself
        self._compile()

    def _compile(self) -> None:
        """Take a step with every kind of task, so that no tick waits for the compiler."""
        r = self.robot
        joint = JointTask(r, r.joint_names[:1])
        joint.set_target_from(r.q())
        tasks = [PostureTask(r), AngularMomentumTask(), joint]
        self.reset()
        self.step(r.q(), tasks, 0.01)
        self.reset()

    def reset(self) -> None:
        """Forget earlier ticks: the robot is at rest."""
        self.v = np.zeros(self.robot.nv)
        for limit in self.limits:
            limit.reset()

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> IkResult:
        """The next configuration.

        Args:
            q: (nq,) where the robot is (the previous command).
            tasks: what to do.
            dt: [s] > 0.

        Raises:
            ConfigError: the target of a task was never set.
        """
        s, r = self.settings, self.robot
        prepare(r, self.data, q)
        state = IkState(r, s, self.dofs, self.data, q, self.v, dt, *self._accelerations())
        for limit in self.limits:
            limit.update(state)
        home = None if self.self_collision is None else self.self_collision.homing_task(state)
        self._fill_cost(state, tasks if home is None else [home])
        rows = self._fill_constraints(state)
        used = solve_program(self._memory.table, rows, 2 * s.slack_weight)
        ok = used >= 0
        v, scale, status = self._velocity(state, ok)
        slack = float(largest_slack(self._memory.table, rows, v)) if rows else 0.0
        apart, self.v = self.self_collision, v
        report = IkReport(
            ok,
            speed_scale=scale,
            iterations=used,
            note=status.value,
            status=status,
            near=NOTHING_NEAR if apart is None else apart.near,
            rows=rows,
            slack=slack,
            penetration_depth=0.0 if apart is None else apart.penetration_depth,
            limit_violation=0.0 if self._range is None else self._range.violation,
        )
        return IkResult(self._integrate(q, dt), v, report)

    def _accelerations(self) -> tuple[np.ndarray, np.ndarray]:
        """Limits (nv,) of all velocities, and what joints count on in braking (n,); made anew with the settings."""
        s, r = self.settings, self.robot
        if s is not self._limited_by:
            own = r.accelerations_within(s.acceleration, s.acceleration_scale)
            all_limits = np.concatenate([np.full(r.iv, s.acceleration), own.acceleration])
            self._limited_by, self._limits = s, (all_limits, own.braking)
            self._memory.record.acceleration[:] = all_limits
        return self._limits

    def _velocity(self, state: IkState, ok: bool) -> tuple[np.ndarray, float, IkStatus]:
        """The velocity (nv,) of the solution, or as much of it as is safe; its share, and what became of it."""
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
        s, r, q, memory = self.settings, self.robot, state.q, self._memory.table
        diagonal, linear = self._norm
        begin_cost(self.v, s.damping, s.smoothing, diagonal, linear)
        tabled, others, max_gain = [], [], s.max_gain / state.dt
        for task in tasks:
            if is_tabled(task):
                tabled.append(task)
            elif type(task) is PostureTask:
                gain = min(task.gain, max_gain)
                add_posture(task.weights, task.posture, q, float(task.weight), gain, diagonal, linear)
            else:
                others.append(task)
        rows = self._stack.rows(self.data, q, tabled, max_gain)
        fill_cost(memory, rows.J, rows.v, diagonal, linear)
        for task in others:
            J, v = task.rows(r, self.data, q)
            if task.gain > max_gain:
                v = v - (task.gain - max_gain) * task.error(r, self.data, q)
            add_rows(memory, np.ascontiguousarray(J), v, task.weight)

    def _fill_constraints(self, state: IkState) -> int:
        """Bounds, the velocity that brakes hardest, and rows: how many rows there are."""
        m = self._memory.record
        m.lower[:], m.upper[:] = -np.inf, np.inf
        for limit in self.limits:
            limit.tighten(state, m.lower, m.upper)
        reduce_bounds(self._memory.table, self.v, self.robot.iv, state.dt)
        count = 0
        for limit in self._with_rows:
            out = m.rows
            if count:  # the same object for the same count, so that limits may keep what they make of it
                out = self._later_rows.setdefault(count, SoftRows(*(a[count:] for a in m.rows)))
            count += limit.free_rows(state, m.bounds, out)
        return count


# -------- Kernels of the quadratic program


class SolverArrays(NamedTuple):
    """Memory of a solver of nv velocities, k of them free, and up to R rows.

    Attributes:
        H, g: (k, k), (k,) of the cost, by the free velocities; of H the lower triangle.
        lower, upper: (nv,) bounds of all velocities. brake: (nv,) the velocity that brakes hardest.
        acceleration: (nv,) limits.
        dofs, free: of the DofSelection. bounds: (k,) of the free velocities. rows: (R + 1) of all limits.
        x: (k,) solution. multipliers: (k + R,).
    """

    H: F2
    g: F1
    lower: F1
    upper: F1
    brake: F1
    acceleration: F1
    dofs: DofMap
    free: I1
    bounds: Bounds
    rows: SoftRows
    x: F1
    multipliers: F1


@kernel
def begin_cost(v: np.ndarray, damping: float, smoothing: float, diagonal: np.ndarray, linear: np.ndarray) -> None:
    """Cost of a velocity by its size and by its change from v (nv,), into diagonal and linear (nv,)."""
    for c in range(v.shape[0]):
        diagonal[c] = damping**2 + smoothing**2
        linear[c] = -(smoothing**2) * v[c]


@kernel
def add_posture(
    weights: np.ndarray,
    posture: np.ndarray,
    q: np.ndarray,
    weight: float,
    gain: float,
    diagonal: np.ndarray,
    linear: np.ndarray,
) -> None:
    """Add the cost of a PostureTask: weights and posture (n,), q (nq,); diagonal and linear (nv,)."""
    n = weights.shape[0]
    iv, iq = diagonal.shape[0] - n, q.shape[0] - n
    for k in range(n):
        w = (weight * weights[k]) ** 2
        diagonal[iv + k] += w
        linear[iv + k] -= w * gain * (posture[k] - q[iq + k])


@kernel
def fill_cost(table: np.ndarray, J: np.ndarray, desired: np.ndarray, diagonal: np.ndarray, linear: np.ndarray) -> None:
    """Lower triangle of H = J^T J + S^T diag(diagonal) S, and g = S^T linear - J^T desired.

    Args:
        table: of the packed SolverArrays, of which H and g are filled.
        J: (m, k) weighted rows of the tasks by the free velocities. desired: (m,).
        diagonal, linear: (nv,) by all velocities v = S u.
    """
    a = unpack(table, SolverArrays)
    H, g, dofs = a.H, a.g, a.dofs
    m, k = J.shape
    for i in range(k):
        g[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for r in range(m):
        for i in range(k):
            s = J[r, i]
            if s == 0.0:
                continue
            g[i] -= s * desired[r]
            for j in range(i + 1):
                H[i, j] += s * J[r, j]
    for c in range(diagonal.shape[0]):
        i, f = dofs.column[c], dofs.factor[c]
        if i >= 0:
            H[i, i] += f * f * diagonal[c]
            g[i] += f * linear[c]


@kernel
def add_rows(table: np.ndarray, J: np.ndarray, desired: np.ndarray, weight: float) -> None:
    """Add the rows of one more task, J (m, nv) by all velocities, to the lower triangle of H and to g."""
    memory = unpack(table, SolverArrays)
    H, g, dofs = memory.H, memory.g, memory.dofs
    k = g.shape[0]
    a = np.empty(k)
    for r in range(J.shape[0]):
        a[:] = 0.0
        for c in range(J.shape[1]):
            if dofs.column[c] >= 0:
                a[dofs.column[c]] += weight * dofs.factor[c] * J[r, c]
        for i in range(k):
            s = a[i]
            if s == 0.0:
                continue
            g[i] -= s * weight * desired[r]
            for j in range(i + 1):
                H[i, j] += s * a[j]


@kernel
def reduce_bounds(table: np.ndarray, v: np.ndarray, iv: int, dt: float) -> None:
    """Bounds of the free velocities from those (nv,) of all velocities that each of them moves, and the braking.

    Where a joint and what mimics it cannot both keep theirs, the joint does.

    Args:
        table: of the packed SolverArrays, of which bounds and brake are filled. Others as of `fill_braking`.
    """
    a = unpack(table, SolverArrays)
    lower, upper, dofs, free = a.lower, a.upper, a.dofs, a.free
    low, high = a.bounds
    for k in range(free.shape[0]):
        low[k], high[k] = lower[free[k]], max(lower[free[k]], upper[free[k]])
    for c in range(lower.shape[0]):
        k, f = dofs.column[c], dofs.factor[c]
        if k < 0 or free[k] == c:
            continue
        first, last = (lower[c] / f, upper[c] / f) if f > 0.0 else (upper[c] / f, lower[c] / f)
        low[k], high[k] = min(max(first, low[k]), high[k]), min(max(last, low[k]), high[k])
    fill_braking(v, iv, a.acceleration, dt, dofs, a.bounds, a.brake)


@kernel
def solve_program(table: np.ndarray, rows: int, rho: float) -> int:
    """Solve the program of the packed SolverArrays with as many rows: as `solve_box_qp`, -3 where x is no number."""
    a = unpack(table, SolverArrays)
    problem = BoxQp(a.H, a.g, a.bounds.lower, a.bounds.upper, a.rows.A, a.rows.b)
    used = solve_box_qp(problem, rows, rho, a.x, a.multipliers)
    for i in range(a.x.shape[0]):
        if not np.isfinite(a.x[i]):
            used = NOT_FINITE
    return used


@kernel
def largest_slack(table: np.ndarray, count: int, v: np.ndarray) -> float:
    """By how much v (nv,) misses the worst of the rows, unscaled; 0 where it meets all.

    Args:
        table: of the packed SolverArrays.
    """
    a = unpack(table, SolverArrays)
    worst = 0.0
    for r in range(count):
        s = a.rows.b[r]
        for k in range(a.free.shape[0]):
            s -= a.rows.A[r, k] * v[a.free[k]]
        worst = max(worst, s / a.rows.scale[r])
    return worst
