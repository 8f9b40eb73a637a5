"""The solver tick: Jacobians by finite differences, limits and distances by closed-loop simulation from bad starts."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik import (
    AngularMomentumTask,
    FrameTask,
    IkSettings,
    IkStatus,
    PointsTask,
    PostureTask,
    WholeBodyIk,
)
from humanoid_control.ik.limits import default_limits
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind, nightly

POINTS = ("sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist")


def tasks_of(robot):
    points = PointsTask(robot, POINTS, gain=40.0)
    points.set_target_from(robot.q())
    return [points, PostureTask(robot)]


def random_joints(robot, rng):
    return rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5))


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("kind", ["point", "frame", "posture"])
def test_task_rows_are_the_derivative_of_the_error(kind, base):
    robot = load_robot("wabian2", base)
    rng, eps = np.random.default_rng(1), 1e-6
    frame = robot.model.getFrameId("l_hand")
    for _ in range(10):
        q = robot.q(random_joints(robot, rng))
        if kind == "point":
            task = PointsTask(robot, [frame, robot.point_frame("sternum"), robot.point_frame("r_elbow")])
            task.targets = rng.normal(size=(3, 3))
        elif kind == "frame":
            task = FrameTask(robot, frame, orientation_weight=0.7, name="t")
            task.set_target_from(q)
        else:
            task = PostureTask(robot, random_joints(robot, rng), rng.uniform(0.1, 2, robot.n))

        def error(q, task=task):
            pin.computeJointJacobians(robot.model, robot.data, q)
            pin.updateFramePlacements(robot.model, robot.data)
            return task.error(robot, robot.data, q)

        if kind == "frame":  # at the target, where the logarithm's derivative is the identity
            error(q)
            task.X_target = pin.SE3(robot.data.oMf[frame])
        dv = rng.normal(size=robot.nv)
        plus, minus = error(pin.integrate(robot.model, q, eps * dv)), error(pin.integrate(robot.model, q, -eps * dv))
        error(q)
        J, v = task.rows(robot, robot.data, q)
        assert np.allclose(-J @ dv, (plus - minus) / (2 * eps), atol=1e-6)
        assert np.allclose(v, task.gain * task.error(robot, robot.data, q))


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_wild_targets_break_no_limit_and_no_bone(name):
    """Targets that sweep through the robot's own body, too fast and too far: every command keeps every limit."""
    robot = load_robot(name, "fixed")
    ik, tasks, dt = WholeBodyIk(robot), tasks_of(robot), 0.004
    distance, data = robot.self_distance(), robot.model.createData()
    q = robot.q()
    home = robot.point_positions(q, POINTS)
    closest, v = np.inf, np.zeros(robot.nv)
    for k in range(1500):
        phase = 0.004 * k * np.array([1.3, 1.1, 0.9]) * (1 + k / 1500)
        tasks[0].targets = home + 0.5 * np.sin(3 * phase + np.outer(np.arange(7), [1, 2, 3]))
        result = ik.step(q, tasks, dt)
        assert result.ok
        assert np.isfinite(result.q).all() and np.isfinite(result.v).all()
        assert (result.q >= robot.lower).all() and (result.q <= robot.upper).all()
        assert (np.abs(result.v) <= robot.velocity).all()
        assert (np.abs(result.q - q) <= robot.velocity * dt + 1e-12).all()
        assert (np.abs(result.v - v) <= ik.settings.acceleration * dt * (1 + 1e-6)).all()
        q, v = result.q, result.v
        if k % 10 == 0:
            pin.forwardKinematics(robot.model, data, q)
            closest = min(closest, distance.all_distances(data).min())
    assert closest > 0, f"shapes touched: {closest:.4f} m"
    assert closest < 0.03, "the targets should have pressed shapes together, or this test shows nothing"


def test_reaches_a_reachable_target():
    robot = load_robot("hrp2", "fixed")
    rng = np.random.default_rng(3)
    goal = robot.q(robot.from_mapping({"l_shoulder_flexion": 0.6, "l_elbow_flexion": 1.0, "r_shoulder_abduction": 0.5}))
    ik, tasks = WholeBodyIk(robot), tasks_of(robot)
    tasks[0].targets = robot.point_positions(goal, POINTS)
    tasks[-1].weight = 1e-3
    q = robot.q(robot.postures["neutral"] + 0.05 * rng.normal(size=robot.n).clip(-1, 1))
    q = np.clip(q, robot.lower, robot.upper)
    for _ in range(1500):
        q = ik.step(q, tasks, 0.004).q
    assert np.abs(robot.point_positions(q, POINTS) - robot.point_positions(goal, POINTS)).max() < 2e-3


def test_frame_task_reaches_a_pose():
    robot = load_robot("wabian2", "fixed")
    frame = robot.model.getFrameId("r_hand")
    goal = robot.q(robot.from_mapping({"r_shoulder_flexion": 0.5, "r_elbow_flexion": 1.2, "r_forearm_pronation": 0.4}))
    target = pin.SE3(robot.link_poses(goal)["r_hand"])
    task = FrameTask(robot, frame, orientation_weight=0.5, name="hand")
    task.X_target = target
    ik, q = WholeBodyIk(robot), robot.q()
    rest = PostureTask(robot, weight=1e-3)
    for _ in range(1500):
        q = ik.step(q, [task, rest], 0.004).q
    error = target.actInv(robot.link_poses(q)["r_hand"])
    assert np.linalg.norm(error.translation) < 1e-3
    assert np.linalg.norm(pin.log3(error.rotation)) < 5e-3


def test_without_collision_rows_the_same_motion_does_collide():
    """The counter-test: it is the rows that keep the shapes apart."""
    robot = load_robot("hrp2", "fixed")
    closest = {}
    for collisions in (True, False):
        ik, tasks, q = WholeBodyIk(robot, limits=default_limits(robot, collisions)), tasks_of(robot), robot.q()
        home = robot.point_positions(q, POINTS)
        tasks[0].targets = home + [[0, -0.25, 0.1] if p in ("l_elbow", "l_wrist") else [0, 0, 0] for p in POINTS]
        for _ in range(500):
            q = ik.step(q, tasks, 0.004).q
        closest[collisions] = robot.shape_clearance(q).min()
    assert closest[True] > 0.005 and closest[False] < 0


@pytest.mark.parametrize("seed", [0, 1, 2, *(nightly(seed) for seed in range(3, 12))])
def test_mirrored_targets_give_the_mirrored_command(seed):
    robot = load_robot("suralp", "fixed")
    rng = np.random.default_rng(seed)
    names = robot.joint_names
    twin = [
        robot.index[("r_" if n[0] == "l" else "l_") + n[2:]] if n[:2] in ("l_", "r_") else k
        for k, n in enumerate(names)
    ]
    sign = np.array([1.0 if n[:2] in ("l_", "r_") or n == "neck_flexion" else -1.0 for n in names])
    flip = np.array([1.0, -1.0, 1.0])
    offset = rng.normal(size=(7, 3)) * 0.1
    order = [0, 2, 1, 4, 3, 6, 5]
    # Not the neutral posture itself: where shapes are parallel, their witness points are any of many.
    start = np.clip(robot.q() + 0.1 * rng.normal(size=robot.n), robot.lower, robot.upper)
    out = []
    for mirrored in (False, True):
        ik, tasks, q = WholeBodyIk(robot), tasks_of(robot), (sign * start)[twin] if mirrored else start
        home = robot.point_positions(q, POINTS)
        d = (offset * flip)[order] if mirrored else offset
        tasks[0].targets = home + d
        for _ in range(5):
            q = ik.step(q, tasks, 0.004).q
        out.append(q)
    assert np.allclose((sign * out[0])[twin], out[1], atol=1e-5)


def test_tasks_add_up_to_the_stacked_problem():
    """H and g of the solver are those of the rows of all tasks stacked under each other."""
    robot = load_robot("lola", "fixed")
    rng = np.random.default_rng(11)
    q = robot.q(random_joints(robot, rng))
    tasks = [*tasks_of(robot), FrameTask(robot, "l_forearm", weight=0.7, name="hand"), AngularMomentumTask(weight=0.3)]
    tasks[-2].set_target_from(robot.q())
    tasks[1].weights = rng.uniform(0.2, 2, robot.n)
    solver = WholeBodyIk(robot, IkSettings(damping=0.0, smoothing=0.0), limits=[])
    solver.step(q, tasks, 0.004)
    rows = [(task.weight, *task.rows(robot, solver.data, q)) for task in tasks]
    A = solver.dofs.reduce(np.vstack([w * J for w, J, _ in rows]))
    b = np.concatenate([w * v for w, _, v in rows])
    memory = solver._memory.record
    assert np.allclose(np.tril(memory.H), np.tril(A.T @ A)) and np.allclose(memory.g, -A.T @ b)


def test_a_tick_does_not_claim_to_know_what_the_tasks_missed():
    robot = load_robot("lola", "fixed")
    result = WholeBodyIk(robot).step(robot.q(), tasks_of(robot), 0.004)
    assert np.isnan(result.report.task_residual) and result.status is result.report.status is IkStatus.OPTIMAL
