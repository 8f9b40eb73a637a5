"""Rotation matrices for whole recordings at once."""

from __future__ import annotations

import numpy as np

X, Y, Z = 0, 1, 2


def rotation(axis: int, angle: np.ndarray) -> np.ndarray:
    """Right-handed rotations about one coordinate axis.

    Args:
        axis: X, Y or Z.
        angle: (T,) [rad].

    Returns:
        (T, 3, 3) matrices that turn column vectors.
    """
    R = np.zeros((len(angle), 3, 3))
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R[:, axis, axis] = 1.0
    R[:, i, i] = R[:, j, j] = np.cos(angle)
    R[:, j, i] = np.sin(angle)
    R[:, i, j] = -R[:, j, i]
    return R
