"""Speed limits: the null-space motion gives way first, then everything, and the direction of the task stays."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel


@kernel
def slowed(task: np.ndarray, null: np.ndarray, limit: np.ndarray) -> tuple[float, float]:
    """Factors (null, all) with |all (task + null_factor null)| <= limit; both 1 where nothing is too fast.

    As much of the null-space motion as fits is kept: it does not touch the tasks, so slowing it costs them nothing.
    Where even without it the task is too fast, all is slowed evenly, which keeps the direction in which tasks move.

    Args:
        task, null: (n,) the two parts of the velocity.
        limit: (n,) > 0.
    """
    fits = True
    for i in range(limit.shape[0]):
        fits &= abs(task[i] + null[i]) <= limit[i]
    if fits:
        return 1.0, 1.0
    low, high, share = 0.0, 1.0, 1.0
    possible = True
    for i in range(limit.shape[0]):
        if null[i] != 0.0:
            a, b = (limit[i] - task[i]) / null[i], (-limit[i] - task[i]) / null[i]
            low, high = max(low, min(a, b)), min(high, max(a, b))
        else:
            possible &= abs(task[i]) <= limit[i]
        share = min(share, limit[i] / max(abs(task[i]), 1e-300))
    if possible and low <= high:
        return high, 1.0
    return 0.0, share


@kernel
def settle(
    task: np.ndarray,
    null: np.ndarray,
    column_of: np.ndarray,
    factor: np.ndarray,
    limit: np.ndarray,
    clamp: bool,
    J: np.ndarray,
    wanted: np.ndarray,
    u: np.ndarray,
    v: np.ndarray,
) -> tuple[bool, float, float, float]:
    """From the two parts of the free velocities to the velocity of the tick, and what it leaves unserved.

    Args:
        task, null: (k,) free velocities.
        column_of, factor: (nv,) of Moving.
        limit: (n,) speed limits of the joints, the last n of the nv velocities.
        clamp: whether they are to be kept.
        J, wanted: (m, k), (m,) the tasks' rows.
        u, v: (k,), (nv,) filled; zero where an input is not a number.

    Returns:
        whether all is finite, the factors of `slowed`, and the length of J u - wanted.
    """
    n, nv, k = limit.shape[0], v.shape[0], u.shape[0]
    null_scale, speed_scale = 1.0, 1.0
    if clamp:
        a, b = np.zeros(n), np.zeros(n)
        for i in range(n):
            c = column_of[nv - n + i]
            if c >= 0:
                a[i], b[i] = factor[nv - n + i] * task[c], factor[nv - n + i] * null[c]
        null_scale, speed_scale = slowed(a, b, limit)
    finite = True
    for c in range(k):
        u[c] = speed_scale * (task[c] + null_scale * null[c])
        finite &= np.isfinite(u[c])
    if not finite:
        u[:] = 0.0
    for i in range(nv):
        v[i] = factor[i] * u[column_of[i]] if column_of[i] >= 0 else 0.0
    square = 0.0
    for i in range(wanted.shape[0]):
        s = -wanted[i]
        for c in range(k):
            s += J[i, c] * u[c]
        square += s * s
    return finite, null_scale, speed_scale, np.sqrt(square)
