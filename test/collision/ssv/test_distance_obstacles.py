"""Obstacles around the robot, by the same volumes and distances as its own links (F-42)."""

import coal
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision.ssv.model import PoseArray
from humanoid_control.collision.ssv.segments import Segment, SegmentPair, Volume
from humanoid_control.errors import UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import WORLD, build_volumes, segment_pairs, segments_of

EDGES = ((0.25, -0.6, 0.9), (0.25, 0.6, 0.9), (0.9, -0.6, 0.9), (0.9, 0.6, 0.9))
THICK = 0.02
TABLE = Segment(
    "table",
    WORLD,
    (Volume("near", "triangle", THICK, EDGES[:3]), Volume("far", "triangle", THICK, EDGES[1:])),
)


@pytest.fixture(scope="module")
def lola_at_a_table():
    robot = load_robot("lola", "floating")
    segments = segments_of(robot)
    model = build_volumes(robot, [*segments, TABLE], [SegmentPair("table", s.name) for s in segments])
    return robot, model, segment_pairs(robot, model)


def standing_somewhere(robot, rng):
    joints = np.clip(robot.postures["neutral"] + 0.4 * rng.normal(size=robot.n), robot.lower, robot.upper)
    q = robot.q(joints)
    return pin.integrate(robot.model, q, np.concatenate([0.1 * rng.normal(size=6), np.zeros(robot.n)]))


def distances_at(robot, calculator, q):
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    calculator.place(PoseArray(data).rows())
    near = calculator.nearest()
    return near, near.gradient(data.J)


def test_distance_to_a_table_is_what_coal_says(lola_at_a_table):
    """coal has the table as a flat box with its rim rounded by the same radius, the links as volumes of one vertex."""
    robot, model, calculator = lola_at_a_table
    corners = np.array(EDGES)
    low, high = corners.min(axis=0), corners.max(axis=0)
    table = coal.Box(*(high - low)[:2], 1e-9)
    place = coal.Transform3s(np.eye(3), (low + high) / 2)
    rng, seen = np.random.default_rng(0), 0
    for _ in range(20):
        near, _ = distances_at(robot, calculator, standing_somewhere(robot, rng))
        for k, d in zip(near.pair, near.distance, strict=True):
            segment = next(s for s in model.segments if s.name == model.pairs[k].second)
            if len(segment.volumes) == 1 and segment.volumes[0].type == "line" and d > 0:
                volume = model.arrays.start[model.segments.index(segment)]
                a, b = calculator.placed.vertices[volume, :2]
                axis, radius = b - a, segment.volumes[0].radius
                turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), axis).matrix()
                capsule = coal.Capsule(radius, float(np.linalg.norm(axis)))
                got = coal.DistanceResult()
                coal.distance(table, place, capsule, coal.Transform3s(turn, (a + b) / 2), coal.DistanceRequest(), got)
                assert d == pytest.approx(got.min_distance - THICK, abs=1e-5)
                seen += 1
    assert seen > 50


def test_gradient_is_the_finite_difference_also_by_the_base(lola_at_a_table):
    """The table stays where it is when the whole robot moves, so the columns of the base count."""
    robot, _, calculator = lola_at_a_table
    rng, h, worst = np.random.default_rng(1), 1e-6, []
    for _ in range(5):
        q = standing_somewhere(robot, rng)
        near, G = distances_at(robot, calculator, q)
        assert np.abs(G[:, :6]).max() > 0.5
        for _ in range(4):
            v = rng.normal(size=robot.nv)
            ends = [distances_at(robot, calculator, pin.integrate(robot.model, q, s * h * v))[0] for s in (1, -1)]
            slope = (ends[0].distance - ends[1].distance) / (2 * h)
            clear = ~near.penetrating  # cores through the table have a normal by rule
            error = np.abs(slope - G @ v)[clear]
            worst.append(error.max())
            assert np.median(error) < 1e-7
    assert np.mean(np.array(worst) < 1e-6) > 0.8, "all pairs, but where two places are equally near"


def test_a_link_that_is_not_there_names_the_world_too(lola_at_a_table):
    robot = lola_at_a_table[0]
    with pytest.raises(UnknownNameError, match="world"):
        build_volumes(robot, [Segment("table", "wrld", TABLE.volumes)], [])
