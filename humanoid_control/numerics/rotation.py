"""Rotations: rotation vectors between orientations, Euler angles Z-X-Z with rates, interpolation.

Equation numbers (C.x) refer to Schwienbacher 2014, appendix C.
"""

from __future__ import annotations

import math

import numpy as np

from humanoid_control.compiled.jit import kernel

STRAIGHT = 1e-12  # sines below this count as zero
NEAR_HALF_TURN = -0.9  # cosines below this are near a half turn


def rotation_error(A: np.ndarray, A_d: np.ndarray) -> np.ndarray:
    """Return the rotation vector (3,) [rad] from the orientation A to A_d, in their common frame (C.1, Fig. C.1).

    gamma e_e with gamma = atan2(|v|, (tr - 1) / 2) and v = 1/2 sum e_i x e_i,d. Near a half turn the axis follows from
    the symmetric part of A_d A^T; at exactly a half turn its sign is arbitrary.
    """
    out = np.empty(3)
    rotation_vector(np.ascontiguousarray(A), np.ascontiguousarray(A_d), out)
    return out


@kernel(allocates=True)
def rotation_vector(A: np.ndarray, A_d: np.ndarray, out: np.ndarray) -> None:
    """Write `rotation_error` to out (3,)."""
    R = np.empty((3, 3))
    for i in range(3):
        for j in range(3):
            R[i, j] = A_d[i, 0] * A[j, 0] + A_d[i, 1] * A[j, 1] + A_d[i, 2] * A[j, 2]
    # v = sin(angle) * axis, from the skew-symmetric part of R = A_d A^T.
    x, y, z = 0.5 * (R[2, 1] - R[1, 2]), 0.5 * (R[0, 2] - R[2, 0]), 0.5 * (R[1, 0] - R[0, 1])
    s = math.sqrt(x * x + y * y + z * z)
    c = 0.5 * (R[0, 0] + R[1, 1] + R[2, 2] - 1.0)
    angle = math.atan2(s, c)
    if c > NEAR_HALF_TURN:
        # Small angles: angle / sin(angle) tends to 1.
        share = angle / s if s > STRAIGHT else 1.0
        out[0], out[1], out[2] = share * x, share * y, share * z
        return
    # (R + R^T) / 2 = c E + (1 - c) e e^T: the column with the largest diagonal entry is parallel to the axis.
    k = 0
    for i in range(1, 3):
        if R[i, i] > R[k, k]:
            k = i
    for i in range(3):
        out[i] = 0.5 * (R[i, k] + R[k, i]) - (c if i == k else 0.0)
    length = math.sqrt(out[0] ** 2 + out[1] ** 2 + out[2] ** 2)
    share = angle / length if out[0] * x + out[1] * y + out[2] * z >= 0.0 else -angle / length
    for i in range(3):
        out[i] *= share


@kernel
def rotation_defect(R: np.ndarray) -> float:
    """Return the largest entry of R R^T - 1 for R (3, 3), plus 2 for a mirrored matrix; 0 for a rotation."""
    worst = 0.0
    for i in range(3):
        for j in range(i + 1):
            dot = R[i, 0] * R[j, 0] + R[i, 1] * R[j, 1] + R[i, 2] * R[j, 2]
            worst = max(worst, abs(dot - (1.0 if i == j else 0.0)))
    # A negative determinant means a mirrored matrix.
    x, y = R[1, 1] * R[2, 2] - R[1, 2] * R[2, 1], R[1, 2] * R[2, 0] - R[1, 0] * R[2, 2]
    volume = R[0, 0] * x + R[0, 1] * y + R[0, 2] * (R[1, 0] * R[2, 1] - R[1, 1] * R[2, 0])
    return worst + 2.0 if volume < 0.0 else worst


def euler_zxz_matrix(phi: float, theta: float, psi: float) -> np.ndarray:
    """Return R_z(phi) R_x(theta) R_z(psi) (C.3), angles in rad."""
    (cp, sp), (ct, st), (cs, ss) = ((np.cos(a), np.sin(a)) for a in (phi, theta, psi))
    return np.array(
        [
            [cp * cs - sp * ct * ss, -cp * ss - sp * ct * cs, sp * st],
            [sp * cs + cp * ct * ss, -sp * ss + cp * ct * cs, -cp * st],
            [st * ss, st * cs, ct],
        ]
    )


def euler_zxz_angles(A: np.ndarray) -> tuple[float, float, float]:
    """Return phi, theta in 0..pi, psi [rad] of a rotation matrix (C.4); psi is 0 at a singularity."""
    sine = float(np.hypot(A[2, 0], A[2, 1]))
    psi = 0.0 if sine < STRAIGHT else float(np.arctan2(A[2, 0], A[2, 1]))
    c, s = np.cos(psi), np.sin(psi)
    theta = float(np.arctan2(sine, A[2, 2]))
    phi = float(np.arctan2(A[1, 0] * c - A[1, 1] * s, A[0, 0] * c - A[0, 1] * s))
    return phi, theta, psi


def omega_of_zxz_rates(phi: float, theta: float) -> np.ndarray:
    """Return T (3, 3) with omega = T (phi', theta', psi'), omega in fixed axes (C.5)."""
    c, s = np.cos(phi), np.sin(phi)
    return np.array([[0.0, c, s * np.sin(theta)], [0.0, s, -c * np.sin(theta)], [1.0, 0.0, np.cos(theta)]])


def zxz_rates_of_omega(phi: float, theta: float) -> np.ndarray:
    """Return the inverse of T, (C.6) with phi for the printed psi; unbounded as sin(theta) tends to 0."""
    c, s, ct, st = np.cos(phi), np.sin(phi), np.cos(theta), np.sin(theta)
    return np.array([[-s * ct, c * ct, st], [c * st, s * st, 0.0], [s, -c, 0.0]]) / st


def rotation_matrix(vector: np.ndarray) -> np.ndarray:
    """Return the rotation matrix of a rotation vector (3,) [rad]."""
    angle = float(np.linalg.norm(vector))
    x, y, z = vector
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    sinc = np.sinc(angle / np.pi)
    half = np.sinc(angle / (2 * np.pi))
    return np.eye(3) + sinc * K + 0.5 * half**2 * (K @ K)


def interpolate_rotation(A_0: np.ndarray, A_1: np.ndarray, share: float) -> np.ndarray:
    """Return the orientation between A_0 and A_1 by rotation about one fixed axis.

    Args:
        share: 0 at A_0, 1 at A_1; extrapolates outside.
    """
    return rotation_matrix(share * rotation_error(A_0, A_1)) @ A_0
