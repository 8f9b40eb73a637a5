"""The source's avoidance: after it no arm is left in the trunk, and only shiftable joints were moved."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import RetargetSettings, scale_to_robot
from humanoid_control.retargeting.retargeter import Retargeter
from humanoid_control.robots import CATALOGUE, load_robot

ARM, TRUNK = ("upper_arm", "lower_arm", "hand"), ("upper_torso", "lower_torso")
LOOSE = {"method": "weighted_dls", "velocity_scale": np.inf}


def arm_trunk_pairs(robot):
    """Columns of the watched pairs that are an arm against the trunk."""
    names = [[robot.shapes[k].name for k in pair] for pair in robot.pairs]
    arm = np.array([any(n[2:] in ARM for n in pair) for pair in names])
    return np.flatnonzero(arm & np.array([any(n in TRUNK for n in pair) for pair in names]))


def depth(robot, joints):
    """(T,) least distance of an arm and the trunk, by coal, whose polyhedra are up to 0.9 % larger than the shapes."""
    distance, data, columns = robot.self_distance(), robot.model.createData(), arm_trunk_pairs(robot)
    out = []
    for q in joints:
        pin.forwardKinematics(robot.model, data, robot.q(q))
        out.append(distance.all_distances(data)[columns].min())
    return np.array(out)


@pytest.mark.parametrize("name", CATALOGUE)
def test_no_arm_is_left_in_the_trunk(name):
    robot = load_robot(name, "fixed")
    targets = scale_to_robot(find_body_points(load_clip("dance")), robot)
    before = Retargeter(robot, RetargetSettings(**LOOSE)).solve(targets)
    solver = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE))
    after = solver.solve(targets)
    assert solver.shift.failures == 0
    bad = np.flatnonzero(depth(robot, before.positions) < -5e-3)
    assert (depth(robot, after.positions[bad]) > -2e-3).all()
    changed = np.abs(after.positions - before.positions).max(axis=0) > 0
    shiftable = {robot.joint_index(f"{s}_{j}") for s in "lr" for j in ("shoulder_abduction", "elbow_flexion")}
    assert set(np.flatnonzero(changed)) <= shiftable
    assert (after.positions >= robot.lower).all() and (after.positions <= robot.upper).all()


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n != "lola"])  # whose arms hardly reach its trunk
def test_postures_put_into_the_trunk_at_random_are_freed(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(5)
    solver = Retargeter(robot, RetargetSettings(avoidance="shift", **LOOSE))
    m, freed = robot.imitation_joints, 0
    for _ in range(300):
        joints = robot.postures["neutral"].copy()
        joints[m] = rng.uniform(robot.lower[m], robot.upper[m])
        if depth(robot, [joints])[0] > -5e-3:
            continue
        failures = solver.shift.failures
        joints[m] = solver.shift(joints[m])
        if solver.shift.failures == failures:
            freed += 1
            assert depth(robot, [joints])[0] > -2e-3
    assert freed > 10
