"""Clocks that are apart, set, or not there, over real DDS: robots and targets are followed all the same."""

import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import stamp_of, target_markers
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]
HOUR = 3600.0
WRISTS = ("l_wrist", "r_wrist")
SPEED = 0.3  # [rad/s]
CALM = "missed_warn:=100.0"  # a machine that is busy with other tests is no matter here


class Encoders:
    """A driver whose joints all move at one speed; `ahead`: of its clock [s]; None: it gives no stamps."""

    def __init__(self, graph):
        self.graph, self.robot, self.ahead, self.direction = graph, load_robot("hrp2"), 0.0, 1.0
        self.estimates = graph.listen(JointState, "estimated_joint_states")
        self.publisher = graph.publisher(JointState, "joint_states")
        self.q, self.before = self.robot.postures["neutral"].copy(), time.monotonic()

    def send(self, extra=0.0):
        now = time.monotonic()
        step, self.before = now - self.before, now
        r = self.robot
        if not (self.q + 0.5 * self.direction < r.upper).any() or not (self.q + 0.5 * self.direction > r.lower).any():
            self.direction = -self.direction
        self.q = np.clip(self.q + SPEED * self.direction * step, r.lower, r.upper)
        m = JointState(name=list(r.joint_names), position=self.q.tolist())
        if self.ahead is not None:
            m.header.stamp = stamp_of(self.graph.node.get_clock().now().nanoseconds + round(1e9 * (self.ahead + extra)))
        self.publisher.publish(m)
        self.graph.spin(0.004)

    def error(self):
        return np.abs(np.array(self.estimates[-1].position) - self.q).max() if self.estimates else np.inf

    def play(self, seconds):
        """Send for some time: the greatest error after half a second [rad]."""
        begin, worst = time.monotonic(), 0.0
        while time.monotonic() - begin < seconds:
            self.send()
            if time.monotonic() - begin > 0.5:
                worst = max(worst, self.error())
        return worst


@pytest.mark.nightly
def test_the_estimate_follows_whatever_the_drivers_clock_does(graph):
    graph.start("state_estimator", "robot:=hrp2", CALM)
    driver = Encoders(graph)
    graph.until(lambda: driver.error() < 0.03, "an estimate", meanwhile=driver.send)
    graph.until_said("state_estimator", "ok", driver.send)

    driver.send(extra=HOUR)  # one stamp
    assert driver.play(1.2) < 0.06
    driver.ahead = -5.0  # the clock is set back
    assert driver.play(1.2) < 0.06
    said = graph.until_said("state_estimator", "joint_states: the sender's clock is 5.", driver.send)
    assert "behind" in said["message"] and "chrony or ptp4l" in said["message"]
    driver.ahead = None  # no stamps at all
    assert driver.play(1.2) < 0.06
    for ahead in (0.4, -0.7):
        driver.ahead = ahead
        assert driver.play(1.2) < 0.06
        graph.until_said("state_estimator", f"{'ahead' if ahead > 0 else 'behind'}, corrected", driver.send)
    driver.ahead = 0.0
    assert driver.play(1.2) < 0.06
    graph.until_said("state_estimator", "ok", driver.send)


@pytest.fixture
def solver(graph):
    """The node, started, and a function that sends a goal and says how far the hands are from it [m]."""
    graph.start("whole_body_ik", "robot:=hrp2", "start_blind:=true", CALM)
    robot = load_robot("hrp2", "fixed")
    commands, publisher = graph.listen(JointState, "joint_commands"), graph.publisher(MarkerArray, "targets")
    home = robot.point_positions(robot.q(), WRISTS)

    def send(goal, ahead=0.0):
        message = target_markers(WRISTS)
        now = graph.node.get_clock().now().nanoseconds
        for m, (x, y, z) in zip(message.markers, (home + goal).tolist(), strict=True):
            m.pose.position.x, m.pose.position.y, m.pose.position.z = x, y, z
            if ahead is not None:
                m.header.stamp = stamp_of(now + round(1e9 * ahead))
        publisher.publish(message)
        graph.spin(0.015)

    def error(goal):
        hands = robot.point_positions(robot.q(np.array(commands[-1].position)), WRISTS)
        return np.linalg.norm(hands - home - goal, axis=1).max()

    graph.until(lambda: len(commands) > 20, "commands")
    return send, error


@pytest.mark.nightly
def test_targets_are_followed_whatever_the_clock_of_their_source(graph, solver):
    """0.4 s are more than the silence after which a target is held, and less than what tells another clock."""
    send, error = solver
    goals = [np.array([0.0, 0.0, z]) for z in (0.0, 0.02)]
    graph.until(lambda: error(goals[1]) < 0.005, "a goal", meanwhile=lambda: send(goals[1]))
    for k, ahead in enumerate((0.4, -0.7, 30.0, None)):
        for _ in range(35):  # half a second for the offset
            send(goals[1 - k % 2], ahead)
        goal = goals[k % 2]

        def follow(goal=goal, ahead=ahead):
            send(goal, ahead)

        graph.until(lambda g=goal: error(g) < 0.005, f"{ahead} s", meanwhile=follow)
        values = graph.until_said("whole_body_ik", "chrony or ptp4l" if ahead else "ok", follow)
        assert "silent" not in values["message"] and float(values["latency_p50_ms"]) >= 0
        assert error(goal) < 0.005


def test_one_stamp_an_hour_ahead_does_not_stop_a_target(graph, solver):
    send, error = solver
    goal = np.array([0.0, 0.0, 0.03])
    graph.until(lambda: error(0.0) < 0.005, "home", meanwhile=lambda: send(0.0))
    send(0.0, HOUR)
    for _ in range(30):
        send(goal)
    graph.until(lambda: error(goal) < 0.005, "the goal", meanwhile=lambda: send(goal))
    graph.until_said("whole_body_ik", "ok", lambda: send(goal))
