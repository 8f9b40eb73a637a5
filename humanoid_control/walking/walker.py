"""A walking robot: from its sensors and a velocity to the commands of all its joints."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.estimation.floating_base import BaseEstimate, FloatingBaseEstimator
from humanoid_control.ik.whole_body_ik import IkResult, WholeBodyIk
from humanoid_control.kinematics.joint_state import Measurement
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.robots.robot import Robot
from humanoid_control.walking.balance_tasks import BalanceTasks, walking_limits, walking_settings
from humanoid_control.walking.dynamics_filter import DynamicsFilter
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.footsteps import Footstep, StepLimits, StepTimes, VelocityPlanner
from humanoid_control.walking.lipm import ZmpPath, follow_dcm
from humanoid_control.walking.plan import MomentumShift, References, WalkPlan, continued, schedule, zmp_corners
from humanoid_control.walking.stabilizer import Balance, Stabilizer, StabilizerGains

GRAVITY = 9.81
AHEAD = 4  # steps that are planned
READY = 0.8  # [s] to settle into the posture of the walk
EXPECTED = 0.7  # phase of a swing from which on the foot may touch down
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
        gains: of the stabilizer.
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
        center = robot.center_of_mass(robot.q("neutral"))
        ground = min(robot.frame_positions(robot.q("neutral"), self.feet.frames)[:, 2])
        self.height = float(center[2] - ground - s.crouch)
        self.omega = float(np.sqrt(GRAVITY / self.height))
        self.planner = VelocityPlanner(s.limits or self._step_limits(), s.times)
        self.reset()

    def _step_limits(self) -> StepLimits:
        return StepLimits(width=self.feet.width, gap=self.feet.sole_width + 0.03)

    def reset(self) -> None:
        """Begin anew at the next tick, standing."""
        self.state, self.why, self.t, self.steps = WalkState.STAND, "", 0.0, 0
        self._started = False
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
        self._next_plan()
        ref = self.plan.at(self.t)
        balance = self.stabilizer.balance(ref, now, self.omega, dt)
        self.stabilizer.press(balance.wrenches, self._forces, ref.swinging, dt)
        self.stabilizer.lead(ref, now, self._world_of_commands(now), dt)
        after = self.plan.at(self.t + dt)
        soles, along = self.stabilizer.commanded(after)
        self._center(after, dt)
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
        stand = [True, True]
        if self._started:
            ref = self.plan.at(self.t)
            if ref.swinging is not None and ref.u < EXPECTED:
                stand[ref.swinging] = False
        return self.estimator.update(self._forces[:, 2], stand, self.settings.dt)

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
        path = ZmpPath.of(np.array([self.t, self.t + s.start]), np.array([middle[:2], middle[:2]]), self.omega)
        self.plan, self._waiting = WalkPlan(soles, [], path), None
        self._before, self._started = np.zeros(3), True
        self._next_sample = self.t

    def _center(self, after: References, dt: float) -> None:
        """The planned centre of mass at the end of the tick."""
        t = self.t + dt
        blend = minimum_jerk(min((t - self._ready) / READY, 1.0))
        goal = self._floor + self.height
        self.center[2] = self._from[2] + blend * (goal - self._from[2])
        if blend < 1.0:  # from where it is to above the feet
            self.center[:2] = self._from[:2] + blend * (after.dcm - self._from[:2])
            return
        before = self.plan.at(t - dt).dcm
        self.center[:2] = follow_dcm(self.center[:2], before, after.dcm, self.omega, dt)

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

    def _next_plan(self) -> None:
        """Begin to walk, go on, or come to rest."""
        moving = bool(np.abs(self.planner.command).max() > 1e-6)
        if self.state == WalkState.FALLEN:
            return
        if self.state == WalkState.STAND:
            if moving and self.t >= self._ready + READY and self.t >= self.plan.end:
                foot = 0 if self.planner.command[1] > 0 or self.planner.command[2] > 0 else 1
                self._replan(self.t + self.settings.start, foot)
                self.state = WalkState.WALK
            return
        k = self.plan.index(self.t)
        if k >= 0 and self.t >= self.plan.phases[k].end - 1e-9 and k == len(self.plan.phases) - 1:
            if self.t >= self.plan.end:
                self.state, self._before = WalkState.STAND, np.zeros(3)
                self.steps += 1
            return
        if k > 0 or (k == 0 and self.t < self.plan.phases[0].lift + 0.5 * self.settings.dt and self._waiting is None):
            # A step has ended and the next one lifts off.
            if k > 0:
                self.steps += 1
                self._replan(self.plan.phases[k].lift, self.plan.phases[k].step.foot)

    def _replan(self, lift: float, foot: int) -> None:
        """Make a new plan whose first step lifts the foot off at a time, and go on from the present references."""
        s, t = self.settings, self.t
        soles = self.plan.soles(t)
        stance = Footstep(1 - foot, soles[1 - foot], 0.0, 0.0, 0.0)
        steps, self._before = self._steps(stance, soles[foot])
        phases = schedule(soles, steps, lift)
        now = self.plan.at(t)
        p = self.plan.path.zmp(t)
        times, corners = zmp_corners(self.feet, soles, phases, t, p, s.settle)
        if lift <= t + 1e-9:
            corners[0] = corners[1] if len(corners) > 1 else corners[0]
        path = ZmpPath.of(times, corners, self.omega)
        plan = WalkPlan(soles, phases, path)
        shift = MomentumShift.none()
        if s.horizon > 0:
            self.filter.start(plan, t, s.horizon, self.q, self.v, self.center)
            while not self.filter.done:
                self.filter.advance(50)
            shift = self.filter.result()
        path = continued(path, now.dcm - shift.at(t), phases[0].end)
        self.plan = WalkPlan(soles, phases, path, shift)

    def _steps(self, stance: Footstep, X_other: pin.SE3) -> tuple[list[Footstep], np.ndarray]:
        """The coming footsteps: by the command, or one that closes the feet."""
        if np.abs(self.planner.command).max() > 1e-6 or np.abs(self._before).max() > 1e-3:
            return self.planner.next_steps(stance, self._before, AHEAD)
        steps, before = self.planner.next_steps(stance, np.zeros(3), 1)
        self.state = WalkState.STOP
        return steps, before


def level(X: pin.SE3) -> pin.SE3:
    """The pose turned upright: only its place and heading."""
    yaw = float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))
    c, s = np.cos(yaw), np.sin(yaw)
    return pin.SE3(np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]), X.translation)
