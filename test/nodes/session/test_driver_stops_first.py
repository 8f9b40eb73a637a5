"""A stack with a driver ends: the robot comes to rest and loses its power before those who command it are gone."""

import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool

from humanoid_control.cli.main import EXIT_INTERRUPTED
from humanoid_control.nodes.base.messages import LATCHED, seconds
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

pytestmark = [pytest.mark.ros, pytest.mark.stack, pytest.mark.patient]
JOINT = "l_elbow_flexion"
WAY = 4.0  # [s] from one end of the moves to the other
STOP = 3.0  # [s] that the slow joint takes from its speed limit
FILE = """schema: humanoid_hardware/1
robot: hrp2
rate: 200
command_timeout: 2.0  # the machine may be busy
soft_start: 0.1
soft_speed: 1.0
defaults: {{acceleration: {acceleration:.4f}}}
buses: {{both: {{transport: loopback, watchdog: 5.0}}}}
joints:
"""


@pytest.fixture
def hardware_file(tmp_path):
    """HRP-2 with its left elbow driven, which takes three seconds to come to rest; all else is fixed."""
    robot = load_robot("hrp2", "fixed")
    q, speed = robot.postures["neutral"], 0.5 * robot.velocity[robot.index[JOINT]]
    text = FILE.format(acceleration=speed / STOP)
    for k, name in enumerate(robot.joint_names):
        text += f"  {name}: {{{f'bus: both, id: {k}, start: {q[k]:.6f}' if name == JOINT else f'fixed: {q[k]:.6f}'}}}\n"
    path = tmp_path / "hrp2.hardware.yaml"
    path.write_text(text)
    return path


class Running:
    """`humanoid up hardware` with a powered robot that follows commands."""

    def __init__(self, graph, folder, *arguments):
        self.graph, self.folder = graph, folder
        settings = ("late_tolerance=100.0", "priority=0", "missed_warn=100.0", "missed_error=100.0")
        words = [word for s in settings for word in ("--set", f"robot_driver.{s}")]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "humanoid_control.cli.main", "up", "hardware", *arguments, *words],
            env={**os.environ, "HUMANOID_HOME": str(folder / "home")},
            stdin=subprocess.DEVNULL,
            stdout=(folder / "up.log").open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.said = graph.listen(String, "hardware_state", LATCHED)
        self.commands = graph.listen(JointState, "joint_commands")
        self.applied = graph.listen(JointState, "applied_commands")

    def enable(self, meanwhile=None):
        self.graph.until(lambda: self.said and "MONITOR" in self.said[-1].data, "the driver")
        assert self.graph.call(SetBool, "robot_driver/enable", SetBool.Request(data=True)).success
        self.graph.until(lambda: "RUN" in self.said[-1].data, "commands are followed", meanwhile=meanwhile)

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def words(self):
        """What the driver has said since it followed commands; the last of it does not always leave the process."""
        log = next((self.folder / "home" / "runs").glob("*/robot_driver.log")).read_text()
        return log.partition(": RUN")[2]

    def off(self):
        return "MONITOR" in self.words()

    def stop(self):
        """Begin of the stop and loss of power, by the driver's own clock [s]."""
        times = {
            word: float(t) for t, word in re.findall(r"\[INFO\] \[([0-9.]+)\].*: (STOPPING|MONITOR)", self.words())
        }
        return times["STOPPING"], times["MONITOR"]

    def stop_time(self):
        """From the begin of the stop to the loss of power [s]."""
        begin, end = self.stop()
        return end - begin

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@pytest.fixture
def running(graph, tmp_path):
    made = []

    def start(*arguments, meanwhile=None):
        made.append(Running(graph, tmp_path, *arguments))  # ended with the test, whatever becomes of it
        made[-1].enable(meanwhile)
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.nightly
def test_the_driver_ends_first_while_its_commanders_go_on(running, graph, hardware_file):
    """The whole stack but for the viewer: one elbow imitates a clip."""
    up = running("--except", "viewer", "--set", f"robot_driver.hardware={hardware_file}")
    up.interrupt()
    graph.until(up.off, "no power")
    assert up.stop_time() < STOP + 1.0
    middle = sum(up.stop()) / 2
    graph.until(lambda: seconds(up.commands[-1].header.stamp) > middle, "commands until the driver switches off")
    assert up.process.wait(30) in (0, EXIT_INTERRUPTED), "the robot has power before all other nodes are ready"
    words = up.words()
    assert words.index("STOPPING: switching off") < words.index("MONITOR")
    assert "silent" not in words, "it was not the silence of commands that stopped the robot"


class Mover:
    """Commands of one joint: still at first, then toward the middle of its range and back, at a constant speed."""

    def __init__(self, graph):
        self.graph, self.begin, self.sent = graph, None, 0.0
        robot = load_robot("hrp2", "fixed")
        k = robot.index[JOINT]
        self.q = float(robot.postures["neutral"][k])
        self.v = float(np.sign((robot.lower[k] + robot.upper[k]) / 2 - self.q) * 0.1 * robot.velocity[k])
        self.publisher = graph.node.create_publisher(JointState, "joint_commands", 5)

    def __call__(self):
        if time.monotonic() - self.sent < 0.02:  # what comes in has to be taken, too
            return
        self.sent = time.monotonic()
        moved = 0.0 if self.begin is None else time.monotonic() - self.begin
        phase = moved % (2 * WAY)
        m = JointState(name=[JOINT], position=[self.q + self.v * min(phase, 2 * WAY - phase)])
        m.velocity = [0.0 if self.begin is None else self.v if phase < WAY else -self.v]
        m.header.stamp = self.graph.node.get_clock().now().to_msg()
        self.publisher.publish(m)


@pytest.mark.parametrize("interrupts", [nightly(1), 2])
def test_one_interrupt_brings_to_rest_and_a_second_one_stops_at_once(running, graph, hardware_file, interrupts):
    mover = Mover(graph)
    if interrupts == 2:  # the second one has to come before the joint is at rest
        hardware_file.write_text(re.sub(r"acceleration: [0-9.]+", "acceleration: 0.1", hardware_file.read_text()))
    only = ("--only", "robot_driver,state_estimator", "--set", f"robot_driver.hardware={hardware_file}")
    up = running(*only, meanwhile=mover)
    mover.begin = time.monotonic()
    moving = 0.8 * abs(mover.v)
    graph.until(lambda: up.applied and abs(up.applied[-1].velocity[0]) > moving, "motion", meanwhile=mover)
    begin = seconds(up.applied[-1].header.stamp)
    up.interrupt()
    graph.until(lambda: "STOPPING" in up.said[-1].data, "the stop", meanwhile=mover)
    if interrupts == 2:
        graph.spin(0.35)
        up.interrupt()
        graph.until(lambda: "ESTOP: interrupted twice" in up.words(), "the quick stop")
    else:
        graph.until(up.off, "no power", meanwhile=mover)
        assert up.stop_time() < STOP + 1.0
        speeds = [m.velocity[0] for m in up.applied if seconds(m.header.stamp) > begin]
        assert max(abs(b - a) for a, b in pairwise(speeds)) < 0.1 * abs(mover.v), "no sudden stop"
    assert up.process.wait(30) == 0
