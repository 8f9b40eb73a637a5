"""The report of a recorded whole-body run, from bags of real messages whose faults are planted."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rosbags", reason="needs the package rosbags")

from humanoid_control.errors import ConfigError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.evaluation.bag import BagWriter
from humanoid_control.evaluation.whole_body_run import whole_body_parts, whole_body_report
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import POINTS, WholeBodyTask
from humanoid_control.retargeting.whole_body.contacts import EDGES
from humanoid_control.robots import load_robot
from test.evaluation.messages import joint_state, markers, odometry, put

BEGIN = 1_700_000_000 * 10**9  # [ns]
TYPES = {
    "/joint_states": "sensor_msgs/msg/JointState",
    "/odom": "nav_msgs/msg/Odometry",
    "/contacts": "visualization_msgs/msg/MarkerArray",
    "/targets": "visualization_msgs/msg/MarkerArray",
}


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def motion(robot):
    return WholeBodyTask.of(load_body_points("dance").cropped(150), robot).solve()


def write(path, robot, motion, q=None, lost=(), targets=True):
    """A bag of the motion, or of its contacts and targets with other configurations q; `lost`: (topic, frame) left out.

    Joints and edges come in an order of their own.
    """
    t = motion.trajectory
    q, step = t.q() if q is None else q, round(1e9 / t.rate)
    bag = BagWriter(path)
    for topic, kind in TYPES.items():
        bag.add_topic(topic, kind)
    for k, row in enumerate(q):
        ns = BEGIN + k * step
        on = dict(zip(EDGES, t.contacts[k], strict=True))
        edges = {e: np.zeros(3) for e in EDGES[::-1]}
        goal = dict(zip(POINTS[::-1], motion.targets.positions[k, :7][::-1], strict=True))
        messages = {
            "/joint_states": joint_state(ns, t.joint_names[::-1], row[7:][::-1], t.velocities[k][::-1]),
            "/odom": odometry(ns, row[:7]),
            "/contacts": markers(ns, edges, 1.0, lambda name, on=on: "on" if on[name] else "off"),
            "/targets": markers(ns, goal, 1.0),
        }
        for topic, message in messages.items():
            if (topic, k) not in lost and (targets or topic != "/targets"):
                put(bag, topic, ns, message)
    bag.close()
    return path


def test_a_good_run_is_reported_as_it_was(robot, motion, tmp_path):
    report = whole_body_report(write(tmp_path / "run", robot, motion), robot)
    t = motion.trajectory
    contact = measure_ground_contact(robot, t.q(), t.contacts, t.rate).row()
    assert report["contact"] == {key: pytest.approx(value, abs=0.02) for key, value in contact.items()}
    assert report["contact"]["contacts"] == contact["contacts"] > 0
    assert report["good"] and report["limits"]["kept"] and report["frames_in_collision"] == 0
    assert (report["frames"], report["frames_missing"]) == (150, 0)
    assert report["rate_hz"] == pytest.approx(t.rate, abs=0.1)
    assert report["duration_s"] == pytest.approx(149 / t.rate, abs=0.01)
    reached = np.array([robot.point_positions(q, POINTS) for q in t.q()])
    error = np.linalg.norm(reached - motion.targets.positions[:, :7], axis=2).mean()
    assert report["error_mm"] == pytest.approx(1000 * error, abs=0.06) and error > 1e-3
    nearest = min(robot.pair_distances(q).min() for q in t.q())
    assert report["closest_m"] == pytest.approx(nearest, abs=1e-5)
    a = np.diff(t.root_position, 2, axis=0) * t.rate**2
    assert report["root_acceleration"] == pytest.approx(np.sqrt(np.mean(np.sum(a**2, axis=1))), rel=0.02)
    table, verdict = whole_body_parts(report)
    assert "no slip" in verdict and ["contacts", contact["contacts"]] in table.rows


def test_feet_that_slip_or_sink_are_not_good(robot, motion, tmp_path):
    contacts = motion.trajectory.contacts.copy()
    contacts[10::12] = False  # many contacts, of which few slip
    stepping = replace(motion, trajectory=replace(motion.trajectory, contacts=contacts))
    q = motion.trajectory.q()
    q[75:, 0] += 0.004
    slipped = whole_body_report(write(tmp_path / "aside", robot, stepping, q), robot)
    assert slipped["contact"]["slip_mm"] < 1
    assert slipped["contact"]["slip_max_mm"] == pytest.approx(4.0, abs=0.4) and not slipped["good"]
    assert "slip, a limit exceeded" in whole_body_parts(slipped)[1]
    q = motion.trajectory.q()
    q[:, 2] -= 0.0025
    sunk = whole_body_report(write(tmp_path / "sunk", robot, motion, q), robot)
    assert sunk["contact"]["penetration_mm"] == pytest.approx(2.5, abs=0.3) and not sunk["good"]
    assert sunk["contact"]["slip_max_mm"] < 1 and sunk["limits"]["kept"]


def test_a_limit_that_is_not_kept_is_not_good(robot, motion, tmp_path):
    q, joint = motion.trajectory.q(), int(robot.imitation_joints[0])
    q[60:63, 7 + joint] = robot.upper[joint] + 0.02
    report = whole_body_report(write(tmp_path / "beyond", robot, motion, q), robot)
    assert report["limits"]["position_beyond_limit_rad"] == pytest.approx(0.02, abs=1e-6)
    assert not report["limits"]["kept"] and not report["good"]


def test_frames_with_shapes_in_each_other_are_counted(robot, motion, tmp_path):
    rng = np.random.default_rng(5)
    q, arms = motion.trajectory.q(), robot.imitation_joints
    q[::3, 7 + arms] = rng.uniform(robot.lower[arms], robot.upper[arms], (50, len(arms)))
    touching = sum(robot.pair_distances(row).min() < 0 for row in q)
    report = whole_body_report(write(tmp_path / "tangled", robot, motion, q), robot)
    assert 3 < touching < 50 and report["frames_in_collision"] == touching
    assert report["closest_m"] == pytest.approx(min(robot.pair_distances(row).min() for row in q), abs=2e-4)
    tight = next(row for row in q[::3] if robot.pair_distances(row).min() < 0)[7 + arms]
    q[:, 7 + arms] = tight  # all the time: nothing but that is wrong
    report = whole_body_report(write(tmp_path / "tight", robot, motion, q), robot)
    assert report["frames_in_collision"] == len(q) and report["limits"]["kept"] and not report["good"]


def test_frames_whose_messages_were_lost_are_left_out(robot, motion, tmp_path):
    """A root that moves on while messages are lost has not jumped."""
    q = motion.trajectory.q()
    whole = whole_body_report(write(tmp_path / "whole", robot, motion), robot)
    q[:, :2] += 0.001 * np.arange(len(q))[:, None]  # so that a gap would be seen
    lost = [("/odom", k) for k in range(50, 60)] + [("/contacts", 100)]
    report = whole_body_report(write(tmp_path / "gaps", robot, motion, q, lost), robot)
    assert (report["frames"], report["frames_missing"]) == (139, 11)
    assert report["root_acceleration"] == pytest.approx(whole["root_acceleration"], rel=0.2)
    blind = whole_body_report(write(tmp_path / "blind", robot, motion, targets=False), robot)
    assert blind["error_mm"] is None and blind["good"]


def test_what_is_no_such_run_is_refused(robot, motion, tmp_path):
    rows = [(topic, k) for topic in ("/odom",) for k in range(145)]
    with pytest.raises(ConfigError, match="odom and contacts of 5 frames only"):
        whole_body_report(write(tmp_path / "rootless", robot, motion, lost=rows), robot)
    rows = [("/joint_states", k) for k in range(141)]
    with pytest.raises(ConfigError, match="holds 9 joint states"):
        whole_body_report(write(tmp_path / "stateless", robot, motion, lost=rows), robot)
