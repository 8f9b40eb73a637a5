"""The fast way to near pairs: poses as pinocchio's, distances as coal's, gradients as finite differences."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.robots import CATALOGUE, load_robot


def random_q(robot, rng):
    joints = rng.uniform(robot.lower, robot.upper)
    if robot.base == "fixed":
        return robot.q(joints)
    return robot.q(joints, pin.SE3.Random())


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_every_joint_is_where_pinocchio_has_it(name, base):
    robot, rng = load_robot(name, base), np.random.default_rng(1)
    pin.seed(1)
    poses = JointPoses(robot.model)
    for _ in range(10):
        q = random_q(robot, rng)
        poses.update(q)
        pin.forwardKinematics(robot.model, robot.data, q)
        for j in range(robot.model.njoints):
            assert np.allclose(poses.R[j], robot.data.oMi[j].rotation, atol=1e-12)
            assert np.allclose(poses.p[j], robot.data.oMi[j].translation, atol=1e-12)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["hrp2", "we4rii", "lola"])
def test_gradients_are_finite_differences_and_distances_coals(name, base):
    robot, rng, eps = load_robot(name, base), np.random.default_rng(2), 1e-6
    pin.seed(2)
    pairs, coal = robot.collision_monitor("shapes"), robot.self_distance()
    seen = wrong = 0
    for _ in range(16):
        q = random_q(robot, rng)
        near = pairs.update(q, 0.08)
        pin.computeJointJacobians(robot.model, robot.data, q)
        G = near.gradient(robot.data.J)
        theirs = coal.all_distances(robot.data)
        outside = near.distance > 0.005
        assert np.abs(theirs[near.pair] - near.distance)[outside].max(initial=0) < 3e-3, "coal measures polyhedra"
        dv = rng.normal(size=robot.nv)
        plus = pairs.update(pin.integrate(robot.model, q, eps * dv), np.inf).distance[near.pair]
        minus = pairs.update(pin.integrate(robot.model, q, -eps * dv), np.inf).distance[near.pair]
        off = np.abs(G @ dv - (plus - minus) / (2 * eps))
        seen += len(off)
        wrong += int(np.sum(off > 1e-5))  # where two witness points are equally near the distance has a kink
    assert seen > 20
    assert wrong < 0.05 * seen
