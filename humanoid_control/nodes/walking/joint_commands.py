"""Joint commands of a walking robot: limited, exclusive, and supervised."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.estimation import JointSupervision, JointSupervisionLimits
from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.messages import PeriodicStamps, fill_joint_state, joint_state, stamp_of
from humanoid_control.nodes.base.supervised_robot import ReportedPower
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import Robot

NO_POSITIONS = np.zeros(0)


class JointCommands:
    """Publisher of `joint_commands`, with supervision of joint tracking in sensor time.

    Attributes:
        ticks: commands since the last `restart`.
        fault: first tracking fault since then; empty: none.
    """

    def __init__(self, node: TickNode, robot: Robot) -> None:
        """Create the publisher; call `configure` next.

        Args:
            robot: floating base.
        """
        self._node, self._robot, self._every_joint = node, robot, np.arange(robot.n)
        self._message = joint_state(robot.joint_names)
        self.owner = CommandOwner(node, "joint_commands")
        self._joints = JointSupervision(robot.joint_names, robot.velocity, ranges=(robot.lower, robot.upper))
        self._power = ReportedPower(node, self._joints.restart)
        # A command covers one control period, but late or replaced ticks come closer together.
        self._stamps = PeriodicStamps(round(1e9 / node.params.rate))
        self.restart()

    def configure(self, following_error: float) -> None:
        """Set the tracking error that is a fault [rad]; 0: none."""
        self._stops = following_error > 0
        self._joints.limits = JointSupervisionLimits(following_error or np.inf, silence=np.inf, jump=np.inf)

    def restart(self) -> None:
        self._joints.restart()
        self.fault, self._worst, self._instant = "", ("", 0.0), -1
        self._sent: np.ndarray | None = None
        self._stamps.restart()
        self.ticks = self._saturated = self._limited = 0

    def begin(self, q: np.ndarray) -> None:
        """Start commands at the current joint positions (n,) [rad]."""
        self._sent = q
        self._node.health.clear("joints")

    def supervise(self, instant: int, q: np.ndarray) -> bool:
        """Test whether a joint newly fails to track, or its measurement is frozen.

        Args:
            instant: stamp of the joint states [ns]; repeated stamps are ignored.
            q: measured positions (n,) [rad].
        """
        if instant == self._instant:
            return False
        self._instant, t = instant, 1e-9 * instant
        self._joints.measure(t, self._every_joint, q)
        self._worst = max(self._worst, self._joints.worst, key=lambda found: found[1])
        fault = self._joints.fault(t) if self._stops and self._power.follows else None
        if fault is None or self.fault:
            return False
        self.fault = str(fault)
        text = f"{fault}: stopped; ~/resync restarts once the robot stands"
        self._node.health.report("joints", Level.ERROR, text)
        return True

    def send(self, q: np.ndarray, v: np.ndarray) -> bool:
        """Publish a limited command; return False, without publishing, if not finite.

        Args:
            q: positions (n,) [rad].
            v: velocities (n,) [rad/s].
        """
        if not (np.isfinite(q).all() and np.isfinite(v).all()):
            return False
        r, before = self._robot, self._sent
        assert before is not None
        most = r.velocity / self._node.rate
        allowed = np.clip(np.clip(q, before - most, before + most), r.lower, r.upper)
        speed = np.clip(v, -r.velocity, r.velocity)
        self._limited += int((np.abs(allowed - q) > 1e-6).any() or (np.abs(speed - v) > 1e-6).any())
        self._saturated += int((np.abs(speed) > 0.999 * r.velocity).any())
        self._sent, self.ticks = allowed, self.ticks + 1
        self._joints.command(1e-9 * self._instant, allowed)
        now = self._node.get_clock().now().nanoseconds
        self.owner.publish(fill_joint_state(self._message, self._stamps.next(now), allowed, speed))
        return True

    def damp(self) -> None:
        """Damp the joints: zero velocity without position."""
        stamp, rest = stamp_of(self._node.present()), np.zeros(self._robot.n)
        self.owner.publish(fill_joint_state(self._message, stamp, NO_POSITIONS, rest))

    def values(self) -> dict[str, Any]:
        """Return figures; the largest tracking error since the last call."""
        worst, self._worst = self._worst, ("", 0.0)
        return {
            "saturated_percent": round(100.0 * self._saturated / max(self.ticks, 1), 3),
            "commands_limited": self._limited,
            "following_error_rad": round(worst[1], 4),
            "following_error_joint": worst[0],
            "control_ticks": self.ticks,
        }
