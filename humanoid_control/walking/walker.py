"""A walking robot: from its sensors and a velocity to the commands of all its joints."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.floating_base import BaseEstimate, FloatingBaseEstimator
from humanoid_control.ik.whole_body_ik import IkResult, WholeBodyIk
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.dynamics_filter import DynamicsFilter
from humanoid_control.walking.feet import Feet, nearest_in_polygon
from humanoid_control.walking.footsteps import Footstep, StepLimits, StepTimes, VelocityPlanner
from humanoid_control.walking.lipm import ZmpPath, follow_dcm
from humanoid_control.walking.plan import MomentumShift, Phase, References, WalkPlan, continued, schedule, zmp_corners
from humanoid_control.walking.stabilizer import Balance, Stabilizer, StabilizerGains
from humanoid_control.walking.step_adjustment import AdjustmentSettings, SwingChoice, adjust
from humanoid_control.walking.swing_foot import SwingPath

GRAVITY = 9.81
AHEAD = 4  # steps that are planned
READY = 0.8  # [s] to settle into the posture of the walk
EXPECTED = 0.7  # phase of a swing from which on the foot may touch down
TOUCHED = 0.05  # share of the weight that says it has
FOLLOW, FOLLOW_GAIN, FOLLOW_SPEED = 0.03, 4.0, 0.6  # [m], [1/s], [m/s]: a robot pushed far off takes its plan along
FALLEN_TILT, FALLEN_HEIGHT, FALLEN_AIR = np.radians(35.0), 0.6, 0.25


class WalkState(enum.Enum):
    """What a walker does."""

    STAND = "stand"
    WALK = "walk"
    STOP = "stop"
    FALLEN = "fallen"


@dataclass(frozen=True)
class WalkSettings:
    """Numbers of a walk; the defaults suit an adult-size robot.

    Attributes:
        dt: of the ticks [s]. times: of the steps. crouch: of the centre of mass below the neutral posture [m].
        inward: of the zero-moment point from the middle line of a sole toward the other foot [m].
        start: time in which the weight is shifted before the first step [s].
        settle: time in which it comes back to the middle after the last one [s].
        momentum: arms balance the angular momentum about the vertical.
        filter_dt: samples of the dynamics filter [s]. horizon: of it [s]; 0: no filter.
        limits: of the steps; default: from the robot.
        gains: of the stabilizer. adjustment: of steps after pushes; None: they stay where they are planned.
    """

    dt: float = 0.004
    times: StepTimes = field(default_factory=StepTimes)
    crouch: float = 0.03
    inward: float = 0.005
    start: float = 1.0
    settle: float = 0.6
    momentum: bool = False
    filter_dt: float = 0.02
    horizon: float = 2.4
    limits: StepLimits | None = None
    gains: StabilizerGains = field(default_factory=StabilizerGains)
    adjustment: AdjustmentSettings | None = field(default_factory=AdjustmentSettings)


@dataclass
class WalkReport:
    """What a tick saw and did.

    Attributes:
        state: of the walker. why: of a fall or a refusal, one line.
        estimate: of the robot. references: of the plan. balance: of the stabilizer.
        ik: of the inverse kinematics. foot_error: (2,) by which it misses the soles [m].
        steps: that have ended so far.
    """

    state: WalkState
    why: str
    estimate: BaseEstimate
    references: References
    balance: Balance
    ik: IkResult
    foot_error: np.ndarray
    steps: int


class Walker:
    """Walks a biped by a velocity, tick by tick, from its sensors alone.

    Attributes:
        robot, feet, settings: of the walk. planner: of the footsteps. plan: of now.
        state: what it does. t: time since the start [s]. steps: that have ended.
        q: (nq,) v: (nv,) commanded, in the world of the commands.
    """

    def __init__(self, robot: Robot, settings: WalkSettings | None = None) -> None:
        """Make it.

        Args:
            robot: with a floating base, two legs, soles.

        Raises:
            RobotError: what is missing.
        """
        self.robot, self.settings = robot, settings or WalkSettings()
        s = self.settings
        self.feet = Feet(robot, s.inward)
        self.estimator = FloatingBaseEstimator(robot, self.feet.frames)
        self.stabilizer = Stabilizer(self.feet, robot.mass, s.gains)
        self.ik = WholeBodyIk(robot, walking_settings(s.dt), limits=walking_limits(robot, self.feet))
        self.tasks = BalanceTasks(robot, self.feet, s.dt, s.momentum)
        self.filter = DynamicsFilter(robot, self.feet, s.filter_dt, s.momentum)
        self._data = robot.model.createData()
        self.reach = LegReach(robot, self.feet, s.crouch)
        self.height = self.reach.height(0.0)
        self.omega = float(np.sqrt(GRAVITY / self.height))
        self.planner = VelocityPlanner(s.limits or self._step_limits(), s.times)
        self.reset()

    def _step_limits(self) -> StepLimits:
        return StepLimits(width=self.feet.width, gap=self.feet.sole_width + 0.03)

    def reset(self) -> None:
        """Begin anew at the next tick, standing."""
        self.estimator.reset()
        self.filter.reset()
        self.planner.command = np.zeros(3)
        self.state, self.why, self.t, self.steps = WalkState.STAND, "", 0.0, 0
        self._started, self._halt, self._counted = False, False, False
        self._balance: Balance | None = None
        self._forces = np.zeros((2, 6))

    def command(self, velocity: np.ndarray) -> None:
        """Walk with a velocity from the coming step on.

        Args:
            velocity: (3,) forward, to the left [m/s], turning to the left [rad/s].

        Raises:
            ConfigError: not three finite numbers; the old one stays.
        """
        v = np.array(velocity, dtype=float)
        if v.shape != (3,) or not np.isfinite(v).all():
            raise ConfigError(f"a velocity to walk with must be three finite numbers, got {np.asarray(velocity).tolist()}")
        self.planner.command = v

    def stop(self) -> None:
        """Come to rest within the limits of the steps."""
        self.planner.command = np.zeros(3)

    def emergency_stop(self) -> None:
        """Come to rest within two steps; at the next tick. No motion is cut: on one leg that would be a fall."""
        self._halt = True

    # -- a tick -------------------------------------------------------------------------------------------------

    def step(self, measured: Measurement) -> WalkReport:
        """The next command, in `q` and `v`.

        Args:
            measured: joints (in the order of the robot), IMU and foot wrenches.
        """
        s = self.settings
        dt = s.dt
        now = self._estimate(measured)
        if not self._started:
            self._start(measured, now)
        self._check_fall(now)
        self._next_plan(now)
        ref = self.plan.at(self.t)
        balance = self.stabilizer.balance(ref, now, self.plan.path.omega, dt)
        self._balance = balance
        self.stabilizer.press(balance.wrenches, self._forces, ref.swinging, dt)
        self.stabilizer.lead(ref, now, self._world_of_commands(now), dt)
        after = self.plan.at(self.t + dt)
        soles, along = self.stabilizer.commanded(after)
        self._center(after, dt)
        if float(np.hypot(*balance.error)) > FOLLOW:
            lag = now.center[:2] - self.center[:2]
            self.center[:2] += dt * np.clip(FOLLOW_GAIN * lag, -FOLLOW_SPEED, FOLLOW_SPEED)
        self.tasks.set(soles, self.center + along, after.heading, after.swinging)
        result = self.ik.step(self.q, self.tasks.tasks, dt)
        self.q, self.v = result.q, result.v
        self._remember()
        self.t += dt
        error = self._foot_error(soles)
        return WalkReport(self.state, self.why, now, ref, balance, result, error, self.steps)

    def _estimate(self, measured: Measurement) -> BaseEstimate:
        self.estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
        self._forces = self.feet.wrenches(self.estimator.data, measured.foot_wrenches)
        stand, ground = [True, True], None
        if self._started:
            ref = self.plan.at(self.t)
            ground = [float(X.translation[2]) for X in ref.soles]
            if ref.swinging is not None and ref.u < EXPECTED:
                stand[ref.swinging] = False
        return self.estimator.update(self._forces[:, 2], stand, self.settings.dt, ground)

    def _start(self, measured: Measurement, now: BaseEstimate) -> None:
        """Stand: the plan begins with the feet where they are."""
        s = self.settings
        soles = [level(X) for X in now.soles]
        self.stabilizer.reset()
        self.ik.reset()
        self.q = now.q.copy()
        self.v = np.zeros(self.robot.nv)
        self.center = now.center.copy()
        middle = 0.5 * sum(X.act(np.array([*m, 0.0])) for X, m in zip(soles, self.feet.middle, strict=True))
        self._from, self._ready = self.center.copy(), self.t
        self._floor = float(middle[2])
        self.omega = float(np.sqrt(GRAVITY / self.height))
        self._rise = (float(self.center[2]), self._floor + self.height, self.t, self.t + READY)
        path = ZmpPath.of(np.array([self.t, self.t + s.start]), np.array([middle[:2], middle[:2]]), self.omega)
        self.plan = WalkPlan(soles, [], path)
        self._before, self._started = np.zeros(3), True
        self._next_sample = self.t

    def _center(self, after: References, dt: float) -> None:
        """The planned centre of mass at the end of the tick."""
        t = self.t + dt
        blend = minimum_jerk(min((t - self._ready) / READY, 1.0))
        self.center[2] = self._height_at(t)
        if blend < 1.0:  # from where it is to above the feet
            self.center[:2] = self._from[:2] + blend * (after.dcm - self._from[:2])
            return
        before = self.plan.at(t - dt).dcm
        self.center[:2] = follow_dcm(self.center[:2], before, after.dcm, self.plan.path.omega, dt)

    def _world_of_commands(self, now: BaseEstimate) -> pin.SE3:
        """Pose, in the estimated world, of the world of the commands."""
        return pin.XYZQUATToSE3(now.q[:7]) * pin.XYZQUATToSE3(self.q[:7]).inverse()

    def _remember(self) -> None:
        if self.t >= self._next_sample - 1e-9:
            L = pin.computeCentroidalMomentum(self.robot.model, self._data, self.q, self.v).angular
            self.filter.remember(np.array(L))
            self._next_sample += self.settings.filter_dt

    def _foot_error(self, soles: list[pin.SE3]) -> np.ndarray:
        pin.framesForwardKinematics(self.robot.model, self._data, self.q)
        off = [self._data.oMf[f].translation - X.translation for f, X in zip(self.feet.frames, soles, strict=True)]
        return np.linalg.norm(off, axis=1)

    def _check_fall(self, now: BaseEstimate) -> None:
        up = pin.XYZQUATToSE3(now.q[:7]).rotation @ self.robot.X_world_root.rotation.T
        tilt = float(np.arccos(np.clip(up[2, 2], -1, 1)))
        high = now.center[2] - min(X.translation[2] for X in now.soles)
        why = ""
        if tilt > FALLEN_TILT:
            why = f"tilted by {np.degrees(tilt):.0f} deg"
        elif high < FALLEN_HEIGHT * self.height:
            why = f"the centre of mass is {high:.2f} m above the soles"
        elif now.airborne > FALLEN_AIR:
            why = f"no foot touched the ground for {now.airborne:.2f} s"
        if why and self.state != WalkState.FALLEN:
            self.state, self.why = WalkState.FALLEN, why

    # -- planning -----------------------------------------------------------------------------------------------

    def _next_plan(self, now: BaseEstimate) -> None:
        """Begin to walk, go on, adjust a step, or come to rest."""
        s, t = self.settings, self.t
        if self.state == WalkState.FALLEN:
            return
        if self._halt:
            self._stop_now()
        if self.state == WalkState.STAND:
            if self._wanted and t >= self._ready + READY and t >= self.plan.end:
                foot = 0 if self.planner.command[1] > 0 or self.planner.command[2] > 0 else 1
                self.state = WalkState.WALK
                self._replan(t + s.start, foot)
            return
        k = self.plan.index(t)
        if k < 0:
            if not self.plan.phases and t >= self.plan.end:
                self.state = WalkState.STAND
            return
        if k > 0:  # the next swing begins
            self._counted = False
            self._replan(t, self.plan.phases[k].step.foot)
            k = 0
        phase = self.plan.phases[k]
        if t < phase.land - 1e-9:
            u, f = phase.swing.phase(t), self._forces[phase.step.foot, 2]
            if u > EXPECTED and f > TOUCHED * self.stabilizer.weight and phase.land - t > s.dt:
                self._land(phase)
                return
            if s.adjustment is not None and self._pushed:
                self._adjust(now, s.adjustment)
            return
        if not self._counted and t >= phase.land - 1e-9:
            self.steps, self._counted = self.steps + 1, True
        if k == len(self.plan.phases) - 1 and t >= self.plan.end:
            self.state, self._before = WalkState.STAND, np.zeros(3)

    @property
    def _pushed(self) -> bool:
        """The robot is so far off its plan that the next step must help."""
        a, b = self.settings.adjustment, self._balance
        return a is not None and b is not None and (float(np.hypot(*b.error)) > a.threshold or b.cut > a.cut)

    def _adjust(self, now: BaseEstimate, a: AdjustmentSettings) -> None:
        """Move the coming foothold, and the time at which it is reached, toward where they bring the motion back."""
        s, t, plan = self.settings, self.t, self.plan
        phase = plan.phases[0]
        if phase.swing.phase(t) > a.latest_phase:
            return
        foot, limits = phase.step.foot, self.planner.limits
        stance = plan.feet[1 - foot]
        R = stance.rotation[:2, :2].T
        origin = stance.translation[:2]
        w = plan.path.omega
        xi = now.center[:2] + now.center_velocity[:2] / w
        at = R @ (phase.step.X.translation[:2] - origin)
        remaining = phase.land - t
        # Where the zero-moment point would have to stay for the step to end as planned, and as much of it as there is.
        grown = float(np.exp(w * max(remaining, 2 * s.dt)))
        goal = self._planned.translation[:2] + self._offset
        zmp = nearest_in_polygon(self.stabilizer.polygon(plan.at(t)), (xi * grown - goal) / (grown - 1.0))
        side = 1.0 if foot == 0 else -1.0
        wide = sorted((side * limits.gap, side * (limits.gap + limits.sideways + 0.1)))
        choice = SwingChoice(
            xi=R @ (xi - origin),
            zmp=R @ (zmp - origin),
            omega=w,
            foothold=R @ (self._planned.translation[:2] - origin),
            offset=R @ self._offset,
            remaining=remaining,
            soonest=min(max(phase.lift + a.earliest - t, 2 * s.dt), remaining),
            latest=remaining + a.stretch * remaining,
            lower=np.array([-limits.backward - 0.1, wide[0]]),
            upper=np.array([limits.forward + 0.1, wide[1]]),
        )
        u, later = adjust(choice, a)
        move = u - at
        far = float(np.hypot(*move))
        if far < 1e-3 and abs(later - remaining) < 0.5 * s.dt:
            return
        u = at + move * min(1.0, a.speed * s.dt / max(far, 1e-9))
        land = t + float(np.clip(later, remaining - 4 * s.dt, remaining + 4 * s.dt))
        X = pin.SE3(phase.step.X.rotation, np.array([*(stance.rotation[:2, :2] @ u + origin), phase.step.X.translation[2]]))
        step = replace(phase.step, X=X)
        swing = phase.swing.changed(t, X, land)
        first = Phase(step, phase.lift, swing.land, swing.land + step.double, swing)
        feet = [stance, stance]
        feet[foot] = X
        if self.state == WalkState.WALK:
            steps = self.planner.next_steps(replace(step), self._before, AHEAD - 1)[0]
        else:
            steps = self.planner.closing_steps(step, 1)
        new = self._plan_of(plan.feet, [first, *schedule(feet, steps, first.end)], stand=zmp)
        new.momentum = replace(plan.momentum, t0=plan.momentum.t0 + swing.land - phase.land)
        self.plan = new

    @property
    def _wanted(self) -> bool:
        return bool(np.abs(self.planner.command).max() > 1e-6)

    def _replan(self, lift: float, foot: int) -> None:
        """Make a new plan whose first step lifts the foot off at a time, and go on from the present references."""
        s, t = self.settings, self.t
        soles = self.plan.soles(t)
        stance = Footstep(1 - foot, soles[1 - foot], 0.0, 0.0, 0.0)
        if self.state == WalkState.WALK and (self._wanted or np.abs(self._before).max() > 1e-3):
            steps, self._before = self.planner.next_steps(stance, self._before, AHEAD)
        else:
            steps, self._before = self.planner.closing_steps(stance, 1), np.zeros(3)
            self.state = WalkState.STOP
        self._set_height(self._before, lift, lift + steps[0].swing)
        phases = schedule(soles, steps, lift)
        plan = self._plan_of(soles, phases)
        shift = MomentumShift.none()
        if s.horizon > 0:
            self.filter.start(plan, t, s.horizon, self.q, self.v, self.center)
            while not self.filter.done:
                self.filter.advance(50)
            shift = self.filter.result()
        self._go_on(plan, shift, phases[0].end)
        self._planned = phases[0].step.X
        self._offset = self.plan.at(phases[0].land).dcm - self._planned.translation[:2]

    def _plan_of(
        self, soles: Sequence[pin.SE3], phases: Sequence[Phase], carried: float = 0.0, stand: np.ndarray | None = None
    ) -> WalkPlan:
        """The plan through phases from now on.

        Args:
            soles: poses of both before the phases. phases: not over yet.
            carried: time until which the standing foot carries at least [s].
            stand: where (2,) the zero-moment point stays during the swing that has begun.
        """
        now = self.plan.path.zmp(self.t)
        timed = list(phases)
        if phases and carried > phases[0].land:
            timed[0] = phases[0]._replace(land=carried)
        times, corners = zmp_corners(self.feet, soles, timed, self.t, now, self.settings.settle)
        if phases and phases[0].lift <= self.t + 1e-9 < timed[0].land:
            if stand is not None:
                corners[1] = stand
            corners[0] = corners[1]  # the swing has begun: the standing foot carries
        return WalkPlan(soles, phases, ZmpPath.of(times, corners, self.omega))

    def _go_on(self, plan: WalkPlan, shift: MomentumShift, until: float) -> None:
        """Take a plan over without a jump of the reference: the zero-moment point takes up the difference [s]."""
        old = self.plan.at(self.t)
        velocity = self.plan.path.omega * (old.dcm - self.center[:2])
        xi = self.center[:2] + velocity / self.omega
        path = continued(plan.path, xi - shift.at(self.t), until)
        self.plan = WalkPlan(plan.feet, plan.phases, path, shift)

    def _set_height(self, d: np.ndarray, begin: float, end: float) -> None:
        """Lower the centre of mass for longer steps, d (3,) the coming displacement, from one time to another [s]."""
        goal = self._floor + self.reach.height(float(np.hypot(d[0], d[1])))
        if abs(goal - self._rise[1]) > 1e-4:
            self._rise = (self._height_at(self.t), goal, max(begin, self.t), max(end, self.t + 0.2))
            self.omega = float(np.sqrt(GRAVITY / (goal - self._floor)))

    def _height_at(self, t: float) -> float:
        low, high, begin, end = self._rise
        return low + (high - low) * minimum_jerk(min(max((t - begin) / (end - begin), 0.0), 1.0))

    def _land(self, phase: Phase) -> None:
        """The swinging foot has met the ground before its time: it stands from now on; the weight follows as planned."""
        t, foot, plan = self.t, phase.step.foot, self.plan
        X = phase.swing.at(t)
        ground = pin.SE3(phase.step.X.rotation, np.array([*X.translation[:2], phase.step.X.translation[2]]))
        self.stabilizer.offsets[foot][2] += float(X.translation[2] - ground.translation[2])
        landed = SwingPath.between(phase.swing.start, ground, phase.lift, t, 0.0)
        first = Phase(replace(phase.step, X=ground), phase.lift, t, phase.end, landed)
        feet = list(plan.feet)
        feet[foot] = ground
        later = schedule(feet, [p.step for p in plan.phases[1:]], first.end)
        new = self._plan_of(plan.feet, [first, *later], phase.land)
        self._go_on(new, plan.momentum, first.end)

    def _stop_now(self) -> None:
        """Come to rest as soon as possible: the coming foot lands where it captures the motion, the other beside it."""
        self._halt, t = False, self.t
        self.planner.command[:] = 0.0
        if self.state not in (WalkState.WALK, WalkState.STOP):
            return
        self.state, self._before = WalkState.STOP, np.zeros(3)
        k = self.plan.index(t)
        soles = list(self.plan.soles(t))
        if k < 0:  # the first step has not begun: back to the middle
            self._go_on(self._plan_of(soles, []), MomentumShift.none(), t + self.settings.settle)
            return
        phase = self.plan.phases[k]
        swinging = t < phase.land - 1e-9
        foot = phase.step.foot if swinging else 1 - phase.step.foot
        if swinging:
            soles[foot] = phase.swing.start
            lift, land = phase.lift, phase.land
        else:
            lift = phase.end
            land = lift + phase.step.swing
        stance = Footstep(1 - foot, soles[1 - foot], 0.0, 0.0, 0.0)
        base = self.planner.closing_steps(stance, 1)[0]
        xi = self.plan.at(t).dcm

        def plan_for(ahead: float) -> WalkPlan:
            X = base.X * pin.SE3(np.eye(3), np.array([ahead, 0.0, 0.0]))
            step = replace(base, X=X)
            if swinging:
                swing = phase.swing.changed(t, X, land)
                first = Phase(step, lift, land, land + step.double, swing)
            else:
                first = schedule(soles, [step], lift)[0]
            feet = list(soles)
            feet[foot] = X
            last = self.planner.closing_steps(Footstep(foot, X, 0.0, 0.0, 0.0), 1)
            return self._plan_of(soles, [first, *schedule(feet, last, first.end)])

        forward = soles[1 - foot].rotation[:2, 0]
        zero, one = (float(plan_for(x).path.dcm(t) @ forward) for x in (0.0, 0.1))
        shift = self.plan.momentum
        wanted = float((xi - shift.at(t)) @ forward)
        most = self.planner.limits
        ahead = float(np.clip((wanted - zero) / (one - zero) * 0.1, -most.backward, most.forward))
        plan = plan_for(ahead)
        self._go_on(plan, MomentumShift.none(), plan.phases[0].end)


class LegReach:
    """How high the centre of mass may be, for legs to keep their bend at the end of a step."""

    def __init__(self, robot: Robot, feet: Feet, crouch: float, share: float = 0.96) -> None:
        """Measure the legs.

        Args:
            robot, feet: whose. crouch: of the centre of mass below the neutral posture [m]. share: of the stretched leg.
        """
        q = robot.q("neutral")
        center = robot.center_of_mass(q)
        ground = float(min(robot.frame_positions(q, feet.frames)[:, 2]))
        leg = JointGroups.of(robot).l_leg
        ends = [robot.model.getJointId(robot.joint_names[leg[0]]), robot.model.frames[feet.frames[0]].parentJoint]
        hip, ankle = (robot.data.oMi[k].translation.copy() for k in ends)
        robot.frame_positions(robot.q("zero"), feet.frames)
        stretched = np.linalg.norm(np.subtract(*(robot.data.oMi[k].translation for k in ends)))
        self.length, self.above = share * float(stretched), float(hip[2] - ankle[2])
        self.neutral, self.crouch = float(center[2] - ground), crouch

    def height(self, step: float) -> float:
        """Of the centre of mass above the soles for a displacement a step [m]; a rear foot lifts off 0.6 of it behind."""
        legs = float(np.sqrt(max(self.length**2 - (0.6 * step) ** 2, (0.5 * self.length) ** 2)))
        return self.neutral - max(self.crouch, self.above - legs)


def level(X: pin.SE3) -> pin.SE3:
    """The pose turned upright: only its place and heading."""
    yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)
    return pin.SE3(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), X.translation)
