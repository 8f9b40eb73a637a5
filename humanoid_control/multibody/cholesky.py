"""Symmetric systems: dense Cholesky, and the reversed sparse one that keeps the pattern of a tree (no fill-in)."""

from __future__ import annotations

import math

from humanoid_control.jit import kernel


@kernel
def dense_solve(M, x):
    """Solve M x = b in place; the lower triangle of M is given and becomes its factor."""
    n = M.shape[0]
    for j in range(n):
        s = M[j, j]
        for k in range(j):
            s -= M[j, k] * M[j, k]
        s = math.sqrt(s)
        M[j, j] = s
        r = 1.0 / s
        for i in range(j + 1, n):
            s = M[i, j]
            for k in range(j):
                s -= M[i, k] * M[j, k]
            M[i, j] = s * r
    for i in range(n):
        s = x[i]
        for k in range(i):
            s -= M[i, k] * x[k]
        x[i] = s / M[i, i]
    for i in range(n - 1, -1, -1):
        s = x[i] / M[i, i]
        x[i] = s
        for k in range(i):
            x[k] -= M[i, k] * s


@kernel
def clear_pattern(M, lam):
    """Zero where a column is an ancestor of its row; the rest is never looked at."""
    for k in range(lam.shape[0]):
        j = k
        while j >= 0:
            M[k, j] = 0.0
            j = lam[j]


@kernel
def sparse_factor(M, lam):
    """M = L^T L in place, L in the lower triangle with the pattern of M (Featherstone; section 2.17).

    Args:
        M: (n, n), lower triangle, entries only where a column is an ancestor of its row.
        lam: (n,) parent of each row, smaller than the row; -1 for none.
    """
    for k in range(M.shape[0] - 1, -1, -1):
        s = math.sqrt(M[k, k])
        M[k, k] = s
        r = 1.0 / s
        i = lam[k]
        while i >= 0:
            M[k, i] *= r
            i = lam[i]
        i = lam[k]
        while i >= 0:
            f = M[k, i]
            j = i
            while j >= 0:
                M[i, j] -= f * M[k, j]
                j = lam[j]
            i = lam[i]


@kernel
def sparse_solve(M, lam, x):
    """Solve M x = b in place by L^T L; see `sparse_factor`."""
    sparse_factor(M, lam)
    n = M.shape[0]
    for i in range(n - 1, -1, -1):
        s = x[i] / M[i, i]
        x[i] = s
        j = lam[i]
        while j >= 0:
            x[j] -= M[i, j] * s
            j = lam[j]
    for i in range(n):
        s = x[i]
        j = lam[i]
        while j >= 0:
            s -= M[i, j] * x[j]
            j = lam[j]
        x[i] = s / M[i, i]
