"""The inverse kinematics node, with targets from the test: limits, bad input, lifecycle."""

import itertools
import os
import signal
import time

import numpy as np
import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import DescribeParameters, SetParameters
from sensor_msgs.msg import JointState
from visualization_msgs.msg import MarkerArray

from humanoid_control.nodes.base.messages import target_markers
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def fill_positions(message, stamp, positions):
    """The ordinary way to move the markers of an array; positions (M, 3) [m]."""
    for m, (x, y, z) in zip(message.markers, np.asarray(positions, float).tolist(), strict=True):
        m.header.stamp = stamp
        m.pose.position.x, m.pose.position.y, m.pose.position.z = x, y, z
    return message


class Driver:
    """Plays the robot: sends joint states that are what was commanded last, and targets."""

    def __init__(self, graph, name="hrp2"):
        self.graph, self.robot = graph, load_robot(name, "fixed")
        self.commands = graph.listen(JointState, "joint_commands")
        self.states = graph.publisher(JointState, "estimated_joint_states")
        self.targets = graph.publisher(MarkerArray, "targets")
        self.joints = self.robot.postures["neutral"].copy()

    def send(self, positions=None, names=("l_wrist", "r_wrist"), steps=1):
        for _ in range(steps):
            if self.commands:
                self.joints = np.array(self.commands[-1].position)
            stamp = self.graph.node.get_clock().now().to_msg()
            m = JointState(name=list(self.robot.joint_names), position=self.joints.tolist())
            m.header.stamp = stamp
            self.states.publish(m)
            if positions is not None:
                self.targets.publish(fill_positions(target_markers(names), stamp, np.asarray(positions, float)))
            self.graph.spin(0.016)

    def check(self):
        """Every command so far keeps range and speed, also between commands."""
        r = self.robot
        p = np.array([m.position for m in self.commands])
        v = np.array([m.velocity for m in self.commands])
        t = np.array([m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in self.commands])
        assert np.isfinite(p).all() and np.isfinite(v).all()
        assert (p >= r.lower - 1e-9).all() and (p <= r.upper + 1e-9).all()
        assert (np.abs(v) <= r.velocity + 1e-9).all()
        assert (np.abs(np.diff(p, axis=0)) <= r.velocity * np.diff(t)[:, None] + 1e-6).all()


@pytest.mark.nightly
def test_it_runs_in_parallel_with_the_dynamics(graph):
    """A process each: one goes on while the other is halted in the middle of whatever it does, both ways."""
    dynamics, ik = graph.start("simulator", "robot:=hrp2", "rate:=200.0"), graph.start("whole_body_ik", "robot:=hrp2")
    d, states = Driver(graph), graph.listen(JointState, "joint_states")
    home = d.robot.point_positions(d.robot.q(), ["l_wrist", "r_wrist"])
    graph.until(lambda: states and d.commands, "states and commands", meanwhile=lambda: d.send(home))
    for halted, going, still in ((dynamics, d.commands, states), (ik, states, d.commands)):
        os.kill(halted.pid, signal.SIGSTOP)
        try:
            d.send(home, steps=10)  # what was under way arrives
            before, silent = len(going), len(still)
            graph.until(lambda b=before, g=going: len(g) > b + 60, "the other", meanwhile=lambda: d.send(home))
            assert len(still) == silent, "it is halted"
        finally:
            os.kill(halted.pid, signal.SIGCONT)
        graph.until(lambda n=silent, s=still: len(s) > n + 5, "it to go on", meanwhile=lambda: d.send(home))


def test_follows_targets_and_holds_what_it_cannot_follow(graph):
    graph.start("whole_body_ik", "robot:=hrp2")
    d = Driver(graph)
    home = d.robot.point_positions(d.robot.q(), ["l_wrist", "r_wrist"])
    goal = home + [[0.1, 0.05, 0.15], [0.1, -0.05, 0.15]]
    d.send(home, steps=60)
    d.send(goal, steps=90)
    joints = dict(zip(d.commands[-1].name, d.commands[-1].position, strict=True))
    reached = d.robot.point_positions(
        d.robot.q(np.array([joints[n] for n in d.robot.joint_names])), ["l_wrist", "r_wrist"]
    )
    assert np.linalg.norm(reached - goal, axis=1).max() < 0.02
    values = graph.until_said("whole_body_ik", "ok", lambda: d.send(goal))
    assert int(values["targets"]) == 2
    assert 0 < float(values["latency_p50_ms"]) < 100

    turn = itertools.cycle([goal + [1.0, 0, 0], goal + [-1.0, 0, 0]])  # a place that stayed would be believed

    for bad, words in ((itertools.repeat(np.full((2, 3), np.nan)), "not a number"), (turn, "jumped")):
        before = np.array(d.commands[-1].position)
        for _ in range(15):
            d.send(next(bad))
        assert np.abs(np.array(d.commands[-1].position) - before).max() < 0.1
        graph.until_said("whole_body_ik", words, lambda b=bad: d.send(next(b)))
        graph.until_said("whole_body_ik", "ok", lambda: d.send(goal))
    graph.until_said("whole_body_ik", "did you mean l_wrist", lambda: d.send(goal, names=("l_wrist", "l_wirst")))
    graph.until_said("whole_body_ik", "silent")
    d.check()


def test_no_command_before_activation(graph):
    graph.start("whole_body_ik", "robot:=lola", "autostart:=false")
    d_commands = graph.listen(JointState, "joint_commands")

    def change(which):
        request = ChangeState.Request()
        request.transition.id = which
        return graph.call(ChangeState, "whole_body_ik/change_state", request).success

    def state():
        return graph.call(GetState, "whole_body_ik/get_state").current_state.label

    assert state() == "unconfigured"
    assert change(Transition.TRANSITION_CONFIGURE) and state() == "inactive"
    driver = Driver(graph, "lola")
    driver.send(steps=60)
    assert not d_commands and not driver.commands, "an inactive node commands nothing"
    assert change(Transition.TRANSITION_ACTIVATE) and state() == "active"
    driver.send(steps=60)
    assert driver.commands
    assert change(Transition.TRANSITION_DEACTIVATE) and state() == "inactive"
    driver.send(steps=10)
    count = len(driver.commands)
    driver.send(steps=30)
    assert len(driver.commands) == count
    driver.check()


def test_a_robot_that_does_not_exist_cannot_be_configured(graph):
    process = graph.start("whole_body_ik", "robot:=lolla", "autostart:=false")
    request = ChangeState.Request()
    request.transition.id = Transition.TRANSITION_CONFIGURE
    assert not graph.call(ChangeState, "whole_body_ik/change_state", request).success
    assert "did you mean lola" in graph.output(process)
    assert process.poll() is None, "the node stays, so that the parameter can be mended"


def test_starts_from_where_the_robot_is(graph):
    """No jump to the neutral posture: the first command is the measured posture."""
    graph.start("whole_body_ik", "robot:=hrp2")
    d = Driver(graph)
    d.joints = d.robot.from_mapping({"l_elbow_flexion": 1.5, "r_shoulder_abduction": 0.8})
    graph.until(lambda: d.send() or d.commands, "a first command")
    first = np.array(d.commands[0].position)
    assert np.abs(first - d.joints).max() < 0.03


@pytest.mark.parametrize("comes_to_rest", [True, False])
def test_a_robot_that_still_moves_is_commanded_once_it_rests_but_not_waited_for_for_ever(graph, comes_to_rest):
    """It is led to the last words of another one for 0.45 s; or somebody swings its arm, which rests at each turn."""
    graph.start("whole_body_ik", "robot:=hrp2")
    d, begin = Driver(graph), time.monotonic()
    elbow = d.robot.joint_index("l_elbow_flexion")

    def moves():
        t = time.monotonic() - begin
        if comes_to_rest:
            d.joints[elbow] = 0.5 + min(t, 0.45)
        else:
            d.joints[elbow] = 1.0 + 0.2 * np.sin(3.0 * np.pi * t)
        d.send()
        return d.commands

    graph.until(moves, "a first command")
    first, waited = np.array(d.commands[0].position), time.monotonic() - begin
    if comes_to_rest:
        assert np.abs(first - d.joints).max() < 1e-3 and first[elbow] == pytest.approx(0.95, abs=1e-3)
    else:
        assert waited > 0.75 and abs(first[elbow] - d.joints[elbow]) < 0.2


def test_parameters_change_while_running_and_are_checked(graph):
    graph.start("whole_body_ik", "robot:=hrp2")
    driver = Driver(graph)

    def set_parameter(name, value):
        request = SetParameters.Request()
        v = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=value)
        request.parameters = [Parameter(name=name, value=v)]
        return graph.call(SetParameters, "whole_body_ik/set_parameters", request).results[0]

    assert set_parameter("velocity_scale", 0.1).successful
    assert not set_parameter("velocity_scale", 5.0).successful
    refused = set_parameter("rate", 100.0)
    assert not refused.successful, "a parameter that is not live cannot change"
    request = DescribeParameters.Request()
    request.names = ["velocity_scale"]
    described = graph.call(DescribeParameters, "whole_body_ik/describe_parameters", request).descriptors[0]
    assert "share of the joint speed limits" in described.description
    assert described.floating_point_range[0].to_value == 1.0
    home = driver.robot.point_positions(driver.robot.q(), ["l_wrist", "r_wrist"])
    driver.send(home, steps=40)
    driver.send(home + [0.15, 0, 0.2], steps=40)
    v = np.abs([m.velocity for m in driver.commands])
    assert (v <= 0.1 * driver.robot.velocity + 1e-9).all()
    assert v.max() > 0.05
