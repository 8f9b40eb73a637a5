"""Newton's method for reaches with exact banded Hessian, limits by an augmented Lagrangian.

Steps solve (H + mu D) d = -g, D the initial Gauss-Newton diagonal; mu follows Nielsen 1999. Gauss-Newton (`exact`
False) never fails, but is slow if torques stay large.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import lapack

from humanoid_control.compiled.packed import Packed
from humanoid_control.reaching.optimal.cost import TORQUE, ReachProblem, reach_cost, reach_cost_derivatives
from humanoid_control.reaching.optimal.inverse_dynamics import arm_motion, move_arm, torque

MU_FIRST, MU_AGAIN, MU_LEAST, MU_MOST = 1e-2, 1e-4, 1e-9, 1e12
MU_FALL = 0.2  # largest reduction of mu per step
DIAGONAL_LEAST = 1e-6  # relative to the largest entry of D
BEYOND = 1e9  # clip distance from an infinite limit
FIRST_EXCESS = 100.0  # initial excess, in slacks
TOLERANCE, ROUGH = 1e-6, 1e-3  # of `minimise`: final, and in the first multiplier round
RHO_RISE = 4.0  # penalty factor per multiplier round


@dataclass(frozen=True)
class Minimum:
    """Result of a minimisation.

    Attributes:
        x: (G, N) trajectory parameters.
        cost: cost of x.
        iterations: Newton steps tried.
        converged: the predicted gain is below the tolerance.
        merit: cost with limit terms, to compare starts.
    """

    x: np.ndarray
    cost: float
    iterations: int
    converged: bool
    merit: float = np.inf


def band_width(column: np.ndarray, stride: int, local: int, segments: int) -> int:
    """Return the half bandwidth of the Hessian for unknowns (G, N), `local` parameters a segment."""
    width = 0
    for k in range(segments):
        part = column[k * stride : k * stride + local]
        part = part[part >= 0]
        width = max(width, int(np.ptp(part)) if len(part) else 0)
    return width


def minimise(
    problem: ReachProblem,
    x: np.ndarray,
    iterations: int = 200,
    tolerance: float = TOLERANCE,
    exact: bool = True,
    shift: float = MU_FIRST,
) -> Minimum:
    """Minimise the cost over the free parameters of a trajectory.

    Args:
        problem: cost and limits.
        x: (G, N) start.
        iterations: maximum.
        tolerance: relative predicted gain at convergence.
        exact: False: Gauss-Newton.
        shift: initial mu.
    """
    x, column, level = x.copy(), problem.column, 2 if exact else 1
    n, joints = int(column.max()) + 1, x.shape[1]
    table = Packed(problem).table
    if n == 0:
        return Minimum(x, float(reach_cost(table, x)), 0, True)
    rows = np.flatnonzero(column[:, 0] >= 0)
    q = problem.quadrature
    H = np.zeros((n, band_width(column, q.stride, q.phi.shape[1], q.segments) + 1))
    g = np.empty(n)
    cost = reach_cost_derivatives(table, x, 1, g, H)
    D = np.maximum(H[:, 0], DIAGONAL_LEAST * H[:, 0].max() + 1e-300)
    if exact:
        reach_cost_derivatives(table, x, level, g, H)
    mu, rise, trial = shift, 2.0, np.empty_like(x)
    for k in range(iterations):
        while True:
            L = H.copy()
            L[:, 0] += mu * D
            _, info = lapack.dpbtrf(L.T, lower=1, overwrite_ab=1)
            if info == 0:
                break
            mu = max(3.0 * mu, 1e-6)
            if not mu < MU_MOST:
                return Minimum(x, float(cost), k, False)
        d = lapack.dpbtrs(L.T, -g, lower=1)[0]
        # Predicted decrease of the quadratic model, positive for a positive definite matrix.
        predicted = 0.5 * float(mu * (d @ (D * d)) - d @ g)
        if not predicted > tolerance * abs(cost):
            return Minimum(x, float(cost), k, bool(np.isfinite(cost)))
        trial[:] = x
        trial[rows] += d.reshape(-1, joints)
        gain = cost - reach_cost(table, trial)
        if gain > 0.0:
            x[:] = trial
            mu, rise = mu * max(MU_FALL, 1.0 - (2.0 * gain / predicted - 1.0) ** 3), 2.0
            cost = reach_cost_derivatives(table, x, level, g, H)
        else:
            mu, rise = max(mu * rise, MU_LEAST), 2.0 * rise
            if not mu < MU_MOST:
                return Minimum(x, float(cost), k, False)
    return Minimum(x, float(cost), iterations, False)


# -------- Limits


def values_at_points(problem: ReachProblem, x: np.ndarray) -> np.ndarray:
    """Return positions, velocities, accelerations (3, P, N) at the quadrature points."""
    q = problem.quadrature
    first = np.arange(q.segments)[:, None] * q.stride + np.arange(q.phi.shape[1])
    out = np.einsum("pak,san->kspn", q.phi[:, :, :3], x[first])
    return np.ascontiguousarray(out.reshape(3, -1, x.shape[1]))


def limited_values(problem: ReachProblem, x: np.ndarray) -> np.ndarray:
    """Return angles, speeds and torques (P, 3, N) at the quadrature points; zero torques if unlimited."""
    q, v, a = values_at_points(problem, x)
    tau = np.zeros_like(q)
    if np.isfinite(problem.limits.high[TORQUE]).any():
        memory = arm_motion(q[0])
        for k in range(len(q)):
            move_arm(problem.arm, q[k], v[k], a[k], memory)
            torque(memory, tau[k])
    return np.stack([q, v, tau], axis=1)


def minimise_within(
    problem: ReachProblem, x: np.ndarray, slack: np.ndarray, rounds: int = 15, **options: Any
) -> tuple[Minimum, np.ndarray]:
    """Minimise within limits at the quadrature points, by rounds of `minimise` and multiplier updates.

    Args:
        problem: its multipliers and penalties are ignored.
        x: (G, N) start.
        slack: (3,) tolerated excess of angles, speeds, torques.
        rounds: maximum.
        **options: of `minimise`.

    Returns:
        Minimum, and largest excess (3,) over the limits.
    """
    low, high = problem.limits.low, problem.limits.high
    bounded = np.isfinite(high).any(axis=1) | np.isfinite(low).any(axis=1)
    free = problem._replace(limits=problem.limits._replace(penalty=np.zeros(3)))
    if not bounded.any():
        found = minimise(free, x, **options)
        return replace(found, merit=found.cost), np.zeros(3)
    table = Packed(free).table
    points = len(problem.limits.above)
    below, above = np.zeros((points, *low.shape)), np.zeros((points, *low.shape))
    # Limits act from the first round: an unlimited first motion may end in a distant optimum. An excess of FIRST_EXCESS
    # slacks costs as much as the initial motion.
    duration = float(problem.quadrature.weight.sum()) * problem.quadrature.segments
    penalty = np.where(bounded, 2.0 * max(reach_cost(table, x), 1e-12) / duration / (FIRST_EXCESS * slack) ** 2, 0.0)
    tolerance = options.pop("tolerance", TOLERANCE)
    steps, found, inside = 0, Minimum(x, 0.0, 0, False), False
    for k in range(rounds):
        limits = problem.limits._replace(below=below, above=above, penalty=penalty)
        rough = tolerance if inside else max(tolerance, ROUGH / 10**k)
        shift = MU_AGAIN if k else MU_FIRST
        found = minimise(problem._replace(limits=limits), found.x, tolerance=rough, shift=shift, **options)
        steps += found.iterations
        value = limited_values(problem, found.x)
        excess = _excess(value, low, high)
        inside = bool((excess <= slack).all())
        if inside and rough == tolerance:
            break
        rho = penalty[:, None]
        above = np.maximum(0.0, above + rho * np.maximum(value - high, -BEYOND))
        below = np.maximum(0.0, below + rho * np.maximum(low - value, -BEYOND))
        if not inside:
            penalty = penalty * RHO_RISE
    cost = float(reach_cost(table, found.x))
    return replace(found, cost=cost, iterations=steps, merit=found.cost), excess


def _excess(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(value - high, low - value).max(axis=(0, 2)).clip(0.0))
