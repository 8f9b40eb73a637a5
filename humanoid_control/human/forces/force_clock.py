"""Overlap and time offset of a clip and its forces.

Offsets are proposed, never applied: strides repeat, and wrong offsets give plausible moments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.human.forces.sole_contact import AssignmentSettings, outline_distance, sole_velocity, surface_axes
from humanoid_control.human.forces.wrenches import MeasuredWrench

_EXPLAINED = 0.6  # share of the load that an offset must put under feet
_NEGLIGIBLE = 0.05  # [s] smaller offsets are ignored
_AS_GOOD = 0.01  # of the load: offsets within it count as equally good
_MOST_FRAMES = 300  # frames used for a proposal


def check_overlap(wrenches: Sequence[MeasuredWrench], times: np.ndarray, feet: Mapping[str, np.ndarray]) -> None:
    """Raise ClipError, with an offset, if clip and forces do not overlap."""
    samples = wrenches[0].times
    if times[0] <= samples[-1] and samples[0] <= times[-1]:
        return
    raise ClipError(
        f"the clip runs from {times[0]:.2f} to {times[-1]:.2f} s, the forces from {samples[0]:.2f} to "
        f"{samples[-1]:.2f} s: no time in common: give the offset of their clocks{offset_offer(wrenches, times, feet)}"
    )


def offset_offer(wrenches: Sequence[MeasuredWrench], times: np.ndarray, feet: Mapping[str, np.ndarray]) -> str:
    """Return a clause that proposes an offset, or ""."""
    lag = propose_offset(wrenches, times, feet)
    if lag is None or abs(lag) < _NEGLIGIBLE:
        return ""
    return f"; feet and forces fit with forces {lag:+.2f} s later (not applied)"


def propose_offset(
    wrenches: Sequence[MeasuredWrench], times: np.ndarray, feet: Mapping[str, np.ndarray]
) -> float | None:
    """Return the offset [s] of the force times with which feet land under the forces, or None.

    It puts most of the load, at least 60 %, under soles without vertical motion.

    Args:
        wrenches: of all plates at the same times, zeroed.
        times: (m,) of the frames [s].
        feet: foot -> (m, k, 3) sole points [m]; NaN: not visible.
    """
    every = max(1, -(-len(times) // _MOST_FRAMES))
    frames = times[::every]
    if len(frames) < 2:
        return None
    step = float(np.median(np.diff(frames)))
    # On the grid of the frames an offset is an integer number of frames.
    samples = np.arange(wrenches[0].times[0], wrenches[0].times[-1], step)
    count, whole = np.zeros(len(samples) + len(frames) - 1), 0.0
    for wrench in wrenches:
        at = wrench.cut().resampled(samples)
        load = np.nan_to_num(at.normal_force)
        pressed = np.flatnonzero(load > 0)
        whole += float(load.sum())
        flat = surface_axes(wrench.normal)
        soles = [_resting(points[::every], frames, wrench.normal, flat) for points in feet.values()]
        pressure = at.center_of_pressure()[pressed] @ flat
        for shift in range(len(count)):  # sample j meets frame j + shift - (len(samples) - 1)
            frame = pressed + shift - (len(samples) - 1)
            meets = (frame >= 0) & (frame < len(frames))
            if load[pressed[meets]].sum() > 0:
                count[shift] += _carried(pressure[meets], load[pressed[meets]], [s[frame[meets]] for s in soles])
    if not whole > 0 or count.max() < _EXPLAINED * whole:
        return None
    good = np.flatnonzero(count >= count.max() - _AS_GOOD * whole)
    runs = np.split(good, np.flatnonzero(np.diff(good) > 1) + 1)
    run = max(runs, key=lambda run: (count[run].max(), len(run)))
    return float(frames[0] - samples[0] + (run.mean() - (len(samples) - 1)) * step)


def _resting(points: np.ndarray, times: np.ndarray, normal: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """Return sole points (m, k, 2) along the surface; NaN if moving vertically."""
    # Vertical motion only: on a treadmill a standing foot moves along.
    rise = np.abs(sole_velocity(points, times) @ normal)
    rests = np.where(np.isnan(rise), np.inf, rise).min(axis=1) < AssignmentSettings().speed
    return np.where(rests[:, None, None], points @ flat, np.nan)


def _carried(pressure: np.ndarray, load: np.ndarray, soles: Sequence[np.ndarray]) -> float:
    """Return the load [N] under a sole."""
    near = [np.nan_to_num(outline_distance(pressure, s), nan=np.inf) <= AssignmentSettings().distance for s in soles]
    return float(load[np.any(near, axis=0)].sum())
