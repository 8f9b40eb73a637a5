"""Recorded JointStates as arrays, whatever they leave out: commands may be velocities alone, or of some joints."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.cli.output import console
from humanoid_control.errors import ConfigError
from humanoid_control.imitation.run_report import Signal
from humanoid_control.robots import Robot

MEASURED = "joint_states"


class JointRows:
    """The messages of one topic, in the robot's order of joints.

    Attributes:
        stamps: of the messages, [ns] since 1970.
    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.stamps: list[int] = []
        self._values: list[np.ndarray] = []  # (2, n) positions and velocities, NaN where not given
        self._given: list[np.ndarray] = []  # (2, n)

    def __len__(self) -> int:
        return len(self.stamps)

    def add(self, message: Any) -> None:
        """Take a sensor_msgs/JointState in."""
        n = self.robot.n
        theirs, ours = self.robot.order_of(message.name)
        values, given = np.full((2, n), np.nan), np.zeros((2, n), dtype=bool)
        for k, field in enumerate((message.position, message.velocity)):
            if len(field) == len(message.name):
                values[k, ours], given[k, ours] = np.asarray(field)[theirs], True
        self.stamps.append(nanoseconds(message.header.stamp))
        self._values.append(values)
        self._given.append(given)

    @property
    def complete(self) -> bool:
        """Whether every message gave the position of every joint."""
        return all(bool(g[0].all()) for g in self._given)

    def signal(self, first: int, measured: Signal | None = None) -> Signal:
        """The messages as arrays, with times since `first` [ns].

        Positions that are not given are those measured at that time, or NaN; velocities that are not given follow
        from the positions. What is given and not a number stays so.
        """
        time = 1e-9 * (np.array(self.stamps, dtype=np.int64) - first)
        (p, v), (by_p, by_v) = np.array(self._values).transpose(1, 0, 2), np.array(self._given).transpose(1, 0, 2)
        if measured is not None and not by_p.all():
            p = np.where(by_p, p, measured.at(time))
        if not by_v.all():
            dt = np.maximum(np.diff(time), 1e-9)[:, None]
            moved = np.diff(p, axis=0) / dt
            v = np.where(by_v, v, np.vstack([moved[:1], moved]))
        return Signal(time, p, v)


def commands_of(commands: JointRows, states: JointRows, first: int, path: object) -> Signal:
    """What was commanded; postures that no command gave, as under feedback, are those that were measured.

    Raises:
        ConfigError: these were not recorded.
    """
    if commands.complete:
        return commands.signal(first)
    if len(states) < 2:
        raise ConfigError(
            f"{path}: its joint_commands give no position of some joints, and it holds no joint_states to tell them"
        )
    return commands.signal(first, states.signal(first))


def postures_from(commands: JointRows) -> str:
    """The topic that tells the postures of a run."""
    return "joint_commands" if commands.complete else MEASURED


def tell_postures(report: dict[str, Any]) -> None:
    """Say so where the postures of a report are not those that were commanded."""
    if report["postures_from"] == MEASURED:
        console.print(
            "the commands are velocities, or of some joints: postures are those of joint_states, and joints may press "
            "into their stops by 1 deg"
        )


def nanoseconds(stamp: Any) -> int:
    """A builtin_interfaces/Time in nanoseconds."""
    return int(stamp.sec) * 10**9 + int(stamp.nanosec)
