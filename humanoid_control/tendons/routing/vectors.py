"""The vector algebra that the kernels of this room share: tuples of three floats, which stay in registers."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

Vec = tuple[float, float, float]


@kernel
def dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vec, b: Vec) -> Vec:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def sub(a: Vec, b: Vec) -> Vec:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def plus(a: Vec, s: float, b: Vec) -> Vec:
    """a + s b."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2])


@kernel
def scaled(s: float, a: Vec) -> Vec:
    return (s * a[0], s * a[1], s * a[2])


@kernel
def norm(a: Vec) -> float:
    return np.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def row(x: np.ndarray, k: int) -> Vec:
    """Row k of an array (K, 3)."""
    return (x[k, 0], x[k, 1], x[k, 2])


@kernel
def turned(R: np.ndarray, k: int, a: Vec) -> Vec:
    """R[k] a, of an array (K, 3, 3)."""
    return (
        R[k, 0, 0] * a[0] + R[k, 0, 1] * a[1] + R[k, 0, 2] * a[2],
        R[k, 1, 0] * a[0] + R[k, 1, 1] * a[1] + R[k, 1, 2] * a[2],
        R[k, 2, 0] * a[0] + R[k, 2, 1] * a[1] + R[k, 2, 2] * a[2],
    )


@kernel
def turned_back(R: np.ndarray, k: int, a: Vec) -> Vec:
    """The transpose of R[k] times a."""
    return (
        R[k, 0, 0] * a[0] + R[k, 1, 0] * a[1] + R[k, 2, 0] * a[2],
        R[k, 0, 1] * a[0] + R[k, 1, 1] * a[1] + R[k, 2, 1] * a[2],
        R[k, 0, 2] * a[0] + R[k, 1, 2] * a[1] + R[k, 2, 2] * a[2],
    )
