"""The fast way to near pairs: poses as pinocchio's, distances as coal's, gradients as finite differences."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.pair_distance import boxed_distance
from humanoid_control.collision.shapes import BOX, CAPSULE
from humanoid_control.kinematics.forward_kinematics import JointPoses
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.self_collision import ShapePairs, find_faster_shapes, monitor_moving_shapes
from test.robots_under_test import by_kind


def random_q(robot, rng):
    joints = rng.uniform(robot.lower, robot.upper)
    if robot.base == "fixed":
        return robot.q(joints)
    return robot.q(joints, pin.SE3.Random())


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", by_kind(CATALOGUE))
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


def test_boxes_around_solids_are_never_farther_than_these():
    """And near enough to leave out what is far: by less than the solids are wide."""
    bounded = 0
    for name in ("lola", "wabian2", "armar3"):
        robot, rng = load_robot(name), np.random.default_rng(3)
        pairs = ShapePairs(robot)
        kinds = pairs.shapes.kinds[pairs.pairs]
        for _ in range(10):
            d = pairs.update(random_q(robot, rng), np.inf).distance
            boxed = np.array([boxed_distance(pairs.shapes, pairs.R, pairs.p, i, j) for i, j in pairs.pairs])
            assert (boxed <= d + 1e-9).all()
            quick = ((kinds <= CAPSULE) | (kinds == BOX)).all(axis=1)
            assert (boxed[quick] == -np.inf).all()
            some = (boxed > 0.0) & (d > 0.05)
            assert (d - boxed)[some].max(initial=0.0) < 0.3
            bounded += int(some.sum())
    assert bounded > 100


@pytest.mark.parametrize("name", ["lola", "wabian2"])
def test_pairs_that_another_velocity_makes_matter_are_found_behind_the_others(name):
    """All of them, by distances and gradients of all pairs, each once; what mattered before stays where it was."""
    robot, rng, least, margin, per_speed = load_robot(name, "floating"), np.random.default_rng(4), 0.12, 0.02, 0.13
    pairs, every, law = ShapePairs(robot), ShapePairs(robot), (0.12, 0.02, 0.13)
    more = passed_over = 0
    for _ in range(60):
        q = random_q(robot, rng)
        v, w = (size * rng.normal(size=robot.nv) for size in (rng.choice([0.02, 0.3]), 3.0))
        need = per_speed * np.abs(v[robot.iv :])
        count = monitor_moving_shapes(pairs.packed.table, q, v, need, law)
        first = pairs.arrays.found.first(count)
        total = find_faster_shapes(pairs.packed.table, w, law, count)
        found = pairs.arrays.found.first(total)
        assert np.array_equal(found.pair[:count], first.pair) and np.array_equal(found.distance[:count], first.distance)
        near = every.update(q, np.inf)
        assert len(set(found.pair)) == total and np.allclose(found.distance, near.distance[found.pair], atol=1e-9)
        pin.computeJointJacobians(robot.model, robot.data, q)
        closing = -(near.gradient(robot.data.J) @ w)
        matter = near.distance < np.maximum(least, margin + per_speed * np.maximum(closing, 0.0))
        assert set(np.flatnonzero(matter)) <= set(found.pair) and matter[found.pair[count:]].all()
        more, passed_over = more + total - count, passed_over + len(near) - total
    assert more > 50 and passed_over > 1000, (more, passed_over)
