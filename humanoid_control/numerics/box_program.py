"""The numbers of a quadratic program with bounds and soft rows, and a guess of its solution: what `box_qp` solves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.numerics.array_types import B1, I1
from humanoid_control.numerics.packed import by_reference

FREE, AT_LOW, AT_HIGH, HELD = 0, 1, -1, 2  # HELD: between two equal bounds


@by_reference
class BoxQp(NamedTuple):
    """The numbers of the program.

    Attributes:
        H: (n, n) positive definite, lower triangle used.
        g: (n,).
        low: (n,) lower bounds, low <= high.
        high: (n,) upper bounds.
        A: (>= rows, n), b: (>= rows,): soft rows a . x >= b.
    """

    H: np.ndarray
    g: np.ndarray
    low: np.ndarray
    high: np.ndarray
    A: np.ndarray
    b: np.ndarray


class Guess(NamedTuple):
    """Constraints that may hold a solution, as of a program like it; a wrong guess only costs time.

    Attributes:
        side: (n,) FREE, AT_LOW or AT_HIGH of each variable.
        works: (>= rows,) whether a row does.
    """

    side: I1
    works: B1

    @classmethod
    def nothing(cls, n: int, rows: int) -> Guess:
        """No constraint does."""
        return cls(np.zeros(n, dtype=np.int64), np.zeros(rows, dtype=np.bool_))
