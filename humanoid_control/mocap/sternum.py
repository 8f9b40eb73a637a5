"""Sternum of a recording without a marker on it, estimated from hips and shoulders.

Two methods: a chest that is rigid with the shoulders, and the three spheres of Dube 2012, section 5.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ClipError, UnknownNameError

METHODS = ("rigid_chest", "three_spheres")
FITTED_TO = ("dance1", "walk1")  # the clips behind the default constants
_PARALLEL = 1e-6  # sine of the angle between the shoulders, seen from the hips, below which there is no plane
_LEARN = 1.0  # [s] for which the sternum must be seen to learn the person's own constants


@dataclass(frozen=True)
class SternumSettings:
    """Method and constants of the estimate.

    The defaults are least squares fits to two recordings of two persons that have a marker on the middle of the sternum
    (the walk and the dance of the MoCap Toolbox). With the constants of the one the other's sternum is 1.8 to 1.9 cm
    off. Four more persons have a marker where the clavicles meet (CLAV): the defaults are 4.9 to 7.9 cm from it, and
    constants of three of them 3.3 to 7.5 cm from that of the fourth. The length of the trunk, the width of the hips, no
    scale at all, or a ridge regression on the three do not do better: people and placements differ by more than
    proportions tell. `fit_sternum` finds the numbers of one person, which are 0.1 to 1.1 cm off.

    Args:
        method: "rigid_chest", or "three_spheres" (Dube 2012).
        forward, left, up: "rigid_chest": place of the sternum from the middle of the shoulders, as shares of the mean
            distance of the shoulders, along the chest's axes.
        k_c, k_s: "three_spheres": scale factors of eq. (5.18) and (5.19). Dube gives no values.
        A_g, A_gs: "three_spheres": average shoulder breadth and height of women above the hips [m].
    """

    method: str = "rigid_chest"
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
    """Path of the sternum.

    Args:
        l_hip, r_hip, l_gh, r_gh: (T, 3) centres of the hip and shoulder joints [m], any right-handed axes.
        settings: method and constants; by default a rigid chest with the constants of two persons.

    Returns:
        (T, 3) [m], in the same axes; NaN where a point is missing or both shoulders and the middle of the hips lie on
        one line.
    """
    settings = settings or SternumSettings()
    hips = (l_hip + r_hip) / 2
    p_L, p_R = l_gh - hips, r_gh - hips
    if settings.method == "three_spheres":
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
    their means over the clip. Both are kept where the spheres meet: L_c >= L_g / 2 (not in Dube 2012), and
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
    """Constants of one person, from frames in which the sternum is known.

    "rigid_chest": the mean place of the sternum in the chest. "three_spheres": k_c and k_s that give the mean lengths
    of clavicles and spine, which (5.18) and (5.19) contain linearly.

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
    if settings.method == "rigid_chest":
        forward, left, up = (float(v) for v in np.nanmean(local, axis=0) / _mean_breadth(p_L, p_R))
        return replace(settings, forward=forward, left=left, up=up)
    M_g, M_gs = _mean(np.linalg.norm(p_L - p_R, axis=1)), _mean(np.linalg.norm((p_L + p_R) / 2, axis=1))
    clavicle = _mean(np.concatenate([np.linalg.norm(p_S - p, axis=1) for p in (p_L, p_R)]))
    spine = _mean(np.linalg.norm(p_S, axis=1))
    return replace(
        settings, k_c=(2 * clavicle - M_g) / (settings.A_g - M_g), k_s=(M_gs - spine) / (settings.A_gs - M_gs)
    )


def complete_sternum(points: Mapping[str, np.ndarray], rate: float) -> tuple[np.ndarray, str]:
    """The sternum in every frame, estimated where it is not seen.

    A sternum that is seen for 1 s or more gives the person's own constants, and the estimate is shifted so that it
    joins the seen path without a step. One that is hardly ever seen is estimated throughout.

    Args:
        points: hips and shoulders (T, 3) without gaps, the sternum with or without gaps or not at all [m].
        rate: frames a second [Hz].

    Returns:
        (T, 3) path [m], and a sentence that says what was done.
    """
    l_hip, r_hip, l_gh, r_gh = (points[name] for name in ("l_hip", "r_hip", "l_shoulder", "r_shoulder"))
    sternum = points.get("sternum", np.full_like(l_hip, np.nan))
    seen = ~np.isnan(sternum[:, 0])
    if seen.sum() < max(2, _LEARN * rate):
        note = (
            "the clip does not show the sternum: estimated from hips and shoulders, 2 to 8 cm off on persons that the "
            "estimate was not fitted to"
        )
        return estimate_sternum(l_hip, r_hip, l_gh, r_gh), note
    learnt = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    estimate = estimate_sternum(l_hip, r_hip, l_gh, r_gh, learnt)
    frames = np.flatnonzero(seen)
    from scipy.interpolate import PchipInterpolator  # slow to import, and seldom needed

    shift = PchipInterpolator(frames, (sternum - estimate)[seen])(np.clip(np.arange(len(seen)), frames[0], frames[-1]))
    note = (
        f"the sternum is hidden in {100 * (~seen).mean():.0f} % of the frames, partly for long: there it is estimated "
        "from hips and shoulders"
    )
    return np.where(seen[:, None], sternum, estimate + shift), note


def three_sphere_intersection(
    p_L: np.ndarray, p_R: np.ndarray, R_w: np.ndarray, R_L: np.ndarray, R_R: np.ndarray
) -> np.ndarray:
    """The intersection of a sphere round the origin with two others, the one of the two points that lies in front.

    The sphere round the origin meets the one round p in a circle in the plane n . x = d with n = p / |p| and
    d = (|p|^2 + R_w^2 - R^2) / (2 |p|) (eq. 5.4, 5.6). The two planes share the line through

        P = ((d_L - d_R c) n_L + (d_R - d_L c) n_R) / (1 - c^2),   c = n_L . n_R,

    the point of it nearest to the origin, along n_L x n_R; the desired points are P +- sqrt(R_w^2 - |P|^2) along it.
    This is eq. (5.9)-(5.17) without their traps: the printed direction is not normalised, its sign depends on the
    side, and the printed point of the line is 0/0 in the upright posture.

    Of the two points, + is the one toward left shoulder cross right shoulder: in front of the plane through the hips
    and the shoulders, wherever the person faces and however far the trunk bends. (Dube takes the larger y.)

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
