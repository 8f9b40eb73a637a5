"""Weighted damped least squares with joint-limit weights (Dube 2012, section 4.2.2)."""

from __future__ import annotations

import numpy as np


def limit_gradient(joints: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Gradient (n,) of the joint-limit cost, eq. (4.23): 0 in mid-range, growing without bound at a limit.

    dH/dq = (qM - qm)^2 (2 q - qM - qm) / (4 (qM - q)^2 (q - qm)^2), with q kept a hair inside its range, where the
    formula divides by zero.
    """
    width = upper - lower
    q = np.clip(joints, lower + 1e-4 * width, upper - 1e-4 * width)
    return 0.25 * width**2 * (2 * q - upper - lower) / ((upper - q) ** 2 * (q - lower) ** 2)


def limit_weights(gradient: np.ndarray, previous: np.ndarray | None) -> np.ndarray:
    """Weights (n,) of eq. (4.25): 1 + |gradient| for a joint that moves toward its limit, 1 for one that leaves it.

    Args:
        gradient: (n,) at this step.
        previous: (n,) at the step before; None at the first step, where every joint is braked.
    """
    size = np.abs(gradient)
    if previous is None:
        return 1.0 + size
    return np.where(size >= np.abs(previous), 1.0 + size, 1.0)


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
