"""Collision counts: the table's rows by hand, and on postures that are known to collide."""

from collections import Counter

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation.self_collision import (
    ARM_TORSO_COLUMNS,
    PairDistances,
    arm_torso_column,
    count_collisions,
    self_penetration,
)
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind

ROBOTS = ("armar3", "hrp2", "suralp", "wabian2", "we4rii")


def test_every_robot_watches_both_arms_against_both_torsos():
    for name in ROBOTS:
        robot = load_robot(name, "fixed")
        pairs = self_penetration(robot, robot.postures["neutral"][None]).arm_torso().pairs
        found = Counter((arm_torso_column(*p), next(n for n in p if n[1] == "_")) for p in pairs)
        parts = ("upper_arm", "lower_arm", "hand")
        assert set(found) == {
            (f"{'upper' if part == 'upper_arm' else 'lower'} arm - {torso} torso", f"{side}_{part}")
            for part in parts
            for torso in ("upper", "lower")
            for side in "lr"
        }, name


def test_a_frame_counts_once_for_each_arm():
    pairs = (
        ("l_lower_arm", "upper_torso"),
        ("upper_torso", "r_lower_arm"),
        ("l_upper_arm", "lower_torso"),
        ("l_hand", "r_hand"),
        ("l_hand", "upper_torso"),
    )
    distance = np.array(
        [
            [0.1, 0.1, 0.1, 0.1, 0.1],
            [-0.01, -0.02, 0.1, 0.1, -0.03],  # both arms, the left one with two shapes
            [-0.01, 0.1, -0.05, -0.3, 0.1],
            [0.0, 0.1, 0.1, -0.1, 0.1],  # touching is no penetration
        ]
    )
    count = count_collisions(PairDistances(pairs, distance))
    assert count.arm_torso == dict(zip(ARM_TORSO_COLUMNS, [3, 0, 0, 1], strict=True))
    assert count.per_arm["l"] == dict(zip(ARM_TORSO_COLUMNS, [2, 0, 0, 1], strict=True))
    assert count.per_arm["r"] == dict(zip(ARM_TORSO_COLUMNS, [1, 0, 0, 0], strict=True))
    assert (count.total, count.frames, count.frames_arm_torso) == (4, 4, 2)
    assert count.others == {"l_hand - r_hand": 2}
    assert (count.worst, count.worst_other) == (0.05, 0.3)
    assert PairDistances(pairs, distance).penetration().tolist() == [0, 0.03, 0.3, 0.1]


@pytest.mark.parametrize("name", by_kind(ROBOTS))
def test_neutral_is_free_and_an_arm_pulled_through_the_chest_is_not(name):
    robot = load_robot(name, "fixed")
    inward = robot.postures["neutral"].copy()
    k = robot.joint_index("l_shoulder_abduction")
    inward[k] = robot.lower[k]
    inward[robot.joint_index("l_elbow_flexion")] = np.radians(80)
    inward[robot.joint_index("l_shoulder_rotation")] = np.radians(70)
    count = count_collisions(self_penetration(robot, np.array([robot.postures["neutral"], inward])))
    assert count.per_arm["l"]["lower arm - upper torso"] + count.per_arm["l"]["lower arm - lower torso"] >= 1
    assert sum(count.per_arm["r"].values()) == 0
    assert count.frames_arm_torso == 1 and count.worst > 0.005


@pytest.mark.parametrize("name", by_kind(ROBOTS))
def test_the_mirrored_motion_collides_with_the_other_arm(name):
    robot = load_robot(name, "fixed")
    rng = np.random.default_rng(2)
    joints = np.tile(robot.postures["neutral"], (60, 1))
    mirrored = joints.copy()
    for joint in robot.joint_names:
        if not joint.startswith(("l_shoulder", "l_elbow", "r_shoulder", "r_elbow")):
            continue
        other = ("r" if joint[0] == "l" else "l") + joint[1:]
        k = robot.joint_index(joint)
        joints[:, k] = rng.uniform(max(robot.lower[k], -1.5), min(robot.upper[k], 1.5), 60)
        mirrored[:, robot.joint_index(other)] = joints[:, k]
    a, b = (count_collisions(self_penetration(robot, q)) for q in (joints, mirrored))
    assert a.total > 10
    assert (a.per_arm["l"], a.per_arm["r"]) == (b.per_arm["r"], b.per_arm["l"])
    assert a.worst == pytest.approx(b.worst, abs=1e-6)


@pytest.mark.parametrize("name", by_kind(ROBOTS))
def test_distances_are_coals(name):
    """coal holds an elliptic capsule as a polyhedron around it, up to 0.9 % larger."""
    robot = load_robot(name, "fixed")
    joints = np.random.default_rng(5).uniform(np.maximum(robot.lower, -2), np.minimum(robot.upper, 2), (200, robot.n))
    ours = self_penetration(robot, joints).distance
    measure, data = robot.self_distance(), robot.model.createData()
    hits = 0
    for row, d in zip(joints, ours, strict=True):
        pin.forwardKinematics(robot.model, data, robot.q(row))
        coal = measure.all_distances(data)
        shallow = d > -0.02  # deep inside, both call it differently
        assert np.all(coal[shallow] <= d[shallow] + 1e-4)
        assert d[shallow] == pytest.approx(coal[shallow], abs=4e-3)
        assert np.all(coal[~shallow] < 0)
        hits += int((d < 0).sum())
    assert hits > 20
