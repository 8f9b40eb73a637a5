"""3-vectors as tuples of floats for kernels: they stay in registers, without allocation."""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.compiled.jit import kernel

Vec = tuple[float, float, float]


@kernel
def row(m: np.ndarray, k: int) -> Vec:
    """Return row k of an (n, 3) array."""
    return (m[k, 0], m[k, 1], m[k, 2])


@kernel
def add(a: Vec, b: Vec) -> Vec:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


@kernel
def sub(a: Vec, b: Vec) -> Vec:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def mul(s: float, a: Vec) -> Vec:
    return (s * a[0], s * a[1], s * a[2])


@kernel
def along(a: Vec, s: float, u: Vec) -> Vec:
    """Return a + s u."""
    return (a[0] + s * u[0], a[1] + s * u[1], a[2] + s * u[2])


@kernel
def dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross(a: Vec, b: Vec) -> Vec:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def norm(a: Vec) -> float:
    return math.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def perpendicular(u: Vec) -> Vec:
    """Return a unit vector orthogonal to u; x for a zero vector."""
    # Cross product with the axis of the smallest component.
    x, y, z = abs(u[0]), abs(u[1]), abs(u[2])
    if x <= y and x <= z:
        w = (0.0, -u[2], u[1])
    elif y <= z:
        w = (u[2], 0.0, -u[0])
    else:
        w = (-u[1], u[0], 0.0)
    m = norm(w)
    return mul(1.0 / m, w) if m > 0.0 else (1.0, 0.0, 0.0)


@kernel
def rotate(R: np.ndarray, a: Vec) -> Vec:
    """Return R a: body frame to world."""
    return (
        R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@kernel
def unrotate(R: np.ndarray, a: Vec) -> Vec:
    """Return R^T a: world to body frame."""
    return (
        R[0, 0] * a[0] + R[1, 0] * a[1] + R[2, 0] * a[2],
        R[0, 1] * a[0] + R[1, 1] * a[1] + R[2, 1] * a[2],
        R[0, 2] * a[0] + R[1, 2] * a[1] + R[2, 2] * a[2],
    )
