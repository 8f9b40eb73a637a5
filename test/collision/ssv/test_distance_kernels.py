"""The six distance functions: against coal and exhaustive enumeration, under motion and mirroring, and degenerate."""

import itertools
import platform

import coal
import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from scipy.spatial.transform import Rotation

from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.distance_kernels import LANES, ROWS, line_line_block, triangle_triangle_block
from humanoid_control.errors import UnknownNameError

FUNCTIONS = ("pp", "pl", "pt", "ll", "lt", "tt")
ORDERED = [a + b for a, b in itertools.product("plt", repeat=2)]
VERTICES = {"p": 1, "l": 2, "t": 3}


def coal_shape(v, r):
    if len(v) == 1:
        return coal.Sphere(r), coal.Transform3s(np.eye(3), v[0])
    if len(v) == 2:
        u = v[1] - v[0]
        length = np.linalg.norm(u)
        R = pin.Quaternion.FromTwoVectors(np.array([0, 0, 1.0]), u / length).toRotationMatrix()
        return coal.Capsule(r, length), coal.Transform3s(R, (v[0] + v[1]) / 2)
    # coal has its TriangleP only against another; a flat polyhedron of two faces goes with all shapes.
    points, faces = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    for x in v:
        points.append(x)
    faces.append(coal.Triangle(0, 1, 2))
    faces.append(coal.Triangle(0, 2, 1))
    shape = coal.Convex(points, faces)
    shape.setSweptSphereRadius(r)
    return shape, coal.Transform3s.Identity()


def coal_distances(v0, r0, v1, r1):
    request = coal.DistanceRequest()
    request.gjk_tolerance = request.epa_tolerance = 1e-9
    request.gjk_max_iterations = request.epa_max_iterations = 1000
    d, n = [], []
    for k in range(len(r0)):
        a, Xa = coal_shape(v0[k], r0[k])
        b, Xb = coal_shape(v1[k], r1[k])
        result = coal.DistanceResult()
        d.append(coal.distance(a, Xa, b, Xb, request, result))
        n.append(result.normal)
    return np.array(d), np.array(n)


def unit(a):
    return np.allclose(np.linalg.norm(a, axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_agrees_with_coal_on_random_pairs(reference, rng, function):
    """To 1e-9, outside and, as long as the cores are apart, inside; normals to 1e-7."""
    args = reference.random_pairs(function, 4000, rng)
    ours = distances(function, *args)
    d, n = coal_distances(*args)
    apart = ~ours.penetrating
    assert np.abs(ours.distance - d)[apart].max() < 1e-9
    assert np.abs(ours.normal - n)[ours.distance > 1e-6].max() < 1e-7
    assert (ours.distance < 0).mean() > 0.01 and apart.mean() > 0.9


@pytest.mark.parametrize("function", FUNCTIONS)
def test_agrees_with_exhaustive_enumeration_on_random_pairs(reference, rng, function):
    v0, r0, v1, r1 = reference.random_pairs(function, 4000, rng)
    ours = distances(function, v0, r0, v1, r1)
    core = reference.exhaustive(v0, v1)
    assert np.abs(ours.core - core).max() < 1e-9
    assert np.abs(ours.distance - (core - r0 - r1)).max() < 1e-9
    assert np.array_equal(ours.penetrating, core <= 1e-12)


def thin(v0, v1, rng):
    """Long thin triangles, nearly parallel edges, obtuse angles, shapes that nearly touch."""
    for v in (v0, v1):
        if v.shape[1] == 3:
            v[:, 2] = v[:, 0] + rng.uniform(-1, 2, (len(v), 1)) * (v[:, 1] - v[:, 0])
            v[:, 2] += 10.0 ** rng.uniform(-7, 0, (len(v), 1)) * rng.normal(size=(len(v), 3))
    if v0.shape[1] > 1 and v1.shape[1] > 1:
        half = len(v0) // 2
        scale = rng.uniform(-2, 2, (half, 1))
        tilt = 10.0 ** rng.uniform(-14, 0, (half, 1)) * rng.normal(size=(half, 3))
        v1[:half, 1] = v1[:half, 0] + scale * (v0[:half, 1] - v0[:half, 0]) + tilt


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spread", [1e-6, 0.01, 1.0])
def test_exact_for_thin_nearly_parallel_and_nearly_touching_shapes(reference, rng, function, spread):
    v0, r0, v1, r1 = reference.random_pairs(function, 1000, rng, spread)
    thin(v0, v1, rng)
    core = distances(function, v0, r0, v1, r1).core
    assert np.abs(core - reference.exhaustive(v0, v1)).max() < 2e-9


@pytest.mark.parametrize("function", ORDERED)
def test_witness_points_lie_on_both_surfaces_along_the_normal(reference, rng, function):
    v0, r0, v1, r1 = reference.random_pairs(function, 2000, rng)
    r = distances(function, v0, r0, v1, r1)
    assert unit(r.normal)
    assert np.allclose(r.point_1, r.point_0 + r.distance[:, None] * r.normal, atol=1e-12)
    for v, point, radius, sign in ((v0, r.point_0, r0, 1), (v1, r.point_1, r1, -1)):
        at = point - sign * radius[:, None] * r.normal  # in the core
        assert reference.exhaustive(v, at[:, None]).max() < 1e-12
    away = ~r.penetrating
    assert np.allclose(r.distance, r.core - r0 - r1, atol=1e-12)
    assert np.array_equal(r.distance[~away], (-r0 - r1)[~away])


@pytest.mark.parametrize("function", ORDERED)
def test_exchanged_arguments_exchange_the_result(reference, rng, function):
    """Table 6.1: nine ordered functions from six, (d, p_B, p_A, -n)."""
    v0, r0, v1, r1 = reference.random_pairs(function, 2000, rng)
    a, b = distances(function, v0, r0, v1, r1), distances(function[::-1], v1, r1, v0, r0)
    assert np.allclose(a.distance, b.distance, atol=1e-13)
    assert np.allclose(a.normal, -b.normal, atol=1e-9)
    assert np.allclose(a.point_0, b.point_1, atol=1e-9) and np.allclose(a.point_1, b.point_0, atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("mirrored", [False, True])
def test_moves_turns_and_mirrors_with_the_frame(reference, rng, function, mirrored):
    v0, r0, v1, r1 = reference.random_pairs(function, 1000, rng)
    R, t = Rotation.random(rng=rng).as_matrix(), 100 * rng.normal(size=3)
    if mirrored:
        R = R @ np.diag([1, -1, 1])
    a, b = distances(function, v0, r0, v1, r1), distances(function, v0 @ R.T + t, r0, v1 @ R.T + t, r1)
    assert np.allclose(a.distance, b.distance, atol=1e-11)
    clear = a.core > 1e-3  # a rule's normal of meeting cores is a pseudovector
    assert np.allclose((a.normal @ R.T)[clear], b.normal[clear], atol=1e-9)
    assert np.allclose((a.point_0 @ R.T + t)[clear], b.point_0[clear], atol=1e-9)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_scales_with_the_unit_of_length(reference, rng, function):
    v0, r0, v1, r1 = reference.random_pairs(function, 1000, rng)
    a, b = (
        distances(function, v0, r0, v1, r1),
        distances(function, 1000 * v0, 1000 * r0, 1000 * v1, 1000 * r1),
    )
    assert np.allclose(1000 * a.distance, b.distance, atol=1e-9)
    assert np.allclose(a.normal[~a.penetrating], b.normal[~a.penetrating], atol=1e-9)


coordinates = st.sampled_from([-1.0, -0.5, -1e-9, 0.0, 1e-14, 0.3, 0.5, 1.0, 2.0])


@st.composite
def awkward(draw):
    """Vertices on a coarse grid: parallel, collinear, coincident, touching and piercing all the time."""
    function = draw(st.sampled_from(FUNCTIONS))
    return function, [
        np.array(draw(st.lists(st.tuples(*[coordinates] * 3), min_size=VERTICES[f], max_size=VERTICES[f])))
        for f in function
    ]


@settings(max_examples=150)
@given(awkward(), st.floats(0, 1), st.floats(0, 1))
def test_degenerate_shapes_are_exact_finite_and_symmetric(reference, case, r0, r1):
    function, (v0, v1) = case
    args = v0[None], np.array([r0]), v1[None], np.array([r1])
    r = distances(function, *args)
    assert abs(r.core[0] - reference.exhaustive(v0[None], v1[None])[0]) < 1e-9
    assert unit(r.normal) and np.isfinite(r.point_0).all() and np.isfinite(r.point_1).all()
    assert np.allclose(r.point_1, r.point_0 + r.distance[:, None] * r.normal, atol=1e-12)
    back = distances(function[::-1], *args[2:], *args[:2])
    assert np.allclose(back.distance, r.distance, atol=1e-12)
    assert np.array_equal(back.penetrating, r.penetrating)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_identical_shapes_overlap_by_both_radii(reference, rng, function):
    v0, r0, _, r1 = reference.random_pairs(function[0] * 2, 200, rng)
    r = distances(function[0] * 2, v0, r0, v0, r1)
    assert np.array_equal(r.distance, -r0 - r1) and r.penetrating.all() and unit(r.normal)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_touching_shapes_have_distance_zero_and_the_normal_they_had_before(reference, rng, function):
    """Moved together along the normal to contact and beyond: d falls one to one, n stays, until the cores meet."""
    v0, r0, v1, r1 = reference.random_pairs(function, 500, rng)
    a = distances(function, v0, r0, v1, r1)
    clear = a.core > 1e-3
    v0, r0, v1, r1 = v0[clear], r0[clear], v1[clear], r1[clear]
    d, n, core = a.distance[clear], a.normal[clear], a.core[clear]
    for closer in (d, d + 0.5 * np.minimum(r0 + r1, core - d), core - 1e-4):
        b = distances(function, v0, r0, v1 - (closer[:, None] * n)[:, None], r1)
        assert np.allclose(b.distance, d - closer, atol=1e-12)
        assert np.allclose(b.normal, n, atol=1e-9)


@pytest.mark.parametrize("slant", [1.0, -1.0, 2.5, -0.3])
def test_the_middle_is_taken_where_parallel_lines_overlap(slant):
    """Also turned in space and with different lengths; the rule of Schwienbacher 2014 for overlapping parallels."""
    R = Rotation.from_rotvec([0.3, -1.2, 0.7]).as_matrix()
    u = np.array([0.4, 0.0, 0.0])
    v0 = np.array([[0.0, 0, 0], u]) @ R.T
    start = np.array([0.1, 0.2, 0.0])
    v1 = np.array([start, start + slant * u]) @ R.T
    r = distances("ll", v0[None], np.array([0.05]), v1[None], np.array([0.06]))
    ends = sorted((0.1, 0.1 + slant * 0.4))
    middle = (max(0.0, ends[0]) + min(0.4, ends[1])) / 2
    low, high = max(0.0, ends[0]), min(0.4, ends[1])
    if high < low:  # no overlap: the ends that face each other
        middle = 0.0
    assert (R.T @ r.point_0[0])[0] == pytest.approx(middle, abs=1e-12)
    assert r.distance[0] == pytest.approx(0.2 - 0.11 if high >= low else np.hypot(0.2, low - high) - 0.11)


def test_crossing_lines_get_their_common_perpendicular():
    v0 = np.array([[[-1.0, 0, 0], [1, 0, 0]]])
    v1 = np.array([[[0.0, -1, 0], [0, 2, 0]]])
    r = distances("ll", v0, np.array([0.1]), v1, np.array([0.2]))
    assert r.penetrating[0] and r.distance[0] == pytest.approx(-0.3)
    assert np.allclose(np.abs(r.normal), [[0, 0, 1]])


def test_a_pierced_triangle_gives_its_normal_toward_the_side_with_more_of_the_other():
    t = np.array([[[0.0, 0, 0], [1, 0, 0], [0, 1, 0]]])
    line = np.array([[[0.2, 0.2, -0.1], [0.2, 0.2, 1.0]]])
    r = distances("lt", line, np.array([0.01]), t, np.array([0.02]))
    assert r.penetrating[0] and r.distance[0] == pytest.approx(-0.03)
    assert np.allclose(r.normal, [[0, 0, -1]])  # the triangle leaves downward, the line upward
    assert np.allclose(distances("tl", t, np.array([0.02]), line, np.array([0.01])).normal, [[0, 0, 1]])


def test_what_is_not_a_number_stays_so():
    v = np.full((1, 3, 3), np.nan)
    r = np.array([0.1])
    for function in FUNCTIONS:
        a, b = (v[:, : VERTICES[f]] for f in function)
        assert np.isnan(distances(function, a, r, b, r).distance[0])


def test_a_batch_gives_what_single_calls_give(reference, rng):
    """Also for counts around the size of a block."""
    for count in (1, 3, LANES - 1, LANES, LANES + 1, 2 * LANES + 5):
        v0, r0, v1, r1 = reference.random_pairs("tt", count, rng)
        r = distances("tt", v0, r0, v1, r1)
        assert len(r.distance) == count
        for k in {0, count // 2, count - 1}:
            one = distances("tt", v0[k : k + 1], r0[k : k + 1], v1[k : k + 1], r1[k : k + 1])
            assert one.distance[0] == r.distance[k] and np.array_equal(one.normal[0], r.normal[k])


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="reads the instructions of x86-64")
@pytest.mark.parametrize("block", [line_line_block, triangle_triangle_block], ids=["ll", "tt"])
def test_one_instruction_measures_several_pairs(block):
    """A branch in a kernel, or a call that is not inlined, would silently cost a factor of four."""
    fresh = njit(error_model="numpy")(block.py_func)
    fresh(np.ones(ROWS * LANES), LANES)
    code = next(iter(fresh.inspect_asm().values()))
    assert "divpd" in code and "sqrtpd" in code


def test_unknown_function_names_the_known_ones():
    with pytest.raises(UnknownNameError, match="unknown distance function 'tx'"):
        distances("tx", np.zeros((1, 1, 3)), np.zeros(1), np.zeros((1, 1, 3)), np.zeros(1))
