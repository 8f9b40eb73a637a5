"""Cholesky factors against LAPACK's."""

import numpy as np
import pytest

from humanoid_control.numerics.cholesky import (
    BandedFactor,
    BlockWork,
    cholesky,
    cholesky_inverse,
    dot,
    factor_block_row,
    solve_banded,
    solve_factored,
    solve_upper,
    upper_cholesky,
)


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_the_factor_of_a_leading_block_is_lapacks(n):
    A = np.random.default_rng(n).normal(size=(n + 3, n + 3))
    M, L = A @ A.T, np.zeros((n + 3, n + 3))
    assert cholesky(M, n, L)
    assert L[:n, :n] == pytest.approx(np.linalg.cholesky(M[:n, :n]), abs=1e-10)
    assert not L[n:].any() and not L[:, n:].any()


@pytest.mark.parametrize("pivot", [0.0, -1e-9, np.nan])
def test_a_pivot_that_is_not_positive_is_told(pivot):
    M = np.diag([1.0, 2.0, pivot])
    assert not cholesky(M, 3, np.zeros((3, 3)))
    assert cholesky(M, 2, np.zeros((3, 3)))


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_systems_are_solved_and_inverted_as_lapack_does_it(n):
    rng = np.random.default_rng(n)
    A, rest = rng.normal(size=(n + 3, n + 3)), rng.normal(size=3)
    M, L, b = A @ A.T + np.eye(n + 3), np.full((n + 3, n + 3), np.nan), np.concatenate([rng.normal(size=n), rest])
    assert cholesky(M, n, L)
    x, inverse = b.copy(), np.full((n + 3, n + 3), 7.0)
    solve_factored(L, n, x)
    assert x[:n] == pytest.approx(np.linalg.solve(M[:n, :n], b[:n]), rel=1e-9, abs=1e-9) and (x[n:] == rest).all()
    cholesky_inverse(L, n, inverse)
    assert inverse[:n, :n] == pytest.approx(np.linalg.inv(M[:n, :n]), rel=1e-9, abs=1e-9)
    assert (inverse[n:] == 7).all() and (inverse[:, n:] == 7).all()


@pytest.mark.parametrize("n", [1, 2, 7, 40])
def test_an_upper_factor_solves_as_lapack_does(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n + 3, n + 3))
    M, b = A @ A.T + np.eye(n + 3), rng.normal(size=n + 3)
    U, x = M.copy(), b.copy()
    assert upper_cholesky(U, n)
    solve_upper(U, n, x)
    assert x[:n] == pytest.approx(np.linalg.solve(M[:n, :n], b[:n]), rel=1e-9, abs=1e-9) and (x[n:] == b[n:]).all()


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 11, 32])
def test_the_upper_factor_is_the_transpose_of_the_lower_one(n):
    A = np.random.default_rng(n).normal(size=(n, n + 2))
    M = A @ A.T + 1e-3 * np.eye(n)
    U = np.full((n + 2, n + 2), 5.0)
    U[:n, :n] = np.triu(M) + np.tril(np.full((n, n), np.nan), -1)
    assert upper_cholesky(U, n)
    assert np.triu(U[:n, :n]) == pytest.approx(np.linalg.cholesky(M).T if n else M, abs=1e-9)
    assert (U[n:] == 5.0).all() and (U[:, n:] == 5.0).all()
    for k in range(n):
        bad = M.copy()
        bad[k, k] = -1.0
        assert not upper_cholesky(bad, n)


@pytest.mark.parametrize("n", range(12))
def test_a_scalar_product_is_of_the_first_entries_only(n):
    a, b = np.random.default_rng(n).normal(size=(2, 14))
    assert dot(a, b, n) == pytest.approx(a[:n] @ b[:n], rel=1e-12, abs=1e-12)


def banded(T, n, rng):
    """Bands (T, n) and the dense matrix of T blocks (n, n), those beside the diagonal diagonal themselves."""
    one, two = rng.normal(size=(T, n)), rng.normal(size=(T, n))
    M = np.zeros((T * n, T * n))
    for t in range(T):
        J = rng.normal(size=(n // 2 + 1, n))
        M[t * n : (t + 1) * n, t * n : (t + 1) * n] = J.T @ J + 6.0 * np.eye(n)
        for k, band in ((1, one), (2, two)):
            if t >= k:
                block = np.diag(band[t])
                M[t * n : (t + 1) * n, (t - k) * n : (t - k + 1) * n] = block
                M[(t - k) * n : (t - k + 1) * n, t * n : (t + 1) * n] = block
    return one, two, M


@pytest.mark.parametrize(("T", "n"), [(1, 3), (2, 4), (3, 1), (12, 7)])
def test_a_banded_system_is_solved_as_the_dense_one(T, n):
    rng = np.random.default_rng(T)
    one, two, M = banded(T, n, rng)
    M += max(0.0, 0.1 - np.linalg.eigvalsh(M)[0]) * np.eye(T * n)
    factor, work = BandedFactor.room(T + 2, n), BlockWork(np.empty((n, n)), np.empty((n, n)))
    for t in range(T):
        A = M[t * n : (t + 1) * n, t * n : (t + 1) * n].copy()
        A[np.tril_indices(n, -1)] = np.nan  # only the upper triangle is read
        assert factor_block_row(factor, t, A, one[t], two[t], work)
    b = rng.normal(size=(T, n))
    x = b.copy()
    solve_banded(factor, x)
    assert x.ravel() == pytest.approx(np.linalg.solve(M, b.ravel()), rel=1e-8, abs=1e-8)


def test_a_banded_matrix_that_is_not_positive_definite_is_told():
    """By its second block, which the first one's coupling overcomes."""
    factor, work, n = BandedFactor.room(2, 2), BlockWork(np.empty((2, 2)), np.empty((2, 2))), 2
    assert factor_block_row(factor, 0, np.eye(n), np.zeros(n), np.zeros(n), work)
    assert not factor_block_row(factor, 1, np.eye(n), np.array([0.5, 1.5]), np.zeros(n), work)
    assert not factor_block_row(factor, 0, np.full((n, n), np.nan), np.zeros(n), np.zeros(n), work)
