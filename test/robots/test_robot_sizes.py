"""Robots of 1 to 100 joints, chains and trees, load, and whole-body IK moves a link of theirs toward its target."""

import time

import numpy as np
import pytest

from humanoid_control.ik import FrameTask, PostureTask, WholeBodyIk
from humanoid_control.kinematics.forward_kinematics import joint_axis
from humanoid_control.robots import load_robot

INERTIAL = """<inertial><mass value="0.5"/>
<inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial>"""
BALL = '<collision><geometry><sphere radius="0.02"/></geometry></collision>'
AXES = ("1 0 0", "0 1 0", "0 0 1")


def urdf(joints, shape, kind="revolute"):
    """A robot of so many joints, each link on the one before ('chain') or on one half as far ('tree')."""
    rows = [f'<link name="l0">{INERTIAL}</link>']
    for k in range(1, joints + 1):
        parent = k - 1 if shape == "chain" else (k - 1) // 2
        place = f"{0.1 if k % 2 else -0.1} {0.1 * (k % 3 - 1)} 0.1"
        rows.append(
            f'<link name="l{k}">{INERTIAL}{BALL if k % 10 == 0 else ""}</link>'
            f'<joint name="j{k}" type="{kind}"><parent link="l{parent}"/><child link="l{k}"/>'
            f'<origin xyz="{place}" rpy="0.1 0 {0.1 * (k % 4)}"/><axis xyz="{AXES[k % 3]}"/>'
            '<limit lower="-1.5" upper="1.5" velocity="3" effort="50"/></joint>'
        )
    return "\n".join(['<robot name="many">', *rows, "</robot>"])


@pytest.mark.parametrize("shape", ["chain", "tree"])
@pytest.mark.parametrize("joints", [1, 2, pytest.param(50, marks=pytest.mark.thorough), 100])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_robot_of_any_size_loads_and_ticks(joints, shape, base, tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(urdf(joints, shape))
    robot = load_robot(path, base)
    assert robot.n == joints and robot.mass == pytest.approx(0.5 * (joints + 1))
    ik, q = WholeBodyIk(robot), robot.q()
    link = FrameTask(robot, robot.model.getFrameId(f"l{joints}"))
    link.set_target_from(robot.q(robot.postures["neutral"] + 0.1))
    rest = PostureTask(robot, weight=1e-3)
    errors = []
    for _ in range(30):
        q, v, report = ik.step(q, [link, rest], 0.02)
        assert report.ok and np.isfinite(q).all()
        assert (np.abs(v[robot.iv :]) <= robot.velocity + 1e-9).all()
        assert (robot.joints(q) >= robot.lower).all() and (robot.joints(q) <= robot.upper).all()
        robot.link_poses(q)
        errors.append(float(np.linalg.norm(link.error(robot, robot.data, q))))
    assert errors[-1] < 0.5 * errors[0]


@pytest.mark.thorough
@pytest.mark.parametrize("joints", [150, 300])
def test_a_robot_larger_than_any_loads_and_ticks(joints, tmp_path):
    """Pinocchio's memory for 300 joints is 1.5 GB each, which grows with their cube."""
    test_a_robot_of_any_size_loads_and_ticks(joints, "tree", "fixed", tmp_path)


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_axes_of_joints_are_those_of_the_file_and_quickly_found(kind, tmp_path):
    path = tmp_path / "r.urdf"
    path.write_text(urdf(100, "chain", kind))
    model = load_robot(path, "fixed").model
    begin = time.process_time()
    found = [joint_axis(model, j) for j in range(1, model.njoints)]
    assert time.process_time() - begin < 1.0, "not by memory for the whole model at each"
    for k, (axis, slides) in enumerate(found, start=1):
        assert axis.tolist() == [float(x) for x in AXES[k % 3].split()] and slides == (kind == "prismatic")
