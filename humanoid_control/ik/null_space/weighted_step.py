"""Algorithm 4.3 of Schwienbacher 2014: task velocities to joint velocities by one Cholesky factor."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.cholesky import dot, solve_upper, upper_cholesky


def weighted_step(
    J: np.ndarray, v: np.ndarray, mobility: np.ndarray, z: np.ndarray, damping: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float, bool]:
    """Algorithm 4.3 for its two parts at once: one Cholesky factor, two right-hand sides.

    The velocity is task + null, with task = W^-1 J^T B^-1 v and null = z - W^-1 J^T B^-1 J z, B = J W^-1 J^T +
    damping^2 E. Without damping this is (4.12): the tasks exactly, with the least |u|_W, and z as far as they allow.

    Args:
        J: (m, k).
        v: (m,).
        mobility: W^-1, (k,) its diagonal or (k, k) all of it.
        z: (k,) desired velocities for the null space.
        damping: lambda.

    Returns:
        task (k,), null (k,), the manipulability sqrt(det(J W^-1 J^T)) (with the damping, if any), and whether B could
        be factored.
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
    """The velocity (k,) of eq. (7.3), J# v - N W^-1 y.

    Args:
        J: (m, k) of full row rank.
        v: (m,) task velocity, met exactly.
        mobility: W^-1, (k,) its diagonal or (k, k) all of it.
        y: (k,) null-space vector: a cost's gradient times its gain, or velocities to be subtracted.

    Raises:
        numpy.linalg.LinAlgError: the task is singular.
    """
    z = -(mobility * y if mobility.ndim == 1 else mobility @ y)
    task, null, _, ok = weighted_step(J, v, mobility, z)
    if not ok:
        raise np.linalg.LinAlgError("the task is singular: its rows depend on each other")
    return task + null


@kernel
def factored_rows(J: np.ndarray, mobility: np.ndarray, damping: float) -> tuple[float, np.ndarray, np.ndarray]:
    """(sqrt(det B), J W^-1 (m, k), U (m, m)) for W^-1 = diag(mobility); as of `factor_weighted_rows`."""
    m, k = J.shape
    WJ = np.empty((m, k))
    for i in range(m):
        for c in range(k):
            WJ[i, c] = J[i, c] * mobility[c]
    w, U = factor_weighted_rows(J, WJ, damping)
    return w, WJ, U


@kernel
def factor_weighted_rows(J: np.ndarray, WJ: np.ndarray, damping: float) -> tuple[float, np.ndarray]:
    """(sqrt(det B), U (m, m)) with U' U = B = J W^-1 J^T + damping^2 E, of J and J W^-1; -1 where B has no factor."""
    m, k = J.shape
    U, columns = np.zeros((m, m)), np.empty((k, m))
    for i in range(m):
        for c in range(k):
            columns[c, i] = J[i, c]
    for i in range(m):  # along the columns: several entries of B with one instruction
        for c in range(k):
            s = WJ[i, c]
            if s != 0.0:
                for j in range(i, m):
                    U[i, j] += s * columns[c, j]
        U[i, i] += damping * damping
    if not upper_cholesky(U, m):
        return -1.0, U
    w = 1.0
    for i in range(m):
        w *= U[i, i]
    return w, U


@kernel
def task_part(WJ: np.ndarray, U: np.ndarray, v: np.ndarray) -> np.ndarray:
    """W^-1 J^T B^-1 v (k,)."""
    m, k = WJ.shape
    x, out = v.copy(), np.zeros(k)
    solve_upper(U, m, x)
    for i in range(m):
        for c in range(k):
            out[c] += WJ[i, c] * x[i]
    return out


@kernel
def null_part(J: np.ndarray, WJ: np.ndarray, U: np.ndarray, z: np.ndarray) -> np.ndarray:
    """The part of z (k,) that does not touch the tasks: z - W^-1 J^T B^-1 J z."""
    m, k = WJ.shape
    y, out = np.empty(m), z.copy()
    for i in range(m):
        y[i] = dot(J[i], z, k)
    solve_upper(U, m, y)
    for i in range(m):
        for c in range(k):
            out[c] -= WJ[i, c] * y[i]
    return out
