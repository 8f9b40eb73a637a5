"""Settings of the safe solver, and what a tick of it gives.

Also here:

* One tick of inverse kinematics: the joint velocity that serves all tasks best and breaks no limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.pair_distance import NearPairs
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.constraints import (
    GRADIENT,
    HOMING,
    CollisionRecovery,
    add_rows,
    fill_activation_distances,
    fill_bounds,
    fill_braking,
    fill_cost,
    fill_pair_rows,
    keep_range,
    largest_slack,
)
from humanoid_control.ik.free_velocities import DofSelection
from humanoid_control.ik.null_space.velocity_solver import StepReport
from humanoid_control.ik.swept import StoppingPathCheck
from humanoid_control.ik.task_rows import TABLED, TaskStack
from humanoid_control.ik.tasks.joints import JointTask, PostureTask
from humanoid_control.ik.tasks.momentum import AngularMomentumTask
from humanoid_control.ik.tasks.task import Task, prepare
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs

# -------- Settings of the safe solver, and what a tick of it gives

RECOVER, STOP = "recover", "stop"
NOTHING_NEAR = NearPairs.none()


@dataclass(frozen=True)
class IkSettings:
    """How the solver weighs things.

    Attributes:
        damping: cost of every joint velocity, keeps the problem well posed at singularities [s/rad].
        smoothing: cost of a change of joint velocity against the previous tick [s/rad].
        velocity_scale: share of the joint speed limits that may be used, 0..1.
        acceleration: limit on the acceleration of a joint [rad/s^2]; nothing comes before it.
        margin: distance that shapes of the robot keep from each other [m].
        activation: distance below which a pair becomes a row of the problem [m]; farther off where the robot is fast.
        barrier_gain: a pair may lose this share of its distance above the margin each second [1/s].
        pair_recovery_speed: how fast a pair that is too close, or inside, must separate at the most [m/s].
        joint_recovery_speed: of a joint that returns into its range, and of homing out of a collision [rad/s].
        base_velocity: bound on the velocity of a floating base [m/s, rad/s].
        slack_weight: cost of the square of what a pair's row misses, against 1 for a task's [s^2/m^2].
        max_gain: tasks' gains are held to this share of 1 / dt.
        swept: check the way through this tick and on to the stop, and slow down where it is not clear.
        on_penetration: reaction to shapes inside each other: `recover`, or `stop`: brake and stay (a safety stop).
        recovery_timeout: after so long without getting less deep, shapes inside each other come apart by homing to the
            neutral posture [s].
        recovery_joint_speed: limit of all joints while shapes are inside each other or a joint is outside its range
            [rad/s].
    """

    damping: float = 0.02
    smoothing: float = 0.05
    velocity_scale: float = 1.0
    acceleration: float = 200.0
    margin: float = 0.02
    activation: float = 0.12
    barrier_gain: float = 8.0
    pair_recovery_speed: float = 0.2
    joint_recovery_speed: float = 0.5
    base_velocity: float = 2.0
    slack_weight: float = 1e5
    max_gain: float = 1.0
    swept: bool = True
    on_penetration: str = RECOVER
    recovery_timeout: float = 0.4
    recovery_joint_speed: float = 1.0

    def __post_init__(self) -> None:
        for name in ("acceleration", "barrier_gain", "slack_weight", "max_gain"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"inverse kinematics: {name} must be positive, got {getattr(self, name):g}")
        if self.on_penetration not in (RECOVER, STOP):
            raise UnknownNameError("reaction to contact", self.on_penetration, (RECOVER, STOP))


@dataclass(frozen=True)
class IkReport(StepReport):
    """What became of one tick of the safe solver.

    `speed_scale` is the share that was taken of the way from braking to the desired velocity, below 1 where the swept
    check asked for it.

    Attributes:
        near: pairs of shapes that were looked at as possible rows of the problem.
        slack: by how much the worst row was missed [m/s]; 0 where all were met.
        penetration_depth: of the worst pair [m], 0 where none is inside.
        limit_violation: how far the worst joint is outside its range [rad], 0 where none is.
    """

    near: NearPairs = NOTHING_NEAR
    slack: float = 0.0
    penetration_depth: float = 0.0
    limit_violation: float = 0.0


class IkResult(NamedTuple):
    """What one tick gave, which is also what every solver returns.

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
    def ok(self) -> bool:
        """The solver found the optimum; if not, the robot was told to stop."""
        return self.report.ok


# -------- One tick of inverse kinematics: the joint velocity that serves all tasks best and breaks no limit

FLOOR = 0.5  # of the margin: what the swept check keeps


class WholeBodyIk:
    """Weighted least squares over all tasks, with joint range, speed, acceleration and self-collision as constraints.

    minimise  sum_i w_i^2 |J_i v - v_i|^2 + damping^2 |v|^2 + smoothing^2 |v - v_previous|^2 + slack_weight |s|^2
    subject to  velocity bounds that keep acceleration, range and speed (hard), and for each near pair
        n . J v >= -c(d - margin) - s   outside the margin, a bounded separating speed inside it.

    Bounds can always be met and the slack makes every row possible, so there always is an answer. Afterwards the way
    to the next posture and on to the stop is checked, and the velocity brought nearer to braking where it is blocked.
    """

    def __init__(
        self,
        robot: Robot,
        settings: IkSettings | None = None,
        collisions: bool = True,
        dofs: DofSelection | None = None,
    ) -> None:
        """Make the solver.

        Args:
            robot: whose.
            settings: how it weighs things; may be changed between ticks.
            collisions: keep the robot's shapes apart.
            dofs: which velocities are free; default: all.
        """
        self.robot, self.settings, self.dofs = robot, settings or IkSettings(), dofs or DofSelection(robot)
        self.data = robot.model.createData()
        self.pairs = ShapePairs(robot) if collisions and len(robot.pairs) else None
        self._near = NOTHING_NEAR
        self._swept = StoppingPathCheck(robot, self.pairs) if self.pairs else None
        self._stack, self._recovery = TaskStack(robot, self.dofs), CollisionRecovery()
        k, P = self.dofs.k, len(robot.pairs) if self.pairs else 0
        self._H, self._g, self._x = np.zeros((k, k)), np.zeros(k), np.zeros(k)
        self._low, self._high, self._brake = np.zeros(k), np.zeros(k), np.zeros(robot.nv)
        # One row more than there are pairs: what is left out is written there.
        self._A, self._b, self._reach = np.zeros((P + 1, k)), np.zeros(P + 1), np.zeros(P)
        self._scale, self._multipliers = np.ones(P + 1), np.zeros(k + P)
        self._home = PostureTask(robot.postures["neutral"], weight=1.0, gain=1.0)
        self._compile()

    def _compile(self) -> None:
        """Take a step with every kind of task, so that no tick waits for the compiler."""
        r = self.robot
        tasks = [PostureTask(r.postures["neutral"]), AngularMomentumTask(), JointTask("", r, r.joint_names[:1])]
        self.reset()
        self.step(r.q(), tasks, 0.01)
        self.reset()

    @property
    def stage(self) -> int:
        """How the robot is being led out of a collision; of CollisionRecovery."""
        return self._recovery.stage

    def reset(self) -> None:
        """Forget the velocity of the previous tick."""
        self.v = np.zeros(self.robot.nv)
        self._recovery.reset()

    def step(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> IkResult:
        """The next configuration.

        Args:
            q: (nq,) where the robot is (the previous command).
            tasks: what to do.
            dt: [s] > 0.
        """
        s, r, m = self.settings, self.robot, self.dofs
        prepare(r, self.data, q)
        depth = self._look(q, dt)
        self._fill_cost(q, self._led(q, tasks), dt)
        outside, rows = self._fill_constraints(q, dt, depth > 0)
        used = solve_box_qp(
            self._H,
            self._g,
            self._low,
            self._high,
            self._A,
            self._b,
            rows,
            2 * s.slack_weight,
            self._x,
            self._multipliers,
        )
        ok, note = used >= 0 and bool(np.isfinite(self._x).all()), ""
        brake, scale = self._brake, 1.0
        if not ok:
            v, scale, note = brake.copy(), 0.0, "no solution: the robot stops"
        elif depth > 0 and s.on_penetration == STOP:
            v, scale, note = brake.copy(), 0.0, "shapes are inside each other: the robot stops"
        else:
            v = m.expand(self._x)
            if self._swept is not None and s.swept and self._recovery.stage <= HOMING:
                scale = self._swept.scale(q, brake, v, dt, s.acceleration, FLOOR * s.margin)
                if scale < 1.0:
                    v, note = brake + scale * (v - brake), "slowed: the way to the stop is not clear"
            if self._recovery.stage != GRADIENT:
                note = "no way out of a collision: led home"
        self.v = v
        near = self._near
        slack = float(largest_slack(self._A, self._b, self._scale, rows, v[m.free])) if rows else 0.0
        report = IkReport(
            ok,
            speed_scale=scale,
            iterations=used,
            note=note,
            near=near,
            slack=slack,
            penetration_depth=depth,
            limit_violation=outside,
        )
        return IkResult(self._integrate(q, dt), v, report)

    def _look(self, q: np.ndarray, dt: float) -> float:
        """Measure the pairs that matter at this speed: how deep the worst is inside [m]."""
        s, w = self.settings, self.pairs
        if w is None:
            return 0.0
        fill_activation_distances(
            w.motion_bound, self.v, s.acceleration, s.margin, s.activation, s.barrier_gain, self._reach
        )
        self._near = w.update(q, self._reach)
        closest = float(self._near.distance.min()) if len(self._near) else np.inf
        if closest < 0 or self._recovery.stage != GRADIENT:
            away = float(np.abs(self._home.posture - q[self.robot.iq :]).max())
            self._recovery.update(closest, away, s.recovery_timeout, dt)
        return max(0.0, -closest)

    def _led(self, q: np.ndarray, tasks: Sequence[Task]) -> Sequence[Task]:
        """The tasks, or the way home."""
        if self._recovery.stage == GRADIENT:
            return tasks
        away = float(np.abs(self._home.posture - q[self.robot.iq :]).max())
        self._home.gain = self.settings.joint_recovery_speed / max(away, 0.1)
        return [self._home]

    def _integrate(self, q: np.ndarray, dt: float) -> np.ndarray:
        r = self.robot
        q_next = pin.integrate(r.model, q, self.v * dt)
        joints = q_next[r.iq :]
        keep_range(q[r.iq :], r.lower, r.upper, joints)
        if r.mimic:
            r.follow(joints)
        return q_next

    def _fill_cost(self, q: np.ndarray, tasks: Sequence[Task], dt: float) -> None:
        s, r, m = self.settings, self.robot, self.dofs
        diagonal = np.full(r.nv, s.damping**2 + s.smoothing**2)
        linear = -(s.smoothing**2) * self.v
        tabled, others, max_gain = [], [], s.max_gain / dt
        for task in tasks:
            if type(task) in TABLED:
                tabled.append(task)
            elif type(task) is PostureTask:
                w = (task.weight * task.weights) ** 2
                diagonal[r.iv :] += w
                linear[r.iv :] -= w * min(task.gain, max_gain) * (task.posture - q[r.iq :])
            else:
                others.append(task)
        rows = self._stack.rows(self.data, q, tabled, max_gain)
        fill_cost(rows.J, rows.v, diagonal, linear, m.column_of, m.factor, self._H, self._g)
        for task in others:
            J, v = task.rows(r, self.data, q)
            if task.gain > max_gain:
                v = v - (task.gain - max_gain) * task.error(r, self.data, q)
            add_rows(np.ascontiguousarray(J), v, task.weight, m.column_of, m.factor, self._H, self._g)

    def _fill_constraints(self, q: np.ndarray, dt: float, inside: bool) -> tuple[float, int]:
        """Bounds, braking and rows: how far outside its range the worst joint is, and how many rows there are."""
        r, s, m, w = self.robot, self.settings, self.dofs, self.pairs
        speed, bounds = s.velocity_scale * r.velocity, (m.column_of, m.factor, self._low, self._high)
        law = (dt, s.joint_recovery_speed, self.v, s.acceleration, s.base_velocity, s.recovery_joint_speed)
        outside: float = fill_bounds(q[r.iq :], r.lower, r.upper, speed, *law, inside, *bounds)
        fill_braking(self.v, r.iv, s.acceleration * dt, *bounds, self._brake)
        if w is None:
            return outside, 0
        way = (s.margin, s.barrier_gain, s.pair_recovery_speed, s.acceleration, self._recovery.stage)
        return outside, fill_pair_rows(
            self._near.found, w.joints, self.data.J, *way, *bounds, self._A, self._b, self._scale
        )
