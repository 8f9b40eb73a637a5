"""Compiled parts of the gate: the PD loops, and the bounds on torques by range and speed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1, F2
from humanoid_control.numerics.packed import Table, unpack

SPEED_SHARE = 0.8  # of the speed limit, from which torque with the motion falls
NO_TORQUE = 0.9  # of the speed limit, where none is left: with 1.0 joints of falling robots reached 1.2 of it
RANGE, SPEED = 1, 2  # rules that may act


class GateArrays(NamedTuple):
    """Arrays of n joints, and constants.

    Attributes:
        target: (5, n) q, v, tau, kp, kd as in `Targets`.
        q, v: (n,) measured [rad], [rad/s].
        lower, upper: range [rad].
        speed: limits [rad/s].
        limit: of the torques [N m].
        inertia: (n,) diagonal of the joint-space inertia [kg m^2].
        tau: (n,) written [N m].
        horizon, settling: h, T [s].
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
    """Torques of the PD loops with feed-forward, clipped to the limits; which rules may act on them.

    A torque that is not a number is none.
    """
    a = unpack(table, GateArrays)
    rules = 0
    for i in range(a.q.shape[0]):
        q, v = a.q[i], a.v[i]
        tau = a.target[3, i] * (a.target[0, i] - q) + a.target[4, i] * (a.target[1, i] - v) + a.target[2, i]
        a.tau[i] = min(max(tau, -a.limit[i]), a.limit[i]) if np.isfinite(tau) else 0.0
        ahead = q + a.horizon * v
        if ahead > a.upper[i] or ahead < a.lower[i]:
            rules |= RANGE
        if abs(v) > SPEED_SHARE * a.speed[i]:
            rules |= SPEED
    return rules


@kernel
def keep_range(table: Table[GateArrays]) -> bool:
    """Bound the torques of joints that leave their range within the horizon; True where one is changed."""
    a = unpack(table, GateArrays)
    changed, h, T = False, a.horizon, a.settling
    for i in range(a.q.shape[0]):
        q, v, most = a.q[i], a.v[i], a.limit[i]
        ahead, tau = q + h * v, a.tau[i]
        if ahead < a.lower[i]:
            tau = max(tau, min(a.inertia[i] * ((a.lower[i] - q) / h - v) / T, most))
        if ahead > a.upper[i]:
            tau = min(tau, max(a.inertia[i] * ((a.upper[i] - q) / h - v) / T, -most))
        changed = changed or tau != a.tau[i]
        a.tau[i] = tau
    return changed


@kernel
def keep_speed(table: Table[GateArrays]) -> bool:
    """Let torque with the motion fall to nothing at 0.9 of the speed limit; True where one is changed."""
    a = unpack(table, GateArrays)
    changed = False
    for i in range(a.q.shape[0]):
        v, limit, most = a.v[i], a.speed[i], a.limit[i]
        if abs(v) > SPEED_SHARE * limit:
            left = most * (NO_TORQUE * limit - abs(v)) / ((NO_TORQUE - SPEED_SHARE) * limit)
            tau = min(a.tau[i], max(left, -most)) if v > 0 else max(a.tau[i], min(-left, most))
            changed = changed or tau != a.tau[i]
            a.tau[i] = tau
    return changed
