"""On a machine that has no time to spare the walker's commands keep the speed limits by their header stamps."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from geometry_msgs.msg import Twist
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from humanoid_control.nodes.base.messages import LATCHED, seconds
from humanoid_control.robots import load_robot

pytestmark = [pytest.mark.ros, pytest.mark.timed, pytest.mark.nightly]

BUSY = "while True: pass"
LOADED = 30.0  # [s]
NANOSECOND = 1e-9  # [s] by which a stamp is rounded


def speeds_by_stamps(messages, limits):
    """Each command's greatest speed as a share of the limits, by its distance in space and time from the one before."""
    heard = [(seconds(m.header.stamp), np.array(m.position)) for m in messages if len(m.position)]
    t, q = np.array([at for at, _ in heard]), np.array([x for _, x in heard])
    return (np.abs(np.diff(q, axis=0)) / (np.diff(t)[:, None] + NANOSECOND) / limits).max(axis=1)


@pytest.fixture
def load():
    """Two busy loops for each processor."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(2 * len(os.sched_getaffinity(0)))]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.parametrize("stamp", ["sim", "wall"])
def test_speeds_by_stamps_keep_their_limits_on_a_busy_machine(graph, load, stamp):
    robot = load_robot("lola", "floating")
    commands, states = graph.listen(JointState, "joint_commands", 2000), graph.listen(String, "walking/state", LATCHED)
    pace = ("real_time_factor:=0.5",) if stamp == "sim" else ()
    graph.start(
        "simulator", "robot:=lola", "base:=floating", "rate:=250.0", "sensor_every:=1", f"stamp:={stamp}", *pace
    )
    graph.start("walker", "robot:=lola", "sensor_late:=1.0", "sensor_lost:=2.0", "sensor_off:=5.0")
    graph.until(lambda: states and states[-1].data == "STAND", "the robot to stand", timeout=120)
    publisher, walk = graph.publisher(Twist, "cmd_vel"), Twist()
    walk.linear.x = 0.5
    for _ in range(round(LOADED / 0.1)):
        publisher.publish(walk)
        graph.spin(0.1)
    stamps = [seconds(m.header.stamp) for m in commands]
    shares = speeds_by_stamps(commands, robot.velocity)
    print(
        f"{stamp}: {len(commands)} commands, fastest {shares.max():.4f} of a limit, states {[m.data for m in states]}"
    )
    assert len(shares) > 500 and all(b > a for a, b in itertools.pairwise(stamps))
    assert shares.max() <= 1.0 + 1e-3
