"""Limits of the joint accelerations that a controller may ask for: ranges, speeds, and the robot's own shapes.

A distance d to something that must not be reached may change as

    d'' >= -2 r d' - r^2 (d - margin),

a critically damped return: where d' >= -r (d - margin) once holds, it never falls below the margin. Of a joint, d is
the rest of its range. Of two shapes, d is their distance, with d' = J v and d'' = J v' + J' v. J' v is the change of
J v along v over a few ticks: normals and nearest points move with the shapes; where they jump there is no derivative.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.robots.self_collision import SHAPES

SPEED_TIME = 0.02  # [s] in which a joint may reach its speed limit: ten ticks, so that noise does not chatter
MOST_ACCELERATION = 1e4  # [rad/s^2]
AHEAD = 0.005  # [s] over which J' v is taken
HARMLESS = -30.0  # [m/s^2] nothing that is danced brings shapes together so fast: a row that allows it is left out


class DistanceRows(NamedTuple):
    """Rows J . v' >= least: gradients J (k, nv) of distances [m], least (k,) of their second derivatives [m/s^2]."""

    J: np.ndarray
    least: np.ndarray


class AccelerationLimits:
    """Limits of one robot.

    Attributes:
        rate: r of the return [1/s].
        margin: distance that shapes keep [m].
        activation: distance below which a pair of shapes has a row [m]; 0: no rows.
        clearance: least distance of the last rows [m]; infinite where no pair is near.
    """

    def __init__(self, robot: Robot, rate: float, margin: float, activation: float) -> None:
        """Prepare for a robot.

        Args:
            robot: whose shapes and ranges.
            rate: see above.
            margin: see above.
            activation: see above.
        """
        self.robot, self.rate, self.activation = robot, rate, activation
        self.clearance = np.inf
        self.monitor = robot.collision_monitor(SHAPES) if activation > 0 and len(robot.pairs) else None
        # A pair that is closer than the margin at rest would part the limbs of a robot that stands.
        self.margin = np.minimum(margin, robot.largest_margins()) if self.monitor is not None else np.zeros(0)
        self._later = robot.model.createData()

    def joints(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest accelerations (n,) of joints at positions and velocities (n,) [rad/s^2]."""
        r, robot = self.rate, self.robot
        high = np.minimum(r * r * (robot.upper - q) - 2 * r * v, (robot.velocity - v) / SPEED_TIME)
        low = np.maximum(r * r * (robot.lower - q) - 2 * r * v, (-robot.velocity - v) / SPEED_TIME)
        high = np.clip(high, -MOST_ACCELERATION, MOST_ACCELERATION)
        return np.clip(np.minimum(low, high), -MOST_ACCELERATION, MOST_ACCELERATION), high

    def distances(self, data: pin.Data, q: np.ndarray, v: np.ndarray) -> DistanceRows:
        """Rows of the shapes that are near.

        Args:
            data: after `pin.computeJointJacobians` at q (nq,).
            v: (nv,) velocities.
        """
        self.clearance = np.inf
        if self.monitor is None:
            return DistanceRows(np.zeros((0, self.robot.nv)), np.zeros(0))
        near = self.monitor.update(q, self.activation)
        if not len(near):
            return DistanceRows(np.zeros((0, self.robot.nv)), np.zeros(0))
        self.clearance = float(near.distance.min())
        J, r, pair = near.gradient(data.J), self.rate, near.pair
        speed = J @ v
        least = -2 * r * speed - r * r * (near.distance - self.margin[pair])
        own = least > HARMLESS
        if own.any():
            least -= np.clip((self._speeds_ahead(pair, speed, q, v) - speed) / AHEAD, HARMLESS, -HARMLESS)
        return DistanceRows(J[own], least[own])

    def _speeds_ahead(self, pair: np.ndarray, speed: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rates (k,) of the distances of pairs a little later; of those that are no longer near, as they are."""
        assert self.monitor is not None
        later = pin.integrate(self.robot.model, q, AHEAD * v)
        near, out = self.monitor.update(later, 2 * self.activation), speed.copy()
        at = np.searchsorted(near.pair, pair)
        found = at < len(near)
        found[found] = near.pair[at[found]] == pair[found]
        out[found] = (near.gradient(pin.computeJointJacobians(self.robot.model, self._later, later)) @ v)[at[found]]
        return out
