"""The kernel over all pairs of real robots: nothing left out, the same as coal, no array made on the way."""

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.dube2012.capsule_test import dube_distances
from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.pair_distance import (
    CollisionPairs,
    PairsFound,
    pair_distance,
    pair_distances,
    shape_poses,
)
from humanoid_control.collision.shapes import ELLIPSOID, KIND_NAMES, ShapeArrays, bounding_radius
from humanoid_control.robots import CATALOGUE, load_robot
from test.robots_under_test import by_kind


class Buffers:
    """Arrays for one robot, and the two kernels called on them."""

    def __init__(self, robot):
        self.A, self.pairs = shape_arrays(robot.model, robot.shapes), robot.pairs.astype(np.int64)
        n, s = len(self.pairs), len(self.A.kinds)
        self.R, self.p = np.empty((s, 3, 3)), np.empty((s, 3))
        self.out = PairsFound.buffer(n)

    def poses(self, data):
        joint_R = np.array([X.rotation for X in data.oMi])
        joint_p = np.array([X.translation for X in data.oMi])
        shape_poses(joint_R, joint_p, self.A, self.R, self.p)

    def near(self, threshold):
        return pair_distances(self.A, self.R, self.p, self.pairs, threshold, self.out)


def random_posture(robot, rng):
    return robot.q(rng.uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3)))


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_near_pairs_are_exactly_the_near_ones(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(3)
    buffers, data = Buffers(robot), robot.model.createData()
    pair, distance, normal, x1, x2 = buffers.out
    seen = 0
    for _ in range(40):
        pin.forwardKinematics(robot.model, data, random_posture(robot, rng))
        buffers.poses(data)
        all_d = np.array([pair_distance(buffers.A, buffers.R, buffers.p, i, j)[0] for i, j in buffers.pairs])
        for threshold in (-0.02, 0.0, 0.05, 0.3):
            count = buffers.near(threshold)
            assert np.array_equal(pair[:count], np.flatnonzero(all_d < threshold))
            assert np.array_equal(distance[:count], all_d[pair[:count]])
            apart = distance[:count] > 0
            gap = x2[:count] - x1[:count]
            assert np.allclose(gap[apart], (distance[:count, None] * normal[:count])[apart], atol=1e-12)
            seen += count
    assert seen > 100


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_robots_are_as_far_from_themselves_as_coal_says(name):
    """coal's torsos are polyhedra, up to 1 % too wide: those may be nearer by that; all else agrees to 1e-8."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(4)
    buffers, data, reference = Buffers(robot), robot.model.createData(), robot.self_distance()
    smooth = buffers.A.kinds >= ELLIPSOID
    rough = smooth[buffers.pairs].any(axis=1)
    distance = buffers.out[1]
    for _ in range(60):
        pin.forwardKinematics(robot.model, data, random_posture(robot, rng))
        buffers.poses(data)
        count = buffers.near(10.0)
        assert count == len(robot.pairs)
        expected = reference.all_distances(data)
        apart = expected > 1e-6
        assert np.allclose(distance[:count][apart & ~rough], expected[apart & ~rough], atol=1e-8)
        excess = (distance[:count] - expected)[apart & rough]
        assert ((excess > -1e-8) & (excess < 0.005)).all()


@pytest.mark.parametrize("name", CATALOGUE)
def test_shape_poses_are_pinocchios(name):
    robot = load_robot(name, "floating")
    buffers, data = Buffers(robot), robot.model.createData()
    gdata = robot.geometry.createData()
    q = pin.randomConfiguration(robot.model, np.full(robot.nq, -1.0), np.full(robot.nq, 1.0))
    pin.updateGeometryPlacements(robot.model, data, robot.geometry, gdata, q)
    buffers.poses(data)
    for k, shape in enumerate(robot.shapes):
        X = gdata.oMg[k]
        top = [0, 0, shape.shape.l / 2] if shape.shape.kind == "elliptic_capsule" else [0, 0, 0]
        assert np.allclose(buffers.R[k], X.rotation, atol=1e-12)
        assert np.allclose(buffers.p[k] + buffers.R[k] @ top, X.translation, atol=1e-12)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_bounding_sphere_holds_the_shape_and_touches_it(brute, rng, kind):
    n = brute.directions(20000)
    for _ in range(20):
        size = np.array(brute.random_size(kind, rng))
        radius = bounding_radius(KIND_NAMES.index(kind), size)
        # The largest reach in any direction is the distance of the farthest point.
        assert brute.reach(kind, size, np.eye(3), n).max() == pytest.approx(radius, rel=2e-3)
        assert brute.reach(kind, size, np.eye(3), n).max() <= radius + 1e-12


def place(pairs, robot, data, q):
    pin.computeJointJacobians(robot.model, data, q)
    pairs.place(np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi]))


@pytest.mark.parametrize("name", ["hrp2", "we4rii", "lola"])
def test_gradient_in_joint_space_is_the_finite_difference(name):
    """To 1e-6, outside and inside, with the joints' Jacobians; pairs with two equally near places are ignored."""
    robot, rng, eps = load_robot(name, "floating"), np.random.default_rng(2), 1e-6
    pairs = CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask)
    data, moved = robot.model.createData(), robot.model.createData()
    outside = inside = kinks = 0
    for _ in range(200):
        q = random_posture(robot, rng)
        place(pairs, robot, data, q)
        near, dv = pairs.near(0.05), rng.normal(size=robot.nv)
        predicted = near.gradient(data.J) @ dv
        ends = []
        for e in (eps, -eps):
            place(pairs, robot, moved, pin.integrate(robot.model, q, e * dv))
            ends.append(pairs.all_distances()[near.pair])
        smooth = np.abs(ends[0] + ends[1] - 2 * near.distance) < 1e-9
        radius = pairs.shapes.sizes[:, 0]
        shallow = near.distance > -0.9 * radius[pairs.pairs[near.pair]].min(axis=1)  # off the medial axis
        use = smooth & shallow
        assert np.allclose(predicted[use], (ends[0] - ends[1])[use] / (2 * eps), atol=1e-6)
        outside, inside = outside + (near.distance[use] > 0).sum(), inside + (near.distance[use] < 0).sum()
        kinks += (~smooth & shallow).sum()
    assert outside > 100 and inside > 20 and kinks < 0.1 * (outside + inside)


def test_pairs_with_their_arrays_give_what_the_kernels_give():
    robot, rng = load_robot("we4rii", "fixed"), np.random.default_rng(6)
    buffers, data = Buffers(robot), robot.model.createData()
    pairs = CollisionPairs(buffers.A, robot.pairs, robot.ancestor_mask)
    for _ in range(20):
        place(pairs, robot, data, random_posture(robot, rng))
        buffers.poses(data)
        count, near = buffers.near(0.1), pairs.near(0.1)
        columns = (near.pair, near.distance, near.normal, near.point_1, near.point_2)
        for got, expected in zip(columns, buffers.out, strict=True):
            assert np.array_equal(got, expected[:count])
        everything, source = pairs.all_distances(), dube_distances(pairs)
        assert np.array_equal(everything[near.pair], near.distance) and len(everything) == len(robot.pairs)
        assert np.array_equal(source.collides, source.collides & (everything <= 1e-9))


def test_no_pairs_and_no_shapes_give_no_rows():
    empty = ShapeArrays.build([], [], [], [], [])
    assert len(empty.kinds) == 0 and empty.R.shape == (0, 3, 3)
    none = np.zeros((0, 2), dtype=np.int64)
    assert pair_distances(empty, empty.R, empty.p, none, 1.0, PairsFound.buffer(0)) == 0
