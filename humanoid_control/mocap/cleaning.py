"""Cleaning of a clip: label checks, gap filling, noise filter."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ConfigError, first_few
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.labels import MAX_ACCELERATION, MAX_SPEED, Jump, Swap, check_labels, repair_swaps


@dataclass(frozen=True)
class Gap:
    """Consecutive frames with an invisible marker.

    Attributes:
        start: first frame.
        frames: number.
        filled: short enough to be filled.
    """

    label: str
    start: int
    frames: int
    filled: bool


def find_gaps(clip: MarkerClip, limit_s: float) -> tuple[Gap, ...]:
    """Return all gaps by label and frame; those up to `limit_s` [s] are fillable."""
    limit = _limit(limit_s, clip.rate)
    gaps = []
    for marker, label in enumerate(clip.labels):
        hidden = np.isnan(clip.positions[:, marker, 0])
        if hidden.all():
            continue
        gaps += [Gap(label, int(a), int(b - a), bool(b - a <= limit)) for a, b in _edges(hidden)]
    return tuple(gaps)


def fill_gaps(clip: MarkerClip, limit_s: float) -> MarkerClip:
    """Fill gaps up to `limit_s` [s]; longer ones stay NaN.

    Inner gaps use monotone cubics (PCHIP), gaps at the ends the nearest sample.
    """
    positions = np.array(clip.positions)
    limit = _limit(limit_s, clip.rate)
    for marker in range(len(clip.labels)):
        hidden = np.isnan(positions[:, marker, 0])
        if hidden.any() and not hidden.all():
            positions[:, marker] = _filled(positions[:, marker], hidden & (_gap_lengths(hidden) <= limit))
    return replace(clip, positions=positions)


def longest_gap(positions: np.ndarray, rate: float) -> float:
    """Return the longest gap of a point (T, 3) [s]."""
    return float(_gap_lengths(np.isnan(positions[:, 0])).max(initial=0)) / rate


def _limit(limit_s: float, rate: float) -> float:
    """Return the longest filled gap [frames]."""
    return float(np.floor(limit_s * rate + 1e-6))


def _edges(hidden: np.ndarray) -> np.ndarray:
    """Return first frame and end (G, 2) of each gap."""
    return np.flatnonzero(np.diff(np.concatenate([[0], hidden.astype(np.int8), [0]]))).reshape(-1, 2)


def _gap_lengths(hidden: np.ndarray) -> np.ndarray:
    """Return the gap length at each frame (T,) [frames], else 0."""
    lengths = np.zeros(len(hidden), dtype=int)
    for start, end in _edges(hidden):
        lengths[start:end] = end - start
    return lengths


def _filled(path: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Return a path (T, 3) with frames `gap` (T,) interpolated."""
    from scipy.interpolate import PchipInterpolator  # slow import, seldom needed

    seen = np.flatnonzero(~np.isnan(path[:, 0]))
    frames = np.clip(np.flatnonzero(gap), seen[0], seen[-1])
    path = path.copy()
    path[gap] = PchipInterpolator(seen, path[seen])(frames) if len(seen) > 1 else path[seen[0]]
    return path


# -------- Cleaning

ORDER = 2  # of the Butterworth filter, run forward and backward
_PAD = 6.0  # periods of the cut-off by which the ends are padded


@dataclass(frozen=True)
class CleaningSettings:
    """Settings of `clean`.

    10 Hz keeps fast dance and arm motion (residual analysis after Winter 2009, section 3.4.4); 6 Hz, usual for walking,
    attenuates fast arms.

    Attributes:
        cutoff: [Hz]; None: no filter.
        max_gap: longest filled gap [s].
        check_labels: detect swaps and jumps.
        repair_swaps: undo swaps of exactly two markers.
        max_acceleration: beyond it a marker jumps [m/s^2].
        max_speed: after a gap [m/s].
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
                raise ConfigError(f"cleaning: {name} must be positive, got {value}")
        if not self.max_gap >= 0:
            raise ConfigError(f"cleaning: max_gap must not be negative, got {self.max_gap} s")


@dataclass(frozen=True)
class CleaningReport:
    """Findings and changes of `clean`.

    Attributes:
        gaps: of visible markers.
        swaps: labels swapped between frames.
        repaired: undone swaps.
        jumps: implausible motions, unchanged.
        cutoff: applied [Hz]; None: no filter.
        change: label -> RMS change by the filter [m].
        noun: "marker" or "joint".
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
        """Number of filled samples."""
        return sum(gap.frames for gap in self.gaps if gap.filled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each kind of problem, without filled gaps."""
        said = []
        left = [s for s in self.swaps if s not in self.repaired]
        for swaps, what in ((self.repaired, "were swapped and are corrected"), (left, "seem to be swapped")):
            if swaps:
                said.append(
                    f"labels {what}: {first_few(f'{s.labels[0]} and {s.labels[1]} at frame {s.frame}' for s in swaps)}"
                )
        if self.jumps:
            where = (f"{j.label} by {j.distance:.2f} m at frame {j.first}" for j in self.jumps)
            said.append(f"{self.noun}s jump impossibly far: {first_few(where)}")
        unfilled = [gap for gap in self.gaps if not gap.filled]
        if unfilled:
            where = (f"{g.label} for {g.frames} frames from {g.start}" for g in unfilled)
            said.append(f"gaps too long to fill: {first_few(where)}")
        return tuple(said)


def clean(clip: MarkerClip, settings: CleaningSettings | None = None) -> tuple[MarkerClip, CleaningReport]:
    """Check labels, fill gaps, filter noise; return the clip with warnings, and the report.

    A body point of several markers would hide the faulty one. Gaps are filled before the filter.
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
    """Return the filtered clip; long gaps are bridged only for the filter."""
    bridged = np.array(fill_gaps(clip, np.inf).positions)
    seen = ~np.isnan(bridged[0, :, 0])
    bridged[:, seen] = low_pass(bridged[:, seen], clip.rate, cutoff)
    bridged[np.isnan(clip.positions)] = np.nan
    return replace(clip, positions=bridged)


def low_pass(paths: np.ndarray, rate: float, cutoff: float) -> np.ndarray:
    """Return paths (T, ...) after a zero-lag second-order Butterworth filter, forward and backward.

    Source: Winter 2009, section 3.4.4. The single-pass cut-off is raised: both passes have the gain 0.71 at the cut-off
    and fall by 24 dB an octave. The ends are padded by point reflection.

    Args:
        paths: (T, ...) without NaN.
        rate: [Hz].
        cutoff: [Hz]; from half the rate on paths are unchanged.

    Raises:
        ConfigError: if rate or cut-off is not positive.
    """
    from humanoid_control.numerics import butterworth  # loads the compiler, not needed to read a clip

    if not (np.isfinite(cutoff) and cutoff > 0 and np.isfinite(rate) and rate > 0):
        raise ConfigError(f"low_pass: cutoff and rate must be positive, got {cutoff} Hz at {rate} Hz")
    n = len(paths)
    if cutoff >= rate / 2 or n < 2:
        return np.array(paths, dtype=float)
    # The gain of both passes, 1 / (1 + x^(2 ORDER)), is 0.71 at x = (sqrt(2) - 1)^(1 / (2 ORDER)). The bilinear
    # transform makes x a ratio of tangents.
    x = (np.sqrt(2) - 1) ** (1 / (2 * ORDER))
    raised = rate / np.pi * np.arctan(np.tan(np.pi * cutoff / rate) / x)
    # Near half the rate the filter rings at the difference of the two frequencies.
    pad = int(np.ceil(_PAD * rate / min(cutoff, rate / 2 - cutoff)))
    whole = np.pad(paths, [(pad, pad), *[(0, 0)] * (paths.ndim - 1)], mode="reflect", reflect_type="odd")
    smooth = butterworth.filtered_both_ways(whole.reshape(len(whole), -1), butterworth.low_pass(raised, 1.0 / rate), 0)
    return smooth.reshape(whole.shape)[pad : pad + n]
