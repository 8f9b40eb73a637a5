"""Algorithm 4.3 of Schwienbacher 2014: task velocities to joint velocities by one Cholesky factor."""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
from humanoid_control.numerics.cholesky import dot, solve_upper, upper_cholesky


def weighted_step(
    J: np.ndarray, v: np.ndarray, mobility: np.ndarray, z: np.ndarray, damping: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Compute both parts of algorithm 4.3 with one Cholesky factor.

    task = W^-1 J^T B^-1 v and null = z - W^-1 J^T B^-1 J z, B = J W^-1 J^T + damping^2 E. Without damping this is
    (4.12): exact tasks with the least |u|_W, and z as far as they allow.

    Args:
        mobility: W^-1, diagonal (k,) or full (k, k).
        z: desired null-space velocities (k,).

    Returns:
        task (k,), null (k,), manipulability sqrt(det(B)), and whether B could be factorised.
    """
    if mobility.ndim == 1:
        w, WJ, U = factored_rows(J, mobility, damping)
    else:
        WJ = np.ascontiguousarray(J @ mobility)
        w, U = factor_weighted_rows(J, WJ, damping)
    if w < 0.0:
        return np.zeros(len(z)), np.zeros(len(z)), 0.0, False
    return task_part(WJ, U, np.ascontiguousarray(v, dtype=float)), null_part(J, WJ, U, z), w, True


def resolved_rate(J: np.ndarray, v: np.ndarray, mobility: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the velocity (k,) of eq. (7.3), J# v - N W^-1 y.

    Args:
        v: task velocity, met exactly (m,).
        mobility: W^-1, diagonal (k,) or full (k, k).
        y: null-space vector (k,): gain times cost gradient, or velocities to subtract.

    Raises:
        numpy.linalg.LinAlgError: if the rows are dependent.
    """
    z = -(mobility * y if mobility.ndim == 1 else mobility @ y)
    task, null, _, ok = weighted_step(J, v, mobility, z)
    if not ok:
        raise np.linalg.LinAlgError("the task is singular: its rows depend on each other")
    return task + null


@kernel(allocates=True)
def factored_rows(J: np.ndarray, mobility: np.ndarray, damping: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Return (sqrt(det B), J W^-1 (m, k), U (m, m)) for W^-1 = diag(mobility), as `factor_weighted_rows`."""
    m, k = J.shape
    WJ = np.empty((m, k))
    for i in range(m):
        for c in range(k):
            WJ[i, c] = J[i, c] * mobility[c]
    w, U = factor_weighted_rows(J, WJ, damping)
    return w, WJ, U


@kernel(allocates=True)
def factor_weighted_rows(J: np.ndarray, WJ: np.ndarray, damping: float) -> tuple[float, np.ndarray]:
    """Return (sqrt(det B), U (m, m)) with U' U = B = J W^-1 J^T + damping^2 E; -1 if B has no factor."""
    m, k = J.shape
    U, columns = np.zeros((m, m)), np.empty((k, m))
    for i in range(m):
        for c in range(k):
            columns[c, i] = J[i, c]
    # Accumulate along the columns, so that several entries of B share one instruction.
    for i in range(m):
        for c in range(k):
            # B is symmetric: only its upper triangle is computed.
            s = WJ[i, c]
            if s != 0.0:
                for j in range(i, m):
                    U[i, j] += s * columns[c, j]
        U[i, i] += damping * damping
    if not upper_cholesky(U, m):
        return -1.0, U
    w = 1.0
    # sqrt(det B) is the product of the diagonal of U.
    for i in range(m):
        w *= U[i, i]
    return w, U


@kernel(allocates=True)
def task_part(WJ: np.ndarray, U: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return W^-1 J^T B^-1 v (k,)."""
    m, k = WJ.shape
    x, out = v.copy(), np.zeros(k)
    solve_upper(U, m, x)
    for i in range(m):
        for c in range(k):
            out[c] += WJ[i, c] * x[i]
    return out


@kernel(allocates=True)
def null_part(J: np.ndarray, WJ: np.ndarray, U: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return z - W^-1 J^T B^-1 J z (k,), the part of z that does not disturb the tasks."""
    m, k = WJ.shape
    y, out = np.empty(m), z.copy()
    # Task velocity of z, which is then removed.
    for i in range(m):
        y[i] = dot(J[i], z, k)
    solve_upper(U, m, y)
    for i in range(m):
        for c in range(k):
            out[c] -= WJ[i, c] * y[i]
    return out
