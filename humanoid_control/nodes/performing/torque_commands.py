"""Joint torques as commands: inside all limits, by one node alone, and a robot that gives way slowly where it fell."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.messages import PeriodicStamps, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.robots import Robot

NOTHING = np.zeros(0)


class TorqueCommands:
    """Publisher of `joint_commands` with efforts alone.

    Attributes:
        owner: of the topic. ticks: commands since the last `restart`. share: largest torque of the last command, as a
            share of its limit.
    """

    def __init__(self, node: TickNode, robot: Robot) -> None:
        """Make it; node: that commands. robot: with a floating base."""
        self._node, self._robot = node, robot
        self._torques, self._damping = joint_state(robot.joint_names), joint_state(robot.joint_names)
        self.owner = CommandOwner(node, "joint_commands")
        self._limits = np.where(robot.effort_known & (robot.effort > 0), robot.effort, np.inf)
        self._stamps = PeriodicStamps(round(1e9 / node.params.rate))
        self.restart()

    def restart(self) -> None:
        """Nothing was commanded yet."""
        self._stamps.restart()
        self.ticks = self._full = 0
        self.share = 0.0

    def send(self, torque: np.ndarray) -> bool:
        """Publish torques (n,) [N m] inside all limits; False: they are not numbers, and not published."""
        if not np.isfinite(torque).all():
            return False
        allowed = np.clip(torque, -self._limits, self._limits)
        self.share = float((np.abs(allowed) / self._limits).max())
        self._full += self.share > 0.98
        self.ticks += 1
        stamp = self._stamps.next(self._node.get_clock().now().nanoseconds)
        self.owner.publish(fill_joint_state(self._torques, stamp, NOTHING, effort=allowed))
        return True

    def damp(self) -> None:
        """Let the joints give way slowly: a velocity of zero without a position."""
        stamp = stamp_of(self._node.present())
        self.owner.publish(fill_joint_state(self._damping, stamp, NOTHING, np.zeros(self._robot.n)))

    def values(self) -> dict[str, Any]:
        """For diagnostics."""
        return {
            "torque_share": round(self.share, 3),
            "torque_saturated_percent": round(100.0 * self._full / max(self.ticks, 1), 3),
            "control_ticks": self.ticks,
        }
