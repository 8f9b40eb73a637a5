"""Motion capture clip: named markers in metres, NaN where not visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from humanoid_control.errors import ClipError, UnknownNameError, first_few

_FRAME_TOLERANCE = 1e-6  # of a frame: times within it are equal
_NAMELESS = ("", "*")


class Frames:
    """Times of evenly sampled `positions` (T, ...) at `rate` [Hz]."""

    rate: float
    positions: np.ndarray

    @property
    def n_frames(self) -> int:
        """Number of frames T."""
        return len(self.positions)

    @property
    def duration(self) -> float:
        """Time from the first to the last frame [s]."""
        return (self.n_frames - 1) / self.rate

    @property
    def times(self) -> np.ndarray:
        """(T,) time since the first frame [s]."""
        return np.arange(self.n_frames) / self.rate


FARTHEST_MARKER = 1e7  # [m] from the origin, possibly of a map
SLOWEST_RATE, FASTEST_RATE = 1e-3, 1e6  # [Hz]


@dataclass(frozen=True, eq=False)
class MarkerClip(Frames):
    """Trajectories of named points on a moving person, in file axes.

    Attributes:
        labels: M distinct labels.
        rate: [Hz].
        positions: (T, M, 3) [m]; NaN in all three: not visible. Read-only copy.
        source: path, or "built in".
        warnings: corrections and guesses of the reader.
        noun: "marker", or "joint" of a skeleton.
        start: time of the first frame on the recording's clock, as for force plates [s].
        up: up axis of the file, such as "+y"; "": unknown.
        up_told: the user gave `up`.

    Raises:
        ClipError: if shapes, labels, frames or numbers are invalid.
    """

    name: str
    labels: tuple[str, ...]
    rate: float
    positions: np.ndarray
    source: str
    warnings: tuple[str, ...] = ()
    noun: str = "marker"
    start: float = 0.0
    up: str = ""
    up_told: bool = False

    def __post_init__(self) -> None:
        labels = tuple(self.labels)
        positions = np.array(self.positions, dtype=float)
        where = f"clip '{self.name}' ({self.source})"
        if positions.ndim != 3 or positions.shape[1:] != (len(labels), 3):
            raise ClipError(
                f"{where}: expected positions of shape (frames, {len(labels)} markers, 3), got {positions.shape}"
            )
        if not labels:
            raise ClipError(f"{where}: contains no markers: export the marker trajectories, not only analog data")
        if len(positions) < 2:
            raise ClipError(f"{where}: contains {len(positions)} frame(s), at least 2 are needed")
        twice = [label for label, count in Counter(labels).items() if count > 1]
        if twice:
            raise ClipError(f"{where}: label '{twice[0]}' occurs more than once: rename one of the {self.noun}s")
        if not (np.isfinite(self.rate) and self.rate > 0):
            raise ClipError(f"{where}: frame rate must be positive, got {self.rate} Hz: correct it in the file")
        if not SLOWEST_RATE <= self.rate <= FASTEST_RATE:
            raise ClipError(f"{where}: frame rate of {self.rate:g} Hz is implausible: correct it in the file")
        if not np.isfinite(self.start):
            raise ClipError(f"{where}: starts at {self.start} s: correct the time of its first frame")
        if np.isinf(positions).any():
            frame, marker, _ = np.argwhere(np.isinf(positions))[0]
            raise ClipError(f"{where}: '{labels[marker]}' is infinite in frame {frame}: export the clip again")
        far = np.abs(positions) > FARTHEST_MARKER
        if far.any():
            frame, marker, axis = np.argwhere(far)[0]
            away = f"{positions[frame, marker, axis]:.3g} m away in frame {frame}"
            raise ClipError(f"{where}: '{labels[marker]}' is {away}, which is implausible: export the clip again")
        positions[np.isnan(positions).any(axis=2)] = np.nan
        positions.setflags(write=False)
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "rate", float(self.rate))
        object.__setattr__(self, "start", float(self.start))
        object.__setattr__(self, "positions", positions)
        object.__setattr__(self, "warnings", tuple(self.warnings))

    @property
    def up_axis(self) -> np.ndarray | None:
        """(3,) unit vector upward, file axes; None: unknown."""
        return None if not self.up else float(f"{self.up[0]}1") * np.eye(3)["xyz".index(self.up[1])]

    @property
    def timestamps(self) -> np.ndarray:
        """(T,) times on the recording's clock [s]."""
        return self.start + self.times

    def index(self, label: str) -> int:
        """Return the column of a label, or raise UnknownNameError."""
        try:
            return self.labels.index(label)
        except ValueError:
            raise UnknownNameError(self.noun, label, self.labels) from None

    def marker(self, label: str) -> np.ndarray:
        """Return a path (T, 3) [m], file axes, or raise UnknownNameError."""
        return self.positions[:, self.index(label)]

    def select(self, labels: Iterable[str]) -> MarkerClip:
        """Return a clip of these markers, or raise UnknownNameError."""
        labels = tuple(labels)
        return replace(self, labels=labels, positions=self.positions[:, [self.index(label) for label in labels]])

    def crop(self, start_s: float, end_s: float) -> MarkerClip:
        """Return the frames from `start_s` to `end_s` [s] after the first, both included.

        `timestamps` stay on the recording's clock.

        Raises:
            ClipError: if fewer than two frames remain.
        """
        first = max(0, int(np.ceil(start_s * self.rate - _FRAME_TOLERANCE)))
        last = min(self.n_frames - 1, int(np.floor(end_s * self.rate + _FRAME_TOLERANCE)))
        if last <= first:
            raise ClipError(
                f"clip '{self.name}': no two frames between {start_s:g} s and {end_s:g} s: "
                f"it runs from 0 to {self.duration:.2f} s"
            )
        return replace(self, positions=self.positions[first : last + 1], start=self.start + first / self.rate)

    def resample(self, rate: float) -> MarkerClip:
        """Return the motion at another rate [Hz], linear between frames, without low-pass filter.

        Raises:
            ClipError: if the rate is not positive, or leaves fewer than two frames.
        """
        if not (np.isfinite(rate) and rate > 0):
            raise ClipError(f"clip '{self.name}': cannot resample to {rate} Hz: the rate must be positive")
        n = int(np.floor(self.duration * rate + _FRAME_TOLERANCE)) + 1
        frame = np.arange(n) * (self.rate / rate)
        before = np.minimum(np.floor(frame + _FRAME_TOLERANCE).astype(int), self.n_frames - 1)
        share = np.where(frame - before < _FRAME_TOLERANCE, 0.0, frame - before)[:, None, None]
        after = np.minimum(before + 1, self.n_frames - 1)
        between = (1 - share) * self.positions[before] + share * self.positions[after]
        # Exactly on a frame the next one must not matter: 0 * NaN is NaN.
        return replace(self, rate=rate, positions=np.where(share == 0.0, self.positions[before], between))


def distinct_labels(labels: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return usable labels and warnings: empty ones ("" or "*") named, repeated ones numbered."""
    labels = ["".join(c for c in label if c.isprintable()).strip() for label in labels]
    result: list[str] = []
    renamed: list[str] = []
    taken = set(labels)
    seen: set[str] = set()
    for position, label in enumerate(labels, start=1):
        unique = f"unlabelled_{position}" if label in _NAMELESS else label
        if unique in seen or (unique != label and unique in taken):
            while unique in seen or unique in taken:
                unique = f"{unique}_{position}"
            renamed.append(f"'{label}' to '{unique}'")
        seen.add(unique)
        result.append(unique)
    warnings = []
    nameless = sum(label in _NAMELESS for label in labels)
    if nameless:
        warnings.append(f"{nameless} point(s) have no label and were named unlabelled_<number>")
    if renamed:
        warnings.append(f"duplicate labels were renamed: {first_few(renamed, 3)}")
    return tuple(result), tuple(warnings)
