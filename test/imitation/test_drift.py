"""The drift check tells lag, a wrong posture, and none of both apart."""

import numpy as np
import pytest
from scipy.optimize import minimize

from humanoid_control.evaluation.motion_quality import drift_check
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import POINTS, JointTrajectory, Retargeter, RetargetSettings, retarget, scale_to_robot
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("wabian2", "fixed")


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
    positions = retarget(targets, robot).positions.copy()
    k = robot.joint_index("waist_rotation")
    positions[-1, k] += 0.2
    check = drift_check(robot, targets, trajectory(robot, targets, positions))
    assert check.attained[-1] - check.settled[-1] > 0.02
    assert check.settled[-1] - check.best[-1] < 0.005
    assert check.drift > 0.02 and check.growth > 0.02


def test_attained_settled_best_never_grow(robot, targets):
    for iterations in (1, 3):
        solved = retarget(targets, robot, RetargetSettings(iterations=iterations))
        check = drift_check(robot, targets, solved, places=4)
        assert np.all(check.attained >= check.settled) and np.all(check.settled >= check.best)
        points = np.array([robot.point_positions(robot.q(solved.positions[k]), POINTS) for k in check.frames])
        rms = np.sqrt(((points - targets.positions[check.frames]) ** 2).sum(axis=2).mean(axis=1))
        assert check.attained == pytest.approx(rms)


def test_best_is_what_another_minimiser_finds(robot, targets):
    check = drift_check(robot, targets, retarget(targets, robot), places=3)
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
