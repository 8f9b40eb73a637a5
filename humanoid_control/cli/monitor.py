"""Listens to a running stack: diagnostics of every node, and whether the commands move."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np


class Monitor:
    """A small ROS node in the command's own process.

    Attributes:
        nodes: node -> (level, message, values) of its last diagnostics.
        moving: commands that differ from the first one have been heard, and joint states too.
    """

    def __init__(self, namespace: str = "") -> None:
        os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray
        from rclpy.signals import SignalHandlerOptions
        from sensor_msgs.msg import JointState

        from humanoid_control.nodes.qos import EVENTS, STREAM_IN
        from humanoid_control.nodes.run import make_executor

        rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
        self.node: Any = rclpy.create_node("monitor", namespace=namespace)
        self._executor = make_executor()
        self._executor.add_node(self.node)
        self.nodes: dict[str, tuple[int, str, dict[str, str]]] = {}
        self.moving = False
        self._first: np.ndarray | None = None
        self._states = False
        self._subscriptions = [
            self.node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS),
            self.node.create_subscription(JointState, "joint_states", self._on_states, STREAM_IN),
            self.node.create_subscription(JointState, "joint_commands", self._on_commands, STREAM_IN),
        ]

    def _on_diagnostics(self, m: Any) -> None:
        for s in m.status:
            level = s.level[0] if isinstance(s.level, bytes) else int(s.level)
            self.nodes[s.name.strip("/")] = (level, s.message, {v.key: v.value for v in s.values})

    def _on_states(self, _: Any) -> None:
        self._states = True

    def _on_commands(self, m: Any) -> None:
        p = np.asarray(m.position or m.velocity)  # a robot under feedback is commanded velocities alone
        if self._first is None:
            self._first = p
        elif self._states and p.shape == self._first.shape and np.abs(p - self._first).max(initial=0.0) > 1e-3:
            self.moving = True
            # Enough is known; the streams would only cost time from now on.
            for s in self._subscriptions[1:]:
                self.node.destroy_subscription(s)
            self._subscriptions = self._subscriptions[:1]

    def spin(self, seconds: float) -> None:
        """Take what has come, or wait for it [s]."""
        self._executor.spin_once(timeout_sec=seconds)

    def hold_clip_at(self, seconds: float, timeout: float = 10.0) -> bool:
        """Ask the streamer to go to a place in the clip and stand still there; whether it answered."""
        from std_msgs.msg import Float64
        from std_srvs.srv import Trigger

        from humanoid_control.nodes.qos import EVENTS

        seek = self.node.create_publisher(Float64, "clip/seek", EVENTS)
        pause = self.node.create_client(Trigger, "trajectory_streamer/pause")
        end, answer = time.monotonic() + timeout, None
        while time.monotonic() < end:
            self.spin(0.05)
            if answer is None and pause.service_is_ready() and seek.get_subscription_count():
                seek.publish(Float64(data=seconds))
                answer = pause.call_async(Trigger.Request())
            if answer is not None and answer.done():
                return True
        return False

    def line(self) -> str:
        """One line of status: the worst node's message, or 'all ok'."""
        worst = max(self.nodes.items(), key=lambda kv: kv[1][0], default=None)
        if worst is None:
            return "waiting"
        name, (level, message, _) = worst
        return "all ok" if level == 0 else f"{name}: {message}"[:70]

    def close(self) -> None:
        import rclpy

        self._executor.shutdown()
        self.node.destroy_node()
        rclpy.try_shutdown()
