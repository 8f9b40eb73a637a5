"""Detection of unrecorded samples.

Programs write hidden markers as -9999, hold their last place, or repeat frames to reach another rate.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from humanoid_control.errors import first_few
from humanoid_control.mocap.clip import MarkerClip

_BEYOND = 3.0  # distance of a stand-in from the clip's middle, in sizes of the clip
_TWICE = 2  # smallest number of occurrences of a stand-in
_HELD = 8  # frames in which a marker is exactly constant
_OTHERS = 0.02  # [m] motion of half of the other markers meanwhile
_MORE = 1.15  # frames per recorded frame from which frames count as repeated
_FEWEST = 5  # changed frames


def report_unrecorded(clip: MarkerClip) -> MarkerClip:
    """Return the clip with stand-ins hidden, and a warning for each kind."""
    clip, said = _hide_stand_ins(clip)
    moved = _changed(clip.positions)
    repeated = _repeated_frames(np.flatnonzero(moved.any(axis=1)), clip)
    held = _held_markers(moved, clip) if clip.noun == "marker" and not repeated else ()
    return replace(clip, warnings=(*clip.warnings, *said, *repeated, *held))


def _hide_stand_ins(clip: MarkerClip) -> tuple[MarkerClip, tuple[str, ...]]:
    """Hide places with equal coordinates that recur far from all others."""
    P = clip.positions
    same = (P[..., 0] == P[..., 1]) & (P[..., 1] == P[..., 2]) & (P[..., 0] != 0.0)
    if np.count_nonzero(same) < _TWICE:
        return clip, ()
    values, counts = np.unique(P[same][:, 0], return_counts=True)
    others = P[~same & np.isfinite(P[..., 0])]
    if not len(others):
        return clip, ()
    middle = np.median(others, axis=0)
    size = float(np.percentile(np.linalg.norm(others - middle, axis=1), 98))
    far = [
        v for v, n in zip(values, counts, strict=True) if n >= _TWICE and np.linalg.norm(v - middle) > _BEYOND * size
    ]
    if not far:
        return clip, ()
    hidden = same & np.isin(P[..., 0], far)
    where = [f"{clip.labels[m]} in {int(hidden[:, m].sum())} frames" for m in np.flatnonzero(hidden.any(axis=0))]
    places = P.copy()
    places[hidden] = np.nan
    text = f"the same far number ({far[0]:.4g} m) in all three axes counts as hidden: {first_few(where)}"
    return replace(clip, positions=places), (text,)


def _changed(P: np.ndarray) -> np.ndarray:
    """Return True (T - 1, M) where places (T, M, 3) differ from the previous frame."""
    same = (P[1:] == P[:-1]) | (np.isnan(P[1:]) & np.isnan(P[:-1]))
    return np.asarray(~same.all(axis=2))


def _repeated_frames(at: np.ndarray, clip: MarkerClip) -> tuple[str, ...]:
    """Warn of regularly repeated frames, given the changed ones."""
    if len(at) < _FEWEST:
        return ()
    span = int(at[-1] - at[0])
    each = span / (len(at) - 1)
    if each < _MORE or int(np.diff(at).max()) > math.ceil(each) + 1:
        return ()
    repeats = span - (len(at) - 1)
    rate = f"the motion was recorded at {clip.rate / each:.4g} Hz, not {clip.rate:.4g} Hz"
    return (f"{repeats} of {clip.n_frames} frames repeat the previous one: {rate}",)


def _held_markers(changed: np.ndarray, clip: MarkerClip) -> tuple[str, ...]:
    """Warn of exactly constant markers while others move."""
    P, found = clip.positions, []
    for m in np.flatnonzero(changed.any(axis=0)):
        still = np.concatenate([[0], ~changed[:, m] & np.isfinite(P[1:, m, 0]), [0]])
        for begin, end in np.flatnonzero(np.diff(still)).reshape(-1, 2):
            if end - begin + 1 >= _HELD:
                way = np.delete(np.linalg.norm(P[end] - P[begin], axis=1), m)
                if len(way) and np.nanmedian(np.r_[way, 0.0]) > _OTHERS:
                    found.append(f"{clip.labels[m]} for {end - begin + 1} frames from {begin}")
    if not found:
        return ()
    return (f"markers are exactly constant while others move, as in a filled gap: {first_few(found)}",)
