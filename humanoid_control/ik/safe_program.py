"""The pieces of the safe solver's quadratic program, compiled: cost, bounds of the free velocities, braking."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.limits import fill_velocity_bounds, keep_acceleration
from humanoid_control.jit import kernel

ROUNDING = 1e-9  # [rad] by which a joint may be outside its range for no reason


@kernel
def fill_cost(
    J: np.ndarray,
    wanted: np.ndarray,
    diagonal: np.ndarray,
    linear: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
) -> None:
    """Lower triangle of H = J^T J + S^T diag(diagonal) S, and g = S^T linear - J^T wanted.

    Args:
        J: (m, k) weighted rows of the tasks by the free velocities. wanted: (m,).
        diagonal, linear: (nv,) by all velocities v = S u.
        column_of, factor: (nv,) of Moving, which are S.
        H, g: (k, k), (k,) filled.
    """
    m, k = J.shape
    for i in range(k):
        g[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    for r in range(m):
        for i in range(k):
            s = J[r, i]
            if s == 0.0:
                continue
            g[i] -= s * wanted[r]
            for j in range(i + 1):
                H[i, j] += s * J[r, j]
    for c in range(diagonal.shape[0]):
        i, f = column_of[c], factor[c]
        if i >= 0:
            H[i, i] += f * f * diagonal[c]
            g[i] += f * linear[c]


@kernel
def add_rows(
    J: np.ndarray,
    wanted: np.ndarray,
    weight: float,
    column_of: np.ndarray,
    factor: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
) -> None:
    """Add the rows of one more task, J (m, nv) by all velocities, to the lower triangle of H and to g."""
    k = g.shape[0]
    a = np.empty(k)
    for r in range(J.shape[0]):
        a[:] = 0.0
        for c in range(J.shape[1]):
            if column_of[c] >= 0:
                a[column_of[c]] += weight * factor[c] * J[r, c]
        for i in range(k):
            s = a[i]
            if s == 0.0:
                continue
            g[i] -= s * weight * wanted[r]
            for j in range(i + 1):
                H[i, j] += s * a[j]


@kernel
def fill_bounds(
    joints: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    speed: np.ndarray,
    dt: float,
    recovery: float,
    previous: np.ndarray,
    acceleration: float,
    base_speed: float,
    leaving_speed: float,
    inside: bool,
    column_of: np.ndarray,
    factor: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> float:
    """Bounds (k,) of the free velocities, from those of the joints that each of them moves.

    Args:
        joints, lower, upper, speed: (n,) [rad], [rad/s].
        dt: [s]. recovery: [rad/s].
        previous: (nv,) velocity of the last tick. acceleration: [rad/s^2]. base_speed: bound for a floating base.
        leaving_speed: bound for joints while shapes are `inside` each other or a joint is outside its range [rad/s].
        column_of, factor: (nv,) of Moving.
        low, high: (k,) filled, low <= high.

    Returns:
        how far the worst joint is outside its range [rad].
    """
    n, nv = joints.shape[0], previous.shape[0]
    down, up = np.empty(n), np.empty(n)
    outside = 0.0
    for i in range(n):
        outside = max(outside, lower[i] - joints[i], joints[i] - upper[i])
    most = leaving_speed if inside or outside > ROUNDING else np.inf
    limit = np.empty(n)
    for i in range(n):
        limit[i] = min(speed[i], most)
    before, step = previous[nv - n :], acceleration * dt
    fill_velocity_bounds(joints, lower, upper, limit, dt, recovery, before, acceleration, down, up, 0.0)
    keep_acceleration(down, up, before, step)
    low[:], high[:] = -base_speed, base_speed
    for i in range(n):
        c = column_of[nv - n + i]
        if c < 0:
            continue
        f = factor[nv - n + i]
        a, b = (down[i] / f, up[i] / f) if f > 0.0 else (up[i] / f, down[i] / f)
        if f == 1.0 and low[c] == -base_speed and high[c] == base_speed:
            low[c], high[c] = a, b
        else:  # a joint and what mimics it: both, or where that cannot be the one that came first
            a, b = min(max(a, low[c]), high[c]), min(max(b, low[c]), high[c])
            low[c], high[c] = a, b
    return outside


@kernel
def fill_braking(
    v: np.ndarray,
    iv: int,
    step: float,
    column_of: np.ndarray,
    factor: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    out: np.ndarray,
) -> None:
    """The velocity (nv,) within the bounds that brakes hardest: every joint by step, a base in the same proportion.

    Args:
        v: (nv,) velocity of the last tick. iv: where joints begin. step: [rad/s].
        column_of, factor: (nv,) of Moving. low, high: (k,) bounds of the free velocities.
        out: (nv,) filled.
    """
    nv, fastest = v.shape[0], 0.0
    u = np.zeros(low.shape[0])
    for c in range(iv, nv):
        fastest = max(fastest, abs(v[c]))
    share = max(0.0, 1.0 - step / fastest) if fastest > 0.0 else 0.0
    for c in range(nv - 1, -1, -1):  # a joint that others mimic comes before them, so it is the last to be written
        k = column_of[c]
        if k >= 0:
            least = share * v[c] if c < iv else np.sign(v[c]) * max(abs(v[c]) - step, 0.0)
            u[k] = min(max(least / factor[c], low[k]), high[k])
    for c in range(nv):
        out[c] = factor[c] * u[column_of[c]] if column_of[c] >= 0 else 0.0


@kernel
def keep_range(before: np.ndarray, lower: np.ndarray, upper: np.ndarray, joints: np.ndarray) -> None:
    """Keep joints (n,) that rounding has put outside inside; one that was outside before does not go farther out."""
    for i in range(joints.shape[0]):
        joints[i] = min(max(joints[i], min(lower[i], before[i])), max(upper[i], before[i]))
