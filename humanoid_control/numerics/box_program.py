"""Quadratic program with bounds and soft rows for `box_qp`, and a guess of its active set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B1, I1

FREE, AT_LOW, AT_HIGH, HELD = 0, 1, -1, 2  # HELD: between two equal bounds


class BoxQp(NamedTuple):
    """Data of the program.

    Attributes:
        H: Hessian (n, n), positive definite, lower triangle.
        low: lower bounds (n,), low <= high.
        A: soft rows a . x >= b (>= rows, n).
    """

    H: np.ndarray
    g: np.ndarray
    low: np.ndarray
    high: np.ndarray
    A: np.ndarray
    b: np.ndarray


class Guess(NamedTuple):
    """Guess of the active constraints, as from a similar program; a wrong guess only costs time.

    Attributes:
        side: FREE, AT_LOW or AT_HIGH of each variable (n,).
        works: True for active rows (>= rows,).
    """

    side: I1
    works: B1

    @classmethod
    def nothing(cls, n: int, rows: int) -> Guess:
        """Return the empty guess."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros(rows, dtype=np.bool_))
