"""Cleaning of a clip before body points are made of it: labels checked, gaps filled, noise taken out.

A gap is a marker that was hidden for a moment: it is filled from the frames before and after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError, first_few
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.labels import MAX_ACCELERATION, MAX_SPEED, Jump, Swap, check_labels, repair_swaps


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


# -------- Cleaning

ORDER = 2  # of the Butterworth filter, which runs forward and backward
_PAD = 6.0  # periods of the cut-off frequency by which the ends are continued


@dataclass(frozen=True)
class CleaningSettings:
    """Settings of `clean`.

    The cut-off of 10 Hz changes the wrists of a dance (60 Hz) by 0.5 mm and those of fast arm motion (250 Hz) by 2 mm
    in the root mean square; 6 Hz, usual for walking, takes 7 mm off the latter. Below 10 Hz the change grows steeply,
    above it hardly falls: what is left there is noise (residual analysis after Winter 2009, section 3.4.4).

    Args:
        cutoff: of the low-pass filter [Hz]; None leaves the noise in.
        max_gap: longest gap that is filled [s].
        check_labels: whether to look for swapped and jumping markers.
        repair_swaps: whether to undo swaps in which no third marker is involved.
        max_acceleration: of a marker [m/s^2]; beyond it the marker jumped.
        max_speed: of a marker [m/s] where its velocity is not known, after a gap.
    """

    cutoff: float | None = 10.0
    max_gap: float = 0.5
    check_labels: bool = True
    repair_swaps: bool = False
    max_acceleration: float = MAX_ACCELERATION
    max_speed: float = MAX_SPEED

    def __post_init__(self) -> None:
        for name in ("cutoff", "max_acceleration", "max_speed"):
            value = getattr(self, name)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ConfigError(f"cleaning: {name} is {value}, it must be positive")
        if not self.max_gap >= 0:
            raise ConfigError(f"cleaning: max_gap is {self.max_gap} s, it must not be negative")


@dataclass(frozen=True)
class CleaningReport:
    """Findings and changes of `clean`.

    Args:
        gaps: every gap of a marker that is seen at all, and whether it was filled.
        swaps: labels that are exchanged from one frame to the next.
        repaired: those of them that were undone.
        jumps: markers that move as no body does; they stay as they are.
        cutoff: of the filter that was applied [Hz]; None when none was.
        change: by label, how far the filter moved the marker [m], root mean square over the frames.
        noun: what the clip's points are called: "marker" or "joint".
    """

    gaps: tuple[Gap, ...]
    swaps: tuple[Swap, ...]
    repaired: tuple[Swap, ...]
    jumps: tuple[Jump, ...]
    cutoff: float | None
    change: dict[str, float]
    noun: str = "marker"

    @property
    def n_filled(self) -> int:
        """Number of samples that were filled."""
        return sum(gap.frames for gap in self.gaps if gap.filled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of thing a user should look at; gaps that were filled are no such thing."""
        said = []
        left = [s for s in self.swaps if s not in self.repaired]
        for swaps, what in ((self.repaired, "were exchanged and put right"), (left, "seem to be exchanged")):
            if swaps:
                said.append(
                    f"labels {what}: {first_few(f'{s.labels[0]} and {s.labels[1]} at frame {s.frame}' for s in swaps)}"
                )
        if self.jumps:
            where = (f"{j.label} by {j.distance:.2f} m at frame {j.first}" for j in self.jumps)
            said.append(f"{self.noun}s jump as no body can: {first_few(where)}")
        unfilled = [gap for gap in self.gaps if not gap.filled]
        if unfilled:
            where = (f"{g.label} for {g.frames} frames from {g.start}" for g in unfilled)
            said.append(f"gaps too long to fill: {first_few(where)}")
        return tuple(said)


def clean(clip: MarkerClip, settings: CleaningSettings | None = None) -> tuple[MarkerClip, CleaningReport]:
    """Check the labels, fill the gaps, take out the noise.

    This is done on the markers and not on the body points: labels are exchanged between markers, and a body point made
    of four markers would hide which of them was wrong. Gaps are filled before the filter, so that it sees whole paths;
    a gap too long to fill stays a gap.

    Args:
        clip: as read.
        settings: by default those of `CleaningSettings`.

    Returns:
        The clean clip, which carries the report's warnings, and the report.
    """
    settings = settings or CleaningSettings()
    swaps: tuple[Swap, ...] = ()
    repaired: tuple[Swap, ...] = ()
    jumps: tuple[Jump, ...] = ()
    if settings.check_labels:
        swaps, jumps = check_labels(clip, settings.max_acceleration, settings.max_speed)
        if settings.repair_swaps:
            positions, repaired = repair_swaps(clip, swaps)
            clip = replace(clip, positions=positions)
    gaps = find_gaps(clip, settings.max_gap)
    filled = fill_gaps(clip, settings.max_gap)
    cutoff = settings.cutoff if settings.cutoff is not None and settings.cutoff < clip.rate / 2 else None
    smooth, change = filled, {}
    if cutoff is not None:
        smooth = _smoothed(filled, cutoff)
        moved = np.linalg.norm(smooth.positions - filled.positions, axis=2)
        seen = [k for k in range(len(clip.labels)) if not np.isnan(moved[:, k]).all()]
        change = {clip.labels[k]: float(np.sqrt(np.nanmean(moved[:, k] ** 2))) for k in seen}
    report = CleaningReport(gaps, swaps, repaired, jumps, cutoff, change, clip.noun)
    return replace(smooth, warnings=clip.warnings + report.warnings), report


def _smoothed(clip: MarkerClip, cutoff: float) -> MarkerClip:
    """The clip filtered. Long gaps are bridged for the filter only."""
    bridged = np.array(fill_gaps(clip, np.inf).positions)
    seen = ~np.isnan(bridged[0, :, 0])
    bridged[:, seen] = low_pass(bridged[:, seen], clip.rate, cutoff)
    bridged[np.isnan(clip.positions)] = np.nan
    return replace(clip, positions=bridged)


def low_pass(paths: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Paths without what is faster than the cut-off, and without delay: the zero-lag Butterworth filter.

    A filter of second order runs forward and backward over the paths (Winter 2009, section 3.4.4). Two passes square
    the gain, so each has its cut-off a little higher: together they have a gain of 0.71 at the cut-off, which falls by
    24 dB an octave beyond it, like the smoothing by Fourier transform of Dube 2012, section 5.2.1. Each path goes on
    beyond its ends as its own mirror image through the end point, over several periods, so that the ends do not ring.

    Args:
        paths: (T, ...) evenly sampled, without NaN.
        rate: frames a second [Hz].
        cutoff: [Hz]; from half the rate upward there is nothing to take out and the paths come back as they are.

    Returns:
        (T, ...) smoothed.

    Raises:
        ConfigError: rate or cut-off is not positive.
    """
    from humanoid_control.numerics import butterworth  # loads the compiler, which who only reads a clip does not need

    if not (np.isfinite(cutoff) and cutoff > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"low_pass: cut-off {cutoff} Hz at {rate} Hz: both must be positive")
    n = len(paths)
    if cutoff >= rate / 2 or n < 2:
        return np.array(paths, dtype=float)
    # gain^2 = 1 / (1 + x^(2 ORDER)) is 0.71 at x = (sqrt(2) - 1)^(1 / (2 ORDER)); x is a ratio of tangents by the
    # bilinear transform that makes the filter digital.
    x = (np.sqrt(2) - 1) ** (1 / (2 * ORDER))
    raised = rate / np.pi * np.arctan(np.tan(np.pi * cutoff / rate) / x)
    # Near half the rate the filter rings with the difference of the two frequencies.
    pad = int(np.ceil(_PAD * rate / min(cutoff, rate / 2 - cutoff)))
    whole = np.pad(paths, [(pad, pad), *[(0, 0)] * (paths.ndim - 1)], mode="reflect", reflect_type="odd")
    smooth = butterworth.filtered_both_ways(whole.reshape(len(whole), -1), butterworth.low_pass(raised, 1.0 / rate), 0)
    return smooth.reshape(whole.shape)[pad : pad + n]
