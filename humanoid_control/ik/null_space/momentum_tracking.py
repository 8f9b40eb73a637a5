"""Angular momentum in resolved motion rate control (Schwienbacher 2014, chapter 7).

Method 1, tracking: joints without a task (reducing, q_r) cancel the momentum of all others (producing, q_p) in the null
space. Method 2, minimisation: momentum is part of the norm of joint velocities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots.robot import Robot

MODES = {
    "thesis": "eq. (7.9) as printed: J# e / |J|",
    "unit": "J^T e / |J|: the same where J has length one",
    "damped": "J^T (J J^T + mu^2 E)^-1 e: eq. (7.7), bounded where J vanishes",
}
"""Conversions of surplus momentum e to joint rates. (7.9) amplifies if |J| < 1 kg m^2; its units are inconsistent."""
THESIS, UNIT, DAMPED = range(3)  # places in MODES

MU = 0.1  # [kg m^2] damping of mode 'damped', about half of |J_r| of light arms


class MomentumTracking:
    """Method 1: reducing joints cancel the momentum of all other joints in the null space (7.8), (7.9).

    The particular solution J# xdot gives the momentum; in (7.9) it would depend on the result.

    Attributes:
        reference: desired momentum about the centre of mass (3,), world axes [kg m^2/s].
        axes: active x, y, z (3,).
        speed_share: usable share of the joint speed limits.
        demand: largest unclamped rate as a share of its limit.
    """

    def __init__(
        self,
        robot: Robot,
        reducing: Sequence[str],
        reference: Sequence[float] | np.ndarray = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (False, False, True),
        mode: str = "damped",
        mu: float = MU,
        speed_share: float = 0.8,
        clamp: bool = True,
    ) -> None:
        """Set the joints, axes and mode.

        Raises:
            UnknownNameError: if a joint or the mode is unknown.
            ConfigError: if axes, reference or speed_share are out of range.
        """
        if mode not in MODES:
            raise UnknownNameError("mode", mode, MODES)
        if len(axes) != 3 or not any(axes) or len(reference) != 3 or not speed_share > 0:
            raise ConfigError("momentum tracking: one to three axes, a reference (3,) and speed_share > 0 are needed")
        self.robot, self.reducing, self.mode, self.mu = robot, tuple(reducing), mode, float(mu)
        self.reference, self.axes = np.array(reference, dtype=float), np.array(axes, dtype=bool)
        self.speed_share, self.clamp, self.demand = float(speed_share), clamp, 0.0
        joints = np.array([robot.joint_index(n) for n in self.reducing], dtype=int)
        self.columns, self.speed = robot.iv + joints, robot.velocity[joints]
        self.rows = 3 + np.flatnonzero(self.axes)
        self.J = np.zeros((len(self.rows), robot.nv))

    def place(self, q: np.ndarray) -> None:
        """Compute the momentum map at q (nq,)."""
        A = pin.computeCentroidalMap(self.robot.model, self.robot.data, q)
        for k, row in enumerate(self.rows):
            self.J[k] = A[row]

    def rates(self, v: np.ndarray) -> np.ndarray:
        """Return the null-space vector (nv,) to subtract [rad/s] for the task velocity v (nv,)."""
        columns, out, limit = self.columns, np.zeros(len(v)), self.speed_share * self.speed
        # One axis needs no matrix decomposition.
        if len(self.rows) == 1:
            reference = float(self.reference[self.rows[0] - 3])
            share = one_axis_rates(self.J[0], v, columns, reference, list(MODES).index(self.mode), self.mu, limit, out)
        else:
            J_r = self.J[:, columns]
            surplus = self.J @ v - J_r @ v[columns] - self.reference[self.axes]
            out[columns] = reducing_rates(J_r, surplus, self.mode, self.mu)
            share = float(np.max(np.abs(out[columns]) / limit, initial=0.0))
        self.demand = share * self.speed_share
        # Scale all rates, to preserve their direction.
        if self.clamp and share > 1.0:
            out /= share
        return out

    def residual(self, v: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Return the remaining momentum (axes,) [kg m^2/s] for v and the result of `rates`."""
        producing = v.copy()
        producing[self.columns] = 0.0
        return self.J @ (producing - rates) - self.reference[self.axes]


def reducing_rates(J_r: np.ndarray, surplus: np.ndarray, mode: str = "thesis", mu: float = MU) -> np.ndarray:
    """Return the rates q_r of method 1 (r,), to be subtracted in the null space: y in eq. (7.3).

    Args:
        J_r: momentum map columns of the reducing joints (k, r) [kg m^2].
        surplus: e = J_p q_p - L_d (k,) [kg m^2/s].
        mode: one of MODES; |J| is the largest singular value.
        mu: damping of mode 'damped' [kg m^2].

    Raises:
        UnknownNameError: if the mode is unknown.
    """
    if mode not in MODES:
        raise UnknownNameError("mode", mode, MODES)
    if mode == "damped":
        return np.asarray(J_r.T @ np.linalg.solve(J_r @ J_r.T + mu**2 * np.eye(len(J_r)), surplus))
    size = float(np.linalg.norm(J_r, 2))
    if size == 0.0:
        return np.zeros(J_r.shape[1])
    return np.asarray((J_r.T if mode == "unit" else np.linalg.pinv(J_r)) @ surplus / size)


@kernel
def one_axis_rates(
    J: np.ndarray,
    v: np.ndarray,
    reducing: np.ndarray,
    reference: float,
    mode: int,
    mu: float,
    limit: np.ndarray,
    out: np.ndarray,
) -> float:
    """Compute `reducing_rates` of one axis.

    Args:
        out: rates (nv,), zero on entry.

    Returns:
        Largest rate as a share of its limit.
    """
    # Surplus e = J_p q_p - L_d: the total momentum without the columns of the reducing joints.
    surplus, square, share = -reference, 0.0, 0.0
    for c in range(v.shape[0]):
        surplus += J[c] * v[c]
    for c in reducing:
        surplus -= J[c] * v[c]
        square += J[c] * J[c]
    # Without influence on the momentum, the reducing joints rest.
    size = np.sqrt(square)
    if size == 0.0:
        return 0.0
    # |J|^3, |J| or |J|^2 + mu^2: J^T e over it equals the three formulas of MODES for one row.
    divisor = size * square if mode == THESIS else size if mode == UNIT else square + mu * mu
    for k in range(reducing.shape[0]):
        rate = surplus * J[reducing[k]] / divisor
        out[reducing[k]] = rate
        share = max(share, abs(rate) / limit[k])
    return share


def weighting_inverse(J_L: np.ndarray, delta: float) -> np.ndarray:
    """Return W^-1 (n, n) of method 2, W = delta E + J_L^T J_L, by the Sherman-Morrison-Woodbury formula.

    For one axis it is eq. (7.15) with the scalar denominator delta + J_L J_L^T.

    Args:
        J_L: momentum map rows (k, n).

    Raises:
        ConfigError: if delta is not positive.
    """
    if not delta > 0:
        raise ConfigError(f"delta must be positive, got {delta:g}")
    # (delta E + J^T J)^-1 = (E - J^T (delta E + J J^T)^-1 J) / delta.
    inner = delta * np.eye(len(J_L)) + J_L @ J_L.T
    return np.asarray((np.eye(J_L.shape[1]) - J_L.T @ np.linalg.solve(inner, J_L)) / delta)
