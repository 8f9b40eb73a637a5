"""Boxes around segments: tight, and never telling segments apart that are nearer than the distance that matters."""

import coal
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.model import bounds_apart, boxes_apart, tight_box


def random_box(rng):
    R = Rotation.random(rng=rng).as_matrix()
    return np.concatenate([rng.normal(size=3), R.ravel(), rng.uniform(0.02, 1.0, 3)])


def coal_distance(a, b):
    def shape(x):
        return coal.Box(*(2 * x[12:15])), coal.Transform3s(x[3:12].reshape(3, 3), x[:3])

    return coal.distance(*shape(a), *shape(b), coal.DistanceRequest(), coal.DistanceResult())


def test_fifteen_axes_agree_with_coal(rng):
    seen = {True: 0, False: 0}
    for _ in range(3000):
        a, b = random_box(rng), random_box(rng)
        d = coal_distance(a, b)
        if abs(d) > 1e-6:
            assert boxes_apart(a, b, 0.0) == (d > 0)
            seen[d > 0] += 1
    assert min(seen.values()) > 500


@pytest.mark.parametrize("turn", [0.0, np.pi / 2, np.pi / 4])
def test_parallel_boxes_are_told_apart_by_their_faces(turn):
    """Cross products of parallel axes vanish and must not count."""
    R = Rotation.from_rotvec([0, 0, turn]).as_matrix()
    a = np.concatenate([np.zeros(3), R.ravel(), [0.1, 0.2, 0.3]])
    b = a.copy()
    b[:3] = R @ [0.2 + 1e-9, 0.0, 0.0]
    assert boxes_apart(a, b, 0.0)
    b[:3] = R @ [0.2 - 1e-9, 0.0, 0.0]
    assert not boxes_apart(a, b, 0.0)


def test_boxes_enlarged_by_half_the_distance_on_both_sides(rng):
    R = np.eye(3)
    a, b = np.concatenate([np.zeros(3), R.ravel(), [0.1] * 3]), np.concatenate([[0.5, 0, 0], R.ravel(), [0.1] * 3])
    assert boxes_apart(a, b, 0.299) and not boxes_apart(a, b, 0.301)
    low_high = np.array([-0.1, -0.1, -0.1, 0.1, 0.1, 0.1]), np.array([0.4, -0.1, -0.1, 0.6, 0.1, 0.1])
    assert bounds_apart(*low_high, 0.299) and not bounds_apart(*low_high, 0.301)
    assert bounds_apart(*low_high[::-1], 0.299)


volumes = st.lists(st.tuples(st.integers(0, 2), st.floats(0, 0.3)), min_size=1, max_size=3)


def compound(types, rng):
    """Vertices (n, 3, 3) with unused ones inside, and radii."""
    v = rng.normal(size=(len(types), 3, 3)) * 0.3
    for k, (kind, _) in enumerate(types):
        v[k, kind + 1 :] = v[k, : kind + 1].mean(0)
    return v, np.array([r for _, r in types])


@settings(max_examples=120)
@given(volumes, volumes, st.integers(0, 2**31), st.floats(-0.2, 1.0))
def test_no_box_leaves_out_what_is_nearer_than_the_distance_that_matters(types_0, types_1, seed, reach):
    """For compounds of any kind, at any turn of the boxes."""
    rng = np.random.default_rng(seed)
    (v0, r0), (v1, r1) = compound(types_0, rng), compound(types_1, rng)
    v1 = v1 + rng.normal(size=3) * 0.8
    d = min(
        distances("tt", v0[i : i + 1], r0[i : i + 1], v1[j : j + 1], r1[j : j + 1]).distance[0]
        for i in range(len(r0))
        for j in range(len(r1))
    )
    boxes = [
        tight_box(v, r, R) for v, r, R in zip((v0, v1), (r0, r1), Rotation.random(2, rng=rng).as_matrix(), strict=True)
    ]
    bounds = [
        np.concatenate([(v - r[:, None, None]).min((0, 1)), (v + r[:, None, None]).max((0, 1))])
        for v, r in ((v0, r0), (v1, r1))
    ]
    if d < reach:
        assert not boxes_apart(*boxes, reach)
        assert not bounds_apart(*bounds, reach)


def test_tight_box_touches_the_segment_on_all_six_sides(rng):
    for _ in range(50):
        v, r = compound([(2, 0.1), (1, 0.05), (0, 0.2)], rng)
        R = Rotation.random(rng=rng).as_matrix()
        box = tight_box(v, r, R)
        local = (v - box[:3]) @ R
        assert np.allclose((local + r[:, None, None]).max((0, 1)), box[12:15])
        assert np.allclose((local - r[:, None, None]).min((0, 1)), -box[12:15])


def test_what_is_not_a_number_is_not_left_out():
    bad = np.full(15, np.nan)
    assert not boxes_apart(bad, np.concatenate([[9.0, 0, 0], np.eye(3).ravel(), [0.1] * 3]), 0.1)
    assert not bounds_apart(np.full(6, np.nan), np.ones(6), 0.1)
