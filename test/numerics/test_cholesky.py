"""Cholesky factors against LAPACK's."""

import numpy as np
import pytest

from humanoid_control.numerics.cholesky import cholesky


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
