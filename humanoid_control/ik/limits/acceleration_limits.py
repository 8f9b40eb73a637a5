"""Limits of joint accelerations: ranges, speeds, and the robot's own shapes.

A distance d obeys the critically damped law

    d'' >= -2 r d' - r^2 (d - margin).

If d' >= -r (d - margin) holds once, d never falls below the margin. For a joint, d is the rest of its range. For two
shapes, d is their distance, with d' = J v and d'' = J v' + J' v. J' v is the change of J v along v over a few ticks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.robots import Robot
from humanoid_control.robots.self_collision import SHAPES

SPEED_TIME = 0.02  # [s] to reach the speed limit: ten ticks, so that noise does not chatter
MOST_ACCELERATION = 1e4  # [rad/s^2]
AHEAD = 0.005  # [s] step of the difference that gives J' v
HARMLESS = -30.0  # [m/s^2] no motion brings shapes together so fast: rows that allow it are dropped


class DistanceRows(NamedTuple):
    """Rows J v' >= least of near pairs.

    Attributes:
        J: gradients of the distances (k, nv).
        least: smallest second derivatives of the distances (k,) [m/s^2].
    """

    J: np.ndarray
    least: np.ndarray


class AccelerationLimits:
    """Acceleration limits of one robot.

    Attributes:
        activation: distance below which a pair has a row [m]; 0: no rows.
        clearance: smallest distance of the last rows [m]; infinite if no pair is near.
    """

    def __init__(self, robot: Robot, rate: float, margin: float, activation: float) -> None:
        """Start the monitor; arguments as in the class."""
        self.robot, self.rate, self.activation = robot, rate, activation
        self.clearance = np.inf
        self.monitor = robot.collision_monitor(SHAPES) if activation > 0 and len(robot.pairs) else None
        # A pair that is closer than the margin at rest would push the limbs of a standing robot apart.
        self.margin = np.minimum(margin, robot.largest_margins()) if self.monitor is not None else np.zeros(0)
        self._later = robot.model.createData()

    def joints(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the lowest and highest joint accelerations (n,) at q and v (n,) [rad/s^2]."""
        r, robot = self.rate, self.robot
        # The law with d = upper - q or d = q - lower; the speed limit is approached within SPEED_TIME.
        high = np.minimum(r * r * (robot.upper - q) - 2 * r * v, (robot.velocity - v) / SPEED_TIME)
        low = np.maximum(r * r * (robot.lower - q) - 2 * r * v, (-robot.velocity - v) / SPEED_TIME)
        high = np.clip(high, -MOST_ACCELERATION, MOST_ACCELERATION)
        return np.clip(np.minimum(low, high), -MOST_ACCELERATION, MOST_ACCELERATION), high

    def distances(self, data: pin.Data, q: np.ndarray, v: np.ndarray) -> DistanceRows:
        """Compute the rows of near shapes."""
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
        """Return the rates (k,) of the distances a little later; unchanged if no longer near."""
        assert self.monitor is not None
        later = pin.integrate(self.robot.model, q, AHEAD * v)
        near, out = self.monitor.update(later, 2 * self.activation), speed.copy()
        at = np.searchsorted(near.pair, pair)
        found = at < len(near)
        found[found] = near.pair[at[found]] == pair[found]
        out[found] = (near.gradient(pin.computeJointJacobians(self.robot.model, self._later, later)) @ v)[at[found]]
        return out
