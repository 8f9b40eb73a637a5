"""One owner of joint_commands, over DDS: who begins, who stops, and whose commands the robot takes."""

import os
import signal
import subprocess
import sys
import time

import pytest

rclpy = pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState

from humanoid_control.nodes.base.command_owner import Claim, CommandOwner
from humanoid_control.nodes.base.messages import seconds, stamp_of
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.robots import load_robot
from test.nodes.following_robot import FollowingRobot

pytestmark = [pytest.mark.ros, pytest.mark.patient]


def start_twice(graph, node, *parameters, args=()):
    """The same node twice at the same moment, commands of one of them, and a robot that was never pulled to two sides.

    Returns:
        Both processes; the robot, which goes on.
    """
    ears = FollowingRobot(graph)
    both = [graph.start(node, *parameters, wait=False, args=args) for _ in range(2)]
    graph.until(lambda: all("READY" in graph.output(p) for p in both), "both", meanwhile=ears.speak)
    graph.until(lambda: ears.rows, "commands", meanwhile=ears.speak)
    begin = time.monotonic()
    graph.until(lambda: time.monotonic() - begin > 1.0, "a second of commands", meanwhile=ears.speak)
    assert len(ears.senders()) == 1, "one of them commands"
    assert ears.steps().max() <= 1.0
    assert ears.contested() < 0.1
    return both, ears


def test_of_two_that_start_at_once_one_commands_and_the_other_takes_over_when_it_ends(graph):
    both, ears = start_twice(graph, "whole_body_ik", "robot:=hrp2")
    said = graph.until_said("whole_body_ik", "; nothing is commanded", ears.speak)
    assert (
        said["level"] == 2
        and "joint_commands has another publisher, /whole_body_ik: stop one of them" in said["message"]
    )
    first, count = ears.senders(), len(ears.rows)
    os.kill(both[0].pid, signal.SIGSTOP)
    graph.spin(0.3)
    going = both[0] if not ears.senders(0.2) else both[1]
    os.kill(both[0].pid, signal.SIGCONT)
    graph.until(lambda: len(ears.rows) > count + 100, "to go on", meanwhile=ears.speak)
    assert len(ears.senders(0.3)) == 1, "also after one of them had stood still"
    going.kill()  # it leaves without a word, and stays on the graph for a while
    going.wait()
    graph.until(lambda: ears.senders(0.2) and ears.senders(0.2) != first, "the other", meanwhile=ears.speak)
    assert ears.steps().max() <= 1.0, "it begins where the robot is"


@pytest.mark.thorough
def test_fifty_double_starts_never_pull_a_robot_to_two_sides(graph):
    for _ in range(50):
        both, ears = start_twice(graph, "whole_body_ik", "robot:=hrp2")
        for process in both:
            graph.stop(process)
        ears.close()  # the node of the test serves its oldest ears first: with those of two rounds the newest heard
        # nothing for half a second, and said that the robot was where it had been


@pytest.mark.timed
def test_a_streamer_that_solves_is_one_of_them(graph):
    wired = ("-r", "reference_joint_states:=joint_commands")
    both, ears = start_twice(graph, "trajectory_streamer", "robot:=hrp2", "solve:=true", args=wired)
    graph.until_said("trajectory_streamer", "has another publisher, /trajectory_streamer: stop one of them", ears.speak)
    ik = graph.start("whole_body_ik", "robot:=hrp2")
    said = graph.until_said("whole_body_ik", "another publisher, /trajectory_streamer", ears.speak)  # once it is found
    assert "nothing is commanded" in said["message"] and said["level"] == 2
    assert len(ears.senders()) == 1 and ears.steps().max() <= 1.0
    for process in both:
        graph.stop(process)
    graph.until(lambda: ears.senders(0.1), "the inverse kinematics", meanwhile=ears.speak)
    graph.until_said("whole_body_ik", "ok", ears.speak)
    assert ears.steps().max() <= 1.0
    graph.stop(ik)


def test_a_node_does_not_begin_while_a_stranger_could_command_and_stops_when_one_does(graph):
    ears = FollowingRobot(graph)
    stranger = graph.node.create_publisher(JointState, "joint_commands", 5)
    graph.start("whole_body_ik", "robot:=hrp2")
    said = graph.until_said("whole_body_ik", "joint_commands has another publisher, /test", ears.speak)
    assert said["level"] == 2 and not ears.rows
    graph.node.destroy_publisher(stranger)
    graph.until(lambda: len(ears.rows) > 50, "commands", meanwhile=ears.speak)

    own = ears.senders()
    stranger = graph.publisher(JointState, "joint_commands")
    message = JointState(name=list(ears.robot.joint_names), position=ears.robot.postures["neutral"].tolist())
    begin = spoken = stamp = 0.0

    def talk():
        nonlocal begin, spoken, stamp
        ears.speak()
        if time.monotonic() - spoken > 0.01:
            spoken = time.monotonic()
            message.header.stamp = stamp_of(graph.node.get_clock().now().nanoseconds)
            stranger.publish(message)
            begin, stamp = begin or spoken, stamp or seconds(message.header.stamp)

    def silent():
        return begin and time.monotonic() - max(begin, *(at for at, _, gid, _ in ears.rows if gid in own)) > 1.0

    graph.until(silent, "it to stop", meanwhile=talk)
    assert sum(at > stamp and gid in own for _, at, gid, _ in ears.rows) < 40, "0.1 s, and what a busy machine takes"
    assert graph.until_said("whole_body_ik", "nothing is commanded", talk)["level"] == 2
    graph.node.destroy_publisher(stranger)
    graph.until(lambda: ears.senders(0.1) & own, "to go on", meanwhile=ears.speak)


class Commander(TickNode):
    """A node that could command, asked at times that run faster than the clock."""

    node_name = "commander"

    def configure(self):
        self.commands, self.now = CommandOwner(self, "joint_commands"), time.monotonic()
        return 100.0

    def begins_within(self, seconds):
        """After which time it commands [s]; None: not within it."""
        begin = self.now
        while self.now < begin + seconds:
            self.now += 0.01
            if self.commands.may_command(self.now):
                return self.now - begin
        return None


def test_of_two_that_the_graph_has_not_shown_to_each_other_one_commands(graph, monkeypatch):
    first, second = Commander(), Commander()
    for node in (first, second):
        graph.executor.add_node(node)
        monkeypatch.setattr(node, "count_publishers", lambda topic: 1)
        monkeypatch.setattr(node, "get_publishers_info_by_topic", lambda topic: [])
    try:
        for node in (first, second):
            node.trigger_configure()
        assert first.begins_within(1.0) == pytest.approx(0.3, abs=0.03)
        assert second.begins_within(5.0) is None
        level, problem = second.health.open["owner"]
        assert level == Level.ERROR and "of this machine" in problem and "nothing is commanded" in problem
        assert first.commands.may_command(first.now + 1.0), "and the first goes on"
        first.commands.pause()
        assert second.begins_within(5.0) is None, "a break is no end"
        first.trigger_activate()
        first.trigger_deactivate()
        assert second.begins_within(1.0) is not None
    finally:
        for node in (first, second):
            node.commands.restart()
            node.destroy_node()


def test_a_claim_ends_with_its_process():
    holder = "import time; from humanoid_control.nodes.base.command_owner import Claim; c = Claim('/a', 7)"
    code = f"{holder}; print(c.take(), flush=True); time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "True\n"
    mine = Claim("/a", 7)
    assert not mine.take() and Claim("/a", 8).take() and Claim("/b", 7).take(), "another domain, another topic"
    process.kill()
    process.wait()
    assert mine.take() and mine.take() and not Claim("/a", 7).take()
    mine.release()
    assert Claim("/a", 7).take()


def test_a_node_that_pauses_goes_on_beside_one_that_waits_unless_that_has_commanded_meanwhile(graph):
    node = Commander()
    graph.executor.add_node(node)
    try:
        node.trigger_configure()
        owner = node.commands
        assert node.begins_within(1.0) == pytest.approx(0.3, abs=0.03), "nobody else is there"
        other = graph.node.create_publisher(JointState, "joint_commands", 5)
        graph.until(lambda: node.count_publishers("joint_commands") == 2, "the other")
        assert owner.may_command(node.now + 1.0), "it goes on"
        for stop in (owner.pause, lambda: owner.may_command(node.now, ready=False)):
            stop()
            assert node.begins_within(5.0) == pytest.approx(0.3, abs=0.03), "after a break"
        owner.pause()
        heard = []
        node.create_subscription(JointState, "joint_commands", heard.append, 5)
        graph.until(lambda: other.get_subscription_count() == 2, "ears")
        other.publish(JointState())
        graph.until(lambda: heard, "it to be heard")
        graph.spin(0.1)
        assert node.begins_within(5.0) is None, "it is the other's now, also while that is silent"
        graph.node.destroy_publisher(other)
        graph.until(lambda: node.count_publishers("joint_commands") == 1, "the other to go")
        assert node.begins_within(1.0) is not None
        other = graph.node.create_publisher(JointState, "joint_commands", 5)
        graph.until(lambda: node.count_publishers("joint_commands") == 2, "the other")
        owner.restart()
        assert node.begins_within(5.0) is None, "as one that never commanded"
        graph.node.destroy_publisher(other)
    finally:
        node.destroy_node()


def test_a_robot_follows_the_first_who_commands_it_and_names_the_others(graph):
    robot = load_robot("hrp2", "fixed")
    graph.start("simulator", "robot:=hrp2", "rate:=200.0", "command_timeout:=1.0")
    states = graph.listen(JointState, "joint_states")
    k = robot.joint_index("l_elbow_flexion")
    second = rclpy.create_node("second")
    try:
        sides = {0.5: graph.publisher(JointState, "joint_commands")}
        sides[1.3] = second.create_publisher(JointState, "joint_commands", 5)
        graph.until(lambda: sides[1.3].get_subscription_count() > 0, "the simulator")

        def speak(*angles):
            for angle in angles:
                q = robot.postures["neutral"].copy()
                q[k] = angle
                sides[angle].publish(JointState(name=list(robot.joint_names), position=q.tolist()))

        graph.until(lambda: states and abs(states[-1].position[k] - 0.5) < 0.03, "it", meanwhile=lambda: speak(0.5))
        spoke = [0.0]

        def both():
            """After a pause of this process, which counts as silence, the first speaks alone once."""
            paused = time.monotonic() - spoke[0] > 0.5
            spoke[0] = time.monotonic()
            speak(*((0.5,) if paused else (0.5, 1.3)))

        # names of nodes may come after their messages
        said = graph.until_said("simulator", "/test is followed, /second is ignored", both)
        assert said["level"] == 2 and "joint_commands from several" in said["message"]
        # where this process was paused, the second one was followed meanwhile
        graph.until(lambda: abs(states[-1].position[k] - 0.5) < 0.03, "the first", meanwhile=both)
        graph.until(lambda: abs(states[-1].position[k] - 1.3) < 0.03, "the second", meanwhile=lambda: speak(1.3))
        graph.until_said("simulator", "ok", lambda: speak(1.3))
    finally:
        second.destroy_node()
