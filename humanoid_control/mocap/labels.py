"""Faulty labels: swaps of two markers, and implausible jumps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from humanoid_control.mocap.clip import MarkerClip

MAX_ACCELERATION = 300.0  # [m/s^2] 30 g: exceeded by hand and foot markers only in impacts
MAX_SPEED = 20.0  # [m/s] of a marker with unknown velocity
NOISE = 0.05  # [m] smaller errors are not jumps
_SWAP_STEP = 0.03  # [m] closer markers may swap unnoticed, and without harm
_SWAP_GAIN = 0.3  # largest remaining share of the distance from the expected places after a swap
_SETTLED = 2  # frames after a jump until the velocity is trusted


@dataclass(frozen=True)
class Swap:
    """Two markers that swap labels between frames.

    Attributes:
        frame: first swapped (or restored) frame.
        unambiguous: no third marker is involved.
    """

    labels: tuple[str, str]
    frame: int
    unambiguous: bool


@dataclass(frozen=True)
class Jump:
    """Marker with implausible motion.

    Attributes:
        first: frame.
        last: frame.
        distance: largest, from the expected place [m].
    """

    label: str
    first: int
    last: int
    distance: float


def check_labels(
    clip: MarkerClip, max_acceleration: float = MAX_ACCELERATION, max_speed: float = MAX_SPEED
) -> tuple[tuple[Swap, ...], tuple[Jump, ...]]:
    """Return swaps by time, and jumps by label.

    Markers are expected at constant velocity. Two markers that miss by more than 3 cm and meet each other's expected
    place are a swap. A marker that misses by more than 5 cm + max_acceleration dt^2, or after a gap 5 cm + max_speed
    times the gap, is a jump.

    Args:
        max_acceleration: [m/s^2].
        max_speed: [m/s].
    """
    state = _State(clip)
    limits = max_acceleration / clip.rate**2, max_speed / clip.rate
    swaps: list[Swap] = []
    events: dict[int, list[tuple[int, float]]] = {}
    busy = np.append(np.flatnonzero(~_quiet(clip.positions)), clip.n_frames)
    frame = 0
    while frame < clip.n_frames:
        if state.settled_throughout() and (following := int(busy[np.searchsorted(busy, frame)])) > frame:
            state.skip(frame, following)
            frame = following
            continue
        for pair, alone in state.exchanges(frame):
            swaps.append(Swap((clip.labels[pair[0]], clip.labels[pair[1]]), frame, alone))
        for marker, distance in state.advance(frame, *limits):
            events.setdefault(marker, []).append((frame, distance))
        frame += 1
    jumps = [jump for marker, found in sorted(events.items()) for jump in _grouped(clip.labels[marker], found)]
    return tuple(swaps), tuple(jumps)


class _State:
    """State of all markers; swaps are undone in a copy of the tracks."""

    def __init__(self, clip: MarkerClip) -> None:
        self.tracks = np.array(clip.positions)
        n_markers = len(clip.labels)
        self.last = np.full((n_markers, 3), np.nan)
        self.velocity = np.zeros((n_markers, 3))  # [m/frame]
        self.age = np.zeros(n_markers, dtype=int)  # frames since last visible
        self.settled = np.zeros(n_markers, dtype=int)  # consecutive good frames

    def settled_throughout(self) -> bool:
        """Return True if the velocity of every visible marker is trusted."""
        return bool((self.settled[self.age == 0] >= _SETTLED).all())

    def skip(self, frame: int, following: int) -> None:
        """Skip quiet frames (deviations below the noise)."""
        now, before = self.tracks[following - 1], self.tracks[following - 2]
        seen = self.age == 0
        self.velocity[seen], self.last[seen] = now[seen] - before[seen], now[seen]
        self.age[~seen] += following - frame

    def exchanges(self, frame: int) -> list[tuple[tuple[int, int], bool]]:
        """Return swapped pairs, and True if unambiguous; these are undone."""
        now, expected = self.tracks[frame], self._expected()
        suspects = np.flatnonzero(np.linalg.norm(now - expected, axis=1) > _SWAP_STEP)
        pairs = _exchanged(now, expected, suspects) if len(suspects) > 1 else []
        found = [(pair, not any(set(pair) & set(other) for other in pairs if other != pair)) for pair in pairs]
        for (a, b), alone in found:
            if alone:
                self.tracks[frame:, [a, b]] = self.tracks[frame:, [b, a]]
        return found

    def advance(self, frame: int, acceleration: float, speed: float) -> list[tuple[int, float]]:
        """Process a frame; return jumped markers and distances [m].

        Args:
            acceleration: limit [m per frame^2].
            speed: limit [m per frame].
        """
        now = self.tracks[frame]
        seen = ~np.isnan(now[:, 0])
        missed = np.linalg.norm(now - self._expected(), axis=1)
        limit = NOISE + np.where(self._moving(), acceleration, speed * (self.age + 1))
        jumped = missed > limit  # False if either is unknown
        steady = seen & ~np.isnan(self.last[:, 0]) & (self.age == 0) & ~jumped
        self.settled = np.where(steady, self.settled + 1, np.where(seen, 0, self.settled))
        self.velocity[seen] = np.where(steady[seen, None], now[seen] - self.last[seen], 0.0)
        self.last[seen] = now[seen]
        self.age = np.where(seen, 0, self.age + 1)
        return [(int(marker), float(missed[marker])) for marker in np.flatnonzero(jumped)]

    def _moving(self) -> np.ndarray:
        return (self.age == 0) & (self.settled >= _SETTLED)

    def _expected(self) -> np.ndarray:
        """Return the expected positions (M, 3) in the next frame [m]."""
        return self.last + np.where(self._moving()[:, None], self.velocity, 0.0)


def _quiet(positions: np.ndarray) -> np.ndarray:
    """Return True (T,) where each marker moves steadily or stays missing; invariant under swaps."""
    quiet = np.zeros(len(positions), dtype=bool)
    off_course = np.linalg.norm(np.diff(positions, 2, axis=0), axis=2)
    missing = np.isnan(positions[..., 0])
    still_missing = missing[2:] & missing[1:-1] & missing[:-2]
    quiet[2:] = ((off_course <= _SWAP_STEP) | still_missing).all(axis=1)
    return quiet


def _exchanged(now: np.ndarray, expected: np.ndarray, suspects: np.ndarray) -> list[tuple[int, int]]:
    """Return pairs much nearer to their expected places with swapped labels."""
    # (S, S): from the expected place of the first to the present place of the second
    distance = np.linalg.norm(now[suspects][None] - expected[suspects][:, None], axis=2)
    nearer = distance < _SWAP_GAIN * np.diag(distance)[:, None]
    first, second = np.nonzero(np.triu(nearer & nearer.T, 1))
    return list(zip(suspects[first].tolist(), suspects[second].tolist(), strict=True))


def _grouped(label: str, found: list[tuple[int, float]]) -> list[Jump]:
    """Merge jumps at neighbouring frames: away and back."""
    jumps: list[Jump] = []
    for frame, distance in found:
        if jumps and frame - jumps[-1].last <= _SETTLED + 1:
            jumps[-1] = Jump(label, jumps[-1].first, frame, max(distance, jumps[-1].distance))
        else:
            jumps.append(Jump(label, frame, frame, distance))
    return jumps


def repair_swaps(clip: MarkerClip, swaps: Iterable[Swap]) -> tuple[np.ndarray, tuple[Swap, ...]]:
    """Undo the unambiguous swaps; return positions (T, M, 3) and the swaps.

    Motion does not show which assignment is right: the more frequent one is kept.
    """
    positions = np.array(clip.positions)
    undone = tuple(swap for swap in swaps if swap.unambiguous)
    for swap in undone:
        a, b = (clip.index(label) for label in swap.labels)
        positions[swap.frame :, [a, b]] = positions[swap.frame :, [b, a]]
    for pair in {swap.labels for swap in undone}:
        if any(set(pair) & set(other.labels) and other.labels != pair for other in undone):
            continue  # chain over three markers: the first frame counts as right
        edges = [0, *(swap.frame for swap in undone if swap.labels == pair), clip.n_frames]
        if sum(np.diff(edges)[1::2]) > sum(np.diff(edges)[::2]):
            a, b = (clip.index(label) for label in pair)
            positions[:, [a, b]] = positions[:, [b, a]]
    return positions, undone
