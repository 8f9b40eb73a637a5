"""Distances between labels: ends of bones, and joints of a skeleton."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np

from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.label_words import LabelWord

_FRAMES = 300  # sampled frames
RIGID = 3e-3  # relative deviation of neighbour distances in a skeleton; skin moves more
LENGTH = (0.08, 0.75)  # [m] of a bone
_RATIO = 2.0  # largest ratio of the two bones of a limb
_STILL = 0.02  # [m] of motion below which rigidity is not decidable


@dataclass(frozen=True)
class Candidate:
    """Labels that may be one point, clarity of words (0: best), True if misspelt."""

    words: tuple[LabelWord, ...]
    level: int
    odd: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(word.label for word in self.words)


class LabelGeometry:
    """Median distances between labels over sampled frames.

    Attributes:
        paths: label -> (T, 3) [m].
    """

    def __init__(self, clip: MarkerClip, written: Mapping[str, str]) -> None:
        """Sample a clip.

        Args:
            written: label without prefix -> label.
        """
        frames = np.unique(np.linspace(0, clip.n_frames - 1, _FRAMES).astype(int))
        self.paths = {own: clip.positions[frames, clip.index(label)] for own, label in written.items()}
        self._bones: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[float, float]] = {}

    def path(self, labels: Sequence[str]) -> np.ndarray:
        """Return the middle (T, 3) of labels [m]."""
        return np.mean([self.paths[label] for label in labels], axis=0)

    def bone(self, a: Sequence[str], b: Sequence[str]) -> tuple[float, float]:
        """Return median length [m] and relative deviation between points, or NaN."""
        key = tuple(a), tuple(b)
        if key not in self._bones:
            lengths = np.linalg.norm(self.path(a) - self.path(b), axis=1)
            lengths = lengths[~np.isnan(lengths)]
            median = float(np.median(lengths)) if lengths.size else float("nan")
            self._bones[key] = median, float(lengths.std()) / max(median, 1e-6) if lengths.size else float("inf")
        return self._bones[key]

    def rigid(self, names: Sequence[str]) -> bool:
        """Return True if most labels move and keep a distance better than skin."""
        if len(names) < 3:
            return False
        X = np.stack([self.paths[name] for name in names], axis=1)
        X = X[~np.isnan(X).any(axis=(1, 2))]
        if len(X) < 2 or np.median(np.linalg.norm(X.std(axis=0), axis=1)) < _STILL:
            return False
        distance = np.linalg.norm(X[:, :, None] - X[:, None], axis=3)
        mean, std = distance.mean(axis=0), distance.std(axis=0)
        near = (mean > 0.02) & (mean < 0.6)
        loose = np.where(near, std / np.maximum(mean, 1e-6), 1.0).min(axis=1)
        return bool(np.median(loose) < RIGID)


def find_limb(
    candidates: Sequence[Sequence[Candidate]], geometry: LabelGeometry, loosest: float
) -> tuple[list[Candidate | None], bool]:
    """Return the best candidate of each joint, and True if bones confirm all.

    Args:
        candidates: of each joint from the trunk outward.
        loosest: largest relative deviation of a bone.
    """
    best: tuple[float, list[Candidate | None], bool] = (-np.inf, [None] * len(candidates), False)
    for chosen in product(*[[*c, None] for c in candidates]):
        labels = [label for c in chosen if c for label in c.labels]
        if len(set(labels)) < len(labels):
            continue
        score = sum(3.0 - 0.5 * c.level - 0.5 * c.odd for c in chosen if c)
        bones = [geometry.bone(a.labels, b.labels) for a, b in pairwise(chosen) if a and b]
        fits = [LENGTH[0] < length < LENGTH[1] and loose < loosest for length, loose in bones]
        score -= 2.5 * sum(not fit for fit in fits) + 5.0 * sum(min(loose, 0.2) for _, loose in bones)
        whole = len(bones) == len(candidates) - 1
        if whole and not 1 / _RATIO < bones[0][0] / max(bones[1][0], 1e-6) < _RATIO:
            score -= 1.5
        if score > best[0]:
            best = (score, list(chosen), whole and all(fits))
    return best[1], best[2]
