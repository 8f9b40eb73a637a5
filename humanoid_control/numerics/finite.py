"""A quick test for numbers that are not finite."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.numerics.array_types import F1


@kernel
def all_finite_in(row: F1) -> bool:
    """As `all_finite`, of one row."""
    for x in row:  # noqa: SIM110 -- numba compiles no generators
        if not np.isfinite(x):
            return False
    return True


def all_finite(values: np.ndarray) -> bool:
    """Return whether every value of an array of doubles is finite.

    For a few dozen values it costs a third of `np.isfinite(values).all()`.
    """
    return bool(all_finite_in(values.reshape(-1)))
