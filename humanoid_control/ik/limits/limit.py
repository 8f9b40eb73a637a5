"""Limits: inequalities of the next velocity, and the limits of joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.ik.free_velocities import Bounds, DofMap, DofSelection
from humanoid_control.ik.solver import IkSettings
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, keep_acceleration, keep_range
from humanoid_control.robots.robot import Robot


class IkState(NamedTuple):
    """State of a tick from which limits are computed.

    Attributes:
        data: kinematics, Jacobians and frame placements at q.
        v: command of the last tick (nv,).
        acceleration: limits (nv,) [rad/s^2], or [m/s^2] for a floating base.
        braking: assumed deceleration before range ends (n,) [rad/s^2]; like `acceleration` replaced with the settings.
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
    """Rows A u >= b of the free velocities; slack in row i costs the weight times scale_i^2."""

    A: F2
    b: F1
    scale: F1


class Limit:
    """Inequalities on the next velocity v (nv,): lower <= v <= upper, A v >= b - s with penalised slack s >= 0.

    Subclasses override `tighten` (bounds), `max_rows` and `rows` (inequalities), and `update` (measurements). In a tick
    all are updated, then each tightens in the order of the list, then rows are written. Later limits have precedence:
    they cut the remaining interval, or collapse it to the nearest allowed point. Each solver needs its own limits,
    since they may have state.
    """

    def max_rows(self, robot: Robot) -> int:
        """Largest number of rows, for the allocation of arrays."""
        return 0

    def reset(self) -> None:
        """Discard earlier ticks."""

    def update(self, state: IkState) -> None:
        """Measure the quantities of the tick."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        """Cut the velocity bounds (nv,) in place [rad/s], for a floating base [m/s, rad/s]."""

    def rows(self, state: IkState, A: np.ndarray, b: np.ndarray, slack_weight: np.ndarray) -> int:
        """Write rows A v >= b and return their number.

        Args:
            slack_weight: cost of squared slack (max_rows,), preset from the settings.
        """
        return 0

    def free_rows(self, state: IkState, bounds: Bounds, out: SoftRows) -> int:
        """Write rows for the free velocities u, v = S u, and return their number."""
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
    """Cut bounds in place to low..high; an empty interval collapses to its nearest end."""
    np.clip(lower, low, high, out=lower)
    np.clip(upper, low, high, out=upper)


# -------- Joints


ROUNDING = 1e-9  # [rad] range violation by rounding alone


class VelocityLimit(Limit):
    """Speed limits: `velocity_scale` of the joint limits, `base_velocity` of a floating base."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        s = state.settings
        keep_speed(state.robot.velocity, s.velocity_scale, s.base_velocity, lower, upper)


class ConfigurationLimit(Limit):
    """Joint ranges: each joint is slow enough to brake before the end of its range.

    Outside its range a joint returns at `joint_recovery_speed` at most, and all joints are slowed to
    `recovery_joint_speed`. Earlier speed limits hold.
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
    """Limit of velocity changes to acceleration times dt; precedes earlier limits."""

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        iv = state.robot.iv
        keep_acceleration(lower[iv:], upper[iv:], state.v[iv:], state.acceleration[iv:], state.dt)


SIDE_SPEED = 0.5  # [rad/s] speed of the return from the wrong side
SIDE_SHARE = 0.5  # largest share of the remaining angle in one tick, for any gain


class JointSideLimit(Limit):
    """Limit that keeps joints on one side of an angle, such as knees that must not stretch.

    The distance to the angle decays exponentially at most; the return is at most SIDE_SPEED.

    Attributes:
        packed: the JointSides; changes apply from the next tick.
    """

    def __init__(self, joints: Sequence[int], angles: Sequence[float], sides: Sequence[float], gain: float) -> None:
        """Set the joints, angles and sides.

        Args:
            sides: +1: stay above the angle; -1: below (m,).
            gain: largest decay rate [1/s].
        """
        given = [np.array(x, dtype=float) for x in (angles, sides, [gain])]
        self.packed = Packed(JointSides(np.array(joints, dtype=np.int64), *given))

    def tighten(self, state: IkState, lower: np.ndarray, upper: np.ndarray) -> None:
        keep_sides(self.packed.table, state.q, state.dt, lower, upper)


class JointSides(NamedTuple):
    """Arguments of `JointSideLimit` as arrays (m,); `gain` (1,)."""

    joints: I1
    angle: F1
    side: F1
    gain: F1


@kernel
def keep_sides(table: Table[JointSides], q: np.ndarray, dt: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Tighten velocity bounds (nv,) of joints that stay on one side of an angle, never to nothing."""
    own, more = unpack(table, JointSides), q.shape[0] - lower.shape[0]
    first = 7 if more else 0
    # At most half of the remaining angle in a tick, for any gain.
    gain = min(own.gain[0], SIDE_SHARE / dt)
    for i in range(own.joints.shape[0]):
        k = first + own.joints[i]
        # Distance to the angle, positive on the right side; the velocity towards the angle is limited in proportion to
        # it.
        room, c = own.side[i] * (q[k] - own.angle[i]), k - more
        speed = -gain * room if room > 0.0 else min(SIDE_SPEED, -room / dt)
        # Tighten only the bound towards the angle, and only within the other bound.
        if own.side[i] > 0.0:
            lower[c] = min(max(lower[c], speed), upper[c])
        else:
            upper[c] = max(min(upper[c], -speed), lower[c])


@kernel
def keep_speed(velocity: np.ndarray, share: float, base_velocity: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Cut bounds (nv,) to a share of the joint speeds (n,), and to `base_velocity`."""
    iv = lower.shape[0] - velocity.shape[0]
    for c in range(lower.shape[0]):
        # The first iv velocities are those of a floating base.
        speed = share * velocity[c - iv] if c >= iv else base_velocity
        lower[c], upper[c] = min(max(lower[c], -speed), speed), min(max(upper[c], -speed), speed)


@kernel
def keep_slow(speed: float, lower: np.ndarray, upper: np.ndarray) -> None:
    """Cut bounds (n,) to one speed of all joints [rad/s]."""
    for i in range(lower.shape[0]):
        lower[i], upper[i] = min(max(lower[i], -speed), speed), min(max(upper[i], -speed), speed)


class RangeLimits(NamedTuple):
    """Limits of n joints, with acceleration and braking (n,) as in `StepRules`."""

    limits: JointLimits
    acceleration: F1
    braking: F1


class RangeSpeeds(NamedTuple):
    """Speeds [rad/s] of the return into the range and of all joints meanwhile, and `range_ease`."""

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
    """Tighten velocity bounds to the range, and slow all joints while one is outside.

    Args:
        dt: time step [s]; shorter ticks may follow.

    Returns:
        Distance of the worst joint outside its range [rad].
    """
    own = unpack(table, RangeLimits)
    limits = own.limits
    rules = StepRules(dt, 0.0, speeds.recovery, own.acceleration, own.braking, speeds.ease)
    n, violation = limits.lower.shape[0], 0.0
    iv = lower.shape[0] - n
    joints, low, high = q[q.shape[0] - n :], lower[iv:], upper[iv:]
    # Positive outside the range, on either side.
    for i in range(n):
        violation = max(violation, limits.lower[i] - joints[i], joints[i] - limits.upper[i])
    if violation > ROUNDING:
        keep_slow(speeds.slow, low, high)
    keep_range(joints, limits, rules, previous[iv:], low, high)
    return violation


@kernel(allocates=True)
def fill_braking(
    v: np.ndarray, iv: int, acceleration: np.ndarray, dt: float, dofs: DofMap, bounds: Bounds, out: np.ndarray
) -> None:
    """Write the velocity (nv,) of hardest braking within the bounds; a base stops with the last joint."""
    nv, ticks, low, high = v.shape[0], 0.0, bounds.lower, bounds.upper
    u = np.zeros(low.shape[0])
    # The base slows in proportion, so that it stops with the joint that needs the most ticks.
    for c in range(iv, nv):
        ticks = max(ticks, abs(v[c]) / (acceleration[c] * dt))
    share = max(0.0, 1.0 - 1.0 / ticks) if ticks > 0.0 else 0.0
    # Backwards: a leader precedes its followers, so the leader's own value is written last.
    for c in range(nv - 1, -1, -1):
        k = dofs.column[c]
        if k >= 0:
            # Joints lose acceleration * dt, the base its share; bounds have precedence.
            least = share * v[c] if c < iv else np.sign(v[c]) * max(abs(v[c]) - acceleration[c] * dt, 0.0)
            u[k] = min(max(least / dofs.factor[c], low[k]), high[k])
    for c in range(nv):
        out[c] = dofs.factor[c] * u[dofs.column[c]] if dofs.column[c] >= 0 else 0.0
