"""A walking robot: from its sensors and a velocity to the commands of all its joints."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.floating_base import BaseEstimate, FloatingBaseEstimator
from humanoid_control.ik.whole_body_ik import IkResult, WholeBodyIk
from humanoid_control.kinematics.centroidal import inertia_about_center
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.dancing.upper_body import CenterRise, UpperMotion
from humanoid_control.walking.disturbance import DisturbanceObserver, MeasuredMotion
from humanoid_control.walking.feet import Feet, Reaction, reaction_of
from humanoid_control.walking.footsteps import VelocityPlanner
from humanoid_control.walking.ground.terrain import FeltGround
from humanoid_control.walking.momentum_reference import TurnMomentum
from humanoid_control.walking.plane_geometry import planar
from humanoid_control.walking.planning.lipm import follow_dcm
from humanoid_control.walking.planning.plan import Phase, References, WalkPlan
from humanoid_control.walking.planning.step import Footstep
from humanoid_control.walking.planning.toe_roll import ToeRoll
from humanoid_control.walking.replanner import READY, Commanded, Replanner, WalkSettings
from humanoid_control.walking.stabilizer import Balance, Stabilizer

HIGHEST = 0.1  # [m] by which the centre of mass may be asked to go up or down
EXPECTED = 0.7  # phase of a swing from which on the foot may touch down
PREPARING = 0.1  # [s] before a lift-off in which the coming steps are planned
# [s] on both feet before the next step: worth a look at what the upper body does, and time to catch a push in.
LINGERS = 0.5
FOLLOW, FOLLOW_GAIN, FOLLOW_SPEED = 0.03, 4.0, 0.6  # [m], [1/s], [m/s]: a robot pushed far off takes its plan along
FELT = 0.005  # [m] by which ground may be off its plan before the plan follows it
LATE, DOWN, DEEPEST = 0.02, 0.25, 0.04  # [s], [m/s], [m]: how a foot looks for ground that is not there
AGAIN = 0.06  # [m/s] at which it does so after it bounced: quicker, it bounces on and on where the ground is hard
CALMING = 0.15  # [m/s^2] at which a robot that walked quickly becomes calm again
QUICK, QUICK_ERROR, QUICK_CUT = 0.6, 0.3, 0.5  # [m/s]; [m] and [m] for each m/s beyond, that a swing alone brings
FALLEN_TILT, FALLEN_HEIGHT, FALLEN_AIR = np.radians(35.0), 0.6, 0.25


class WalkState(enum.Enum):
    """What a walker does."""

    STAND = "stand"
    WALK = "walk"
    STOP = "stop"
    FALLEN = "fallen"


@dataclass
class WalkReport:
    """What a tick saw and did.

    Attributes:
        state: of the walker. why: of a fall or a refusal, one line.
        estimate: of the robot. references: of the plan. balance: of the stabilizer.
        ik: of the inverse kinematics. foot_error: (2,) by which it misses the soles [m].
        steps: that have ended so far.
        reaction: of the ground on both soles, as measured.
        bias: (2,) by which the centre of mass leans off the plan for what the model does not know [m].
    """

    state: WalkState
    why: str
    estimate: BaseEstimate
    references: References
    balance: Balance
    ik: IkResult
    foot_error: np.ndarray
    steps: int
    reaction: Reaction
    bias: np.ndarray


class Walker:
    """Walks a biped by a velocity, tick by tick, from its sensors alone.

    Attributes:
        robot, feet, settings: of the walk. planner: of the footsteps. plan: of now.
        roll: of feet with toes; None: they stay flat.
        upper: what chest and arms follow; None: the chest is upright, the arms hang or balance.
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
        self.roll = ToeRoll.of(robot, self.feet, s.roll)
        self.ik = WholeBodyIk(robot, walking_settings(s.dt), limits=walking_limits(robot))
        self.observer = DisturbanceObserver(robot.mass, s.observer)
        self.tasks = BalanceTasks(robot, self.feet, s.dt, s.arms)
        self._data = robot.model.createData()
        self.replanner = Replanner(robot, self.feet, s)
        self.replanner.filter.roll = self.roll
        # Samples of the dynamics filter a tick, so that all are done when they are needed.
        self._inertia = float(inertia_about_center(robot.model, robot.data, robot.q("neutral"))[2, 2])
        self._up = self.robot.X_world_root.rotation[2].copy()  # of the root link where it is upright, in its own axes
        self._samples = self._samples_within(PREPARING)
        self.reset()

    @property
    def joints(self) -> np.ndarray:
        """Commanded joint angles (n,) [rad]."""
        return self.q[self.robot.iq :]

    @property
    def joint_velocity(self) -> np.ndarray:
        """Commanded joint velocities (n,) [rad/s]."""
        return self.v[self.robot.iv :]

    @property
    def planner(self) -> VelocityPlanner:
        """Where footsteps come from."""
        return self.replanner.footsteps

    @property
    def felt(self) -> FeltGround | None:
        """What is known of the ground where there is no map."""
        return self.replanner.felt

    @property
    def plan(self) -> WalkPlan:
        """The plan of now."""
        return self.replanner.plan

    q: np.ndarray
    v: np.ndarray
    center: np.ndarray
    _soles: list[pin.SE3]

    def reset(self) -> None:
        """Begin anew at the next tick, standing."""
        self.estimator.reset()
        if self.roll is not None:
            self.roll.reset()
        self.replanner.filter.reset()
        self.planner.command, self.planner.queue, self.planner.goal = np.zeros(3), [], None
        self.state, self.why, self.t, self.steps = WalkState.STAND, "", 0.0, 0
        self.upper: UpperMotion | None = None
        self._rise, self._raised = CenterRise(self.robot, self.settings.crouch), 0.0
        self._started, self._halt, self._counted, self._landed = False, False, False, False
        self._balance: Balance | None = None
        self._pace = 0.0
        self._forces = np.zeros((2, 6))
        self.observer.reset()
        self._lean, self._momentum = np.zeros(3), np.zeros(3)
        self._turning = self.replanner.filter.turning = TurnMomentum(self._inertia)

    def command(self, velocity: np.ndarray) -> None:
        """Walk with a velocity from the coming step on.

        Args:
            velocity: (3,) forward, to the left [m/s], turning to the left [rad/s].

        Raises:
            ConfigError: not three finite numbers; the old one stays.
        """
        try:
            v = np.array(velocity, dtype=float)
        except (TypeError, ValueError):
            v = np.full(3, np.nan)
        if v.shape != (3,) or not np.isfinite(v).all():
            raise ConfigError(f"a velocity to walk with must be three finite numbers, got {velocity}")
        self.planner.command = v
        self.planner.clear()

    @property
    def raised(self) -> float:
        """How much higher than of itself the centre of mass shall be [m]; 0 after `reset`."""
        return self._raised

    def raise_center(self, height: float) -> None:
        """Walk and stand higher or lower than of itself, as far as the legs reach, with the coming steps.

        Args:
            height: by which the centre of mass is raised, within HIGHEST; negative: lowered [m].

        Raises:
            ConfigError: out of range; the old one stays.
        """
        if not abs(height) <= HIGHEST:
            raise ConfigError(f"the centre of mass can be raised by {-HIGHEST:g}..{HIGHEST:g} m, got {height:g}")
        self._raised = self.replanner.raised = float(height)

    def follow(self, steps: Sequence[Footstep], append: bool = False) -> None:
        """Make these footsteps, after the step that has begun, then stand.

        Args:
            steps: soles in the world of the estimate; the first with the foot that is free then.
            append: after those of the last list; else in place of those that have not begun.

        Raises:
            ConfigError: with the index of the first step that is not possible, and why; nothing changes.
        """
        self.planner.follow(steps, *self._after_step(), append=append)

    def walk_to(self, X_goal: pin.SE3) -> None:
        """Walk until the middle of the feet is at a pose of the world of the estimate; place and heading count.

        Raises:
            ConfigError: it is too far away; nothing changes.
        """
        feet, foot = self._after_step()
        self.planner.follow(self.planner.walk_to(X_goal, feet, foot), feet, foot)
        self.planner.aim(X_goal)

    def _after_step(self) -> tuple[tuple[pin.SE3, pin.SE3], int | None]:
        """Poses of both soles after the step that has begun, and its foot; None at rest."""
        if not self._started:
            raise ConfigError("footsteps can be asked for from the first tick on: before it the feet are not known")
        if self.state == WalkState.STAND or not self.plan.phases:
            return self.plan.soles(self.t), None
        phase = self.plan.phases[max(self.plan.index(self.t), 0)]
        return self.plan.soles(phase.land), phase.step.foot

    def imitate(self, motion: UpperMotion | None) -> None:
        """Let chest and arms follow a motion, standing and walking, from the coming tick on; None: at ease again.

        A motion begins and ends at the rest, so that nothing jumps.

        Raises:
            RobotError: the robot lacks points of imitation.
        """
        if motion is not None:
            self.robot.require_imitation_points()
        self.upper = motion
        self.raise_center(self._raised)

    def stop(self) -> None:
        """Come to rest within the limits of the steps."""
        self.planner.command = np.zeros(3)
        self.planner.clear()

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
            now = self._start(measured, now)
        self._check_fall(now)
        reaction = self._observe(now)
        now.center = now.center - self._lean  # as the plan means it
        self._next_plan(now)
        ref = self.plan.at(self.t)
        balance = self.stabilizer.balance(ref, now, self.plan.path.omega, dt)
        self._balance = balance
        self._pace = max(self.replanner.speed, self._pace - dt * CALMING)
        self.stabilizer.press(balance.wrenches, self._forces, ref.swinging, dt)
        self.stabilizer.lead(ref, now, self._world_of_commands(now), dt)
        after = self.plan.at(self.t + dt)
        self.q[:3] -= self.stabilizer.drop_drift(after)
        soles, along = self.stabilizer.commanded(after)
        if self.roll is not None:
            self.roll.advance(self.plan, self.t + dt, dt)
            soles = self.roll.rolled(soles, self.roll.angles)
        self._center(after, dt)
        if math.hypot(*balance.error.tolist()) > FOLLOW:
            lag = now.center[:2] - self.center[:2]
            self.center[:2] += dt * np.clip(FOLLOW_GAIN * lag, -FOLLOW_SPEED, FOLLOW_SPEED)
        upper = None
        if self.upper is not None:
            self.upper.advance(self.t + dt, dt)
            upper = self.upper.at(self.t + dt)
            self.replanner.raised = self._raised + self._rise.look(self.joints, dt)
        self.tasks.set(soles, self.center + self._lean + along, after.heading, after.swinging, upper)
        self.tasks.hold_pelvis(self.q)
        self.tasks.swing_arms(self.q, self.v, self._turning.at(self.plan, self.t + dt), after.heading)
        if self.roll is not None:
            self.tasks.turn_toes(self.robot, self.roll.joints, self.q, self.roll.toes(), dt)
        result = self.ik.step(self.q, self.tasks.tasks, dt)
        self.q, self.v = result.q, result.v
        self._remember()
        error = self._foot_error(soles)
        self.t += dt
        now.center = now.center + self._lean
        bias = self._lean[:2].copy()
        return WalkReport(self.state, self.why, now, ref, balance, result, error, self.steps, reaction, bias)

    def _estimate(self, measured: Measurement) -> BaseEstimate:
        self.estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
        self._forces = self.feet.wrenches(self.estimator.data, measured.foot_wrenches)
        stand, ground = [True, True], None
        if self.roll is not None:
            self.estimator.stand_on(self.roll.pivots())
            self.stabilizer.stand_on(*self.roll.carrying())
        if self._started:
            ref = self.plan.at(self.t)
            ground = [float(X.translation[2]) for X in ref.soles]
            if ref.swinging is not None:  # a foot that comes down before its time stands on its foothold
                step = self.plan.phases[self.plan.index(self.t)].step
                ground[step.foot] = float(step.X.translation[2])
            if self.felt is not None:
                felt = [float(X.translation[2]) for X in self._soles]
                ground = [f if abs(f - z) > FELT else z for f, z in zip(felt, ground, strict=True)]
            if ref.swinging is not None and ref.u < EXPECTED:
                stand[ref.swinging] = False
        now = self.estimator.update(self._forces[:, 2], stand, self.settings.dt, ground)
        self._soles = now.soles if self.roll is None else self.roll.flat(now.soles)
        if self._started and self.felt is not None and ref.swinging is not None and now.weights[1 - ref.swinging] > 0.9:
            self.felt.feel(self._soles[1 - ref.swinging], self.settings.dt)
        return now

    def _observe(self, now: BaseEstimate) -> Reaction:
        """What the ground does, and the lean against what the model does not know."""
        reaction = reaction_of(now.soles, self._forces)
        if self.settings.observer is not None and self.state != WalkState.FALLEN:
            omega = self.plan.path.omega
            seen = MeasuredMotion(now.center[:2], now.center_velocity[:2], self._momentum, reaction, omega)
            self._lean = np.zeros(3)
            self._lean[:2] = self.observer.look(seen, self.settings.dt)
            self.replanner.filter.lean = self._lean
        return reaction

    def _start(self, measured: Measurement, now: BaseEstimate) -> BaseEstimate:
        """Stand: the plan begins with the feet where they are, on the ground where it is known."""
        soles = [planar(X) for X in now.soles]
        if self.felt is not None:
            self.felt.begin(*now.soles)
            self.felt.place = 0.5 * (soles[0].translation + soles[1].translation)
        if self.felt is None or self.felt.slope.any():
            soles = [self.planner.placed(X, k) for k, X in enumerate(soles)]
            self.estimator.reset([X.act(p) for X, p in zip(soles, self.estimator.pivots, strict=True)])
            now = self._estimate(measured)
        self.stabilizer.reset()
        self.ik.reset()
        self.q = now.q.copy()
        self.v = np.zeros(self.robot.nv)
        self.center = now.center.copy()
        self._from, self._ready = self.center.copy(), self.t
        self.replanner.stand(self.t, soles, self.center)
        self._started = True
        self._next_sample = self.t
        return now

    def _center(self, after: References, dt: float) -> None:
        """The planned centre of mass at the end of the tick."""
        t = self.t + dt
        blend = minimum_jerk(min((t - self._ready) / READY, 1.0))
        self.center[2] = self.replanner.height_at(t)
        if blend < 1.0:  # from where it is to above the feet
            self.center[:2] = self._from[:2] + blend * (after.dcm - self._from[:2])
            return
        before = self.plan.at(t - dt).dcm
        self.center[:2] = follow_dcm(self.center[:2], before, after.dcm, self.plan.path.omega, dt)

    def _world_of_commands(self, now: BaseEstimate) -> pin.SE3:
        """Pose, in the estimated world, of the world of the commands."""
        return pin.XYZQUATToSE3(now.q[:7]) * pin.XYZQUATToSE3(self.q[:7]).inverse()

    def _remember(self) -> None:
        self._momentum = np.array(pin.computeCentroidalMomentum(self.robot.model, self._data, self.q, self.v).angular)
        if self.t >= self._next_sample - 1e-9:
            self.replanner.filter.remember(self._momentum)
            self._next_sample += self.settings.filter_dt

    def _foot_error(self, soles: list[pin.SE3]) -> np.ndarray:
        """By how much the soles miss their places (2,) [m], after `_remember`."""
        model, data = self.robot.model, self._data
        places = [pin.updateFramePlacement(model, data, f).translation for f in self.feet.frames]
        off = ((p - X.translation).tolist() for p, X in zip(places, soles, strict=True))
        return np.array([math.hypot(x, y, z) for x, y, z in off])

    def _check_fall(self, now: BaseEstimate) -> None:
        R_base = pin.Quaternion(now.q[3:7]).toRotationMatrix()
        tilt = math.acos(min(max(float(R_base[2] @ self._up), -1.0), 1.0))
        high = now.center[2] - min(X.translation[2] for X in now.soles)
        why = ""
        if tilt > FALLEN_TILT:
            why = f"tilted by {np.degrees(tilt):.0f} deg"
        elif high < FALLEN_HEIGHT * self.replanner.height:
            why = f"the centre of mass is {high:.2f} m above the soles"
        elif now.airborne > FALLEN_AIR:
            why = f"no foot touched the ground for {now.airborne:.2f} s"
        if why and self.state != WalkState.FALLEN:
            self.state, self.why = WalkState.FALLEN, why

    # -- planning -----------------------------------------------------------------------------------------------

    def _next_plan(self, measured: BaseEstimate) -> None:
        """Begin to walk, go on, adjust a step, or come to rest."""
        s, t = self.settings, self.t
        if self.state == WalkState.FALLEN:
            return
        plans, now = self.replanner, Commanded(t, self.q, self.v, self.center, self.upper)
        if self._halt:
            self._halt = False
            self.stop()
            if self.state != WalkState.STAND:
                self.state = WalkState.STOP
                plans.stop_now(now)
        if self.state == WalkState.STAND:
            ready = t >= self._ready + READY
            if ready:
                plans.raise_center(t)
            if plans.wanted and ready and (t >= self.plan.end or self.upper is not None):
                self.state = WalkState.WALK
                plans.prepare(now, t + s.start, self.planner.first_foot)
            elif ready:
                plans.sway(now, 1)
            return
        k = self.plan.index(t)
        if plans.coming is not None and ((plans.work(self._samples) and k < 0) or k > 0):
            self._counted = False
            if plans.take(now):
                self.state = WalkState.STOP
            k = self.plan.index(t)
        if k < 0:
            if plans.coming is None and not self.plan.phases and t >= self.plan.end:
                self.state = WalkState.STAND
            return
        phase = self.plan.phases[0]
        if t < phase.land - 1e-9:
            self._swing(now, measured, phase)
            return
        if not self._counted:
            self.steps, self._counted, self._landed = self.steps + 1, True, False
        self._reach_ground(now, measured, phase)
        if plans.coming is None and (len(self.plan.phases) > 1 or plans.askew) and phase.end - t <= PREPARING:
            self._samples = self._samples_within(phase.end - t)
            plans.prepare(now, phase.end, 1 - phase.step.foot, self.state == WalkState.STOP)
        elif plans.coming is None and phase.end - t > LINGERS and self.upper is not None and self.upper.known:
            plans.sway(now, 2)
        if len(self.plan.phases) == 1 and t >= self.plan.end:
            self.state = WalkState.STAND
            plans.rest(t)

    def _samples_within(self, time: float) -> int:
        """Samples of the dynamics filter a tick, so that all are done after a time [s]."""
        s = self.settings
        return int(np.ceil(s.horizon / s.filter_dt / max(time / s.dt - 2.0, 1.0)))

    def _swing(self, now: Commanded, measured: BaseEstimate, phase: Phase) -> None:
        """Let a foot land that has met the ground; move its foothold after a push."""
        s, u = self.settings, phase.swing.phase(self.t)
        if u > EXPECTED and measured.touches[phase.step.foot] and phase.land - self.t > s.dt:
            foot, height = self.replanner.land(now)
            self.stabilizer.offsets[foot][2] += height
        elif s.adjustment is not None and phase.step.double < LINGERS and self._pushed:
            polygon = self.stabilizer.polygon(self.plan.at(self.t))
            self.replanner.adjust(self.t, measured, polygon, s.adjustment)

    def _reach_ground(self, now: Commanded, measured: BaseEstimate, phase: Phase) -> None:
        """Lower a foot that should stand and does not, or bounced; where no map says so, take its place as the ground.

        The leg that carries gives way a little, so that the other foot ends some millimetres above the ground: without
        this it would stay there until the other one is asked to carry less, and the weight could not go over to it.
        """
        foot, off = phase.step.foot, self.stabilizer.offsets[phase.step.foot]
        if not measured.touches[foot]:
            if self.t > phase.land + LATE and off[2] > -DEEPEST:
                off[2] -= (AGAIN if self._landed else DOWN) * self.settings.dt
        elif not self._landed:
            self._landed = True
            height, planned = float(self._soles[foot].translation[2]), float(phase.step.X.translation[2])
            if self.felt is not None and FELT < abs(height - planned) < DEEPEST:
                self.replanner.settle(now, height)
                off[2] -= height - planned

    @property
    def _pushed(self) -> bool:
        """The robot is so far off its plan that the next step must help."""
        a, b = self.settings.adjustment, self._balance
        if a is None or b is None:
            return False
        # Quick legs throw the body about in every swing, and soles creep: that is no push.
        quick = max(self._pace - QUICK, 0.0)
        far, cut = a.threshold + QUICK_ERROR * quick, a.cut + QUICK_CUT * quick
        return math.hypot(*b.error.tolist()) > far or b.cut > cut
