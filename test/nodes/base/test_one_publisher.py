"""One publisher at a time is followed on every stream that moves something; the diagnostics name both."""

import ast
import math
import time
from pathlib import Path

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import humanoid_control.nodes
from humanoid_control.nodes.base.command_owner import listen_to_one
from humanoid_control.nodes.base.tick_node import Level, TickNode
from test.nodes.test_robot_driver import Desk

pytestmark = [pytest.mark.ros, pytest.mark.patient]
MOVING = {"joint_commands", "joint_trajectory", "cmd_vel", "targets", "joy", "TOPIC"}  # TOPIC: of live markers
MOVING |= {"TF", "f'{POSE_TOPIC}{name}'"}  # targets as frames of tf, and one by one
MOVING |= {"footsteps", "goal_pose", "clip/seek", "~/set_state", "~/set_base", "~/push"}
SENSORS = {"tendon_estimation.py", "state_estimator.py", "machine_checks.py"}  # whose TOPIC moves nothing
WATCHERS = {"viewer.py"}  # that move nothing


class Follower(TickNode):
    node_name = "follower"

    def configure(self):
        self.taken = []
        listen_to_one(self, Twist, "cmd_vel", lambda m: self.taken.append(m.linear.x), 0.3)
        return 100.0


def test_the_second_publisher_is_named_and_followed_once_the_first_is_silent(graph):
    node, second = Follower(), rclpy.create_node("second")
    graph.executor.add_node(node)
    try:
        node.trigger_configure()
        both = [graph.publisher(Twist, "cmd_vel"), second.create_publisher(Twist, "cmd_vel", 5)]
        for p in both:
            graph.until(lambda p=p: p.get_subscription_count() > 0, "the node")

        def talk(*who):
            for k in who:
                m = Twist()
                m.linear.x = float(k)
                both[k].publish(m)

        graph.until(lambda: node.taken, "the first", meanwhile=lambda: talk(0))
        begin = time.monotonic()
        graph.until(lambda: time.monotonic() - begin > 0.5, "both", meanwhile=lambda: talk(0, 1))
        assert set(node.taken) == {0.0}
        node.run_tick(0)
        level, text = node.health.open["owner cmd_vel"]
        assert level == Level.ERROR and "/test is followed, /second is ignored" in text
        graph.until(lambda: node.taken[-1] == 1.0, "the second", meanwhile=lambda: talk(1))
    finally:
        graph.executor.remove_node(node)
        node.destroy_node()
        second.destroy_node()


def test_the_driver_follows_one_publisher_of_commands_and_one_of_trajectories(graph):
    desk, second = Desk(graph), rclpy.create_node("second")
    start = desk.q["l_elbow_flexion"]
    try:
        commands = second.create_publisher(JointState, "joint_commands", 5)
        plans = [graph.publisher(JointTrajectory, "joint_trajectory")]
        plans.append(second.create_publisher(JointTrajectory, "joint_trajectory", 5))
        for p in (commands, *plans):
            graph.until(lambda p=p: p.get_subscription_count() > 0, "the driver")
        stay = desk.command(l_elbow_flexion=start)

        def away():
            commands.publish(JointState(name=["l_elbow_flexion"], position=[start + 0.4]))

        def plan(k, angle, seconds):
            m = JointTrajectory(joint_names=["l_elbow_flexion"])
            m.points.append(JointTrajectoryPoint(positions=[angle]))
            m.points[0].time_from_start.sec = seconds
            plans[k].publish(m)

        desk.run(l_elbow_flexion=start)
        n = len(desk.states)
        said = graph.until_said("robot_driver", "joint_commands from several", lambda: (stay(), away()))
        assert said["level"] == 2 and "/test is followed, /second is ignored" in said["message"]
        graph.until_said(
            "robot_driver", "trajectory rejected: joint_commands of /test", lambda: (stay(), plan(1, 1.0, 1))
        )
        row = desk.robot.index["l_elbow_flexion"]
        assert max(abs(m.position[row] - start) for m in desk.states[n:]) < 0.01

        desk.until("HOLD")
        sent = [-math.inf]

        def plan_again():
            """A trajectory that comes while commands are still followed is rejected."""
            if time.monotonic() - sent[0] > 5.0:  # longer than the way to RUN
                sent[0] = time.monotonic()
                plan(1, start, 60)

        desk.until("RUN", plan_again)
        n = len(desk.states)
        said = graph.until_said("robot_driver", "joint_trajectory from several", lambda: plan(0, start + 0.4, 1))
        assert "/second is followed, /test is ignored" in said["message"]
        assert max(abs(m.position[row] - start) for m in desk.states[n:]) < 0.01
    finally:
        second.destroy_node()


def test_the_simulator_takes_states_of_one_publisher_at_a_time(graph):
    graph.start("simulator", "robot:=wabian2")
    states, second = graph.listen(JointState, "joint_states"), rclpy.create_node("second")
    try:
        first = graph.publisher(JointState, "simulator/set_state")
        other = second.create_publisher(JointState, "simulator/set_state", 5)
        graph.until(lambda: other.get_subscription_count() > 0, "the simulator")
        graph.until(lambda: states, "joint states")
        joint = states[-1].name[0]
        start = states[-1].position[0]

        def ask(publisher, angle):
            publisher.publish(JointState(name=[joint], position=[angle]))

        def both():
            ask(first, start + 0.1)
            ask(other, start + 0.3)

        asked = start + 0.1
        graph.until(
            lambda: abs(states[-1].position[0] - asked) < 0.02, "the first", meanwhile=lambda: ask(first, asked)
        )
        n = len(states)
        said = graph.until_said("simulator", "~/set_state from several publishers", both)
        assert said["level"] == 2 and "/test is followed, /second is ignored" in said["message"]
        assert max(abs(m.position[0] - start - 0.1) for m in states[n:]) < 0.05
    finally:
        second.destroy_node()


def subscriptions():
    """(file, function that subscribes, topic as written, keywords) of all nodes."""
    for path in Path(humanoid_control.nodes.__file__).parent.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and len(call.args) > 1:
                name = getattr(call.func, "attr", getattr(call.func, "id", ""))
                if name in ("listen", "create_subscription", "listen_to_one"):
                    words = [getattr(a, "value", getattr(a, "id", ast.unparse(a))) for a in call.args]
                    yield path.name, name, words, {k.arg for k in call.keywords}


def test_every_stream_that_moves_something_asks_who_publishes_it():
    found = set()
    for path, name, words, keywords in subscriptions():
        topics = MOVING & {w for w in words if isinstance(w, str)}
        if not topics or path in SENSORS | WATCHERS:
            continue
        found |= topics
        assert name == "listen_to_one" or "takes_info" in keywords, f"{path}: {words} takes any publisher"
    assert found == MOVING
