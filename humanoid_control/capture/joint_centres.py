"""Where the joints are under the skin: hip and shoulder centres from the markers on the bones around them."""

from __future__ import annotations

import numpy as np


def hip_centre(side: int, *, l_asis: np.ndarray, r_asis: np.ndarray, mid_psis: np.ndarray) -> np.ndarray:
    """Hip joint centre by regression on the depth and the width of the pelvis.

    In the pelvis frame (origin midway between the ASIS markers, x forward from the PSIS midpoint, y left, z up,
    perpendicular to the plane of the ASIS and the PSIS midpoint), with PD the distance between the two midpoints and
    PW the distance between the ASIS markers:

        x = -0.24 PD - 9.9 mm,   y = side (0.33 PW + 7.3 mm),   z = -0.30 PW - 10.9 mm

    Args:
        side: +1 left, -1 right.
        l_asis, r_asis: (T, 3) front pelvis markers [m], any axes.
        mid_psis: (T, 3) midpoint of the back pelvis markers, or the sacrum marker [m].

    Returns:
        (T, 3) joint centre [m], NaN where a marker is missing.

    Source: Harrington et al. 2007, J. Biomech. 40, 595-602 (regression for adults and children together).
    """
    mid_asis = (l_asis + r_asis) / 2
    depth = np.linalg.norm(mid_asis - mid_psis, axis=1, keepdims=True)
    width = np.linalg.norm(l_asis - r_asis, axis=1, keepdims=True)
    y = _unit(l_asis - r_asis)
    z = _unit(_cross(mid_asis - mid_psis, y))
    x = _cross(y, z)
    forward, left, up = -0.24 * depth - 0.0099, side * (0.33 * width + 0.0073), -0.30 * width - 0.0109
    return mid_asis + forward * x + left * y + up * z


def shoulder_centre(
    side: int,
    *,
    l_acromion: np.ndarray,
    r_acromion: np.ndarray,
    l_asis: np.ndarray,
    r_asis: np.ndarray,
    mid_psis: np.ndarray,
) -> np.ndarray:
    """Glenohumeral centre: below the marker on the acromion by 17 % of the distance between the acromia.

    Below means along the trunk, from the middle of the acromia to the middle of the pelvis.

    Args:
        side: +1 left, -1 right.
        l_acromion, r_acromion: (T, 3) markers on top of the shoulders [m], any axes.
        l_asis, r_asis, mid_psis: (T, 3) pelvis markers as in `hip_centre` [m].

    Returns:
        (T, 3) joint centre [m], NaN where a marker is missing.

    Source: Rab, Petuskey and Bagley 2002, Gait and Posture 15, 113-119.
    """
    pelvis = ((l_asis + r_asis) / 2 + mid_psis) / 2
    down = _unit(pelvis - (l_acromion + r_acromion) / 2)
    breadth = np.linalg.norm(l_acromion - r_acromion, axis=1, keepdims=True)
    return (l_acromion if side > 0 else r_acromion) + 0.17 * breadth * down


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (T, 3) scaled to length 1; zero stays zero, NaN stays NaN."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1.0)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross products of vectors (T, 3); for a single frame several times quicker than numpy's own."""
    return a[:, [1, 2, 0]] * b[:, [2, 0, 1]] - a[:, [2, 0, 1]] * b[:, [1, 2, 0]]
