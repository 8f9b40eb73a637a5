"""Speed limits: the null-space motion gives way first, then everything, and the direction of the task stays."""

from __future__ import annotations

import numpy as np


def slowed(task: np.ndarray, null: np.ndarray, limit: np.ndarray) -> tuple[float, float]:
    """Factors (null, all) with |all (task + null_factor null)| <= limit; both 1 where nothing is too fast.

    As much of the null-space motion as fits is kept: it does not touch the tasks, so slowing it costs them nothing.
    Where even without it the task is too fast, all is slowed evenly, which keeps the direction in which tasks move.

    Args:
        task, null: (n,) the two parts of the velocity.
        limit: (n,) > 0.
    """
    if (np.abs(task + null) <= limit).all():
        return 1.0, 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([(limit - task) / null, (-limit - task) / null])
    moves = null != 0.0
    low = float(np.max(ends.min(axis=0)[moves], initial=0.0))
    high = float(np.min(ends.max(axis=0)[moves], initial=1.0))
    if (np.abs(task[~moves]) <= limit[~moves]).all() and low <= high:
        return high, 1.0
    return 0.0, float(np.min(limit / np.maximum(np.abs(task), 1e-300), initial=1.0))
