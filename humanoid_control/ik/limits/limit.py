"""Limits: inequalities that the next velocity must keep, while tasks say only what it should do; and those of joints.

Joints have a speed, a range with room to brake, an acceleration; and a velocity that brakes hardest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.ik.free_velocities import Bounds, DofMap, DofSelection
from humanoid_control.ik.solver import IkSettings
from humanoid_control.jit import kernel
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, keep_acceleration, keep_range
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.packed import Packed, Table, unpack
from humanoid_control.robots.robot import Robot


class IkState(NamedTuple):
    """State of a tick that limits are computed from.

    Attributes:
        robot: robot of the solver.
        settings: settings of the solver.
        dofs: degrees of freedom of the solver.
        data: kinematics, Jacobians and frame placements at q.
        q: (nq,) where the robot is.
        v: (nv,) commanded at the last tick.
        dt: [s].
        acceleration: (nv,) limits [rad/s^2], those of a floating base are the setting's.
        braking: (n,) deceleration that joints count on before the end of their range. Both are the same arrays while
            the settings are.
    """

    robot: Robot
    settings: IkSettings
    dofs: DofSelection
    data: pin.Data
    q: np.ndarray
    v: np.ndarray
    dt: float
    acceleration: np.ndarray
    braking: np.ndarray


class SoftRows(NamedTuple):
    """Rows A u >= b of the free velocities, scaled: a slack in row i costs the weight times scale_i^2.

    Attributes:
        A: (r, k).
        b: (r,).
        scale: (r,) by which a row was multiplied.
    """

    A: F2
    b: F1
    scale: F1


class Limit:
    """Inequalities on the next velocity v (nv,): lower <= v <= upper, and A v >= b - s with a slack s >= 0 that costs.

    A limit overrides what it needs: `tighten` for bounds, `max_rows` and `rows` for inequalities, `update` for what it
    measures once a tick. The order in a solver's list is that of precedence: a later limit cuts what an earlier one
    left, but never to nothing (the bounds collapse to the nearest point that it allows). A limit may remember things
    from tick to tick, so each solver needs its own.
    """

    def max_rows(self, robot: Robot) -> int:
        """The largest number of rows: arrays are allocated once."""
        return 0

    def reset(self) -> None:
        """Forget earlier ticks."""

    def update(self, state: IkState) -> None:
        """Measure the quantities of the tick."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        """Cut the bounds (nv,) of the velocity in place, [rad/s], of a floating base [m/s, rad/s]."""

    def rows(self, state: IkState, A: np.ndarray, b: np.ndarray, slack_weight: np.ndarray) -> int:
        """Write rows A v >= b.

        Args:
            A: (max_rows, nv) of zeros, filled.
            b: (max_rows,) filled.
            slack_weight: (max_rows,) cost of the square of each row's slack; those of the settings, may be changed.

        Returns:
            how many rows were written.
        """
        return 0

    def free_rows(self, state: IkState, bounds: Bounds, out: SoftRows) -> int:
        """Write the rows by the free velocities u, v = S u, between their bounds: how many were written."""
        weight = state.settings.slack_weight
        most = self.max_rows(state.robot)
        A, weights = np.zeros((most, state.robot.nv)), np.full(most, weight)
        count = self.rows(state, A, out.b[:most], weights)
        scale = np.sqrt(weights[:count] / weight)
        out.A[:count] = scale[:, None] * state.dofs.reduce(A[:count])
        out.b[:count] *= scale
        out.scale[:count] = scale
        return count


def clamp_bounds(lower: np.ndarray, upper: np.ndarray, low: np.ndarray | float, high: np.ndarray | float) -> None:
    """Cut bounds in place to low..high; where that leaves nothing, to the end of it that is nearest."""
    np.clip(lower, low, high, out=lower)
    np.clip(upper, low, high, out=upper)


# -------- Joints


ROUNDING = 1e-9  # [rad] by which a joint may be outside its range for no reason


class VelocityLimit(Limit):
    """Speed limits: the share `velocity_scale` of those of the joints, and `base_velocity` of a floating base."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        s = state.settings
        keep_speed(state.robot.velocity, s.velocity_scale, s.base_velocity, lower, upper)


class ConfigurationLimit(Limit):
    """Joint ranges: no joint leaves its own, and each is only as fast as it can still brake before the end of it.

    From outside (a bad start) a joint returns at `joint_recovery_speed` at most, and meanwhile none is faster than
    `recovery_joint_speed`. Earlier limits on speed are kept.

    Attributes:
        violation: how far the worst joint is outside its range [rad], 0 where none is.
    """

    def __init__(self) -> None:
        self.violation = 0.0
        self._braking: np.ndarray | None = None

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        r, s = state.robot, state.settings
        if state.braking is not self._braking:
            self._braking = state.braking
            limits = JointLimits(r.lower, r.upper, r.velocity)
            self._limits = Packed(RangeLimits(limits, state.acceleration[r.iv :].copy(), state.braking))
        speeds = RangeSpeeds(s.joint_recovery_speed, s.recovery_joint_speed, s.range_ease)
        self.violation = keep_configuration(self._limits.table, state.q, state.dt, speeds, state.v, lower, upper)


class AccelerationLimit(Limit):
    """No joint changes its velocity by more than its own acceleration times dt; before all limits that come earlier."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        iv = state.robot.iv
        keep_acceleration(lower[iv:], upper[iv:], state.v[iv:], state.acceleration[iv:], state.dt)


SIDE_SPEED = 0.5  # [rad/s] back from the wrong side of an angle
SIDE_SHARE = 0.5  # of the way to the angle that a joint may go in one tick, however large the gain


class JointSideLimit(Limit):
    """Some joints stay on one side of an angle each, such as knees that must not stretch: later limits may cut it.

    A joint comes near the angle as an error that decays, and from the wrong side back at SIDE_SPEED at most.

    Attributes:
        packed: the JointSides; changes apply from the next tick.
    """

    def __init__(self, joints: Sequence[int], angles: Sequence[float], sides: Sequence[float], gain: float) -> None:
        """Make the limit.

        Args:
            joints: indices (m,).
            angles: [rad].
            sides: +1 where a joint stays above its angle, -1 below it.
            gain: how fast a joint may come near it [1/s].
        """
        given = [np.array(x, dtype=float) for x in (angles, sides, [gain])]
        self.packed = Packed(JointSides(np.array(joints, dtype=np.int64), *given))

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        keep_sides(self.packed.table, state.q, state.dt, lower, upper)


class JointSides(NamedTuple):
    """Sides of m joints: indices, angles [rad] and signs (m,) as of `JointSideLimit`; gain (1,) [1/s]."""

    joints: I1
    angle: F1
    side: F1
    gain: F1


@kernel
def keep_sides(table: Table[JointSides], q: np.ndarray, dt: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Tighten velocity bounds (nv,) of joints that stay on one side of an angle, never to nothing.

    Args:
        table: of the packed JointSides.
        q: (nq,).
        dt: [s].
    """
    own, more = unpack(table, JointSides), q.shape[0] - lower.shape[0]
    first = 7 if more else 0
    gain = min(own.gain[0], SIDE_SHARE / dt)
    for i in range(own.joints.shape[0]):
        k = first + own.joints[i]
        room, c = own.side[i] * (q[k] - own.angle[i]), k - more
        speed = -gain * room if room > 0.0 else min(SIDE_SPEED, -room / dt)
        if own.side[i] > 0.0:
            lower[c] = min(max(lower[c], speed), upper[c])
        else:
            upper[c] = max(min(upper[c], -speed), lower[c])


@kernel
def keep_speed(velocity: np.ndarray, share: float, base_velocity: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Cut bounds (nv,) to a share of the joints' speed limits (n,), of a floating base to that of its own."""
    iv = lower.shape[0] - velocity.shape[0]
    for c in range(lower.shape[0]):
        speed = share * velocity[c - iv] if c >= iv else base_velocity
        lower[c], upper[c] = min(max(lower[c], -speed), speed), min(max(upper[c], -speed), speed)


class RangeLimits(NamedTuple):
    """Limits of n joints, with acceleration and braking (n,) as of `StepRules`."""

    limits: JointLimits
    acceleration: F1
    braking: F1


class RangeSpeeds(NamedTuple):
    """Speeds [rad/s]: of a joint that returns into its range, and of all joints meanwhile; and `range_ease`."""

    recovery: float
    slow: float
    ease: float


@kernel
def keep_configuration(
    table: Table[RangeLimits],
    q: np.ndarray,
    dt: float,
    speeds: RangeSpeeds,
    previous: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
) -> float:
    """Tighten velocity bounds to the range; those of all joints to a slow speed while one is outside its range.

    Args:
        table: of the packed RangeLimits.
        q: (nq,).
        dt: [s]; shorter ticks may follow.
        previous: (nv,) velocity of the last tick.
        lower: (nv,) lower bounds.
        upper: (nv,) upper bounds.

    Returns:
        how far the worst joint is outside its range [rad].
    """
    own = unpack(table, RangeLimits)
    limits, slow = own.limits, speeds.slow
    rules = StepRules(dt, 0.0, speeds.recovery, own.acceleration, own.braking, speeds.ease)
    n, violation = limits.lower.shape[0], 0.0
    iv = lower.shape[0] - n
    joints, low, high = q[q.shape[0] - n :], lower[iv:], upper[iv:]
    for i in range(n):
        violation = max(violation, limits.lower[i] - joints[i], joints[i] - limits.upper[i])
    if violation > ROUNDING:
        for i in range(n):
            low[i], high[i] = min(max(low[i], -slow), slow), min(max(high[i], -slow), slow)
    keep_range(joints, limits, rules, previous[iv:], low, high)
    return violation


@kernel
def fill_braking(
    v: np.ndarray, iv: int, acceleration: np.ndarray, dt: float, dofs: DofMap, bounds: Bounds, out: np.ndarray
) -> None:
    """The velocity (nv,) within the bounds that brakes hardest: every joint by its own, a base as what rests last.

    Args:
        v: (nv,) velocity of the last tick.
        iv: where joints begin.
        acceleration: (nv,) [rad/s^2].
        dt: [s].
        bounds: of the free velocities.
        out: (nv,) filled.
    """
    nv, ticks, low, high = v.shape[0], 0.0, bounds.lower, bounds.upper
    u = np.zeros(low.shape[0])
    for c in range(iv, nv):
        ticks = max(ticks, abs(v[c]) / (acceleration[c] * dt))
    share = max(0.0, 1.0 - 1.0 / ticks) if ticks > 0.0 else 0.0
    for c in range(nv - 1, -1, -1):  # a joint that others mimic comes before them, so it is the last to be written
        k = dofs.column[c]
        if k >= 0:
            least = share * v[c] if c < iv else np.sign(v[c]) * max(abs(v[c]) - acceleration[c] * dt, 0.0)
            u[k] = min(max(least / dofs.factor[c], low[k]), high[k])
    for c in range(nv):
        out[c] = dofs.factor[c] * u[dofs.column[c]] if dofs.column[c] >= 0 else 0.0
