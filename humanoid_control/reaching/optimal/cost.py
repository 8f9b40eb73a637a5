"""Cost of an arm motion by quadrature, with gradient and exact banded Hessian.

The integrand is half the weighted squares of torque, torque rate, joint jerk and hand jerk. Limits are terms of an
augmented Lagrangian.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3, I2
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.reaching.optimal.hand_jerk import HandJerk, hand_jerk
from humanoid_control.reaching.optimal.inverse_dynamics import STEP as COMPLEX_STEP
from humanoid_control.reaching.optimal.inverse_dynamics import (
    ArmMotion,
    SecondDerivatives,
    TorqueRate,
    arm_motion,
    move_arm,
    torque,
    torque_derivatives,
    torque_rate,
    torque_second_derivatives,
)
from humanoid_control.reaching.optimal.parametrisation import Quadrature
from humanoid_control.reaching.optimal.spatial_motion import ArmModel

ANGLE, SPEED, TORQUE = range(3)


class CostWeights(NamedTuple):
    """Weights: 1/(N m)^2, s^2/(N m)^2, s^6/rad^2, s^6/m^2, per s if costs are dimensionless."""

    torque: float
    torque_change: float
    jerk: float
    hand_jerk: float


class Limits(NamedTuple):
    """Limits at the quadrature points, and their multipliers.

    Attributes:
        low: (3, N) angles [rad], speeds [rad/s], torques [N m].
        high: (3, N).
        below: (P, 3, N) multipliers >= 0.
        above: (P, 3, N) multipliers >= 0.
        penalty: (3,) rho; 0: off.
    """

    low: F2
    high: F2
    below: F3
    above: F3
    penalty: F1


class ReachProblem(NamedTuple):
    """Cost of a reach as a function of trajectory parameters x (G, N).

    Attributes:
        arm: arm model.
        quadrature: points and basis.
        weights: cost weights.
        limits: motion limits.
        column: (G, N) index among the unknowns; -1: fixed.
    """

    arm: ArmModel
    quadrature: Quadrature
    weights: CostWeights
    limits: Limits
    column: I2


class CostMemory(NamedTuple):
    """Reused memory of `reach_cost`."""

    motion: ArmMotion
    along: ArmMotion
    rate: TorqueRate
    hand: HandJerk
    second: SecondDerivatives
    z: np.ndarray
    tau: np.ndarray
    J: np.ndarray
    g: np.ndarray
    C: np.ndarray
    T: np.ndarray


@kernel(allocates=True)
def cost_memory(n: int, local: int) -> CostMemory:
    """Return memory for n joints and `local` parameters per segment."""
    real, steps = np.zeros(n), np.zeros(n, np.complex128)
    rate = TorqueRate(np.zeros(n), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)))
    hand = HandJerk(np.zeros(3), np.zeros((3, n)), np.zeros((3, n)), np.zeros((3, n)), np.zeros((3, n)))
    second = SecondDerivatives(np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)))
    return CostMemory(
        arm_motion(real),
        arm_motion(steps),
        rate,
        hand,
        second,
        np.zeros((4, n)),
        np.zeros(n),
        np.zeros((n, 4 * n)),
        np.zeros(4 * n),
        np.zeros((4 * n, 4 * n)),
        np.zeros((local, 4, n, n)),
    )


@kernel(allocates=True)
def reach_cost(table: Table[ReachProblem], x: np.ndarray) -> float:
    """Return the cost of a trajectory x (G, N) with its limit terms."""
    problem = unpack(table, ReachProblem)
    quadrature, memory = problem.quadrature, cost_memory(x.shape[1], problem.quadrature.phi.shape[1])
    total = 0.0
    for segment in range(quadrature.segments):
        for point in range(quadrature.weight.shape[0]):
            _place(quadrature, segment, point, x, memory.z)
            p = segment * quadrature.weight.shape[0] + point
            total += quadrature.weight[point] * _integrand(problem, p, memory, 0)
    return total


@kernel(allocates=True)
def reach_cost_derivatives(
    table: Table[ReachProblem], x: np.ndarray, level: int, gradient: np.ndarray, H: np.ndarray
) -> float:
    """Return the cost of x (G, N); fill gradient (n,) and Hessian.

    Args:
        x: (G, N).
        level: 1: Gauss-Newton; 2: exact, except for hand jerk.
        gradient: output.
        H: (n, w + 1) output: entry (i, k), k <= i, at [k, i - k], a LAPACK band.
    """
    problem = unpack(table, ReachProblem)
    quadrature, memory = problem.quadrature, cost_memory(x.shape[1], problem.quadrature.phi.shape[1])
    w = problem.weights
    # Without rates and jerks nothing depends on the third derivative.
    orders = 4 if w.torque_change > 0.0 or w.jerk > 0.0 or w.hand_jerk > 0.0 else 3
    gradient[:] = 0.0
    H[:] = 0.0
    total = 0.0
    # A point depends only on the parameters of its segment, so H is a band.
    for segment in range(quadrature.segments):
        for point in range(quadrature.weight.shape[0]):
            _place(quadrature, segment, point, x, memory.z)
            p, weight = segment * quadrature.weight.shape[0] + point, quadrature.weight[point]
            total += weight * _integrand(problem, p, memory, level)
            first = segment * quadrature.stride
            _spread(quadrature.phi[point], weight, problem.column[first:], memory, orders, gradient, H)
    return total


@kernel
def _place(quadrature: Quadrature, segment: int, point: int, x: np.ndarray, z: np.ndarray) -> None:
    phi, first = quadrature.phi[point], segment * quadrature.stride
    for k in range(4):
        for i in range(x.shape[1]):
            t = 0.0
            for a in range(phi.shape[0]):
                t += phi[a, k] * x[first + a, i]
            z[k, i] = t


@kernel
def _integrand(problem: ReachProblem, p: int, memory: CostMemory, level: int) -> float:
    """Return the cost density at z; from level 1 fill gradient g (4N,) and Hessian C (4N, 4N) by z."""
    arm, weights, z = problem.arm, problem.weights, memory.z
    n = z.shape[1]
    if level > 0:
        memory.g[:] = 0.0
        memory.C[:] = 0.0
    cost = 0.0
    if weights.jerk > 0.0:
        for i in range(n):
            cost += 0.5 * weights.jerk * z[3, i] ** 2
            if level > 0:
                memory.g[3 * n + i] += weights.jerk * z[3, i]
                memory.C[3 * n + i, 3 * n + i] += weights.jerk
    limits = problem.limits
    for kind in range(2):
        if limits.penalty[kind] > 0.0:
            for i in range(n):
                c, slope, curve = _held(limits, p, kind, i, z[kind, i])
                cost += c
                if level > 0:
                    memory.g[kind * n + i] += slope
                    memory.C[kind * n + i, kind * n + i] += curve
    if weights.torque > 0.0 or limits.penalty[TORQUE] > 0.0:
        cost += _torque_cost(problem, p, memory, level)
    if weights.torque_change > 0.0:
        cost += _torque_change_cost(arm, weights.torque_change, memory, level)
    if weights.hand_jerk > 0.0:
        hand_jerk(arm, z, memory.motion, memory.hand)
        h = memory.hand
        cost += 0.5 * weights.hand_jerk * (h.jerk[0] ** 2 + h.jerk[1] ** 2 + h.jerk[2] ** 2)
        if level > 0:
            for r in range(3):
                for i in range(n):
                    memory.J[r, i], memory.J[r, n + i] = h.by_q[r, i], h.by_v[r, i]
                    memory.J[r, 2 * n + i], memory.J[r, 3 * n + i] = h.by_a[r, i], h.by_jerk[r, i]
                _add_square(memory, r, 4 * n, weights.hand_jerk * h.jerk[r], weights.hand_jerk)
    return cost


@kernel
def _held(limits: Limits, p: int, kind: int, i: int, value: float) -> tuple[float, float, float]:
    """Return the augmented Lagrangian term of low <= value <= high, and two derivatives."""
    rho, cost, slope, curve = limits.penalty[kind], 0.0, 0.0, 0.0
    for upper in range(2):
        limit = limits.high[kind, i] if upper else limits.low[kind, i]
        if np.isinf(limit):
            continue
        sign = 1.0 if upper else -1.0
        multiplier = limits.above[p, kind, i] if upper else limits.below[p, kind, i]
        force = max(0.0, multiplier + rho * sign * (value - limit))
        cost += (force * force - multiplier * multiplier) / (2.0 * rho)
        slope += sign * force
        curve += rho if force > 0.0 else 0.0
    return cost, slope, curve


@kernel
def _add_square(memory: CostMemory, r: int, size: int, slope: float, curve: float) -> None:
    """Add to g and C the terms of a scalar with derivative J[r]."""
    for i in range(size):
        # Gauss-Newton term: slope J of the gradient, curve J^T J of the Hessian, lower triangle.
        memory.g[i] += slope * memory.J[r, i]
        t = curve * memory.J[r, i]
        for k in range(i + 1):
            memory.C[i, k] += t * memory.J[r, k]


@kernel
def _torque_cost(problem: ReachProblem, p: int, memory: CostMemory, level: int) -> float:
    z, tau, s, weight = memory.z, memory.tau, memory.motion, problem.weights.torque
    n, limited = z.shape[1], problem.limits.penalty[TORQUE] > 0.0
    move_arm(problem.arm, z[0], z[1], z[2], s)
    torque(s, tau)
    cost = 0.0
    if level > 0:
        torque_derivatives(s, memory.rate.by_q, memory.rate.by_v, memory.rate.by_a)
    for r in range(n):
        cost += 0.5 * weight * tau[r] * tau[r]
        slope, curve = weight * tau[r], weight
        if limited:
            c, dc, ddc = _held(problem.limits, p, TORQUE, r, tau[r])
            cost, slope, curve = cost + c, slope + dc, curve + ddc
        # From here tau holds the derivative of the cost by the torque: the factor of its curvature.
        tau[r] = slope
        if level > 0:
            for i in range(n):
                memory.J[r, i], memory.J[r, n + i] = memory.rate.by_q[r, i], memory.rate.by_v[r, i]
                memory.J[r, 2 * n + i] = memory.rate.by_a[r, i]
            _add_square(memory, r, 3 * n, slope, curve)
    if level > 1:
        d, C = memory.second, memory.C
        torque_second_derivatives(s, tau, d)
        for i in range(n):
            for k in range(n):
                C[i, k] += d.qq[i, k]
                C[n + i, k] += d.vq[i, k]
                C[n + i, n + k] += d.vv[i, k]
                C[2 * n + i, k] += d.aq[i, k]
    return cost


@kernel
def _torque_change_cost(arm: ArmModel, weight: float, memory: CostMemory, level: int) -> float:
    z, out, cost = memory.z, memory.rate, 0.0
    n = z.shape[1]
    torque_rate(arm, z[0], z[1], z[2], z[3], memory.along, out)
    for r in range(n):
        cost += 0.5 * weight * out.rate[r] ** 2
        if level > 0:
            for i in range(n):
                memory.J[r, i], memory.J[r, n + i] = out.by_q[r, i], out.by_v[r, i]
                memory.J[r, 2 * n + i], memory.J[r, 3 * n + i] = out.by_a[r, i], out.by_jerk[r, i]
            _add_square(memory, r, 4 * n, weight * out.rate[r], weight)
    if level > 1:
        _add_rate_curvature(memory, weight)
    return cost


@kernel(allocates=True)
def _add_rate_curvature(memory: CostMemory, weight: float) -> None:
    """Add the second derivatives of weight (rate . tau') to C."""
    # Along any motion d f' / d z^(k) = (d f / d z^(k))' + d f / d z^(k-1), also for second derivatives.
    n, C = memory.z.shape[1], memory.C
    factor = weight * memory.rate.rate
    d = SecondDerivatives(
        np.zeros((n, n), np.complex128),
        np.zeros((n, n), np.complex128),
        np.zeros((n, n), np.complex128),
        np.zeros((n, n), np.complex128),
    )
    torque_second_derivatives(memory.along, factor, d)
    for i in range(n):
        for k in range(n):
            C[i, k] += d.qq[i, k].imag / COMPLEX_STEP
            C[n + i, k] += d.vq[i, k].imag / COMPLEX_STEP + d.qq[i, k].real
            C[n + i, n + k] += d.vv[i, k].imag / COMPLEX_STEP + d.vq[k, i].real + d.vq[i, k].real
            C[2 * n + i, k] += d.aq[i, k].imag / COMPLEX_STEP + d.vq[i, k].real
            C[2 * n + i, n + k] += d.vv[i, k].real + d.aq[i, k].real
            C[3 * n + i, k] += d.aq[i, k].real


@kernel
def _spread(
    phi: np.ndarray,
    weight: float,
    column: np.ndarray,
    memory: CostMemory,
    orders: int,
    gradient: np.ndarray,
    H: np.ndarray,
) -> None:
    """Add weight g and weight C to gradient and Hessian of the segment's unknowns; C is lower."""
    local, n = phi.shape[0], memory.z.shape[1]
    C, T, g = memory.C, memory.T, memory.g
    # Without rates or jerks the jerk block of g and C is zero: then orders = 3.
    # C comes with its lower triangle only; the products below need all of it.
    for i in range(orders * n):
        for k in range(i):
            C[k, i] = C[i, k]
    for b in range(local):
        if column[b, 0] < 0:
            continue
        for i in range(n):
            t = 0.0
            for k in range(orders):
                t += phi[b, k] * g[k * n + i]
            gradient[column[b, i]] += weight * t
        # T_b = weight C phi_b, then H_ab += phi_a T_b.
        w0, w1, w2, w3 = weight * phi[b, 0], weight * phi[b, 1], weight * phi[b, 2], weight * phi[b, 3]
        for k in range(orders):
            for i in range(n):
                row = k * n + i
                for j in range(n):
                    t = w0 * C[row, j] + w1 * C[row, n + j] + w2 * C[row, 2 * n + j]
                    T[b, k, i, j] = t + w3 * C[row, 3 * n + j] if orders > 3 else t
    for a in range(local):
        if column[a, 0] < 0:
            continue
        p0, p1, p2, p3 = phi[a, 0], phi[a, 1], phi[a, 2], phi[a, 3]
        for b in range(a + 1):
            if column[b, 0] < 0:
                continue
            for i in range(n):
                row = column[a, i]
                # Diagonal blocks of H are symmetric: lower triangle only.
                for j in range(i + 1 if a == b else n):
                    t = p0 * T[b, 0, i, j] + p1 * T[b, 1, i, j] + p2 * T[b, 2, i, j]
                    H[column[b, j], row - column[b, j]] += t + p3 * T[b, 3, i, j] if orders > 3 else t
