"""Solvers in another place, in a mirror, with heavy, held and mimicking joints."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.ik import DofSelection, FramePoint, FrameTask, JointTask, PointTask
from humanoid_control.ik.null_space import ComfortCost, JacobianTranspose, ResolvedRate, SelfCollisionCost
from humanoid_control.ik.position import LevenbergMarquardt, NewtonRaphson
from humanoid_control.ik.tasks import prepare
from test.ik.solver_cases import EXACT, arm_of, biped, made, robot_of


@pytest.mark.parametrize(
    "cls", [*EXACT, JacobianTranspose, LevenbergMarquardt, NewtonRaphson], ids=lambda c: c.__name__
)
def test_joint_commands_do_not_depend_on_where_the_robot_stands(cls):
    """A kilometre away and turned, targets moved along: the same joint velocities."""
    robot, tasks, dofs = biped()
    rng = np.random.default_rng(3)
    X = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 2.1), np.array([1000.0, -600.0, 0.0]))
    offset, out = 0.02 * rng.normal(size=(12, 3)), []
    hand = FrameTask("hand", robot.model.getFrameId("l_forearm"), gain=8.0)
    for place in (pin.SE3.Identity(), X):
        q = robot.q()
        q[:7] = pin.SE3ToXYZQUAT(place * pin.XYZQUATToSE3(q[:7]))
        tasks.take_targets(q)
        for k, task in enumerate(tasks.tasks.values()):
            if isinstance(task, PointTask):
                task.target = task.target + (offset[k] if task.axes is not None else place.rotation @ offset[k])
        prepare(robot, robot.data, q)
        X_hand = robot.data.oMf[hand.frame]
        move = place.rotation @ np.array([0.03, 0.02, 0.05])
        hand.X_target = pin.SE3(X_hand.rotation, X_hand.translation + move)
        solver = made(cls, robot, dofs)
        v = [solver.step(q, tasks.without("left_arm", "r_toe_flexion"), 0.01)[1] for _ in range(2)][-1]
        w = made(cls, robot, dofs).step(q, [hand], 0.01)[1]
        out.append((v, w))
    for there, here in zip(out[1], out[0], strict=True):
        assert np.abs(here).max() > 0.01 and np.allclose(there, here, atol=2e-6)


@pytest.mark.parametrize("cls", [*EXACT, LevenbergMarquardt], ids=lambda c: c.__name__)
def test_mirrored_tasks_give_the_mirrored_command(cls):
    robot = robot_of("suralp", "fixed")
    names = robot.joint_names
    swap = {"l_": "r_", "r_": "l_"}
    twin = [robot.index[swap[n[:2]] + n[2:]] if n[:2] in swap else k for k, n in enumerate(names)]
    sign = np.array([1.0 if n[:2] in swap or n == "neck_flexion" else -1.0 for n in names])
    rng, flip, out = np.random.default_rng(8), np.array([1.0, -1.0, 1.0]), []
    offset = {"l": rng.normal(size=3) * 0.05, "r": rng.normal(size=3) * 0.05}
    for mirrored in (False, True):
        tasks = [PointTask(s, FramePoint(robot, robot.point_frame(f"{s}_wrist")), gain=10.0) for s in "lr"]
        q = robot.q(robot.from_mapping({"l_elbow_flexion": 1.0, "r_elbow_flexion": 1.0}))
        for task, side in zip(tasks, "lr", strict=True):
            home = robot.frame_positions(q, [robot.point_frame(f"{side}_wrist")])[0]
            task.target = home + (offset["r" if side == "l" else "l"] * flip if mirrored else offset[side])
        objectives = [SelfCollisionCost(robot, 0.06, 2.0), ComfortCost(robot.postures["neutral"], 0.5)]
        solver = made(cls, robot, None, objectives=objectives)
        for _ in range(5):
            q = solver.step(q, tasks, 0.005)[0]
        out.append(q)
    assert np.abs(out[0] - out[1]).max() > 1e-3
    assert np.allclose((sign * out[0])[twin], out[1], atol=1e-8)


def test_a_heavy_joint_moves_less_and_a_held_one_not_at_all():
    robot = robot_of("hrp2", "fixed")
    task, q = arm_of(robot)
    task.target = np.array([0.3, 0.3, 1.0])
    speeds = []
    for weight in (1.0, 100.0):
        v = ResolvedRate(robot, dofs=DofSelection(robot, weights={"waist_rotation": weight})).velocity(q, [task], 0.01)[
            0
        ]
        speeds.append(abs(v[robot.joint_index("waist_rotation")]))
    assert speeds[1] < 0.05 * speeds[0]
    held = ResolvedRate(robot, dofs=DofSelection(robot, ["waist_rotation"])).velocity(q, [task], 0.01)[0]
    assert held[robot.joint_index("waist_rotation")] == 0 and np.abs(held).max() > 0.01


def test_mimicking_joints_count_with_their_leader():
    """Lola's cameras: the right one follows the left one; a gaze by the follower must move the leader."""
    robot = robot_of("lola", "fixed")
    follower, leader, multiplier, _ = robot.mimic[0]
    dofs = DofSelection(robot)
    assert dofs.k == robot.nv - 1
    task = JointTask("camera", robot, [robot.joint_names[follower]], gain=10.0)
    task.target = np.array([0.2])
    q = robot.q()
    solver = ResolvedRate(robot)
    for _ in range(200):
        q, v, _ = solver.step(q, [task], 0.01)
        assert v[follower] == pytest.approx(multiplier * v[leader])
    assert robot.joints(q)[leader] * multiplier == pytest.approx(0.2, abs=1e-9)
    assert robot.joints(q)[follower] == pytest.approx(0.2, abs=1e-9)
