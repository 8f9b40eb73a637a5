"""The source's differential methods: pseudo-inverse, damped and weighted damped least squares (Dube 2012, 4.2.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.imitation.arrays import Problem, scratch_for
from humanoid_control.imitation.linearise import place_points, point_jacobian

RANK = 1e-3  # singular values below this share of the largest count as zero in the pseudo-inverse


def limit_gradient(joints: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Gradient (n,) of the joint-limit cost, eq. (4.23): 0 in mid-range, growing without bound at a limit.

    dH/dq = (qM - qm)^2 (2 q - qM - qm) / (4 (qM - q)^2 (q - qm)^2), with q kept a hair inside its range, where the
    formula divides by zero.
    """
    width = upper - lower
    q = np.clip(joints, lower + 1e-4 * width, upper - 1e-4 * width)
    return 0.25 * width**2 * (2 * q - upper - lower) / ((upper - q) ** 2 * (q - lower) ** 2)


def limit_weights(gradient: np.ndarray, previous: np.ndarray) -> np.ndarray:
    """Weights (n,) of eq. (4.25): 1 + |gradient| for a joint that moves toward its limit, 1 for one that leaves it.

    Args:
        gradient: (n,) at this step.
        previous: (n,) at the step before; NaN at the first step, where every joint is braked.
    """
    size = np.abs(gradient)
    return np.where(size < np.abs(previous), 1.0, 1.0 + size)


def dls_step(J: np.ndarray, e: np.ndarray, weights: np.ndarray, damping: float) -> np.ndarray:
    """Joint step of eq. (4.19) in its cheaper form (J^T J + lambda^2 W)^-1 J^T e.

    Args:
        J: (m, n) stacked task Jacobian.
        e: (m,) task step.
        weights: (n,) diagonal of W.
        damping: lambda > 0; with more task rows than joints it must not be zero.
    """
    H = J.T @ J
    H[np.arange(len(weights)), np.arange(len(weights))] += damping**2 * weights
    return np.linalg.solve(H, J.T @ e)


def pinv_step(J: np.ndarray, e: np.ndarray) -> np.ndarray:
    """Joint step of eq. (4.16)-(4.17) with the pseudo-inverse; directions that J nearly loses are left out."""
    return np.linalg.pinv(J, rcond=RANK) @ e


@dataclass
class SourceMethod:
    """Steps one robot from frame to frame by a method of the source: Euler steps (4.12), clamped to range and speed.

    Attributes:
        name: 'pinv', 'dls' or 'weighted_dls'. damping: lambda [m/rad]. iterations: steps a frame.
        feed_forward: step by the change of the targets (the source's own words), not by the error: it drifts.
    """

    problem: Problem
    name: str
    damping: float
    iterations: int
    feed_forward: bool

    def __post_init__(self) -> None:
        self._J = np.empty((3 * len(self.problem.point), len(self.problem.lower)))
        self._scratch = scratch_for(self.problem)
        self.begin()

    def begin(self) -> None:
        """Forget the frame before."""
        self._gradient = np.full(len(self.problem.lower), np.nan)
        self._ahead: np.ndarray | None = None

    def step(self, target: np.ndarray, before: np.ndarray, dt: float) -> np.ndarray:
        """The posture (D,) of the next frame.

        Args:
            target: (K, 3) [m]; not finite: the posture is held.
            before: (D,) posture of the frame before. dt: [s].
        """
        x = before.copy()
        if not np.isfinite(target).all():
            return x
        p, w = self.problem, self._scratch
        reach = p.velocity * dt
        low, high = np.maximum(p.lower, before - reach), np.minimum(p.upper, before + reach)
        for _ in range(self.iterations):
            place_points(p, x, w)
            point_jacobian(p, w, self._J)
            start = self._ahead if self.feed_forward and self._ahead is not None else w.points
            x = np.clip(x + self._step((target - start).ravel(), x), low, high)
        self._ahead = target.copy()
        return x

    def _step(self, e: np.ndarray, x: np.ndarray) -> np.ndarray:
        if self.name == "pinv":
            return pinv_step(self._J, e)
        weights = np.ones(len(x))
        if self.name == "weighted_dls":
            gradient = limit_gradient(x, self.problem.lower, self.problem.upper)
            weights = limit_weights(gradient, self._gradient)
            self._gradient = gradient
        return dls_step(self._J, e, weights, self.damping)
