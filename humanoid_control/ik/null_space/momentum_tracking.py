"""Angular momentum in resolved motion rate control (Schwienbacher 2014, chapter 7).

Method 1, tracking in the null space: the joints that no task needs (reducing, q_r) get the velocity that would cancel
the momentum of all others (producing, q_p). Method 2, minimisation: momentum is part of the norm by which the inverse
chooses velocities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.jit import kernel
from humanoid_control.robots.robot import Robot

MODES = {
    "thesis": "eq. (7.9) as printed: J# e / |J|",
    "unit": "J^T e / |J|: the same where J has length one",
    "damped": "J^T (J J^T + mu^2 E)^-1 e: eq. (7.7), bounded where J vanishes",
}
"""Ways to turn surplus momentum e into joint rates. (7.9) amplifies where |J| < 1 kg m^2; its units disagree."""
THESIS, UNIT, DAMPED = range(3)  # places in MODES

MU = 0.1  # [kg m^2] damping of mode 'damped', about half of |J_r| of light arms


class MomentumTracking:
    """Method 1: some joints cancel, in the null space, the momentum that the tasks make with all others (7.8), (7.9).

    The momentum of the others is taken from the particular solution J# xdot of the same tick: in (7.9) it would
    depend on the rates that it is to give.

    Attributes:
        reducing: names of the reducing joints, which no task needs. All others produce.
        reference: (3,) desired momentum about the centre of mass, world axes [kg m^2/s]; set it again for each tick.
        axes: (3,) which of x, y, z count.
        mode: see `reducing_rates`.
        mu: see `reducing_rates`.
        speed_share: of a joint's speed limit up to which rates go.
        clamp: False leaves rates beyond that as they are.
        demand: largest rate of the last tick before it was clamped, in shares of its joint's speed limit.
        columns: (r,) columns of the reducing joints.
        speed: (r,) their speed limits.
        rows: of the centroidal map that count.
        J: (k, nv) these, as of `place`.
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
        """Create the momentum tracking.

        Raises:
            UnknownNameError: a joint the robot does not have, or a mode. ConfigError: axes or reference.
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
        """The null-space vector (nv,) to be subtracted [rad/s], given the tasks' velocity v (nv,)."""
        columns, out, limit = self.columns, np.zeros(len(v)), self.speed_share * self.speed
        if len(self.rows) == 1:
            reference = float(self.reference[self.rows[0] - 3])
            share = one_axis_rates(self.J[0], v, columns, reference, list(MODES).index(self.mode), self.mu, limit, out)
        else:
            J_r = self.J[:, columns]
            surplus = self.J @ v - J_r @ v[columns] - self.reference[self.axes]
            out[columns] = reducing_rates(J_r, surplus, self.mode, self.mu)
            share = float(np.max(np.abs(out[columns]) / limit, initial=0.0))
        self.demand = share * self.speed_share
        if self.clamp and share > 1.0:
            out /= share
        return out

    def residual(self, v: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Momentum that is left of the producing joints' (axes,) [kg m^2/s], given v as for `rates` and its result."""
        producing = v.copy()
        producing[self.columns] = 0.0
        return self.J @ (producing - rates) - self.reference[self.axes]


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
    """`reducing_rates` of one axis, into out (nv,) of zeros.

    Args:
        J: (nv,) row of the momentum map.
        v: (nv,) the tasks' velocity.
        reducing: (r,) columns of the reducing joints.
        limit: (r,) their speeds.
        reference: desired momentum.
        mode: THESIS, UNIT or DAMPED.
        mu: of DAMPED.

    Returns:
        the largest rate in shares of its limit.
    """
    surplus, square, share = -reference, 0.0, 0.0
    for c in range(v.shape[0]):
        surplus += J[c] * v[c]
    for c in reducing:
        surplus -= J[c] * v[c]
        square += J[c] * J[c]
    size = np.sqrt(square)
    if size == 0.0:
        return 0.0
    divisor = size * square if mode == THESIS else size if mode == UNIT else square + mu * mu
    for k in range(reducing.shape[0]):
        rate = surplus * J[reducing[k]] / divisor
        out[reducing[k]] = rate
        share = max(share, abs(rate) / limit[k])
    return share


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
