"""Motion quality: limits, jerk, range used, and joints that lag behind the best posture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from humanoid_control.evaluation.motion_quality import drift_check, joint_use, measure_motion
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import (
    POINTS,
    JointTrajectory,
    Retargeter,
    RetargetSettings,
    retarget_clip,
    scale_to_robot,
)
from humanoid_control.robots import load_robot

RATE = 100.0


@pytest.fixture(scope="module")
def robot():
    return load_robot("wabian2", "fixed")


def motion(robot, joint, angles, rate=RATE):
    T = len(angles)
    q = np.tile(robot.postures["neutral"], (T, 1))
    q[:, robot.joint_index(joint)] = angles
    unused = np.zeros(T)
    return JointTrajectory(robot.joint_names, rate, q, np.zeros_like(q), np.zeros((T, 7)), unused, unused, unused)


@pytest.mark.parametrize("rate", [25.0, 100.0])
def test_a_cubic_has_constant_jerk(robot, rate):
    t = np.arange(80) / rate
    quality, frames = measure_motion(robot, motion(robot, "waist_rotation", 0.5 * t**3, rate))
    assert frames.jerk[3:] == pytest.approx(3.0, rel=1e-5)
    assert frames.acceleration[-1] == pytest.approx(3 * (t[-1] - 1 / rate), rel=1e-6)
    assert frames.jerk[:3].tolist() == [0, 0, 0]
    assert quality.jerk.max == pytest.approx(3.0, rel=1e-5)


def test_speed_acceleration_and_jerk_of_a_sine(robot):
    w, a, t = 3.0, 0.4, np.arange(2000) / 500.0
    quality, frames = measure_motion(robot, motion(robot, "l_elbow_flexion", 0.6 + a * np.sin(w * t), 500.0))
    assert quality.speed.max == pytest.approx(a * w, rel=1e-3)
    assert quality.acceleration.max == pytest.approx(a * w**2, rel=1e-3)
    assert quality.jerk.max == pytest.approx(a * w**3, rel=1e-2)
    k = robot.joint_index("l_elbow_flexion")
    assert quality.speed_share == pytest.approx(a * w / robot.velocity[k], rel=1e-3)
    assert len(frames.speed) == len(t)
    assert 0 < quality.speed.p99 < quality.speed.max


def test_frames_at_the_speed_limit_are_counted(robot):
    k = robot.joint_index("waist_rotation")
    step = robot.velocity[k] / RATE
    angles = np.cumsum([0, step, step, 0.5 * step, -step, 0, 0, 0])
    quality, frames = measure_motion(robot, motion(robot, "waist_rotation", angles))
    one = 1 / len(robot.imitation_joints)
    assert frames.at_speed_limit == pytest.approx([0, one, one, 0, one, 0, 0, 0])
    assert quality.frames_at_speed_limit == 3 / 8 and quality.beyond_position_limit == 0


def test_a_joint_outside_its_range_is_reported(robot):
    k = robot.joint_index("waist_flexion")
    quality, frames = measure_motion(robot, motion(robot, "waist_flexion", [0, 0, robot.upper[k] + 0.02, 0]))
    assert quality.beyond_position_limit == pytest.approx(0.02)
    assert frames.at_position_limit[2] > frames.at_position_limit[0]


def test_two_frames_are_enough(robot):
    quality, _ = measure_motion(robot, motion(robot, "waist_rotation", [0.0, 0.01]))
    assert quality.speed.max == pytest.approx(1.0) and quality.jerk.max == 0


def test_range_used_is_told_beside_the_range_there_is(robot):
    k = robot.joint_index("waist_lateral_flexion")  # 50 deg to both sides
    angles = np.radians([0, 10, -15, 49.5, 49.9, 0, 0, 0])
    use = {u.joint: u for u in joint_use(robot, motion(robot, "waist_lateral_flexion", angles).positions)}
    u = use["waist_lateral_flexion"]
    assert (u.lower, u.upper) == (robot.lower[k], robot.upper[k])
    assert np.degrees([u.used_lower, u.used_upper]) == pytest.approx([-15, 49.9])
    assert u.share == pytest.approx(64.9 / 100) and (u.at_lower, u.at_upper) == (0, 2 / 8)
    assert use["waist_rotation"].share == 0 and list(use) == [robot.joint_names[j] for j in robot.imitation_joints]


@pytest.fixture(scope="module")
def targets(robot):
    return scale_to_robot(find_body_points(load_clip("dance").crop(2, 6)), robot)


def trajectory(robot, targets, q):
    T = len(q)
    unused = np.zeros(T)
    zeros = np.zeros((T, 7))
    return JointTrajectory(robot.joint_names, targets.rate, q, np.zeros_like(q), zeros, unused, unused, unused)


def test_solved_anew_in_every_frame_there_is_next_to_no_drift(robot, targets):
    solver = Retargeter(robot)
    frames = np.unique(np.linspace(0, len(targets) - 1, 5).round().astype(int))
    positions = np.tile(robot.postures["neutral"], (len(targets), 1))
    for k in frames:
        positions[k] = solver.start(targets.positions[k])
    check = drift_check(robot, targets, trajectory(robot, targets, positions))
    assert check.frames.tolist() == frames.tolist()
    assert np.all(check.attained - check.best < 2e-3), "a first posture is pulled to rest a little"


def test_a_joint_knocked_off_is_lag_that_settles(robot, targets):
    positions = retarget_clip(targets, robot).positions.copy()
    k = robot.joint_index("waist_rotation")
    positions[-1, k] += 0.2
    check = drift_check(robot, targets, trajectory(robot, targets, positions))
    assert check.attained[-1] - check.settled[-1] > 0.02
    assert check.settled[-1] - check.best[-1] < 0.005
    assert check.drift > 0.02 and check.growth > 0.02


def test_attained_settled_best_never_grow(robot, targets):
    for iterations in (1, 3):
        solved = retarget_clip(targets, robot, RetargetSettings(iterations=iterations))
        check = drift_check(robot, targets, solved, places=4)
        assert np.all(check.attained >= check.settled) and np.all(check.settled >= check.best)
        points = np.array([robot.point_positions(robot.q(solved.positions[k]), POINTS) for k in check.frames])
        rms = np.sqrt(((points - targets.positions[check.frames]) ** 2).sum(axis=2).mean(axis=1))
        assert check.attained == pytest.approx(rms)


def test_best_is_what_another_minimiser_finds(robot, targets):
    check = drift_check(robot, targets, retarget_clip(targets, robot), places=3)
    m = robot.imitation_joints
    for frame, best in zip(check.frames, check.best, strict=True):

        def cost(x, frame=frame):
            joints = robot.postures["neutral"].copy()
            joints[m] = x
            p = robot.point_positions(robot.q(joints), POINTS)
            return float(np.sum((p - targets.positions[frame]) ** 2))

        start = Retargeter(robot).start(targets.positions[frame])[m]
        bounds = list(zip(robot.lower[m], robot.upper[m], strict=True))
        found = minimize(cost, start, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500, "ftol": 1e-14})
        assert best <= np.sqrt(found.fun / 7) + 2e-4
