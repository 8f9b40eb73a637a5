"""The exact kernels against dense brute force, coal, finite differences, and what must not change a distance."""

import itertools

import coal
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from humanoid_control.collision.capsule_distance import (
    capsule_capsule,
    ellipse,
    ellipsoid,
    elliptic_capsule,
    segment_segment,
    segment_solid,
)
from humanoid_control.collision.convex_distance import EXACT, Solid, gjk
from humanoid_control.collision.pair_distance import pair_distance
from humanoid_control.collision.penetration_depth import solid_solid
from humanoid_control.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPTIC_CAPSULE, KIND_NAMES, ShapeArrays

PAIRS = list(itertools.product(KIND_NAMES, KIND_NAMES))
UNORDERED = [(a, b) for a, b in PAIRS if KIND_NAMES.index(a) <= KIND_NAMES.index(b)]


def measure(A, R=None, p=None, i=0, j=1):
    R, p = A.R if R is None else R, A.p if p is None else p
    d, n, x1, x2 = pair_distance(A, R, p, i, j)
    return d, np.array(n), np.array(x1), np.array(x2)


def coal_shape_of(A, k):
    """Shape k as coal knows it; it has no elliptic capsule."""
    x, y, z, h = (float(v) for v in A.sizes[k])
    return {
        "sphere": lambda: coal.Sphere(x),
        "capsule": lambda: coal.Capsule(x, 2 * h),
        "box": lambda: coal.Box(2 * x, 2 * y, 2 * z),
        "cylinder": lambda: coal.Cylinder(x, 2 * h),
        "ellipsoid": lambda: coal.Ellipsoid(x, y, z),
    }[KIND_NAMES[A.kinds[k]]]()


def coal_distance(A):
    """Distance, normal and witness points by coal."""
    request, result = coal.DistanceRequest(), coal.DistanceResult()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    poses = [coal.Transform3s(A.R[k], A.p[k]) for k in (0, 1)]
    d = coal.distance(coal_shape_of(A, 0), poses[0], coal_shape_of(A, 1), poses[1], request, result)
    return d, result.normal


def test_point_elliptic_capsule_is_the_brute_force_distance_inside_and_outside(brute, rng):
    """Also on planes and axes of symmetry, where the largest-root formula divides by zero (F21, F22)."""
    k = np.arange(1000)
    size = rng.uniform(0.03, 0.2, (1000, 4))
    size[::5, 3] = 0.0  # an ellipsoid
    p = rng.normal(size=(1000, 3)) * 0.12
    for axis in range(3):
        p[k % (4 + axis) == 0, axis] = 0.0
    expected = brute.brute_points(p, size)
    for x, (a, b, c, h), e in zip(p, size, expected, strict=True):
        d, *n = elliptic_capsule(tuple(x), a, b, c, h)
        assert d == pytest.approx(e, abs=2e-7), (x, a, b, c, h)
        assert np.linalg.norm(n) == pytest.approx(1, abs=1e-12)
        foot = x - d * np.array(n)
        z = max(abs(foot[2]) - h, 0)
        assert (foot[0] / a) ** 2 + (foot[1] / b) ** 2 + (z / c) ** 2 == pytest.approx(1, abs=1e-9)
    assert (expected < 0).sum() > 200


@given(
    st.tuples(*[st.floats(-1, 1)] * 3), st.tuples(*[st.floats(0.01, 1)] * 3), st.sampled_from([0.0, 1e-12, 1e-6, 0.3])
)
@settings(max_examples=400)
def test_point_ellipsoid_never_fails(p, axes, h):
    """The foot lies on the surface and the normal is the surface's, for any point and any half axes."""
    a, b, c = axes
    d, *n = elliptic_capsule(p, a, b, c, h)
    foot, n = np.array(p) - d * np.array(n), np.array(n)
    foot[2] = np.copysign(max(abs(foot[2]) - h, 0.0), foot[2])
    assert np.sum((foot / axes) ** 2) == pytest.approx(1, abs=1e-7)
    surface = foot / np.square(axes)
    assert np.allclose(surface / np.linalg.norm(surface), n, atol=1e-6)


def test_ellipse_and_ellipsoid_agree_with_closed_forms():
    assert ellipse(0.0, 0.0, 3.0, 2.0)[0] == -2.0
    assert ellipse(5.0, 0.0, 3.0, 2.0) == (2.0, 1.0, 0.0)
    d, nx, ny = ellipse(1.0, 0.0, 3.0, 2.0)  # inside on the long axis: the nearest points lie off it
    x = 9 / 5
    assert d == pytest.approx(-np.hypot(x - 1, 2 * np.sqrt(1 - (x / 3) ** 2)), abs=1e-15)
    assert abs(nx) < 1 and ny > 0
    assert ellipsoid((0.0, 0.0, 0.0), 2.0, 2.0, 2.0)[0] == -2.0
    assert ellipsoid((0.0, 3.0, 4.0), 2.0, 2.0, 2.0) == pytest.approx((3.0, 0.0, 0.6, 0.8))


def test_forearm_against_torso_is_the_brute_force_distance_600_pairs(forearms):
    """F21: random capsules against three torsos; no miss, no false alarm, and the same distance."""
    size, p, u, r, expected = forearms
    for k in range(600):
        d, _, _ = segment_solid(ELLIPTIC_CAPSULE, *size[k], tuple(p[k]), tuple(u[k]))
        if expected[k] > 0:
            assert d == pytest.approx(expected[k], abs=1e-6)
        else:  # where two surfaces are as near, the sampling finds the nearer one to 0.1 mm
            assert expected[k] - 1e-3 < d < expected[k] + 1e-4
        assert (d < r[k]) == (expected[k] < r[k]) or abs(expected[k] - r[k]) < 1e-6
    assert (expected < r).sum() > 75 and (expected < 0).sum() > 30


def test_minimum_along_the_segment_is_a_minimum(rng):
    """Inside too, where the distance along the segment may have a kink."""
    for kind in (2, 3, 4, 5):
        for _ in range(200):
            x, y, z, h = rng.uniform(0.04, 0.2, 4)
            if kind == 3:
                y = x
            a, u = rng.normal(size=3) * 0.08, rng.normal(size=3) * 0.15
            d, _, s = segment_solid(kind, x, y, z, h, tuple(a), tuple(u))
            assert -1 <= s <= 1
            for t in np.linspace(-1, 1, 41):
                there = segment_solid(kind, x, y, z, h, tuple(a + t * u), (0.0, 0.0, 0.0))[0]
                assert there >= d - 1e-12


def test_capsules_are_as_far_as_their_segments_by_brute_force(rng):
    """F20, parallel, touching at the ends and crossing axes included."""
    grid = np.linspace(-1, 1, 201)
    for k in range(2000):
        a, u, b, w = rng.normal(size=(4, 3)) * 0.2
        if k % 7 == 0:
            w = u * rng.uniform(-2, 2)
        if k % 11 == 0:
            b = a + rng.uniform(-1, 1) * u - rng.uniform(-1, 1) * w  # the axes meet
        ra, rb = rng.uniform(0.02, 0.2, 2)
        d, n, x1, x2 = capsule_capsule(tuple(a), tuple(u), ra, tuple(b), tuple(w), rb)
        x = a + grid[:, None] * u
        t = np.clip((x - b) @ w / (w @ w), -1, 1)
        best = np.linalg.norm(x - b - t[:, None] * w, axis=1).min() - ra - rb
        assert d <= best + 1e-12
        assert best - d < 0.01 * np.linalg.norm(u)
        assert np.allclose(np.array(x2) - x1, d * np.array(n), atol=1e-12)
        assert np.linalg.norm(n) == pytest.approx(1, abs=1e-12)


def test_parallel_capsules_meet_in_the_middle_of_their_overlap():
    assert segment_segment((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (0.0, 0.0, 2.0)) == (0.0, -0.5)
    s, t = segment_segment((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 3.0), (0.0, 0.0, -1.0))
    assert (s, t) == (1.0, 1.0)


@pytest.mark.parametrize("kind1, kind2", [p for p in UNORDERED if "elliptic_capsule" not in p], ids="-".join)
def test_separated_shapes_are_as_far_as_coal_says(brute, rng, kind1, kind2):
    seen = 0
    for _ in range(80):
        A = brute.two_shapes(kind1, kind2, rng)
        d, n, x1, x2 = measure(A)
        if d < 1e-3:
            continue
        expected, normal = coal_distance(A)
        assert d == pytest.approx(expected, abs=3e-9)
        assert np.allclose(n, normal, atol=3e-4)  # the square root of coal's tolerance
        assert np.allclose(x2 - x1, d * n, atol=1e-9)
        seen += 1
    assert seen > 30


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_distance_is_the_widest_gap_over_all_directions(brute, rng, kind1, kind2):
    """Separating hyperplanes: independent of all that is computed, and right for overlapping shapes too."""
    inside = 0
    for _ in range(10):
        A = brute.two_shapes(kind1, kind2, rng, spread=0.13)
        d = measure(A)[0]
        expected, _ = brute.best_gap(A, rng)
        inside += d < 0
        assert expected - 1e-9 <= d < expected + (4e-5 if d > 0 else 2e-3)  # the search's own error
    assert inside > 1


@pytest.mark.parametrize("kind1, kind2", UNORDERED, ids="-".join)
def test_gradient_is_the_finite_difference_outside_touching_and_inside(brute, rng, kind1, kind2):
    """d' = n . (velocity of witness 2 - velocity of witness 1), to 1e-6, for a twist of either shape."""
    kinks = cases = 0
    for k in range(60):
        A, target = brute.two_shapes(kind1, kind2, rng, spread=0.25), (0.03, 0.0, -0.02)[k % 3]
        d, n, _, _ = measure(A)
        if d < 0:
            continue
        p = A.p.copy()
        p[1] += n * (target - d)  # apart, touching, overlapping
        d, n, x1, x2 = measure(A, p=p)
        assert d == pytest.approx(target, abs=1e-9) or (target < 0 and target < d < 0)  # by a shorter way out
        for moved, x, sign in ((0, x1, -1.0), (1, x2, 1.0)):
            v, w, eps = *rng.normal(size=(2, 3)), 1e-6
            values = []
            for e in (-eps, eps):
                R, q = A.R.copy(), p.copy()
                turn = Rotation.from_rotvec(e * w)
                R[moved] = turn.as_matrix() @ R[moved]
                q[moved] = q[moved] + e * v
                values.append(measure(A, R, q)[0])
            predicted = sign * n @ (v + np.cross(w, x - p[moved]))
            cases += 1
            if abs(values[0] + values[1] - 2 * d) > 5e-10:
                kinks += 1  # two places are as near: no gradient exists
                continue
            assert (values[1] - values[0]) / (2 * eps) == pytest.approx(predicted, abs=1e-6), (k, moved, d)
    flat = {"box", "cylinder"} >= {kind1, kind2}  # two corners that touch have no gradient
    assert kinks <= (0.2 if flat else 0.05) * cases and cases > 30


def test_gradient_holds_for_an_arm_deep_in_the_torso(rng):
    """The arm's axis itself has entered; away from the medial axis the gradient is exact there too."""
    checked = 0
    for k in range(200):
        torso = (0.15, 0.10, 0.04, 0.125) if k % 2 else (0.10, 0.15, 0.12, 0.1)
        a, u = rng.normal(size=3) * 0.09, rng.normal(size=3) * 0.1
        f = lambda x, t=torso, u=u: segment_solid(ELLIPTIC_CAPSULE, *t, tuple(x), tuple(u))[0]  # noqa: E731
        d, n, s = segment_solid(ELLIPTIC_CAPSULE, *torso, tuple(a), tuple(u))
        if d > -0.01:
            continue
        v, eps = rng.normal(size=3), 1e-6
        plus, minus = f(a + eps * v), f(a - eps * v)
        slope = [(plus - d) / eps, (d - minus) / eps]
        if abs(slope[0] - slope[1]) > 1e-3 or abs(n @ u) > 1e-9 > 1 - abs(s):
            continue
        around = [f(a + 1e-3 * w) for w in np.vstack([np.eye(3), -np.eye(3)])]
        if np.linalg.norm((np.array(around[:3]) - around[3:]) / 2e-3) < 0.99:
            continue  # on the medial axis the distance itself is flatter than 1
        assert (plus - minus) / (2 * eps) == pytest.approx(np.array(n) @ v, abs=1e-6)
        checked += 1
    assert checked > 20


def test_normal_of_a_segment_straight_through_points_sideways_and_out():
    d, n, _ = segment_solid(ELLIPTIC_CAPSULE, 0.15, 0.1, 0.05, 0.1, (0.0, 0.02, 0.01), (0.4, 0.0, 0.0))
    assert d == pytest.approx(-0.08, abs=1e-3)
    assert n == pytest.approx((0, 1, 0), abs=0.05)
    d, n, _ = segment_solid(2, 0.1, 0.1, 0.1, 0.0, (0.0, 0.0, 0.0), (0.4, 0.0, 0.0))
    assert d == -0.1 and n[0] == pytest.approx(0) and np.linalg.norm(n) == pytest.approx(1)


@pytest.mark.parametrize("kind1, kind2", PAIRS, ids="-".join)
def test_frame_mirror_and_order_do_not_matter(brute, rng, kind1, kind2):
    mirror = np.diag([1.0, -1.0, 1.0])
    for _ in range(12):
        A = brute.two_shapes(kind1, kind2, rng)
        d, n, _, _ = measure(A)
        turn, shift = Rotation.random(rng=rng).as_matrix(), rng.normal(size=3) * 3
        e, m, _, _ = measure(A, turn @ A.R, A.p @ turn.T + shift)
        close = 1e-9 if min(A.kinds) <= CAPSULE or d > 0 else 1e-6
        assert e == pytest.approx(d, abs=close)
        if d > 0:
            assert np.allclose(m, turn @ n, atol=1e-6)
        # Every shape equals its own mirror image, so mirroring the frames on both sides gives a proper pose.
        e, m, _, _ = measure(A, mirror @ A.R @ mirror, A.p @ mirror)
        assert e == pytest.approx(d, abs=close)
        if d > 0:
            assert np.allclose(m, mirror @ n, atol=1e-6)
        e, m, _, _ = measure(A, i=1, j=0)
        assert e == pytest.approx(d, abs=close)
        if d > 0:
            assert np.allclose(m, -n, atol=1e-6)


def test_shapes_on_top_of_each_other_still_give_numbers():
    for k1, k2 in PAIRS:
        size = {
            "sphere": (0.1, 0.1, 0.1, 0.0),
            "capsule": (0.1, 0.1, 0.1, 0.1),
            "box": (0.1, 0.1, 0.1, 0.0),
            "cylinder": (0.1, 0.1, 0.0, 0.1),
            "ellipsoid": (0.1, 0.1, 0.1, 0.0),
            "elliptic_capsule": (0.1, 0.1, 0.1, 0.1),
        }
        A = ShapeArrays.build([k1, k2], [size[k1], size[k2]], [0, 0], [np.eye(3)] * 2, [np.zeros(3)] * 2)
        d, n, x1, x2 = measure(A)
        assert -0.41 < d < -0.09, (k1, k2)
        assert np.isfinite(np.concatenate([n, x1, x2])).all() and np.linalg.norm(n) == pytest.approx(1)


def test_cylinders_along_a_face_are_not_taken_for_overlapping(rng):
    """An arm that hangs beside a trunk: four difference points nearly in one plane hold the origin by rounding only."""
    box = Solid(BOX, np.array([0.06, 0.09, 0.1, 0.0]), np.eye(3), (0.0, 0.0, 0.659))
    size, half = np.array([0.035, 0.035, 0.0, 0.034]), 0.034
    found = [  # in which 0 was said
        [0.04972479130195993, 0.08194693106656387, 0.9953954719701855],
        [-0.8549034075548189, 0.5187872046815518, -3.1402355593895034e-06],
        [-0.5163986917887535, -0.8509668247043908, 0.09585329609038264],
    ]
    turns = Rotation.from_rotvec(rng.normal(size=(500, 3)) * [1e-6, 0.3, 1e-6]).as_matrix()
    p = (-0.0031852336973848885, 0.14500000000000002, 0.7296308152260833)
    for R in (np.array(found), *(turns @ found)):
        lean = abs(R[1, 2])
        true = p[1] - 0.09 - 0.035 * np.sqrt(1 - lean**2) - half * lean
        arm = Solid(CYLINDER, size, np.ascontiguousarray(R), p)
        for d in (solid_solid(box, arm)[0], solid_solid(arm, box)[0], gjk(box, arm, EXACT)[0]):
            assert d == pytest.approx(true, abs=1e-8)
