"""What one sees of a robot: complete, mirror-symmetric, made of primitives, and where the checked shapes are."""

from __future__ import annotations

import functools
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots import REFERENCES, load_robot
from humanoid_control.robots.shapes import Box, Capsule, EllipticCapsule, Sphere
from humanoid_control.robots.source import read_source, source_dir, source_names
from humanoid_control.robots.urdf_writer import urdf_text
from humanoid_control.robots.visuals import DEFAULT_COLORS, Primitive, _with_mirror, primitives_of_row, visuals_of

# What a viewer draws in a browser without a graphics card; six robots of this size stay fluid.
MOST_PRIMITIVES = 260
# The collision shapes are rounded hulls with a few centimetres of air; a cover may stand out of them by this much.
STANDS_OUT = 0.03
# Between two shapes a joint lies bare, and its housing fills the gap: there is nothing to compare with near a joint.
JOINT_REACH, HOUSING_STANDS_OUT = 0.1, 0.07
# A cover slimmer than its shape is the safe side: the robot keeps more distance than it looks.
SLIMMER = 0.06

ROBOTS = tuple(n for n in source_names() if n not in REFERENCES)  # those show bare bones for their tendons
BALL = [np.arange(400) + 0.5, np.pi * (1 + 5**0.5)]


@functools.cache
def source(name):
    return read_source(source_dir() / f"{name}.yaml")


@functools.cache
def visuals(name):
    return visuals_of(source(name))


@functools.cache
def zero_poses(name):
    robot = load_robot(name)
    return robot.link_poses(robot.q("zero"))


# -- the primitives as solids: an independent definition of what each of them holds ------------------------------


def signed_distance(p: Primitive, points: np.ndarray) -> np.ndarray:
    """Distance (N,) of points in the link frame to a primitive, negative inside."""
    local = Rotation.from_euler("xyz", p.rpy).inv().apply(points - np.array(p.xyz))
    if p.kind == "sphere":
        return np.linalg.norm(local, axis=1) - p.size[0]
    if p.kind == "box":
        out = np.abs(local) - np.array(p.size) / 2
    else:
        out = np.stack([np.hypot(local[:, 0], local[:, 1]) - p.size[0], np.abs(local[:, 2]) - p.size[1] / 2], 1)
    return np.linalg.norm(np.maximum(out, 0), axis=1) + np.minimum(out.max(axis=1), 0)


def depth(primitives: list[Primitive], points: np.ndarray) -> np.ndarray:
    """Smallest signed distance (N,) to any of the primitives."""
    return np.min([signed_distance(p, points) for p in primitives], axis=0)


def unit_ball_surface() -> np.ndarray:
    k, golden = BALL
    polar = np.arccos(1 - 2 * k / len(k))
    return np.stack([np.cos(golden * k) * np.sin(polar), np.sin(golden * k) * np.sin(polar), np.cos(polar)], 1)


def surface(p: Primitive) -> np.ndarray:
    """Points (N, 3) on a primitive's surface, in the link frame."""
    if p.kind == "sphere":
        points = unit_ball_surface() * p.size[0]
    elif p.kind == "cylinder":
        t, z = np.meshgrid(np.linspace(0, 2 * np.pi, 24, endpoint=False), np.linspace(-0.5, 0.5, 11))
        side = np.stack([p.size[0] * np.cos(t), p.size[0] * np.sin(t), p.size[1] * z], -1).reshape(-1, 3)
        points = np.concatenate([side, side * [0.5, 0.5, 1]])
    else:
        u = np.stack(np.meshgrid(*[np.linspace(-0.5, 0.5, 9)] * 2), -1).reshape(-1, 2)
        points = np.concatenate([np.insert(u, k, s, axis=1) for k in range(3) for s in (0.5, -0.5)]) * p.size
    return Rotation.from_euler("xyz", p.rpy).apply(points) + p.xyz


def shape_surface(shape) -> np.ndarray:
    """Points on a collision shape's surface, from its own definition."""
    ball = unit_ball_surface()
    if isinstance(shape, Box):
        return surface(Primitive("box", shape.size, shape.center, shape.rpy, ""))
    if isinstance(shape, Sphere):
        return ball * shape.radius + shape.center
    if isinstance(shape, Capsule):
        t = np.linspace(0, 1, 15)[:, None]
        line = np.array(shape.p0) + t * (np.array(shape.p1) - np.array(shape.p0))
        points = (line[:, None] + shape.radius * ball[None]).reshape(-1, 3)
        return points[shape_distance(shape, points) > -1e-9]
    if isinstance(shape, EllipticCapsule):
        caps = ball * [shape.b, shape.a, shape.c]
        t, z = np.meshgrid(np.linspace(0, 2 * np.pi, 72), np.linspace(-0.5, 0.5, 25))
        side = np.stack([shape.b * np.cos(t), shape.a * np.sin(t), shape.l * z], -1).reshape(-1, 3)
        caps[:, 2] += np.sign(caps[:, 2]) * shape.l / 2
        return np.concatenate([caps, side]) + middle_of(shape)
    return ball * shape.semi_axes + shape.center


def middle_of(shape: EllipticCapsule) -> np.ndarray:
    return np.array(shape.top_center) - [0, 0, shape.l / 2]


def shape_distance(shape, points: np.ndarray) -> np.ndarray:
    """Distance (N,) of points to a collision shape, not above zero inside; to a few millimetres for ellipses."""
    if isinstance(shape, Box):
        return signed_distance(Primitive("box", shape.size, shape.center, shape.rpy, ""), points)
    if isinstance(shape, Sphere):
        return np.linalg.norm(points - shape.center, axis=1) - shape.radius
    if isinstance(shape, Capsule):
        p0, d = np.array(shape.p0), np.array(shape.p1) - np.array(shape.p0)
        t = np.clip((points - p0) @ d / (d @ d), 0, 1)
        return np.linalg.norm(points - p0 - t[:, None] * d, axis=1) - shape.radius
    if isinstance(shape, EllipticCapsule):
        q = points - middle_of(shape)
        q[:, 2] = np.maximum(np.abs(q[:, 2]) - shape.l / 2, 0)
        inside = np.linalg.norm(q / [shape.b, shape.a, shape.c], axis=1) <= 1
    else:
        inside = np.linalg.norm((points - shape.center) / np.array(shape.semi_axes), axis=1) <= 1
    return np.where(inside, 0.0, cKDTree(shape_surface(shape)).query(points)[0])


def mirrored(p: Primitive) -> Primitive:
    r, t, y = p.rpy
    return Primitive(p.kind, p.size, (p.xyz[0], -p.xyz[1], p.xyz[2]), (-r, t, -y), p.color)


def same_solid(a: Primitive, b: Primitive) -> bool:
    """Whether two primitives are one solid of one colour, however their orientation is written."""
    if (a.kind, a.color) != (b.kind, b.color) or not np.allclose(a.size, b.size) or not np.allclose(a.xyz, b.xyz):
        return False
    Ra, Rb = (Rotation.from_euler("xyz", p.rpy).as_matrix() for p in (a, b))
    axes = {"sphere": [], "cylinder": [2], "box": [0, 1, 2]}[a.kind]
    return all(abs(Ra[:, k] @ Rb[:, k]) > 1 - 1e-9 for k in axes)


# -- the robots ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROBOTS)
class TestRobots:
    def test_every_heavy_link_is_seen(self, name):
        heavy = {link["name"] for link in source(name).links if link["mass"] > 0.3}
        assert len(heavy) > 10
        assert heavy <= {link for link, ps in visuals(name).items() if ps}

    def test_only_links_of_the_robot_carry_visuals(self, name):
        assert set(visuals(name)) <= {link["name"] for link in source(name).links}

    def test_urdf_draws_only_primitives_in_opaque_colours(self, name):
        root = ET.fromstring(urdf_text(source(name)))
        rgba = {
            m.get("name"): [float(v) for v in m.find("color").get("rgba").split()]
            for m in root.iter("material")
            if m.find("color") is not None
        }
        drawn = [v for link in root.iter("link") for v in link.iter("visual")]
        assert len(drawn) == sum(len(ps) for ps in visuals(name).values())
        for v in drawn:
            (solid,) = v.find("geometry")
            assert solid.tag in ("box", "cylinder", "sphere")
            sizes = [float(x) for value in solid.attrib.values() for x in value.split()]
            assert min(sizes) > 0.001
            assert v.find("material").get("name") in rgba
        for color in rgba.values():
            assert len(color) == 4 and min(color) >= 0 and max(color) <= 1 and color[3] == 1

    def test_colours_are_defined_and_used(self, name):
        used = {p.color for ps in visuals(name).values() for p in ps}
        assert used <= {*DEFAULT_COLORS, *source(name).colors}
        assert set(source(name).colors) <= used

    def test_number_of_primitives_is_bounded(self, name):
        assert 150 < sum(len(ps) for ps in visuals(name).values()) <= MOST_PRIMITIVES

    def test_left_and_right_are_mirror_images(self, name):
        for link, ps in visuals(name).items():
            twin = "r_" + link[2:] if link.startswith("l_") else "l_" + link[2:] if link.startswith("r_") else link
            others = list(visuals(name)[twin])
            assert len(others) == len(ps)
            for p in ps:
                match = [k for k, o in enumerate(others) if same_solid(mirrored(p), o)]
                assert match, f"{link}: {p} has no mirror image on {twin}"
                others.pop(match[0])

    def test_eyes_look_forward(self, name):
        eyes = [
            np.array(p.xyz) + (zero_poses(name)[link].translation - zero_poses(name)["head"].translation)
            for link, ps in visuals(name).items()
            for p in ps
            if p.color in ("lens", "eye")
        ]
        assert len(eyes) >= 2
        shape = next(s for s in source(name).collision if s.name == "head").shape
        for eye in eyes:
            assert eye[0] > shape.center[0] + 0.5 * shape.radius
            assert abs(eye[2] - shape.center[2]) < 0.5 * shape.radius

    def test_nothing_seen_far_outside_what_is_checked(self, name):
        poses = zero_poses(name)
        joints = np.array([poses[row["child"]].translation for row in source(name).joints])
        for link, ps in visuals(name).items():
            X = poses[link]
            points = np.concatenate([surface(p) for p in ps]) @ X.rotation.T + X.translation
            away = np.full(len(points), np.inf)
            for item in source(name).collision:
                Y = poses[item.link]
                away = np.minimum(away, shape_distance(item.shape, (points - Y.translation) @ Y.rotation))
            near_joint = np.linalg.norm(points[:, None] - joints[None], axis=2).min(axis=1) < JOINT_REACH
            worst = points[np.argmax(np.where(near_joint, 0, away))]
            assert np.all(away[~near_joint] < STANDS_OUT), f"{link} at {worst.round(3)}"
            assert np.all(away < HOUSING_STANDS_OUT), f"{link} at {points[np.argmax(away)].round(3)}"

    def test_nothing_checked_far_outside_what_is_seen(self, name):
        poses = zero_poses(name)
        for item in source(name).collision:
            X = poses[item.link]
            points = shape_surface(item.shape) @ X.rotation.T + X.translation
            away = np.full(len(points), np.inf)
            for link, ps in visuals(name).items():
                Y = poses[link]
                away = np.minimum(away, depth(ps, (points - Y.translation) @ Y.rotation))
            assert away.max() < SLIMMER, f"{item.name} at {points[np.argmax(away)].round(3)}: {away.max():.3f}"

    def test_bounding_box_of_the_body_agrees(self, name):
        poses = zero_poses(name)
        seen = np.concatenate(
            [surface(p) @ poses[k].rotation.T + poses[k].translation for k, ps in visuals(name).items() for p in ps]
        )
        checked = np.concatenate(
            [
                shape_surface(s.shape) @ poses[s.link].rotation.T + poses[s.link].translation
                for s in source(name).collision
            ]
        )
        np.testing.assert_allclose(seen.min(axis=0), checked.min(axis=0), atol=STANDS_OUT)
        np.testing.assert_allclose(seen.max(axis=0), checked.max(axis=0), atol=STANDS_OUT)

    def test_no_gap_opens_at_a_joint(self, name):
        """In random postures over the full ranges every link still reaches into the one that carries it."""
        robot, rng = load_robot(name), np.random.default_rng(5)
        parent = {row["child"]: row["parent"] for row in source(name).joints}
        for _ in range(12):
            poses = robot.link_poses(robot.q(rng.uniform(robot.lower, robot.upper)))
            for link, ps in visuals(name).items():
                carrier = parent.get(link)
                while carrier is not None and carrier not in visuals(name):
                    carrier = parent.get(carrier)
                if carrier is None:
                    continue
                X = poses[carrier].inverse() * poses[link]
                points = np.concatenate([surface(p) for p in ps]) @ X.rotation.T + X.translation
                assert depth(visuals(name)[carrier], points).min() < 0, f"{link} has left {carrier}"


# -- the shape kinds ------------------------------------------------------------------------------------------------

TURN = [0.4, -0.3, 0.7]
CENTER = np.array([0.02, -0.05, 0.3])


def solid(**row) -> list[Primitive]:
    return primitives_of_row({"link": "x", "color": "body", **row}, "test")


def local_points(half: float = 0.3, n: int = 40_000) -> np.ndarray:
    return np.random.default_rng(1).uniform(-half, half, (n, 3))


def check_exact(primitives: list[Primitive], rpy, distance) -> None:
    """The primitives hold a point exactly where the definition's distance is negative (a hair's width left out)."""
    points = local_points()
    expected = distance(points)
    got = depth(primitives, Rotation.from_euler("xyz", rpy).apply(points) + CENTER)
    clear = np.abs(expected) > 1e-6
    assert 0.01 < np.mean(expected < 0) < 0.9
    np.testing.assert_array_equal(got[clear] < 0, expected[clear] < 0)


def box_distance(points: np.ndarray, half: np.ndarray) -> np.ndarray:
    """Distance to a box, minus the depth inside along the nearest face."""
    out = np.abs(points) - half
    return np.linalg.norm(np.maximum(out, 0), axis=-1) + np.minimum(out.max(axis=-1), 0)


class TestShapes:
    @pytest.mark.parametrize(
        ("size", "radius", "count"), [([0.2, 0.3, 0.4], 0.05, 23), ([0.2, 0.3, 0.4], 0.1, 9), ([0.2, 0.2, 0.4], 0.3, 3)]
    )
    def test_rounded_box(self, size, radius, count):
        """All points within the radius of a smaller box; a pillow or a capsule where the radius is half a side."""
        ps = solid(shape="rounded_box", center=CENTER, size=size, radius=radius, rpy=TURN)
        assert len(ps) == count
        r = min(radius, min(size) / 2)
        check_exact(ps, TURN, lambda x: box_distance(x, np.array(size) / 2 - r) - r)

    @pytest.mark.parametrize("size", [[0.2, 0.3, 0.4], [0.3, 0.2, 0.4], [0.2, 0.2, 0.4]])
    def test_stadium(self, size):
        """Within half the lesser side of the middle line, between flat ends."""
        r = min(size[:2]) / 2
        core = np.array(size[:2]) / 2 - r

        def distance(x):
            return np.maximum(box_distance(x[:, :2], core) - r, np.abs(x[:, 2]) - size[2] / 2)

        check_exact(solid(shape="stadium", center=CENTER, size=size), [0, 0, 0], distance)

    @pytest.mark.parametrize("axis", ["x", "y", "z"])
    def test_slab(self, axis):
        """A rounded rectangle pushed along its axis."""
        size, k = np.array([0.2, 0.3, 0.4]), "xyz".index(axis)
        across = [n for n in range(3) if n != k]

        def distance(x):
            rounded = box_distance(x[:, across], size[across] / 2 - 0.04) - 0.04
            return np.maximum(rounded, np.abs(x[:, k]) - size[k] / 2)

        ps = solid(shape="slab", center=CENTER, size=size, radius=0.04, axis=axis, rpy=TURN)
        assert len(ps) == 6
        check_exact(ps, TURN, distance)

    def test_capsule(self):
        p0, p1 = np.array([0.0, 0.05, 0.1]), np.array([0.1, 0.0, -0.1])
        x = local_points()
        t = np.clip((x - p0) @ (p1 - p0) / ((p1 - p0) @ (p1 - p0)), 0, 1)
        expected = np.linalg.norm(x - p0 - t[:, None] * (p1 - p0), axis=1) - 0.08
        np.testing.assert_array_equal(depth(solid(shape="capsule", p0=p0, p1=p1, radius=0.08), x) < 0, expected < 0)

    @pytest.mark.parametrize("radii", [[0.12, 0.08], [0.08, 0.12]])
    def test_taper_fills_the_hull_of_its_balls_but_for_the_flutes(self, radii):
        """The hull of two balls is swept by all balls between; a flute is (1 - cos 45 deg) (R - r) deep."""
        p0, p1 = np.array([0.0, 0.05, 0.15]), np.array([0.1, 0.0, -0.15])
        x = local_points()
        t = np.linspace(0, 1, 201)[:, None]
        centers, swept = p0 + t * (p1 - p0), radii[0] + t[:, 0] * (radii[1] - radii[0])
        hull = np.min([np.linalg.norm(x - c, axis=1) - r for c, r in zip(centers, swept, strict=True)], axis=0)
        got = depth(solid(shape="taper", p0=p0, p1=p1, radii=radii), x)
        flute = (1 - np.cos(np.pi / 4)) * 0.04
        assert np.sum(hull < -flute) > 1000
        assert np.all(got[hull < -flute - 1e-3] < 0)
        assert np.all(hull[got < 0] < 1e-3)

    def test_mirror_repeats_a_left_row_on_the_right_link(self):
        row = {
            "link": "l_hand",
            "shape": "box",
            "center": [1, 2, 3],
            "size": [1, 1, 1],
            "rpy": [0.1, 0.2, 0.3],
            "mirror": True,
        }
        left, right = _with_mirror(row)
        assert left is row
        assert (right["link"], right["center"], right["rpy"]) == ("r_hand", [1, -2, 3], [-0.1, 0.2, -0.3])

    def test_unknown_shape_is_refused_with_the_known_ones(self):
        with pytest.raises(UnknownNameError, match="rounded_box"):
            solid(shape="round_box", center=CENTER, size=[1, 1, 1], radius=0.1)

    def test_missing_number_is_named(self):
        with pytest.raises(RobotError, match=r"slab.*lacks 'axis'"):
            solid(shape="slab", center=CENTER, size=[1, 1, 1], radius=0.1)
