"""Goals under inequality constraints, against scipy's SLSQP, and from starts that violate everything."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import minimize

from humanoid_control.ik import CenterOfMass, DofSelection, FramePoint, HalfSpaceTask, PointTask
from humanoid_control.ik.position import (
    ClearanceConstraint,
    ConstrainedGoals,
    HalfSpaceConstraint,
    LevenbergMarquardt,
    StopSettings,
)
from humanoid_control.ik.position.solver import TaskResidual
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot

STOP = StopSettings(iterations=200)


def arm(robot):
    return DofSelection(robot, [n for n in robot.joint_names if not n.startswith(("l_shoulder", "l_elbow"))])


def hand(robot, target):
    task = PointTask(robot, "l_wrist", name="hand")
    task.target = np.array(target, dtype=float)
    return task


def slsqp(robot, dofs, tasks, q, heights=()):
    """The same problem for scipy: least squares, ranges as bounds, half-spaces as inequalities."""
    problem, data = TaskResidual(robot, tasks, dofs, robot.model.createData()), robot.model.createData()
    x0 = np.concatenate([np.zeros(robot.iv), q[robot.iq :]])[dofs.free]
    low = np.concatenate([np.full(robot.iv, -10.0), robot.lower])[dofs.free]
    high = np.concatenate([np.full(robot.iv, 10.0), robot.upper])[dofs.free]

    def height(x, task):
        prepare(robot, data, problem.moved(q, x))
        return task.height(robot, data)

    constraints = [{"type": "ineq", "fun": height, "args": (t,)} for t in heights]
    return minimize(
        lambda x: 0.5 * np.sum(problem.residual(problem.moved(q, x)) ** 2),
        np.zeros(dofs.k),
        method="SLSQP",
        bounds=np.stack([low - x0, high - x0], axis=1),
        constraints=constraints,
        options={"maxiter": 500, "ftol": 1e-14},
    )


@pytest.mark.parametrize("seed", range(6))
def test_joint_ranges_hold_and_the_cost_is_scipys(seed):
    robot, rng = load_robot("wabian2", "fixed"), np.random.default_rng(seed)
    dofs, q = arm(robot), robot.q()
    shoulder = robot.frame_positions(q, [robot.point_frame("l_gh")])[0]
    tasks = [hand(robot, shoulder + rng.normal(size=3) * 0.4)]
    found = ConstrainedGoals(robot, stop=STOP, dofs=dofs).solve(q, tasks)
    assert (robot.joints(found.q) >= robot.lower).all() and (robot.joints(found.q) <= robot.upper).all()
    theirs = slsqp(robot, dofs, tasks, found.q)
    assert 0.5 * found.residual**2 <= theirs.fun * (1 + 1e-6) + 1e-12, "from where we end SLSQP finds no way down"


def test_ranges_matter_in_these_problems():
    """The counter-test: without bounds the same targets lead out of the ranges."""
    robot, outside = load_robot("wabian2", "fixed"), 0
    dofs, q = arm(robot), robot.q()
    shoulder = robot.frame_positions(q, [robot.point_frame("l_gh")])[0]
    for seed in range(6):
        tasks = [hand(robot, shoulder + np.random.default_rng(seed).normal(size=3) * 0.4)]
        joints = robot.joints(LevenbergMarquardt(robot, STOP, dofs).solve(q, tasks).q)
        outside += bool((joints < robot.lower - 1e-3).any() or (joints > robot.upper + 1e-3).any())
    assert outside >= 2


def test_a_half_space_is_a_wall_for_the_goal_behind_it():
    """The hand's target lies 10 cm below the table; it ends on the table, straight above, as SLSQP says."""
    robot = load_robot("hrp2", "fixed")
    dofs = arm(robot)
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.5, "l_shoulder_abduction": 0.4}))
    wrist = robot.frame_positions(q, [robot.point_frame("l_wrist")])[0]
    table = HalfSpaceTask(
        robot, FramePoint(robot, robot.point_frame("l_wrist")), wrist - [0, 0, 0.03], (0, 0, 1), name="table"
    )
    tasks = [hand(robot, wrist + [0.02, 0.03, -0.13])]
    found = ConstrainedGoals(robot, [HalfSpaceConstraint(table)], STOP, dofs).solve(q, tasks)
    end = robot.frame_positions(found.q, [robot.point_frame("l_wrist")])[0]
    assert np.allclose(end, wrist + [0.02, 0.03, -0.03], atol=1e-5)
    theirs = slsqp(robot, dofs, tasks, q, [table])
    assert 0.5 * found.residual**2 == pytest.approx(theirs.fun, rel=1e-5)
    free = ConstrainedGoals(robot, stop=STOP, dofs=dofs).solve(q, tasks)
    assert free.residual < 1e-6, "it is the wall that stops it"


def test_shapes_keep_their_clearance_where_the_goal_is_inside_the_body():
    robot = load_robot("hrp2", "fixed")
    q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.2, "l_shoulder_abduction": 0.4}))
    chest = robot.frame_positions(q, [robot.point_frame("sternum")])[0]
    tasks, pairs = [hand(robot, chest - [0.05, 0, 0.1])], robot.collision_monitor("shapes")
    found = ConstrainedGoals(robot, [ClearanceConstraint(robot, 0.01)], STOP, arm(robot)).solve(q, tasks)
    assert pairs.update(found.q, np.inf).distance.min() > 0.01 - 1e-4
    blind = ConstrainedGoals(robot, stop=STOP, dofs=arm(robot)).solve(q, tasks)
    assert pairs.update(blind.q, np.inf).distance.min() < -0.01
    assert blind.residual < found.residual < np.linalg.norm(hand(robot, chest).target)


def test_a_start_that_violates_everything_is_led_inside():
    """Floating base: joints outside their ranges, a constraint on the centre of mass broken, arms in the body."""
    robot, rng = load_robot("suralp", "floating"), np.random.default_rng(2)
    constraint = HalfSpaceTask(robot, CenterOfMass(), (0.05, 0, 0), (1, 0, 0), name="ahead")
    solver = ConstrainedGoals(robot, [HalfSpaceConstraint(constraint), ClearanceConstraint(robot, 0.005)], STOP)
    foot = PointTask(robot, "l_foot_tcp", name="foot")
    foot.target = np.array([0.1, 0.1, 0.0])
    for _ in range(3):
        joints = rng.uniform(np.maximum(robot.lower, -1.5) - 0.3, np.minimum(robot.upper, 1.5) + 0.3)
        q = robot.q(joints, pin.SE3(pin.exp3(0.2 * rng.normal(size=3)), np.array([-0.3, 0.0, 0.7])))
        found = solver.solve(q, [foot])
        prepare(robot, robot.data, found.q)
        assert (robot.joints(found.q) >= robot.lower).all() and (robot.joints(found.q) <= robot.upper).all()
        assert constraint.height(robot, robot.data) > -1e-6
        assert robot.collision_monitor("shapes").update(found.q, np.inf).distance.min() > 0.005 - 1e-3
        assert found.residual < 1e-6
