"""Position solvers: against scipy, the criteria that end them, targets out of reach, Newton near and without a root."""

from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares

from humanoid_control.errors import ConfigError
from humanoid_control.ik import (
    DofSelection,
    FramePoint,
    FrameTask,
    GazeTask,
    HalfSpaceTask,
    OrientationTask,
    PlaneTask,
    PointTask,
    lola_tasks,
)
from humanoid_control.ik.position import (
    Armijo,
    Bfgs,
    ConjugateGradient,
    ConstantStep,
    Descent,
    ExactLineSearch,
    GaussNewton,
    LevenbergMarquardt,
    NewtonRaphson,
    SteepestDescent,
    Stop,
    StopSettings,
    WolfePowell,
)
from humanoid_control.ik.position.solver import TaskResidual
from humanoid_control.ik.tasks import prepare
from test.ik.position.conftest import hand_problem, random_joints, robot_of


def scipys(robot, tasks, q):
    """The residual of the tasks for scipy, which then differentiates it itself."""
    problem = TaskResidual(robot, tasks, DofSelection(robot), robot.model.createData())
    return least_squares(
        lambda x: problem.residual(pin.integrate(robot.model, q, x)),
        np.zeros(robot.nv),
        xtol=1e-15,
        ftol=1e-15,
        gtol=1e-12,
        method="trf",
    )


SOLVERS = {
    "newton": lambda r, **k: NewtonRaphson(r, **k),
    "levenberg-marquardt": lambda r, **k: LevenbergMarquardt(r, **k),
    "gauss-newton": lambda r, **k: Descent(r, GaussNewton(1e-6), WolfePowell(), **k),
    "regularised": lambda r, **k: Descent(r, GaussNewton(0.05), WolfePowell(), **k),
    "bfgs": lambda r, **k: Descent(r, Bfgs(), WolfePowell(), **k),
    "conjugate gradient": lambda r, **k: Descent(r, ConjugateGradient(), ExactLineSearch(), **k),
    "steepest descent": lambda r, **k: Descent(r, SteepestDescent(), ExactLineSearch(), **k),
}


@pytest.mark.parametrize("kind", SOLVERS)
def test_reachable_targets_are_reached(kind):
    rng, slow = np.random.default_rng(1), kind in ("steepest descent", "conjugate gradient")
    stop = StopSettings(iterations=3000 if slow else 200, converged=1e-4 if slow else 1e-9)
    reached = 0
    for _ in range(6):
        robot, tasks, q = hand_problem(rng)
        found = SOLVERS[kind](robot, stop=stop).solve(q, tasks)
        reached += found.converged
        prepare(robot, robot.data, found.q)
        residual = np.linalg.norm(tasks[0].error(robot, robot.data, found.q))
        assert found.residual == pytest.approx(residual, abs=1e-12)
        assert found.converged == (residual < stop.converged)
        assert found.iterations == len(found.history) - 1 or kind == "levenberg-marquardt"
    assert reached >= 5, "at most one of six gets caught in a local minimum"


@pytest.mark.parametrize("kind", ["levenberg-marquardt", "regularised", "bfgs"])
def test_unreachable_targets_end_where_scipy_ends(kind):
    """Same residual to 1e-6, 1e-5 for the slowest: the nearest posture, not just a near one."""
    rng = np.random.default_rng(2)
    for _ in range(4):
        robot = robot_of("hrp2", "fixed")
        task = PointTask(robot, "l_wrist", name="hand")
        task.target = rng.normal(size=3) * [1.5, 1.5, 0.5] + [0, 0, 1.0]
        task.target *= 3 / np.linalg.norm(task.target)
        q = robot.q(random_joints(robot, rng, 0.3))
        ours = SOLVERS[kind](robot, stop=StopSettings(400, progress=1e-13, gradient=1e-8)).solve(q, [task])
        theirs = scipys(robot, [task], q)
        assert ours.residual == pytest.approx(np.sqrt(2 * theirs.cost), rel=1e-5 if kind == "regularised" else 1e-6)
        assert not ours.converged and (kind == "regularised" or ours.stop in (Stop.GRADIENT, Stop.PROGRESS))


CRITERIA = [
    (StopSettings(iterations=2), True, Stop.ITERATIONS),
    (StopSettings(iterations=0), True, Stop.ITERATIONS),
    (StopSettings(converged=1e-3), True, Stop.CONVERGED),
    (StopSettings(converged=1e-300, gradient=1e-6, progress=0.0, iterations=10**4), False, Stop.GRADIENT),
    (StopSettings(converged=1e-300, gradient=0.0, progress=1e-6, iterations=10**4), False, Stop.PROGRESS),
]


@pytest.mark.parametrize(("stop", "reachable", "reason"), CRITERIA, ids=lambda c: getattr(c, "name", None))
def test_any_one_criterion_ends_the_iteration_and_is_named(stop, reachable, reason):
    """Table 4.1 with 'or' (E-15): the other three never hold in these runs."""
    robot = robot_of("hrp2", "fixed")
    task = PointTask(robot, "l_wrist", name="hand")
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task.target = np.array([0.3, 0.3, 1.0]) if reachable else np.array([2.0, 2.0, 1.0])
    for solver in (LevenbergMarquardt(robot, stop), Descent(robot, GaussNewton(0.05), stop=stop)):
        found = solver.solve(q, [task])
        assert found.stop is reason
        assert found.iterations <= stop.iterations
    report = LevenbergMarquardt(robot, stop).step(q, [task], 0.01)[2]
    assert report.note == ("" if reason is Stop.CONVERGED else reason.value)


def test_gradient_is_exact_far_from_the_target_also_for_orientations():
    """The geometric Jacobian is not the derivative of the angle-axis error; J^T r is the gradient all the same."""
    robot, rng, h = robot_of("lola", "floating"), np.random.default_rng(8), 1e-6
    model = robot.model
    turn = OrientationTask(robot, model.getFrameId("head"), model.getFrameId("l_foot"), name="head")
    pose = FrameTask(robot, model.getFrameId("l_forearm"), orientation_weight=0.7, name="arm")
    gaze = GazeTask(robot, model.getFrameId("head"), name="look")
    floor = HalfSpaceTask(robot, "r_wrist", (0, 0, 5), (0, 0, 1), name="up")
    for _ in range(10):
        turn.target, pose.X_target = pin.exp3(rng.normal(size=3) * 2), pin.SE3.Random()
        gaze.target = rng.normal(size=3)
        problem = TaskResidual(robot, [turn, pose, gaze, floor], DofSelection(robot), robot.model.createData())
        q = robot.q(random_joints(robot, rng), pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)))
        r, J = problem.residual_and_jacobian(q)
        d = rng.normal(size=problem.dofs.k)
        c = [0.5 * np.sum(problem.residual(problem.moved(q, s * h * d)) ** 2) for s in (1, -1)]
        assert (J.T @ r) @ d == pytest.approx((c[0] - c[1]) / (2 * h), rel=1e-5, abs=1e-5)


def test_goals_of_every_kind_are_met_together():
    """F-08 without constraints: a hand on a line and above a plane, the head looking at it, the body upright."""
    from humanoid_control.ik import LineTask

    robot = robot_of("hrp2", "floating")
    model, hand = robot.model, FramePoint(robot, robot.point_frame("r_wrist"))
    tasks = [
        LineTask(robot, hand, (0.35, -0.2, 0.5), (0.0, 0.2, 1.0), name="rail"),
        PlaneTask(robot, hand, (0, 0, 0.95), (0, 0, 1), name="table"),
        HalfSpaceTask(robot, "r_elbow", (0, -0.3, 0), (0, -1, 0), name="right"),
        GazeTask(robot, model.getFrameId("head"), name="look"),
        OrientationTask(robot, model.getFrameId("pelvis"), name="upright"),
        PointTask(robot, "l_foot_tcp", name="stand"),
    ]
    tasks[3].target = np.array([0.35, -0.1, 0.95])
    tasks[4].set_target(np.eye(3))
    tasks[5].set_target(np.zeros(3))
    found = LevenbergMarquardt(robot).solve(robot.q(), tasks)
    assert found.converged
    prepare(robot, robot.data, found.q)
    wrist = robot.frame_positions(found.q, [robot.point_frame("r_wrist")])[0]
    assert wrist[2] == pytest.approx(0.95, abs=1e-7)
    assert np.linalg.norm(np.cross(wrist - [0.35, -0.2, 0.5], [0.0, 0.2, 1.0])) < 1e-7
    assert robot.frame_positions(found.q, [robot.point_frame("r_elbow")])[0][1] <= -0.3 + 1e-7
    prepare(robot, robot.data, found.q)
    assert tasks[3].angle(robot.data) < 1e-7


def test_no_tasks_is_no_work():
    robot = robot_of("hrp2", "fixed")
    for solver in (NewtonRaphson(robot), LevenbergMarquardt(robot), Descent(robot)):
        found = solver.solve(robot.q(), [])
        assert found.converged and found.iterations == 0 and np.array_equal(found.q, robot.q())


MISTAKES = [
    (lambda r: StopSettings(iterations=-1), "iterations >= 0"),
    (lambda r: NewtonRaphson(r, refresh=0), "refresh must be 1 or more"),
    (lambda r: Descent(r, refresh=0), "refresh must be 1 or more"),
    (lambda r: ConstantStep(0), "must be positive"),
    (lambda r: Armijo(share=2), "between 0 and 1"),
    (lambda r: WolfePowell(flat=1e-9), "0 < share < flat < 1"),
]


@pytest.mark.parametrize(("make", "words"), MISTAKES, ids=[m[1] for m in MISTAKES])
def test_a_mistake_is_one_clear_line(make, words):
    with pytest.raises(ConfigError, match=words):
        make(robot_of("hrp2", "fixed"))


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
        problem = TaskResidual(robot, biped.all(), dofs, robot.model.createData())
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
    r, J = TaskResidual(robot, tasks, dofs, robot.data).residual_and_jacobian(q)
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
    task = PointTask(robot, "l_wrist", name="hand")
    task.target = np.array([3.0, 3.0, 1.0])
    found = NewtonRaphson(robot, StopSettings(iterations=50)).solve(robot.q(), [task])
    assert found.stop in (Stop.ITERATIONS, Stop.SINGULAR) and not found.converged
    same = PointTask(robot, task.point, name="same")
    same.set_target(np.zeros(3))
    twice = NewtonRaphson(robot).solve(robot.q(), [task, same])
    assert twice.stop is Stop.SINGULAR
    with pytest.raises(ConfigError, match="Newton-Raphson: 36 rows for 30 free velocities"):
        many = [
            PointTask(robot, FramePoint(robot, robot.point_frame("l_wrist"), (0.01 * k, 0, 0)), name=str(k))
            for k in range(12)
        ]
        for one in many:
            one.set_target(np.zeros(3))
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
