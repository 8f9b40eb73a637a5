"""A floating base by Euler angles Z-X-Z, turned so that upright is far from their singularity (section 2.8)."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

UPRIGHT = np.array([0.0, np.pi / 2, 0.0])


def euler_matrix(angles: np.ndarray) -> np.ndarray:
    """A_kI of phi, theta, psi: eq. (2.41)."""
    (c1, c2, c3), (s1, s2, s3) = np.cos(angles), np.sin(angles)
    return np.array(
        [
            [c1 * c3 - s1 * c2 * s3, s1 * c3 + c1 * c2 * s3, s2 * s3],
            [-c1 * s3 - s1 * c2 * c3, -s1 * s3 + c1 * c2 * c3, s2 * c3],
            [s1 * s2, -c1 * s2, c2],
        ]
    )


def euler_turn() -> np.ndarray:
    """The constant turn (3, 3) before the angles, by which an upright body has theta = 90 degrees."""
    return euler_matrix(UPRIGHT).T


def _rates(angles: np.ndarray) -> np.ndarray:
    """J_R: omega = J_R d(angles)/dt in the body's axes; eq. (2.39) with E4 corrected."""
    (_, c2, c3), (_, s2, s3) = np.cos(angles), np.sin(angles)
    return np.array([[s2 * s3, c3, 0.0], [s2 * c3, -s3, 0.0], [c2, 0.0, 1.0]])


def euler_state(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Euler configuration and rates (6,) each of a base given as pinocchio's (7,), (6,)."""
    E = pin.Quaternion(q[3:7]).toRotationMatrix().T @ euler_turn().T
    angles = np.array([np.arctan2(E[2, 0], -E[2, 1]), np.arccos(np.clip(E[2, 2], -1, 1)), np.arctan2(E[0, 2], E[1, 2])])
    position, velocity = euler_turn() @ q[:3], E.T @ v[:3]
    return np.concatenate([angles, position]), np.concatenate([np.linalg.solve(_rates(angles), v[3:6]), velocity])


def quaternion_state(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse of `euler_state`."""
    E = euler_matrix(q[:3])
    X = pin.SE3((E @ euler_turn()).T, euler_turn().T @ q[3:6])
    return pin.SE3ToXYZQUAT(X), np.concatenate([E @ v[3:6], _rates(q[:3]) @ v[:3]])
