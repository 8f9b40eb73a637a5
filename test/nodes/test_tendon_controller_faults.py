"""The tendon controller where its surroundings fail: killed, a robot put elsewhere, angles that cease (TC-08)."""

import signal

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

pytestmark = [pytest.mark.ros, pytest.mark.patient]
ELBOW = "l_elbow_pitch"


def angle(states):
    return states[-1].position[list(states[-1].name).index(ELBOW)]


class Loop:
    """Simulator on winches, and a controller whose angles pass through the test, until `cut`."""

    def __init__(self, graph):
        self.graph, self.cut = graph, False
        graph.start("simulator", "robot:=kengoro_upper", "drives:=winches", "tendon_every:=1", "command_timeout:=0.3")
        self.joints, self.commands = (
            graph.listen(JointState, "joint_states"),
            graph.listen(JointState, "tendon_commands"),
        )
        self.angles = graph.node.create_publisher(JointState, "angles", 5)
        graph.node.create_subscription(JointState, "joint_states", self._relay, 5)
        given = ("robot:=kengoro_upper", "rate:=100.0", "angles:=angles", "patience:=0.2")
        self.controller = graph.start("tendon_controller", *given)
        graph.until(lambda: self.joints and self.commands, "commands of the winches")
        self.goals = graph.publisher(JointState, "joint_commands")

    def _relay(self, m):
        if not self.cut:
            self.angles.publish(m)

    def move(self, goal):
        ask = lambda: self.goals.publish(JointState(name=[ELBOW], position=[goal]))  # noqa: E731
        self.graph.until(lambda: self._rests(goal), f"the elbow at rest at {goal}", meanwhile=ask)

    def _rests(self, goal):
        return abs(angle(self.joints) - goal) < 0.03 and abs(angle(self.joints) - angle(self.joints[-20:-19])) < 2e-3


def test_winches_hold_where_the_controller_is_killed(graph):
    loop = Loop(graph)
    loop.move(-1.0)
    graph.stop(loop.controller, signal.SIGKILL)
    graph.until_said("simulator", "no tendon_commands: the winches hold their wires")
    before = angle(loop.joints)
    n = len(loop.joints)
    graph.until(lambda: len(loop.joints) > n + 100, "a while")
    assert abs(angle(loop.joints) - before) < 0.02


@pytest.mark.nightly
def test_a_robot_put_elsewhere_is_controlled_from_where_it_is(graph):
    loop = Loop(graph)
    start = angle(loop.joints)
    loop.move(-1.2)
    assert graph.call(Trigger, "simulator/reset", Trigger.Request()).success
    graph.until(lambda: abs(angle(loop.joints) - start) < 0.02, "the start")
    graph.until_said("tendon_controller", "wire lengths jumped")
    assert abs(angle(loop.joints) - start) < 0.1, "it does not go back to what was commanded before"
    loop.move(-0.9)


def test_the_robot_stays_where_angles_cease_and_goes_on_when_they_are_back(graph):
    loop = Loop(graph)
    loop.move(-1.0)
    loop.cut = True
    before = angle(loop.joints)
    graph.until_said("tendon_controller", "no plausible angles")
    # Until then, five times the patience (1 s), known torques act without feedback, and the arm drifts a little.
    held, n = angle(loop.joints), len(loop.joints)
    assert abs(held - before) < 0.2
    graph.until(lambda: len(loop.joints) > n + 100, "a while without angles")
    assert abs(angle(loop.joints) - held) < 0.05
    recent = loop.commands[-5:]
    assert all(np.isfinite([*m.velocity, *m.effort]).all() for m in recent)
    loop.cut = False
    loop.move(-0.7)
