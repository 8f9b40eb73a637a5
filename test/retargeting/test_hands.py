"""Hands that touch the own body, each other or the floor: the robot's touch what the person's do, measured by coal."""

from dataclasses import replace

import coal
import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.collision import shape_arrays
from humanoid_control.collision.coal_backend import coal_shape
from humanoid_control.collision.shapes import Box, Capsule, Cylinder, Ellipsoid, LinkShape, Sphere
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.whole_body.hands import (
    ALONG,
    BARE,
    FAR,
    NEAR,
    PALM,
    ROUND,
    THICK,
    HandSurfaces,
    bent_arm,
    hanging,
)
from humanoid_control.retargeting.whole_body.scaling import Legs
from humanoid_control.robots import load_robot
from humanoid_control.robots.joint_groups import JointGroups
from test.walking_person import RATE, walking_person

ROBOTS = ("hrp2", "wabian2", "lola")
SECONDS = 2.0


def standing(**points):
    """A person who stands for SECONDS; some points elsewhere: (3,) from the middle of the hips, or (T, 3) of them."""
    walk, _ = walking_person(1)
    T = round(SECONDS * RATE)
    positions = np.repeat(walk.positions[:1], T, axis=0)
    middle = walk.mid_hip[0]
    for name, place in points.items():
        positions[:, walk.names.index(name)] = middle + np.asarray(place, float)
    return replace(walk, positions=positions, missing=walk.missing.copy())


def both(elbow, wrist):
    """Both arms, mirrored."""
    mirror = np.array([1.0, -1.0, 1.0])
    return {
        "l_elbow": np.asarray(elbow),
        "l_wrist": np.asarray(wrist),
        "r_elbow": mirror * elbow,
        "r_wrist": mirror * wrist,
    }


def at_once(point):
    """The wrist that brings the palm to a point from an elbow to the side of it."""
    elbow = np.array([0.0, 0.42, 0.17])
    along = np.asarray(point) - elbow
    return elbow, np.asarray(point) - PALM * along / np.linalg.norm(along)


def on_belly(away):
    """Both palms before the belly, their backs `away` from it."""
    elbow, wrist = at_once([0.11 + THICK + away, 0.09, 0.2])
    return standing(**both(elbow, wrist))


def clapping(apart):
    """Both palms before the chest, `apart` from each other."""
    point = np.array([0.35, 0.5 * apart + THICK, 0.25])
    elbow = np.array([0.05, 0.3, 0.12])
    along = point - elbow
    return standing(**both(elbow, point - PALM * along / np.linalg.norm(along)))


@pytest.fixture(scope="module")
def robots():
    return {name: load_robot(name, "floating") for name in ROBOTS}


def moved(body, robot, hands):
    """The motion of a robot, with hands kept or not."""
    targets = WholeBodyScaler(body, robot, hands=hands).targets(body)
    return WholeBodyRetargeter.following(targets, robot).solve(targets)


def parts(robot):
    """Indices of shapes: of hands (beyond the wrists, or else forearms), left and right, and of all but the arms."""
    shapes, groups = shape_arrays(robot.model, robot.shapes), JointGroups.of(robot)
    arms = {int(k) + 2 for k in groups.arms}
    rest = [k for k, j in enumerate(shapes.joint) if not arms & set(robot.model.supports[int(j)])]
    found = []
    for side in "lr":
        carrier = int(robot.model.frames[robot.point_frame(f"{side}_wrist")].parentJoint)
        found.append([k for k, j in enumerate(shapes.joint) if carrier in robot.model.supports[int(j)]])
    return found[0], found[1], rest


def distance(robot, q, some, others):
    """Least distance between two sets of a robot's shapes, by coal [m]."""
    places = pin.GeometryData(robot.geometry)
    pin.updateGeometryPlacements(robot.model, robot.model.createData(), robot.geometry, places, q)
    request, least = coal.DistanceRequest(), np.inf
    for a in some:
        for b in others:
            one, other = (robot.geometry.geometryObjects[k].geometry for k in (a, b))
            X = [coal.Transform3s(places.oMg[k].rotation, places.oMg[k].translation) for k in (a, b)]
            least = min(least, coal.distance(one, X[0], other, X[1], request, coal.DistanceResult()))
    return least


# -------- what is measured of a robot


@pytest.mark.parametrize(
    "shape",
    [
        Sphere((0.1, 0.0, 0.0), 0.2),
        Box((0.0, 0.1, 0.0), (0.2, 0.3, 0.4), (0.1, 0.2, 0.3)),
        Capsule((0.0, 0.0, -0.1), (0.1, 0.0, 0.2), 0.1),
        Cylinder((0.0, 0.0, -0.1), (0.1, 0.0, 0.2), 0.1),
        Ellipsoid((0.0, 0.0, 0.1), (0.1, 0.2, 0.3)),
    ],
    ids=lambda s: s.kind,
)
def test_what_lies_inside_a_shape_has_no_distance_to_it(robots, shape):
    robot = robots["hrp2"]
    link = robot.shapes[0].link
    arrays = shape_arrays(robot.model, (LinkShape("one", link, shape),))
    solid, X_link = coal_shape(shape)
    X = robot.model.frames[robot.model.getFrameId(link, pin.FrameType.BODY)].placement * X_link
    rng = np.random.default_rng(0)
    points = X.translation + rng.uniform(-0.25, 0.25, (400, 3))
    inside = arrays.contains(0, (points - arrays.p[0]) @ arrays.R[0])
    away = [
        coal.distance(
            coal.Sphere(1e-6),
            coal.Transform3s(np.eye(3), p),
            solid,
            coal.Transform3s(X.rotation, X.translation),
            coal.DistanceRequest(),
            coal.DistanceResult(),
        )
        for p in points
    ]
    sure = np.abs(away) > 3e-3  # the ellipsoid is a polyhedron to coal
    assert 5 < inside.sum() < 395 and (inside[sure] == (np.array(away)[sure] < 0.0)).all()


@pytest.mark.parametrize("name", ROBOTS)
def test_surfaces_lie_on_shapes(robots, name):
    robot = robots[name]
    legs = Legs.of(robot)
    surfaces = HandSurfaces.of(robot, legs.hips, legs.knees)
    shoulders = robot.point_positions(robot.q("neutral"), ["l_gh", "r_gh"])
    start, end = legs.hips.mean(axis=0), shoulders.mean(axis=0)
    z = (end - start) / np.linalg.norm(end - start)
    rest, off = parts(robot)[2], []
    places = pin.GeometryData(robot.geometry)
    pin.updateGeometryPlacements(robot.model, robot.model.createData(), robot.geometry, places, robot.q("neutral"))
    for i, share in enumerate(ALONG):
        for j in (4, 8, 12):  # to the right, ahead, to the left
            r = surfaces.radius[0, i, j]
            x = np.cross([0.0, 1.0, 0.0], z)
            u = np.cos(ROUND[j]) * x + np.sin(ROUND[j]) * np.array([0.0, 1.0, 0.0])
            X = coal.Transform3s(np.eye(3), start + share * (end - start) + r * u)
            if r > BARE:
                solids = [(robot.geometry.geometryObjects[k].geometry, places.oMg[k]) for k in rest]
                to = [
                    coal.distance(
                        coal.Sphere(1e-6), X, s, coal.Transform3s(P.rotation, P.translation), coal.DistanceRequest(),
                        coal.DistanceResult(),
                    )
                    for s, P in solids
                ]  # fmt: skip
                off.append(min(to))
    assert len(off) > 10 and np.abs(off).max() < 0.012, off


def test_a_bent_arm_keeps_its_lengths_and_its_side():
    rng = np.random.default_rng(1)
    shoulder, elbow = rng.normal(size=(50, 3)), rng.normal(size=(50, 3))
    wrist = shoulder + rng.normal(size=(50, 3)) * 0.3
    bent, reached = bent_arm(shoulder, elbow, wrist, 0.3, 0.25)
    assert np.linalg.norm(bent - shoulder, axis=1) == pytest.approx(0.3)
    assert np.linalg.norm(reached - bent, axis=1) == pytest.approx(0.25)
    far = np.linalg.norm(wrist - shoulder, axis=1)
    can = (far > 0.06) & (far < 0.54)
    assert can.sum() > 20 and np.allclose(reached[can], wrist[can])
    u = (wrist - shoulder) / far[:, None]
    sides = [p - shoulder - np.sum((p - shoulder) * u, axis=1, keepdims=True) * u for p in (bent, elbow)]
    cosine = np.sum(sides[0] * sides[1], axis=1) / np.prod(np.linalg.norm(sides, axis=2), axis=0)
    assert cosine == pytest.approx(1.0)


# -------- what robots do


@pytest.mark.parametrize("name", ROBOTS)
def test_a_walk_with_hanging_arms_is_not_changed(robots, name):
    body, _ = walking_person(2)
    kept, plain = (WholeBodyScaler(body, robots[name], hands=h).targets(body).positions for h in (True, False))
    assert np.array_equal(kept, plain)


def test_arms_hang_straight_down_only():
    down = standing(**both([0.0, 0.2, 0.12], [0.0, 0.2, -0.15]))
    hips = standing(**both([0.0, 0.42, 0.17], [0.0, 0.22, 0.05]))
    ahead = standing(**both([0.3, 0.18, 0.42], [0.55, 0.18, 0.42]))
    for body, share in ((down, 1.0), (hips, 0.0), (ahead, 0.0)):
        assert hanging({n: body.point(n) for n in body.names}, "l") == pytest.approx(share)


@pytest.mark.parametrize("away", [0.0, 0.02])
@pytest.mark.parametrize("name", ROBOTS[:2])
def test_hands_on_the_belly_lie_on_that_of_the_robot(robots, name, away):
    robot = robots[name]
    left, right, rest = parts(robot)
    q = moved(on_belly(away), robot, True).q()[-1]
    assert all(0.0 < distance(robot, q, hand, rest) < away + 0.03 for hand in (left, right))


@pytest.mark.parametrize("name", ROBOTS[:2])
def test_hands_on_the_hips_lie_beside_those_of_the_robot(robots, name):
    """Without being kept they lie before its belly: its arms are shorter."""
    robot = robots[name]
    left, right, rest = parts(robot)
    akimbo = standing(**both([-0.05, 0.42, 0.17], [0.02, 0.26, 0.05]))
    kept, plain = (moved(akimbo, robot, hands).q()[-1] for hands in (True, False))
    assert distance(robot, kept, left, rest) < 0.03 and distance(robot, kept, right, rest) < 0.03
    assert distance(robot, kept, left, right) > 1.3 * distance(robot, plain, left, right)


@pytest.mark.parametrize("apart", [0.0, 0.025])
@pytest.mark.parametrize("name", ROBOTS[:2])
def test_hands_that_clap_meet(robots, name, apart):
    robot = robots[name]
    left, right, _ = parts(robot)
    kept, plain = (moved(clapping(apart), robot, hands).q()[-1] for hands in (True, False))
    assert abs(distance(robot, kept, left, right) - apart) < 0.03
    assert distance(robot, plain, left, right) > apart + 0.05


@pytest.mark.parametrize("name", ROBOTS)
def test_stretched_arms_whose_hands_come_near_do_not_jump(robots, name):
    """Hands come together from beyond to within where they count as near; a stretched arm is longer than it reaches."""
    T = 1500
    apart = np.linspace(FAR + 0.03, NEAR, T)
    shoulder, ahead = np.array([0.0, 0.18, 0.42]), np.array([0.55, 0.0, 0.42])
    wrist = ahead + np.stack([np.zeros(T), 0.5 * apart + THICK, np.zeros(T)], axis=1)
    points = both(0.5 * (shoulder + wrist), wrist) | {"l_shoulder": shoulder, "r_shoulder": shoulder * [1, -1, 1]}
    still = standing()
    positions = np.repeat(still.positions[:1], T, axis=0)
    for point, place in points.items():
        positions[:, still.names.index(point)] = still.mid_hip[0] + place
    body = replace(still, positions=positions, missing=still.missing.copy())
    kept, plain = (WholeBodyScaler(body, robots[name], hands=h).targets(body).positions for h in (True, False))
    shift = (kept - plain)[:, 3:7]
    assert not shift[0].any() and np.linalg.norm(shift[-1], axis=1).max() > 0.01, "from far to near"
    assert np.linalg.norm(np.diff(shift, axis=0), axis=2).max() < 5e-4


def on_all_fours(sway):
    """A person stands for a second, then crouches with both hands on the floor; the trunk sways by `sway` (T,) [m]."""
    T = len(sway)
    walk, _ = walking_person(1)
    up = walk.positions[:1]
    at = {n: np.repeat(walk.point(n)[:1], T, axis=0) for n in walk.names}
    moving = np.stack([sway, 0.0 * sway, 0.0 * sway], axis=1)
    for side, y in (("l", 1.0), ("r", -1.0)):
        ankle = at[f"{side}_ankle"]
        at[f"{side}_hip"] = ankle + [-0.12, -0.01 * y, 0.38] + moving
        middle = 0.5 * (at[f"{side}_hip"] + ankle)
        at[f"{side}_knee"] = middle + [0.34, 0.0, 0.12]
        at[f"{side}_shoulder"] = at[f"{side}_hip"] + [0.4, 0.09 * y, 0.02]
        at[f"{side}_wrist"] = ankle + [0.42, 0.1 * y, 0.06 - ankle[0, 2]]
        at[f"{side}_elbow"] = 0.5 * (at[f"{side}_shoulder"] + at[f"{side}_wrist"]) + [0.0, 0.08 * y, 0.0]
    at["sternum"] = 0.5 * (at["l_shoulder"] + at["r_shoulder"]) - [0.02, 0.0, 0.05]
    at["head"] = at["sternum"] + [0.2, 0.0, 0.15]
    down = np.stack([at[n] for n in walk.names], axis=1)
    share = np.linspace(0.0, 1.0, 80)[:, None, None]
    positions = np.concatenate([np.repeat(up, 100, axis=0), (1.0 - share) * up + share * down[:1], down])
    return replace(walk, positions=positions, missing=walk.missing.copy())


@pytest.mark.parametrize("name", ROBOTS[:2])
def test_hands_on_the_floor_stay_where_they_are_put(robots, name):
    t = np.arange(200) / RATE
    body = on_all_fours(0.05 * np.sin(2.0 * np.pi * t))
    there = slice(200, len(body.positions))
    scalers = [WholeBodyScaler(body, robots[name], hands=h) for h in (True, False)]
    kept, plain = (scaler.targets(body).positions[there] for scaler in scalers)
    surfaces = scalers[0].surfaces
    for k, side in ((5, "l"), (6, "r")):
        along = (body.point(f"{side}_wrist") - body.point(f"{side}_elbow"))[there]
        palm = kept[:, k] + surfaces.palm * along / np.linalg.norm(along, axis=1, keepdims=True)
        assert np.ptp(palm[:, :2], axis=0).max() < 0.003 < np.ptp(plain[:, k, :2], axis=0).max()
        assert palm[:, 2] == pytest.approx(surfaces.thick, abs=0.03) and np.ptp(palm[:, 2]) < 0.01


@pytest.mark.parametrize("name", ROBOTS[:2])
def test_kept_hands_are_mirrored_with_the_person(robots, name):
    hanging = {"l_elbow": [0.0, 0.2, 0.12], "l_wrist": [0.0, 0.2, -0.15]}
    body = standing(**both([-0.05, 0.42, 0.17], [0.02, 0.26, 0.05]) | hanging)
    twins = {"l": "r", "r": "l"}
    swap = [body.names.index(twins[n[0]] + n[1:] if n[1] == "_" else n) for n in body.names]
    mirrored = replace(body, positions=body.positions[:, swap] * [1.0, -1.0, 1.0], missing=body.missing.copy())
    a, b = (WholeBodyScaler(x, robots[name]).targets(x).positions[-1] for x in (body, mirrored))
    for k, twin in ((3, 4), (4, 3), (5, 6), (6, 5)):
        assert b[k] == pytest.approx(a[twin] * [1.0, -1.0, 1.0], abs=2e-3)
