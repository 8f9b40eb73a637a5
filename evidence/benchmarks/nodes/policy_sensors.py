"""Joint states and IMU of a robot that stands, as its driver publishes them."""

from __future__ import annotations

import math
import time
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.nodes.base.messages import EVENTS, LATCHED, STREAM_OUT, stamp_of
from humanoid_control.nodes.base.tick_node import set_priority
from humanoid_control.robots import Robot

NODE, RUNS = "policy", "RUN"
FOUND = 60.0  # [s] in which the policy must run
PRIORITY = 50
SWAY, SWAY_TIME = 0.01, 2.0  # [rad], [s] of a joint about its posture


class PolicySensors:
    """Publishes joint states and IMU at a rate, and hears the policy; a context manager.

    Attributes:
        sent: time before each pair is written [ns]. state: of the policy.
    """

    def __init__(self, robot: Robot, posture: np.ndarray, rate: float) -> None:
        """Create the sensors.

        Args:
            posture: (n,) [rad]. rate: [Hz].
        """
        self._robot, self._posture, self.rate = robot, posture, rate
        self.sent, self.state, self.scheduling = array("q"), "", ""
        self._values: dict[str, str] = {}

    def __enter__(self) -> PolicySensors:
        rclpy.init()
        self._node, self._executor = rclpy.create_node("robot"), SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._joints = JointState(name=list(self._robot.joint_names), effort=[0.0] * self._robot.n)
        self._imu = Imu()
        self._imu.header.frame_id = self._robot.root_link
        self._imu.orientation.w, self._imu.linear_acceleration.z = 1.0, 9.81
        self._publishers: list[Any] = [
            self._node.create_publisher(kind, topic, STREAM_OUT)
            for kind, topic in ((JointState, "joint_states"), (Imu, "imu"))
        ]
        self._node.create_subscription(String, f"{NODE}/state", self._on_state, LATCHED)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS)
        self.scheduling = set_priority(PRIORITY)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    def _on_state(self, message: String) -> None:
        self.state = message.data

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(NODE):
                self._values = {v.key: v.value for v in status.values}

    def told(self) -> dict[str, str]:
        """Newest values of the node's diagnostics."""
        return dict(self._values)

    def start(self) -> None:
        """Publish until the policy runs and has reported.

        Raises:
            EnvironmentProblem: it does not.
        """
        end = time.monotonic() + FOUND
        while self.state != RUNS or not self._values:
            if time.monotonic() > end:
                raise EnvironmentProblem(f"the policy does not run: {self.state or 'it was not heard'}")
            self.play(0.5)

    def play(self, seconds: float, show: Callable[[float], None] = lambda _: None) -> None:
        """Publish for a duration; `show` gets the elapsed time [s]."""
        due = begin = time.monotonic()
        for _ in range(round(seconds * self.rate)):
            phase = 2 * math.pi * (due % SWAY_TIME) / SWAY_TIME
            self._joints.position = (self._posture + SWAY * math.sin(phase)).tolist()
            self._joints.velocity = [SWAY * 2 * math.pi / SWAY_TIME * math.cos(phase)] * self._robot.n
            now = time.time_ns()
            stamp = stamp_of(now)
            for publisher, message in zip(self._publishers, (self._joints, self._imu), strict=True):
                message.header.stamp = stamp
                publisher.publish(message)
            self.sent.append(now)
            due += 1 / self.rate
            while (left := due - time.monotonic()) > 0:
                self._executor.spin_once(timeout_sec=left)
            show(time.monotonic() - begin)
