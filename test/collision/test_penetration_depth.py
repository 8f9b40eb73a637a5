"""Penetration depth of all kinds of pairs, deep inside too: by moving out, by brute force over directions, by coal."""

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision.convex_distance import Solid
from humanoid_control.collision.penetration_depth import separation, solid_solid
from humanoid_control.collision.shapes import KIND_NAMES
from test.collision.test_pair_distance_exact import UNORDERED, coal_shape_of, measure


def deep_pairs(brute, rng, kind1, kind2, count, spread=0.07):
    """Random pairs of which most have their centres inside each other."""
    found = 0
    while found < count:
        A = brute.two_shapes(kind1, kind2, rng, spread)
        d, n, x1, x2 = measure(A)
        if d < 0:
            found += 1
            yield A, d, n, x1, x2


def moved_out(A, d, n):
    """The second shape moved along the normal until both just touch."""
    p = A.p.copy()
    p[1] -= d * n
    return p


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_shapes_moved_out_by_their_depth_just_touch(brute, rng, kind1, kind2):
    for A, d, n, x1, x2 in deep_pairs(brute, rng, kind1, kind2, 40):
        assert measure(A, p=moved_out(A, d, n))[0] == pytest.approx(0, abs=1e-9)
        assert np.linalg.norm(n) == pytest.approx(1, abs=1e-12)
        assert np.allclose(x2 - x1, d * n, atol=1e-12)
        # Each witness point lies on its shape's surface, in the plane that holds all of the shape on one side.
        for k, x, sign in ((0, x1, 1.0), (1, x2, -1.0)):
            reach = brute.reach(KIND_NAMES[A.kinds[k]], A.sizes[k], A.R[k], sign * n[None])[0]
            assert sign * n @ (x - A.p[k]) == pytest.approx(reach, abs=1e-9)
            assert brute.surface_excess(KIND_NAMES[A.kinds[k]], A.sizes[k], A.R[k], x - A.p[k]) < 1e-7


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_no_shorter_way_out_exists(brute, rng, kind1, kind2):
    """Over all directions, by search: along none do the shapes overlap less than by the depth."""
    for A, d, *_ in deep_pairs(brute, rng, kind1, kind2, 6):
        expected, _ = brute.best_gap(A, rng)
        assert expected - 1e-9 <= d < expected + 2e-3  # the search itself may end beside the best direction


@pytest.mark.parametrize("kind1, kind2", [p for p in UNORDERED if "elliptic_capsule" not in p], ids="-".join)
def test_coal_sees_the_shapes_touch_once_they_are_moved_out(brute, rng, kind1, kind2):
    """coal's own depth is a way out as well, hence never shorter than ours."""
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    for A, d, n, *_ in deep_pairs(brute, rng, kind1, kind2, 20):
        shapes = [coal_shape_of(A, k) for k in (0, 1)]
        seen = []
        for p in (A.p, moved_out(A, d - 1e-6, n), moved_out(A, d + 1e-4, n)):
            poses = [coal.Transform3s(A.R[k], p[k]) for k in (0, 1)]
            seen.append(coal.distance(shapes[0], poses[0], shapes[1], poses[1], request, coal.DistanceResult()))
        assert seen[0] <= d + 1e-6
        assert seen[1] > -1e-6 and seen[2] < 0


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_frame_mirror_and_order_do_not_matter_inside(brute, rng, kind1, kind2):
    mirror = np.diag([1.0, -1.0, 1.0])
    for A, d, n, *_ in deep_pairs(brute, rng, kind1, kind2, 8):
        turn, shift = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3) * 3
        cases = [
            (measure(A, turn @ A.R, A.p @ turn.T + shift), turn @ n),
            (measure(A, mirror @ A.R @ mirror, A.p @ mirror), mirror @ n),
            (measure(A, i=1, j=0), -n),
        ]
        for (e, m, *_), expected in cases:
            assert e == pytest.approx(d, abs=2e-8)
            alike = np.linalg.norm(m - expected) < 1e-4
            # Another direction is as good: both must be ways out of the same length.
            assert alike or abs(measure(A, p=moved_out(A, d, n))[0]) < 1e-8


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_gradient_is_the_finite_difference_deep_inside(brute, rng, kind1, kind2):
    """For a twist of the second shape; where two ways out are as short there is no gradient."""
    kinks = cases = 0
    for A, d, n, _, x2 in deep_pairs(brute, rng, kind1, kind2, 25):
        v, w, eps = *rng.normal(size=(2, 3)), 1e-6
        values = []
        for e in (-eps, eps):
            R, p = A.R.copy(), A.p.copy()
            R[1] = Rotation.from_rotvec(e * w).as_matrix() @ R[1]
            p[1] = p[1] + e * v
            values.append(measure(A, R, p)[0])
        cases += 1
        if abs(values[0] + values[1] - 2 * d) > 1e-9:
            kinks += 1
            continue
        assert (values[1] - values[0]) / (2 * eps) == pytest.approx(n @ (v + np.cross(w, x2 - A.p[1])), abs=2e-5)
    assert kinks <= 0.25 * cases


def test_depth_of_a_bar_through_a_plate_and_of_rings_of_equal_ways_out(brute, rng):
    """A capsule along a cylinder's axis leaves sideways, in any of a circle of directions."""
    A = brute.ShapeArrays.build(
        ["cylinder", "capsule"],
        [(0.1, 0.1, 0.0, 0.3), (0.02, 0.02, 0.02, 0.4)],
        [0, 0],
        [np.eye(3)] * 2,
        np.zeros((2, 3)),
    )
    d, n, *_ = measure(A)
    assert d == pytest.approx(-0.12, abs=1e-9) and abs(n[2]) < 1e-6
    A = brute.ShapeArrays.build(
        ["box", "capsule"], [(0.3, 0.3, 0.01, 0.0), (0.02, 0.02, 0.02, 0.2)], [0, 0], [np.eye(3)] * 2,
        [np.zeros(3), np.array([0.05, 0.28, 0.0])],
    )  # fmt: skip
    assert measure(A)[0] == pytest.approx(-0.04, abs=1e-9), "out over the plate's near edge, not along the bar"


def test_separation_is_what_a_direction_needs(rng, brute):
    A = brute.two_shapes("box", "cylinder", rng, 0.02)
    one, two = (Solid(A.kinds[k], A.sizes[k], A.R[k], tuple(A.p[k])) for k in (0, 1))
    d = solid_solid(one, two)[0]
    widths = [separation(one, two, tuple(n)) for n in brute.directions(500)]
    assert max(widths) <= d < 0
