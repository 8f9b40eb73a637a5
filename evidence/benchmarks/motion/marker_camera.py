"""Camera and force plates of a recording as ROS topics, in real time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import SingleThreadedExecutor
from sensor_msgs.msg import JointState
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import EnvironmentProblem
from humanoid_control.human.forces.wrenches import MeasuredWrench
from humanoid_control.nodes.base.messages import EVENTS, PLAYED, STREAM_OUT
from humanoid_control.nodes.base.serialized_markers import SerializedMarkers

FOUND = 30.0  # [s] in which a node must be found
NODE = "human_motion"


class MarkerCamera:
    """Publishes frames of markers and forces of plates, and counts the joint states; a context manager.

    Attributes:
        sent, heard: frames, and joint states of the person, since the beginning.
    """

    def __init__(self, labels: Sequence[str], plates: int) -> None:
        """Create the marker camera.

        Args:
            labels: of the markers. plates: number of them.
        """
        self._labels, self._plates = labels, plates
        self._values: dict[str, str] = {}
        self.sent = self.heard = 0

    def __enter__(self) -> MarkerCamera:
        rclpy.init()
        self._node, self._executor = rclpy.create_node("camera"), SingleThreadedExecutor()
        self._executor.add_node(self._node)
        markers = []
        for k, label in enumerate(self._labels):
            m = Marker(ns="camera", text=label, id=k, type=Marker.SPHERE)
            m.pose.orientation.w = 1.0
            markers.append(m)
        self._message = SerializedMarkers(MarkerArray(markers=markers))
        self._markers = self._node.create_publisher(MarkerArray, "markers", STREAM_OUT)
        topics = [f"plates/plate{k + 1}" for k in range(self._plates)]
        self._forces = [self._node.create_publisher(WrenchStamped, topic, STREAM_OUT) for topic in topics]
        self._node.create_subscription(JointState, "human/joint_states", self._on_states, PLAYED, raw=True)
        self._node.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, EVENTS)
        end = time.monotonic() + FOUND
        while not self._markers.get_subscription_count():
            if time.monotonic() > end:
                raise EnvironmentProblem(
                    "the markers have no subscriber: can two processes communicate on this network?"
                )
            self._executor.spin_once(timeout_sec=0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self._executor.shutdown()
        self._node.destroy_node()
        rclpy.try_shutdown()

    def _on_states(self, _: bytes) -> None:
        self.heard += 1

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        for status in message.status:
            if status.name.endswith(NODE):
                self._values = {v.key: v.value for v in status.values}

    def told(self) -> dict[str, Any]:
        """Newest values of the node's diagnostics, once there are any."""
        end = time.monotonic() + FOUND
        while not self._values and time.monotonic() < end:
            self._executor.spin_once(timeout_sec=0.1)
        return dict(self._values)

    def wait(self, seconds: float) -> None:
        """Take messages that are on their way."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def play(
        self,
        positions: np.ndarray,
        forces: Sequence[MeasuredWrench],
        rate: float,
        seconds: float,
        show: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Play a recording to and fro.

        Args:
            positions: (T, M, 3) in the world [m]. forces: of the plates, T samples each, in the world.
            rate: of the frames [Hz]. seconds: how long. show: told how long it has been.
        """
        T = len(positions)
        due = begin = time.monotonic()
        for k in range(round(seconds * rate)):
            i = k % (2 * T)
            i = i if i < T else 2 * T - 1 - i
            stamp = self._node.get_clock().now().to_msg()
            for publisher, wrench in zip(self._forces, forces, strict=True):
                m = WrenchStamped()
                m.header.stamp, m.header.frame_id = stamp, "world"
                f, t = m.wrench.force, m.wrench.torque
                f.x, f.y, f.z = np.nan_to_num(wrench.force[i]).tolist()
                t.x, t.y, t.z = np.nan_to_num(wrench.moment[i]).tolist()
                publisher.publish(m)
            self._message.set_stamp(stamp)
            self._message.set_positions(positions[i])
            self._markers.publish(self._message.bytes())
            self.sent += 1
            due += 1 / rate
            while (left := due - time.monotonic()) > 0:
                self._executor.spin_once(timeout_sec=left)
            show(time.monotonic() - begin)
