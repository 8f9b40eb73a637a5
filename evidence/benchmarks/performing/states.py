"""States that a peer controls by: the true ones, or those that noisy sensors give, by this package's estimator."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pinocchio as pin

from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.performing import DynamicMotion
from humanoid_control.performing.performance import TICK
from humanoid_control.robots import load_robot
from humanoid_control.simulation import Engine
from humanoid_control.simulation.noisy_sensors import NOISE, NoisySensors
from humanoid_control.walking.feet import Feet


class StateSource(Protocol):
    """Configuration and velocity of a robot at a time."""

    def start(self) -> None:
        """Begin: the robot stands in the first posture of the motion."""

    def __call__(self, t: float, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
        """Configuration (nq,) and velocity (nv,) at a time of the motion [s]."""


class EstimatedStates:
    """States by sensors with noise, 2 ms late: those that the whole-body controller has."""

    def __init__(self, name: str, motion: DynamicMotion, engine: Engine, seed: int) -> None:
        """Create the estimated states.

        Args:
            name: of the robot. motion: that is performed. engine: with the robot. seed: of the noise.
        """
        self.motion, self.sensors = motion, NoisySensors(engine, NOISE, seed)
        self.robot = load_robot(name, "floating")
        self.feet = Feet(self.robot)
        self.estimator = FloatingBaseEstimator(self.robot, self.feet.frames)
        self._last = motion.q[0], np.zeros(self.robot.nv)

    def start(self) -> None:
        """See `StateSource.start`."""
        data = self.robot.model.createData()
        pin.framesForwardKinematics(self.robot.model, data, self.motion.q[0])
        self.estimator.reset([data.oMf[f].translation.copy() for f in self.feet.frames])

    def __call__(self, t: float, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
        """See `StateSource`."""
        measured = self.sensors.read()
        if measured is None:
            return self._last
        self.estimator.kinematics(measured.joints.q, measured.joints.v, measured.imu)
        forces = self.feet.wrenches(self.estimator.data, measured.foot_wrenches)[:, 2]
        frame = min(round(t * self.motion.rate), len(self.motion) - 1)
        found = self.estimator.update(forces, self.motion.stands[frame].tolist(), TICK, (0.0, 0.0))
        self._last = found.q, found.v
        return self._last
