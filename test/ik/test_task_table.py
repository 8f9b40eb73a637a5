"""The compiled rows are those of the tasks themselves, whatever they are made of and however they change."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik import (
    AngularMomentumTask,
    CenterOfMass,
    DofSelection,
    FramePoint,
    FrameTask,
    GazeTask,
    HalfSpaceTask,
    JointTask,
    LimbCenterOfMass,
    OrientationTask,
    Point,
    PointTask,
    PostureTask,
    WholeBodyIk,
    lola_tasks,
)
from humanoid_control.ik.task_rows import TaskStack, stacked
from humanoid_control.ik.tasks import prepare
from humanoid_control.robots import load_robot


def random_q(robot, rng):
    joints = robot.follow(rng.uniform(np.maximum(robot.lower, -2.5), np.minimum(robot.upper, 2.5)))
    if robot.base == "fixed":
        return robot.q(joints)
    return robot.q(joints, pin.SE3(pin.exp3(rng.normal(size=3)), rng.uniform(-2, 2, 3)))


def many_tasks(robot):
    frame, point = robot.model.getFrameId, robot.point_frame
    limb = LimbCenterOfMass(robot, robot.model.subtrees[robot.model.getJointId("l_shoulder_flexion")].tolist())
    com = CenterOfMass()
    tasks = [
        PointTask(robot, com, name="com"),
        PointTask(robot, limb, com, point("sternum"), name="limb"),
        PointTask(robot, FramePoint(robot, frame("r_forearm"), (0.1, -0.2, 0.3)), None, frame("head"), name="offset"),
        PointTask(robot, FramePoint(robot, point("l_wrist")), FramePoint(robot, point("r_wrist")), name="apart"),
        GazeTask(robot, frame("head"), name="look"),
        OrientationTask(robot, frame("head"), name="turn"),
        OrientationTask(robot, point("l_wrist"), point("sternum"), name="relative"),
        FrameTask(robot, frame("l_forearm"), orientation_weight=0.4, name="pose"),
        FrameTask(robot, frame("r_forearm"), name="another pose"),
        FrameTask(robot, frame("head"), weight=2.0, name="a third"),
        JointTask(robot, [robot.joint_names[2], robot.joint_names[0]], name="joints"),
        PostureTask(robot),
        HalfSpaceTask(robot, FramePoint(robot, point("r_elbow")), (0, 0, 50), (0, 0, 1), name="outside"),
        HalfSpaceTask(robot, FramePoint(robot, point("r_elbow")), (0, 0, -50), (0, 0, 1), name="inside"),
    ]
    for task in tasks[:-2]:
        task.set_target_from(robot.q())
    return tasks


def shuffle_targets(tasks, rng):
    for task in tasks:
        task.weight, task.gain = rng.uniform(0.1, 3), rng.uniform(1, 60)
        if isinstance(task, (PointTask, JointTask)):
            task.target, task.velocity = rng.normal(size=len(task.velocity)), rng.normal(size=len(task.velocity))
        elif isinstance(task, OrientationTask):
            task.target, task.velocity = pin.exp3(2 * rng.normal(size=3)), rng.normal(size=3)
        elif isinstance(task, FrameTask):
            task.X_target = pin.SE3(pin.exp3(2 * rng.normal(size=3)), rng.normal(size=3))
            task.target_velocity, task.target_turn = rng.normal(size=3), rng.normal(size=3)


@pytest.mark.parametrize(("name", "base"), [("lola", "floating"), ("lola", "fixed"), ("wabian2", "floating")])
def test_rows_are_those_of_the_tasks(name, base):
    """Held and mimicking joints, links that do not move, weights, gains and their bound, targets changed every tick."""
    robot, rng = load_robot(name, base), np.random.default_rng(1)
    dofs = DofSelection(robot, ["neck_rotation"], {"l_elbow_flexion": 3.0})
    tasks, stack, data = many_tasks(robot), TaskStack(robot, dofs), robot.model.createData()
    for k in range(25):
        q = random_q(robot, rng)
        prepare(robot, data, q)
        shuffle_targets(tasks, rng)
        for n, task in enumerate(tasks):
            task.level = n % 3 if k > 12 else 0
            task.weight = 0.0 if (n + k) % 7 == 0 else task.weight
        fast, slow = stack.rows(data, q, tasks, 30.0), stacked(robot, data, q, tasks, dofs, 30.0)
        assert len(fast.v) == len(slow.v)
        for ours, theirs in zip(fast.parts, slow.parts, strict=True):
            assert np.allclose(fast.J[ours], slow.J[theirs], atol=1e-11)
            assert np.allclose(fast.v[ours], slow.v[theirs], atol=1e-10)
            assert np.array_equal(fast.level[ours], slow.level[theirs])


@pytest.mark.parametrize("name", ["lola", "hrp2", "wabian2", "suralp"])
def test_rows_of_the_biped_are_those_of_its_tasks_also_a_kilometre_away(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(2)
    biped, data = lola_tasks(robot), robot.model.createData()
    dofs = DofSelection(robot, biped.held)
    stack = TaskStack(robot, dofs)
    for k in range(10):
        q = random_q(robot, rng)
        q[:3] += 1000.0 * (k % 2)
        prepare(robot, data, q)
        for tasks in (biped.all(), biped.without("left_arm")):
            fast, slow = stack.rows(data, q, tasks), stacked(robot, data, q, tasks, dofs)
            assert np.allclose(fast.J, slow.J, atol=1e-9) and np.allclose(fast.v, slow.v, atol=1e-8)


def test_a_task_that_is_added_removed_or_unknown_to_the_table_is_seen_at_once():
    robot = load_robot("lola", "floating")
    dofs, data, q = DofSelection(robot), robot.model.createData(), robot.q()
    stack, tasks = TaskStack(robot, dofs), many_tasks(robot)[:3]
    prepare(robot, data, q)
    for chosen in (tasks, tasks[:1], [], [*tasks[:1], AngularMomentumTask()], tasks[::-1]):
        fast, slow = stack.rows(data, q, chosen), stacked(robot, data, q, chosen, dofs)
        assert fast.J.shape == slow.J.shape and len(fast.parts) == len(chosen)
        for ours, theirs in zip(fast.parts, slow.parts, strict=True):
            assert np.allclose(fast.J[ours], slow.J[theirs], atol=1e-12)


class Middle(Point):
    """The middle between the wrists: a point that is none of the package's."""

    def __init__(self, robot):
        self.ends = [FramePoint(robot, f"{side}_wrist") for side in "lr"]

    def position(self, robot, data):
        return np.mean([p.position(robot, data) for p in self.ends], axis=0)

    def jacobian(self, robot, data):
        return np.mean([p.jacobian(robot, data) for p in self.ends], axis=0)

    def drift(self, robot, data):
        return np.mean([p.drift(robot, data) for p in self.ends], axis=0)


@pytest.mark.parametrize("as_origin", [False, True])
def test_a_point_of_a_users_own_class_computes_its_own_rows(as_origin):
    robot = load_robot("hrp2", "fixed")
    middle, dofs, data, q = Middle(robot), DofSelection(robot), robot.model.createData(), robot.q()
    task = PointTask(robot, "sternum", middle) if as_origin else PointTask(robot, middle)
    task.set_target_from(q)
    task.target += [0.05, 0.0, 0.02]
    prepare(robot, data, q)
    fast, slow = TaskStack(robot, dofs).rows(data, q, [task]), stacked(robot, data, q, [task], dofs)
    assert np.array_equal(fast.J, slow.J) and np.array_equal(fast.v, slow.v)
    solver = WholeBodyIk(robot)
    for _ in range(200):
        q = solver.step(q, [task], 0.01).q
    prepare(robot, data, q)
    assert np.linalg.norm(task.error(robot, data, q)) < 1e-3
