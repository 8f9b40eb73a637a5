"""Walking controller: from sensors and a commanded velocity to joint commands."""

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

HIGHEST = 0.1  # [m] bound of the requested height offset
EXPECTED = 0.7  # swing phase after which the foot may touch down
PREPARING = 0.1  # [s] planning time before a lift-off
# [s] double support before the next step: time for the upper body to settle and to absorb a push
LINGERS = 0.5
FOLLOW, FOLLOW_GAIN, FOLLOW_SPEED = 0.03, 4.0, 0.6  # [m], [1/s], [m/s]: after a large push the plan follows the robot
FELT = 0.005  # [m] ground error that the plan follows
LATE, DOWN, DEEPEST = 0.02, 0.25, 0.04  # [s], [m/s], [m]: search of a foot for missing ground
AGAIN = 0.06  # [m/s] search speed after a bounce: faster search keeps bouncing on hard ground
CALMING = 0.15  # [m/s^2] decay of the speed that relaxes the push detection
QUICK, QUICK_ERROR, QUICK_CUT = 0.6, 0.3, 0.5  # [m/s]; [m] and [m] per m/s above it, errors caused by a swing alone
FALLEN_TILT, FALLEN_HEIGHT, FALLEN_AIR = np.radians(35.0), 0.6, 0.25


class WalkState(enum.Enum):
    """State of a walker."""

    STAND = "stand"
    WALK = "walk"
    STOP = "stop"
    FALLEN = "fallen"


@dataclass
class WalkReport:
    """Result of a tick.

    Attributes:
        why: reason of a fall or rejection.
        foot_error: (2,) sole error of the inverse kinematics [m].
        reaction: measured, of the ground on both soles.
        bias: (2,) lean of the CoM against disturbances [m].
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
    """Biped walking controller that follows a velocity from sensor data alone.

    Attributes:
        upper: motion of chest and arms; None: upright chest.
        t: time since the start [s].
        q: (nq,) commanded configuration in the command world.
        v: (nv,) commanded velocity in the command world.
    """

    def __init__(self, robot: Robot, settings: WalkSettings | None = None) -> None:
        """Create the controller.

        Raises:
            RobotError: if the base is fixed, or there are not two legs with soles.
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
        # Dynamics filter samples per tick, so that the filter finishes in time.
        self._inertia = float(inertia_about_center(robot.model, robot.data, robot.q("neutral"))[2, 2])
        self._up = self.robot.X_world_root.rotation[2].copy()  # world vertical in the axes of the upright root link
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
        """Footstep planner."""
        return self.replanner.footsteps

    @property
    def felt(self) -> FeltGround | None:
        """Ground model without a map, or None."""
        return self.replanner.felt

    @property
    def plan(self) -> WalkPlan:
        """Current plan."""
        return self.replanner.plan

    q: np.ndarray
    v: np.ndarray
    center: np.ndarray
    _soles: list[pin.SE3]

    def reset(self) -> None:
        """Restart at the next tick, standing."""
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
            velocity: (3,) forward, left [m/s], left turn [rad/s].

        Raises:
            ConfigError: unless it is three finite numbers; the old velocity stays.
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
        """Requested height offset of the CoM [m]; 0 after `reset`."""
        return self._raised

    def raise_center(self, height: float) -> None:
        """Raise or lower the CoM from the coming steps on, as far as the legs reach.

        Args:
            height: offset within +-HIGHEST [m].

        Raises:
            ConfigError: if out of range; the old offset stays.
        """
        if not abs(height) <= HIGHEST:
            raise ConfigError(f"the centre of mass can be raised by {-HIGHEST:g}..{HIGHEST:g} m, got {height:g}")
        self._raised = self.replanner.raised = float(height)

    def follow(self, steps: Sequence[Footstep], append: bool = False) -> None:
        """Make these footsteps after the current step, then stand.

        Args:
            steps: soles in the estimated world, alternating with the current foot.
            append: append to the list; else replace steps that have not begun.

        Raises:
            ConfigError: if a step is not possible, with its index and the reason; nothing changes.
        """
        self.planner.follow(steps, *self._after_step(), append=append)

    def walk_to(self, X_goal: pin.SE3) -> None:
        """Walk until the middle of the feet reaches place and heading of a pose in the estimated world.

        Raises:
            ConfigError: if it is too far away; nothing changes.
        """
        feet, foot = self._after_step()
        self.planner.follow(self.planner.walk_to(X_goal, feet, foot), feet, foot)
        self.planner.aim(X_goal)

    def _after_step(self) -> tuple[tuple[pin.SE3, pin.SE3], int | None]:
        """Return poses of both soles after the current step, and its foot; None at rest."""
        if not self._started:
            raise ConfigError("footsteps can be requested only after the first tick: before it, the feet are unknown")
        if self.state == WalkState.STAND or not self.plan.phases:
            return self.plan.soles(self.t), None
        phase = self.plan.phases[max(self.plan.index(self.t), 0)]
        return self.plan.soles(phase.land), phase.step.foot

    def imitate(self, motion: UpperMotion | None) -> None:
        """Follow a motion with chest and arms from the coming tick on, standing or walking; None: end.

        A motion must begin and end at rest.

        Raises:
            RobotError: if imitation points are missing.
        """
        if motion is not None:
            self.robot.require_imitation_points()
        self.upper = motion
        self.raise_center(self._raised)

    def stop(self) -> None:
        """Come to rest within the step limits."""
        self.planner.command = np.zeros(3)
        self.planner.clear()

    def emergency_stop(self) -> None:
        """Come to rest within two steps, from the next tick on; a swing is finished, or the robot would fall."""
        self._halt = True

    # -- a tick -------------------------------------------------------------------------------------------------

    def step(self, measured: Measurement) -> WalkReport:
        """Compute the next command in `q` and `v`.

        Args:
            measured: joints in the order of the robot, IMU and foot wrenches.
        """
        s = self.settings
        dt = s.dt
        now = self._estimate(measured)
        if not self._started:
            now = self._start(measured, now)
        self._check_fall(now)
        reaction = self._observe(now)
        now.center = now.center - self._lean  # without the lean, as the plan defines it
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
            self.replanner.raised = self._raised + self._rise.update(self.joints, dt)
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
            if ref.swinging is not None:  # a foot that lands early stands on its foothold
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
        reaction = reaction_of(now.soles, self._forces)
        if self.settings.observer is not None and self.state != WalkState.FALLEN:
            omega = self.plan.path.omega
            seen = MeasuredMotion(now.center[:2], now.center_velocity[:2], self._momentum, reaction, omega)
            self._lean = np.zeros(3)
            self._lean[:2] = self.observer.update(seen, self.settings.dt)
            self.replanner.filter.lean = self._lean
        return reaction

    def _start(self, measured: Measurement, now: BaseEstimate) -> BaseEstimate:
        """Start standing: the plan begins at the measured feet, placed on known ground."""
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
        t = self.t + dt
        blend = minimum_jerk(min((t - self._ready) / READY, 1.0))
        self.center[2] = self.replanner.height_at(t)
        if blend < 1.0:  # blend from the measured position to above the feet
            self.center[:2] = self._from[:2] + blend * (after.dcm - self._from[:2])
            return
        before = self.plan.at(t - dt).dcm
        self.center[:2] = follow_dcm(self.center[:2], before, after.dcm, self.plan.path.omega, dt)

    def _world_of_commands(self, now: BaseEstimate) -> pin.SE3:
        return pin.XYZQUATToSE3(now.q[:7]) * pin.XYZQUATToSE3(self.q[:7]).inverse()

    def _remember(self) -> None:
        self._momentum = np.array(pin.computeCentroidalMomentum(self.robot.model, self._data, self.q, self.v).angular)
        if self.t >= self._next_sample - 1e-9:
            self.replanner.filter.remember(self._momentum)
            self._next_sample += self.settings.filter_dt

    def _foot_error(self, soles: list[pin.SE3]) -> np.ndarray:
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
        """Return filter samples per tick that finish within a time [s]."""
        s = self.settings
        return int(np.ceil(s.horizon / s.filter_dt / max(time / s.dt - 2.0, 1.0)))

    def _swing(self, now: Commanded, measured: BaseEstimate, phase: Phase) -> None:
        s, u = self.settings, phase.swing.phase(self.t)
        if u > EXPECTED and measured.touches[phase.step.foot] and phase.land - self.t > s.dt:
            foot, height = self.replanner.land(now)
            self.stabilizer.offsets[foot][2] += height
        elif s.adjustment is not None and phase.step.double < LINGERS and self._pushed:
            polygon = self.stabilizer.polygon(self.plan.at(self.t))
            self.replanner.adjust(self.t, measured, polygon, s.adjustment)

    def _reach_ground(self, now: Commanded, measured: BaseEstimate, phase: Phase) -> None:
        """Lower a foot that has not landed or has bounced; without a map, adopt its height as the ground."""
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
        a, b = self.settings.adjustment, self._balance
        if a is None or b is None:
            return False
        # Quick legs move the body in every swing, and soles slip: these errors are not pushes.
        quick = max(self._pace - QUICK, 0.0)
        far, cut = a.threshold + QUICK_ERROR * quick, a.cut + QUICK_CUT * quick
        return math.hypot(*b.error.tolist()) > far or b.cut > cut
