"""Spatial vectors of a serial arm, as six numbers in fixed axes for kernels.

A motion is angular velocity and velocity at the origin; a force is moment about the origin and force. Complex numbers
give derivatives by a complex step (Squire and Trapp 1998).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import inlined

Vec = tuple[float, float, float]
Six = tuple[float, float, float, float, float, float]


class ArmModel(NamedTuple):
    """Serial chain of N revolute joints on a fixed base; origin at the first joint.

    Attributes:
        R: (N, 3, 3) joint frames in previous bodies.
        p: (N, 3) joint frames in previous bodies, first 0.
        axis: (N, 3) unit vectors in joint frames.
        mass: (N,) [kg].
        com: (N, 3) in joint frames [m].
        inertia: (N, 3, 3) about com [kg m^2].
        hand: (3,) reaching point of the last body [m].
        gravity: (3,) [m/s^2].
    """

    R: F3
    p: F2
    axis: F2
    mass: F1
    com: F2
    inertia: F3
    hand: F1
    gravity: F1


@inlined
def cross(a: Vec, b: Vec) -> Vec:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


@inlined
def dot(a: Six, b: Six) -> float:
    """Return the power of a force in a motion."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3] + a[4] * b[4] + a[5] * b[5]


@inlined
def add(a: Six, b: Six) -> Six:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4], a[5] + b[5])


@inlined
def along(a: Six, s: float, b: Six) -> Six:
    """Return a + s b."""
    return (a[0] + s * b[0], a[1] + s * b[1], a[2] + s * b[2], a[3] + s * b[3], a[4] + s * b[4], a[5] + s * b[5])


@inlined
def cross_motion(V: Six, S: Six) -> Six:
    """Return V x S: rate of a motion S carried by V."""
    # Rotation S_w' = w x S_w; linear part w x S_v + v x S_w.
    a = cross((V[0], V[1], V[2]), (S[0], S[1], S[2]))
    b = cross((V[0], V[1], V[2]), (S[3], S[4], S[5]))
    c = cross((V[3], V[4], V[5]), (S[0], S[1], S[2]))
    return (a[0], a[1], a[2], b[0] + c[0], b[1] + c[1], b[2] + c[2])


@inlined
def cross_force(V: Six, F: Six) -> Six:
    """Return V x* F: rate of a force F carried by V."""
    # Dual of cross_motion: power is invariant, (V x S) . F = -S . (V x* F).
    a = cross((V[0], V[1], V[2]), (F[0], F[1], F[2]))
    b = cross((V[3], V[4], V[5]), (F[3], F[4], F[5]))
    c = cross((V[0], V[1], V[2]), (F[3], F[4], F[5]))
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], c[0], c[1], c[2])


@inlined
def six(m: np.ndarray, k: int) -> Six:
    """Return row k of an (n, 6) array."""
    return (m[k, 0], m[k, 1], m[k, 2], m[k, 3], m[k, 4], m[k, 5])


@inlined
def put(m: np.ndarray, k: int, v: Six) -> None:
    """Set row k of an (n, 6) array."""
    for i in range(6):
        m[k, i] = v[i]


@inlined
def times(M: np.ndarray, k: int, w: Vec) -> Vec:
    """Return M[k] w of matrices (n, 3, 3)."""
    return (
        M[k, 0, 0] * w[0] + M[k, 0, 1] * w[1] + M[k, 0, 2] * w[2],
        M[k, 1, 0] * w[0] + M[k, 1, 1] * w[1] + M[k, 1, 2] * w[2],
        M[k, 2, 0] * w[0] + M[k, 2, 1] * w[1] + M[k, 2, 2] * w[2],
    )


@inlined
def times_transposed(M: np.ndarray, k: int, w: Vec) -> Vec:
    """Return M[k]' w of matrices (n, 3, 3)."""
    return (
        M[k, 0, 0] * w[0] + M[k, 1, 0] * w[1] + M[k, 2, 0] * w[2],
        M[k, 0, 1] * w[0] + M[k, 1, 1] * w[1] + M[k, 2, 1] * w[2],
        M[k, 0, 2] * w[0] + M[k, 1, 2] * w[1] + M[k, 2, 2] * w[2],
    )


@inlined
def momentum(m: float, h: Vec, inertia: np.ndarray, k: int, u: Six) -> Six:
    """Return the momentum I u of mass m, first moment h [kg m] and inertia[k] about the origin."""
    w, v = (u[0], u[1], u[2]), (u[3], u[4], u[5])
    # Angular momentum about the origin I w + h x v; linear momentum m v + w x h.
    turn, lever, swing = times(inertia, k, w), cross(h, v), cross(w, h)
    return (
        turn[0] + lever[0],
        turn[1] + lever[1],
        turn[2] + lever[2],
        m * v[0] + swing[0],
        m * v[1] + swing[1],
        m * v[2] + swing[2],
    )
