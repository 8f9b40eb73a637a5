"""The kinds of shapes a robot is drawn with: they hold exactly the points of their definition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision import Ellipsoid, EllipticCapsule, LinkShape
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots.generate.urdf import Primitive, _with_mirror, primitives_of_row, primitives_of_shape
from test.reference.volume_excess import signed_distances
from test.robots.visual_solids import depth

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

    @pytest.mark.parametrize(
        "shape",
        [
            EllipticCapsule((0.0, 0.02, 0.1), 0.165, 0.12, 0.04, 0.22),
            EllipticCapsule((0.0, 0.02, 0.1), 0.12, 0.165, 0.05, 0.2),
            EllipticCapsule((0.0, 0.02, 0.1), 0.12, 0.12, 0.05, 0.2),
            Ellipsoid((0.01, 0.07, 0.0), (0.05, 0.075, 0.045)),
            Ellipsoid((0.01, 0.07, 0.0), (0.06, 0.06, 0.06)),
        ],
    )
    def test_what_urdf_lacks_lies_inside_and_fills_most_of_the_shape(self, shape):
        """Whatever keeps clear of the shape keeps clear of its primitives, which stand back a little."""
        x = local_points(0.25, 60_000)
        exact = signed_distances(shape, x)
        got = depth(primitives_of_shape(LinkShape("trunk", "chest", shape), "body"), x)
        assert np.sum(got < 0) > 200
        assert exact[got < 0].max() <= 1e-9
        assert got[exact < -0.018].max(initial=-1.0) <= 1e-9

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
