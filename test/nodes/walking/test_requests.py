"""Requests to the walker: velocities that are no numbers or old, lists of footsteps with an error in them."""

import time

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Pose, PoseArray, PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Path
from visualization_msgs.msg import Marker, MarkerArray

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.health import Health
from humanoid_control.nodes.walking.requests import MOST_FOOTSTEPS, VelocityRequest, read_footsteps
from humanoid_control.walking.planning.step import StepTimes

TIMES, HERE = StepTimes(), pin.SE3.Identity()


def pose(x, y, w=1.0):
    m = Pose()
    m.position.x, m.position.y, m.orientation.w = x, y, w
    return m


def markers(*rows):
    return MarkerArray(markers=[Marker(ns=ns, pose=pose(x, y)) for ns, x, y in rows])


def test_a_velocity_grows_old_and_one_that_is_no_number_is_refused():
    health = Health(lambda level, text: None)
    request = VelocityRequest(health)
    good = Twist()
    good.linear.x, good.angular.z = 0.3, -0.1
    request.take(good)
    now = time.monotonic()
    assert request.now(now, 0.5).tolist() == [0.3, 0.0, -0.1]
    bad = TwistStamped()
    bad.twist.linear.y = bad.twist.angular.z = float("nan")
    request.take(bad)
    assert "linear.y, angular.z is not a number" in health.worst()[1]
    assert request.now(now, 0.5).tolist() == [0.3, 0.0, -0.1], "the one before"
    assert not request.now(now + 0.6, 0.5).any()
    request.take(good)
    assert health.worst()[1] == "ok"


def test_every_kind_of_message_gives_the_same_footsteps():
    rows = [("l_foot", 0.1, 0.1), ("r_foot", 0.2, -0.1), ("l_foot", 0.2, 0.1)]
    poses = PoseArray(poses=[pose(x, y) for _, x, y in rows])
    path = Path(poses=[PoseStamped(pose=pose(x, y)) for _, x, y in rows])
    for message in (markers(*rows), poses, path):
        steps, append = read_footsteps(message, TIMES, HERE, "odom")
        assert [s.foot for s in steps] == [0, 1, 0] and not append
        assert [s.X.translation[0] for s in steps] == [0.1, 0.2, 0.2]
        assert steps[0].swing + steps[0].double == pytest.approx(TIMES.nominal)
    more = markers(*rows)
    more.markers[0].text = "append"
    assert read_footsteps(more, TIMES, HERE, "odom")[1]


def test_footsteps_before_the_robot_are_turned_into_odometry():
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, np.pi / 2), np.array([1.0, 2.0, 0.0]))
    message = PoseArray(poses=[pose(0.2, -0.1)])
    message.header.frame_id = "base_footprint"
    (step,), _ = read_footsteps(message, TIMES, X, "odom")
    assert step.foot == 1 and np.allclose(step.X.translation, [1.1, 2.2, 0.0])


def test_a_bad_list_is_refused_with_the_index_of_the_bad_one():
    wrong = markers(("l_foot", 0.1, 0.1), ("r_hand", 0.2, -0.1))
    nan = PoseArray(poses=[pose(0.1, 0.1), pose(float("nan"), -0.1)])
    zero = PoseArray(poses=[pose(0.1, 0.1), pose(0.1, -0.1), pose(0.2, 0.1, w=0.0)])
    frame = PoseArray(poses=[pose(0.1, 0.1)])
    frame.header.frame_id = "camera"
    many = PoseArray(poses=[pose(0.1, 0.1)] * (MOST_FOOTSTEPS + 1))
    for message, words in (
        (wrong, "footstep 1: ns 'r_hand'"),
        (nan, "footstep 1: its pose is not a number"),
        (zero, "footstep 2: its quaternion is zero"),
        (frame, "frame 'camera'"),
        (many, f"1 to {MOST_FOOTSTEPS}"),
        (MarkerArray(), "got 0"),
    ):
        with pytest.raises(ConfigError, match=words):
            read_footsteps(message, TIMES, HERE, "odom")
