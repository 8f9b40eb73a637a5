"""Velocity bounds of joints from speed, range and acceleration."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import kernel

EASY_SHARE = 0.05  # limits `ease` to a share of the range, so that short ranges keep their speed


class JointLimits(NamedTuple):
    """Limits of n joints.

    Attributes:
        lower: (n,) [rad].
        upper: (n,) [rad].
        velocity: (n,) [rad/s].
    """

    lower: F1
    upper: F1
    velocity: F1


class StepRules(NamedTuple):
    """Parameters of the bounds of one step.

    Attributes:
        dt: [s].
        next_dt: shortest step that may follow [s].
        recovery_speed: of a return into the range [rad/s].
        acceleration: (n,) limit [rad/s^2]; inf: none.
        braking: (n,) deceleration before the end of the range [rad/s^2].
        ease: distance from the end with falling deceleration [rad].
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
    """Return lower <= upper bounds (n,) on joint velocities for one step [rad/s].

    A joint cannot pass a limit within the step and can brake before it. Outside its range it must return. Range and
    speed take priority over acceleration.

    Args:
        joints: (n,) [rad].
        dt: [s].
        recovery_speed: limit of a return [rad/s].
        previous: (n,) velocities [rad/s]; None: no acceleration limit.
        acceleration: scalar or (n,) [rad/s^2].
        next_dt: shortest step that may follow [s]; None: dt.
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
    """Fill two arrays (n,) with the bounds of `velocity_bounds`."""
    for i in range(joints.shape[0]):
        low[i], high[i] = -limits.velocity[i], limits.velocity[i]
    keep_range(joints, limits, rules, previous, low, high)


@kernel
def keep_range(
    joints: np.ndarray, limits: JointLimits, rules: StepRules, previous: np.ndarray, low: np.ndarray, high: np.ndarray
) -> None:
    """Tighten bounds [rad/s] in place so that joints stay in their range and can brake before its end.

    Args:
        joints: (n,) [rad].
        limits: only the range is used.
        previous: (n,) velocities [rad/s].
        low: (n,) <= high.
        high: (n,).
    """
    dt = rules.dt
    for i in range(joints.shape[0]):
        acceleration, braking = rules.acceleration[i], rules.braking[i]
        slowest, fastest = low[i], high[i]
        below, above = joints[i] - limits.lower[i], limits.upper[i] - joints[i]
        # Outside the range -below or -above is positive: the bound then demands a return, at most at recovery speed.
        a = min(max(-below / dt, slowest), min(rules.recovery_speed, fastest))
        b = min(max(above / dt, -min(rules.recovery_speed, -slowest)), fastest)
        # Sorted, so that the bounds are never empty.
        down, up = min(a, b), max(a, b)
        if np.isfinite(acceleration):
            # Acceleration is clipped to [down, up] first: range and speed take priority.
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
    """Shift bounds (n,): no velocity changes by more than acceleration (n,) dt; overrides the range."""
    for i in range(low.shape[0]):
        step = acceleration[i] * dt
        # Clip both bounds to [least, most]: an unreachable range bound becomes the nearest reachable velocity.
        least, most = previous[i] - step, previous[i] + step
        low[i], high[i] = min(max(low[i], least), most), min(max(high[i], least), most)


@kernel
def approach_speed(room: float, acceleration: float, dt: float, next_dt: float, ease: float) -> float:
    """Return the highest speed [rad/s] toward the end of a range for a lagging drive.

    Within `ease` = d the speed is (room after this step) / sqrt(d / a). Farther away, v^2 = 2 a (room - d / 2). Other
    arguments as in `braking_speed`.
    """
    if room >= ease or ease <= 0.0:
        # Eased part: v (T + dt) = room. Both branches give v = sqrt(a ease) at room = ease as steps go to zero.
        return braking_speed(room - 0.5 * ease, acceleration, dt, next_dt)
    return max(room, 0.0) / (np.sqrt(ease / acceleration) + dt)


@kernel
def braking_speed(room: float, acceleration: float, dt: float, next_dt: float) -> float:
    """Return the highest speed [rad/s] from which a joint can stop within a distance.

    At v for dt, then braking in steps of h, it needs v (dt - h / 2) + v^2 / (2 a), and up to a h^2 / 8 more. h = 0 is
    safe for any steps.

    Args:
        room: distance [rad].
        acceleration: a [rad/s^2].
        dt: [s].
        next_dt: h [s].
    """
    # Positive root of v^2 / (2 a) + v (dt - h / 2) = room - a h^2 / 8.
    b = acceleration * (dt - 0.5 * next_dt)
    sure = max(room - 0.125 * acceleration * next_dt * next_dt, 0.0)
    return np.sqrt(b * b + 2.0 * acceleration * sure) - b
