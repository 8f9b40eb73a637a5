"""Sources of motion: single commands and trajectories.

Commands from before the robot follows (no power, before a stop, outdated) are rejected and never move it later.
"""

from __future__ import annotations

from collections.abc import Sequence

from humanoid_control.errors import ConfigError
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.commands.gained_command import Gains
from humanoid_control.hardware.commands.trajectory import TrajectoryPlayer, TrajectoryPoint, scheduled
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.power import PowerState


class CommandSources:
    """Commands and trajectories for one driver; a running trajectory has priority."""

    def __init__(self, driver: Driver) -> None:
        self.driver, self.player = driver, TrajectoryPlayer(driver.hardware.names)

    def running(self, now: float) -> bool:
        """Return True if a trajectory moves the robot now or later; `now`: monotonic [s]."""
        return self.player.spline is not None and not self.player.over(now)

    def command(self, command: JointCommand, now: float, stamp: float, gains: Gains | None = None) -> None:
        """Send a checked command after a trajectory is over; see `CommandInterpolator.add`."""
        self.player.stop()
        self.driver.command(command, now, stamp, gains)

    def start(self, names: Sequence[str], points: Sequence[TrajectoryPoint], age: float, now: float) -> None:
        """Replace the running trajectory.

        Args:
            age: age of its stamp [s]; negative: starts later; 0: no stamp.

        Raises:
            HumanoidError: if not followed, invalid or outdated; a running one continues.
        """
        if reason := self.driver.passes_over():
            raise ConfigError(f"trajectory rejected: {reason}")
        left, delay = scheduled(points, age)
        ref = self.driver.reference
        self.player.start(names, left, ref.q, ref.v, now + delay if delay > 0.0 else -float("inf"))

    def stop(self) -> None:
        """Discard the trajectory."""
        self.player.stop()

    def advance(self, now: float) -> None:
        """Command the trajectory before a cycle; discard it if the robot does not follow."""
        if self.driver.passes_over():
            self.player.stop()
        elif (command := self.player.command(now, self.driver.machine.state is PowerState.RUN)) is not None:
            self.driver.command(command, now, now)
