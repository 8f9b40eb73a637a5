"""The source's two ways to put angular momentum into resolved motion rate control (Schwienbacher 2014, chapter 7).

Method 1, tracking in the null space: the joints that no task needs (q_r) are told the velocity that would cancel the
momentum of all others. Method 2, minimisation: momentum is part of the norm by which the inverse chooses velocities.


Also here:

* Angular momentum tracked in the null space of a tick: method 1 of the source for any task vector.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from scipy.linalg import lapack

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.jit import kernel
from humanoid_control.robots.robot import Robot

# -------- The source's two ways to put angular momentum into resolved motion rate control (Schwienbacher 2014

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


# -------- Angular momentum tracked in the null space of a tick: method 1 of the source for any task vector

THESIS, UNIT, DAMPED = range(3)
KINDS = {"thesis": THESIS, "unit": UNIT, "damped": DAMPED}


class MomentumTracking:
    """Some joints cancel, in the null space, the momentum that the tasks make with all others (eq. (7.8), (7.9)).

    What the others make is taken from the particular solution J# xdot of the same tick (erratum E-21).

    Attributes:
        reducing: names of the joints that reduce; those that no task needs. All others produce.
        reference: (3,) momentum about the centre of mass to have, world axes [kg m^2/s]; set it anew for each tick.
        axes: (3,) which of x, y, z count.
        mode, mu: how surplus becomes joint rates, see `reducing_rates`.
        speed_share: of a joint's speed limit that may be asked for.
    """

    def __init__(
        self,
        robot: Robot,
        reducing: Sequence[str],
        reference: Sequence[float] = (0.0, 0.0, 0.0),
        axes: Sequence[bool] = (False, False, True),
        mode: str = "damped",
        mu: float = MU,
        speed_share: float = 0.8,
    ) -> None:
        """Prepare.

        Raises:
            UnknownNameError: a joint the robot does not have, or a mode. ConfigError: axes or reference.
        """
        if mode not in MODES:
            raise UnknownNameError("mode", mode, MODES)
        if len(axes) != 3 or not any(axes) or len(reference) != 3 or not speed_share > 0:
            raise ConfigError("momentum tracking: one to three axes, a reference (3,) and speed_share > 0 are needed")
        self.robot, self.reducing, self.mode, self.mu = robot, tuple(reducing), mode, float(mu)
        self.reference, self.axes = np.array(reference, dtype=float), np.array(axes, dtype=bool)
        self.speed_share = float(speed_share)
        joints = np.array([robot.joint_index(n) for n in self.reducing], dtype=int)
        self._columns, self._speed = robot.iv + joints, robot.velocity[joints]
        self._rows = 3 + np.flatnonzero(self.axes)
        self._J = np.zeros((len(self._rows), robot.nv))

    def place(self, data: pin.Data, q: np.ndarray) -> None:
        """Compute the momentum map at q (nq,); `data` is used for it."""
        A = pin.computeCentroidalMap(self.robot.model, data, q)
        for k, row in enumerate(self._rows):
            self._J[k] = A[row]

    def rates(self, v: np.ndarray) -> np.ndarray:
        """The null-space vector (nv,) not to have [rad/s], given the tasks' velocity v (nv,)."""
        reducing, out, limit = self._columns, np.zeros(len(v)), self.speed_share * self._speed
        if len(self._rows) == 1:
            wanted = float(self.reference[self._rows[0] - 3])
            one_axis_rates(self._J[0], v, reducing, wanted, KINDS[self.mode], self.mu, limit, out)
            return out
        J_r = self._J[:, reducing]
        surplus = self._J @ v - J_r @ v[reducing] - self.reference[self.axes]
        out[reducing] = clamped(reducing_rates(J_r, surplus, self.mode, self.mu), limit)
        return out


@kernel
def one_axis_rates(
    J: np.ndarray,
    v: np.ndarray,
    reducing: np.ndarray,
    reference: float,
    kind: int,
    mu: float,
    limit: np.ndarray,
    out: np.ndarray,
) -> None:
    """`clamped(reducing_rates(...))` of one axis, into out (nv,) of zeros.

    Args:
        J: (nv,) row of the momentum map. v: (nv,) the tasks' velocity.
        reducing: (r,) columns of the reducing joints. limit: (r,) their speeds.
        reference: momentum to have. kind: of KINDS. mu: of 'damped'.
    """
    surplus, square, most = -reference, 0.0, 1.0
    for c in range(v.shape[0]):
        surplus += J[c] * v[c]
    for c in reducing:
        surplus -= J[c] * v[c]
        square += J[c] * J[c]
    size = np.sqrt(square)
    if size == 0.0:
        return
    divisor = size * square if kind == THESIS else size if kind == UNIT else square + mu * mu
    for k in range(reducing.shape[0]):
        rate = surplus * J[reducing[k]] / divisor
        out[reducing[k]] = rate
        most = max(most, abs(rate) / limit[k])
    for c in reducing:
        out[c] /= most
