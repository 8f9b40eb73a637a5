"""Costs of single joints: away from the limits, towards a comfortable posture (source: Fig. 4.2)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.errors import ConfigError
from humanoid_control.ik.objectives.base import Objective
from humanoid_control.jit import kernel
from humanoid_control.robots import Robot


@kernel
def fill_into_band(
    joints: np.ndarray, lower: np.ndarray, upper: np.ndarray, widest: float, scale: float, out: np.ndarray
) -> None:
    """How far joints (n,) are in the upper band, or minus how far in the lower one, times `scale`, into out (n,)."""
    for i in range(joints.shape[0]):
        band = min(widest, 0.5 * (upper[i] - lower[i]))
        above, below = joints[i] - (upper[i] - band), joints[i] - (lower[i] + band)
        out[i] = scale * (max(above, 0.0) + min(below, 0.0))


class JointLimitCost(Objective):
    """Zero in the middle of a joint's range, growing with the square of the way into the band at either end.

    Attributes:
        band: width of the band inside each limit [rad]; at the most half of a joint's range.
        weight: k_l; the gradient is weight times the way into the band.
    """

    def __init__(self, band: float = 0.2, weight: float = 10.0) -> None:
        if not band > 0 or not weight >= 0:
            raise ConfigError(f"joint-limit cost: band > 0 and weight >= 0 are needed, got {band:g} and {weight:g}")
        self.band, self.weight = band, weight

    def _into_band(self, robot: Robot, q: np.ndarray) -> np.ndarray:
        """How far each joint is in the upper band, or minus how far in the lower one (n,) [rad]."""
        out = np.empty(robot.n)
        fill_into_band(q[robot.iq :], robot.lower, robot.upper, self.band, 1.0, out)
        return out

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return 0.5 * self.weight * float(np.sum(self._into_band(robot, q) ** 2))

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out = np.zeros(robot.nv)
        fill_into_band(q[robot.iq :], robot.lower, robot.upper, self.band, self.weight, out[robot.iv :])
        return out


class ComfortCost(Objective):
    """Half the weighted square of the way to a comfortable posture: keeps free joints from drifting away.

    Attributes:
        posture: (n,) preferred angles [rad]. weights: (n,) k_c of each joint.
    """

    def __init__(self, posture: np.ndarray, weights: float | np.ndarray = 1.0) -> None:
        self.posture = np.array(posture, dtype=float)
        self.weights = np.broadcast_to(np.asarray(weights, dtype=float), self.posture.shape)
        if (self.weights < 0).any():
            raise ConfigError("comfort cost: weights must not be negative")

    def cost(self, robot: Robot, data: pin.Data, q: np.ndarray) -> float:
        return 0.5 * float(self.weights @ (robot.joints(q) - self.posture) ** 2)

    def gradient(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        out = np.zeros(robot.nv)
        out[robot.iv :] = self.weights * (robot.joints(q) - self.posture)
        return out
