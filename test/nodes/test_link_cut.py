"""A simulated robot and its controller on two sides of a link that is cut: nothing steps when it comes back."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.messages import STREAM_IN, STREAM_OUT
from humanoid_control.robots import load_robot

# Alone, not next to other tests: a robot that stalls twice within five seconds is stopped by its controller, rightly.
pytestmark = pytest.mark.ros
IK, SIMULATOR = "whole_body_ik", "simulator"


class Link:
    """Carries commands to the robot and its states back, until it is cut.

    Attributes:
        commands, states: when they were carried or came [s], and messages, serialized.
    """

    def __init__(self, graph):
        self.graph, self.cut, self.commands, self.states = graph, False, [], []
        node = graph.node
        self.ways = [node.create_publisher(JointState, t, STREAM_OUT) for t in ("far/joint_states", "joint_commands")]
        node.create_subscription(JointState, "joint_states", self._state, STREAM_IN, raw=True)
        node.create_subscription(JointState, "far/joint_commands", self._command, STREAM_IN, raw=True)

    def _state(self, data):
        self.states.append((time.monotonic(), data))
        if not self.cut:
            self.ways[0].publish(data)

    def _command(self, data):
        if not self.cut:
            self.commands.append((time.monotonic(), data))
            self.ways[1].publish(data)

    def moves(self):
        """Whether the commands of the last moments move."""
        recent = [data for at, data in self.commands if time.monotonic() - at < 0.3]
        if len(recent) < 4:
            return False
        first, last = (deserialize_message(data, JointState).position for data in (recent[0], recent[-1]))
        return np.abs(np.subtract(first, last)).max() > 0.01


@pytest.mark.nightly
def test_after_a_cut_joints_keep_their_speed_and_the_robot_moves_on_by_itself(graph):
    robot = load_robot("hrp2", "fixed")
    link = Link(graph)
    graph.start(SIMULATOR, "robot:=hrp2", "rate:=100.0")
    far = ("joint_states", "joint_commands", "estimated_joint_states", "targets")
    wires = tuple(a for topic in far for a in ("-r", f"{topic}:=far/{topic}"))
    graph.start("state_estimator", "robot:=hrp2", "rate:=100.0", args=wires)
    graph.start(IK, "robot:=hrp2", "rate:=100.0", args=wires)
    graph.start("trajectory_streamer", "robot:=hrp2", "lead_in:=1.0", args=wires)
    graph.until(lambda: len(link.commands) > 100, "commands")

    for cut in (0.2, 3.0):
        graph.until(link.moves, "the dance")
        link.cut, begin, count = True, time.monotonic(), len(link.states)
        if cut > 2.0:
            graph.until_said(SIMULATOR, "no commands: last position held")
            graph.until_said(IK, "no estimated_joint_states for")
        graph.until(lambda b=begin, c=cut: time.monotonic() - b > c, "the cut")
        link.cut, back = False, time.monotonic()
        link.commands.clear()
        graph.until(link.moves, "to move again")
        assert time.monotonic() - back < 5.0
        graph.until(lambda b=back: time.monotonic() - b > 2.0, "what follows")
        v = np.array([deserialize_message(data, JointState).velocity for _, data in link.states[count:]])
        fastest = (np.abs(v) / robot.velocity).max()
        assert fastest <= 1.2, f"{fastest:.2f} of the limit after {cut} s"
        graph.until(lambda: "stopped" not in graph.diagnostics(IK)["message"], "no complaint")
