"""Position-based solvers: against scipy, against each other, and by the four criteria that end them."""

from functools import cache
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares, minimize

from humanoid_control.errors import ConfigError
from humanoid_control.ik import (
    Armijo,
    Bfgs,
    ConjugateGradient,
    ConstantStep,
    Descent,
    ExactLineSearch,
    FramePoint,
    FrameTask,
    GaussNewton,
    GazeTask,
    HalfSpaceTask,
    LevenbergMarquardt,
    Moving,
    NewtonRaphson,
    OrientationTask,
    PlaneTask,
    PointTask,
    SteepestDescent,
    Stop,
    StopSettings,
    WolfePowell,
    lola_tasks,
)
from humanoid_control.ik.position.problem import Problem
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot


@cache
def robot_of(name, base):
    return load_robot(name, base)


def random_joints(robot, rng, share=0.5):
    middle, half = 0.5 * (robot.lower + robot.upper), 0.5 * (robot.upper - robot.lower)
    return middle + share * half * rng.uniform(-1, 1, robot.n)


def hand_problem(rng, name="wabian2", reachable=True, orientation=1.0):
    """A pose of the left hand, from a random posture, and another random posture to start from."""
    robot = robot_of(name, "fixed")
    task = FrameTask("hand", robot.model.getFrameId("l_hand"), orientation_weight=orientation)
    goal = robot.q(random_joints(robot, rng))
    prepare(robot, robot.data, goal)
    X = robot.data.oMf[task.frame]
    task.X_target = pin.SE3(X.rotation, X.translation + (0 if reachable else 1.0) * np.array([0.5, 1.0, 0.2]))
    return robot, [task], robot.q(random_joints(robot, rng, 0.3))


def scipys(robot, tasks, q):
    """The residual of the tasks for scipy, which then differentiates it itself."""
    problem = Problem(robot, tasks, Moving(robot), robot.model.createData())
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
DESCENTS = [k for k in SOLVERS if k != "newton"]


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
        task = PointTask("hand", FramePoint(robot, robot.point_frame("l_wrist")))
        task.target = rng.normal(size=3) * [1.5, 1.5, 0.5] + [0, 0, 1.0]
        task.target *= 3 / np.linalg.norm(task.target)
        q = robot.q(random_joints(robot, rng, 0.3))
        ours = SOLVERS[kind](robot, stop=StopSettings(400, progress=1e-13, gradient=1e-8)).solve(q, [task])
        theirs = scipys(robot, [task], q)
        assert ours.residual == pytest.approx(np.sqrt(2 * theirs.cost), rel=1e-5 if kind == "regularised" else 1e-6)
        assert not ours.converged and (kind == "regularised" or ours.stop in (Stop.GRADIENT, Stop.PROGRESS))


def test_newton_and_levenberg_marquardt_find_the_roots_that_scipy_finds_on_a_square_problem():
    """Lola's 28 rows: isolated roots, so the same start leads to the same posture."""
    robot = robot_of("lola", "floating")
    biped, rng = lola_tasks(robot), np.random.default_rng(3)
    moving = Moving(robot, biped.held)
    for _ in range(3):
        joints = robot.postures["neutral"] + 0.15 * rng.normal(size=robot.n)
        for name in biped.held:
            joints[robot.joint_index(name)] = robot.postures["neutral"][robot.joint_index(name)]
        goal = robot.q(joints)
        biped.take_targets(goal)
        problem = Problem(robot, biped.all(), moving, robot.model.createData())
        theirs = least_squares(
            lambda x, p=problem: p.residual(p.moved(robot.q(), x)), np.zeros(moving.k), xtol=1e-15, ftol=1e-15
        )
        assert np.sqrt(2 * theirs.cost) < 1e-7
        expected = problem.moved(robot.q(), theirs.x)
        for solver in (NewtonRaphson(robot, moving=moving), LevenbergMarquardt(robot, moving=moving)):
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
    moving = Moving(robot, weights={"waist_rotation": 7.0, "l_elbow_flexion": 0.3})
    found = NewtonRaphson(robot, StopSettings(iterations=1), moving).solve(q, tasks)
    r, J = Problem(robot, tasks, moving, robot.data).both(q)
    W = np.diag(moving.mobility)
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
    moving, q = Moving(robot, biped.held), robot.q()
    solver, warm, cold = NewtonRaphson(robot, StopSettings(converged=1e-6), moving), 0, 0
    foot = biped.tasks["right_foot_position"].target.copy()
    for k in range(30):
        biped.tasks["right_foot_position"].target = foot + [0.15 * np.sin(0.1 * k), 0.0, 0.1 * np.sin(0.08 * k) ** 2]
        found = solver.solve(q, biped.all())
        assert found.converged
        warm, q = warm + found.iterations, found.q
        cold += solver.solve(robot.q(), biped.all()).iterations
    assert warm < 0.8 * cold


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
    task = PointTask("hand", FramePoint(robot, robot.point_frame("l_wrist")))
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task.target = np.array([0.3, 0.3, 1.0]) if reachable else np.array([2.0, 2.0, 1.0])
    for solver in (LevenbergMarquardt(robot, stop), Descent(robot, GaussNewton(0.05), stop=stop)):
        found = solver.solve(q, [task])
        assert found.stop is reason
        assert found.iterations <= stop.iterations
    report = LevenbergMarquardt(robot, stop).step(q, [task], 0.01)[2]
    assert report.note == ("" if reason is Stop.CONVERGED else reason.value)


def quadratic(seed, n=6):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, n))
    H, b = A @ A.T + 0.1 * np.eye(n), rng.normal(size=n)
    return lambda x: 0.5 * x @ H @ x - b @ x, lambda x: H @ x - b


RULES = [Armijo(), Armijo(2.0, 0.3, 0.7), WolfePowell(), WolfePowell(flat=0.1), WolfePowell(4.0), ExactLineSearch()]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_step_sizes_keep_the_conditions_they_are_named_after(rule, scale):
    """Along lines of a function with waves, from far too short to far too long directions."""
    for seed in range(30):
        f, grad = quadratic(seed)

        def cost(x, f=f):
            return f(x) + 0.3 * np.sin(3 * x[0]) + 0.1 * np.cos(5 * x[1])

        def slope(x, grad=grad):
            wave = np.zeros(6)
            wave[0], wave[1] = 0.9 * np.cos(3 * x[0]), -0.5 * np.sin(5 * x[1])
            return grad(x) + wave

        x = np.random.default_rng(100 + seed).normal(size=6)
        d = -scale * slope(x)
        c0, s0 = cost(x), slope(x) @ d

        def along(t, cost=cost, x=x, d=d):
            return cost(x + t * d)

        def along_slope(t, slope=slope, x=x, d=d):
            return slope(x + t * d) @ d

        a = rule.alpha(along, along_slope, c0, s0)
        assert a > 0
        if not isinstance(rule, ExactLineSearch):
            assert cost(x + a * d) <= c0 + rule.share * a * s0 + 1e-12
        if isinstance(rule, WolfePowell):
            assert slope(x + a * d) @ d >= rule.flat * s0
        if isinstance(rule, ExactLineSearch):
            assert abs(slope(x + a * d) @ d) < 1e-3 * abs(s0)


def test_constant_steps_converge_when_short_and_diverge_when_long():
    robot = robot_of("hrp2", "fixed")
    task = PointTask("hand", FramePoint(robot, robot.point_frame("l_wrist")))
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task.target = place = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    _, J = Problem(robot, [task], Moving(robot), robot.data).both(q)
    sigma, U = np.linalg.eigh(J @ J.T)
    task.target = place + 0.002 * U[:, -1]  # off in the direction that moves most
    for share in (0.5, 0.9, 1.2):
        rule = ConstantStep(share * 2 / sigma[-1])
        found = Descent(robot, SteepestDescent(), rule, StopSettings(iterations=6)).solve(q, [task])
        ratio = np.array(found.history[1:4]) / found.history[:3]
        assert np.allclose(ratio[: 1 if share == 0.5 else 3], abs(1 - 2 * share), atol=0.08)


@pytest.mark.parametrize("direction", [Bfgs, ConjugateGradient], ids=lambda d: d.__name__)
def test_quasi_newton_and_conjugate_gradients_finish_a_quadratic_in_its_dimension(direction):
    """With exact line search both end a quadratic of n unknowns in n steps (and one to scale B)."""
    _, grad = quadratic(3)
    n, x, method = 6, np.ones(6), direction()
    for _ in range(n + 1):
        g = grad(x)
        d = method.direction(np.zeros((0, n)), g)
        a = -(g @ d) / (d @ (grad(x + d) - g))
        method.moved(a * d, grad(x + a * d) - g)
        x = x + a * d
    assert np.linalg.norm(grad(x)) < 1e-8 * (1 + np.linalg.norm(grad(np.ones(n))))


def test_bfgs_needs_about_as_many_steps_as_scipys():
    robot, tasks, q = hand_problem(np.random.default_rng(7))
    problem = Problem(robot, tasks, Moving(robot), robot.model.createData())

    def cost(x):
        return 0.5 * np.sum(problem.residual(pin.integrate(robot.model, q, x)) ** 2)

    def gradient(x):
        r, J = problem.both(pin.integrate(robot.model, q, x))
        return J.T @ r

    theirs = minimize(cost, np.zeros(robot.nv), jac=gradient, method="BFGS", options={"gtol": 1e-7})
    stop = StopSettings(iterations=500, gradient=1e-7, progress=0.0, converged=1e-300)
    ours = Descent(robot, Bfgs(), WolfePowell(), stop).solve(q, tasks)
    assert ours.stop is Stop.GRADIENT and ours.iterations < 2 * theirs.nit
    assert 0.5 * ours.residual**2 < 1e-10 and theirs.fun < 1e-10


def test_gradient_is_exact_far_from_the_target_also_for_orientations():
    """The geometric Jacobian is not the derivative of the angle-axis error; J^T r is the gradient all the same."""
    robot, rng, h = robot_of("lola", "floating"), np.random.default_rng(8), 1e-6
    model = robot.model
    turn = OrientationTask("head", model.getFrameId("head"), model.getFrameId("l_foot"))
    pose = FrameTask("arm", model.getFrameId("l_forearm"), orientation_weight=0.7)
    gaze = GazeTask("look", robot, model.getFrameId("head"))
    floor = HalfSpaceTask("up", FramePoint(robot, robot.point_frame("r_wrist")), (0, 0, 5), (0, 0, 1))
    for _ in range(10):
        turn.target, pose.X_target = pin.exp3(rng.normal(size=3) * 2), pin.SE3.Random()
        gaze.target = rng.normal(size=3)
        problem = Problem(robot, [turn, pose, gaze, floor], Moving(robot), robot.model.createData())
        q = robot.q(random_joints(robot, rng), pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3)))
        r, J = problem.both(q)
        d = rng.normal(size=problem.moving.k)
        c = [0.5 * np.sum(problem.residual(problem.moved(q, s * h * d)) ** 2) for s in (1, -1)]
        assert (J.T @ r) @ d == pytest.approx((c[0] - c[1]) / (2 * h), rel=1e-5, abs=1e-5)


def test_goals_of_every_kind_are_met_together():
    """F-08 without constraints: a hand on a line and above a plane, the head looking at it, the body upright."""
    from humanoid_control.ik import LineTask

    robot = robot_of("hrp2", "floating")
    model, hand = robot.model, FramePoint(robot, robot.point_frame("r_wrist"))
    tasks = [
        LineTask("rail", hand, (0.35, -0.2, 0.5), (0.0, 0.2, 1.0)),
        PlaneTask("table", hand, (0, 0, 0.95), (0, 0, 1)),
        HalfSpaceTask("right", FramePoint(robot, robot.point_frame("r_elbow")), (0, -0.3, 0), (0, -1, 0)),
        GazeTask("look", robot, model.getFrameId("head")),
        OrientationTask("upright", model.getFrameId("pelvis")),
        PointTask("stand", FramePoint(robot, robot.point_frame("l_foot_tcp"))),
    ]
    tasks[3].target = np.array([0.35, -0.1, 0.95])
    found = LevenbergMarquardt(robot).solve(robot.q(), tasks)
    assert found.converged
    prepare(robot, robot.data, found.q)
    wrist = robot.frame_positions(found.q, [robot.point_frame("r_wrist")])[0]
    assert wrist[2] == pytest.approx(0.95, abs=1e-7)
    assert np.linalg.norm(np.cross(wrist - [0.35, -0.2, 0.5], [0.0, 0.2, 1.0])) < 1e-7
    assert robot.frame_positions(found.q, [robot.point_frame("r_elbow")])[0][1] <= -0.3 + 1e-7
    prepare(robot, robot.data, found.q)
    assert tasks[3].angle(robot.data) < 1e-7


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
