"""Cholesky factors of small covariance matrices, in room that is given."""

from __future__ import annotations

from humanoid_control.jit import kernel


@kernel
def smallest_pivot(P, L):
    """Smallest pivot of the Cholesky factors of P (n, n), which are written to the lower triangle of L (n, n).

    It is not positive when P is no covariance, and L is then not complete.
    """
    n = P.shape[0]
    least = P[0, 0]
    for i in range(n):
        for j in range(i + 1):
            s = P[i, j]
            for c in range(j):
                s -= L[i, c] * L[j, c]
            if i == j:
                if not s > 0.0:
                    return s
                least = min(least, s)
                L[i, i] = s**0.5
            else:
                L[i, j] = s / L[j, j]
    return least
