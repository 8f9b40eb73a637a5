"""Cholesky factors for kernels, without allocation: small dense matrices and banded block matrices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.jit import kernel

SINGULAR = 1e-13  # pivot relative to the diagonal


@kernel
def cholesky(M: np.ndarray, n: int, L: np.ndarray) -> bool:
    """Factor the leading n x n block of M = L L' into the lower triangle of L.

    False if M is not positive definite or has NaN; L is then incomplete.
    """
    for i in range(n):
        for j in range(i + 1):
            s = M[i, j]
            for k in range(j):
                s -= L[i, k] * L[j, k]
            if i == j:
                if not s > 0.0:
                    return False
                L[i, i] = np.sqrt(s)
            else:
                L[i, j] = s / L[j, j]
    return True


@kernel
def solve_factored(L: np.ndarray, n: int, b: np.ndarray) -> None:
    """b := (L L')^-1 b for the leading n entries."""
    for i in range(n):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        s = b[i]
        for k in range(i + 1, n):
            s -= L[k, i] * b[k]
        b[i] = s / L[i, i]


@kernel
def skyline_cholesky(M: np.ndarray, first: np.ndarray, n: int, L: np.ndarray) -> bool:
    """Factor a matrix with zeros before column first[i] of row i, which L preserves; see `cholesky`.

    False also if M is singular to working precision.
    """
    for i in range(n):
        a = first[i]
        for j in range(a, i):
            s = M[i, j]
            # Both rows are zero before their first columns.
            for k in range(max(a, first[j]), j):
                s -= L[i, k] * L[j, k]
            L[i, j] = s / L[j, j]
        s = M[i, i]
        for k in range(a, i):
            s -= L[i, k] * L[i, k]
        # A vanishing pivot means a singular matrix.
        if not s > SINGULAR * M[i, i]:
            return False
        L[i, i] = np.sqrt(s)
    return True


@kernel
def solve_skyline(L: np.ndarray, first: np.ndarray, n: int, b: np.ndarray) -> None:
    """b := (L L')^-1 b for a factor of `skyline_cholesky`."""
    for i in range(n):
        s = b[i]
        for k in range(first[i], i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(n - 1, -1, -1):
        b[i] /= L[i, i]
        for k in range(first[i], i):
            b[k] -= L[i, k] * b[i]


@kernel
def inverse_diagonal(L: np.ndarray, first: np.ndarray, n: int, y: np.ndarray, out: np.ndarray) -> None:
    """out := diagonal of (L L')^-1 for a factor of `skyline_cholesky`; y (n,) is work memory."""
    for c in range(n):
        y[c] = 1.0 / L[c, c]
        # Column c of L^-1: its squares sum to entry c of the diagonal of (L L')^-1.
        total = y[c] * y[c]
        for i in range(c + 1, n):
            s = 0.0
            for k in range(max(c, first[i]), i):
                s -= L[i, k] * y[k]
            y[i] = s / L[i, i]
            total += y[i] * y[i]
        out[c] = total


@kernel
def upper_cholesky(U: np.ndarray, n: int) -> bool:
    """Factor the leading n x n block U' U within the upper triangle; False if not positive definite.

    Loops run along rows (vectorised) and by four pivots at a time, for a quarter of the memory traffic.
    """
    for first in range(0, n, 4):
        last = min(first + 4, n)
        for k in range(first, last):
            for i in range(first, k):
                c = U[i, k]
                for j in range(k, n):
                    U[k, j] -= c * U[i, j]
            if not U[k, k] > 0.0:
                return False
            scale = 1.0 / np.sqrt(U[k, k])
            for j in range(k, n):
                U[k, j] *= scale
        # No rows remain behind an incomplete panel.
        if last - first < 4:
            return True
        for i in range(last, n):
            # Subtract four outer products in one pass.
            c0, c1, c2, c3 = U[first, i], U[first + 1, i], U[first + 2, i], U[first + 3, i]
            for j in range(i, n):
                U[i, j] -= (c0 * U[first, j] + c1 * U[first + 1, j]) + (c2 * U[first + 2, j] + c3 * U[first + 3, j])
    return True


@kernel
def solve_upper(U: np.ndarray, n: int, b: np.ndarray) -> None:
    """b := (U' U)^-1 b for a factor of `upper_cholesky`."""
    for k in range(n):
        # Forward substitution with U', along rows of U.
        s = b[k] / U[k, k]
        b[k] = s
        for j in range(k + 1, n):
            b[j] -= U[k, j] * s
    for k in range(n - 1, -1, -1):
        b[k] = (b[k] - dot(U[k, k + 1 : n], b[k + 1 : n], n - k - 1)) / U[k, k]


@kernel
def dot(a: np.ndarray, b: np.ndarray, n: int) -> float:
    """Return a . b of the first n entries, in four independent sums."""
    s0, s1, s2, s3, k = 0.0, 0.0, 0.0, 0.0, 0
    while k + 3 < n:
        s0 += a[k] * b[k]
        s1 += a[k + 1] * b[k + 1]
        s2 += a[k + 2] * b[k + 2]
        s3 += a[k + 3] * b[k + 3]
        k += 4
    while k < n:
        s0 += a[k] * b[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@kernel
def cholesky_inverse(L: np.ndarray, n: int, out: np.ndarray) -> None:
    """out := (L L')^-1, leading n x n block."""
    for col in range(n):
        for i in range(n):
            s = 1.0 if i == col else 0.0
            for c in range(col, i):
                s -= L[i, c] * out[c, col]
            out[i, col] = s / L[i, i] if i >= col else 0.0
        for i in range(n - 1, -1, -1):
            s = out[i, col]
            for c in range(i + 1, n):
                s -= L[c, i] * out[c, col]
            out[i, col] = s / L[i, i]


# -------- Block matrices with two blocks next to the diagonal


class BandedFactor(NamedTuple):
    """Factor L of a symmetric matrix of T x T blocks (n, n) with at most two blocks left of the diagonal.

    Attributes:
        inverse: inverses of the diagonal blocks of L (T, n, n).
        one: blocks L[t, t - 1], the first unused (T, n, n).
        two: blocks L[t, t - 2], the first two unused (T, n, n).
    """

    inverse: np.ndarray
    one: np.ndarray
    two: np.ndarray

    @classmethod
    def room(cls, blocks: int, n: int) -> BandedFactor:
        """Allocate memory."""
        return cls(np.zeros((blocks, n, n)), np.zeros((blocks, n, n)), np.zeros((blocks, n, n)))


class BlockWork(NamedTuple):
    """Work memory of `factor_block_row`: two blocks (n, n)."""

    block: np.ndarray
    product: np.ndarray


@kernel
def inverse_of_factor(S: np.ndarray, inverse: np.ndarray) -> bool:
    """Compute inverse := L^-1 of S = L L', vectorised along rows; False if S is not positive definite.

    Args:
        S: upper triangle used (n, n), overwritten by L'.
    """
    n = S.shape[0]
    for k in range(n):
        if not S[k, k] > 0.0:
            return False
        scale = 1.0 / np.sqrt(S[k, k])
        for j in range(k, n):
            S[k, j] *= scale
        for i in range(k + 1, n):
            c = S[k, i]
            if c != 0.0:
                for j in range(i, n):
                    S[i, j] -= c * S[k, j]
    for i in range(n):
        for j in range(n):
            inverse[i, j] = 0.0
        for k in range(i):
            c = S[k, i]
            if c != 0.0:
                for j in range(k + 1):
                    inverse[i, j] -= c * inverse[k, j]
        scale = 1.0 / S[i, i]
        for j in range(i):
            inverse[i, j] *= scale
        inverse[i, i] = scale
    return True


@kernel(allocates=True)
def factor_block_row(
    factor: BandedFactor, t: int, A: np.ndarray, one: np.ndarray, two: np.ndarray, work: BlockWork
) -> bool:
    """Compute row t of the factor of a matrix with diagonal off-diagonal blocks, after the previous rows.

    Args:
        A: diagonal block (n, n), upper triangle used and overwritten.
        one: diagonal of the block [t, t - 1] (n,).
        two: diagonal of the block [t, t - 2] (n,).

    Returns:
        False if the matrix is not positive definite.
    """
    n = A.shape[0]
    block, product = work
    # L[t, t-2] = M[t, t-2] L[t-2, t-2]^-T, and likewise L[t, t-1] after subtracting L[t, t-2] L[t-1, t-2]'.
    if t >= 2:
        for i in range(n):
            for j in range(n):
                factor.two[t, i, j] = two[i] * factor.inverse[t - 2, j, i]
        np.dot(factor.two[t], factor.two[t].T, product)
        for i in range(n):
            for j in range(i, n):
                A[i, j] -= product[i, j]
    if t >= 1:
        if t >= 2:
            np.dot(factor.two[t], factor.one[t - 1].T, block)
            for i in range(n):
                for j in range(n):
                    block[i, j] = -block[i, j]
        else:
            block[:] = 0.0
        for i in range(n):
            block[i, i] += one[i]
        np.dot(block, factor.inverse[t - 1].T, factor.one[t])
        np.dot(factor.one[t], factor.one[t].T, product)
        for i in range(n):
            for j in range(i, n):
                A[i, j] -= product[i, j]
    return inverse_of_factor(A, factor.inverse[t])


@kernel(allocates=True)
def solve_banded(factor: BandedFactor, b: np.ndarray) -> None:
    """b := (L L')^-1 b for blocks b (T, n)."""
    T = b.shape[0]
    for t in range(T):
        # Forward substitution by blocks.
        if t >= 1:
            b[t] -= np.dot(factor.one[t], b[t - 1])
        if t >= 2:
            b[t] -= np.dot(factor.two[t], b[t - 2])
        b[t] = np.dot(factor.inverse[t], b[t])
    for t in range(T - 1, -1, -1):
        # Backward substitution.
        if t + 1 < T:
            b[t] -= np.dot(factor.one[t + 1].T, b[t + 1])
        if t + 2 < T:
            b[t] -= np.dot(factor.two[t + 2].T, b[t + 2])
        b[t] = np.dot(factor.inverse[t].T, b[t])
