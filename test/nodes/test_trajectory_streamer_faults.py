"""The streamer that solves for joints, and a robot that is outside its range, does not follow, or is silent."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from test.nodes.following_robot import FollowingRobot

pytestmark = [pytest.mark.ros, pytest.mark.patient]
NODE = "trajectory_streamer"
WIRED = ("-r", "reference_joint_states:=joint_commands")


def started(graph):
    """A robot that the streamer moves."""
    robot = FollowingRobot(graph)
    graph.start(NODE, "robot:=hrp2", "solve:=true", "speed:=2.0", "lead_in:=0.5", args=WIRED)
    graph.until(lambda: robot.rows, "commands", meanwhile=robot.speak)
    return robot


def still(robot, last=0.3):
    rows = [q for at, _, _, q in robot.rows if time.monotonic() - at < last]
    return len(rows) > 3 and np.ptp(rows, axis=0).max() == 0.0


@pytest.mark.nightly
def test_joints_outside_their_range_are_led_in_from_where_they_are(graph):
    robot = FollowingRobot(graph)
    r, k = robot.robot, robot.robot.joint_index("l_elbow_flexion")
    robot.joints[k] = r.lower[k] - 0.3
    at = robot.joints.copy()
    graph.start(NODE, "robot:=hrp2", "solve:=true", args=WIRED)
    graph.until(lambda: robot.rows, "commands", meanwhile=robot.speak)
    assert np.abs(robot.rows[0][3] - at).max() < 0.01
    graph.until(lambda: robot.joints[k] >= r.lower[k] - 1e-9, "it to be inside", meanwhile=robot.speak)
    speed = robot.steps()[:, k] * r.velocity[k]
    assert speed.max() < 1.05, "1 rad/s of 3"
    count = len(robot.rows)
    graph.until(lambda: len(robot.rows) > count + 100, "the dance", meanwhile=robot.speak)
    q = np.array([row[3] for row in robot.rows[count:]])
    assert np.ptp(q, axis=0).max() > 0.1 and (q >= r.lower - 1e-9).all() and (q <= r.upper + 1e-9).all()
    assert robot.steps().max() <= 1.0


def test_a_joint_that_does_not_follow_stops_the_clip_until_it_is_told_to_go_on(graph):
    robot = started(graph)
    graph.until(lambda: len(robot.rows) > 50, "the dance", meanwhile=robot.speak)
    k = int(np.argmax(np.ptp([row[3] for row in robot.rows], axis=0)))
    stuck, rng = robot.joints[k], np.random.default_rng(0)

    def hold(q):
        q[k] = stuck + 1e-5 * rng.normal()  # its encoder lives
        return q

    robot.fault = hold
    said = graph.until_said(NODE, f"{robot.robot.joint_names[k]}: following error", robot.speak)
    assert said["level"] == 2 and "stopped; ~/resync" in said["message"]
    graph.until(lambda: still(robot), "rest", meanwhile=robot.speak)
    clip = float(graph.diagnostics(NODE, robot.speak)["time_s"])
    assert clip == float(graph.diagnostics(NODE, robot.speak)["time_s"]), "the clip waits"
    held, count = robot.rows[-1][3], len(robot.rows)
    robot.joints, robot.fault, robot.stays = robot.joints.copy(), lambda q: q, True
    robot.joints[k] = stuck
    at = robot.joints.copy()
    assert graph.call(Trigger, f"{NODE}/resync").success
    graph.until(lambda: not robot.stays and len(robot.rows) > count + 60, "it to go on", meanwhile=robot.speak)
    first = next(q for _, _, _, q in robot.rows[count:] if np.abs(q - held).max() > 1e-6)
    assert np.abs(first - at).max() < 0.05, "from where the robot is"
    graph.until_said(NODE, "ok", robot.speak)


def test_a_silent_robot_is_not_led_on_and_is_begun_with_anew_when_it_is_back(graph):
    """Also where another node stands by, which would keep one that does not command from beginning."""
    robot = started(graph)
    graph.node.create_publisher(JointState, "joint_commands", 5)
    graph.until(lambda: len(robot.rows) > 50, "the dance", meanwhile=robot.speak)
    robot.silent = True
    assert graph.until_said(NODE, "no estimated_joint_states for", robot.speak)
    # A test that was paused was silent, too: then the streamer may not have begun again yet, and commands nothing.
    graph.until(lambda: still(robot) or not robot.senders(1.0), "rest", meanwhile=robot.speak)
    elbow, count = robot.robot.joint_index("l_elbow_flexion"), len(robot.rows)
    moved = robot.joints.copy()
    moved[elbow] = moved[elbow] + 0.3  # somebody moved it meanwhile
    robot.joints, robot.stays, robot.silent = moved, True, False
    graph.until(
        lambda: any(abs(row[3][elbow] - moved[elbow]) < 0.05 for row in robot.rows[count:]), "it", meanwhile=robot.speak
    )
    graph.until(lambda: robot.senders(0.2) and not still(robot), "it to go on", meanwhile=robot.speak)
