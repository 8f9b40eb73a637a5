"""Supervision of a running policy: ramped start, catch before a fall, controlled descent.

States: STAND_IN (to the first posture, gains from 0), RUN, HANDOVER (torque blend), CATCH (zero command, or a blended
second policy), SIT (stiffness fades, damping grows), DAMP. No state holds a posture: a rigid standing robot topples.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.errors import PolicyError
from humanoid_control.numerics.minimum_jerk import minimum_jerk
from humanoid_control.policy.checks import sole_tilts
from humanoid_control.policy.gate import arm_joints
from humanoid_control.policy.runner import Command, Policy, PolicyTargets, RobotState
from humanoid_control.robots import Robot

STAND_IN, RUN, HANDOVER, CATCH, SIT, DAMP = "stand in", "run", "handover", "catch", "sit", "damp"
STILL = Command()
UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class SupervisionSettings:
    """Times and thresholds.

    Attributes:
        stand_in: duration of the motion to the first posture [s].
        handover: duration of the blend to another policy [s].
        sit: duration of sitting down until pure damping [s].
        tilt_ahead: catch if the predicted tilt, tilt + rate_time x rate, exceeds it [rad].
        rate_time: prediction time of the tilt [s].
        tilt: sit above it [rad].
        lean: maximum lean of a tracked motion that does not count as tilt [rad].
        out_of_range: excess of targets that counts [rad].
        out_share: catch if this share of the targets of out_window is out of range, and the tilt exceeds out_tilt.
        out_window: duration over which the share is taken [s].
        out_tilt: least tilt for that [rad].
        calm: run again below this predicted tilt [rad].
        calm_time: duration of this before it runs again [s].
        late: permitted lateness, share of a period.
        sole_tilt: excess over the first posture that proves a sensor mismatch [rad].
    """

    stand_in: float = 2.0
    handover: float = 0.3
    sit: float = 0.8
    tilt_ahead: float = 0.6
    rate_time: float = 0.2
    tilt: float = 0.5
    lean: float = 1.0
    out_of_range: float = 0.2
    out_share: float = 0.2
    out_window: float = 0.5
    out_tilt: float = 0.25
    calm: float = 0.3
    calm_time: float = 1.0
    late: float = 0.5
    sole_tilt: float = 0.35


class SupervisionEvent(NamedTuple):
    """Change of state: time [s], state, reason."""

    time: float
    state: str
    why: str


def tilt_of(state: RobotState, leaning: np.ndarray = UP, most: float = np.inf) -> tuple[float, float]:
    """Return tilt of the root link [rad] and its rate [rad/s].

    A robot that follows a bow leans without falling. So the tilt is the angle to the nearest posture on the way from
    upright to the lean of the motion.

    Args:
        leaning: world up axis in the root axes of the motion (3,); `UP`: an upright motion.
        most: maximum lean of the motion that counts [rad].
    """
    x, y, z = up = pin.Quaternion(state.orientation).toRotationMatrix()[2].tolist()  # world up axis in link axes
    gx, gy, gz = _nearest_lean(up, leaning, most)
    wx, wy, wz = state.angular_velocity.tolist()
    ax, ay, az = y * gz - z * gy, z * gx - x * gz, x * gy - y * gx
    tilt, across = math.acos(min(max(x * gx + y * gy + z * gz, -1.0), 1.0)), math.hypot(ax, ay, az)
    if across < 1e-6:
        return tilt, math.hypot(wy * gz - wz * gy, wz * gx - wx * gz, wx * gy - wy * gx)
    return tilt, (wx * ax + wy * ay + wz * az) / across


def _nearest_lean(up: Sequence[float], leaning: np.ndarray, most: float) -> tuple[float, float, float]:
    """Return the up axis nearest to `up` between upright and leaning, at most `most` [rad] from upright."""
    x, y, z = leaning.tolist()
    across = math.hypot(x, y)
    if not (1e-9 < across < 2.0 and math.isfinite(z)):
        return 0.0, 0.0, 1.0
    x, y = x / across, y / across
    angle = math.atan2(x * up[0] + y * up[1], up[2])
    angle = min(max(angle, 0.0), math.atan2(across, z), most)
    return math.sin(angle) * x, math.sin(angle) * y, math.cos(angle)


def blend_by_torque(a: PolicyTargets, b: PolicyTargets, share: float) -> PolicyTargets:
    """Blend targets so that torques blend linearly.

    Args:
        a: finite gains.
        b: finite gains.
        share: share of `b`, 0 to 1.
    """
    kp, kd = ((1.0 - share) * x + share * y for x, y in ((a.kp, b.kp), (a.kd, b.kd)))
    tau = (1.0 - share) * a.tau + share * b.tau
    with np.errstate(divide="ignore", invalid="ignore"):
        q = np.where(kp > 0, ((1.0 - share) * a.kp * a.q + share * b.kp * b.q) / kp, b.q)
        v = np.where(kd > 0, ((1.0 - share) * a.kd * a.v + share * b.kd * b.v) / kd, b.v)
    return PolicyTargets(q, v, tau, kp, kd)


def damping_gains(robot: Robot) -> np.ndarray:
    """Return descent damping (n,): legs 5, ankles and arms 2, small arm joints 0.5 N m s/rad."""
    out = np.full(robot.n, 5.0)
    columns = robot.ancestor_mask[:, robot.iv :].astype(bool)
    for foot in robot.feet:
        joint = robot.model.frames[robot.model.getFrameId(foot.link, pin.FrameType.BODY)].parentJoint
        out[np.flatnonzero(columns[joint])[-ANKLES:]] = 2.0
    arms = arm_joints(robot)
    out[arms] = np.where(robot.effort[arms] < SMALL_EFFORT, 0.5, 2.0)
    return out


ANKLES = 2  # last joints of a leg
SMALL_EFFORT = 10.0  # [N m] of a wrist


class PolicySupervisor:
    """Policy with start, end and supervision.

    Attributes:
        state: STAND_IN, RUN, HANDOVER, CATCH, SIT or DAMP.
    """

    def __init__(
        self,
        policy: Policy,
        hold: tuple[np.ndarray, np.ndarray],
        catcher: Policy | None = None,
        settings: SupervisionSettings | None = None,
    ) -> None:
        """Create the supervisor; runs at once unless `start` is called.

        Args:
            hold: kp, kd (n,) of joints without policy.
            catcher: default: the same policy with zero command.
        """
        self.policy, self.catcher, self.settings = policy, catcher, settings or SupervisionSettings()
        self._hold, self._damping = hold, damping_gains(policy.robot)
        self.reset()

    def reset(self) -> None:
        """Restart in RUN."""
        self.policy.reset()
        self.state, self.events = RUN, list[SupervisionEvent]()
        self._time = self._since = self._calm = 0.0
        self._before: Policy | None = None
        self._from: np.ndarray | None = None
        self._compared = False
        self._last: PolicyTargets | None = None
        self._first: PolicyTargets | None = None
        self._out: deque[bool] = deque(maxlen=max(round(self.settings.out_window / self.policy.period), 1))

    @property
    def reason(self) -> str:
        """Cause of the present state; in DAMP, cause of the descent."""
        return next((e.why for e in reversed(self.events) if e.state != DAMP), "")

    def start(self) -> None:
        """Ramp to the first posture before running."""
        self._change(STAND_IN, "started")
        self._compared = False
        self._from = None

    def stop(self, why: str = "stopped") -> None:
        """Start the descent, unless already descending."""
        if self.state not in (SIT, DAMP):
            self._change(SIT, why)

    def set_late(self, share: float) -> None:
        """Set the permitted lateness, share of a period."""
        self.settings = replace(self.settings, late=share)

    def switch(self, policy: Policy) -> None:
        """Hand over to another policy of the same robot and period.

        Raises:
            PolicyError: if not in RUN, or periods differ.
        """
        if self.state != RUN:
            raise PolicyError(f"a policy can be switched only while one is running, the state is '{self.state}'")
        if abs(policy.period - self.policy.period) > 1e-9:
            raise PolicyError(
                f"{policy.model.name} has a period of {policy.period:g} s, {self.policy.model.name} one of "
                f"{self.policy.period:g} s: they cannot be blended"
            )
        policy.reset()
        self._before, self.policy = self.policy, policy
        self._change(HANDOVER, f"to {policy.model.name}")

    def _change(self, state: str, why: str) -> None:
        self.state, self._since, self._first = state, self._time, None if state != DAMP else self._first
        self.events.append(SupervisionEvent(self._time, state, why))

    def step(self, state: RobotState, command: Command | None = None, late: float = 0.0) -> PolicyTargets:
        """Return targets of all joints with finite gains; never raises.

        Args:
            late: delay of the last inference [s].
        """
        self._time += self.policy.period
        if self.state in (RUN, HANDOVER, CATCH):
            self._watch(state, late)
        targets = self._targets(state, command or STILL)
        self._last = PolicyTargets(*(a.copy() for a in targets))
        return targets

    # -- targets by state -----------------------------------------------------------------------------------------

    def _targets(self, state: RobotState, command: Command) -> PolicyTargets:
        if self.state == STAND_IN:
            return self._standing_in(state)
        if self.state in (RUN, HANDOVER, CATCH):
            try:
                return self._running(state, command)
            except PolicyError as error:
                self._change(SIT, str(error))
        return self._descending(state)

    def _standing_in(self, state: RobotState) -> PolicyTargets:
        if self._from is None:
            self._from = state.q.copy()
        passed = (self._time - self._since) / self.settings.stand_in
        way, goal = minimum_jerk(min(passed, 1.0)), self.policy.start_posture
        rest = self._whole(self.policy.targets)
        if passed >= 1.0:
            self.policy.reset()
            self._change(RUN, "in the first posture")
        zero = np.zeros(len(goal))
        grown = min(passed, 1.0)
        return PolicyTargets(self._from + way * (goal - self._from), zero, zero, grown * rest.kp, grown * rest.kd)

    def _running(self, state: RobotState, command: Command) -> PolicyTargets:
        if self.state == RUN:
            return self._whole(self.policy.step(state, command))
        if self.state == HANDOVER:
            return self._handing_over(state, command)
        if self.catcher is None:
            return self._whole(self.policy.step(state, STILL))
        caught = self._whole(self.catcher.step(state, STILL))
        share = (self._time - self._since) / self.settings.handover
        if share >= 1.0:
            return caught
        own = self._whole(self.policy.step(state, command))
        return blend_by_torque(own, caught, max(share, 0.0))

    def _handing_over(self, state: RobotState, command: Command) -> PolicyTargets:
        """Blend from the previous policy."""
        new = self._whole(self.policy.step(state, command))
        share = (self._time - self._since) / self.settings.handover
        if share >= 1.0 or self._before is None:
            self._change(RUN, "handed over")
            return new
        return blend_by_torque(self._whole(self._before.step(state, command)), new, share)

    def _descending(self, state: RobotState) -> PolicyTargets:
        share = min((self._time - self._since) / self.settings.sit, 1.0)
        if self.state == SIT and share >= 1.0:
            self._change(DAMP, "on the ground")
        n = self.policy.robot.n
        zero, none = np.zeros(n), np.zeros(n)
        fall = PolicyTargets(np.where(np.isfinite(state.q), state.q, 0.0), zero, none, none, self._damping)
        if self.state == DAMP or self._last is None:
            return fall
        if self._first is None:
            self._first = self._last
        return blend_by_torque(self._first, fall, share)

    def _whole(self, targets: PolicyTargets) -> PolicyTargets:
        """Add gains of joints without policy."""
        own = np.isfinite(targets.kp)
        if own.all():
            return targets
        kp, kd = np.where(own, targets.kp, self._hold[0]), np.where(own, targets.kd, self._hold[1])
        return targets._replace(kp=kp, kd=kd)

    # -- the watch --------------------------------------------------------------------------------------------------

    def _watch(self, state: RobotState, late: float) -> None:
        s = self.settings
        if not np.isfinite(state.orientation).all() or not np.isfinite(state.angular_velocity).all():
            self._change(SIT, "the orientation is not a number")
            return
        if late > s.late * self.policy.period:
            why = f"an inference was {1000 * late:.0f} ms late: close other programs, or disable power saving"
            self._change(SIT, why)
            return
        if why := self._misfit(state):
            self._change(SIT, why)
            return
        tilt, rate = tilt_of(state, self._leaning(), s.lean)
        ahead = tilt + s.rate_time * rate
        self._out.append(bool(self.policy.out_of_range.max(initial=0.0) > s.out_of_range))
        if tilt > s.tilt:
            self._change(SIT, f"tilted by {tilt:.2f} rad")
        elif self.state == RUN and ahead > s.tilt_ahead:
            self._catch(f"tilting: {tilt:.2f} rad, {rate:.1f} rad/s")
        elif self.state == RUN and tilt > s.out_tilt and np.mean(self._out) >= s.out_share and len(self._out) > 1:
            self._catch(f"targets beyond the ranges, and tilted by {tilt:.2f} rad")
        elif self.state == CATCH:
            self._calm = self._calm + self.policy.period if abs(ahead) < s.calm else 0.0
            if self._calm >= s.calm_time and self.catcher is None:
                self._change(RUN, "calm again")

    def _leaning(self) -> np.ndarray:
        try:
            return self.policy.leaning
        except PolicyError:  # the next step of the policy reports it
            return UP

    def _misfit(self, state: RobotState) -> str:
        """Return why sensors do not fit a robot on its soles; empty: they fit.

        Both soles tilted: the robot lies, or the IMU is rotated, in another link, or wrong in quaternion order. One: a
        joint of that leg has another sign, zero or place.
        """
        if self._compared or not np.isfinite(state.q).all():
            return ""
        self._compared = True
        robot = self.policy.robot
        R = pin.Quaternion(state.orientation / np.linalg.norm(state.orientation)).toRotationMatrix()
        usual, _ = sole_tilts(robot, self.policy.start_posture, np.eye(3))
        more = sole_tilts(robot, state.q, R)[0] - usual
        tilted = [f"{foot.name} is tilted by {extra:.2f} rad" for foot, extra in zip(robot.feet, more, strict=True)]
        if not len(more) or more.max() <= self.settings.sole_tilt:
            return ""
        if more.min() > self.settings.sole_tilt:
            told = ", ".join(tilted)
            return (
                f"no sole is level according to the IMU, {told}: the robot lies, or the IMU is rotated, mounted "
                "elsewhere, or its quaternion has another order"
            )
        return f"the sole {tilted[int(np.argmax(more))]}: a joint of that leg has a wrong sign, zero or position"

    def _catch(self, why: str) -> None:
        self._calm = 0.0
        if self.catcher is not None:
            self.catcher.reset()
        self._change(CATCH, why)
