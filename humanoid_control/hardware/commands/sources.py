"""Everything that may move a powered robot by commands: single commands, and a trajectory that makes them.

Commands count from the moment in which the robot follows them. A command or trajectory of the time before (without
power, before a stop, by its stamp out of date) is refused by name and never moves the robot later.
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
    """Commands and trajectories on their way to one driver; a trajectory that runs comes before single commands.

    Attributes:
        driver: of the robot. player: the trajectory that runs, if any.
    """

    def __init__(self, driver: Driver) -> None:
        self.driver, self.player = driver, TrajectoryPlayer(driver.hardware.names)

    def running(self, now: float) -> bool:
        """Test whether a trajectory moves the robot, or will, at a monotonic time [s]."""
        return self.player.spline is not None and not self.player.over(now)

    def command(self, command: JointCommand, now: float, stamp: float, gains: Gains | None = None) -> None:
        """Take a checked command in place of a trajectory that is over; see `CommandInterpolator.add`."""
        self.player.stop()
        self.driver.command(command, now, stamp, gains)

    def start(self, names: Sequence[str], points: Sequence[TrajectoryPoint], age: float, now: float) -> None:
        """Execute a trajectory in place of the one before.

        Args:
            names, points: of the trajectory.
            age: of its stamp [s]; negative: it begins later; 0: it has none.
            now: monotonic time [s].

        Raises:
            HumanoidError: the robot does not follow commands now, the trajectory is out of date or has a mistake. A
                trajectory that runs goes on.
        """
        if reason := self.driver.passes_over():
            raise ConfigError(f"trajectory refused: {reason}")
        left, delay = scheduled(points, age)
        ref = self.driver.reference
        self.player.start(names, left, ref.q, ref.v, now + delay if delay > 0.0 else -float("inf"))

    def stop(self) -> None:
        """Discard the trajectory that runs."""
        self.player.stop()

    def advance(self, now: float) -> None:
        """Command the trajectory of this cycle; discard it where the robot does not follow. Called before a cycle."""
        if self.driver.passes_over():
            self.player.stop()
        elif (command := self.player.command(now, self.driver.machine.state is PowerState.RUN)) is not None:
            self.driver.command(command, now, now)
