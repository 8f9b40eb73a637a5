"""Clips slowed locally, by motions whose balance and turns are known in closed form."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from humanoid_control.evaluation import measure_clip
from humanoid_control.evaluation.stretching import feasible_row, stretch_notes, stretched
from humanoid_control.performing import make_feasible
from humanoid_control.performing.export import as_whole_body
from humanoid_control.performing.local_pace import Stretch
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting import WholeBodyMotion, WholeBodyTrajectory
from humanoid_control.retargeting.trajectory import forward_differences
from humanoid_control.retargeting.whole_body.scaling import WholeBodyTargets
from humanoid_control.robots import load_robot
from test.robots_under_test import nightly

RATE, SECONDS, MIDDLE = 100.0, 4.0, 2.0
TIME = np.arange(round(SECONDS * RATE)) / RATE
DURING = np.exp(-(((TIME - MIDDLE) / 0.7) ** 2))
"""Window about the middle of the clip; nothing at its ends."""


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


def motion_of(robot, q, contacts=None):
    """Return a whole-body motion of configurations (T, nq)."""
    T = len(q)
    contacts = np.ones((T, 4), dtype=bool) if contacts is None else contacts
    positions = np.ascontiguousarray(q[:, 7:])
    trajectory = WholeBodyTrajectory(
        tuple(robot.joint_names), RATE, positions, forward_differences(positions, RATE), np.zeros((T, 20)), np.zeros(T),
        np.full(T, np.inf), np.zeros(T, dtype=int), q[:, :3].copy(), q[:, 3:7].copy(), contacts,
    )  # fmt: skip
    points = np.random.default_rng(1).normal(size=(T, 12, 3))
    targets = WholeBodyTargets("made", RATE, points, None, np.zeros((T, 2, 5)), contacts, np.zeros(T))
    return WholeBodyMotion(trajectory, targets)


def swaying(robot, sway):
    """Return q (T, nq) of a robot whose pelvis moves sideways by `sway` (T,) [m] over soles that stand."""
    soles = RigidSoles.of(robot)
    b = sway / soles.length
    q = np.repeat(robot.q("neutral")[None], len(sway), axis=0)
    for side, sign in (("l", 1.0), ("r", -1.0)):
        q[:, 7 + robot.index[f"{side}_hip_abduction"]] += sign * b
        q[:, 7 + robot.index[f"{side}_ankle_abduction"]] -= sign * b
    stand = q[0].copy()
    R0, p0 = soles.poses(robot, stand[None])
    R, p = soles.poses(robot, q)
    for k in range(len(q)):  # the pelvis goes where the left sole stays
        X = pin.XYZQUATToSE3(q[k, :7])
        X = pin.SE3(R0[0, 0], p0[0, 0]) * pin.SE3(R[k, 0], p[k, 0]).inverse() * X
        q[k, :7] = pin.SE3ToXYZQUAT(X)
    q[:, 2] -= p0[0, :, 2].mean()
    assert np.abs(soles.poses(robot, q)[1] - soles.poses(robot, q)[1][:1]).max() < 2e-3 + 0.25 * sway.max()
    return q


def turning(robot, most):
    """Return q (T, nq) of a robot that turns about the vertical by `most` [rad] in the middle of the clip."""
    yaw = most / (1.0 + np.exp(-(TIME - MIDDLE) / 0.05))
    q = swaying(robot, 0.0 * TIME)
    q[:, 3:7] = Rotation.from_euler("z", yaw[:, None]).as_quat()
    q[230:, 3:7] *= -1.0  # the sign of a quaternion may jump
    return q


def yaw_rates(trajectory):
    """Return the turn about the vertical between frames [rad/s], by SciPy."""
    R = Rotation.from_quat(trajectory.root_quaternion)
    return np.array([(b * a.inv()).as_rotvec()[2] for a, b in pairwise(R)]) * trajectory.rate


def beyond(robot, trajectory):
    """Return frames (T - 2,) whose zero-moment point, of a cart on a table, is beside both soles."""
    q = trajectory.q()
    c = np.array([pin.centerOfMass(robot.model, robot.data, x, False).copy() for x in q])
    a = (c[2:] - 2 * c[1:-1] + c[:-2]) * trajectory.rate**2
    y = c[1:-1, 1] - (c[1:-1, 2] / 9.81) * a[:, 1]
    soles = RigidSoles.of(robot)
    edge = 0.095 + soles.corners[0, :, 1].max()
    return np.abs(y) > edge


def same_outside(before, after, begin, end):
    """Check that all frames up to `begin` and from `end` [s] of the clip on are those of the clip."""
    a, b = round(begin * RATE), len(before.positions) - round(end * RATE)
    for name in ("positions", "root_position", "root_quaternion", "contacts", "errors", "clearance"):
        x, y = getattr(before, name), getattr(after, name)
        np.testing.assert_array_equal(y[:a], x[:a])
        np.testing.assert_array_equal(y[-b:], x[-b:])


@given(st.lists(st.floats(0.1, 1.0), min_size=6, max_size=60))
def test_frames_of_unchanged_parts_are_whole_and_time_never_runs_faster(paces):
    s = Stretch.of(np.array(paces))
    assert s.clock[0] == 0.0 and s.clock[-1] == len(paces) - 1
    assert (np.diff(s.clock) > 0).all() and np.diff(s.clock).max() < 1.0 + 1e-9
    kept = np.flatnonzero(s.pace == 1.0)
    assert np.isin(kept, s.clock).all(), "each frame of the clip's own pace is shown as it is"
    spent = 0.5 * (1 / s.pace[1:] + 1 / s.pace[:-1]).sum()
    assert spent == pytest.approx(len(s.clock) - 1, abs=1e-6)
    assert (s.pace <= np.array(paces) + 0.003).all()


@pytest.mark.parametrize("most", [nightly(0.9), 2.5, nightly(6.0)])
def test_a_fast_turn_is_slowed_there_alone(robot, most):
    given_motion = motion_of(robot, turning(robot, most))
    assert np.abs(yaw_rates(given_motion.trajectory)).max() > 4.1
    after = stretched(given_motion, robot)
    t = after.motion.trajectory
    rates = np.abs(yaw_rates(t))
    assert 2.5 < rates.max() <= 4.0
    same_outside(given_motion.trajectory, t, 0.8, 3.2)
    assert Rotation.from_quat(t.root_quaternion[[0, -1]]).as_euler("xyz")[1, 2] == pytest.approx(
        Rotation.from_quat(given_motion.trajectory.root_quaternion[-1]).as_euler("xyz")[2], abs=1e-9
    )
    np.testing.assert_array_equal(t.velocities, forward_differences(t.positions, RATE))
    row = after.row
    assert row["yaw_rate_before"] == pytest.approx(np.abs(yaw_rates(given_motion.trajectory)).max(), abs=0.2)
    assert row["yaw_rate"] == pytest.approx(rates.max(), abs=0.05)
    assert 0.7 * 4.0 / row["yaw_rate_before"] < row["least_pace"] < 1.0 and 0 < row["slowed_percent"] < 45
    assert row["seconds"] == pytest.approx(len(t.positions) / RATE)
    assert row["seconds"] > row["seconds_before"] == SECONDS
    assert len(after.motion.targets.positions) == len(t.positions)
    assert "slowed in" in stretch_notes(row)[0]


def test_a_sway_beyond_the_soles_is_slowed_until_they_carry_it(robot):
    """Twice a second by 4 cm, the zero-moment point of a cart on a table is beside the soles; slower it is not."""
    given_motion = motion_of(robot, swaying(robot, 0.04 * DURING * np.sin(2 * np.pi * 2.0 * (TIME - MIDDLE))))
    before = beyond(robot, given_motion.trajectory)
    after = stretched(given_motion, robot)
    t = after.motion.trajectory
    left = beyond(robot, t)
    assert before.mean() > 0.1 and left.sum() < 0.3 * before.sum()
    row = after.row
    assert row["infeasible_percent_before"] > 10 and row["infeasible_percent"] < 0.5 * row["infeasible_percent_before"]
    assert row["worst_second_percent"] <= row["worst_second_percent_before"]
    assert row["grade"] <= row["grade_before"]
    same_outside(given_motion.trajectory, t, 0.3, 3.7)


@pytest.mark.parametrize("what", ["calm", "flight", "lean"])
def test_what_is_well_or_no_pace_mends_is_the_same_motion(robot, what):
    sway = {"calm": 0.01, "flight": 0.01, "lean": 0.4}[what] * DURING
    contacts = np.ones((len(TIME), 4), dtype=bool)
    if what == "flight":
        contacts[160:220] = False
    given_motion = motion_of(robot, swaying(robot, sway), contacts)
    after = stretched(given_motion, robot)
    assert after.motion is given_motion
    assert after.row["slowed_percent"] == 0 and after.row["least_pace"] == 1 and not stretch_notes(after.row)
    assert (after.row["infeasible_percent_before"] > 5) == (what != "calm")
    assert after.row["grade"] == after.row["grade_before"] and after.row["seconds"] == after.row["seconds_before"]


def test_a_sway_is_slowed_and_a_flight_beside_it_is_not(robot):
    sway = 0.04 * np.exp(-(((TIME - 1.3) / 0.4) ** 2)) * np.sin(2 * np.pi * 2.0 * (TIME - 1.3))
    contacts = np.ones((len(TIME), 4), dtype=bool)
    contacts[340:380] = False
    given_motion = motion_of(robot, swaying(robot, sway), contacts)
    t = stretched(given_motion, robot).motion.trajectory
    assert len(t.positions) > len(TIME) and (~t.contacts[:, 0]).sum() == 40
    same_outside(given_motion.trajectory, t, 0.1, 3.1)


def test_a_joint_beyond_its_speed_is_slowed_until_it_keeps_it(robot):
    q, j = swaying(robot, 0.0 * TIME), robot.index["l_elbow_flexion"]
    q[:, 7 + j] += 1.5 * robot.velocity[j] * np.clip(TIME - MIDDLE, -0.06, 0.06)
    given_motion = motion_of(robot, q)
    after = stretched(given_motion, robot)
    speeds = np.abs(np.diff(after.motion.trajectory.positions[:, j])) * RATE
    assert 0.8 * robot.velocity[j] < speeds.max() <= robot.velocity[j] * (1 + 1e-6)
    same_outside(given_motion.trajectory, after.motion.trajectory, 1.0, 3.0)


def test_limits_of_joints_hold_between_the_frames_of_the_clip(robot):
    """An arm at its speed limit and at the end of its range, while the robot turns."""
    q, j = turning(robot, 2.0), robot.index["l_shoulder_flexion"]
    ramp = robot.velocity[j] / RATE * np.cumsum(np.abs(TIME - MIDDLE) < 0.1)
    q[:, 7 + j] = np.minimum(robot.upper[j], robot.upper[j] - ramp[-1] + ramp)
    given_motion = motion_of(robot, q)
    t = stretched(given_motion, robot).motion.trajectory
    assert len(t.positions) > len(q)
    assert (np.abs(np.diff(t.positions, axis=0)).max(axis=0) * RATE <= robot.velocity * (1 + 1e-6)).all()
    assert (t.positions >= robot.lower).all() and (t.positions <= robot.upper).all()


def test_contacts_and_targets_are_those_of_the_shown_moment(robot):
    contacts = np.ones((len(TIME), 4), dtype=bool)
    contacts[190:200, 2:] = False
    given_motion = motion_of(robot, turning(robot, 2.5), contacts)
    after = stretched(given_motion, robot)
    off = np.flatnonzero(~after.motion.trajectory.contacts[:, 2])
    assert (np.diff(off) == 1).all() and len(off) > 12, "one gap, longer than it was"
    np.testing.assert_array_equal(after.motion.trajectory.contacts, after.motion.targets.contacts)
    x, y = given_motion.targets.positions, after.motion.targets.positions
    assert y.max() <= x.max() and y.min() >= x.min()
    np.testing.assert_array_equal(y[:100], x[:100])


def test_a_feasible_motion_is_slowed_by_the_same_law_and_told(robot):
    q = swaying(robot, 0.0 * TIME)
    q[:, 3:7] = Rotation.from_euler("z", 1.6 * np.exp(-(((TIME[:, None] - MIDDLE) / 0.14) ** 2))).as_quat()
    given_motion = motion_of(robot, q)
    dynamic = make_feasible(given_motion.trajectory, robot)
    whole = as_whole_body(dynamic, given_motion.targets)
    row = feasible_row(given_motion, robot, dynamic, measure_clip(robot, whole.trajectory))
    assert row["yaw_rate_before"] > 5 and row["yaw_rate"] <= 4.2 and row["least_pace"] < 0.9
    assert row["seconds"] > row["seconds_before"] and row["slowed_percent"] > 5


def test_a_robot_without_masses_is_slowed_by_its_turns_alone(robot):
    light = load_robot("hrp2", "floating")
    for k in range(light.model.njoints):
        light.model.inertias[k] = pin.Inertia.Zero()
    assert not light.mass > 0
    after = stretched(motion_of(light, turning(robot, 2.5)), light)
    assert after.row["yaw_rate"] <= 4.0 and after.row["infeasible_percent"] == 0.0
