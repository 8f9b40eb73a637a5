"""Limiters of other safety layers, for comparison with the gate."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from humanoid_control.policy.gate import pd_torque
from humanoid_control.policy.runner import PolicyTargets
from humanoid_control.robots import Robot


class Limiter(Protocol):
    """Interface between policy targets and drive torques."""

    def reset(self) -> None:
        """Restart."""

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return torque (n,) [N m] at each PD step; q, v measured (n,) [rad], [rad/s]."""


class Unlimited:
    """PD loops clipped to torque limits."""

    def __init__(self, robot: Robot) -> None:
        self._limit = robot.effort.copy()

    def reset(self) -> None:
        """Restart."""

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """See `Limiter.torque`."""
        return pd_torque(targets, q, v, self._limit)


class TargetRateLimit:
    """Targets with bounded speed and acceleration, as in position drives.

    Attributes:
        acceleration: [rad/s^2].
    """

    def __init__(self, robot: Robot, period: float, acceleration: float = 20.0, speed_share: float = 0.5) -> None:
        """Set the limits.

        Args:
            period: period of the PD loop [s].
        """
        self._limit, self._h = robot.effort.copy(), period
        self.acceleration, self._most = acceleration, speed_share * robot.velocity
        self.reset()

    def reset(self) -> None:
        """Restart from the first measured posture."""
        self._q: np.ndarray | None = None
        self._v = np.zeros(len(self._limit))

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """See `Limiter.torque`."""
        if self._q is None:
            self._q = q.copy()
        h, a = self._h, self.acceleration
        gap = targets.q - self._q
        # speed from which the target can still stop at its goal, then bounds of speed and acceleration
        stopping = np.sign(gap) * np.sqrt(2.0 * a * np.abs(gap))
        wanted = np.clip(np.where(np.abs(stopping) * h > np.abs(gap), gap / h, stopping), -self._most, self._most)
        self._v = np.clip(wanted, self._v - a * h, self._v + a * h)
        self._q = self._q + h * self._v
        return pd_torque(targets._replace(q=self._q), q, v, self._limit)


class FreezeOnSpeed:
    """Permanent hold of the posture once a joint is too fast."""

    def __init__(self, robot: Robot, share: float = 0.5) -> None:
        self._limit, self._fast = robot.effort.copy(), share * robot.velocity
        self.reset()

    def reset(self) -> None:
        """Restart."""
        self.frozen = False
        self._held: np.ndarray | None = None

    def torque(self, targets: PolicyTargets, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """See `Limiter.torque`."""
        if self._held is None and (np.abs(v) > self._fast).any():
            self.frozen, self._held = True, q.copy()
        if self._held is not None:
            targets = targets._replace(q=self._held, v=np.zeros_like(q), tau=np.zeros_like(q))
        return pd_torque(targets, q, v, self._limit)
