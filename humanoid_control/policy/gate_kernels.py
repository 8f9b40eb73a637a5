"""Kernels of the torque gate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairJoints, PairsFound, distance_rate
from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses, joint_poses
from humanoid_control.kinematics.joint_inertia import (
    ModelInertia,
    composite_inertias,
    inertia_diagonal,
    joint_inertia,
    motion_columns,
)
from humanoid_control.multibody.mass_matrix import sparse_factor, sparse_substitute
from humanoid_control.numerics.vec3 import cross, row
from humanoid_control.robots.closing_pairs import Approach, ClosingPairs, find_closing_pairs

SPEED_SHARE = 0.8  # share of the speed limit above which torque along the motion falls
# share of the speed limit with zero torque: with 1.0, joints of falling robots reached 1.2 of the limit
NO_TORQUE = 0.9
# [rad] beyond a range with the full torque back: the inertia of a free foot brakes no ankle that the floor turns
STOP = 0.03
RANGE, SPEED, PAIRS, UNMEASURED = 1, 2, 4, 8  # rules that act, or no measurement (bits)
SANE = 1e6  # [rad], [rad/s] beyond which a measurement is invalid
LEAST_REACH = 1e-6  # [m^2/(kg m^2)] below which the permitted joints cannot separate a pair


class GateRules(NamedTuple):
    """Constants of `GateSettings`.

    Attributes:
        horizon: h [s].
        settling: T [s].
        margin: [m].
        near: [m].
    """

    horizon: float
    settling: float
    margin: float
    near: float
    range: bool
    speed: bool


class GateArrays(NamedTuple):
    """Arrays of n joints: q [rad], v [rad/s], torques [N m]; model, shapes and memory.

    Attributes:
        target: q, v, tau, kp, kd (5, n).
        measured: q, v (2, n).
        q: (nq,) last valid one, with the base at the origin.
        v: (nv,) likewise, with the base at rest.
        inertia: diagonal of the joint-space inertia (n,) [kg m^2].
        raw: PD torque (n,).
        tau: torque of the gate (n,).
        found: pairs nearer than they may be at their speed.
        separating: joints (P, n) that separate each pair of `Robot.pairs`, 0 or 1.
        gradient: d distance / d joint of closing pairs (P, n).
        closing: closing rows of `found`, by increasing pair (P,).
        solved: (nv,).
    """

    rules: GateRules
    target: F2
    measured: F2
    q: F1
    v: F1
    lower: F1
    upper: F1
    speed: F1
    limit: F1
    inertia: F1
    raw: F1
    tau: F1
    tree: ModelTree
    world: WorldPoses
    body: ModelInertia
    pairs: ClosingPairs
    found: PairsFound
    sides: PairJoints
    separating: F2
    gradient: F2
    closing: I1
    solved: F1


@kernel
def limit_torques(table: Table[GateArrays]) -> int:
    """Compute `raw` and `tau` from targets and measurements; return the rules that changed a torque."""
    a = unpack(table, GateArrays)
    n, s = a.tau.shape[0], a.rules
    iq, iv = a.q.shape[0] - n, a.v.shape[0] - n
    for i in range(n):
        if not (abs(a.measured[0, i]) < SANE and abs(a.measured[1, i]) < SANE):  # true for NaN
            return UNMEASURED
    for i in range(n):
        a.q[iq + i], a.v[iv + i] = a.measured[0, i], a.measured[1, i]
    possible, changed = _close_loops(table), 0
    found = find_closing_pairs(a.tree, a.world, a.pairs, a.q, a.v, Approach(s.horizon, s.margin, s.near), a.found)
    if possible & RANGE or found > 0:  # few steps need an inertia
        if found < 0:
            joint_poses(a.tree, a.q, a.world)
        motion_columns(a.tree, a.world, a.body)
    if possible & RANGE:
        composite_inertias(a.tree, a.world, a.body)
        inertia_diagonal(a.body, iv, a.inertia)
        changed |= _keep_range(table)
    if possible & SPEED:
        changed |= _keep_speed(table)
    if found > 0:
        changed |= _keep_apart(table, found)
    return changed


@kernel
def keep_volumes_apart(table: Table[GateArrays], found: int) -> int:
    """Apply the rule of pairs, after `limit_torques`, to the first rows of `found`; return PAIRS if changed."""
    a = unpack(table, GateArrays)
    joint_poses(a.tree, a.q, a.world)
    motion_columns(a.tree, a.world, a.body)
    return _keep_apart(table, found)


@kernel
def _close_loops(table: Table[GateArrays]) -> int:
    """Compute clipped, finite PD torques; return the rules that may act."""
    a = unpack(table, GateArrays)
    n, possible = a.tau.shape[0], 0
    iq, iv = a.q.shape[0] - n, a.v.shape[0] - n
    for i in range(n):
        q, v = a.q[iq + i], a.v[iv + i]
        # rows of target: 0 q, 1 v, 2 tau, 3 kp, 4 kd
        tau = a.target[3, i] * (a.target[0, i] - q) + a.target[4, i] * (a.target[1, i] - v) + a.target[2, i]
        a.raw[i] = a.tau[i] = min(max(tau, -a.limit[i]), a.limit[i]) if np.isfinite(tau) else 0.0
        # a cheap test here spares the inertia and the other kernels in most steps
        ahead = q + a.rules.horizon * v
        if a.rules.range and (ahead > a.upper[i] or ahead < a.lower[i]):
            possible |= RANGE
        if a.rules.speed and abs(v) > SPEED_SHARE * a.speed[i]:
            possible |= SPEED
    return possible


@kernel
def _keep_range(table: Table[GateArrays]) -> int:
    """Bound torques of joints that leave their range within the horizon; return RANGE if changed."""
    a = unpack(table, GateArrays)
    n, changed, h, T = a.tau.shape[0], 0, a.rules.horizon, a.rules.settling
    iq, iv = a.q.shape[0] - n, a.v.shape[0] - n
    for i in range(n):
        q, v, most, tau = a.q[iq + i], a.v[iv + i], a.limit[i], a.tau[i]
        ahead = q + h * v
        # torque for the speed that just reaches the limit after h, attained within T; never above the torque limit
        if ahead < a.lower[i]:
            stop = most / STOP * max(a.lower[i] - q, 0.0)
            tau = max(tau, min(a.inertia[i] * ((a.lower[i] - q) / h - v) / T + stop, most))
        if ahead > a.upper[i]:
            stop = most / STOP * max(q - a.upper[i], 0.0)
            tau = min(tau, max(a.inertia[i] * ((a.upper[i] - q) / h - v) / T - stop, -most))
        if tau != a.tau[i]:
            changed = RANGE
        a.tau[i] = tau
    return changed


@kernel
def _keep_speed(table: Table[GateArrays]) -> int:
    """Reduce torque along the motion near the speed limit; return SPEED if changed."""
    a = unpack(table, GateArrays)
    n, changed = a.tau.shape[0], 0
    iv = a.v.shape[0] - n
    for i in range(n):
        v, limit, most = a.v[iv + i], a.speed[i], a.limit[i]
        if abs(v) > SPEED_SHARE * limit:
            # linear from full torque at SPEED_SHARE to zero at NO_TORQUE, braking beyond
            left = most * (NO_TORQUE * limit - abs(v)) / ((NO_TORQUE - SPEED_SHARE) * limit)
            # only the bound along the motion; opposing torque stays
            tau = min(a.tau[i], max(left, -most)) if v > 0 else max(a.tau[i], min(-left, most))
            if tau != a.tau[i]:
                changed = SPEED
            a.tau[i] = tau
    return changed


@kernel
def _keep_apart(table: Table[GateArrays], found: int) -> int:
    """Accelerate closing pairs apart, one after the other; return PAIRS if changed.

    One pass: with torques at their limits, more passes would only move joints that separate nothing.
    """
    a = unpack(table, GateArrays)
    n, s = a.tau.shape[0], a.rules
    iv = a.v.shape[0] - n
    closing = _closing_rows(table, found)
    if closing == 0:
        return 0
    composite_inertias(a.tree, a.world, a.body)
    joint_inertia(a.body)
    sparse_factor(a.body.M, a.body.above)
    changed = 0
    for c in range(closing):
        k = a.closing[c]
        pair, J, rate = a.found.pair[k], a.gradient[k], 0.0
        for i in range(n):
            a.solved[iv + i] = J[i]
            rate += J[i] * a.v[iv + i]
        for i in range(iv):
            a.solved[i] = 0.0
        # g = (M^-1 J^T)^T: torque tau accelerates the distance by g tau
        sparse_substitute(a.body.M, a.body.above, a.solved)
        lack = ((s.margin - a.found.distance[k]) / s.horizon - rate) / s.settling
        reach = 0.0
        for i in range(n):
            lack -= a.solved[iv + i] * a.tau[i]
            reach += a.solved[iv + i] * a.separating[pair, i] * J[i]
        if lack > 0.0 and reach > LEAST_REACH:
            for i in range(n):
                tau = a.tau[i] + lack / reach * (a.separating[pair, i] * J[i])
                tau = min(max(tau, -a.limit[i]), a.limit[i])
                if tau != a.tau[i]:
                    changed = PAIRS
                a.tau[i] = tau
    return changed


@kernel
def _closing_rows(table: Table[GateArrays], found: int) -> int:
    """Fill `closing` and the gradients of pairs nearer than the margin after the horizon; return their number."""
    a = unpack(table, GateArrays)
    n, rows, count = a.tau.shape[0], a.found, 0
    iv = a.v.shape[0] - n
    for k in range(found):
        normal = row(rows.normal, k)
        moment_1, moment_2 = cross(row(rows.point_1, k), normal), cross(row(rows.point_2, k), normal)
        i, j, rate = a.sides.first[rows.pair[k]], a.sides.second[rows.pair[k]], 0.0
        moves = a.sides.ancestor_mask
        for c in range(n):
            m1, m2 = moves[i, iv + c], moves[j, iv + c]
            # a joint that moves both sides, or neither, changes no distance
            slope = distance_rate(normal, moment_1, moment_2, m1, m2, a.body.motion, iv + c) if m1 != m2 else 0.0
            a.gradient[k, c] = slope
            rate += slope * a.v[iv + c]
        if rows.distance[k] + a.rules.horizon * rate < a.rules.margin:
            # by increasing pair: the order of the rows depends on what was measured before
            c = count
            while c > 0 and rows.pair[a.closing[c - 1]] > rows.pair[k]:
                a.closing[c] = a.closing[c - 1]
                c -= 1
            a.closing[c] = k
            count += 1
    return count
