"""Joint torque commands: limited and exclusive, with damping after a fall."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.messages import PeriodicStamps, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.policy import GateSettings, TorqueGate
from humanoid_control.policy.runner import PolicyTargets
from humanoid_control.robots import Robot
from humanoid_control.robots.accelerations import ROTOR_PER_EFFORT

NOTHING = np.zeros(0)
FULL = 0.98  # share of a torque limit that counts as saturated


class TorqueGuard:
    """Final check against torque, range and speed limits, which must be known; the base floats.

    It covers solver failures and wrong models. Valid torques pass bitwise unchanged.

    Attributes:
        acted: ticks with a changed torque.
    """

    def __init__(self, robot: Robot) -> None:
        self._limits, self._speed, n = robot.effort.copy(), robot.velocity.copy(), robot.n
        own = GateSettings(speed=False, pairs=False)  # ranges only; the speed rule below needs no share
        self._gate = TorqueGate(robot, ROTOR_PER_EFFORT * robot.effort, own)
        self._zero = np.zeros(n)
        self.acted = 0

    def torque(self, wanted: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return torques (n,) within all limits [N m].

        A joint that would leave its range within 20 ms is driven back. A joint at its speed limit gets no torque along
        its motion.

        Args:
            wanted: finite torques (n,) [N m].
            q: measured positions (n,) [rad].
            v: measured velocities (n,) [rad/s].
        """
        clipped = np.clip(wanted, -self._limits, self._limits)
        out = self._gate.torque(PolicyTargets(self._zero, self._zero, clipped, self._zero, self._zero), q, v)
        fast = (np.abs(v) > self._speed) & (out * v > 0.0)
        if fast.any():
            out = np.where(fast, 0.0, out)
        self.acted += not np.array_equal(out, clipped)
        return out


class TorqueCommands:
    """Publisher of torque-only `joint_commands`.

    Attributes:
        guard: check of all torques.
        ticks: commands since the last `restart`.
        share: largest torque of the last command relative to its limit.
    """

    def __init__(self, node: TickNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._torques, self._damping = joint_state(robot.joint_names), joint_state(robot.joint_names)
        self.owner = CommandOwner(node, "joint_commands")
        self.guard = TorqueGuard(robot)
        self._stamps = PeriodicStamps(round(1e9 / node.params.rate))
        self.restart()

    def restart(self) -> None:
        self._stamps.restart()
        self.ticks = self._full = 0
        self.guard.acted = 0
        self.share = 0.0

    def send(self, torque: np.ndarray, q: np.ndarray, v: np.ndarray) -> bool:
        """Publish limited torques; return False, without publishing, if they are not finite.

        Args:
            torque: torques (n,) [N m].
            q: measured positions (n,) [rad].
            v: measured velocities (n,) [rad/s].
        """
        if not np.isfinite(torque).all():
            return False
        allowed = self.guard.torque(torque, q, v)
        self.share = float((np.abs(allowed) / self._robot.effort).max())
        self._full += self.share > FULL
        self.ticks += 1
        stamp = self._stamps.next(self._node.get_clock().now().nanoseconds)
        self.owner.publish(fill_joint_state(self._torques, stamp, NOTHING, effort=allowed))
        return True

    def damp(self) -> None:
        """Damp the joints: zero velocity without position."""
        stamp = stamp_of(self._node.present())
        self.owner.publish(fill_joint_state(self._damping, stamp, NOTHING, np.zeros(self._robot.n)))

    def values(self) -> dict[str, Any]:
        return {
            "torque_share": round(self.share, 3),
            "torque_saturated_percent": round(100.0 * self._full / max(self.ticks, 1), 3),
            "guarded_ticks": self.guard.acted,
            "control_ticks": self.ticks,
        }
