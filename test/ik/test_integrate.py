"""Order of the integrators, by halving the step, on motions of a floating robot whose base turns."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.integrate import solve_ivp

from humanoid_control.ik import DofSelection, PointTask
from humanoid_control.ik.integrate import AdamsMoulton, explicit_euler
from humanoid_control.ik.null_space import ResolvedRate, SolverSettings
from humanoid_control.robots import load_robot

EXACTLY = SolverSettings(max_gain=np.inf, clamp=False, keep_range=False)


def turning(robot):
    """A velocity that depends on time and configuration, and turns the base about changing axes."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=robot.nv), rng.normal(size=(robot.nv, robot.nq)) / robot.nq

    def rate(t, q):
        v = np.sin(2 * t + a) + np.tanh(b @ q)
        for follower, leader, multiplier, _ in robot.mimic:
            v[robot.iv + follower] = multiplier * v[robot.iv + leader]
        return v

    return rate


def moved(robot, rate, q, steps, method, seconds=1.0):
    dt = seconds / steps
    stepper = AdamsMoulton(robot, rate)
    for k in range(steps):
        q = stepper.step(k * dt, q, dt) if method == "adams" else explicit_euler(robot, q, rate(k * dt, q), dt)
    return q


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize(("method", "order", "steps"), [("euler", 1, 80), ("adams", 4, 40)])
def test_error_falls_with_the_order_when_the_step_is_halved(base, method, order, steps):
    robot = load_robot("lola", base)
    rate, q = turning(robot), robot.q()
    best = moved(robot, rate, q, 1280, "adams")
    errors = []
    for n in (steps, 2 * steps, 4 * steps):
        end = moved(robot, rate, q, n, method)
        errors.append(np.linalg.norm(pin.difference(robot.model, best, end)))
        if base == "floating":
            assert abs(np.linalg.norm(end[3:7]) - 1) < 1e-12
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - order) < 0.35), orders


def test_adams_moulton_is_what_scipy_finds():
    robot = load_robot("lola", "fixed")
    rate, q = turning(robot), robot.q()
    exact = solve_ivp(rate, (0, 1), q, method="DOP853", rtol=1e-12, atol=1e-13).y[:, -1]
    assert np.allclose(moved(robot, rate, q, 400, "adams"), exact, atol=1e-9)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_predictor_corrector_follows_a_task_to_fourth_order_without_feedback(base):
    """Section 4.3.1: the drift that Euler leaves without feedback falls by 2, the predictor-corrector's by 16."""
    robot = load_robot("hrp2", base)
    q0 = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    frame = robot.point_frame("l_wrist")
    start, w = robot.frame_positions(q0, [frame])[0], 4.0
    task = PointTask(robot, frame, gain=0.0, name="hand")
    task.set_target(np.zeros(3))
    solver = ResolvedRate(
        robot, settings=EXACTLY, dofs=DofSelection(robot, weights={"base": 3.0} if base == "floating" else {})
    )

    def rate(t, q):
        task.velocity = 0.06 * w * np.array([np.cos(w * t), np.sin(w * t), 0.0])
        return solver.velocity(q, [task], 0.01)[0]

    end = start + 0.06 * np.array([np.sin(w), 1 - np.cos(w), 0.0])
    drift = {}
    for method in ("euler", "adams"):
        for steps in (50, 100):
            q = moved(robot, rate, q0, steps, method)
            drift[method, steps] = np.linalg.norm(robot.frame_positions(q, [frame])[0] - end)
    assert 1.8 < drift["euler", 50] / drift["euler", 100] < 2.2
    assert 12 < drift["adams", 50] / drift["adams", 100] < 24
    assert drift["adams", 50] < 1e-3 * drift["euler", 50]


def test_euler_keeps_ranges_and_never_moves_a_joint_farther_out():
    robot = load_robot("lola", "floating")
    rng = np.random.default_rng(2)
    for _ in range(50):
        joints = rng.uniform(robot.lower - 0.2, robot.upper + 0.2)
        robot.follow(joints)
        q = robot.q(joints)
        after = robot.joints(explicit_euler(robot, q, rng.normal(size=robot.nv) * 20, 0.05, keep_range=True))
        assert (after >= np.minimum(robot.lower, joints) - 1e-12).all()
        assert (after <= np.maximum(robot.upper, joints) + 1e-12).all()
