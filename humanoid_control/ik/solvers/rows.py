"""The rows of all tasks under each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rows:
    """Weighted rows of the tasks, by the free velocities.

    Attributes:
        J: (m, k). v: (m,) what is wanted. level: (m,) priority of each.
        parts: for each task the rows that are its.
    """

    J: np.ndarray
    v: np.ndarray
    level: np.ndarray
    parts: list[slice]
