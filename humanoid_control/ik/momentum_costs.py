"""What the free joints do beside momentum: stay inside their ranges, near their posture, off other links.

The gradient alpha (dH/dq)^T of eq. (7.8) in Schwienbacher 2014, as velocities not to have. The source names the three
terms and gives no numbers; the shapes are the simplest smooth ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from humanoid_control.ik.tasks import Task
from humanoid_control.robots import Robot


@dataclass(frozen=True)
class FreeJointGains:
    """How strongly.

    Attributes:
        comfort: how fast a joint returns to its posture [1/s].
        limit: how fast a joint leaves the band at the end of its range, for each radian it is inside [1/s].
        band: width of that band [rad].
        separation: how fast touching links separate, where one joint alone would do it with a lever of 1 m [m^2/s].
        activation: distance below which they do [m]; 0: they never do.
        blend: share of the activation distance up to which the law is linear, 0.4 to 0.6 (eq. (5.15)).
    """

    comfort: float = 1.0
    limit: float = 20.0
    band: float = 0.15
    separation: float = 5.0
    activation: float = 0.02
    blend: float = 0.5


class FreeJointCosts:
    """The gradient of the joint costs of some joints of a robot."""

    def __init__(
        self, robot: Robot, free: np.ndarray, posture: np.ndarray, gains: FreeJointGains | None = None
    ) -> None:
        """Prepare.

        Args:
            robot: any.
            free: indices of the joints with comfort and limit cost.
            posture: (n,) where they are comfortable [rad].
            gains: how strongly.
        """
        self.robot, self.free, self.gains = robot, free, gains or FreeJointGains()
        self.posture = np.array(posture, dtype=float)
        self._distance = robot.self_distance() if self.gains.activation > 0 and len(robot.pairs) else None

    def gradient(self, data: pin.Data, q: np.ndarray) -> np.ndarray:
        """The null-space vector (nv,) [rad/s]; `data` after `pin.computeJointJacobians` at q."""
        g, robot, free = self.gains, self.robot, self.free
        y = np.zeros(robot.nv)
        joints = robot.joints(q)[free]
        deep = into_band(joints, robot.lower[free], robot.upper[free], g.band)
        y[robot.iv + free] = g.comfort * (joints - self.posture[free]) + g.limit * deep
        if self._distance is not None:
            near = self._distance.near(data, g.activation)
            if len(near):
                push = repulsion(near.distance, g.separation, g.activation, g.blend)
                y -= push @ self._distance.gradient(data, near)
        return y


def into_band(joints: np.ndarray, lower: np.ndarray, upper: np.ndarray, band: float) -> np.ndarray:
    """How deep joints are in the bands at the ends of their ranges, positive at the upper end, 0 outside [rad]."""
    width = np.minimum(band, 0.25 * (upper - lower))
    return np.maximum(joints - (upper - width), 0.0) + np.minimum(joints - (lower + width), 0.0)


def repulsion(d: np.ndarray, at_contact: float, activation: float, blend: float) -> np.ndarray:
    """The blended law g_m(d) of eq. (5.15): linear near contact, quadratic towards the activation distance, C^1."""
    line = at_contact - 2 * at_contact / (activation * (1 + blend)) * d
    curve = at_contact * (activation - d) ** 2 / (activation**2 * (1 - blend**2))
    return np.asarray(np.where(d < blend * activation, line, np.where(d < activation, curve, 0.0)))


class RangeTask(Task):
    """Slow down before the end of a joint's range, and leave it again: more the deeper a joint is in the band there."""

    def __init__(self, free: np.ndarray, band: float = 0.3, weight: float = 0.5, gain: float = 10.0) -> None:
        """Make the task for some joints, by their indices; band [rad]."""
        super().__init__("range", weight, gain)
        self.free, self.band = free, band

    def rows(self, robot: Robot, data: pin.Data, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        deep = -self.error(robot, data, q)
        share = np.minimum(np.abs(deep) / self.band, 1.0)
        J = np.zeros((len(self.free), robot.nv))
        J[np.arange(len(self.free)), robot.iv + self.free] = share
        return J, -self.gain * deep * share

    def error(self, robot: Robot, data: pin.Data, q: np.ndarray) -> np.ndarray:
        free = self.free
        return -into_band(robot.joints(q)[free], robot.lower[free], robot.upper[free], self.band)
