"""A shoulder of four axes: a ten-joint arm without a singular surface."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.evaluation.shoulder_singularity import GH_MOTIONS, gh_singularity, gh_smallest_singular_value
from humanoid_control.robots import load_robot
from humanoid_control.studies.dube2012.robot_variants import with_four_gh_axes

POINTS = ["mid_hip", "sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist"]


@pytest.mark.parametrize("name", ["we4rii", "recommended"])
def test_with_a_girdle_it_is_an_arm_of_ten_joints(name):
    """2 girdle, 4 glenohumeral, 1 elbow, 1 forearm, 2 wrist on each side; nothing has moved at zero."""
    robot = load_robot(name, "fixed")
    ten = with_four_gh_axes(robot)
    for side in "lr":
        arm = [ten.joint_names[k] for k in ten.imitation_joints if ten.joint_names[k].startswith(f"{side}_")]
        assert len(arm) == 10
        assert sum("girdle" in j for j in arm) == 2 and sum("shoulder" in j for j in arm) == 4
    assert len(robot.imitation_joints) == len(ten.imitation_joints) - 2, "the original stays as it is"
    for posture in ("zero", "neutral"):
        a, b = (r.point_positions(r.q(posture), POINTS) for r in (robot, ten))
        assert np.allclose(a, b, atol=1e-9)
    assert ten.mass == pytest.approx(robot.mass)


@pytest.mark.parametrize("name", ["hrp2", "suralp", "recommended"])
def test_the_new_axis_moves_a_sideways_arm_forward(name):
    ten = with_four_gh_axes(load_robot(name, "fixed"))
    for s in "lr":
        side = {f"{s}_shoulder_abduction": np.pi / 2}
        a, b = (
            ten.point_positions(ten.q(ten.from_mapping({**side, **more}, "zero")), [f"{s}_wrist", f"{s}_gh"])
            for more in ({}, {f"{s}_shoulder_horizontal_flexion": 0.2})
        )
        assert b[1] == pytest.approx(a[1]), "the shoulder stays"
        reach = a[0] - a[1]
        turn = pin.exp3(np.array([0, 0, -0.2 if s == "l" else 0.2]))
        assert b[0] - b[1] == pytest.approx(turn @ reach, abs=1e-9)
        assert b[0][0] > a[0][0]


@pytest.mark.parametrize("name", ["hrp2", "we4rii"])
def test_where_three_axes_are_singular_four_are_not(name):
    three = load_robot(name, "fixed")
    four = with_four_gh_axes(three)
    mounting = {"hrp2": 0, "we4rii": 10}[name]
    pose = {f"{s}_shoulder_abduction": np.radians(90 + mounting) for s in "lr"}
    for flexion in (-0.6, 0.0, 0.6):
        pose |= {f"{s}_shoulder_flexion": flexion for s in "lr"}
        assert gh_singularity(three, three.from_mapping(pose)) == pytest.approx([0, 0], abs=1e-5)
        assert gh_smallest_singular_value(four, four.from_mapping(pose)).min() > 0.5


def test_values_of_four_axes_are_those_of_pinocchio():
    robot = with_four_gh_axes(load_robot("recommended", "fixed"))
    postures = np.random.default_rng(0).uniform(robot.lower, robot.upper, (20, robot.n))
    value, smallest = gh_singularity(robot, postures), gh_smallest_singular_value(robot, postures)
    for joints, v, s in zip(postures, value, smallest, strict=True):
        pin.computeJointJacobians(robot.model, robot.data, robot.q(joints))
        for k, side in enumerate("lr"):
            names = [f"{side}_shoulder_horizontal_flexion", *(f"{side}_{m}" for m in GH_MOTIONS)]
            last = robot.model.getJointId(names[-1])
            J = pin.getJointJacobian(robot.model, robot.data, last, pin.ReferenceFrame.WORLD)[3:]
            A = J[:, [robot.joint_index(n) for n in names]]
            assert v[k] == pytest.approx(min(np.sqrt(np.linalg.det(A @ A.T)), 1), abs=1e-9)
            assert s[k] == pytest.approx(np.linalg.svd(A, compute_uv=False)[2], abs=1e-9)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda r: with_four_gh_axes(with_four_gh_axes(r)), "four axes in its shoulders already"),
        (lambda r: with_four_gh_axes(r, (10, 90)), "does not hold 0"),
        (lambda r: with_four_gh_axes(r, (5, -5)), "empty"),
    ],
)
def test_nonsense_is_refused(action, message):
    with pytest.raises(RobotError, match=message):
        action(load_robot("hrp2", "fixed"))
