"""The vector algebra that the kernels of this room share.

Vectors are tuples of three floats here: the compiler keeps them in registers, so nothing is allocated.


Also here:

* The vector algebra that the kernels of this room share: tuples of three floats, which stay in registers.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel

# -------- The vector algebra that the kernels of this room share

Vec = tuple[float, float, float]


@kernel
def dot(a: Vec, b: Vec) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def norm(a: Vec) -> float:
    return (a[0] * a[0] + a[1] * a[1] + a[2] * a[2]) ** 0.5


@kernel
def cross(a: Vec, b: Vec) -> Vec:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


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
    """a + s u."""
    return (a[0] + s * u[0], a[1] + s * u[1], a[2] + s * u[2])


@kernel
def row(m: np.ndarray, k: int) -> Vec:
    """Row k of an (n, 3) array."""
    return (m[k, 0], m[k, 1], m[k, 2])


@kernel
def rotate(R: np.ndarray, a: Vec) -> Vec:
    """R a: from the shape's frame to the world."""
    return (
        R[0, 0] * a[0] + R[0, 1] * a[1] + R[0, 2] * a[2],
        R[1, 0] * a[0] + R[1, 1] * a[1] + R[1, 2] * a[2],
        R[2, 0] * a[0] + R[2, 1] * a[1] + R[2, 2] * a[2],
    )


@kernel
def unrotate(R: np.ndarray, a: Vec) -> Vec:
    """R^T a: from the world to the shape's frame."""
    return (
        R[0, 0] * a[0] + R[1, 0] * a[1] + R[2, 0] * a[2],
        R[0, 1] * a[0] + R[1, 1] * a[1] + R[2, 1] * a[2],
        R[0, 2] * a[0] + R[1, 2] * a[1] + R[2, 2] * a[2],
    )


@kernel
def perpendicular(u: Vec) -> Vec:
    """Some unit vector at a right angle to u; x for a zero vector."""
    x, y, z = abs(u[0]), abs(u[1]), abs(u[2])
    if x <= y and x <= z:
        w = (0.0, -u[2], u[1])
    elif y <= z:
        w = (u[2], 0.0, -u[0])
    else:
        w = (-u[1], u[0], 0.0)
    m = norm(w)
    return mul(1.0 / m, w) if m > 0.0 else (1.0, 0.0, 0.0)


# -------- The vector algebra that the kernels of this room share: tuples of three floats, which stay in registers

Vec_vectors = tuple[float, float, float]


@kernel
def dot_vectors(a: Vec_vectors, b: Vec_vectors) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@kernel
def cross_vectors(a: Vec_vectors, b: Vec_vectors) -> Vec_vectors:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@kernel
def sub_vectors(a: Vec_vectors, b: Vec_vectors) -> Vec_vectors:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


@kernel
def plus(a: Vec_vectors, s: float, b: Vec_vectors) -> Vec_vectors:
    """a + s b."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2])


@kernel
def scaled(s: float, a: Vec_vectors) -> Vec_vectors:
    return (s * a[0], s * a[1], s * a[2])


@kernel
def norm_vectors(a: Vec_vectors) -> float:
    return np.sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2])


@kernel
def row_vectors(x: np.ndarray, k: int) -> Vec_vectors:
    """Row k of an array (K, 3)."""
    return (x[k, 0], x[k, 1], x[k, 2])


@kernel
def turned(R: np.ndarray, k: int, a: Vec_vectors) -> Vec_vectors:
    """R[k] a, of an array (K, 3, 3)."""
    return (
        R[k, 0, 0] * a[0] + R[k, 0, 1] * a[1] + R[k, 0, 2] * a[2],
        R[k, 1, 0] * a[0] + R[k, 1, 1] * a[1] + R[k, 1, 2] * a[2],
        R[k, 2, 0] * a[0] + R[k, 2, 1] * a[1] + R[k, 2, 2] * a[2],
    )


@kernel
def turned_back(R: np.ndarray, k: int, a: Vec_vectors) -> Vec_vectors:
    """The transpose of R[k] times a."""
    return (
        R[k, 0, 0] * a[0] + R[k, 1, 0] * a[1] + R[k, 2, 0] * a[2],
        R[k, 0, 1] * a[0] + R[k, 1, 1] * a[1] + R[k, 2, 1] * a[2],
        R[k, 0, 2] * a[0] + R[k, 1, 2] * a[1] + R[k, 2, 2] * a[2],
    )
