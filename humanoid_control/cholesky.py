"""Cholesky factors of small dense matrices, in room that is given; for the filters and for the quadratic programs."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel


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
