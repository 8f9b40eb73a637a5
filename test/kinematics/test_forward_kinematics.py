"""The kinematic tree against pinocchio: poses, points, Jacobian rows, held and mimicking joints."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.kinematics.forward_kinematics import (
    JointPoses,
    KinematicTree,
    WorldPoses,
    add_point_row,
    body_poses,
    joint_twists,
)
from humanoid_control.robots import CATALOGUE, load_robot
from test.robots_under_test import by_kind

WORLD = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED


def poses(tree, x):
    m = len(tree.parent)
    out = WorldPoses(*(np.full(memory.shape, np.nan) for memory in WorldPoses.of(m + 1, m)))
    body_poses(tree, x, out)  # whatever was there
    return out


@pytest.mark.parametrize("name", by_kind([*CATALOGUE, "recommended"]))
def test_every_frame_is_where_pinocchio_has_it_and_moves_as_it_says(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(0)
    moving = robot.imitation_joints
    tree, body = KinematicTree.of(robot.model, robot.q(), moving, robot.mimic)
    for _ in range(5):
        joints = robot.postures["neutral"].copy()
        x = rng.uniform(robot.lower, robot.upper)[moving]
        joints[moving] = x
        world = poses(tree, x)
        R, p, _ = world
        pin.computeJointJacobians(robot.model, robot.data, robot.q(joints))
        pin.updateFramePlacements(robot.model, robot.data)
        for k, frame in enumerate(robot.model.frames):
            b, X = body.place(frame.parentJoint, frame.placement)
            point = p[b] + R[b] @ X.translation
            assert np.allclose(point, robot.data.oMf[k].translation, atol=1e-12)
            assert np.allclose(R[b] @ X.rotation, robot.data.oMf[k].rotation, atol=1e-12)
            J = pin.getFrameJacobian(robot.model, robot.data, k, WORLD)[:3, moving]
            n, row = rng.normal(size=3), np.zeros(len(x))
            add_point_row(tree, world, b, tuple(point), tuple(n), -2.0, row)
            assert np.allclose(row, -2.0 * n @ J, atol=1e-12)


@pytest.mark.parametrize("placed", [False, True], ids=["at the origin", "placed and turned"])
def test_a_floating_base_is_where_pinocchio_has_it(placed):
    model, rng = load_robot("lola", "floating").model.copy(), np.random.default_rng(1)
    if placed:
        model.jointPlacements[1] = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.5, 1.2), np.array([0.1, -0.4, 0.7]))
    data, own = model.createData(), JointPoses(model)
    low, high = np.full(model.nq, -2.0), np.full(model.nq, 2.0)
    for _ in range(5):
        q = rng.uniform(low, high)
        q[3:7] /= np.linalg.norm(q[3:7])
        pin.forwardKinematics(model, data, q)
        own.update(q)
        for j in range(1, model.njoints):
            np.testing.assert_allclose(own.R[j], data.oMi[j].rotation, atol=1e-12)
            np.testing.assert_allclose(own.p[j], data.oMi[j].translation, atol=1e-12)


SLIDER = """<robot name="gantry">
  <link name="base"/><link name="cart"/><link name="arm"/><link name="claw"/>
  <joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="0 1 0"/>
    <origin xyz="0 0 1" rpy="0.3 0 0"/><limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
  <joint name="turn" type="revolute"><parent link="cart"/><child link="arm"/><axis xyz="0 0.6 0.8"/>
    <origin xyz="0.1 0 0"/><limit lower="-1" upper="1" effort="10" velocity="1"/></joint>
  <joint name="grip" type="revolute"><parent link="arm"/><child link="claw"/><axis xyz="1 0 0"/>
    <origin xyz="0 0 0.2"/><limit lower="-3" upper="3" effort="10" velocity="1"/>
    <mimic joint="turn" multiplier="-2" offset="0.1"/></joint>
</robot>"""


def test_sliding_and_mimicking_joints_move_as_finite_differences_say(tmp_path):
    (tmp_path / "gantry.urdf").write_text(SLIDER)
    robot = load_robot(tmp_path / "gantry.urdf", "fixed")
    tree, body = KinematicTree.of(
        robot.model, robot.q(), [robot.joint_index("slide"), robot.joint_index("turn")], robot.mimic
    )
    frame = robot.model.frames[robot.model.getFrameId("claw")]
    b, X = body.place(frame.parentJoint, frame.placement * pin.SE3(np.eye(3), np.array([0.0, 0.1, 0.2])))
    x, eps = np.array([0.3, -0.4]), 1e-6

    def point(x):
        R, p, _ = poses(tree, x)
        return p[b] + R[b] @ X.translation

    joints = robot.follow(np.array([robot.joint_index(n) * 0.0 for n in robot.joint_names]))
    joints[[robot.joint_index("slide"), robot.joint_index("turn")]] = x
    robot.follow(joints)
    pin.framesForwardKinematics(robot.model, robot.data, robot.q(joints))
    claw = robot.data.oMf[robot.model.getFrameId("claw")]
    assert np.allclose(point(x), claw.act(np.array([0.0, 0.1, 0.2])))
    world = poses(tree, x)
    for n in np.eye(3):
        row = np.zeros(2)
        add_point_row(tree, world, b, tuple(point(x)), tuple(n), 1.0, row)
        numeric = [(point(x + d) - point(x - d)) @ n / (2 * eps) for d in eps * np.eye(2)]
        assert row == pytest.approx(numeric, abs=1e-8)


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_joints_move_against_their_base_as_pinocchio_has_it(tmp_path, base):
    """Twists at the world's origin, of turning and sliding joints; that of a floating base is left out."""
    (tmp_path / "gantry.urdf").write_text(SLIDER)
    rng = np.random.default_rng(4)
    for robot in (load_robot("lola", base), load_robot(tmp_path / "gantry.urdf", base)):
        q, v = robot.q(rng.uniform(-1, 1, robot.n)), rng.normal(size=robot.nv)
        if base == "floating":
            q = pin.integrate(robot.model, q, np.r_[rng.normal(size=6), np.zeros(robot.n)])
        own, twist = JointPoses(robot.model), np.full((robot.model.njoints, 6), np.nan)
        own.update(q)
        joint_twists(own.tree, own.world, v, twist)
        still = v.copy()
        still[: robot.iv] = 0.0
        pin.forwardKinematics(robot.model, robot.data, q, still)
        for j in range(1, robot.model.njoints):
            there = robot.data.oMi[j].act(robot.data.v[j])
            np.testing.assert_allclose(twist[j], np.r_[there.linear, there.angular], atol=1e-12)


@pytest.mark.parametrize("joint", [pin.JointModelRUBZ(), pin.JointModelSpherical(), pin.JointModelPlanar()])
def test_joints_with_several_numbers_in_q_are_refused(joint):
    """Else the first number would pass for the angle: the cosine of a joint without limits."""
    model = pin.Model()
    model.addJoint(model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "hip"), joint, pin.SE3.Identity(), "wheel")
    with pytest.raises(RobotError, match="joint 'wheel' is of the kind"):
        JointPoses(model)


def test_a_joint_with_several_degrees_of_freedom_that_is_not_the_base_is_refused():
    model = pin.Model()
    hip = model.addJoint(0, pin.JointModelRX(), pin.SE3.Identity(), "hip")
    model.addJoint(hip, pin.JointModelSpherical(), pin.SE3.Identity(), "ball")
    with pytest.raises(RobotError, match="one degree of freedom"):
        KinematicTree.of(model, pin.neutral(model), [0])


def test_a_floating_base_is_six_joints_about_a_frame_that_may_be_moved():
    robot, rng = load_robot("hrp2", "floating"), np.random.default_rng(8)
    tree, body = KinematicTree.of(robot.model, robot.q(), range(robot.n), robot.mimic)
    base = pin.SE3.Random()
    tree.joints.R[0], tree.joints.p[0] = base.rotation, base.translation
    joints = robot.follow(rng.uniform(robot.lower, robot.upper))
    x = np.concatenate([rng.uniform(-1, 1, 6), joints])
    slide = pin.SE3(np.eye(3), x[:3])
    turns = [
        pin.SE3(pin.rpy.rpyToMatrix(*angles), np.zeros(3)) for angles in ((0, 0, x[3]), (x[4], 0, 0), (0, x[5], 0))
    ]
    q = robot.q(joints, base * slide * turns[0] * turns[1] * turns[2])
    pin.framesForwardKinematics(robot.model, robot.data, q)
    R, p, _ = poses(tree, x)
    for name in robot.points:
        frame = robot.model.frames[robot.point_frame(name)]
        b, X = body.place(frame.parentJoint, frame.placement)
        assert p[b] + R[b] @ X.translation == pytest.approx(robot.data.oMf[robot.point_frame(name)].translation)
