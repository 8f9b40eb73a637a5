"""Velocity bounds of joints: speed, range with room to brake, and acceleration, never left and never empty."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1

EASY_SHARE = 0.05  # of a range, at most, in which a joint comes gently to its end


class JointLimits(NamedTuple):
    """Limits of n joints.

    Attributes:
        lower: (n,) lower end of the range [rad].
        upper: (n,) upper end of the range [rad].
        velocity: (n,) speed [rad/s].
    """

    lower: F1
    upper: F1
    velocity: F1


class StepRules(NamedTuple):
    """Rules of one step.

    Attributes:
        dt: its length [s].
        next_dt: the shortest step that may follow [s].
        recovery_speed: at which a joint returns into its range [rad/s].
        acceleration: (n,) limit on the change of each joint's velocity [rad/s^2]; infinite: none.
        braking: (n,) deceleration that each joint counts on before the end of its range, none above that.
        ease: distance from the end of the range within which a joint's deceleration falls with its distance [rad].
    """

    dt: float
    next_dt: float
    recovery_speed: float
    acceleration: F1
    braking: F1
    ease: float


def velocity_bounds(
    joints: np.ndarray,
    limits: JointLimits,
    dt: float,
    recovery_speed: float = 0.5,
    previous: np.ndarray | None = None,
    acceleration: float | np.ndarray = np.inf,
    next_dt: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the joint velocities for one step of length dt.

    Inside its range a joint may move at full speed, but not past a limit within the step, and only as fast as it can
    still brake before the limit. Outside (a bad start) it must come back, at most at the recovery speed and never
    faster than its speed limit, so the bounds are never empty. Range and speed come before acceleration.

    Args:
        joints: (n,) where the joints are [rad].
        limits: of the joints.
        dt: [s].
        recovery_speed: at which a joint returns into its range [rad/s].
        previous: (n,) velocities of the step before [rad/s]; None: at liberty.
        acceleration: limit on the change of velocity, of all joints or (n,) of each [rad/s^2].
        next_dt: the shortest step that may follow [s]; None: steps are all as long as this one.

    Returns:
        Lower and upper bound (n,) [rad/s], lower <= upper always.
    """
    low, high = np.empty(len(joints)), np.empty(len(joints))
    before = np.zeros(len(joints)) if previous is None else previous
    most = np.full(len(joints), np.inf if previous is None else acceleration)
    rules = StepRules(dt, dt if next_dt is None else next_dt, recovery_speed, most, most, 0.0)
    fill_velocity_bounds(joints, limits, rules, before, low, high)
    return low, high


@kernel
def fill_velocity_bounds(
    joints: np.ndarray, limits: JointLimits, rules: StepRules, previous: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """As `velocity_bounds`, into two arrays (n,)."""
    for i in range(joints.shape[0]):
        low[i], high[i] = -limits.velocity[i], limits.velocity[i]
    keep_range(joints, limits, rules, previous, low, high)


@kernel
def clamp_to_speed(low: np.ndarray, high: np.ndarray, speed: np.ndarray) -> None:
    """Cut bounds (n,) in place to a speed (n,) [rad/s] either way."""
    for i in range(low.shape[0]):
        low[i] = min(max(low[i], -speed[i]), speed[i])
        high[i] = min(max(high[i], -speed[i]), speed[i])


@kernel
def keep_range(
    joints: np.ndarray, limits: JointLimits, rules: StepRules, previous: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Tighten speed bounds (n,) in place so that joints keep their range, and can brake before the end of it.

    Args:
        joints: (n,) [rad].
        limits: of which the range counts here.
        previous: (n,) [rad/s].
        low: (n,) lower bound [rad/s], low <= high.
        high: (n,) upper bound [rad/s].
    """
    dt = rules.dt
    for i in range(joints.shape[0]):
        acceleration, braking = rules.acceleration[i], rules.braking[i]
        slowest, fastest = low[i], high[i]
        below, above = joints[i] - limits.lower[i], limits.upper[i] - joints[i]
        a = min(max(-below / dt, slowest), min(rules.recovery_speed, fastest))
        b = min(max(above / dt, -min(rules.recovery_speed, -slowest)), fastest)
        down, up = min(a, b), max(a, b)
        if np.isfinite(acceleration):
            step = acceleration * dt
            least = min(max(previous[i] - step, down), up)
            most = min(max(previous[i] + step, down), up)
            ease = min(rules.ease, EASY_SHARE * (limits.upper[i] - limits.lower[i]))
            down = min(max(max(down, -approach_speed(below, braking, dt, rules.next_dt, ease)), least), most)
            up = min(max(min(up, approach_speed(above, braking, dt, rules.next_dt, ease)), least), most)
        low[i], high[i] = down, up


@kernel
def keep_acceleration(
    low: np.ndarray, high: np.ndarray, previous: np.ndarray, acceleration: np.ndarray, dt: float
) -> None:
    """Shift bounds (n,) so that no velocity changes by more than acceleration (n,) dt: before range, if one must give.

    From a rest inside the range they never need it. From outside, a joint gets up to its recovery speed this way.
    """
    for i in range(low.shape[0]):
        step = acceleration[i] * dt
        least, most = previous[i] - step, previous[i] + step
        low[i], high[i] = min(max(low[i], least), most), min(max(high[i], least), most)


@kernel
def approach_speed(room: float, acceleration: float, dt: float, next_dt: float, ease: float) -> float:
    """The highest speed [rad/s] toward the end of a range: from it a joint can stop, and its drive stays behind it.

    A drive that brakes lags by what it needs to give the torque; a command that brakes at a constant rate until it is
    there runs it into the stop. So within the distance d of the end the speed is the distance, as it will be after this
    step, over T = sqrt(d / a): the deceleration falls from a to nothing as the joint arrives, and with it the lag.
    Before, v^2 = 2 a (room - d / 2).

    Args:
        room: see `braking_speed`.
        acceleration: see `braking_speed`.
        dt: see `braking_speed`.
        next_dt: see `braking_speed`.
        ease: d [rad].
    """
    if room >= ease or ease <= 0.0:
        return braking_speed(room - 0.5 * ease, acceleration, dt, next_dt)
    return max(room, 0.0) / (np.sqrt(ease / acceleration) + dt)


@kernel
def braking_speed(room: float, acceleration: float, dt: float, next_dt: float) -> float:
    """The highest speed [rad/s] from which a joint can stop within its room [rad].

    A joint that moves at v for dt and then brakes in steps of h needs v (dt - h / 2) + v^2 / (2 a), and up to
    a h^2 / 8 more where v is no whole multiple of a h. Shorter steps need more, so h = 0 holds for any that follow.

    Args:
        room: [rad].
        acceleration: a [rad/s^2].
        dt: of this step [s].
        next_dt: h [s].
    """
    b = acceleration * (dt - 0.5 * next_dt)
    sure = max(room - 0.125 * acceleration * next_dt * next_dt, 0.0)
    return np.sqrt(b * b + 2.0 * acceleration * sure) - b
