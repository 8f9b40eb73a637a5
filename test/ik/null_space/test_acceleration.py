"""Resolved acceleration: the loop's own error dynamics, velocities that never jump, drift terms that matter."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik import DofSelection, FrameTask, JointTask, PointTask, lola_tasks
from humanoid_control.ik.null_space import ComfortCost, ResolvedAcceleration, SolverSettings
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot

FREE = SolverSettings(clamp=False, keep_range=False)


def hand(robot, gain=10.0):
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task = PointTask(robot, "l_wrist", gain=gain, name="hand")
    task.target = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    return task, q


def test_an_error_dies_away_as_the_critically_damped_oscillator_it_is_made_to_be():
    """From rest, 2 cm off: e (1 + k t) exp(-k t) with k the task's gain (4.20)."""
    robot, dt, k = load_robot("hrp2", "fixed"), 0.001, 8.0
    task, q = hand(robot, k)
    task.target = task.target + [0.012, 0.0, -0.016]
    solver, errors = ResolvedAcceleration(robot, settings=FREE), []
    for _ in range(800):
        prepare(robot, solver.data, q)
        errors.append(task.error(robot, solver.data, q) @ [0.6, 0, -0.8])
        q, _, report = solver.step(q, [task], dt)
        assert report.ok
    t = np.arange(800) * dt
    assert np.allclose(errors, 0.02 * (1 + k * t) * np.exp(-k * t), atol=3e-4)


def follow(solver, robot, task, q, dt, steps, drift=True):
    """A circle with feed-forward of velocity and acceleration; largest error after the first second [m]."""
    home, w, r, worst = task.target.copy(), 5.0, 0.06, 0.0
    for n in range(steps):
        t = n * dt
        c, s = np.cos(w * t), np.sin(w * t)
        task.target = home + r * np.array([s, 1 - c, 0.0])
        task.velocity, task.acceleration = r * w * np.array([c, s, 0.0]), r * w * w * np.array([-s, c, 0.0])
        prepare(robot, robot.data, q)
        if t > 1:
            worst = max(worst, np.linalg.norm(task.error(robot, robot.data, q)))
        q = solver.step(q, [task], dt)[0]
    return worst


def test_a_moving_target_is_followed_and_without_the_drift_term_worse(monkeypatch):
    robot = load_robot("hrp2", "fixed")
    task, q = hand(robot, 10.0)
    exact = follow(ResolvedAcceleration(robot, settings=FREE), robot, task, q, 0.002, 1500)
    task, q = hand(robot, 10.0)
    monkeypatch.setattr(PointTask, "drift", lambda self, *_: np.zeros(3))
    without = follow(ResolvedAcceleration(robot, settings=FREE), robot, task, q, 0.002, 1500)
    assert exact < 5e-4 and without > 10 * exact


@pytest.mark.parametrize("dt", [0.05, 0.01])
def test_trapezoids_are_exact_for_a_constant_acceleration_in_steps_of_any_length(dt):
    """(4.21): a t^2 / 2 to the last digits, where q + v dt would be off by a t dt / 2."""
    robot = load_robot("hrp2", "fixed")
    task = JointTask(robot, ["l_elbow_flexion"], gain=0.0, name="elbow")
    task.set_target_from(robot.q())
    task.acceleration = np.array([0.8])
    solver, q = ResolvedAcceleration(robot, settings=FREE), robot.q("zero")
    for _ in range(round(1 / dt)):
        q, v, _ = solver.step(q, [task], dt)
    j = robot.joint_index("l_elbow_flexion")
    assert q[j] == pytest.approx(0.4, abs=1e-12) and v[j] == pytest.approx(0.8, abs=1e-12)


def test_what_steps_leave_of_a_moving_target_falls_with_their_length():
    robot, left = load_robot("hrp2", "fixed"), []
    for dt in (0.008, 0.004, 0.002):
        task, q = hand(robot, 10.0)
        left.append(follow(ResolvedAcceleration(robot, settings=FREE), robot, task, q, dt, round(3 / dt)))
    assert left[1] < 0.6 * left[0] and left[2] < 0.6 * left[1]


def test_velocity_is_continuous_when_the_target_jumps():
    """Where the first-order method jumps by the gain times the error, this one only begins to accelerate."""
    robot = load_robot("lola", "floating")
    biped, dt = lola_tasks(robot, gain=10.0), 0.002
    solver, q, vs = ResolvedAcceleration(robot, settings=FREE, dofs=DofSelection(robot, biped.held)), robot.q(), []
    for n in range(300):
        if n == 100:
            com = biped.tasks["center_of_mass"]
            com.target = com.target + [0.02, 0.01, -0.03]
        q, v, _ = solver.step(q, biped.all(), dt)
        vs.append(v)
    vs = np.array(vs)
    assert np.abs(vs[:100]).max() < 1e-9 and np.abs(vs[150]).max() > 0.05
    assert np.abs(np.diff(vs, axis=0)).max() / dt < 40
    prepare(robot, solver.data, q)
    feet = biped.tasks["left_foot_position"], biped.tasks["right_foot_orientation"]
    assert all(np.abs(t.error(robot, solver.data, q)).max() < 1e-4 for t in feet)


@pytest.mark.parametrize("objective", [False, True])
def test_null_space_motion_comes_to_rest_or_to_what_the_objectives_want(objective):
    robot = load_robot("hrp2", "fixed")
    task, q = hand(robot)
    neutral = robot.postures["neutral"]
    objectives = [ComfortCost(neutral, 3.0)] if objective else []
    solver = ResolvedAcceleration(robot, objectives, FREE)
    solver.v = np.random.default_rng(1).normal(size=robot.nv) * 0.5  # moving already, in no way that the task wants
    for _ in range(3000):
        q, v, _ = solver.step(q, [task], 0.004)
    assert np.abs(v).max() < 1e-3
    prepare(robot, solver.data, q)
    assert np.abs(task.error(robot, solver.data, q)).max() < 1e-6
    other = robot.joint_index("r_elbow_flexion")
    assert (abs(q[other] - neutral[other]) < 1e-3) == objective


def test_speed_limits_hold_and_joints_stop_at_the_end_of_their_range():
    robot = load_robot("hrp2", "fixed")
    frame = FrameTask(robot, "l_hand", gain=20.0, name="hand")
    frame.set_target(pin.SE3(np.eye(3), np.full(3, 2.0)))
    solver, q = ResolvedAcceleration(robot), robot.q()
    for _ in range(800):
        q, v, _ = solver.step(q, [frame], 0.005)
        assert np.isfinite(q).all() and (np.abs(v) <= robot.velocity * (1 + 1e-9)).all()
        assert (q >= robot.lower - 1e-12).all() and (q <= robot.upper + 1e-12).all()
