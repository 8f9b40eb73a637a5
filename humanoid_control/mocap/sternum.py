"""Sternum estimated from hips and shoulders: a rigid chest, or the three spheres of Dube 2012, section 5.3."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ClipError, UnknownNameError

METHODS = ("rigid_chest", "three_spheres")
FITTED_TO = ("dance1", "walk1")  # clips behind the default constants
_PARALLEL = 1e-6  # sine of the angle between the shoulders, seen from the hips, below which the plane is undefined
_LEARN = 1.0  # [s] shortest visibility to learn a person's constants


@dataclass(frozen=True)
class SternumSettings:
    """Method and constants of the estimate.

    The defaults are least-squares fits to two persons with a mid-sternum marker (walk and dance of the MoCap Toolbox).
    `fit_sternum` fits one person.

    Attributes:
        method: "rigid_chest", or "three_spheres" (Dube 2012).
        forward: "rigid_chest": from the middle of the shoulders, chest axes, relative to the shoulder distance.
        k_c: "three_spheres": factor of eq. (5.18); Dube gives none.
        k_s: "three_spheres": factor of eq. (5.19); Dube gives none.
        A_g: "three_spheres": mean shoulder breadth of women [m].
        A_gs: "three_spheres": mean shoulder height of women above the hips [m].
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
    """Return the sternum (T, 3) [m]; NaN if a point is missing or shoulders and hips are collinear.

    Args:
        l_hip: (T, 3) joint centre [m], right-handed axes.
        r_hip: (T, 3) [m].
        l_gh: (T, 3) [m].
        r_gh: (T, 3) [m].
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
    """Return chest axes (T, 3, 3) as columns: x forward, y to the left shoulder, z in the plane of hips and shoulders.

    Args:
        p_L: (T, 3) left shoulder from mid-hip [m].
        p_R: (T, 3) right shoulder [m].
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        y = _unit(p_L - p_R)
        middle = (p_L + p_R) / 2
        z = _unit(middle - np.einsum("ti,ti->t", middle, y)[:, None] * y)
    return np.stack([np.cross(y, z), y, z], axis=2)


def link_lengths(p_L: np.ndarray, p_R: np.ndarray, settings: SternumSettings) -> tuple[np.ndarray, np.ndarray]:
    """Return the lengths of clavicles L_c and spine L_s (T,) [m] (Dube 2012, eq. (5.18)-(5.21)).

        L_c = (L_g + k_c (A_g - M_g)) / 2,   L_s = L_gs - k_s (A_gs - M_gs)

    with L_g the shoulder distance, L_gs the distance of mid-hip and mid-shoulder, M their means over the clip. Both are
    clipped so that the spheres meet: L_c >= L_g / 2 (not in Dube 2012), and L_s within the distances of the circle on
    which the clavicles meet. With h = sqrt(L_c^2 - L_g^2/4) these are L_gs -+ h, eq. (5.21).

    Args:
        p_L: (T, 3) left shoulder from mid-hip [m].
        p_R: (T, 3) right shoulder [m].
    """
    across, middle = p_L - p_R, (p_L + p_R) / 2
    L_g, L_gs = np.linalg.norm(across, axis=1), np.linalg.norm(middle, axis=1)
    L_c = np.maximum((L_g + settings.k_c * (settings.A_g - _mean(L_g))) / 2, L_g / 2)
    L_s = L_gs - settings.k_s * (settings.A_gs - _mean(L_gs))
    h = np.sqrt(np.maximum(L_c**2 - L_g**2 / 4, 0.0))
    with np.errstate(invalid="ignore", divide="ignore"):
        aside = np.einsum("ti,ti->t", middle, across) / L_g  # of the hips from the median plane of the shoulders
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
    """Fit the constants to one person.

    "rigid_chest": mean place of the sternum in the chest. "three_spheres": k_c and k_s for mean lengths, linear in
    (5.18) and (5.19).

    Args:
        l_hip: (T, 3) [m]; NaN is ignored.
        r_hip: (T, 3) [m].
        l_gh: (T, 3) [m].
        r_gh: (T, 3) [m].
        sternum: (T, 3) [m].
        settings: method, A_g, A_gs.

    Raises:
        ClipError: if no frame shows all points.
    """
    settings = settings or SternumSettings()
    hips = (l_hip + r_hip) / 2
    seen = ~np.isnan(np.stack([hips, l_gh, r_gh, sternum])).any(axis=(0, 2))
    p_L, p_R, p_S = ((p - hips)[seen] for p in (l_gh, r_gh, sternum))
    local = np.einsum("tji,tj->ti", chest_axes(p_L, p_R), p_S - (p_L + p_R) / 2) if seen.any() else np.empty((0, 3))
    if not np.isfinite(local).any():
        raise ClipError("the sternum cannot be calibrated: no frame shows hips, shoulders and sternum")
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
    """Return the sternum (T, 3) [m], estimated where not visible, and a note.

    A sternum visible for 1 s gives the person's constants, and the estimate joins its path. Otherwise all frames are
    estimated.

    Args:
        points: hips and shoulders (T, 3) without gaps, sternum optional [m].
        rate: [Hz].
    """
    l_hip, r_hip, l_gh, r_gh = (points[name] for name in ("l_hip", "r_hip", "l_shoulder", "r_shoulder"))
    sternum = points.get("sternum", np.full_like(l_hip, np.nan))
    seen = ~np.isnan(sternum[:, 0])
    if seen.sum() < max(2, _LEARN * rate):
        note = (
            "the clip does not show the sternum: estimated from hips and shoulders, 2 to 8 cm off for persons "
            "outside the fitted data"
        )
        return estimate_sternum(l_hip, r_hip, l_gh, r_gh), note
    learnt = fit_sternum(l_hip, r_hip, l_gh, r_gh, sternum)
    estimate = estimate_sternum(l_hip, r_hip, l_gh, r_gh, learnt)
    frames = np.flatnonzero(seen)
    from scipy.interpolate import PchipInterpolator  # slow import, seldom needed

    shift = PchipInterpolator(frames, (sternum - estimate)[seen])(np.clip(np.arange(len(seen)), frames[0], frames[-1]))
    note = (
        f"the sternum is hidden in {100 * (~seen).mean():.0f} % of the frames, with long gaps, in which it is "
        f"estimated from hips and shoulders"
    )
    return np.where(seen[:, None], sternum, estimate + shift), note


def three_sphere_intersection(
    p_L: np.ndarray, p_R: np.ndarray, R_w: np.ndarray, R_L: np.ndarray, R_R: np.ndarray
) -> np.ndarray:
    """Return the front intersection (T, 3) [m] of a sphere around the origin with two others.

    The sphere around the origin meets the one around p in a circle in the plane n . x = d with n = p / |p| and d =
    (|p|^2 + R_w^2 - R^2) / (2 |p|) (eq. 5.4, 5.6). The two planes share the line through

        P = ((d_L - d_R c) n_L + (d_R - d_L c) n_R) / (1 - c^2),   c = n_L . n_R,

    its point nearest to the origin, along n_L x n_R; the solutions are P +- sqrt(R_w^2 - |P|^2) along it. The +
    solution is toward left shoulder x right shoulder, in front of hips and shoulders. Eq. (5.9)-(5.17) are not used:
    they are 0/0 in the upright posture.

    Without intersection it is P; NaN if the centres are collinear.

    Args:
        p_L: (T, 3) left shoulder from mid-hip [m].
        p_R: (T, 3) right shoulder [m].
        R_w: (T,) around the origin [m].
        R_L: (T,) around p_L [m].
        R_R: (T,) around p_R [m].
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
    """Return the mean shoulder distance [m]."""
    return _mean(np.linalg.norm(p_L - p_R, axis=1))


def _mean(values: np.ndarray) -> float:
    values = values[~np.isnan(values)]
    return float(values.mean()) if values.size else float("nan")


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Normalise vectors (T, 3); NaN for zero length."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 1e-9, length, np.nan)
