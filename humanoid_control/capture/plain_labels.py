"""Labels for comparison: what a marker is called, whoever wears it and however it is written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from humanoid_control.capture.clip import MarkerClip
from humanoid_control.capture.marker_set_file import Alternatives

_SKELETON = 8  # labels; with fewer a common beginning may be part of the names

Labels = Mapping[str, tuple[str, ...]]
"""A clip's labels, as written, by their plain form; several where only the subject or the case differs."""


def plain_label(label: str) -> str:
    """A label for comparison: without the "Subject:" before it, and without regard to case."""
    return label.rpartition(":")[2].strip().casefold()


def _prefix(labels: tuple[str, ...]) -> str:
    """What all joints of a skeleton carry before their names, like "Model_"; "" when they do not."""
    prefix = labels[0][: labels[0].find("_") + 1]
    return prefix if len(labels) >= _SKELETON and all(label.startswith(prefix) for label in labels) else ""


def plain_labels(clip: MarkerClip) -> dict[str, tuple[str, ...]]:
    """The labels of all markers that are seen at least once."""
    labels: dict[str, tuple[str, ...]] = {}
    prefix = _prefix(clip.labels)
    for label, seen in zip(clip.labels, ~np.isnan(clip.positions[..., 0]).all(axis=0), strict=True):
        if seen:
            plain = plain_label(label.removeprefix(prefix))
            labels[plain] = (*labels.get(plain, ()), label)
    return labels


def pick_labels(alternatives: Alternatives, labels: Labels) -> list[tuple[str, ...]] | None:
    """The first alternative of which the clip has all labels, as the clip writes them."""
    for wanted in alternatives:
        if all(plain_label(label) in labels for label in wanted):
            return [labels[plain_label(label)] for label in wanted]
    return None
