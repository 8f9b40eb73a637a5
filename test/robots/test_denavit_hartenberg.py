"""Denavit-Hartenberg tables against pinocchio's kinematics of the same URDF, and against the convention itself."""

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots import CATALOGUE, MODELS, load_robot
from humanoid_control.robots.denavit_hartenberg import dh_of, dh_of_chain, dh_transform
from humanoid_control.robots.description.tree_changes import ChainJoint, JointChain, serial_chain
from humanoid_control.robots.description.urdf import parse_urdf
from test.robots_under_test import by_kind

CHAINS = ("sternum", "l_wrist", "r_wrist", "l_elbow", "r_gh")


@pytest.mark.parametrize("name", by_kind(CATALOGUE + MODELS))
def test_table_and_urdf_give_the_same_kinematics(name):
    """Position, orientation and Jacobian of both arms and the trunk at random postures, to 1e-9 (F3, F4)."""
    robot = load_robot(name, "fixed")
    rng = np.random.default_rng(7)
    for tip in CHAINS:
        table = dh_of(robot, tip)
        columns = [robot.joint_index(j) for j in table.joint_names]
        for _ in range(20):
            joints = rng.uniform(robot.lower, robot.upper)
            pin.computeJointJacobians(robot.model, robot.data, joints)
            pin.updateFramePlacements(robot.model, robot.data)
            base = robot.data.oMf[robot.model.getFrameId(table.base)]
            expected = base.inverse() * robot.data.oMf[robot.points[tip]]
            assert table.pose(joints[columns]) == pytest.approx(expected.homogeneous, abs=1e-9)
            world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
            J = pin.getFrameJacobian(robot.model, robot.data, robot.points[tip], world)
            assert not np.delete(J, columns, axis=1).any(), "no joint outside the chain moves its tip"
            J = np.vstack([base.rotation.T @ J[:3], base.rotation.T @ J[3:]])[:, columns]
            assert table.jacobian(joints[columns]) == pytest.approx(J, abs=1e-9)


@pytest.mark.parametrize("name", ["hrp2", "wabian2"])
def test_legs_have_tables_too(name):
    robot = load_robot(name, "fixed")
    table = dh_of(robot, "l_foot")
    joints = robot.postures["neutral"]
    poses = robot.link_poses(robot.q(joints))
    angles = joints[[robot.joint_index(j) for j in table.joint_names]]
    expected = poses[robot.anchor].inverse() * poses["l_foot"]
    assert table.pose(angles) == pytest.approx(expected.homogeneous, abs=1e-9)


def test_jacobian_is_the_finite_difference_of_the_pose():
    table = dh_of(load_robot("we4rii", "fixed"), "l_wrist")
    rng = np.random.default_rng(2)
    q, h = rng.uniform(-1, 1, len(table.joint_names)), 1e-6
    J = table.jacobian(q)
    for k in range(len(q)):
        plus, minus = (table.pose(q + s * h * np.eye(len(q))[k]) for s in (1, -1))
        assert J[:3, k] == pytest.approx((plus - minus)[:3, 3] / (2 * h), abs=1e-8)
        spin = (plus - minus)[:3, :3] / (2 * h) @ table.pose(q)[:3, :3].T
        assert J[3:, k] == pytest.approx([spin[2, 1], spin[0, 2], spin[1, 0]], abs=1e-8)


def test_frames_keep_the_convention():
    """z_{i-1} on the axis of joint i; x_i perpendicular to z_{i-1} and z_i, and through both axes."""
    table = dh_of(load_robot("armar3", "fixed"), "l_wrist")
    q = np.random.default_rng(4).uniform(-1, 1, len(table.joint_names))
    frames = table.frames(q)
    for k in range(len(q)):
        turned = table.frames(q + 0.3 * np.eye(len(q))[k])
        z, p = frames[k][:3, 2], frames[k][:3, 3]
        assert turned[k] == pytest.approx(frames[k]), "joint i does not move frame i - 1"
        moved = turned[-1] @ np.linalg.inv(frames[-1])
        assert moved[:3, :3] @ p + moved[:3, 3] == pytest.approx(p, abs=1e-12), "its axis stays in place"
        assert moved[:3, :3] == pytest.approx(pin.exp3(0.3 * z), abs=1e-12)
        x, next_z, next_p = (frames[k + 1][:3, i] for i in (0, 2, 3))
        assert [x @ z, x @ next_z] == pytest.approx([0, 0], abs=1e-12)
        assert next_p - table.a[k] * x - table.d[k] * z == pytest.approx(p, abs=1e-12)


def test_transform_is_the_product_of_its_four_motions():
    """Eq. (4.4) = Rot z theta, Trans z d, Trans x a, Rot x alpha."""
    a, alpha, d, theta = 0.3, 0.7, -0.2, 1.9
    turn_z = pin.SE3(pin.exp3(np.array([0, 0, theta])), np.zeros(3))
    turn_x = pin.SE3(pin.exp3(np.array([alpha, 0, 0])), np.zeros(3))
    expected = turn_z * pin.SE3(np.eye(3), np.array([a, 0, d])) * turn_x
    assert dh_transform(a, alpha, d, theta) == pytest.approx(expected.homogeneous, abs=1e-12)


# -- any chain: skew, parallel, intersecting and coinciding axes ----------------------------------------------------

number = st.floats(-1, 1, allow_subnormal=False)
vector = st.tuples(number, number, number).map(np.array)
axis = st.one_of(
    st.sampled_from([[1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0.6, 0.8]]).map(lambda v: np.array(v, float)),
    vector.filter(lambda v: np.linalg.norm(v) > 0.1).map(lambda v: v / np.linalg.norm(v)),
)
offset = st.one_of(st.just(np.zeros(3)), st.sampled_from(np.eye(3).tolist()).map(np.array), vector)
turn = st.one_of(st.just(np.zeros(3)), st.sampled_from((np.pi * np.eye(3)).tolist()).map(np.array), vector)


def near_parallel(joints) -> bool:
    """Whether two axes that follow one another are nearly, but not quite, parallel: there the table loses digits."""
    R, before = np.eye(3), None
    for j in joints:
        R = R @ j.X[:3, :3]
        direction = R @ j.axis
        if before is not None and 1e-14 < np.linalg.norm(np.cross(before, direction)) < 1e-4:
            return True
        before = direction
    return False


@settings(max_examples=150)
@given(st.lists(st.tuples(offset, turn, axis), min_size=1, max_size=6), offset, turn, st.integers(0, 10**6))
def test_any_chain_of_revolute_joints_has_an_exact_table(rows, tip_offset, tip_turn, seed):
    joints = tuple(
        ChainJoint(f"j{k}", "revolute", pin.SE3(pin.exp3(w), p).homogeneous, a) for k, (p, w, a) in enumerate(rows)
    )
    if near_parallel(joints):
        return
    chain = JointChain("base", "tip", joints, pin.SE3(pin.exp3(tip_turn), tip_offset).homogeneous)
    table = dh_of_chain(chain)
    q = np.random.default_rng(seed).uniform(-np.pi, np.pi, len(joints))
    X = np.eye(4)
    for j, angle in zip(joints, q, strict=True):
        X = X @ j.X @ pin.SE3(pin.exp3(angle * j.axis), np.zeros(3)).homogeneous
    assert table.pose(q) == pytest.approx(X @ chain.X_tip, abs=1e-9)


def test_nearly_parallel_axes_stay_accurate_to_a_tenth_of_a_micrometre():
    """A URDF with 1.5708 for a right angle: the common normal is kilometres away, or the angle is dropped."""
    for angle in (1e-3, 1e-5, 1e-7, 2e-8, 5e-9, 1e-12):
        tilted = pin.SE3(pin.exp3(np.array([angle, 0, 0])), np.array([0.3, 0.1, 0.2])).homogeneous
        z = np.array([0.0, 0.0, 1.0])
        joints = (ChainJoint("a", "revolute", np.eye(4), z), ChainJoint("b", "revolute", tilted, z))
        table = dh_of_chain(
            JointChain("base", "tip", joints, pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.1])).homogeneous)
        )
        X = np.eye(4)
        for j, q in zip(joints, (0.4, -0.9), strict=True):
            X = X @ j.X @ pin.SE3(pin.exp3(q * z), np.zeros(3)).homogeneous
        X = X @ pin.SE3(np.eye(3), np.array([0.2, 0.0, 0.1])).homogeneous
        assert table.pose(np.array([0.4, -0.9])) == pytest.approx(X, abs=1e-7), angle


# -- mistakes --------------------------------------------------------------------------------------------------------


def test_what_has_no_table_is_said():
    robot = load_robot("hrp2", "fixed")
    with pytest.raises(UnknownNameError, match="l_wrist"):
        dh_of(robot, "l_wirst")
    with pytest.raises(UnknownNameError, match="chest"):
        dh_of(robot, "l_wrist", base="chst")
    with pytest.raises(RobotError, match="no joint moves 'mid_hip'"):
        dh_of(robot, "mid_hip")
    slide = ChainJoint("lift", "prismatic", np.eye(4), np.array([0.0, 0.0, 1.0]))
    with pytest.raises(RobotError, match="joint 'lift' is not revolute"):
        dh_of_chain(JointChain("base", "tip", (slide,), np.eye(4)))


def test_a_chain_may_go_up_the_tree_and_down_again():
    robot = load_robot("hrp2", "fixed")
    chain = serial_chain(parse_urdf(robot.urdf, "hrp2"), "l_hand", "r_hand")
    names = [j.name for j in chain.joints]
    assert names[0] == "l_wrist_flexion" and names[-1] == "r_wrist_flexion" and len(names) == 12
    table, joints = dh_of_chain(chain), robot.postures["neutral"]
    poses = robot.link_poses(robot.q(joints))
    expected = poses["l_hand"].inverse() * poses["r_hand"]
    assert table.pose(joints[[robot.joint_index(n) for n in names]]) == pytest.approx(expected.homogeneous, abs=1e-9)
