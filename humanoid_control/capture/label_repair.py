"""Labels put right: swaps of two markers undone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.label_check import Swap


def repair_swaps(clip: MarkerClip, swaps: Iterable[Swap]) -> tuple[np.ndarray, tuple[Swap, ...]]:
    """Undo the unambiguous swaps.

    Motion tells when two labels are exchanged, not which of the two is right: the assignment that holds for more frames
    is taken to be.

    Args:
        clip: as given to `check_labels`.
        swaps: what it found.

    Returns:
        (T, M, 3) positions, and the swaps that were undone.
    """
    positions = np.array(clip.positions)
    undone = tuple(swap for swap in swaps if swap.unambiguous)
    for swap in undone:
        a, b = (clip.index(label) for label in swap.labels)
        positions[swap.frame :, [a, b]] = positions[swap.frame :, [b, a]]
    for pair in {swap.labels for swap in undone}:
        if any(set(pair) & set(other.labels) and other.labels != pair for other in undone):
            continue  # a chain over three markers: the first frame is taken to be right
        edges = [0, *(swap.frame for swap in undone if swap.labels == pair), clip.n_frames]
        if sum(np.diff(edges)[1::2]) > sum(np.diff(edges)[::2]):
            a, b = (clip.index(label) for label in pair)
            positions[:, [a, b]] = positions[:, [b, a]]
    return positions, undone
