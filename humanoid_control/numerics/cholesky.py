"""Cholesky factors of small dense matrices for kernels: factor, solve, and factors that grow row by row.

They stand in arrays that are given and may be larger, so that filters and quadratic programs allocate nothing.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

SINGULAR = 1e-13  # of a pivot, as a share of the diagonal


@kernel
def cholesky(M: np.ndarray, n: int, L: np.ndarray) -> bool:
    """Factor the leading n x n block of M = L L', into the lower triangle of L.

    False where a pivot is not positive or no number: M is then not positive definite (no covariance), and L is not
    complete.
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
    """b := (L L')^-1 b, for the leading n entries."""
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
    """As `cholesky`, of a matrix whose row i is zero before the column first[i]; L has its zeros there too.

    False also where a pivot vanishes beside its diagonal: M is then singular to working precision.
    """
    for i in range(n):
        a = first[i]
        for j in range(a, i):
            s = M[i, j]
            for k in range(max(a, first[j]), j):
                s -= L[i, k] * L[j, k]
            L[i, j] = s / L[j, j]
        s = M[i, i]
        for k in range(a, i):
            s -= L[i, k] * L[i, k]
        if not s > SINGULAR * M[i, i]:
            return False
        L[i, i] = np.sqrt(s)
    return True


@kernel
def solve_skyline(L: np.ndarray, first: np.ndarray, n: int, b: np.ndarray) -> None:
    """b := (L L')^-1 b, for a factor of `skyline_cholesky`."""
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
    """out := the diagonal of (L L')^-1, for a factor of `skyline_cholesky`; y (n,) is memory."""
    for c in range(n):
        y[c] = 1.0 / L[c, c]
        total = y[c] * y[c]
        for i in range(c + 1, n):
            s = 0.0
            for k in range(max(c, first[i]), i):
                s -= L[i, k] * y[k]
            y[i] = s / L[i, i]
            total += y[i] * y[i]
        out[c] = total


@kernel
def grown(M: np.ndarray, room: int) -> np.ndarray:
    """The same square matrix with room for more."""
    out = np.empty((room, room))
    for i in range(M.shape[0]):
        for j in range(M.shape[0]):
            out[i, j] = M[i, j]
    return out


@kernel
def factor_from(S: np.ndarray, first: int, count: int, F: np.ndarray) -> None:
    """Rows first .. count - 1 of the Cholesky factor of S, those before being known."""
    for i in range(first, count):
        for j in range(i + 1):
            s = S[i, j]
            for k in range(j):
                s -= F[i, k] * F[j, k]
            F[i, j] = np.sqrt(max(s, 1e-300)) if i == j else s / F[j, j]


@kernel
def dot(a: np.ndarray, b: np.ndarray, n: int) -> float:
    """a . b of the first n entries, in four sums that the processor adds side by side."""
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
    """out := (L L')^-1, the leading n x n block."""
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
