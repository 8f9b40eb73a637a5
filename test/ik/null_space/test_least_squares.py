"""Algorithm 4.3 and its relatives as mathematics: against the explicit formulas, numpy's least squares, and scipy."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from humanoid_control.ik.null_space import (
    BoundedNorm,
    DampedLeastSquares,
    DampingSchedule,
    Hierarchy,
    ResolvedRate,
    TruncatedSvd,
)
from humanoid_control.ik.null_space.least_squares import damping_for_norm
from humanoid_control.ik.null_space.velocity_solver import velocity_scales
from humanoid_control.ik.null_space.weighted_step import weighted_step
from humanoid_control.ik.task_rows import Rows
from humanoid_control.robots import load_robot

CALM = settings(max_examples=60)
SHAPES = st.tuples(st.integers(1, 12), st.integers(0, 10), st.integers(0, 10**6))


@cache
def robot():
    return load_robot("hrp2", "fixed")


def system(shape):
    """A random regular system: J (m, k) with m <= k, task velocity, inverse weights, wish."""
    m, more, seed = shape
    rng = np.random.default_rng(seed)
    J = rng.normal(size=(m, m + more))
    return J, rng.normal(size=m), 1 / rng.uniform(0.2, 5, m + more), rng.normal(size=m + more)


def explicit(J, v, mobility, z):
    """Eq. (4.12) as it is printed, with the pseudo-inverse and the projector formed."""
    W_inv = np.diag(mobility)
    J_sharp = W_inv @ J.T @ np.linalg.inv(J @ W_inv @ J.T)
    N = np.eye(len(z)) - J_sharp @ J
    return J_sharp, N, J_sharp @ v + N @ z


def rows_of(J, v, level=None):
    return Rows(J, v, np.zeros(len(v), dtype=int) if level is None else np.array(level), [slice(0, len(v))])


def solver_of(cls, k, mobility=None, **options):
    solver = cls(robot(), **options)
    solver.dofs.mobility = np.ones(k) if mobility is None else mobility
    return solver


@CALM
@given(SHAPES)
def test_algorithm_equals_the_explicit_formula(shape):
    """T-03, with conditioning taken into account."""
    J, v, mobility, z = system(shape)
    task, null, w, ok = weighted_step(J, v, mobility, z)
    _, _, expected = explicit(J, v, mobility, z)
    A = J * np.sqrt(mobility)
    tolerance = 1e-13 * np.linalg.cond(A) ** 2 * (1 + np.abs(expected).max())
    assert ok and np.allclose(task + null, expected, atol=tolerance)
    assert w == pytest.approx(np.prod(np.linalg.svd(A, compute_uv=False)), rel=1e-6)


def test_algorithm_equals_the_formula_at_the_size_of_lola():
    rng = np.random.default_rng(0)
    for _ in range(20):
        J, v, mobility, z = rng.normal(size=(22, 28)), rng.normal(size=22), rng.uniform(0.2, 5, 28), rng.normal(size=28)
        task, null, _, _ = weighted_step(J, v, mobility, z)
        expected = explicit(J, v, mobility, z)[2]
        assert np.abs(task + null - expected).max() < 1e-10 * np.abs(expected).max()


@CALM
@given(SHAPES)
def test_null_space_motion_does_not_touch_the_task(shape):
    """T-04: J N = 0, for the projector and for the part the algorithm gives."""
    J, v, mobility, z = system(shape)
    tolerance = 1e-12 * np.linalg.cond(J * np.sqrt(mobility)) ** 2 * (1 + np.abs(J).max())
    task, null, _, _ = weighted_step(J, v, mobility, z)
    assert np.abs(J @ null).max() < tolerance * 10
    assert np.abs(J @ task - v).max() < tolerance * 10 * (1 + np.abs(v).max())
    assert np.abs(J @ explicit(J, v, mobility, z)[1]).max() < tolerance * 10


@CALM
@given(SHAPES)
def test_of_all_answers_the_one_of_least_weighted_norm_and_nearest_to_the_wish(shape):
    """Whitney's problem (4.7): any other answer of the task is longer; with a wish, farther from it (4.11)."""
    J, v, mobility, z = system(shape)
    if np.linalg.cond(J) > 1e4:
        return
    task, null, _, _ = weighted_step(J, v, mobility, z)
    rng, W = np.random.default_rng(1), 1 / mobility
    N = explicit(J, v, mobility, z)[1]
    for _ in range(5):
        other = N @ rng.normal(size=len(z))
        assert W @ (task + other) ** 2 >= (1 - 1e-12) * (W @ task**2) - 1e-8
        assert W @ (task + null + other - z) ** 2 >= (1 - 1e-12) * (W @ (task + null - z) ** 2) - 1e-8


@CALM
@given(SHAPES, st.floats(0.01, 2))
def test_damped_step_is_the_damped_least_squares_problem(shape, damping):
    J, v, mobility, _ = system(shape)
    task = weighted_step(J, v, mobility, np.zeros(J.shape[1]), damping)[0]
    A = np.vstack([J, damping * np.diag(1 / np.sqrt(mobility))])
    expected = np.linalg.lstsq(A, np.concatenate([v, np.zeros(J.shape[1])]), rcond=None)[0]
    assert np.allclose(task, expected, atol=1e-9)


def test_damping_follows_the_manipulability_without_a_step():
    schedule = DampingSchedule(0.1, 2.0)
    w = np.linspace(0, 3, 1000)
    damping = np.array([schedule.damping(x) for x in w])
    assert damping[0] == pytest.approx(0.1) and np.all(damping[w >= 2] == 0)
    assert np.all(np.diff(damping) <= 0) and np.abs(np.diff(damping)).max() < 2e-4
    assert DampingSchedule(0.1).damping(123.0) == 0.1


def test_scheduled_damping_is_off_where_the_task_is_regular_and_bounds_the_speed_where_it_is_not():
    rng = np.random.default_rng(2)
    U, _, Vt = np.linalg.svd(rng.normal(size=(4, 7)), full_matrices=False)
    v = rng.normal(size=4)
    solver = solver_of(DampedLeastSquares, 7, schedule=DampingSchedule(0.1, 0.5))
    regular = (U * [2.0, 1.5, 1.2, 1.0]) @ Vt
    got = solver.resolve(rows_of(regular, v), v, np.zeros(7))
    assert got.damping == 0 and np.allclose(regular @ got.task, v)
    for weak in (1e-1, 1e-3, 1e-6, 0.0):
        got = solver.resolve(rows_of(J := (U * [2.0, 1.5, 1.2, weak]) @ Vt, v), v, np.zeros(7))
        assert got.ok and got.damping > 0 and got.manipulability == pytest.approx(3.6 * weak, abs=1e-6)
        assert np.linalg.norm(got.task) <= np.linalg.norm(v) / (2 * got.damping) + np.linalg.norm(np.linalg.pinv(J[:3]))


@CALM
@given(SHAPES, st.integers(0, 11))
def test_truncated_svd_leaves_out_exactly_the_weak_directions(shape, drop):
    J, v, _, z = system(shape)
    m, k = J.shape
    drop = min(drop, m)
    U, _, Vt = np.linalg.svd(J, full_matrices=False)
    sigma = np.where(np.arange(m) < m - drop, 1.5, 1e-5)
    J = (U * sigma) @ Vt
    got = solver_of(TruncatedSvd, k, epsilon=0.01).resolve(rows_of(J, v), v, z)
    A = (U[:, : m - drop] * 1.5) @ Vt[: m - drop]
    assert np.allclose(got.task, np.linalg.pinv(A) @ v if m > drop else 0, atol=1e-9)
    assert np.allclose(A @ got.null, 0, atol=1e-9)
    assert got.note == (f"{drop} weak directions dropped" if drop else "")


@CALM
@given(st.integers(1, 12), st.integers(0, 10**6), st.floats(0.01, 10))
def test_damping_for_a_norm_is_the_root_that_brent_finds(m, seed, most):
    rng = np.random.default_rng(seed)
    sigma, b = 10 ** rng.uniform(-6, 1, m), rng.normal(size=m)

    def norm(damping):
        return np.linalg.norm(sigma * b / (sigma**2 + damping**2))

    damping = damping_for_norm(sigma, b, most)
    if np.linalg.norm(b / sigma) <= most:
        assert damping == 0
    else:
        assert norm(damping) == pytest.approx(most, rel=1e-9)
        assert damping == pytest.approx(brentq(lambda x: norm(x) - most, 0, 1e8, xtol=1e-15, rtol=1e-13), rel=1e-6)


def test_bounded_norm_is_exact_while_slow_enough_and_never_faster_than_its_bound():
    rng = np.random.default_rng(3)
    solver = solver_of(BoundedNorm, 9, max_norm=2.0)
    for k in range(100):
        J, v = rng.normal(size=(5, 9)), rng.normal(size=5) * 3
        if k % 2:
            J[4] = J[3] * (1 + 1e-6) + 1e-9 * rng.normal(size=9)
        got = solver.resolve(rows_of(J, v), v, np.zeros(9))
        assert np.linalg.norm(got.task) <= 2.0 * (1 + 1e-9)
        if got.damping == 0 and k % 2 == 0:
            assert np.allclose(J @ got.task, v)


def test_rank_deficient_rows_give_a_finite_answer_and_a_report():
    rng = np.random.default_rng(4)
    J, z = rng.normal(size=(4, 6)), rng.normal(size=6)
    J[3] = J[2]
    v = np.append(rng.normal(size=3), 0.0)
    v[3] = v[2]
    got = solver_of(ResolvedRate, 6).resolve(rows_of(J, v), v, z)
    assert not got.ok and "depend on each other" in got.note and got.manipulability == 0
    assert np.allclose(J @ got.task, v, atol=1e-3), "consistent rows are still served"
    assert np.allclose(J @ got.null, 0, atol=1e-3)
    empty = solver_of(ResolvedRate, 6).resolve(rows_of(np.zeros((0, 6)), np.zeros(0)), np.zeros(0), z)
    assert empty.ok and np.allclose(empty.task + empty.null, z), "no tasks: the wish itself"
    zero = solver_of(ResolvedRate, 6).resolve(rows_of(np.zeros((2, 6)), np.ones(2)), np.ones(2), z)
    assert np.isfinite(zero.task + zero.null).all()


@CALM
@given(st.integers(0, 10**6), st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_hierarchy_serves_each_level_as_well_as_the_ones_above_allow(seed, sizes):
    """Against levels solved one after the other as equality-constrained least squares by their KKT systems."""
    rng, k = np.random.default_rng(seed), 8
    J = rng.normal(size=(sum(sizes), k))
    v = rng.normal(size=len(J))
    level = np.repeat(np.arange(len(sizes)), sizes)
    mobility, z = rng.uniform(0.3, 3, k), rng.normal(size=k)
    got = solver_of(Hierarchy, k, mobility).resolve(rows_of(J, v, level), v, z)
    u = got.task + got.null
    above, served = np.zeros((0, k)), np.zeros(0)
    for i in range(len(sizes)):
        A, b = J[level == i], v[level == i]
        # min |A x - b|^2 s.t. above x = served: whatever x, A x is the same.
        KKT = np.block([[A.T @ A, above.T], [above, np.zeros((len(above), len(above)))]])
        x = np.linalg.lstsq(KKT, np.concatenate([A.T @ b, served]), rcond=1e-11)[0][:k]
        assert np.allclose(A @ u, A @ x, atol=1e-6), f"level {i}"
        above, served = np.vstack([above, A]), np.concatenate([served, A @ x])


def test_two_levels_never_disturb_the_first_where_one_weighted_level_compromises():
    rng = np.random.default_rng(5)
    J, v = rng.normal(size=(8, 6)), rng.normal(size=8)  # 4 rows above, 4 below: only 2 can be served
    level = [0] * 4 + [1] * 4
    strict = solver_of(Hierarchy, 6).resolve(rows_of(J, v, level), v, np.zeros(6))
    assert np.allclose(J[:4] @ strict.task, v[:4], atol=1e-10) and "level 1" in strict.note
    assert np.abs(J[4:] @ strict.task - v[4:]).max() > 0.01
    mixed = np.linalg.lstsq(J, v, rcond=None)[0]
    assert np.abs(J[:4] @ mixed - v[:4]).max() > 0.01
    # The best the lower level can have: least squares in the null space of the upper, by its basis.
    Z = np.linalg.svd(J[:4])[2][4:].T
    first = np.linalg.pinv(J[:4]) @ v[:4]
    best = first + Z @ np.linalg.lstsq(J[4:] @ Z, v[4:] - J[4:] @ first, rcond=None)[0]
    assert np.allclose(strict.task, best, atol=1e-9)


def test_levels_that_are_one_are_the_resolved_rate():
    rng = np.random.default_rng(6)
    for _ in range(20):
        J, v, mobility, z = rng.normal(size=(5, 9)), rng.normal(size=5), rng.uniform(0.3, 3, 9), rng.normal(size=9)
        split = rows_of(J, v, [0, 0, 1, 2, 2])
        a = solver_of(Hierarchy, 9, mobility).resolve(split, v, z)
        b = solver_of(ResolvedRate, 9, mobility).resolve(split, v, z)
        assert np.allclose(a.task + a.null, b.task + b.null, atol=1e-8), "compatible levels need no order"


@CALM
@given(st.integers(1, 8), st.integers(0, 10**6))
def test_velocity_scales_keeps_limits_and_as_much_null_space_motion_as_fits(n, seed):
    rng = np.random.default_rng(seed)
    task, null, limit = rng.normal(size=n) * 2, rng.normal(size=n) * 2, rng.uniform(0.2, 3, n)
    if seed % 3 == 0:
        null[0] = 0.0
    s, f = velocity_scales(task, null, limit)
    assert 0 <= s <= 1 and 0 < f <= 1
    assert (np.abs(f * (task + s * null)) <= limit * (1 + 1e-12)).all()
    fits = [x for x in np.linspace(0, 1, 1001) if (np.abs(task + x * null) <= limit).all()]
    if fits:
        assert f == 1 and s >= max(fits) - 1e-9 and s <= max(fits) + 2e-3
    if (np.abs(task + null) <= limit).all():
        assert s == 1
