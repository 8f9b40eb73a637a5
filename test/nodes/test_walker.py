"""The node `walker`: a robot in the simulator walks by cmd_vel over DDS, though messages are lost or bad."""

import itertools
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import JointState
from std_msgs.msg import Bool, String
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import LATCHED
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.patient]
LONG = 150.0  # [s] of a machine that has other things to do

SIMULATOR = (
    "robot:=lola", "base:=floating", "rate:=250.0", "sensor_every:=1", "publish_tf:=false", "stamp:=sim",
    "real_time_factor:=0.5", "dropout:=0.05",
)  # fmt: skip
# A busy machine stops a process for some time now and then: what that does to the robot is not asked here.
PATIENT = ("robot:=lola", "sensor_late:=0.3", "sensor_lost:=0.8", "sensor_off:=2.0")


def twist(x=0.0, y=0.0, turn=0.0):
    m = Twist()
    m.linear.x, m.linear.y, m.angular.z = x, y, turn
    return m


def place(m):
    p = m.pose.pose.position
    return np.array([p.x, p.y, p.z])


def steps_of(contacts):
    """How often a foot left the ground and came back."""
    felt = [m.data for m in contacts]
    return sum(b and not a for a, b in itertools.pairwise(felt))


def test_walks_by_cmd_vel_refuses_what_is_no_number_and_stops_when_nothing_comes(graph):
    robot = load_robot("lola", "floating")
    truth = graph.listen(Odometry, "ground_truth/odometry")
    odom, commands = graph.listen(Odometry, "odom"), graph.listen(JointState, "joint_commands")
    states, plans = graph.listen(String, "walking/state", LATCHED), graph.listen(MarkerArray, "footsteps/planned")
    feet = [graph.listen(Bool, f"contact/{s}_foot") for s in "lr"]
    graph.start("simulator", *SIMULATOR)
    graph.start("walker", *PATIENT)
    graph.until(lambda: states and states[-1].data == "STAND" and odom and truth, "the robot to stand")
    begin, true_begin = place(odom[-1]), place(truth[-1])
    publisher = graph.publisher(Twist, "cmd_vel")
    bad = twist(x=float("nan"))

    def walk():
        publisher.publish(twist(x=0.3))

    graph.until(lambda: sum(map(steps_of, feet)) >= 5, "four steps", LONG, walk)
    publisher.publish(bad)
    said = graph.until_said("walker", "linear.x is not a number", lambda: publisher.publish(bad))
    graph.until(lambda: states[-1].data == "STAND", "to stand still once cmd_vel has ceased")
    graph.spin(0.5)
    assert "FALLEN" not in {m.data for m in states} and {"WALK", "STOP"} <= {m.data for m in states}
    way, true_way = place(odom[-1]) - begin, place(truth[-1]) - true_begin
    assert true_way[0] > 0.57 and abs(true_way[1]) < 0.15
    # Every twentieth message of every sensor is lost: estimate and truth are not of one instant.
    assert np.linalg.norm(way - true_way) < 0.05 * np.linalg.norm(true_way) + 0.02, (way, true_way)
    q = np.array([m.position for m in commands if len(m.position)])
    v = np.array([m.velocity for m in commands])
    assert np.isfinite(q).all() and np.isfinite(v).all()
    assert (q >= robot.lower - 1e-9).all() and (q <= robot.upper + 1e-9).all()
    assert (np.abs(v) <= robot.velocity * (1 + 1e-9)).all() and np.abs(np.diff(q, axis=0)).max() <= 0.05 + 1e-9
    assert said["level"] == 2 and int(said["commands_limited"]) == 0
    assert any(m.ns in ("l_foot", "r_foot") for p in plans for m in p.markers)
    covariance = np.array(odom[-1].pose.covariance).reshape(6, 6)
    assert (np.linalg.eigvalsh(covariance) > 0).all() and covariance[0, 0] > odom[0].pose.covariance[0]
    assert graph.call(Trigger, "walker/stop").success
    walked = time.monotonic() + 1.0
    while time.monotonic() < walked:
        walk()
        graph.spin(0.05)
    assert states[-1].data == "STAND", "stopped, whatever cmd_vel says"
