"""The sternum of a recording without a marker on it, estimated from hips and shoulders."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.capture.three_spheres import three_sphere_intersection
from humanoid_control.errors import ClipError, UnknownNameError

METHODS = ("ours", "dube")
FITTED_TO = ("dance1", "walk1")  # the clips behind the default constants


@dataclass(frozen=True)
class SternumSettings:
    """How the sternum is estimated.

    The defaults are least squares fits to two recordings of two persons that have a sternum marker (the walk and the
    dance of the MoCap Toolbox); `fit_sternum` finds the numbers of one person.

    Args:
        method: "ours", a chest that is rigid with the shoulders, or "dube", three spheres.
        forward, left, up: "ours": place of the sternum from the middle of the shoulders, as shares of the mean distance
            of the shoulders, along the chest's axes.
        k_c, k_s: "dube": scale factors of eq. (5.18) and (5.19). The source gives no values.
        A_g, A_gs: "dube": average shoulder breadth and height of women above the hips [m].
    """

    method: str = "ours"
    forward: float = 0.356
    left: float = 0.0
    up: float = -0.169
    k_c: float = 1.37
    k_s: float = 0.44
    A_g: float = 0.395
    A_gs: float = 0.555

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UnknownNameError("sternum method", self.method, METHODS)


def estimate_sternum(
    l_hip: np.ndarray,
    r_hip: np.ndarray,
    l_gh: np.ndarray,
    r_gh: np.ndarray,
    settings: SternumSettings | None = None,
) -> np.ndarray:
    """Where the sternum is.

    Args:
        l_hip, r_hip, l_gh, r_gh: (T, 3) centres of the hip and shoulder joints [m], any right-handed axes.
        settings: method and constants; by default our method with the constants of two persons.

    Returns:
        (T, 3) [m], in the same axes; NaN where a point is missing or both shoulders and the middle of the hips lie on
        one line.
    """
    settings = settings or SternumSettings()
    hips = (l_hip + r_hip) / 2
    p_L, p_R = l_gh - hips, r_gh - hips
    if settings.method == "dube":
        L_c, L_s = link_lengths(p_L, p_R, settings)
        return hips + three_sphere_intersection(p_L, p_R, L_s, L_c, L_c)
    offset = np.array([settings.forward, settings.left, settings.up]) * _mean_breadth(p_L, p_R)
    return hips + (p_L + p_R) / 2 + chest_axes(p_L, p_R) @ offset


def chest_axes(p_L: np.ndarray, p_R: np.ndarray) -> np.ndarray:
    """Axes of the chest: x forward, y from the right shoulder to the left, z in the plane of hips and shoulders.

    Args:
        p_L, p_R: (T, 3) shoulders from the middle of the hips [m].

    Returns:
        (T, 3, 3) the axes as columns; NaN where shoulders and hips lie on one line.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = _unit(p_L - p_R)
        middle = (p_L + p_R) / 2
        z = _unit(middle - np.einsum("ti,ti->t", middle, y)[:, None] * y)
    return np.stack([np.cross(y, z), y, z], axis=2)


def link_lengths(p_L: np.ndarray, p_R: np.ndarray, settings: SternumSettings) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the clavicles L_c and the spine L_s in every frame (Dube 2012, eq. (5.18)-(5.21)).

        L_c = (L_g + k_c (A_g - M_g)) / 2,   L_s = L_gs - k_s (A_gs - M_gs)

    with L_g the distance of the shoulders, L_gs that from the middle of the hips to the middle of the shoulders, M
    their means over the clip. Both are kept where the spheres meet: L_c >= L_g / 2 (the source does not say so), and
    L_s between the nearest and the farthest point of the circle on which the clavicles meet. With
    h = sqrt(L_c^2 - L_g^2/4) that is L_gs -+ h, eq. (5.21), when the hips are as far from the left as from the right
    shoulder, and a little less wide when the trunk leans.

    Args:
        p_L, p_R: (T, 3) shoulders from the middle of the hips [m].
        settings: k_c, k_s, A_g, A_gs.

    Returns:
        L_c (T,) and L_s (T,) [m].
    """
    across, middle = p_L - p_R, (p_L + p_R) / 2
    L_g, L_gs = np.linalg.norm(across, axis=1), np.linalg.norm(middle, axis=1)
    L_c = np.maximum((L_g + settings.k_c * (settings.A_g - _mean(L_g))) / 2, L_g / 2)
    L_s = L_gs - settings.k_s * (settings.A_gs - _mean(L_gs))
    h = np.sqrt(np.maximum(L_c**2 - L_g**2 / 4, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        aside = np.einsum("ti,ti->t", middle, across) / L_g  # of the hips from the plane between the shoulders
    ahead = np.sqrt(np.maximum(L_gs**2 - aside**2, 0.0))
    return L_c, np.clip(L_s, np.hypot(ahead - h, aside), np.hypot(ahead + h, aside))


def fit_sternum(
    l_hip: np.ndarray,
    r_hip: np.ndarray,
    l_gh: np.ndarray,
    r_gh: np.ndarray,
    sternum: np.ndarray,
    settings: SternumSettings | None = None,
) -> SternumSettings:
    """The constants of one person, from frames in which the sternum is known.

    "ours": the mean place of the sternum in the chest. "dube": k_c and k_s that give the mean lengths of clavicles and
    spine, which (5.18) and (5.19) contain linearly.

    Args:
        l_hip, r_hip, l_gh, r_gh, sternum: (T, 3) [m]; frames with a NaN do not count.
        settings: method, and A_g and A_gs.

    Raises:
        ClipError: no frame shows all five points.
    """
    settings = settings or SternumSettings()
    hips = (l_hip + r_hip) / 2
    seen = ~np.isnan(np.stack([hips, l_gh, r_gh, sternum])).any(axis=(0, 2))
    p_L, p_R, p_S = ((p - hips)[seen] for p in (l_gh, r_gh, sternum))
    local = np.einsum("tji,tj->ti", chest_axes(p_L, p_R), p_S - (p_L + p_R) / 2) if seen.any() else np.empty((0, 3))
    if not np.isfinite(local).any():
        raise ClipError("the sternum cannot be learnt: no frame shows hips, shoulders and sternum")
    if settings.method == "ours":
        forward, left, up = (float(v) for v in np.nanmean(local, axis=0) / _mean_breadth(p_L, p_R))
        return replace(settings, forward=forward, left=left, up=up)
    M_g, M_gs = _mean(np.linalg.norm(p_L - p_R, axis=1)), _mean(np.linalg.norm((p_L + p_R) / 2, axis=1))
    clavicle = _mean(np.concatenate([np.linalg.norm(p_S - p, axis=1) for p in (p_L, p_R)]))
    spine = _mean(np.linalg.norm(p_S, axis=1))
    return replace(
        settings, k_c=(2 * clavicle - M_g) / (settings.A_g - M_g), k_s=(M_gs - spine) / (settings.A_gs - M_gs)
    )


def _mean_breadth(p_L: np.ndarray, p_R: np.ndarray) -> float:
    """Mean distance of the shoulders [m]."""
    return _mean(np.linalg.norm(p_L - p_R, axis=1))


def _mean(values: np.ndarray) -> float:
    """Mean of the values that are there; NaN without any."""
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Vectors (T, 3) scaled to length 1; NaN for those of no length."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 1e-9, length, np.nan)
