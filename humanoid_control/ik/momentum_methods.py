"""The source's two ways to put angular momentum into resolved motion rate control (Schwienbacher 2014, chapter 7).

Method 1, tracking in the null space: the joints that no task needs (q_r) are told the velocity that would cancel the
momentum of all others. Method 2, minimisation: momentum is part of the norm by which the inverse chooses velocities.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from humanoid_control.errors import ConfigError, UnknownNameError

MODES = {
    "thesis": "eq. (7.9) as printed: J# e / |J|",
    "unit": "J^T e / |J|: the same where J has length one",
    "damped": "J^T (J J^T + mu^2 E)^-1 e: eq. (7.7), bounded where J vanishes",
}
"""How method 1 turns surplus momentum e into joint rates. (7.9) amplifies where |J| < 1 kg m^2; its units disagree."""

MU = 0.1  # [kg m^2] damping of mode 'damped', about half of |J_r| of light arms
Weighting = np.ndarray
"""Inverse of the weighting of the velocities: (n,) its diagonal, or (n, n)."""


def rmrc(J: np.ndarray, xdot: np.ndarray, W_inverse: Weighting, y: np.ndarray) -> np.ndarray:
    """The velocity (n,) of eq. (7.3), J# xdot - N W^-1 y, without forming inverse or projector (algorithm 4.3).

    Args:
        J: (m, n) of full row rank.
        xdot: (m,) task velocity, met exactly.
        W_inverse: inverse of the weighting of the velocities.
        y: (n,) null-space vector: a cost's gradient times its gain, or velocities not to have.

    Raises:
        numpy.linalg.LinAlgError: the task is singular.
    """
    z = -_weigh(W_inverse, y)
    JW = _weigh(W_inverse, J.T)
    _, multipliers, failed = lapack.dposv(J @ JW, xdot - J @ z)  # by Cholesky
    if failed:
        raise np.linalg.LinAlgError(f"the task is singular: its row {failed} depends on those before")
    return np.asarray(JW @ multipliers + z)


def _weigh(W_inverse: Weighting, x: np.ndarray) -> np.ndarray:
    if W_inverse.ndim == 2:
        return np.asarray(W_inverse @ x)
    return np.asarray((W_inverse * x.T).T)


def reducing_rates(J_r: np.ndarray, surplus: np.ndarray, mode: str = "thesis", mu: float = MU) -> np.ndarray:
    """The rates q_r of method 1 (r,), to be subtracted in the null space: they stand in y of eq. (7.3).

    Args:
        J_r: (k, r) columns of the reducing joints in the momentum map, one row an axis [kg m^2].
        surplus: (k,) e = J_p q_p - L_d, momentum of the producing joints above the reference [kg m^2/s].
        mode: one of MODES. Of several axes |J| is the largest singular value.
        mu: of mode 'damped' [kg m^2].

    Raises:
        UnknownNameError: mode.
    """
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    if mode == "damped":
        return np.asarray(J_r.T @ np.linalg.solve(J_r @ J_r.T + mu**2 * np.eye(len(J_r)), surplus))
    size = float(np.linalg.norm(J_r, 2))
    if size == 0.0:
        return np.zeros(J_r.shape[1])
    return np.asarray((J_r.T if mode == "unit" else np.linalg.pinv(J_r)) @ surplus / size)


def clamped(rates: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """The rates (r,), all scaled down alike where one would exceed its limit (r,): their direction stays."""
    share = float(np.max(np.abs(rates) / limit, initial=0.0))
    return rates / share if share > 1.0 else rates


def weighting_inverse(J_L: np.ndarray, delta: float) -> np.ndarray:
    """W^-1 (n, n) of method 2, W = delta E + J_L^T J_L, by Sherman, Morrison and Woodbury.

    For one axis it is eq. (7.15) with its denominator the number delta + J_L J_L^T.

    Args:
        J_L: (k, n) rows of the momentum map.
        delta: > 0.

    Raises:
        ConfigError: delta.
    """
    if not delta > 0:
        raise ConfigError(f"delta must be positive, got {delta:g}")
    inner = delta * np.eye(len(J_L)) + J_L @ J_L.T
    return np.asarray((np.eye(J_L.shape[1]) - J_L.T @ np.linalg.solve(inner, J_L)) / delta)
