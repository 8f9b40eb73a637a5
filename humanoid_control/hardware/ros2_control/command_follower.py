"""Commands for an external controller that tracks any input."""

from __future__ import annotations

import enum

import numpy as np

from humanoid_control.hardware.commands.command_stream import Blend, CommandInterpolator, JointCommand
from humanoid_control.hardware.commands.limiter import CommandLimits, LimiterReference, limit_step

STEADY = 0.2  # [s] commands must have come before they are followed
NEAR = 0.1  # [rad] deviation from the last reference that still counts as held


class Following(enum.Enum):
    """State of a follower."""

    IDLE = "nothing is commanded: the controller holds its last value"
    BLEND = "moves from the present posture to the commands"
    RUN = "commands are followed inside the limits"
    STOPPING = "every joint comes to rest at its acceleration limit"


class CommandFollower:
    """Reference for n joints that follows commands within limits.

    Attributes:
        max_step: command step that starts a new blend [rad].
    """

    def __init__(self, limits: CommandLimits, period: float, timeout: float) -> None:
        """Start IDLE.

        Args:
            timeout: silence of commands that ends motion [s].
        """
        n = len(limits.lower)
        self.limits, self.period = limits, period
        self.commands = CommandInterpolator(n, timeout)
        self.reference = LimiterReference(np.full(n, np.nan), np.zeros(n), np.zeros(n, dtype=bool))
        self.state = Following.IDLE
        self.soft_start, self.soft_speed, self.max_step = 2.0, 0.5, 0.3
        self._blend = Blend(np.zeros(n), np.zeros(n), 0.0, 1.0, 1.0)
        self._target = np.full(n, np.nan)

    def add(self, command: JointCommand, now: float, stamp: float) -> None:
        """Add a checked command; see `CommandInterpolator.add`."""
        self.commands.add(command, now, stamp)

    def stop(self) -> None:
        """Come to rest; follow again after steady commands."""
        if self.state in (Following.BLEND, Following.RUN):
            self.state = Following.STOPPING
        self.commands.restart()

    def reset(self) -> None:
        """Reset after a change of the controller: its reference is unknown."""
        self.state = Following.IDLE
        self.reference.q[:], self.reference.v[:], self.reference.clipped[:] = np.nan, 0.0, False
        self.commands.restart()

    def update(self, measured: np.ndarray, now: float) -> bool:
        """Advance by one period; False if there is nothing to send.

        Args:
            measured: (n,) [rad]; not finite: unknown.
        """
        if self.state is Following.IDLE and not self._begin(measured, now):
            return False
        if self.state in (Following.BLEND, Following.RUN) and self.commands.silent(now):
            self.state = Following.STOPPING
        target, speed = np.full(len(measured), np.nan), np.full(len(measured), np.nan)
        if self.state is not Following.STOPPING:
            target, speed = self._follow(now)
        limit_step(target, speed, self.reference, self.limits, self.period)
        self._target = target
        if self.state is Following.STOPPING and not self.reference.v.any():
            self.state = Following.IDLE
            self.commands.restart()
        return True

    def _begin(self, measured: np.ndarray, now: float) -> bool:
        if not self.commands.steady(now, STEADY) or not np.isfinite(measured).all():
            return False
        ref = self.reference
        held = np.abs(ref.q - measured) <= NEAR
        ref.q[:] = np.where(held, ref.q, measured)
        ref.v[:], ref.clipped[:] = 0.0, False
        self._start_blend(now)
        return True

    def _start_blend(self, now: float) -> None:
        q, _ = self.commands.at(now)
        self._blend = Blend(self.reference.q, q, now, self.soft_start, self.soft_speed)
        self._target = self.reference.q.copy()
        self.state = Following.BLEND

    def _follow(self, now: float) -> tuple[np.ndarray, np.ndarray]:
        q, v = self.commands.at(now)
        if self.state is Following.BLEND and self._blend.over(now):
            self.state = Following.RUN
        if self.state is Following.RUN:
            if not (np.abs(q - self.reference.q) > self.max_step).any():
                return q, v
            self._start_blend(now)
        target = self._blend.at(now, q)
        if (np.abs(target - self._target) > self.max_step).any():
            self._start_blend(now)
            target = self._blend.at(now, q)
        return target, (target - self._target) / self.period
