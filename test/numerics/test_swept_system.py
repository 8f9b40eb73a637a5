"""A table swept over some of its entries, against the inverse and the Schur complement of numpy."""

import numpy as np
import pytest

from humanoid_control.compiled.tiles import WIDTH
from humanoid_control.numerics.swept_system import PANEL, VECTORS, SweptSystem, multiply, sweep, sweep_panel


def system(n, rows, seed):
    """A random quasi-definite system with n variables and some rows, and the matrix with c as its last row."""
    rng, size = np.random.default_rng(seed), n + rows
    J = rng.normal(size=(n + 2, n))
    Q = np.zeros((size + 1, size + 1))
    Q[:n, :n], Q[n:size, :n] = J.T @ J + 0.1 * np.eye(n), rng.normal(size=(rows, n))
    Q[:n, n:size], Q[n:size, n:size], Q[size, :size] = Q[n:size, :n].T, -0.01 * np.eye(rows), rng.normal(size=size)
    Q[:size, size] = Q[size, :size]
    stride = size + 1 + (-size - 1) % WIDTH
    table = np.zeros((stride, stride))
    table[: size + 1, : size + 1] = Q
    memory = np.zeros(VECTORS * stride + PANEL * PANEL)
    y, w, column = (memory[k * stride : (k + 1) * stride] for k in range(3))
    panels = (memory[(3 + k * PANEL) * stride :] for k in range(3))
    index = np.arange(size), np.zeros(size, dtype=np.int64)
    s = SweptSystem(table.ravel(), stride, *index, y, w, column, *panels, memory[VECTORS * stride :], np.zeros(2))
    return s, Q


def whole(s, size):
    """The table (size + 1, size + 1), of which the tiles below the diagonal count."""
    T = s.table.reshape(s.stride, s.stride)[: size + 1, : size + 1]
    tile = np.arange(size + 1) // WIDTH
    return np.where(tile[:, None] >= tile[None, :], T, T.T)


def swept(Q, chosen):
    """What it should be."""
    out, rest = np.empty_like(Q), ~chosen
    inverse = np.linalg.inv(Q[np.ix_(chosen, chosen)])
    beside = Q[np.ix_(rest, chosen)] @ inverse
    out[np.ix_(chosen, chosen)], out[np.ix_(rest, chosen)] = -inverse, beside
    out[np.ix_(chosen, rest)] = beside.T
    out[np.ix_(rest, rest)] = Q[np.ix_(rest, rest)] - beside @ Q[np.ix_(chosen, rest)]
    return out


@pytest.mark.parametrize(("n", "rows", "count"), [(1, 0, 1), (3, 2, 4), (7, 0, 7), (8, 3, 9), (21, 6, 14), (38, 9, 45)])
def test_panels_leave_the_inverse_and_what_follows_from_it(n, rows, count):
    for seed in range(5):
        s, Q = system(n, rows, seed)
        for first in range(0, count, PANEL):
            assert sweep_panel(s, first, min(first + PANEL, count), n)
        chosen = np.arange(n + rows + 1) < count
        assert np.allclose(whole(s, n + rows), swept(Q, chosen), rtol=1e-8, atol=1e-8)
        assert np.array_equal(s.swept, chosen[:-1])
        v, out = np.zeros(s.stride), np.empty(s.stride)
        v[: n + rows] = np.random.default_rng(seed).normal(size=n + rows)
        multiply(s, v, out)
        assert np.allclose(out[: n + rows], whole(s, n + rows)[:-1, :-1] @ v[: n + rows])


def test_single_pivots_do_the_same_in_any_order_and_can_be_taken_back():
    n, rows, rng = 13, 5, np.random.default_rng(0)
    s, Q = system(n, rows, 3)
    assert sweep_panel(s, 0, PANEL, n)
    for p in rng.permutation(np.arange(PANEL, n + rows)):
        sweep(s, p, 0.0)
    everything = np.arange(n + rows + 1) < n + rows
    assert np.allclose(whole(s, n + rows), swept(Q, everything), rtol=1e-8, atol=1e-8)
    for p in rng.permutation(n + rows)[:9]:
        sweep(s, p, 0.0)
        everything[p] = False
    assert np.allclose(whole(s, n + rows), swept(Q, everything), rtol=1e-8, atol=1e-8)
    assert np.array_equal(s.swept, everything[:-1])


def test_a_variable_without_a_positive_pivot_is_told():
    for column in (0, 2, 6):
        s, _ = system(7, 1, 1)
        s.table[column * s.stride + column] = -1.0
        assert not all(sweep_panel(s, first, min(first + PANEL, 7), 7) for first in (0, PANEL))
