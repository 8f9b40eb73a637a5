"""Angular momentum tracked in the null space of a tick: method 1 of the source for any task vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.ik.momentum_methods import MODES, MU, clamped, reducing_rates
from humanoid_control.jit import kernel
from humanoid_control.robots import Robot

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
