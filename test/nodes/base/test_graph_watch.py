"""What DDS leaves out in silence is named: publishers of another type, a clock that stands still, a twin."""

import time

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist, TwistStamped
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.messages import stamp_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]


class Listener(TickNode):
    node_name = "listener"

    def configure(self):
        self.listen(Twist, "cmd_vel", lambda m: None)
        return 100.0


@pytest.fixture
def listener(graph):
    nodes = []

    def make():
        node = Listener()
        node.trigger_configure()
        nodes.append(node)
        return node

    yield make
    for node in nodes:
        node.destroy_node()


def looked(node):
    """Open problems of a node after one more look."""
    node.graph._next = 0.0
    node.graph.check(time.monotonic())
    return node.health.open


def test_a_publisher_of_another_type_is_named_with_its_node(graph, listener):
    node = listener()
    right = graph.publisher(Twist, "cmd_vel")
    graph.until(lambda: right.get_subscription_count() > 0, "the node")
    assert "types" not in looked(node)
    context = rclpy.Context()  # a participant of its own: one has one type a topic
    rclpy.init(context=context)
    teleop = rclpy.create_node("teleop", context=context)
    teleop.create_publisher(TwistStamped, "cmd_vel", 5)
    graph.until(lambda: "teleop" in looked(node).get("types", ("", ""))[1], "the type, and the name of its node")
    level, text = node.health.open["types"]
    assert level == Level.WARN
    assert "/cmd_vel has publishers of another type, teleop (geometry_msgs/msg/TwistStamped)" in text
    assert "this node reads only geometry_msgs/msg/Twist" in text
    teleop.destroy_node()
    context.try_shutdown()
    graph.until(lambda: "types" not in looked(node), "it to be gone")


def test_a_second_node_of_the_same_name_is_named_at_once_and_is_alone_again_later(graph, listener):
    first, second = listener(), listener()
    assert "twin" not in looked(first)
    level, text = looked(second)["twin"]
    assert level == Level.ERROR and "another node /listener runs in this domain" in text
    first.graph.close()
    assert "twin" not in looked(second)


def test_simulated_time_that_nobody_publishes_is_named(graph, listener):
    node = listener()
    assert "no clock" not in looked(node)
    node.set_parameters([Parameter("use_sim_time", value=True)])
    assert "/clock has no publisher" in looked(node)["no clock"][1] and node.graph.frozen
    clock = graph.publisher(Clock, "/clock")
    graph.until(lambda: "no clock" not in looked(node), "the clock")
    graph.node.destroy_publisher(clock)


def test_a_clock_that_stands_still_is_named_with_its_source(graph, listener):
    node = listener()
    node.set_parameters([Parameter("use_sim_time", value=True)])
    clock, begin = graph.publisher(Clock, "/clock"), time.monotonic()
    last = [0.0]

    def seen():
        """Open problems; a look takes longer than a turn of the test."""
        if time.monotonic() - last[0] > 0.2:
            last[0] = time.monotonic()
            looked(node)
        return node.health.open

    graph.executor.add_node(node)
    ticking = lambda step: clock.publish(Clock(clock=stamp_of(10**9 + step * time.monotonic_ns())))  # noqa: E731
    try:
        graph.until(lambda: time.monotonic() - begin > 3.0, "a while", meanwhile=lambda: (ticking(1), seen()))
        assert not {"still clock", "no clock"} & set(looked(node)) and not node.graph.frozen
        graph.until(lambda: "still clock" in seen(), "the report", meanwhile=lambda: ticking(0))
        level, text = node.health.open["still clock"]
        assert level == Level.WARN and "/clock stands still for" in text and "test is paused, hangs" in text
        assert node.graph.frozen
        graph.until(lambda: "still clock" not in seen(), "it to go on", meanwhile=lambda: ticking(1))
        assert not node.graph.frozen
    finally:
        graph.executor.remove_node(node)
        graph.node.destroy_publisher(clock)


def test_the_second_of_two_robots_in_a_domain_is_refused_at_once(graph):
    """Their messages would mix: of two simulators each estimator takes the states of both."""
    graph.start("simulator", "robot:=hrp2", "base:=fixed")
    second = graph.start("simulator", "robot:=lola", "base:=fixed", wait=False, fresh=True)
    assert second.wait(60) == 2
    said = "simulator: another node /simulator runs in this domain: give one stack its own namespace or domain"
    assert graph.output(second).splitlines().count(said) == 1


@pytest.mark.nightly
def test_an_estimator_without_time_estimates_nothing(graph):
    robot = load_robot("hrp2", "fixed")
    graph.start("state_estimator", "robot:=hrp2", "use_sim_time:=true")
    heard = graph.listen(JointState, "estimated_joint_states")
    states = graph.publisher(JointState, "joint_states")

    def send():
        m = JointState(name=list(robot.joint_names), position=robot.postures["neutral"].tolist())
        m.header.stamp = stamp_of(time.time_ns())
        states.publish(m)

    said = graph.until_said("state_estimator", "/clock has no publisher", meanwhile=send)
    assert "clocks" not in said["message"]
    heard.clear()
    begin = time.monotonic()
    graph.until(lambda: time.monotonic() - begin > 0.5, "half a second", meanwhile=send)
    assert not heard
