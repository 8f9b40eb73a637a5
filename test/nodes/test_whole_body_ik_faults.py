"""The inverse kinematics node and a robot that does not do as it is told, is silent, or is where it cannot be."""

import itertools
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger

from humanoid_control.nodes.base.messages import LATCHED
from test.nodes.following_robot import FollowingRobot
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NODE = "whole_body_ik"


@pytest.fixture
def robot(graph, request):
    """A robot that moves as it is commanded, by a node that has run for a while."""
    graph.start(NODE, "robot:=hrp2", *getattr(request, "param", ()))
    robot = FollowingRobot(graph)
    graph.until(lambda: len(robot.rows) > 100, "commands", meanwhile=robot.speak)
    return robot


def moving(robot, last=0.2):
    """Whether commands of the last moments move."""
    rows = [q for at, _, _, q in robot.rows if time.monotonic() - at < last]
    return len(rows) > 1 and np.ptp(rows, axis=0).max() > 1e-6


def held(robot):
    """Whether commands come and do not move."""
    return bool(robot.senders(0.2)) and not moving(robot)


def stops(graph, robot, words, seconds=1.5):
    """It says so, and comes to rest."""
    begin = time.monotonic()
    said = graph.until_said(NODE, words, robot.speak)
    assert said["level"] == 2
    graph.until(lambda: time.monotonic() - begin > seconds and held(robot), "rest, and be held", meanwhile=robot.speak)
    assert robot.steps().max() <= 1.0


def goes_on(graph, robot):
    """After `~/resync` it begins where the robot is."""
    held, count, at = robot.rows[-1][3], len(robot.rows), robot.joints.copy()
    robot.stays = True
    assert graph.call(Trigger, f"{NODE}/resync").success
    graph.until(lambda: len(robot.rows) > count + 60 and moving(robot), "to go on", meanwhile=robot.speak)
    graph.until_said(NODE, "ok", robot.speak)
    first = next(q for _, _, _, q in robot.rows[count:] if np.abs(q - held).max() > 1e-6)
    assert np.abs(first - at).max() < 0.05


def test_a_joint_that_does_not_follow_stops_the_robot_until_it_is_told_to_go_on(graph, robot):
    k = int(np.argmax(np.ptp([q for _, _, _, q in robot.rows[50:]], axis=0)))
    stuck = robot.joints[k]

    def hold(q):
        q[k] = stuck + 1e-5 * np.random.default_rng().normal()  # its encoder lives
        return q

    robot.fault = hold
    robot.radius = 0.25
    stops(graph, robot, f"{robot.robot.joint_names[k]}: following error")
    said = graph.diagnostics(NODE, robot.speak)
    assert "(limit 0.150): stopped; ~/resync" in said["message"]
    error = abs(robot.joints[k] - stuck)
    assert 0.15 < error < 0.15 + 3.0 * (0.05 + 0.05 + 0.2), "within the debounce, the lag, and braking at 3 rad/s"
    robot.fault = lambda q: q
    robot.joints = np.where(np.arange(len(robot.joints)) == k, stuck, robot.joints)
    robot.radius = 0.12
    goes_on(graph, robot)


# A silent robot, such as a test that waits for a processor, is awaited: then a state that is no number says nothing.
@pytest.mark.parametrize("robot", [("robot_timeout:=10.0",)], ids=["patient"], indirect=True)
@pytest.mark.parametrize("words", [nightly("jumped"), "not a number"])
def test_states_that_no_robot_gives_stop_it(graph, robot, words):
    def wrong(q):
        q[6] = q[6] + 3.0 if words == "jumped" else np.nan
        return q

    message = f"{robot.robot.joint_names[6]}: measurement"

    def told():
        """Say whether it was told. A node that was paused itself starts over, and NaN is no state to start from."""
        said = graph.diagnostics(NODE, robot.speak)["message"]
        if "no joint states yet" in said:
            robot.fault = lambda q: q
            graph.until_said(NODE, "ok", robot.speak)
            robot.fault = wrong
        return message in said

    robot.fault = wrong
    graph.until(told, message)
    stops(graph, robot, message, 0.5)
    assert words in graph.diagnostics(NODE, robot.speak)["message"]
    robot.fault = lambda q: q
    goes_on(graph, robot)


def test_a_silent_robot_is_stopped_and_goes_on_by_itself_from_where_it_is(graph, robot):
    """Also beside a node of another name that waits for the commands."""
    waits = graph.node.create_publisher(JointState, "joint_commands", 5)
    graph.until_said(NODE, "joint_commands has another publisher", robot.speak)
    robot.silent = True
    begin, stamp = time.monotonic(), 1e-9 * graph.node.get_clock().now().nanoseconds
    graph.until(lambda: time.monotonic() - begin > 0.8 and held(robot), "rest", meanwhile=robot.speak)
    moved = [np.abs(b[3] - a[3]).max() > 1e-6 for a, b in itertools.pairwise(robot.rows) if b[1] > stamp]
    assert sum(moved) < 60, "at 100 Hz: 0.1 s without news, 0.5 s at the most, and braking"
    assert graph.until_said(NODE, "no estimated_joint_states for", robot.speak)["level"] == 2
    count = len(robot.rows)
    elbow = robot.robot.joint_index("l_elbow_flexion")
    moved = robot.joints.copy()
    moved[elbow] += 0.3  # somebody moved it meanwhile
    robot.joints, robot.stays, robot.silent = moved, True, False
    graph.until(
        lambda: any(row[3][elbow] > moved[elbow] - 0.05 for row in robot.rows[count:]), "it", meanwhile=robot.speak
    )
    graph.until(lambda: moving(robot), "to move on", meanwhile=robot.speak)
    graph.node.destroy_publisher(waits)
    graph.until_said(NODE, "ok", robot.speak)


@pytest.mark.nightly
def test_while_simulated_time_stands_still_so_does_the_robot(graph, robot):
    paused = graph.publisher(Bool, "simulator/paused", LATCHED)
    paused.publish(Bool(data=True))
    frozen = robot.joints.copy()
    robot.fault = lambda q: frozen
    graph.until(lambda: not moving(robot), "rest", meanwhile=robot.speak)
    begin = time.monotonic()
    graph.until(lambda: time.monotonic() - begin > 0.6, "a pause", meanwhile=robot.speak)
    assert graph.diagnostics(NODE, robot.speak)["message"] == "ok"
    robot.fault = lambda q: q
    robot.joints = frozen
    paused.publish(Bool(data=False))
    graph.until(lambda: moving(robot), "to go on", meanwhile=robot.speak)
    graph.until_said(NODE, "ok", robot.speak)


def test_a_robot_outside_its_range_begins_where_it_is_and_moves_in_slowly(graph):
    robot = FollowingRobot(graph)
    r, k = robot.robot, robot.robot.joint_index("l_elbow_flexion")
    robot.joints[k] = r.lower[k] - 0.303
    at = robot.joints.copy()
    graph.start(NODE, "robot:=hrp2")
    graph.until(lambda: robot.rows, "a command", meanwhile=robot.speak)
    assert np.abs(robot.rows[0][3] - at).max() < 0.01
    graph.until(lambda: robot.joints[k] >= r.lower[k] - 1e-6, "it to be inside", meanwhile=robot.speak)
    speed = robot.steps()[:, k] * r.velocity[k]
    assert speed.max() < 1.1, "1 rad/s of 3"


@pytest.mark.nightly
def test_a_robot_whose_driver_does_not_follow_yet_is_not_judged_by_its_commands(graph, robot):
    """Without power it rests while commands go on; once the driver follows, the same is a fault."""
    power = graph.publisher(String, "hardware_state", LATCHED)
    power.publish(String(data="MONITOR"))
    rest = robot.joints.copy()
    robot.fault = lambda q: rest
    begin = time.monotonic()

    def goes_on_until(seconds):
        graph.until(lambda: time.monotonic() - begin > seconds, f"{seconds} s", meanwhile=robot.speak)
        assert moving(robot)
        assert "stopped" not in graph.diagnostics(NODE, robot.speak)["message"]

    goes_on_until(1.5)
    blended = time.monotonic()

    def blend(q):
        return rest + min(time.monotonic() - blended, 1.0) * (q - rest)

    power.publish(String(data="BLEND: now"))
    robot.fault = blend
    goes_on_until(3.0)
    power.publish(String(data="RUN"))
    goes_on_until(4.5)
    there = robot.joints.copy()
    robot.fault = lambda q: there
    stops(graph, robot, "stopped; ~/resync")


@pytest.mark.nightly
def test_a_driver_that_ended_excuses_nothing(graph, robot):
    power = graph.publisher(String, "hardware_state", LATCHED)
    power.publish(String(data="MONITOR"))
    graph.until(lambda: power.get_subscription_count() > 0, "the node to hear", meanwhile=robot.speak)
    graph.until_said(NODE, "ok", robot.speak)
    graph.node.destroy_publisher(power)
    rest = robot.joints.copy()
    robot.fault = lambda q: rest
    stops(graph, robot, "stopped; ~/resync")
