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
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds on the joint velocities for one step of length dt.

    Inside its range a joint may move at full speed but not past a limit within the step. Outside (a bad start) it
    must come back, at most at `recovery` and never faster than its speed limit, so the bounds are never empty.

    Args:
        joints: (n,) where the joints are [rad].
        lower, upper: (n,) their range [rad].
        velocity: (n,) their speed limits [rad/s].
        dt: [s].
        recovery: speed at which a joint returns into its range [rad/s].

    Returns:
        Lower and upper bound (n,) [rad/s], lower <= upper always.
    """
    back = np.minimum(recovery, velocity)
    down = np.clip((lower - joints) / dt, -velocity, back)
    up = np.clip((upper - joints) / dt, -back, velocity)
    return np.minimum(down, up), np.maximum(down, up)
