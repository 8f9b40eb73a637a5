"""The shoulder's singularity: where it is, and what it costs, against pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.evaluation.shoulder_singularity import (
    GH_MOTIONS,
    SingularStretch,
    gh_axes,
    gh_singularity,
    gh_smallest_singular_value,
    singular_stretches,
)
from humanoid_control.robots import CATALOGUE, MODELS, load_robot
from humanoid_control.robots.generate.source import read_source, source_dir
from test.robots_under_test import by_kind

# Angle by which the flexion axis is raised [deg]; the sources of the three robots with an inclined axis give 10.
MOUNTING = {"suralp": 10, "wabian2": 10, "we4rii": 10, "recommended": 10}
WITH_GH = [n for n in (*CATALOGUE, *MODELS) if n != "lola"]


def random_postures(robot, n, seed=0):
    return np.random.default_rng(seed).uniform(robot.lower, robot.upper, (n, robot.n))


@pytest.mark.parametrize("name", by_kind(WITH_GH))
def test_axes_are_the_orientation_jacobian_of_pinocchio(name):
    """Value and smallest singular value from the angular rows of the upper arm's Jacobian, at random postures."""
    robot = load_robot(name, "fixed")
    postures = random_postures(robot, 40)
    value, smallest = gh_singularity(robot, postures), gh_smallest_singular_value(robot, postures)
    for joints, v, s in zip(postures, value, smallest, strict=True):
        pin.computeJointJacobians(robot.model, robot.data, robot.q(joints))
        for side, k in (("l", 0), ("r", 1)):
            columns = [robot.joint_index(f"{side}_{m}") for m in GH_MOTIONS]
            last = robot.model.getJointId(f"{side}_{GH_MOTIONS[-1]}")
            J = pin.getJointJacobian(robot.model, robot.data, last, pin.ReferenceFrame.WORLD)[3:, columns]
            assert v[k] == pytest.approx(abs(np.linalg.det(J)), abs=1e-9)
            assert s[k] == pytest.approx(np.linalg.svd(J, compute_uv=False)[-1], abs=1e-9)


@pytest.mark.parametrize("name", by_kind(WITH_GH))
def test_singular_at_90_deg_abduction_plus_the_mounting_angle(name):
    robot = load_robot(name, "fixed")
    source = {j["name"]: j for j in read_source(source_dir() / f"{name}.yaml").joints}
    mounting = np.degrees(source["l_shoulder_flexion"]["rpy"][0])
    assert mounting == pytest.approx(MOUNTING.get(name, 0), abs=1e-3)
    k = [robot.joint_index(f"{s}_shoulder_abduction") for s in "lr"]
    postures = random_postures(robot, 361)
    postures[:, k] = np.radians(np.arange(-180, 181))[:, None]
    value = gh_singularity(robot, postures)
    expected = np.abs(np.cos(np.radians(np.arange(-180, 181) - mounting)))
    assert value == pytest.approx(np.column_stack([expected, expected]), abs=1e-6)
    assert sorted(np.argsort(value[:, 0])[:2] - 180) == pytest.approx([-90 + mounting, 90 + mounting], abs=0.5)


def test_at_the_singular_posture_one_turning_of_the_arm_is_lost():
    """Finite differences: no small change of the three angles turns the upper arm about the lost direction."""
    robot = load_robot("hrp2", "fixed")
    joints = robot.from_mapping({"l_shoulder_abduction": np.pi / 2, "l_shoulder_flexion": 0.3}, "zero")
    U, s, _ = np.linalg.svd(gh_axes(robot, joints)[0])
    assert s[-1] == pytest.approx(0, abs=1e-12)
    carrier = pin.SE3(robot.link_poses(robot.q(joints))["chest"])
    R = pin.SE3(robot.link_poses(robot.q(joints))["l_upper_arm"])
    for motion in GH_MOTIONS:
        moved = joints.copy()
        moved[robot.joint_index(f"l_{motion}")] += 1e-6
        turned = robot.link_poses(robot.q(moved))["l_upper_arm"]
        w = carrier.rotation.T @ pin.log3(turned.rotation @ R.rotation.T) / 1e-6
        assert np.linalg.norm(w) == pytest.approx(1, abs=1e-6)
        assert abs(w @ U[:, -1]) < 1e-5


def test_one_posture_and_many_give_the_same():
    robot = load_robot("we4rii", "fixed")
    postures = random_postures(robot, 12)
    many = gh_singularity(robot, postures)
    assert many.shape == (12, 2)
    assert np.array([gh_singularity(robot, q) for q in postures]) == pytest.approx(many, abs=1e-15)
    assert gh_singularity(robot, postures.reshape(3, 4, -1)) == pytest.approx(many.reshape(3, 4, 2), abs=1e-15)
    assert many.min() >= 0 and many.max() <= 1


def test_stretches_name_the_frames_near_the_singularity():
    values = np.ones((10, 2))
    values[3:6, 0] = [0.15, 0.05, 0.19]
    values[0, 1] = values[9, 1] = 0.1
    assert singular_stretches(values, 0.2) == [
        SingularStretch("r", 0, 0, 0.1),
        SingularStretch("l", 3, 5, 0.05),
        SingularStretch("r", 9, 9, 0.1),
    ]
    assert singular_stretches(np.ones((5, 2))) == []


def test_a_robot_without_the_three_joints_is_told_what_is_missing():
    with pytest.raises(RobotError, match="l_shoulder_rotation") as e:
        gh_singularity(load_robot("lola", "fixed"), load_robot("lola", "fixed").postures["zero"])
    assert "meanings" in str(e.value) and "\n" not in str(e.value)
