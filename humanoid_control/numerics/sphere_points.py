"""Points spread evenly over the unit sphere."""

from __future__ import annotations

import numpy as np


def fibonacci_sphere(count: int) -> np.ndarray:
    """Unit vectors (count, 3) of a spherical Fibonacci lattice: each of the same share of the sphere, on a spiral."""
    k = np.arange(count) + 0.5
    z, turn = 1 - 2 * k / count, np.pi * (1 + 5**0.5) * k
    return np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)
