"""Support polygons against brute force and Qhull."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull

from humanoid_control.walking.support import convex_hull, edge_distance, nearest_in_polygon

clouds = st.integers(0, 10**6).map(lambda s: np.random.default_rng(s).normal(size=(3 + s % 9, 2)))


@settings(max_examples=60)
@given(clouds)
def test_the_hull_is_that_of_qhull(points):
    hull, expected = convex_hull(points), points[ConvexHull(points).vertices]
    assert sorted(map(tuple, hull)) == sorted(map(tuple, expected))
    area = 0.5 * np.sum(hull[:, 0] * np.roll(hull[:, 1], -1) - hull[:, 1] * np.roll(hull[:, 0], -1))
    assert area == pytest.approx(ConvexHull(points).volume)  # positive: counter-clockwise


def test_the_hull_drops_what_is_on_its_edges_and_twice():
    square = [[0, 0], [1, 0], [1, 1], [0, 1]]
    assert convex_hull(np.array([*square, [0.5, 0], [0.5, 0.5], [1, 1]], dtype=float)).tolist() == square


def edges(polygon, count=4000):
    u = np.linspace(0, 1, count)[:, None]
    return np.vstack([a + u * (b - a) for a, b in zip(polygon, np.roll(polygon, -1, axis=0), strict=True)])


@settings(max_examples=40)
@given(clouds, st.tuples(st.floats(-3, 3), st.floats(-3, 3)))
def test_the_nearest_point_of_a_polygon_is_no_farther_than_any_on_its_edge(points, p):
    polygon, p = convex_hull(points), np.array(p)
    near, d = nearest_in_polygon(polygon, p), np.linalg.norm(edges(polygon) - p, axis=1).min()
    inside = ConvexHull(points).equations @ [*p, 1] <= 1e-12
    if inside.all():
        assert near.tolist() == p.tolist()
        assert edge_distance(polygon, p) == pytest.approx(d, abs=2e-6)
    else:
        assert np.linalg.norm(near - p) == pytest.approx(d, abs=2e-3 * d + 1e-6)
        assert np.linalg.norm(edges(polygon) - near, axis=1).min() < 2e-3
        assert edge_distance(polygon, p) == pytest.approx(-d, abs=2e-3 * d + 1e-6)
