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
    low, high = np.empty(len(joints)), np.empty(len(joints))
    before = np.zeros(len(joints)) if previous is None else previous
    limit = np.inf if previous is None else acceleration
    fill_velocity_bounds(joints, lower, upper, velocity, dt, recovery, before, limit, low, high)
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
            down = min(max(max(down, -braking_speed(below, acceleration, dt)), least), most)
            up = min(max(min(up, braking_speed(above, acceleration, dt)), least), most)
        low[i], high[i] = down, up


@kernel
def braking_speed(room: float, acceleration: float, dt: float) -> float:
    """The highest speed [rad/s] from which a joint can stop within its room [rad], in steps of dt.

    A joint that moves at v during this step and brakes by a dt in each of the next ones needs v^2 / (2 a) + v dt / 2,
    and up to a dt^2 / 8 more where v is no whole multiple of a dt.
    """
    half = 0.5 * acceleration * dt
    sure = max(room - 0.125 * acceleration * dt * dt, 0.0)
    return np.sqrt(half * half + 2.0 * acceleration * sure) - half
