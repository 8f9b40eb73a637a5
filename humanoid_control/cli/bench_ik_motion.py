"""The motion of the inverse kinematics bench: all joints swing, as far as the robot does not touch itself."""

from __future__ import annotations

import numpy as np

from humanoid_control.robots import Robot
from humanoid_control.robots.near_pairs import RobotPairs

DT = 0.004  # [s]
PERIOD = 1.6  # [s] of the slowest joint
SWING = 0.6  # [rad] at the most
MARGIN, ACTIVATION = 0.02, 0.12  # [m] of all solvers that keep pairs apart
CLOSEST = 0.005  # [m] to which the motion goes: inside the margin, so that rows hold the robot back


class Motion:
    """Postures of a robot, each a tick after the one before; targets lie a tick ahead.

    Attributes:
        q: (T + 1, nq), inside the joint limits.
        near: (T,) how many pairs are closer than ACTIVATION. closest: (T,) distance of the nearest pair [m].
    """

    def __init__(self, robot: Robot, ticks: int, seed: int = 8) -> None:
        """Make it: every joint swings around the neutral posture with a period and phase of its own."""
        rng, n = np.random.default_rng(seed), robot.n
        neutral, pairs = robot.postures["neutral"], RobotPairs(robot)
        room = np.minimum(robot.upper - neutral, neutral - robot.lower)
        swing = np.minimum(SWING, 0.9 * np.maximum(room, 0.0))
        period, phase = PERIOD * rng.uniform(0.5, 1.0, n), rng.uniform(0, 2 * np.pi, n)
        t = DT * np.arange(ticks + 1)[:, None]
        way = swing * np.sin(2 * np.pi * t / period + phase)

        def postures(share: float) -> np.ndarray:
            return np.array([robot.q(neutral + share * w) for w in way])

        def closest(q: np.ndarray) -> float:
            return float(pairs.near(q, np.inf).distance.min(initial=np.inf))

        low, high = 0.0, 1.0
        for _ in range(12):
            share = 0.5 * (low + high)
            touches = any(closest(q) < CLOSEST for q in postures(share)[::4])
            low, high = (low, share) if touches else (share, high)
        self.q = postures(low)
        self.near = np.array([len(pairs.near(q, ACTIVATION)) for q in self.q[:-1]])
        self.closest = np.array([closest(q) for q in self.q[:-1]])
