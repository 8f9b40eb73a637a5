"""All pairs of segments in one call: brute force, boxes, groups, mirror images, memory of normals."""

import itertools

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.ssv.distance import SegmentPairs
from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.model import PoseArray, SsvModel, pose_array
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, Volume
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import segment_pairs, volumes_of
from test.robots_under_test import nightly

TYPES = ("point", "line", "triangle")
HOME = np.eye(3), np.zeros(3)


def random_segment(name, rng, groups=("",)):
    ssvs = []
    for k in range(rng.integers(1, 6)):
        kind = rng.integers(0, 3)
        vertices = tuple(map(tuple, 0.3 * rng.normal(size=(kind + 1, 3))))
        ssvs.append(Volume(f"v{k}", TYPES[kind], float(rng.uniform(0, 0.1)), vertices, str(rng.choice(groups))))
    return Segment(name, name, tuple(ssvs))


def free_bodies(names):
    """Each link on a joint of its own."""
    return {name: (k, *HOME) for k, name in enumerate(names)}


def random_poses(count, rng, spread=0.6):
    return pose_array(
        [
            pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized().matrix(), spread * rng.normal(size=3))
            for _ in range(count)
        ]
    )


def in_world(ssv, row):
    R = row[:9].reshape(3, 3).T
    return np.array(ssv.vertices) @ R.T + row[9:]


def brute(model, k, poses):
    """(d, names) of the nearest pair of volumes of pair k, one at a time."""
    by_name = {s.name: s for s in model.segments}
    pair, out = model.pairs[k], []
    chosen = [
        [v for v in by_name[name].volumes if not groups or v.group in groups]
        for name, groups in ((pair.first, pair.groups_1), (pair.second, pair.groups_2))
    ]
    rows = [poses[model.arrays.joint[model.segments.index(by_name[n])]] for n in (pair.first, pair.second)]
    for a, b in itertools.product(*chosen):
        va, vb = in_world(a, rows[0])[None], in_world(b, rows[1])[None]
        r = distances(a.type[0] + b.type[0], va, np.array([a.radius]), vb, np.array([b.radius]))
        out.append((r.distance[0], f"{pair.first}.{a.name}", f"{pair.second}.{b.name}", r))
    return min(out, key=lambda x: x[0])


@pytest.mark.parametrize("groups", [("",), ("", "in", "out")])
def test_each_pair_of_segments_gives_its_nearest_pair_of_volumes(rng, groups):
    """m times n pairs of volumes each, in either order of types, with and without groups."""
    names = [f"s{k}" for k in range(8)]
    for _ in range(10):
        segments = [random_segment(n, rng, groups) for n in names]
        pairs = []
        for a, b in itertools.permutations(segments, 2):
            own = [[g for g in groups if g and any(v.group == g for v in s.volumes)] for s in (a, b)]
            pairs.append(SegmentPair(a.name, b.name, *(tuple(g[:1]) if rng.random() < 0.5 else () for g in own)))
        model = SsvModel.build(segments, free_bodies(names), pairs)
        poses = random_poses(len(names), rng)
        calculator = SegmentPairs(model, np.zeros((len(names), 0)))
        calculator.place(poses)
        near = calculator.nearest()
        assert np.array_equal(near.pair, np.arange(len(pairs)))
        for k in range(len(pairs)):
            d, first, second, r = brute(model, k, poses)
            assert near.distance[k] == pytest.approx(d, abs=1e-12)
            if not near.penetrating[k]:
                assert (model.volume_name(near.volumes[k, 0]), model.volume_name(near.volumes[k, 1])) == (first, second)
                assert np.allclose(near.normal[k], r.normal[0], atol=1e-9)
                assert np.allclose(near.point_1[k], r.point_0[0], atol=1e-9)
            assert np.allclose(near.point_2[k], near.point_1[k] + near.distance[k] * near.normal[k], atol=1e-12)


@pytest.mark.parametrize("name", ["lola", nightly("hrp2")])
@pytest.mark.parametrize("broad_phase", ["obb", "aabb", "none"])
def test_boxes_leave_out_nothing_nearer_than_the_activation_distance(name, broad_phase):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(1)
    model, data = volumes_of(robot), robot.model.createData()
    poses, everything = PoseArray(data), segment_pairs(robot, model)
    for activation in (-0.02, 0.05, 0.3):
        calculator = segment_pairs(robot, model, activation, broad_phase)
        for _ in range(40):
            pin.forwardKinematics(robot.model, data, robot.q(rng.uniform(robot.lower, robot.upper)))
            for c in (calculator, everything):
                c.place(poses.rows())
            near, full = calculator.nearest(), everything.nearest()
            assert len(full) == len(model.pairs)
            assert np.array_equal(near.pair, np.flatnonzero(full.distance < activation))
            assert np.array_equal(near.distance, full.distance[near.pair])
            # The normal of meeting cores is remembered from earlier calls, which differ.
            apart = ~near.penetrating
            for got, expected in zip(near.found, full.where(near.pair).found, strict=True):
                assert np.array_equal(got[apart], expected[apart])
            assert np.array_equal(near.core[apart], full.core[near.pair][apart])


@pytest.mark.parametrize("name", ["armar3", nightly("hrp2"), nightly("lola")])
def test_volumes_move_with_pinocchios_links(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(2)
    model, data = volumes_of(robot), robot.model.createData()
    poses, calculator = PoseArray(data), segment_pairs(robot, model)
    X = pin.SE3(pin.exp3(rng.normal(size=3)), rng.normal(size=3))
    q = robot.q(rng.uniform(robot.lower, robot.upper), X)
    pin.framesForwardKinematics(robot.model, data, q)
    assert np.array_equal(poses.rows(), pose_array(list(data.oMi)))
    calculator.place(poses.rows())
    for k, s in enumerate(model.segments):
        frame = data.oMf[robot.model.getFrameId(s.link)]
        for i, v in enumerate(s.volumes):
            expected = np.array(v.vertices) @ frame.rotation.T + frame.translation
            assert np.allclose(
                calculator.placed.vertices[model.arrays.start[k] + i, : len(v.vertices)], expected, atol=1e-12
            )
        assert np.allclose(calculator.placed.boxes[k, 3:12].reshape(3, 3), frame.rotation, atol=1e-12)


def test_mirrored_segments_are_the_other_side_exactly():
    """On mirrored links; and every distance of the mirrored posture is that of the other side."""
    thigh = Segment(
        "l_thigh",
        "l_thigh",
        (
            Volume("bone", "line", 0.06, ((0, 0.01, 0), (0.02, 0.03, -0.4))),
            Volume("l_knob", "point", 0.05, ((0, 0.07, 0),), mirror="z"),
        ),
        mirror="y",
    )
    frames = {"l_thigh": (0, *HOME), "r_thigh": (1, *HOME), "trunk": (2, *HOME)}
    trunk = Segment("trunk", "trunk", (Volume("plate", "triangle", 0.1, ((0, -0.1, 0.3), (0, 0.1, 0.3), (0, 0, 0.7))),))
    pairs = [SegmentPair("l_thigh", "trunk"), SegmentPair("r_thigh", "trunk")]
    model = SsvModel.build([thigh, trunk], frames, pairs)
    assert [s.name for s in model.segments] == ["l_thigh", "r_thigh", "trunk"]
    left, right = model.segments[:2]
    assert [v.name for v in left.volumes] == ["bone", "l_knob", "r_knob"]
    for a, b in zip(left.volumes, right.volumes, strict=True):
        assert np.array_equal(np.array(a.vertices) * [1, -1, 1], b.vertices) and a.radius == b.radius
    X = pin.SE3(pin.exp3(np.array([0.3, -0.2, 0.5])), np.array([0.05, 0.2, -0.1]))
    M = np.diag([1.0, -1.0, 1.0])
    mirrored = pin.SE3(M @ X.rotation @ M, M @ X.translation)
    calculator = SegmentPairs(model, np.zeros((3, 0)))
    calculator.place(pose_array([X, mirrored, pin.SE3.Identity()]))
    near = calculator.nearest()
    assert near.distance[0] == pytest.approx(near.distance[1], abs=1e-15)
    assert np.allclose(near.normal[0] * [1, -1, 1], near.normal[1], atol=1e-12)


def two_bars():
    bar = ((-0.5, 0.0, 0.0), (0.5, 0.0, 0.0))
    segments = [Segment(n, n, (Volume("bar", "line", 0.1, bar),)) for n in ("a", "b")]
    model = SsvModel.build(segments, free_bodies("ab"), [SegmentPair("a", "b")])
    return SegmentPairs(model, np.zeros((2, 0)))


def crossed(height):
    """The second bar across the first, this high above it."""
    return pose_array([pin.SE3.Identity(), pin.SE3(pin.exp3(np.array([0, 0, 0.7])), np.array([0, 0, height]))])


def test_cores_that_pierce_each_other_keep_the_normal_they_came_with():
    """From above or from below, the way back is the way they came; unknown, it is any of both."""
    for side in (1.0, -1.0):
        calculator = two_bars()
        for height in (0.3, 0.1, 1e-3, 0.0):
            calculator.place(crossed(side * height))
            near = calculator.nearest()
            assert np.allclose(near.normal, [[0, 0, side]])
            assert near.distance[0] == pytest.approx(height - 0.2)
            assert np.allclose(near.point_2, near.point_1 + near.distance[:, None] * near.normal, atol=1e-12)
        assert near.penetrating[0]
        calculator.reset()
        near = calculator.nearest()
        assert np.allclose(np.abs(near.normal), [[0, 0, 1]]) and near.penetrating[0]


def test_a_pose_that_is_not_a_number_is_reported_and_not_taken_for_far():
    for broad_phase in ("obb", "aabb", "none"):
        calculator = two_bars()
        calculator = SegmentPairs(calculator.model, np.zeros((2, 0)), 0.1, broad_phase)
        poses = crossed(5.0)
        calculator.place(poses)
        assert len(calculator.nearest()) == 0
        poses[1, 9] = np.nan
        calculator.place(poses)
        near = calculator.nearest()
        assert len(near) == 1 and np.isnan(near.distance[0])
        calculator.place(crossed(0.25))
        assert calculator.nearest().distance[0] == pytest.approx(0.05)


def test_results_are_copies():
    calculator = two_bars()
    calculator.place(crossed(0.3))
    near = calculator.nearest()
    calculator.place(crossed(0.5))
    calculator.nearest()
    assert near.distance[0] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda c: SegmentPairs(c.model, np.zeros((2, 0)), 0.1, "obbb"),
            "unknown broad phase 'obbb': did you mean obb",
        ),
        (lambda c: SegmentPairs(c.model, np.zeros((2, 0)), float("nan")), "must be in metres, or inf"),
    ],
)
def test_wrong_settings_are_one_clear_line(make, message):
    with pytest.raises((UnknownNameError, ConfigError), match=message):
        make(two_bars())


def test_joint_poses_follow_the_data_and_outlive_other_references():
    robot = load_robot("lola", "floating")
    data = robot.model.createData()
    poses = PoseArray(data)
    for posture in ("zero", "neutral"):
        pin.forwardKinematics(robot.model, data, robot.q(posture))
        assert np.array_equal(poses.rows(), pose_array(list(data.oMi)))
    rows = poses.rows().copy()
    del data
    assert np.array_equal(poses.rows(), rows)
