"""Recordings whose commands are velocities alone, or of some joints, or in another order, are read as others are."""

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="needs the package rosbags")

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation.bag import BagWriter
from humanoid_control.evaluation.reaching import reach_report, read_reach
from humanoid_control.evaluation.recorded_run import run_report
from humanoid_control.reaching import HANDS
from humanoid_control.retargeting import POINTS
from humanoid_control.robots import load_robot
from humanoid_control.session.stacks import NODES
from test.evaluation.messages import joint_state, markers, put
from test.robots_under_test import nightly

BEGIN, STEP = 1_700_000_000 * 10**9, 4_000_000  # [ns]


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


def motion(robot, count=600):
    """A smooth motion (T, n) from the neutral posture that comes to rest, and its velocity."""
    s = np.clip(np.arange(count) / (0.7 * count), 0.0, 1.0)
    share = s * s * (3 - 2 * s)
    way = np.clip(0.15 * np.sin(1.0 + np.arange(robot.n)), robot.lower - robot.postures["neutral"] + 0.02, None)
    way = np.minimum(way, robot.upper - robot.postures["neutral"] - 0.02)
    q = robot.postures["neutral"] + share[:, None] * way
    return q, np.gradient(q, 1e-9 * STEP, axis=0)


def write(path, robot, command, states=True):
    """A bag of a motion; command(k, q, v) gives names, positions and velocities of the k-th command."""
    q, v = motion(robot)
    names = list(robot.joint_names)
    bag = BagWriter(path)
    for topic in ("/joint_commands", "/joint_states"):
        bag.add_topic(topic, "sensor_msgs/msg/JointState")
    for topic in ("/goals", "/targets"):
        bag.add_topic(topic, "visualization_msgs/msg/MarkerArray")

    for k in range(len(q)):
        ns = BEGIN + k * STEP
        if states:
            put(bag, "/joint_states", ns - STEP // 4, joint_state(ns - STEP // 4, names[::-1], q[k][::-1]))
        put(bag, "/joint_commands", ns, joint_state(ns, *command(k, q[k], v[k])))
        at = dict(zip(POINTS, robot.point_positions(robot.q(q[k]), POINTS), strict=True))
        put(bag, "/targets", ns, markers(ns, at, 1.0))
    end = dict(zip(HANDS, robot.point_positions(robot.q(q[-1]), HANDS), strict=True))
    put(bag, "/goals", BEGIN + STEP, markers(BEGIN + STEP, end, 1e-9 * STEP * (len(q) - 3)))
    bag.close()
    return path


def whole(robot):
    return lambda k, q, v: (robot.joint_names, q, v)


def velocities(robot):
    return lambda k, q, v: (robot.joint_names, (), v)


def some(robot):
    return lambda k, q, v: (["camera_tilt", *robot.joint_names[::-2]], [0.3, *q[::-2]], ())


@pytest.mark.parametrize("kind", [nightly(velocities), some])
def test_commands_without_all_positions_are_completed_by_what_was_measured(robot, kind, tmp_path):
    q, v = motion(robot)
    expected = read_reach(write(tmp_path / "whole", robot, whole(robot)), robot)
    assert expected.postures_from == "joint_commands" and np.array_equal(expected.commands.position, q)
    read = read_reach(write(tmp_path / "part", robot, kind(robot)), robot)
    assert read.postures_from == "joint_states" and np.array_equal(read.commands.time, expected.commands.time)
    late = 0.25e-9 * STEP * np.abs(v).max()  # the states were stamped a quarter of a period earlier
    assert np.abs(read.commands.position - q).max() < 1.5 * late
    assert np.abs(read.commands.velocity - v).max() < (1e-12 if kind is velocities else 0.1)


def test_both_reports_are_made_of_velocities_alone(robot, tmp_path):
    path = write(tmp_path / "run", robot, velocities(robot))
    reach, run = reach_report(path, robot, 0.1, NODES), run_report(path, robot)
    assert reach["postures_from"] == run["postures_from"] == "joint_states"
    assert reach["reachable"] == {"goals": 1, "reached": 1} | {
        k: pytest.approx(0.0, abs=1e-6) for k in ("error_median_m", "error_max_m")
    }
    assert not reach["acceleration"]["kept"] and "acceleration kept" not in reach["checks"], "told, not claimed"
    assert reach["limits"]["kept"] and run["limits"]["kept"] and reach["limits"]["speed_share_of_limit"] > 0.01
    assert run["error_of_command"]["mean"]["max"] < 0.002


def test_without_anything_measured_one_line_says_so(robot, tmp_path):
    path = write(tmp_path / "bare", robot, velocities(robot), states=False)
    with pytest.raises(ConfigError, match="lack positions of some joints, and it contains no joint_states"):
        read_reach(path, robot)


def test_a_commanded_position_that_is_no_number_is_not_covered_up(robot, tmp_path):
    def command(k, q, v):
        return robot.joint_names, np.where((k == 50) & (np.arange(robot.n) == 2), np.nan, q), ()

    report = reach_report(write(tmp_path / "nan", robot, command), robot, 1e4, NODES)
    assert report["limits"]["not_a_number"] > 0 and not report["limits"]["kept"]
