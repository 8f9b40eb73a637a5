"""The point on three spheres: where a link from the hips and two links from the shoulders meet (Dube 2012, 5.3.1)."""

from __future__ import annotations

import numpy as np

_PARALLEL = 1e-6  # sine of the angle between the shoulders, seen from the hips, below which there is no plane


def three_sphere_intersection(
    p_L: np.ndarray, p_R: np.ndarray, R_w: np.ndarray, R_L: np.ndarray, R_R: np.ndarray
) -> np.ndarray:
    """The intersection of a sphere round the origin with two others, the one of the two points that lies in front.

    The sphere round the origin meets the one round p in a circle in the plane n . x = d with n = p / |p| and
    d = (|p|^2 + R_w^2 - R^2) / (2 |p|) (eq. 5.4, 5.6). The two planes share the line through

        P = ((d_L - d_R c) n_L + (d_R - d_L c) n_R) / (1 - c^2),   c = n_L . n_R,

    the point of it nearest to the origin, along n_L x n_R; the wanted points are P +- sqrt(R_w^2 - |P|^2) along it.
    This is eq. (5.9)-(5.17) without their traps: the printed direction is not normalised, its sign depends on the
    side, and the printed point of the line is 0/0 in the upright posture.

    Of the two points, + is the one toward left shoulder cross right shoulder: in front of the plane through the hips
    and the shoulders, wherever the person faces and however far the trunk bends. (The source takes the larger y.)

    Args:
        p_L, p_R: (T, 3) centres of the second and third sphere [m]: left and right shoulder from the hips' middle.
        R_w, R_L, R_R: (T,) radii of the spheres round the origin, p_L and p_R [m].

    Returns:
        (T, 3) [m]; where the spheres miss each other, the point of the line nearest to the origin; NaN where the
        centres and the origin lie on one line.
    """
    length_L, length_R = np.linalg.norm(p_L, axis=1), np.linalg.norm(p_R, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        n_L, n_R = p_L / length_L[:, None], p_R / length_R[:, None]
        d_L = (length_L**2 + R_w**2 - R_L**2) / (2 * length_L)
        d_R = (length_R**2 + R_w**2 - R_R**2) / (2 * length_R)
        c = np.einsum("ti,ti->t", n_L, n_R)
        across = np.cross(n_L, n_R)
        sine = np.linalg.norm(across, axis=1)
        sine = np.where(sine > _PARALLEL, sine, np.nan)
        P = ((d_L - d_R * c)[:, None] * n_L + (d_R - d_L * c)[:, None] * n_R) / (sine**2)[:, None]
    half_chord = np.sqrt(np.maximum(R_w**2 - np.einsum("ti,ti->t", P, P), 0.0))
    return P + (half_chord / sine)[:, None] * across
