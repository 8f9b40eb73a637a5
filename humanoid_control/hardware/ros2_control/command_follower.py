"""Commands on their way to a controller that follows whatever it is given: blended, limited, ended when they cease.

It is what the driver of a robot does between commands and drives, for joints that somebody else drives.
"""

from __future__ import annotations

import enum

import numpy as np

from humanoid_control.hardware.commands.command_stream import Blend, CommandInterpolator, JointCommand
from humanoid_control.hardware.commands.limiter import CommandLimits, LimiterReference, limit_step

STEADY = 0.2  # [s] of commands before they are followed
NEAR = 0.1  # [rad] by which joints may sag below the last reference and still be held by it


class Following(enum.Enum):
    """State of a follower."""

    IDLE = "nothing is commanded: the controller holds its last value"
    BLEND = "from where the robot is to what is commanded"
    RUN = "commands are followed inside the limits"
    STOPPING = "every joint comes to rest at its acceleration limit"


class CommandFollower:
    """A reference for n joints that follows commands inside limits.

    Attributes:
        state: current one. commands: taken from outside. reference: for the controller.
        soft_start: least time of a blend [s]. soft_speed: that it may add [rad/s]. max_step: of a command, above which
            it is blended to anew [rad].
    """

    def __init__(self, limits: CommandLimits, period: float, timeout: float) -> None:
        """Begin IDLE.

        Args:
            limits: of the joints. period: of `update` [s]. timeout: silence of commands that ends motion [s].
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
        """Take a checked command; see `CommandInterpolator.add`."""
        self.commands.add(command, now, stamp)

    def stop(self) -> None:
        """Come to rest, whatever is commanded; commands are followed again once they were steady."""
        if self.state in (Following.BLEND, Following.RUN):
            self.state = Following.STOPPING
        self.commands.restart()

    def forget(self) -> None:
        """The controller is another one or was away: nothing is known of what it holds."""
        self.state = Following.IDLE
        self.reference.q[:], self.reference.v[:], self.reference.clipped[:] = np.nan, 0.0, False
        self.commands.restart()

    def update(self, measured: np.ndarray, now: float) -> bool:
        """Advance the reference by one period; False where there is nothing to send.

        Args:
            measured: (n,) positions of the joints [rad]; not finite: not known.
            now: monotonic time [s].
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
        """Begin to blend from where the controller holds the robot, once commands are steady."""
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
        """Target (n,) and its velocity (n,); commands that step are blended to anew."""
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
