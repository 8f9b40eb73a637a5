"""Formulas that Schwienbacher 2014 prints wrongly: each fails where the corrected one, used here, is exact."""

import numpy as np
import pytest

from humanoid_control.collision.ssv.distance import volume_distances as distances
from humanoid_control.collision.ssv.distance_kernels import PARALLEL, is_parallel, plane

COUNT = 20000


def dot(a, b):
    return (a * b).sum(-1)


def clamp(x):
    return np.clip(x, 0, 1)


def random_lines(rng, parallel=False):
    """(p, u, q, v) of COUNT pairs; parallel and antiparallel ones overlap, or not, in every way."""
    p, q, u, v = rng.normal(size=(4, COUNT, 3))
    if parallel:
        v = u * rng.uniform(-2, 2, (COUNT, 1))
        q = p + u * rng.uniform(-2, 2, (COUNT, 1)) + rng.normal(size=(COUNT, 3))
    return p, u, q, v


def ours(p, u, q, v):
    zero = np.zeros(len(p))
    return distances("ll", np.stack([p, p + u], 1), zero, np.stack([q, q + v], 1), zero)


def reach(p, u, q, v, s, t):
    return np.linalg.norm(q + t[:, None] * v - p - s[:, None] * u, axis=1)


@pytest.mark.parametrize("first", [1, 2])
@pytest.mark.parametrize("second", [1, 2])
def test_tables_6_3_and_6_4_are_exact_only_for_solution_1_then_2_and_only_corrected(rng, reference, first, second):
    """The text calls both solutions equal and prints u (u - w) for t = 1."""
    p, u, q, v = random_lines(rng)
    w = q - p
    uu, vv, uv, uw, vw = dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w)
    N = uu * vv - uv**2
    s0, t0 = (vv * uw - uv * vw) / N, (uv * uw - uu * vw) / N
    true = reference.exhaustive(np.stack([p, p + u], 1), np.stack([q, q + v], 1))

    def wrong(at_t1, at_s1):
        at_t0 = uw / uu if first == 1 else vw / uv
        t = clamp(t0)
        s = np.where(t0 < 0, at_t0, np.where(t0 > 1, at_t1, s0))
        at_s0 = -uw / uv if second == 1 else -vw / vv
        t = np.where(s < 0, clamp(at_s0), np.where(s > 1, clamp(at_s1), t))
        return (reach(p, u, q, v, clamp(s), t) > true + 1e-9).sum()

    printed = wrong((uu - uw) / uu if first == 1 else (uv - vw) / uv, (uu - uw) / uv if second == 1 else (uv - vw) / vv)
    corrected = wrong(
        (uv + uw) / uu if first == 1 else (vv + vw) / uv, (uu - uw) / uv if second == 1 else (uv - vw) / vv
    )
    assert printed > 0.1 * COUNT
    if (first, second) == (1, 2):
        assert corrected == 0
    else:
        assert corrected > 0.05 * COUNT
    assert np.abs(ours(p, u, q, v).core - true).max() < 1e-9


def test_printed_solution_of_infinite_lines_is_not_perpendicular_to_them(rng):
    """(6.31): as printed t_z is zero and s_z has no v^2; with the terms in place c is at right angles to both."""
    p, u, q, v = random_lines(rng)
    w = q - p
    uu, vv, uv, uw, vw = dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w)
    N = uu * vv - uv**2
    for s_z, t_z, right in (
        (vv * uw - uv * vw, uv * uw - uu * vw, True),
        (vv * uw - uv * vw, uv * uw - uv * vw, False),
    ):
        c = w - (s_z / N)[:, None] * u + (t_z / N)[:, None] * v
        off = np.maximum(np.abs(dot(c, u)), np.abs(dot(c, v)))
        assert (np.median(off) < 1e-12) == right
    inside = ours(p, u, q, v)
    c = inside.point_1 - inside.point_0
    s = (vv * uw - uv * vw) / N
    t = (uv * uw - uu * vw) / N
    free = (s > 0) & (s < 1) & (t > 0) & (t < 1)
    assert free.sum() > 100 and np.abs(dot(c, u)[free]).max() < 1e-9 and np.abs(dot(c, v)[free]).max() < 1e-9


def algorithm_b2(uu, vv, uv, uw, vw, as_printed):
    """Parallel segments (table 6.5): eleven solutions in nine cells, by the printed conditions."""
    N = 2 * uv
    zero, half, one = np.zeros_like(uu), 0.5 + 0 * uu, 1 + 0 * uu
    left, right = uv + uw < 0, uv + uw > uu
    after = (uu - 2 * (uv if as_printed else uw)) / N
    s_15, t_15 = half, (uu - 2 * uw) / N
    cells = [
        (uw < 0, left, zero, np.where(uv < 0, 0.0, 1.0)),
        (uw < 0, right, half, after),
        (uw < 0, ~left & ~right, (vv + vw) / N, (uv - uw) / N),
        (uw > uu, left, s_15, t_15),
        (uw > uu, right, one, np.where(uv < 0, 1.0, 0.0)),
        (uw > uu, ~left & ~right, (uv + vv + vw) / N, (uv + uu - uw) / N),
        ((uw >= 0) & (uw <= uu), left, vw / N, -uw / N),
        ((uw >= 0) & (uw <= uu), right, (uv + vw) / N, (uu - uw) / N),
        ((uw >= 0) & (uw <= uu), ~left & ~right, (vv + 2 * vw) / N, half),
    ]
    s, t, cell = zero.copy(), zero.copy(), np.zeros(len(uu), dtype=int)
    for k, (row, column, a, b) in enumerate(cells):
        here = row & column
        s, t, cell = np.where(here, a, s), np.where(here, b, t), np.where(here, k, cell)
    if as_printed:  # line 15 sets t where it means s, which keeps the value it had: none, taken as 0
        s = np.where(cell == 3, 0.0, s)
    return s, t, cell


def test_parallel_table_has_nine_cells_and_is_wrong_as_printed(rng, reference):
    """Corrected exact with the points of the kernel; as printed about one pair in ten is wrong."""
    p, u, q, v = random_lines(rng, parallel=True)
    w = q - p
    products = dot(u, u), dot(v, v), dot(u, v), dot(u, w), dot(v, w)
    true = reference.exhaustive(np.stack([p, p + u], 1), np.stack([q, q + v], 1))
    s, t, cell = algorithm_b2(*products, as_printed=False)
    assert set(cell) == set(range(9))
    assert np.abs(reach(p, u, q, v, s, t) - true).max() < 1e-9
    r = ours(p, u, q, v)
    assert np.abs(r.core - true).max() < 1e-9
    overlap = ~np.isin(cell, (0, 4))
    assert np.allclose(r.point_0[overlap], (p + s[:, None] * u)[overlap], atol=1e-6)
    s, t, _ = algorithm_b2(*products, as_printed=True)
    share = np.mean(~(np.abs(reach(p, u, q, v, s, t) - true) < 1e-9))
    assert 0.05 < share < 0.25


def test_parallel_test_is_free_of_scale():
    """The example of Schwienbacher 2014: N = 8.1e-7 is below 1e-6 although the lines are at 45 degrees."""
    u, v = np.array([0.03, 0, 0]), np.array([0.03, 0.03, 0])
    uu, vv = u @ u, v @ v
    N = np.cross(u, v) @ np.cross(u, v)
    assert uu * vv == pytest.approx(16.2e-7) and pytest.approx(8.1e-7) == N and N / (uu * vv) == pytest.approx(0.5)
    assert N < 1e-6 and not is_parallel(N, uu, vv, 1e-6) and not is_parallel(N, uu, vv, PARALLEL)
    for scale in (1e-6, 1.0, 1e6):
        a, b = scale * u, scale * 2 * u
        assert is_parallel(np.cross(a, b) @ np.cross(a, b), a @ a, b @ b, PARALLEL)


def printed_point_triangle(x, t):
    """Table 6.2 with the vertex itself in the vertex regions 1, 3, 5."""
    e0, e1 = t[1] - t[0], t[2] - t[0]
    a, b = np.linalg.lstsq(np.stack([e0, e1], 1), x - t[0], rcond=None)[0]
    outside = a + b >= 1
    if a < 0 and b < 0:
        return np.linalg.norm(x - t[0]), 1
    if b < 0 and outside:
        return np.linalg.norm(x - t[1]), 3
    if a < 0 and outside:
        return np.linalg.norm(x - t[2]), 5
    return None, 0


def test_vertex_regions_of_an_obtuse_triangle_are_nearer_to_an_edge():
    """Table 6.2 on an obtuse triangle: s = (-0.3, -0.8), vertex 0.6403, true 0.4."""
    t = np.array([[0.0, 0, 0], [1, 0, 0], [-1, 0.5, 0]])
    x = np.array([0.5, -0.4, 0])
    printed, region = printed_point_triangle(x, t)
    assert region == 1 and printed == pytest.approx(0.6403, abs=5e-5)
    zero = np.zeros(1)
    assert distances("pt", x[None, None], zero, t[None], zero).distance[0] == pytest.approx(0.4, abs=1e-15)


def test_vertex_regions_fail_for_obtuse_triangles_only(rng):
    """Table 6.2 is right where no corner is obtuse, of random triangles."""
    wrong = {True: 0, False: 0}
    zero = np.zeros(1)
    for _ in range(4000):
        t, x = rng.normal(size=(3, 3)), rng.normal(size=3)
        printed, region = printed_point_triangle(x, t)
        if not region:
            continue
        sides = t[[1, 2, 0]] - t
        obtuse = max(dot(sides, -sides[[2, 0, 1]]) * -1) > 0
        error = printed - distances("pt", x[None, None], zero, t[None], zero).distance[0]
        assert error > -1e-12
        wrong[obtuse] += error > 1e-9
    assert wrong[True] > 50 and wrong[False] == 0


def edges(t):
    """(P, 3, 2, 3) edges of triangles (P, 3, 3)."""
    return np.stack([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]], axis=1)


def without_piercing(v0, v1):
    """The best of edge-edge and vertex-triangle, as printed for TT, and for LT."""
    zero = np.zeros(len(v0))
    pieces0 = edges(v0) if v0.shape[1] == 3 else v0[:, None]
    best = np.full(len(v0), np.inf)
    for i in range(pieces0.shape[1]):
        for j in range(3):
            best = np.minimum(best, distances("ll", pieces0[:, i], zero, edges(v1)[:, j], zero).distance)
    for i in range(v0.shape[1]):
        best = np.minimum(best, distances("pt", v0[:, i : i + 1], zero, v1, zero).distance)
    if v0.shape[1] == 3:
        for j in range(3):
            best = np.minimum(best, distances("pt", v1[:, j : j + 1], zero, v0, zero).distance)
    return best


def test_a_line_over_a_triangle_is_missed_by_the_edges_alone():
    """Section 6.4.5: 0.2527 from the edges, true 0.05."""
    t = np.array([[[0.0, 0, 0], [1, 0, 0], [0.5, 0.9, 0]]])
    line = np.array([[[0.45, 0.3, 0.05], [0.55, 0.3, 0.05]]])
    zero = np.zeros(1)
    by_edges = min(distances("ll", line, zero, edges(t)[:, j], zero).distance[0] for j in range(3))
    assert by_edges == pytest.approx(0.2527, abs=5e-5)
    assert distances("lt", line, zero, t, zero).distance[0] == pytest.approx(0.05, abs=1e-15)


@pytest.mark.parametrize("function", ["lt", "tt"])
def test_piercing_is_missed_by_edges_and_vertices(rng, reference, function):
    """The printed candidates report a gap where one core goes through the other."""
    v0 = rng.normal(size=(5000, 2 if function == "lt" else 3, 3))
    v1 = rng.normal(size=(5000, 3, 3))
    zero = np.zeros(5000)
    r, printed = distances(function, v0, zero, v1, zero), without_piercing(v0, v1)
    wrong = printed > r.core + 1e-9
    assert 0.02 < wrong.mean() < 0.4
    assert r.penetrating[wrong].all()  # and nothing else is missed
    assert np.abs(r.core - reference.exhaustive(v0, v1)).max() < 1e-9


def test_distance_stays_signed_where_the_printed_one_turns_positive_again():
    """|r_c| = |d| grows again inside, and r_c flips; d and the normal of the cores do not."""
    u = np.array([[[0.0, -1, 0], [0, 1, 0]]])
    radius = np.array([0.1])
    last = np.inf
    for x in np.linspace(0.5, 0.001, 40):
        r = distances("ll", u, radius, u + [x, 0, 0.0], radius)
        assert r.distance[0] == pytest.approx(x - 0.2) and r.distance[0] < last
        assert np.allclose(r.normal, [[1, 0, 0]])
        last = r.distance[0]
        flipped = (r.point_1 - r.point_0)[0] @ [1, 0, 0] < 0
        assert flipped == (x < 0.2)


def test_rows_that_find_the_foot_in_a_triangles_plane_are_the_pseudo_inverse_of_its_edges(rng):
    """F-46: S = (D^T D)^-1 D^T of (6.21), by cross products; also of a thin triangle, where D^T D loses digits."""
    for thin in (1.0, 1e-6):
        for _ in range(50):
            e0, e1 = rng.normal(size=3), rng.normal(size=3)
            e1 = thin * e1 + (1 - thin) * 1.3 * e0
            n, k0, k1 = plane(tuple(e0), tuple(e1))
            S = np.array([k0, k1])
            D = np.column_stack([e0, e1])
            assert np.allclose(S @ D, np.eye(2), atol=1e-8), "it inverts the edges"
            assert np.abs(S @ np.array(n)).max() < 1e-8 * np.linalg.norm(S), "and has no part across the plane"
            if thin == 1.0:
                assert np.allclose(S, np.linalg.pinv(D), rtol=1e-7, atol=1e-9 * np.abs(S).max())
