"""Quadratic program of a tick: memory, filling and solution."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, unpack
from humanoid_control.ik.free_velocities import Bounds, DofMap
from humanoid_control.ik.limits.limit import SoftRows, fill_braking
from humanoid_control.numerics.box_program import BoxQp, Guess
from humanoid_control.numerics.box_qp import solve_box_qp_from

NOT_FINITE = -3


class SolverArrays(NamedTuple):
    """Memory for nv velocities, k of them free, and R rows.

    Attributes:
        H: Hessian by the free velocities (k, k), lower triangle.
        bounds: bounds of the free velocities (k,).
        multipliers: Lagrange multipliers (k + R,).
    """

    H: F2
    g: F1
    lower: F1
    upper: F1
    brake: F1
    acceleration: F1
    dofs: DofMap
    free: I1
    bounds: Bounds
    rows: SoftRows
    x: F1
    multipliers: F1
    guess: Guess


@kernel
def begin_cost(v: np.ndarray, damping: float, smoothing: float, diagonal: np.ndarray, linear: np.ndarray) -> None:
    """Set diagonal and linear (nv,) to the cost of a velocity and of its change from v (nv,)."""
    # damping^2 |v|^2 + smoothing^2 |v - v_last|^2, halved and without constant.
    for c in range(v.shape[0]):
        diagonal[c] = damping**2 + smoothing**2
        linear[c] = -(smoothing**2) * v[c]


@kernel
def add_posture(
    weights: np.ndarray,
    posture: np.ndarray,
    q: np.ndarray,
    weight: float,
    gain: float,
    diagonal: np.ndarray,
    linear: np.ndarray,
) -> None:
    """Add the cost of a PostureTask to diagonal and linear (nv,); weights and posture (n,)."""
    n = weights.shape[0]
    iv, iq = diagonal.shape[0] - n, q.shape[0] - n
    for k in range(n):
        # The Jacobian is the identity: w^2 (v - gain (posture - q))^2.
        w = (weight * weights[k]) ** 2
        diagonal[iv + k] += w
        linear[iv + k] -= w * gain * (posture[k] - q[iq + k])


@kernel
def fill_cost(
    table: Table[SolverArrays], J: np.ndarray, desired: np.ndarray, diagonal: np.ndarray, linear: np.ndarray
) -> None:
    """Fill the lower triangle of H = J^T J + S^T diag(diagonal) S, and g = S^T linear - J^T desired.

    Args:
        diagonal: quadratic cost of v = S u (nv,).
    """
    a = unpack(table, SolverArrays)
    H, g, dofs = a.H, a.g, a.dofs
    m, k = J.shape
    for i in range(k):
        g[i] = 0.0
        for j in range(i + 1):
            H[i, j] = 0.0
    threes = m - m % 3
    # Most tasks have three rows with the same nonzero columns: one pass over H adds all three.
    for r in range(0, threes, 3):
        for i in range(k):
            s0, s1, s2 = J[r, i], J[r + 1, i], J[r + 2, i]
            if s0 == 0.0 and s1 == 0.0 and s2 == 0.0:
                continue
            g[i] -= s0 * desired[r] + s1 * desired[r + 1] + s2 * desired[r + 2]
            for j in range(i + 1):
                H[i, j] += s0 * J[r, j] + s1 * J[r + 1, j] + s2 * J[r + 2, j]
    for r in range(threes, m):
        for i in range(k):
            s = J[r, i]
            if s == 0.0:
                continue
            g[i] -= s * desired[r]
            for j in range(i + 1):
                H[i, j] += s * J[r, j]
    for c in range(diagonal.shape[0]):
        # S^T diag S and S^T linear: each velocity adds to its free velocity.
        i, f = dofs.column[c], dofs.factor[c]
        if i >= 0:
            H[i, i] += f * f * diagonal[c]
            g[i] += f * linear[c]


@kernel
def reduce_bounds(table: Table[SolverArrays], v: np.ndarray, iv: int, dt: float) -> None:
    """Reduce velocity bounds (nv,) to the free velocities, and compute the braking velocity.

    A leader keeps its bounds if its followers' bounds conflict with them.
    """
    a = unpack(table, SolverArrays)
    lower, upper, dofs, free = a.lower, a.upper, a.dofs, a.free
    low, high = a.bounds
    # Own bounds of the leader; an empty interval collapses to its lower end.
    for k in range(free.shape[0]):
        low[k], high[k] = lower[free[k]], max(lower[free[k]], upper[free[k]])
    for c in range(lower.shape[0]):
        k, f = dofs.column[c], dofs.factor[c]
        if k < 0 or free[k] == c:
            continue
        # A negative factor exchanges the bounds of a mimicking joint.
        first, last = (lower[c] / f, upper[c] / f) if f > 0.0 else (upper[c] / f, lower[c] / f)
        low[k], high[k] = min(max(first, low[k]), high[k]), min(max(last, low[k]), high[k])
    fill_braking(v, iv, a.acceleration, dt, dofs, a.bounds, a.brake)


@kernel
def solve_program(table: Table[SolverArrays], rows: int, rho: float) -> int:
    """Solve the program with its first `rows` rows and the squared slack weight rho.

    Returns:
        Result of `solve_box_qp_from`; NOT_FINITE if x or a multiplier is not finite.
    """
    a = unpack(table, SolverArrays)
    problem = BoxQp(a.H, a.g, a.bounds.lower, a.bounds.upper, a.rows.A, a.rows.b)
    used = solve_box_qp_from(problem, rows, rho, a.x, a.multipliers, a.guess)
    for i in range(a.x.shape[0]):
        if not (np.isfinite(a.x[i]) and np.isfinite(a.multipliers[i])):
            used = NOT_FINITE
    return used


@kernel
def largest_slack(table: Table[SolverArrays], count: int, v: np.ndarray) -> float:
    """Return the largest unscaled violation of the first `count` rows by v (nv,)."""
    a = unpack(table, SolverArrays)
    worst = 0.0
    for r in range(count):
        s = a.rows.b[r]
        for k in range(a.free.shape[0]):
            s -= a.rows.A[r, k] * v[a.free[k]]
        worst = max(worst, s / a.rows.scale[r])
    return worst
