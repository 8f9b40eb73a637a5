"""Kernels of the torque gate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack

SPEED_SHARE = 0.8  # share of the speed limit above which torque along the motion falls
# share of the speed limit with zero torque: with 1.0, joints of falling robots reached 1.2 of the limit
NO_TORQUE = 0.9
RANGE, SPEED = 1, 2  # rules that may act (bits)


class GateArrays(NamedTuple):
    """Arrays of n joints: q [rad], v [rad/s], torques [N m].

    Attributes:
        target: q, v, tau, kp, kd (5, n).
        inertia: diagonal of the joint-space inertia (n,) [kg m^2].
        horizon: h [s].
        settling: T [s].
    """

    target: F2
    q: F1
    v: F1
    lower: F1
    upper: F1
    speed: F1
    limit: F1
    inertia: F1
    tau: F1
    horizon: float
    settling: float


@kernel
def close_loops(table: Table[GateArrays]) -> int:
    """Compute clipped, finite PD torques; return the rules that may act."""
    a = unpack(table, GateArrays)
    rules = 0
    for i in range(a.q.shape[0]):
        q, v = a.q[i], a.v[i]
        # rows of target: 0 q, 1 v, 2 tau, 3 kp, 4 kd
        tau = a.target[3, i] * (a.target[0, i] - q) + a.target[4, i] * (a.target[1, i] - v) + a.target[2, i]
        a.tau[i] = min(max(tau, -a.limit[i]), a.limit[i]) if np.isfinite(tau) else 0.0
        # a cheap test here spares the inertia and the other kernels in most steps
        ahead = q + a.horizon * v
        if ahead > a.upper[i] or ahead < a.lower[i]:
            rules |= RANGE
        if abs(v) > SPEED_SHARE * a.speed[i]:
            rules |= SPEED
    return rules


@kernel
def keep_range(table: Table[GateArrays]) -> bool:
    """Bound torques of joints that leave their range within the horizon; True if changed."""
    a = unpack(table, GateArrays)
    changed, h, T = False, a.horizon, a.settling
    for i in range(a.q.shape[0]):
        q, v, most = a.q[i], a.v[i], a.limit[i]
        ahead, tau = q + h * v, a.tau[i]
        # torque for the speed that just reaches the limit after h, attained within T; never above the torque limit
        if ahead < a.lower[i]:
            tau = max(tau, min(a.inertia[i] * ((a.lower[i] - q) / h - v) / T, most))
        if ahead > a.upper[i]:
            tau = min(tau, max(a.inertia[i] * ((a.upper[i] - q) / h - v) / T, -most))
        changed = changed or tau != a.tau[i]
        a.tau[i] = tau
    return changed


@kernel
def keep_speed(table: Table[GateArrays]) -> bool:
    """Reduce torque along the motion near the speed limit; True if changed."""
    a = unpack(table, GateArrays)
    changed = False
    for i in range(a.q.shape[0]):
        v, limit, most = a.v[i], a.speed[i], a.limit[i]
        if abs(v) > SPEED_SHARE * limit:
            # linear from full torque at SPEED_SHARE to zero at NO_TORQUE, braking beyond
            left = most * (NO_TORQUE * limit - abs(v)) / ((NO_TORQUE - SPEED_SHARE) * limit)
            # only the bound along the motion; opposing torque stays
            tau = min(a.tau[i], max(left, -most)) if v > 0 else max(a.tau[i], min(-left, most))
            changed = changed or tau != a.tau[i]
            a.tau[i] = tau
    return changed
