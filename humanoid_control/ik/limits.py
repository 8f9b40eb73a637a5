"""How fast each joint may move now, so that neither its speed nor its range is ever left."""

from __future__ import annotations

import numpy as np


def velocity_bounds(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    velocity: np.ndarray,
    dt: float,
    recovery: float = 0.5,
    previous: np.ndarray | None = None,
    acceleration: float = np.inf,
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

    Returns:
        Lower and upper bound (n,) [rad/s], lower <= upper always.
    """
    back = np.minimum(recovery, velocity)
    room_down, room_up = joints - lower, upper - joints
    down = np.clip(-room_down / dt, -velocity, back)
    up = np.clip(room_up / dt, -back, velocity)
    down, up = np.minimum(down, up), np.maximum(down, up)
    if previous is None or not np.isfinite(acceleration):
        return down, up
    step = acceleration * dt
    brake_down = np.maximum(down, -braking_speed(room_down, acceleration, dt))
    brake_up = np.minimum(up, braking_speed(room_up, acceleration, dt))
    low = np.clip(previous - step, down, up)
    high = np.clip(previous + step, down, up)
    return np.clip(brake_down, low, high), np.clip(brake_up, low, high)


def braking_speed(room: np.ndarray, acceleration: float, dt: float) -> np.ndarray:
    """The highest speed (n,) [rad/s] from which a joint can stop within its room (n,) [rad], in steps of dt.

    A joint that moves at v during this step and brakes by a dt in each of the next ones needs v^2 / (2 a) + v dt / 2,
    and up to a dt^2 / 8 more where v is no whole multiple of a dt.
    """
    half = 0.5 * acceleration * dt
    sure = np.maximum(room - 0.125 * acceleration * dt * dt, 0.0)
    return np.sqrt(half * half + 2.0 * acceleration * sure) - half
