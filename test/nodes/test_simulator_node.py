"""The simulator node: what it publishes, how it answers commands, good and bad."""

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from humanoid_control.nodes.qos import LATCHED
from humanoid_control.robots import load_robot

pytestmark = pytest.mark.ros


def command(robot, position, velocity=None, names=None):
    m = JointState(name=list(names or robot.joint_names), position=list(map(float, position)))
    m.velocity = [0.0] * len(m.name) if velocity is None else list(map(float, velocity))
    return m


def test_publishes_the_robot_and_obeys_commands(graph):
    robot = load_robot("wabian2", "fixed")
    graph.start("simulator", "robot:=wabian2")
    states, imu = graph.listen(JointState, "joint_states"), graph.listen(Imu, "imu")
    odometry, clock = graph.listen(Odometry, "odometry"), graph.listen(Clock, "/clock")
    description = graph.listen(String, "robot_description", LATCHED)
    graph.until(lambda: states and imu and odometry and clock and description, "all topics")
    assert 'name="wabian2"' in description[0].data
    assert set(states[-1].name) == set(robot.joint_names)
    assert len(states[-1].position) == len(states[-1].velocity) == len(states[-1].effort) == robot.n
    a = imu[-1].linear_acceleration
    assert (a.x, a.y, a.z) == pytest.approx((0, 0, 9.81), abs=0.2)
    assert odometry[-1].pose.pose.position.z == pytest.approx(robot.X_world_root.translation[2], abs=1e-3)

    publisher = graph.publisher(JointState, "joint_commands")
    k = robot.joint_index("l_elbow_flexion")
    goal = robot.postures["neutral"].copy()
    goal[k] = 1.2
    order = list(states[-1].name)

    def elbow():
        publisher.publish(command(robot, goal))
        return states and abs(states[-1].position[order.index("l_elbow_flexion")] - 1.2) < 0.03

    graph.until(elbow, "the elbow to bend")
    response = graph.call(Trigger, "simulator/reset")
    assert response.success
    graph.until(
        lambda: abs(states[-1].position[order.index("l_elbow_flexion")] - robot.postures["neutral"][k]) < 0.05, "reset"
    )


def test_rate_is_kept_and_said(graph):
    graph.start("simulator", "robot:=hrp2", "rate:=200.0")
    graph.listen(JointState, "joint_states")
    graph.spin(3.0)
    values = graph.diagnostics("simulator")
    assert float(values["rate_hz"]) == pytest.approx(200, rel=0.1)
    assert values["state"] == "active"
    assert float(values["execution_p50_ms"]) < 5


def test_wrong_commands_are_held_and_reported(graph):
    robot = load_robot("hrp2", "fixed")
    graph.start("simulator", "robot:=hrp2", "rate:=200.0")
    states = graph.listen(JointState, "joint_states")
    publisher = graph.publisher(JointState, "joint_commands")
    bad = robot.postures["neutral"].copy()
    bad[3] = np.nan
    short = JointState(name=list(robot.joint_names), position=[0.1])
    unknown = command(robot, np.zeros(1), names=["not_a_joint"])
    for message, words in (
        (command(robot, bad), "not a number"),
        (short, "without a position"),
        (unknown, "not_a_joint"),
    ):
        graph.until_said("simulator", words, lambda m=message: publisher.publish(m))
        assert all(np.isfinite(s.position).all() for s in states)
    graph.until_said("simulator", "ok", lambda: publisher.publish(command(robot, robot.postures["neutral"])))
    far = command(robot, np.full(robot.n, 50.0))
    for _ in range(50):
        publisher.publish(far)
        graph.spin(0.02)
    order = [list(states[-1].name).index(n) for n in robot.joint_names]
    assert (np.array(states[-1].position)[order] <= robot.upper + 0.05).all(), (
        "a command beyond the range goes to its end"
    )


def test_stands_on_the_ground_with_a_floating_base(graph):
    graph.start("simulator", "robot:=suralp", "base:=floating", "rate:=100.0", "step:=0.002")
    odometry = graph.listen(Odometry, "odometry")
    graph.until(lambda: len(odometry) > 40, "odometry")
    heights = [o.pose.pose.position.z for o in odometry]
    assert min(heights) > 0.6 and max(heights) - min(heights) < 0.03
