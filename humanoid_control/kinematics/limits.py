"""How fast each joint may move now, so that neither its speed nor its range is ever left."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel


def velocity_bounds(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    velocity: np.ndarray,
    dt: float,
    recovery: float = 0.5,
    previous: np.ndarray | None = None,
    acceleration: float = np.inf,
    next_dt: float | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the joint velocities for one step of length dt.

    Inside its range a joint may move at full speed, but not past a limit within the step, and only as fast as it can
    still brake before the limit. Outside (a bad start) it must come back, at most at `recovery` and never faster than
    its speed limit, so the bounds are never empty. Range and speed come before acceleration.

    Args:
        joints: (n,) where the joints are [rad].
        lower, upper: (n,) their range [rad].
        velocity: (n,) their speed limits [rad/s].
        dt: [s].
        recovery: speed at which a joint returns into its range [rad/s].
        previous: (n,) velocities of the step before [rad/s]; None: at liberty.
        acceleration: limit on the change of velocity [rad/s^2].
        next_dt: the shortest step that may follow [s]; None: steps are all as long as this one.

    Returns:
        Lower and upper bound (n,) [rad/s], lower <= upper always.
    """
    low, high = np.empty(len(joints)), np.empty(len(joints))
    before = np.zeros(len(joints)) if previous is None else previous
    limit = np.inf if previous is None else acceleration
    soon = dt if next_dt is None else next_dt
    fill_velocity_bounds(joints, lower, upper, velocity, dt, recovery, before, limit, low, high, soon)
    return low, high


@kernel
def fill_velocity_bounds(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    velocity: np.ndarray,
    dt: float,
    recovery: float,
    previous: np.ndarray,
    acceleration: float,
    low: np.ndarray,
    high: np.ndarray,
    next_dt: float,
) -> None:
    """As `velocity_bounds`, into two arrays (n,); an infinite acceleration is no limit."""
    for i in range(joints.shape[0]):
        back = min(recovery, velocity[i])
        below, above = joints[i] - lower[i], upper[i] - joints[i]
        a = min(max(-below / dt, -velocity[i]), back)
        b = min(max(above / dt, -back), velocity[i])
        down, up = min(a, b), max(a, b)
        if np.isfinite(acceleration):
            step = acceleration * dt
            least = min(max(previous[i] - step, down), up)
            most = min(max(previous[i] + step, down), up)
            down = min(max(max(down, -braking_speed(below, acceleration, dt, next_dt)), least), most)
            up = min(max(min(up, braking_speed(above, acceleration, dt, next_dt)), least), most)
        low[i], high[i] = down, up


@kernel
def keep_acceleration(low: np.ndarray, high: np.ndarray, previous: np.ndarray, step: float) -> None:
    """Shift bounds (n,) so that no velocity changes by more than step [rad/s]: before range, where both cannot be.

    From a rest inside the range they never need it. From outside, a joint gets up to its recovery speed this way.
    """
    for i in range(low.shape[0]):
        least, most = previous[i] - step, previous[i] + step
        low[i], high[i] = min(max(low[i], least), most), min(max(high[i], least), most)


@kernel
def braking_speed(room: float, acceleration: float, dt: float, next_dt: float) -> float:
    """The highest speed [rad/s] from which a joint can stop within its room [rad].

    A joint that moves at v for dt and then brakes in steps of h needs v (dt - h / 2) + v^2 / (2 a), and up to
    a h^2 / 8 more where v is no whole multiple of a h. Shorter steps need more, so h = 0 holds for any that follow.

    Args:
        room: [rad]. acceleration: a [rad/s^2]. dt: of this step [s]. next_dt: h [s].
    """
    b = acceleration * (dt - 0.5 * next_dt)
    sure = max(room - 0.125 * acceleration * next_dt * next_dt, 0.0)
    return np.sqrt(b * b + 2.0 * acceleration * sure) - b
