"""Descents: step sizes keep their conditions, directions finish a quadratic, BFGS is scipy's."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import minimize

from humanoid_control.ik import DofSelection, PointTask
from humanoid_control.ik.position import (
    Armijo,
    Bfgs,
    ConjugateGradient,
    ConstantStep,
    Descent,
    ExactLineSearch,
    SteepestDescent,
    Stop,
    StopSettings,
    WolfePowell,
)
from humanoid_control.ik.position.solver import TaskResidual
from test.ik.position.conftest import hand_problem, robot_of


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
    task = PointTask(robot, "l_wrist", name="hand")
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.5}))
    task.target = place = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    _, J = TaskResidual(robot, [task], DofSelection(robot), robot.data).residual_and_jacobian(q)
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
        method.update(a * d, grad(x + a * d) - g)
        x = x + a * d
    assert np.linalg.norm(grad(x)) < 1e-8 * (1 + np.linalg.norm(grad(np.ones(n))))


def test_bfgs_needs_about_as_many_steps_as_scipys():
    robot, tasks, q = hand_problem(np.random.default_rng(7))
    problem = TaskResidual(robot, tasks, DofSelection(robot), robot.model.createData())

    def cost(x):
        return 0.5 * np.sum(problem.residual(pin.integrate(robot.model, q, x)) ** 2)

    def gradient(x):
        r, J = problem.residual_and_jacobian(pin.integrate(robot.model, q, x))
        return J.T @ r

    theirs = minimize(cost, np.zeros(robot.nv), jac=gradient, method="BFGS", options={"gtol": 1e-7})
    stop = StopSettings(iterations=500, gradient=1e-7, progress=0.0, converged=1e-300)
    ours = Descent(robot, Bfgs(), WolfePowell(), stop).solve(q, tasks)
    assert ours.stop is Stop.GRADIENT and ours.iterations < 2 * theirs.nit
    assert 0.5 * ours.residual**2 < 1e-10 and theirs.fun < 1e-10
