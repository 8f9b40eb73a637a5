"""Gaps: markers that were hidden for a moment, filled from the frames before and after."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.mocap.clip import MarkerClip


@dataclass(frozen=True)
class Gap:
    """Consecutive frames in which a marker was not seen.

    Args:
        label: whose.
        start: the first of them.
        frames: how many.
        filled: whether it is short enough to be filled.
    """

    label: str
    start: int
    frames: int
    filled: bool


def find_gaps(clip: MarkerClip, limit_s: float) -> tuple[Gap, ...]:
    """Every gap of the markers that are seen at all, in the order of labels and frames; those up to `limit_s` [s] are
    the ones `fill_gaps` fills."""
    limit = _limit(limit_s, clip.rate)
    gaps = []
    for marker, label in enumerate(clip.labels):
        hidden = np.isnan(clip.positions[:, marker, 0])
        if hidden.all():
            continue
        gaps += [Gap(label, int(a), int(b - a), bool(b - a <= limit)) for a, b in _edges(hidden)]
    return tuple(gaps)


def fill_gaps(clip: MarkerClip, limit_s: float) -> MarkerClip:
    """The clip with every gap up to `limit_s` [s] filled; longer ones stay NaN.

    Inside, by monotone cubic interpolation (PCHIP), which never overshoots the neighbouring samples; at the start and
    the end, by holding the nearest sample.
    """
    positions = np.array(clip.positions)
    limit = _limit(limit_s, clip.rate)
    for marker in range(len(clip.labels)):
        hidden = np.isnan(positions[:, marker, 0])
        if hidden.any() and not hidden.all():
            positions[:, marker] = _filled(positions[:, marker], hidden & (_gap_lengths(hidden) <= limit))
    return replace(clip, positions=positions)


def longest_gap(positions: np.ndarray, rate: float) -> float:
    """Duration of the longest gap of one point (T, 3) [s]; 0 when there is none."""
    return float(_gap_lengths(np.isnan(positions[:, 0])).max(initial=0)) / rate


def _limit(limit_s: float, rate: float) -> float:
    """The longest gap that is filled [frames]."""
    return float(np.floor(limit_s * rate + 1e-6))


def _edges(hidden: np.ndarray) -> np.ndarray:
    """(G, 2) first frame of each gap and the first after it."""
    return np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]]))).reshape(-1, 2)


def _gap_lengths(hidden: np.ndarray) -> np.ndarray:
    """(T,) for a frame inside a gap the length of that gap [frames], 0 elsewhere."""
    lengths = np.zeros(len(hidden), dtype=int)
    for start, end in _edges(hidden):
        lengths[start:end] = end - start
    return lengths


def _filled(path: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """One marker's path (T, 3) with the frames of a gap (T,) interpolated."""
    from scipy.interpolate import PchipInterpolator  # slow to import, and seldom needed

    seen = np.flatnonzero(~np.isnan(path[:, 0]))
    frames = np.clip(np.flatnonzero(gap), seen[0], seen[-1])
    path = path.copy()
    path[gap] = PchipInterpolator(seen, path[seen])(frames) if len(seen) > 1 else path[seen[0]]
    return path
