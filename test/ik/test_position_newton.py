"""Newton's method and Levenberg and Marquardt's: roots, order of convergence, warm starts."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares

from humanoid_control.errors import ConfigError
from humanoid_control.ik import DofSelection, FramePoint, PointTask, lola_tasks
from humanoid_control.ik.position import (
    Armijo,
    Bfgs,
    ConjugateGradient,
    Descent,
    GaussNewton,
    LevenbergMarquardt,
    NewtonRaphson,
    Stop,
    StopSettings,
    WolfePowell,
)
from humanoid_control.ik.position.solver import Problem
from test.ik.position_problems import hand_problem, robot_of


def test_newton_and_levenberg_marquardt_find_the_roots_that_scipy_finds_on_a_square_problem():
    """Lola's 28 rows: isolated roots, so the same start leads to the same posture."""
    robot = robot_of("lola", "floating")
    biped, rng = lola_tasks(robot), np.random.default_rng(3)
    dofs = DofSelection(robot, biped.held)
    for _ in range(3):
        joints = robot.postures["neutral"] + 0.15 * rng.normal(size=robot.n)
        for name in biped.held:
            joints[robot.joint_index(name)] = robot.postures["neutral"][robot.joint_index(name)]
        goal = robot.q(joints)
        biped.take_targets(goal)
        problem = Problem(robot, biped.all(), dofs, robot.model.createData())
        theirs = least_squares(
            lambda x, p=problem: p.residual(p.moved(robot.q(), x)), np.zeros(dofs.k), xtol=1e-15, ftol=1e-15
        )
        assert np.sqrt(2 * theirs.cost) < 1e-7
        expected = problem.moved(robot.q(), theirs.x)
        for solver in (NewtonRaphson(robot, dofs=dofs), LevenbergMarquardt(robot, dofs=dofs)):
            found = solver.solve(robot.q(), biped.all())
            assert found.converged and found.iterations < 15
            assert np.allclose(found.q, expected, atol=1e-6) and np.allclose(found.q, goal, atol=1e-6)


def test_newton_converges_quadratically_near_a_regular_root():
    robot, tasks, q = hand_problem(np.random.default_rng(5))
    found = NewtonRaphson(robot, StopSettings(converged=1e-13)).solve(q, tasks)
    h = [x for x in found.history if 1e-7 < x < 0.05]
    assert len(h) >= 2 and all(b < 10 * a * a for a, b in pairwise(h))


def test_newton_step_is_the_weighted_pseudo_inverse():
    robot, tasks, q = hand_problem(np.random.default_rng(6))
    dofs = DofSelection(robot, weights={"waist_rotation": 7.0, "l_elbow_flexion": 0.3})
    found = NewtonRaphson(robot, StopSettings(iterations=1), dofs).solve(q, tasks)
    r, J = Problem(robot, tasks, dofs, robot.data).both(q)
    W = np.diag(dofs.mobility)
    step = -W @ J.T @ np.linalg.solve(J @ W @ J.T, r)
    assert np.allclose(found.q, pin.integrate(robot.model, q, step), atol=1e-10)


@pytest.mark.parametrize("refresh", [1, 2, 4])
def test_a_jacobian_kept_for_some_iterations_saves_computing_it_and_still_arrives(refresh):
    robot, tasks, q = hand_problem(np.random.default_rng(5))
    q = pin.integrate(robot.model, NewtonRaphson(robot).solve(q, tasks).q, 0.1 * np.sin(np.arange(robot.nv)))
    for solver in (NewtonRaphson(robot, refresh=refresh), Descent(robot, refresh=refresh)):
        found = solver.solve(q, tasks)
        assert found.converged
        if isinstance(solver, NewtonRaphson):
            assert found.jacobians == -(-(found.iterations + 1) // refresh) and found.residuals == found.iterations + 1


def test_warm_start_needs_fewer_iterations_than_a_cold_one():
    robot = robot_of("lola", "floating")
    biped = lola_tasks(robot)
    dofs, q = DofSelection(robot, biped.held), robot.q()
    solver, warm, cold = NewtonRaphson(robot, StopSettings(converged=1e-6), dofs), 0, 0
    foot = biped.tasks["right_foot_position"].target.copy()
    for k in range(30):
        biped.tasks["right_foot_position"].target = foot + [0.15 * np.sin(0.1 * k), 0.0, 0.1 * np.sin(0.08 * k) ** 2]
        found = solver.solve(q, biped.all())
        assert found.converged
        warm, q = warm + found.iterations, found.q
        cold += solver.solve(robot.q(), biped.all()).iterations
    assert warm < 0.8 * cold


def test_newton_without_a_root_says_why_it_ended_and_does_not_hang():
    robot = robot_of("hrp2", "fixed")
    task = PointTask("hand", FramePoint(robot, robot.point_frame("l_wrist")))
    task.target = np.array([3.0, 3.0, 1.0])
    found = NewtonRaphson(robot, StopSettings(iterations=50)).solve(robot.q(), [task])
    assert found.stop in (Stop.ITERATIONS, Stop.SINGULAR) and not found.converged
    twice = NewtonRaphson(robot).solve(robot.q(), [task, PointTask("same", task.point)])
    assert twice.stop is Stop.SINGULAR
    with pytest.raises(ConfigError, match="Newton-Raphson: 36 rows for 30 free velocities"):
        many = [PointTask(str(k), FramePoint(robot, robot.point_frame("l_wrist"), (0.01 * k, 0, 0))) for k in range(12)]
        NewtonRaphson(robot).solve(robot.q(), many)


def test_newton_needs_the_fewest_iterations_away_from_singularities():
    """T-07: before every way downhill. T-08: Wolfe's conditions are as good as Armijo's with BFGS; not better, here."""
    counts = {name: [] for name in ("newton", "gauss-newton", "bfgs wolfe", "bfgs armijo", "cg wolfe")}
    rng, stop = np.random.default_rng(8), StopSettings(iterations=1000)
    for _ in range(8):
        robot, tasks, q = hand_problem(rng)
        solvers = (
            NewtonRaphson(robot, stop),
            Descent(robot, GaussNewton(1e-6), WolfePowell(), stop),
            *(Descent(robot, Bfgs(), rule, stop) for rule in (WolfePowell(), Armijo())),
            Descent(robot, ConjugateGradient(), WolfePowell(), stop),
        )
        for name, solver in zip(counts, solvers, strict=True):
            found = solver.solve(q, tasks)
            assert found.stop is Stop.CONVERGED, name
            counts[name].append(found.iterations)
    median = {name: np.median(n) for name, n in counts.items()}
    assert median["newton"] <= median["gauss-newton"] < 0.5 * median["bfgs wolfe"] < 0.5 * median["cg wolfe"]
    assert median["bfgs wolfe"] <= 1.1 * median["bfgs armijo"]
