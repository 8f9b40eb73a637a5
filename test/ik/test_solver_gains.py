"""Drift, gain bound, damping and null-space share of the solvers: errors die away as theory says."""

import numpy as np
import pytest

from humanoid_control.ik import DofSelection
from humanoid_control.ik.null_space import (
    ComfortCost,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    JacobianTranspose,
    ResolvedRate,
    SolverSettings,
    TruncatedSvd,
)
from humanoid_control.ik.tasks import prepare
from test.ik.solver_cases import arm_of, robot_of

UNBOUNDED = SolverSettings(max_gain=np.inf, clamp=False, keep_range=False)


def follow(solver, robot, task, q, dt, seconds, gain):
    """Track a circle of the left wrist with feed-forward velocity; errors [m] over time."""
    task.gain = gain
    prepare(robot, solver.data, q)
    start, errors = task.value(robot, solver.data, q), []
    for k in range(round(seconds / dt)):
        w, t = 4.0, k * dt
        circle = 0.06 * np.array([np.sin(w * t), 1 - np.cos(w * t), 0.0])
        task.target = start + circle
        task.velocity = 0.06 * w * np.array([np.cos(w * t), np.sin(w * t), 0.0])
        prepare(robot, solver.data, q)
        errors.append(np.linalg.norm(task.error(robot, solver.data, q)))
        q = solver.step(q, [task], dt)[0]
    return np.array(errors)


@pytest.mark.parametrize("cls", [ResolvedRate, TruncatedSvd, Hierarchy], ids=lambda c: c.__name__)
def test_without_feedback_the_error_grows_without_bound_and_with_it_stays(cls):
    """T-05: ten rounds of a circle, integrated by Euler's method."""
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    drifting = follow(cls(robot, settings=UNBOUNDED), robot, task, q, 0.01, 15, 0.0)
    held = follow(cls(robot, settings=UNBOUNDED), robot, task, q, 0.01, 15, 30.0)
    thirds = [drifting[k : k + 500].max() for k in (0, 500, 1000)]
    assert thirds[0] < thirds[1] < thirds[2] and thirds[2] > 1.4 * thirds[0]
    assert held[100:].max() < 0.1 * thirds[0] and held[1000:].max() < 1.05 * held[100:600].max()


@pytest.mark.parametrize(("share", "stable", "overshoots"), [(0.5, True, False), (1.0, True, False), (1.9, True, True)])
def test_error_dies_away_by_one_minus_gain_times_dt(share, stable, overshoots):
    errors = gain_run(share, SolverSettings(max_gain=np.inf))
    told = np.abs(errors[:-1]) > 1e-9
    ratio = errors[1:][told] / errors[:-1][told]
    assert np.allclose(ratio, 1 - share, atol=0.03)
    assert (ratio[0] < -0.05) == overshoots and (abs(errors[-1]) < abs(errors[0])) == stable


def test_gain_above_twice_the_bound_destabilises_unless_it_is_held_back():
    """T-06, both sides of K = 2/dt, and the bound that solvers keep by themselves."""
    assert np.abs(gain_run(1.95, SolverSettings(max_gain=np.inf, clamp=False), 60))[-1] < 0.1 * 1e-3
    grown = np.abs(gain_run(2.1, SolverSettings(max_gain=np.inf, clamp=False), 60))
    assert grown[-1] > 20 * grown[0]
    held = np.abs(gain_run(2.1, SolverSettings(), 60))
    assert held[-1] < 1e-9, "max_gain holds the gain to 1/dt"


def gain_run(share, settings, steps=12):
    """Signed error of a hand 1 mm off its target, along the offset, for a gain of share / dt."""
    robot, dt = robot_of("hrp2", "fixed"), 0.01
    task, q = arm_of(robot)
    solver = ResolvedRate(robot, settings=settings)
    prepare(robot, solver.data, q)
    offset = np.array([6e-4, 8e-4, 0.0])
    task.target, task.gain, errors = task.value(robot, solver.data, q) + offset, share / dt, []
    for _ in range(steps):
        prepare(robot, solver.data, q)
        errors.append(task.error(robot, solver.data, q) @ offset / 1e-3)
        q = solver.step(q, [task], dt)[0]
    return np.array(errors)


def test_null_space_motion_gives_way_before_the_task_does():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0] + [0.02, 0, 0]
    eager = ResolvedRate(robot, [ComfortCost(robot.postures["zero"] + 1.0, 80.0)])
    v, report = eager.velocity(q, [task], 0.01)
    prepare(robot, robot.data, q)
    J, wanted = task.rows(robot, robot.data, q)
    assert report.null_scale < 1 and report.speed_scale == 1 and np.allclose(J @ v, wanted)
    assert np.abs(v / robot.velocity).max() == pytest.approx(1)
    task.target = task.target + [0.5, 0.3, 0]
    v, report = eager.velocity(q, [task], 0.01)
    J, wanted = task.rows(robot, robot.data, q)
    assert report.speed_scale < 1 and np.allclose(J @ v, report.speed_scale * wanted, atol=1e-9), "slower, same way"


def test_transposed_jacobian_never_raises_the_error_and_follows_worse():
    """Lyapunov's argument of 2.6, and the price: beside the resolved rate it lags behind a moving target."""
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target, task.gain, solver = np.array([0.3, 0.35, 1.1]), 20.0, JacobianTranspose(robot)
    errors = []
    for _ in range(400):
        q = solver.step(q, [task], 0.01)[0]
        prepare(robot, robot.data, q)
        errors.append(np.linalg.norm(task.error(robot, robot.data, q)))
    assert np.all(np.diff(errors) <= 1e-12)
    task, q = arm_of(robot)
    lag = {c: follow(c(robot), robot, task, q, 0.01, 4, 30.0)[100:].max() for c in (JacobianTranspose, ResolvedRate)}
    assert lag[JacobianTranspose] > 10 * lag[ResolvedRate]


def test_damping_threshold_from_typical_postures_acts_only_near_singularities():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    dofs = DofSelection(robot, [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))])
    schedule = DampingSchedule.typical(robot, [task], dofs)
    solver = DampedLeastSquares(robot, dofs=dofs, schedule=schedule)
    task.target = np.array([0.3, 0.3, 1.0])
    assert solver.velocity(q, [task], 0.01)[1].damping == 0
    report = solver.velocity(robot.q("zero"), [task], 0.01)[1]
    assert report.damping > 0 and report.manipulability < schedule.threshold
