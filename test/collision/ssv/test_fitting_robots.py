"""Volumes made from robots' shapes: they hold them, by how much they are larger, and which pairs are watched."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision import CollisionPairs
from humanoid_control.collision.coal_backend import shape_arrays
from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, EllipticCapsule, Sphere
from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.fitting import outline, volumes_of_shape
from humanoid_control.collision.ssv.model import PoseArray
from humanoid_control.collision.ssv.pair_selection import NEIGHBOURS, NEVER, SAME_BODY, Sampling
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import find_pairs, segment_pairs, segments_of, volumes_of
from test.reference.volume_excess import enlargement, excess
from test.robots_under_test import by_kind, nightly

SHAPES = [
    Sphere((0.1, 0.2, 0.3), 0.07),
    Capsule((0.0, 0.1, 0.0), (0.0, 0.1, 0.3), 0.05),
    Cylinder((0.0, 0.0, -0.2), (0.1, 0.0, 0.2), 0.06),
    Cylinder((0.0, 0.0, -0.01), (0.0, 0.0, 0.01), 0.2),
    Box((0.03, 0.0, -0.1), (0.205, 0.12, 0.04), (0.1, -0.4, 0.9)),
    Box((0.0, 0.0, 0.2), (0.6, 0.6, 0.5)),
    Ellipsoid((0.01, 0.07, 0.0), (0.05, 0.075, 0.045)),
    EllipticCapsule((0.0, 0.0, 0.342), 0.165, 0.12, 0.04, 0.282),
    EllipticCapsule((0.0, 0.0, 0.1), 0.11, 0.13, 0.03, 0.08),
    EllipticCapsule((-0.045, 0.0, 0.2385), 0.19, 0.16, 0.05, 0.22),
]


def inside(shape, rng, count=4000):
    """Points of the shape, from its definition: a box, or an ellipsoid swept along a line."""
    n = rng.normal(size=(count, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    t = rng.uniform(0, 1, (count, 1))
    if isinstance(shape, Sphere):
        return np.array(shape.center) + shape.radius * n
    if isinstance(shape, Capsule):
        return np.array(shape.p0) * t + np.array(shape.p1) * (1 - t) + shape.radius * n
    if isinstance(shape, Cylinder):
        u = np.array(shape.p1) - np.array(shape.p0)
        flat = n - (n @ u)[:, None] * u / (u @ u)
        flat /= np.linalg.norm(flat, axis=1)[:, None]
        return np.array(shape.p0) + np.round(t) * u + shape.radius * flat
    if isinstance(shape, Box):
        corners = np.sign(n) * np.array(shape.size) / 2
        return np.array(shape.center) + corners @ pin.rpy.rpyToMatrix(*shape.rpy).T
    if isinstance(shape, Ellipsoid):
        return np.array(shape.center) + n * shape.semi_axes
    return np.array(shape.top_center) + n * [shape.b, shape.a, shape.c] - np.round(t) * [0, 0, shape.l]


def from_volumes(points, ssvs):
    """Signed distance (n,) of points from the nearest of some volumes."""
    zero, best = np.zeros(len(points)), np.full(len(points), np.inf)
    for s in ssvs:
        core = np.broadcast_to(np.array(s.vertices), (len(points), len(s.vertices), 3))
        best = np.minimum(best, distances("p" + s.type[0], points[:, None], zero, core, zero + s.radius).distance)
    return best


@pytest.mark.parametrize("shape", SHAPES, ids=lambda s: s.kind)
def test_volumes_hold_the_whole_shape(shape, rng):
    ssvs = volumes_of_shape(shape, "s")
    points = inside(shape, rng)
    assert from_volumes(points, ssvs).max() <= 1e-9
    middle = points.mean(0)
    assert from_volumes(middle + rng.uniform(0, 1, (len(points), 1)) * (points - middle), ssvs).max() <= 1e-9
    if isinstance(shape, (Ellipsoid, EllipticCapsule)):
        assert from_volumes(outline(shape), ssvs).max() <= 1e-9


@pytest.mark.parametrize(
    "shape, most, volume",
    [
        (SHAPES[0], 1e-9, 1.0),
        (SHAPES[1], 1e-9, 1.0),
        (SHAPES[2], 0.055, 1.2),
        (SHAPES[4], 0.019, 1.45),
        (SHAPES[6], 0.01, 1.35),
        (SHAPES[7], 0.027, 1.27),
        nightly(SHAPES[9], 0.030, 1.27),
    ],
    ids=lambda s: getattr(s, "kind", None),
)
def test_how_much_larger_volumes_are(shape, most, volume):
    """Sphere and capsule exactly; Lola's foot by 18 mm, a torso by 25 mm at one edge and a quarter of its volume."""
    e = enlargement(shape, volumes_of_shape(shape, "s"))
    assert e.excess <= most and 0.97 <= e.volume_ratio <= volume * 1.03


def test_excess_is_how_far_the_surface_stands_out(rng):
    """By hand: a ball of 0.1 around a point 0.05 beside the middle of a ball of 0.12 stands out by 0.03."""
    ssvs = volumes_of_shape(Sphere((0.05, 0.0, 0.0), 0.1), "s")
    assert enlargement(Sphere((0.0, 0.0, 0.0), 0.12), ssvs).excess == pytest.approx(0.03, abs=1e-4)


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_pairs_are_the_robots_own_and_distances_those_of_its_shapes(name):
    """Exact where both are spheres or capsules; else never larger, and smaller by what the volumes stand out."""
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(4)
    model, exact = (
        volumes_of(robot),
        CollisionPairs(shape_arrays(robot.model, robot.shapes), robot.pairs, robot.ancestor_mask),
    )
    assert len(model.pairs) == len(robot.pairs)
    for k, (i, j) in enumerate(robot.pairs):
        assert model.names(k) == (robot.shapes[i].name, robot.shapes[j].name)
    out = np.array([excess(s.shape, volumes_of_shape(s.shape, s.name)) for s in robot.shapes])
    swept = np.array([isinstance(s.shape, (Sphere, Capsule)) for s in robot.shapes])
    both, slack = swept[robot.pairs].all(axis=1), out[robot.pairs].clip(0).sum(axis=1)
    data, calculator = robot.model.createData(), segment_pairs(robot, model)
    poses = PoseArray(data)
    for _ in range(40):
        pin.forwardKinematics(robot.model, data, robot.q(rng.uniform(robot.lower, robot.upper)))
        calculator.place(poses.rows())
        exact.place(np.array([X.rotation for X in data.oMi]), np.array([X.translation for X in data.oMi]))
        ours, true = calculator.nearest().distance, exact.all_distances()
        assert np.allclose(ours[both], true[both], atol=1e-9)
        apart = true > 0
        assert (ours[apart] <= true[apart] + 1e-9).all()
        assert (ours[apart] >= true[apart] - slack[apart] - 1e-3).all()


@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_segments_by_link_give_the_nearest_of_their_shapes(name):
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(5)
    by_shape, by_link = volumes_of(robot), volumes_of(robot, by_link=True)
    assert len(by_link.segments) == len({s.link for s in robot.shapes}) <= len(by_shape.segments)
    link = {s.name: s.link for s in robot.shapes}
    groups = [frozenset((link[p.first], link[p.second])) for p in by_shape.pairs]
    assert {frozenset(by_link.names(k)) for k in range(len(by_link.pairs))} == set(groups)
    # No pair of shapes twice, none lost.
    assert len(by_link.arrays.volume_pairs) == len(by_shape.arrays.volume_pairs)
    data = robot.model.createData()
    poses = PoseArray(data)
    calculators = [segment_pairs(robot, m) for m in (by_shape, by_link)]
    for _ in range(20):
        pin.forwardKinematics(robot.model, data, robot.q(rng.uniform(robot.lower, robot.upper)))
        least = []
        for c in calculators:
            c.place(poses.rows())
            table = {}
            for k, d in enumerate(c.nearest().distance):
                key = groups[k] if c is calculators[0] else frozenset(by_link.names(k))
                table[key] = min(d, table.get(key, np.inf))
            least.append(table)
        assert least[0].keys() == least[1].keys()
        assert all(least[0][k] == pytest.approx(least[1][k], abs=1e-12) for k in least[0])


def test_left_and_right_are_mirror_images():
    """Lola's shapes are symmetric; so are the volumes, and the distances of a mirrored posture."""
    robot = load_robot("lola", "fixed")
    segments = {s.name: s for s in segments_of(robot)}
    for name in ("thigh", "foot", "upper_arm", "clavicle"):
        left, right = segments[f"l_{name}"], segments[f"r_{name}"]
        for points, image in ((left, right), (right, left)):
            v = np.array([x for s in points.volumes for x in s.vertices]) * [1, -1, 1]
            assert from_volumes(v, image.volumes).max() < -0.99 * points.volumes[0].radius + 1e-6
    torso = segments["upper_torso"].volumes
    assert from_volumes(np.array([x for s in torso for x in s.vertices]) * [1, -1, 1], torso).max() < -0.06


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["lola", "hrp2"])
def test_pairs_left_out_never_touch_in_other_postures(name):
    """Found with one seed, tried with another, at random and at the limits; and every pair is accounted for."""
    robot = load_robot(name, "fixed")
    segments = segments_of(robot)
    choice = find_pairs(robot, segments, Sampling(postures=400))
    count = len(segments)
    assert len(choice.pairs) + len(choice.left_out) == count * (count - 1) // 2
    assert len(choice.explain()) == len(choice.left_out)
    never = {frozenset((x.first, x.second)) for x in choice.left_out if x.reason == NEVER}
    assert len(never) > 20
    model, data, rng = volumes_of(robot), robot.model.createData(), np.random.default_rng(99)
    watched = [k for k in range(len(model.pairs)) if frozenset(model.names(k)) in never]
    calculator, poses = segment_pairs(robot, model), PoseArray(data)
    for _ in range(1000):
        x = np.where(rng.random(robot.n) < 0.5, np.where(rng.random(robot.n) < 0.5, robot.lower, robot.upper), 0)
        x = np.where(x == 0, rng.uniform(robot.lower, robot.upper), x)
        pin.forwardKinematics(robot.model, data, robot.q(x))
        calculator.place(poses.rows())
        assert calculator.nearest().distance[watched].min() > 0


def test_reasons_of_pairs_left_out_are_right_and_the_same_for_the_same_seed():
    robot = load_robot("lola", "fixed")
    segments = segments_of(robot)
    a, b = (find_pairs(robot, segments, Sampling(postures=20, seed=3)) for _ in range(2))
    assert a == b
    joint = {s.name: robot.model.frames[robot.model.getFrameId(s.link)].parentJoint for s in robot.shapes}
    parent = robot.model.parents.tolist()
    for x in a.left_out:
        i, j = joint[x.first], joint[x.second]
        assert (x.reason == SAME_BODY) == (i == j)
        assert (x.reason == NEIGHBOURS) == (parent[i] == j or parent[j] == i)
    assert "upper_torso - l_clavicle: no joint moves one relative to the other" in a.explain()
    assert any(
        line.startswith("l_thigh - lower_torso: they overlap by") and line.endswith("mm at rest")
        for line in a.explain()
    )
    assert ("l_shank", "r_shank") in [(p.first, p.second) for p in a.pairs]
