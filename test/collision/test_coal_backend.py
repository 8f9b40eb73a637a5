"""Distances and gradients against coal over all pairs, finite differences, and brute force on sampled surfaces."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision import CollisionPairs
from humanoid_control.collision.coal_backend import coal_shape, elliptic_capsule_points, shape_arrays
from humanoid_control.collision.shapes import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    EllipticCapsule,
    LinkShape,
    Sphere,
    shape_from_row,
    shape_to_row,
)
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind

RNG = np.random.default_rng(5)


def random_q(robot, rng):
    return robot.q(rng.uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3)))


def at(robot, data, q):
    pin.computeJointJacobians(robot.model, data, q)
    return data


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_near_pairs_are_exactly_the_near_ones(name, base):
    """The ball test may only leave out what is far: same pairs, same distances as testing all."""
    robot = load_robot(name, base)
    distance, data, rng = robot.self_distance(), robot.model.createData(), np.random.default_rng(1)
    for _ in range(60):
        at(robot, data, random_q(robot, rng))
        everything = distance.all_distances(data)
        for threshold in (-0.01, 0.0, 0.05, 0.3):
            near = distance.near(data, threshold)
            assert set(near.pair) == set(np.flatnonzero(everything < threshold))
            assert np.allclose(near.distance, everything[near.pair], atol=1e-7)


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_gradient_is_the_finite_difference_outside_touching_and_inside(name):
    robot = load_robot(name, "floating")
    distance, data, moved = robot.self_distance(), robot.model.createData(), robot.model.createData()
    rng, eps, outside, inside = np.random.default_rng(2), 1e-5, 0, 0
    for _ in range(120):
        q = random_q(robot, rng)
        near = distance.near(at(robot, data, q), 0.05)
        if not len(near):
            continue
        G, dv = near.gradient(data.J), rng.normal(size=robot.nv)
        plus = distance.all_distances(at(robot, moved, pin.integrate(robot.model, q, eps * dv)))[near.pair]
        minus = distance.all_distances(at(robot, moved, pin.integrate(robot.model, q, -eps * dv)))[near.pair]
        assert np.allclose(G @ dv, (plus - minus) / (2 * eps), atol=2e-3), distance.name(int(near.pair[0]))
        outside, inside = outside + int((near.distance > 0).sum()), inside + int((near.distance < 0).sum())
    assert outside > 20 and inside > 20, "both cases must have been seen"


def test_gradient_does_not_depend_on_where_the_robot_stands():
    """The moment about a far origin must not leak into the rows of the joints."""
    robot = load_robot("lola", "floating")
    distance, data, rng = robot.self_distance(), robot.model.createData(), np.random.default_rng(3)
    turn = pin.SE3(pin.rpy.rpyToMatrix(0, 0, 1.0), np.array([1000.0, -500.0, 0.0]))
    for _ in range(30):
        q = random_q(robot, rng)
        here = distance.near(at(robot, data, q), 0.05)
        G_here = here.gradient(data.J)
        far = q.copy()
        far[:7] = pin.SE3ToXYZQUAT(turn * pin.XYZQUATToSE3(q[:7]))
        there = distance.near(at(robot, data, far), 0.05)
        assert here.pair.tolist() == there.pair.tolist()
        assert np.allclose(here.distance, there.distance, atol=1e-6)
        assert np.allclose(G_here[:, 6:], there.gradient(data.J)[:, 6:], atol=1e-4)


def test_mirrored_posture_has_mirrored_distances():
    robot = load_robot("wabian2", "fixed")
    distance, data, rng = robot.self_distance(), robot.model.createData(), np.random.default_rng(4)
    names = robot.joint_names
    twin = [
        robot.index[("r_" if n[0] == "l" else "l_") + n[2:]] if n[:2] in ("l_", "r_") else k
        for k, n in enumerate(names)
    ]
    # A middle joint about x or z changes sign in the mirror, one about y does not.
    sign = np.array(
        [1.0 if n[:2] in ("l_", "r_") or (n.endswith("_flexion") and "lateral" not in n) else -1.0 for n in names]
    )
    swap = {
        s.name: ("r_" if s.name[0] == "l" else "l_") + s.name[2:] if s.name[:2] in ("l_", "r_") else s.name
        for s in robot.shapes
    }
    pairs = {frozenset(distance.name(k)): k for k in range(len(robot.pairs))}
    for _ in range(20):
        q = random_q(robot, rng)
        a = distance.all_distances(at(robot, data, q))
        b = distance.all_distances(at(robot, data, (sign * q)[twin]))
        for pair, k in pairs.items():
            assert a[k] == pytest.approx(b[pairs[frozenset(swap[n] for n in pair)]], abs=1e-6)


def surface(shape, n=4000):
    """Points just inside a shape's surface, by rejection from its bounding ball: independent of the code under test."""
    center, radius = shape.bounding_sphere()
    return center + radius * (2 * RNG.random((n, 3)) - 1)


def inside(shape, p):
    """Direct definition of each shape."""
    if isinstance(shape, Sphere):
        return np.linalg.norm(p - shape.center, axis=1) <= shape.radius
    if isinstance(shape, Ellipsoid):
        return np.linalg.norm((p - shape.center) / shape.semi_axes, axis=1) <= 1
    if isinstance(shape, Box):
        return (np.abs((p - shape.center) @ pin.rpy.rpyToMatrix(*shape.rpy)) <= np.array(shape.size) / 2).all(axis=1)
    if isinstance(shape, EllipticCapsule):
        d = p - np.array(shape.top_center)
        z = np.where(d[:, 2] > 0, d[:, 2], np.where(d[:, 2] < -shape.l, d[:, 2] + shape.l, 0.0))
        return (d[:, 0] / shape.b) ** 2 + (d[:, 1] / shape.a) ** 2 + (z / shape.c) ** 2 <= 1
    a, b = np.array(shape.p0), np.array(shape.p1)
    t = np.clip((p - a) @ (b - a) / max((b - a) @ (b - a), 1e-12), 0, 1)
    gap = np.linalg.norm(p - a - t[:, None] * (b - a), axis=1) <= shape.radius
    return gap if isinstance(shape, Capsule) else gap & (t > 0) & (t < 1)


SHAPES = [
    Sphere((0.1, 0, 0.2), 0.1),
    Capsule((0, 0, 0), (0.1, 0.2, 0.3), 0.05),
    Cylinder((0, 0, 0.1), (0, 0.3, 0.1), 0.07),
    Box((0.1, 0, 0), (0.2, 0.3, 0.1), (0.3, -0.2, 0.5)),
    Ellipsoid((0, 0.1, 0), (0.05, 0.12, 0.08)),
    EllipticCapsule((0, 0, 0.4), 0.19, 0.16, 0.05, 0.22),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.kind)
def test_coal_shape_holds_what_it_should(shape):
    """Every point inside by definition is inside coal's shape, and coal's shape is hardly larger."""
    import coal

    geometry, X = coal_shape(shape)
    point = coal.Sphere(1e-9)
    request = coal.DistanceRequest()
    request.gjk_tolerance, request.gjk_max_iterations = 1e-9, 500
    points = surface(shape)
    is_inside = inside(shape, points)
    assert 0.02 < is_inside.mean() < 0.98
    d = []
    for p in points:
        result = coal.DistanceResult()
        d.append(
            coal.distance(
                geometry,
                coal.Transform3s(X.rotation, X.translation),
                point,
                coal.Transform3s(np.eye(3), p),
                request,
                result,
            )
        )
    d = np.array(d)
    assert d[is_inside].max() < 1e-6
    grown = 0.012 * max(shape.bounding_sphere()[1], 0.05) if isinstance(shape, (Ellipsoid, EllipticCapsule)) else 1e-6
    # A point outside by more than the polyhedron's excess is seen outside.
    clearly = ~is_inside & (d < -grown)
    assert not clearly.any()


def test_bounding_ball_holds_the_shape():
    for shape in SHAPES:
        center, radius = shape.bounding_sphere()
        wide = center + 1.5 * radius * (2 * RNG.random((20000, 3)) - 1)
        hits = wide[inside(shape, wide)]
        assert len(hits) > 50
        assert np.linalg.norm(hits - center, axis=1).max() <= radius + 1e-9


def test_elliptic_capsule_polyhedron_circumscribes():
    p = elliptic_capsule_points(0.19, 0.16, 0.05, 0.22)
    from scipy.spatial import ConvexHull

    hull = ConvexHull(p)
    inner = EllipticCapsule((0, 0, 0), 0.19, 0.16, 0.05, 0.22)
    rng = np.random.default_rng(0)
    samples = rng.uniform(-0.35, 0.35, (20000, 3))
    samples = samples[inside(inner, samples)]
    assert (samples @ hull.equations[:, :3].T + hull.equations[:, 3]).max() < 1e-9
    exact = np.pi * 0.19 * 0.16 * 0.22 + 4 / 3 * np.pi * 0.19 * 0.16 * 0.05
    assert exact < hull.volume < 1.02 * exact


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.kind)
def test_rows_round_trip(shape):
    item = LinkShape("a", "link", shape)
    assert shape_from_row(shape_to_row(item), "here") == item


@pytest.mark.parametrize("name", by_kind(["hrp2", "lola", "we4rii"]))
def test_depths_are_those_of_the_exact_kernels(name):
    """coal's own depth of cylinders and polyhedra is up to 17 cm too large; a torso's polyhedron is 1 % too wide."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(8)
    backend, data = robot.self_distance(), robot.model.createData()
    exact = CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask)
    rough = np.isin(exact.shapes.kinds[exact.pairs], (4, 5)).any(axis=1)
    seen = 0
    for _ in range(40):
        at(robot, data, random_q(robot, rng))
        exact.place(np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi]))
        expected, got = exact.all_distances(), backend.all_distances(data)
        inside = (expected < -1e-6) & (got < -1e-6)
        assert np.allclose(got[inside & ~rough], expected[inside & ~rough], atol=1e-6)
        assert np.abs(got - expected)[inside & rough].max(initial=0.0) < 0.006
        near = backend.near(data, 0.0)
        assert np.allclose(near.point_2 - near.point_1, near.distance[:, None] * near.normal, atol=1e-6)
        seen += int(inside.sum())
    assert seen > 10
