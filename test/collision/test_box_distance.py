"""Boxes and capsules beside boxes: every answer carries its own proof, whatever lies along whatever.

A distance is proved by two points of the shapes so far apart, and by a gap as wide between two planes. A depth is one
where no direction, of all faces and pairs of edges and of many others, needs less.
"""

import itertools

import coal
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.collision.box_distance import box_box, segment_box
from humanoid_control.collision.pair_distance import pair_distance
from humanoid_control.collision.shapes import ShapeArrays

TILTS = [0.0, 1e-14, 1e-11, 1e-9, 1e-7, 1e-4, 0.05]
GAPS = {
    "apart": (0.01, 0.2),
    "close": (1e-9, 1e-4),
    "touching": (-1e-12, 1e-12),
    "shallow": (-1e-3, -1e-9),
    "deep": None,
}


def reach(half, R, n):
    return np.abs(n @ R) @ half


def gap_along(a, R1, p1, b, R2, p2, n):
    return n @ (p2 - p1) - reach(a, R1, n) - reach(b, R2, n)


def rotation(rng, tilt):
    """One of the 24 turns of a cube, tilted a little; any where tilt is None."""
    if tilt is None:
        return Rotation.random(rng=rng).as_matrix()
    cube = Rotation.create_group("O")[rng.integers(24)]
    v = rng.standard_normal(3)
    return (Rotation.from_rotvec(tilt * v / np.linalg.norm(v)) * cube).as_matrix()


def cases(rng, count, kind, thin=False):
    """Two boxes, the second of them without width where thin: half sides, poses, and where they are put to be so far
    apart, by a walk along the normal that the old search of any two solids could also take."""
    for k in range(count):
        tilt = [None, *TILTS][k % (len(TILTS) + 1)]
        a, b = (10.0 ** rng.uniform(-4, 0, 3) if k % 3 == 0 else rng.uniform(0.03, 0.2, 3) for _ in range(2))
        if thin:
            b[:2] = 0.0
        base = Rotation.random(rng=rng).as_matrix() if k % 2 else np.eye(3)
        R1, R2 = base, base @ rotation(rng, tilt)
        p1 = rng.standard_normal(3) if k % 2 else np.zeros(3)
        along = rng.standard_normal(3)
        along *= rng.uniform(size=3) < 0.7 if k % 5 else 1.0  # often over an edge or a corner, or straight over a face
        p2 = p1 + R1 @ (along * (a + b.max())) if np.any(along) else p1 + 1e-3 * R1[:, 0]
        if GAPS[kind] is None:
            p2 = p1 + 0.5 * (p2 - p1) * rng.uniform(0, 0.3)
        yield a, R1, p1, b, R2, p2


def put(case, kind, rng):
    """The case with its second box moved along the normal, so that the gap is one of its kind."""
    a, R1, p1, b, R2, p2 = case
    if GAPS[kind] is None:
        return case
    for _ in range(3):
        _, d, n, _, _ = box_box(tuple(a), R1, tuple(p1), tuple(b), R2, tuple(p2))
        p2 = p2 + (rng.uniform(*GAPS[kind]) - d) * np.array(n)
    return a, R1, p1, b, R2, p2


def axes(R1, R2):
    """(k, 3) unit vectors, both ways: normals of faces, and cross products of edges."""
    out = [R1.T, R2.T]
    crossed = np.array([np.cross(R1[:, i], R2[:, j]) for i, j in itertools.product(range(3), range(3))])
    size = np.linalg.norm(crossed, axis=1)
    out.append(crossed[size > 1e-6] / size[size > 1e-6, None])
    n = np.vstack(out)
    return np.vstack([n, -n])


def check(brute, case, d, n, x1, x2):
    a, R1, p1, b, R2, p2 = case
    scale = np.abs(p2 - p1).max() + a.max() + b.max()
    tiny = 3e-14 * scale
    assert np.linalg.norm(n) == pytest.approx(1.0, abs=1e-12)
    # both points belong to their boxes, up to what an edge that lies nearly along a face is taken to lie along it
    assert np.all(np.abs((x1 - p1) @ R1) <= a + 4e-9 * scale) and np.all(np.abs((x2 - p2) @ R2) <= b + 4e-9 * scale)
    assert np.abs(x1 + d * n - x2).max() <= tiny
    assert gap_along(a, R1, p1, b, R2, p2, n) == pytest.approx(d, abs=max(tiny, 1e-12))
    others = np.vstack([axes(R1, R2), brute.directions(300)])
    gaps = others @ (p2 - p1) - np.abs(others @ R1) @ a - np.abs(others @ R2) @ b
    assert gaps.max() <= d + 1e-12 + tiny


@pytest.mark.parametrize("kind", GAPS)
def test_two_boxes_prove_their_distance(brute, kind):
    rng, given_up = np.random.default_rng(3), 0
    for case in cases(rng, 400, kind):
        a, R1, p1, b, R2, p2 = put(case, kind, rng)
        ok, d, n, x1, x2 = box_box(tuple(a), R1, tuple(p1), tuple(b), R2, tuple(p2))
        if not ok:
            given_up += 1
            continue
        check(brute, (a, R1, p1, b, R2, p2), d, np.array(n), np.array(x1), np.array(x2))
    assert given_up <= 10  # edges that are parallel but for round-off: GJK takes those


@pytest.mark.parametrize("kind", GAPS)
def test_a_segment_and_a_box_prove_their_distance(brute, kind):
    rng = np.random.default_rng(4)
    for case in cases(rng, 400, kind, thin=True):
        a, R1, p1, b, R2, p2 = put(case, kind, rng)
        ok, d, n, x1, x2 = segment_box(tuple(a), R1, tuple(p1), tuple(p2), tuple(R2[:, 2]), b[2])
        assert ok
        check(brute, (a, R1, p1, b, R2, p2), d, np.array(n), np.array(x1), np.array(x2))


@pytest.mark.parametrize("first", ["box", "capsule"])
def test_boxes_and_capsules_are_as_far_from_boxes_as_coal_says(brute, first):
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(200):
        A = brute.two_shapes(first, "box", rng, spread=0.2)
        d, _, x1, x2 = pair_distance(A, A.R, A.p, 0, 1)
        x, y, z, h = A.sizes[0]
        shape = coal.Box(2 * x, 2 * y, 2 * z) if first == "box" else coal.Capsule(x, 2 * h)
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = request.epa_tolerance = 1e-9
        poses = [coal.Transform3s(A.R[k], A.p[k]) for k in (0, 1)]
        theirs = coal.distance(shape, poses[0], coal.Box(*(2 * A.sizes[1, :3])), poses[1], request, result)
        if d > 1e-6:
            compared += 1
            assert d == pytest.approx(theirs, abs=1e-7)
            assert np.linalg.norm(np.array(x2) - x1) == pytest.approx(d, abs=1e-12)
        elif d < -1e-6:
            assert theirs <= d + 1e-6 or theirs == pytest.approx(d, abs=1e-5)  # EPA ends early at times
    assert compared > 60


def test_a_capsule_along_a_face_touches_it_with_its_middle():
    shapes = ShapeArrays.build(
        ["capsule", "box"],
        [(0.05, 0.05, 0.05, 0.1), (0.3, 0.3, 0.02, 0.0)],
        [0, 0],
        [Rotation.from_euler("y", 90, degrees=True).as_matrix(), np.eye(3)],
        [(0.05, 0.02, 0.1), (0.0, 0.0, 0.0)],
    )
    d, n, x1, x2 = pair_distance(shapes, shapes.R, shapes.p, 0, 1)
    assert d == pytest.approx(0.03) and n == pytest.approx((0, 0, -1))
    assert x1 == pytest.approx((0.05, 0.02, 0.05)) and x2 == pytest.approx((0.05, 0.02, 0.02))


def test_boxes_face_to_face_touch_within_both_faces():
    """Nearest points are anywhere between the faces; an edge over a face and a face half beside it likewise."""
    for turn, shift in itertools.product((0.0, 0.3, np.pi / 4), ((0.0, 0.0), (0.12, 0.05), (0.19, 0.19))):
        a, b = np.array([0.1, 0.1, 0.1]), np.array([0.1, 0.05, 0.1])
        R2, p2 = Rotation.from_rotvec([0, 0, turn]).as_matrix(), np.array([*shift, 0.25])
        ok, d, n, x1, x2 = box_box(tuple(a), np.eye(3), (0.0, 0.0, 0.0), tuple(b), R2, tuple(p2))
        assert ok
        if np.allclose(n, (0, 0, 1)):
            assert d == pytest.approx(0.05)
        else:  # they no longer lie over each other
            assert d > 0.05
        assert np.all(np.abs(x1) <= a + 1e-12) and np.all(np.abs((np.array(x2) - p2) @ R2) <= b + 1e-12)
