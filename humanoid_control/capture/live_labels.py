"""Labels of live frames: the same markers always in the same order, and nobody twice."""

from __future__ import annotations

from collections import Counter

import numpy as np

MAX_LABELS = 400  # more in one frame are left out


def distinct(labels: tuple[str, ...], positions: np.ndarray) -> tuple[list[str], np.ndarray, list[str]]:
    """A frame without the labels that occur twice in it: nobody knows which of the two is right.

    Args:
        labels: M names. positions: (M, 3) [m].

    Returns:
        The labels and positions that are left, and the labels that occur twice.
    """
    twice = sorted(label for label, n in Counter(labels).items() if n > 1)
    keep = [k for k, label in enumerate(labels) if label not in twice][:MAX_LABELS]
    return [labels[k] for k in keep], positions[keep], twice


class LabelOrder:
    """Puts the markers of each frame into one order.

    Attributes:
        twice: wanted labels that occur twice in the last frame; they count as hidden.
    """

    def __init__(self, wanted: tuple[str, ...]) -> None:
        """Make an order of these M labels."""
        self.wanted, self.twice = wanted, list[str]()
        self._labels: tuple[str, ...] | None = None
        self._columns = np.zeros(len(wanted), dtype=int)

    def arrange(self, labels: tuple[str, ...], positions: np.ndarray) -> np.ndarray:
        """(M, 3) positions [m] in the order of the wanted labels, NaN for those that are not in the frame."""
        if labels != self._labels:
            count = Counter(labels)
            column = {label: k for k, label in enumerate(labels) if count[label] == 1}
            self.twice = [label for label in self.wanted if count[label] > 1]
            self._labels, self._columns = labels, np.array([column.get(n, len(labels)) for n in self.wanted])
        return np.concatenate([positions, np.full((1, 3), np.nan)])[self._columns]
