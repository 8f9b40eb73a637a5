"""Fast test for non-finite numbers."""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import kernel


@kernel
def all_finite_in(row: F1) -> bool:
    """Return `all_finite` of one row."""
    for x in row:  # noqa: SIM110 -- numba compiles no generators
        if not np.isfinite(x):
            return False
    return True


def all_finite(values: np.ndarray) -> bool:
    """Return True if all values are finite; faster than NumPy for a few dozen values."""
    return bool(all_finite_in(values.reshape(-1)))
