"""A robot that follows joint_commands, and targets for it, over DDS; its faults are the test's."""

from __future__ import annotations

import itertools
import time

import numpy as np
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.command_owner import gid_of
from humanoid_control.nodes.base.messages import seconds, target_markers
from humanoid_control.nodes.base.tick_node import with_info
from humanoid_control.robots import load_robot

POINTS = ("l_wrist", "r_wrist")
NEAR = 0.12  # [rad] less than any fault; as far as commands go while a busy machine keeps the first ones from the test


class FollowingRobot:
    """Robot and targets of a test: it says that it is where commands put it, and its hands should go round in circles.

    Attributes:
        rows: of each command: when it came [s], its stamp [s], its publisher, positions [rad].
        joints: where it is (n,) [rad]. fault: changes what it says of them, and returns it.
        silent: it says nothing. stays: it moves only after a command that is near it.
    """

    def __init__(self, graph, name="hrp2"):
        self.graph, self.robot, self.rows = graph, load_robot(name, "fixed"), []
        self.joints, self.fault = self.robot.postures["neutral"].copy(), lambda q: q
        self.silent = self.stays = False
        self.commands = graph.node.create_subscription(JointState, "joint_commands", with_info(self._hear), 50)
        self.states = graph.node.create_publisher(JointState, "estimated_joint_states", 5)
        self.targets = graph.node.create_publisher(MarkerArray, "targets", 5)
        self.home = self.robot.point_positions(self.robot.q(), POINTS)
        self.radius, self.began, self.sent = 0.12, time.monotonic(), 0.0

    def close(self):
        """Leave the graph: a robot that is of no use any more would still take the time of the test's node."""
        self.graph.node.destroy_subscription(self.commands)
        for publisher in (self.states, self.targets):
            self.graph.node.destroy_publisher(publisher)

    def _hear(self, m, info):
        q = np.array(m.position)
        self.stays = self.stays and np.abs(q - self.joints).max() > NEAR
        if not self.stays:
            self.joints = q
        self.rows.append((time.monotonic(), seconds(m.header.stamp), gid_of(info), q))

    def speak(self):
        """Send states and targets, if it is time. Circles, because nodes that start at other times are elsewhere."""
        now = time.monotonic()
        if now - self.sent < 0.012:
            return
        self.sent = now
        stamp = self.graph.node.get_clock().now().to_msg()
        m = JointState(name=list(self.robot.joint_names), position=self.fault(self.joints.copy()).tolist())
        m.header.stamp = stamp
        if not self.silent:
            self.states.publish(m)
        a = 3.0 * (now - self.began)
        markers = target_markers(POINTS)
        circle = self.home + self.radius * np.array([np.sin(a), 0.0, 1 - np.cos(a)])
        for marker, p in zip(markers.markers, circle, strict=True):
            marker.header.stamp = stamp
            marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = p.tolist()
        self.targets.publish(markers)

    def senders(self, last=0.5):
        """Who commanded within the last seconds."""
        return {gid for at, _, gid, _ in self.rows if time.monotonic() - at < last}

    def steps(self):
        """Steps between consecutive commands, as multiples of what the joints' speed allows in the time between."""
        q = np.array([row[3] for row in self.rows])
        t = np.array([row[1] for row in self.rows])
        return np.abs(np.diff(q, axis=0)) / (self.robot.velocity * np.maximum(np.diff(t), 0.004)[:, None] + 1e-6)

    def contested(self):
        """Time for which two commanded at once [s], by their stamps."""
        stamps = {gid: [row[1] for row in self.rows if row[2] == gid] for gid in {row[2] for row in self.rows}}
        pairs = itertools.combinations(stamps.values(), 2)
        return max((min(max(a), max(b)) - max(min(a), min(b)) for a, b in pairs), default=0.0)
