"""Volumes around points: nothing outside, and what is known to be smallest is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from humanoid_control.collision.ssv.fitting import (
    circumscribed_sphere,
    farthest,
    fit_volumes,
    inertia_points,
    swept_volume,
)
from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.volumes import fit_link

SHAPES = ("point", "line", "triangle", "rectangle")


def depth(points, ssvs):
    """How far the worst point is outside of all volumes."""
    best = np.full(len(points), np.inf)
    for s in ssvs:
        core = np.array(s.vertices)
        best = np.minimum(best, [farthest(points[k : k + 1], core) - s.radius for k in range(len(points))])
    return best.max()


def swept_sphere(core, radius, rng):
    """Points on the surface of a volume."""
    n = circumscribed_sphere(200)
    n /= np.linalg.norm(n, axis=1)[:, None]
    w = rng.dirichlet(np.ones(len(core)), 40)
    at = np.vstack([core, w @ core])
    return (at[:, None] + radius * n).reshape(-1, 3)


@settings(max_examples=15)
@given(st.integers(1, 12), st.sampled_from((*SHAPES, "auto")), st.integers(0, 3), st.integers(0, 2**31))
def test_no_point_is_left_outside(count, shape, flat, seed):
    """Any number of points, also all in a plane, on a line, or one."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 3)) @ Rotation.random(rng=rng).as_matrix()
    points[:, 3 - flat :] = 0.3
    ssvs = fit_volumes(points, shape)
    assert depth(points, ssvs) <= 1e-9
    assert all(s.radius >= 0 for s in ssvs)


@pytest.mark.parametrize(
    "kind, core",
    [
        ("point", [[0.1, 0.2, 0.3]]),
        ("line", [[0.0, 0.1, 0.0], [0.1, 0.0, 0.4]]),
        ("triangle", [[0.0, 0.0, 0.0], [0.5, 0.1, 0.0], [0.1, 0.4, 0.2]]),
    ],
)
def test_the_volume_that_made_the_points_is_found(kind, core, rng):
    """Within 1 % of the volume, by itself among all kinds."""
    core = np.array(core)
    points = swept_sphere(core, 0.07, rng)
    ssvs = fit_volumes(points)
    assert [s.type for s in ssvs] == [kind]
    assert ssvs[0].radius == pytest.approx(0.07, rel=0.03)
    fitted = swept_volume(np.array(ssvs[0].vertices), ssvs[0].radius)
    assert fitted == pytest.approx(swept_volume(core, 0.07), rel=0.02)


def test_a_flat_box_becomes_two_triangles(rng):
    half = np.array([0.2, 0.12, 0.02])
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * half
    R = Rotation.random(rng=rng).as_matrix()
    ssvs = fit_volumes(corners @ R.T + [1.0, 2.0, 3.0], name="sole")
    assert [s.name for s in ssvs] == ["sole_1", "sole_2"] and ssvs[0].radius == ssvs[1].radius
    assert ssvs[0].radius < 0.03
    core = np.unique(np.round([x for s in ssvs for x in s.vertices], 9), axis=0)
    assert len(core) == 4
    local = (core - [1.0, 2.0, 3.0]) @ R
    assert np.allclose(np.abs(local), [[0.19, 0.11, 0.0]], atol=0.012)


def test_volume_is_that_of_the_shape_by_counting(rng):
    core = np.array([[0.0, 0.0, 0.0], [0.5, 0.1, 0.0], [0.1, 0.4, 0.2]])
    for k in (1, 2, 3):
        points = swept_sphere(core[:k], 0.1, rng)
        low, high = points.min(0), points.max(0)
        x = rng.uniform(low, high, (20000, 3))
        share = np.mean([farthest(x[i : i + 1], core[:k]) <= 0.1 for i in range(len(x))])
        assert swept_volume(core[:k], 0.1) == pytest.approx(share * np.prod(high - low), rel=0.03)


def test_inertia_ellipsoid_has_the_inertia_it_was_made_from(rng):
    """Volume, centre and second moments of the polyhedron, by tetrahedra, within the 1 % it is larger."""
    R = Rotation.random(rng=rng).as_matrix()
    axes, mass, center = np.array([0.3, 0.1, 0.05]), 4.0, np.array([0.1, 0.2, -0.3])
    moments = mass / 5 * (np.sum(axes**2) - axes**2)
    points = inertia_points(mass, center, R @ np.diag(moments) @ R.T)
    hull = ConvexHull(points)
    corners = (
        np.concatenate([points[hull.simplices], np.broadcast_to(center, (len(hull.simplices), 1, 3))], axis=1) - center
    )
    volume = np.abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6
    outer = np.einsum("nij,nik->njk", corners, corners) + np.einsum("ni,nj->nij", corners.sum(1), corners.sum(1))
    second = (volume[:, None, None] / 20 * outer).sum(0) * mass / volume.sum()
    inertia = np.trace(second) * np.eye(3) - second
    assert volume.sum() == pytest.approx(4 / 3 * np.pi * np.prod(axes), rel=0.03)
    assert np.allclose(inertia, R @ np.diag(moments) @ R.T, rtol=0.03, atol=2e-4)


def test_impossible_inertias_and_points_are_one_line():
    with pytest.raises(RobotError, match="physically impossible"):
        inertia_points(1.0, np.zeros(3), np.diag([1.0, 0.1, 0.1]))
    with pytest.raises(RobotError, match="physically impossible"):
        inertia_points(0.0, np.zeros(3), np.eye(3))
    with pytest.raises(RobotError, match="at least one point"):
        fit_volumes(np.zeros((0, 3)))
    with pytest.raises(RobotError, match="all finite"):
        fit_volumes(np.full((4, 3), np.nan))
    with pytest.raises(UnknownNameError, match="unknown shape 'lin': did you mean line"):
        fit_volumes(np.zeros((4, 3)), "lin")


def test_links_of_lola_get_what_their_inertia_says():
    robot = load_robot("lola", "floating")
    thigh = fit_link(robot, "l_thigh")
    assert thigh.link == "l_thigh" and [v.type for v in thigh.volumes] == ["line"]
    length = np.ptp(np.array(thigh.volumes[0].vertices)[:, 2]) + 2 * thigh.volumes[0].radius
    assert 0.4 < length < 0.7 and 0.04 < thigh.volumes[0].radius < 0.1
    with pytest.raises(UnknownNameError, match="unknown link 'l_thig': did you mean l_thigh"):
        fit_link(robot, "l_thig")
    with pytest.raises(RobotError, match="link 'base_link' has no mass to fit"):
        fit_link(robot, "base_link")
