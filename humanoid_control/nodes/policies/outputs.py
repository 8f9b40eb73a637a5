"""Outputs of the node `policy`: joint_commands with joint_gains, state, observation terms."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, MultiArrayDimension, String

from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.joint_gains import GAINS
from humanoid_control.nodes.base.messages import (
    LATCHED,
    STREAM_OUT,
    PeriodicStamps,
    fill_joint_state,
    floats,
    joint_state,
)
from humanoid_control.nodes.base.tick_node import TickNode
from humanoid_control.policy import Policy, PolicyTargets


class PolicyOutputs:
    """Publishers of the node."""

    def __init__(self, node: TickNode, policy: Policy) -> None:
        self._node, self._robot = node, policy.robot
        self.owner = CommandOwner(node, "joint_commands")
        self._gains = node.create_publisher(JointState, GAINS, STREAM_OUT)
        self._state = node.create_publisher(String, "~/state", LATCHED)
        self._terms = node.create_publisher(Float64MultiArray, "~/terms", STREAM_OUT)
        self._commands_message = joint_state(self._robot.joint_names)
        self._gains_message, self._under = joint_state(self._robot.joint_names), np.ones(self._robot.n, dtype=bool)
        self._stamps = PeriodicStamps(round(1e9 * policy.period))
        self.said, self._shown = "", 0.0

    def restart(self) -> None:
        self._stamps.restart()

    def say(self, state: str) -> None:
        """Publish the state if it changed."""
        if state != self.said:
            self.said = state
            self._state.publish(String(data=state))
            self._node.get_logger().info(state)

    def send(self, targets: PolicyTargets, others: np.ndarray) -> bool:
        """Publish targets with gains; return False, without publishing, if not finite.

        Args:
            targets: targets with finite gains.
            others: positions from another controller (n,) [rad], without gains; NaN: none.
        """
        moved = np.isfinite(others)
        r = self._robot
        q = np.where(moved, np.clip(others, r.lower, r.upper), targets.q)
        v, tau = np.where(moved, 0.0, targets.v), np.where(moved, 0.0, np.clip(targets.tau, -r.effort, r.effort))
        if not all(np.isfinite(a).all() for a in (q, v, tau, targets.kp, targets.kd)):
            return False
        if not self.owner.commanding:
            return True
        if not np.array_equal(~moved, self._under):
            self._under = ~moved
            names = [name for name, under in zip(r.joint_names, self._under, strict=True) if under]
            self._gains_message = joint_state(names)
        stamp = self._stamps.next(self._node.get_clock().now().nanoseconds)
        kp, kd = targets.kp[self._under], targets.kd[self._under]
        self._gains.publish(fill_joint_state(self._gains_message, stamp, kp, kd))  # before the command that needs them
        self.owner.publish(fill_joint_state(self._commands_message, stamp, q, v, tau))
        return True

    def show(self, policy: Policy, now: float, rate: float) -> None:
        """Publish the last observation terms to subscribers, one named dimension each."""
        if not rate or now - self._shown < 1.0 / rate or not self._terms.get_subscription_count():
            return
        self._shown = now
        message = Float64MultiArray(data=floats(policy.terms))
        for term in policy.observed_terms:
            message.layout.dim.append(MultiArrayDimension(label=term.name, size=term.size, stride=1))
        self._terms.publish(message)
