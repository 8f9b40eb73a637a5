"""A time step that no time passes in, or that is no number, is refused by name, and nothing has moved."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.ik import FrameTask, OrientationTask, PostureTask, RelativeFrameTask, TargetFollower, WholeBodyIk
from humanoid_control.ik.integrate import AdamsMoulton
from humanoid_control.ik.null_space import DampedLeastSquares, ResolvedAcceleration, ResolvedRate
from humanoid_control.ik.position import NewtonRaphson
from humanoid_control.ik.target_filter import TargetFilter, TargetFilterSettings
from humanoid_control.robots import load_robot

IMPOSSIBLE = (0.0, -0.002, np.nan, np.inf, -np.inf)
SOLVERS = {
    "whole body": WholeBodyIk,
    "resolved rate": ResolvedRate,
    "damped": DampedLeastSquares,
    "acceleration": ResolvedAcceleration,
    "position": NewtonRaphson,
}


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2")


def reach(robot, q):
    task = FrameTask(robot, "r_wrist")
    task.set_target_from(q)
    X = task.X_target.copy()
    X.translation = X.translation + [0.05, 0.0, 0.0]
    task.set_target(X)
    return task


@pytest.mark.parametrize("dt", IMPOSSIBLE)
@pytest.mark.parametrize("kind", SOLVERS)
def test_every_solver_refuses_it_and_goes_on_afterwards(robot, kind, dt):
    solver, q = SOLVERS[kind](robot), robot.q()
    task = reach(robot, q)
    with pytest.raises(ConfigError, match="inverse kinematics: dt must be positive and finite"):
        solver.step(q, [task], dt)
    q_next, v, report = solver.step(q, [task], 0.002)
    assert np.isfinite(q_next).all() and np.isfinite(v).all() and report.ok


@pytest.mark.parametrize("dt", IMPOSSIBLE)
def test_a_follower_refuses_it_and_stays(robot, dt):
    follower = TargetFollower(robot)
    follower.start(robot.postures["neutral"])
    q = follower.q.copy()
    for call in (lambda: follower.step(0.1, dt), lambda: follower.brake(dt)):
        with pytest.raises(ConfigError, match="dt must be positive and finite"):
            call()
        assert np.array_equal(follower.q, q)
    follower.step(0.1, 0.004)
    assert np.isfinite(follower.q).all()


@pytest.mark.parametrize("dt", IMPOSSIBLE)
def test_filters_and_integrators_refuse_it(robot, dt):
    targets = TargetFilter(TargetFilterSettings())
    targets.add(np.zeros(3))
    with pytest.raises(ConfigError, match="target filter: dt"):
        targets.step(0.0, dt)
    assert np.array_equal(targets.x, np.zeros((1, 3)))
    with pytest.raises(ConfigError, match="integration: dt"):
        AdamsMoulton(robot, lambda t, q: np.ones(robot.nv)).step(0.0, robot.q(), dt)


@pytest.mark.parametrize("matrix", [1.05 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.zeros((3, 3)), np.eye(3) + 0.01])
def test_a_target_that_is_no_rotation_is_refused_and_the_one_before_stays(robot, matrix):
    q = robot.q()
    frame, turn, relative = (
        FrameTask(robot, "r_wrist"),
        OrientationTask(robot, "r_wrist"),
        RelativeFrameTask(robot, "r_wrist", "l_wrist"),
    )
    for task in (frame, turn, relative):
        task.set_target_from(q)
    X, R = frame.X_target.copy(), turn.target.copy()
    bad = pin.SE3(matrix, np.zeros(3))
    for call in (
        lambda: frame.set_target(bad),
        lambda: setattr(frame, "X_target", bad),
        lambda: turn.set_target(matrix),
        lambda: relative.set_target(bad),
    ):
        with pytest.raises(ConfigError, match="not a rotation, off by"):
            call()
    assert frame.X_target == X and np.array_equal(turn.target, R)


def test_a_rotation_of_single_precision_is_one(robot):
    R = pin.exp3(np.array([0.3, -1.2, 2.0])).astype(np.float32).astype(float)
    task = OrientationTask(robot, "r_wrist")
    task.set_target(R)
    assert np.array_equal(task.target, R)


def test_a_target_that_is_no_number_stops_the_robot(robot):
    q, solver, task = robot.q(), WholeBodyIk(robot), FrameTask(robot, "r_wrist")
    task.set_target(pin.SE3(np.full((3, 3), np.nan), np.zeros(3)))
    result = solver.step(q, [task, PostureTask(robot)], 0.002)
    assert not result.ok and np.isfinite(result.q).all()
