"""Joint positions as encoders give them, on their way into the joint filter."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import JointState

from humanoid_control.motion import JointFilter
from humanoid_control.nodes.base import TickNode
from humanoid_control.nodes.health import Level
from humanoid_control.nodes.messages import seconds
from humanoid_control.robots import Robot

TOPIC = "joint_states"


class JointInput:
    """Subscribes `joint_states`; what is wrong with a message is said in diagnostics."""

    def __init__(self, node: TickNode, robot: Robot, joint_filter: JointFilter, wanted: np.ndarray) -> None:
        """Subscribe.

        Args:
            node: that ticks. robot: whose joints. joint_filter: that takes the samples.
            wanted: (n,) True for the joints to be taken from encoders.
        """
        self.robot, self.filter, self.health, self._wanted = robot, joint_filter, node.health, wanted
        self._names = [n for n, w in zip(robot.joint_names, wanted, strict=True) if w]
        self._order: tuple[list[str], np.ndarray, np.ndarray] = ([], np.zeros(0, int), np.zeros(0, int))
        self._measured = np.full(robot.n, np.nan)
        node.listen(JointState, TOPIC, self.on_joint_states)

    def on_joint_states(self, m: JointState) -> None:
        if m.name != self._order[0]:
            theirs, ours = self.robot.order_of(m.name)
            keep = self._wanted[ours]
            self._order = (list(m.name), theirs[keep], ours[keep])
            missing = [n for n in self._names if n not in m.name]
            self.health.check("missing", bool(missing), Level.WARN, f"joints not measured: {', '.join(missing[:3])}")
        _, theirs, ours = self._order
        bad_length = len(m.position) != len(m.name)
        if self.health.check("length", bad_length, Level.WARN, "joint states without a position for each name"):
            return
        self._measured[ours] = np.asarray(m.position)[theirs]
        bad = ours[~np.isfinite(self._measured[ours])]
        names = ", ".join(self.robot.joint_names[k] for k in bad[:3])
        self.health.check("nan", bool(len(bad)), Level.ERROR, f"measured position is not a number: {names}")
        self.filter.update(seconds(m.header.stamp), self._measured)
