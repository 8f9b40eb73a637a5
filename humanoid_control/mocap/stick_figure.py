"""A person as a stick figure, out of any clip: lines between neighbours that keep their distance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.mocap.body_points import Placement, find_placement
from humanoid_control.mocap.clip import MarkerClip
from humanoid_control.mocap.marker_set_draft import draft_marker_set
from humanoid_control.mocap.marker_sets import BodyLocator

_FRAMES = 200  # that are looked at
_LENGTH = 0.1  # [1/m] weight of a distance against its relative deviation
_NEAR = 0.02  # [m] distances count as that at least
_ASPECT = 2.0  # height to width of a character


@dataclass(frozen=True, eq=False)
class StickFigure:
    """One frame of a clip, upright and facing +x.

    Args:
        labels: of the K points that are seen in the frame.
        positions: (K, 3) [m], z up; x forward where hips are known.
        bones: pairs of points that are joined.
        frame: which it is.
        placed: whether up and forward are known from hips and shoulders, not only guessed.
    """

    labels: tuple[str, ...]
    positions: np.ndarray
    bones: tuple[tuple[int, int], ...]
    frame: int
    placed: bool

    def views(self) -> Mapping[str, np.ndarray]:
        """(K, 2) positions across and up [m], seen from the front and from the person's left side."""
        x, y, z = self.positions.T
        return {"front": np.stack([y, z], axis=1), "left side": np.stack([-x, z], axis=1)}


def build_stick_figure(clip: MarkerClip, frame: int | None = None, marker_set: str | Path | None = None) -> StickFigure:
    """The stick figure of a clip; it needs no marker set, but stands better with one.

    Args:
        clip: any clip of one person.
        frame: by default the first of those that show the most points.
        marker_set: as for `find_body_points`; where none fits, that of `draft_marker_set`.

    Raises:
        ClipError: no such frame, or one that shows fewer than two points.
    """
    seen = ~np.isnan(clip.positions[..., 0])
    frame = int(np.argmax(seen.sum(axis=1))) if frame is None else frame
    if not 0 <= frame < clip.n_frames:
        raise ClipError(f"clip '{clip.name}': has no frame {frame}: it runs from 0 to {clip.n_frames - 1}")
    there = np.flatnonzero(seen[frame])
    if len(there) < 2:
        raise ClipError(f"clip '{clip.name}': shows {len(there)} point(s) in frame {frame}: choose another")
    placement, placed = _placement(clip, marker_set)
    positions = placement.apply(clip.positions[frame, there])
    frames = np.unique(np.linspace(0, clip.n_frames - 1, _FRAMES).astype(int))
    return StickFigure(
        tuple(clip.labels[k] for k in there), positions, _bones(clip.positions[frames][:, there]), frame, placed
    )


def _bones(positions: np.ndarray) -> tuple[tuple[int, int], ...]:
    """The tree that joins all points (T, K, 3) by the shortest and stiffest distances."""
    from scipy.sparse.csgraph import minimum_spanning_tree  # slow to import, and seldom needed

    n = positions.shape[1]
    cost = np.zeros((n, n))
    for k in range(n):
        distance = np.linalg.norm(positions - positions[:, k : k + 1], axis=2)
        there = ~np.isnan(distance).all(axis=0)
        mean, std = np.nanmean(distance[:, there], axis=0), np.nanstd(distance[:, there], axis=0)
        cost[k, there] = std / np.maximum(mean, _NEAR) + _LENGTH * mean
    tree = minimum_spanning_tree(np.maximum(cost, 1e-6) - 1e-6 * np.eye(n)).tocoo()  # joints in one place are joined
    return tuple((int(a), int(b)) for a, b in zip(tree.row, tree.col, strict=True))


def _placement(clip: MarkerClip, marker_set: str | Path | None) -> tuple[Placement, bool]:
    """Upright by a marker set or a draft; else by the longest side of the body, and then False."""
    try:
        points = BodyLocator(clip, marker_set).locate()
    except ClipError:
        points = {
            name: np.mean([clip.marker(label) for label in _found(clip, entry.labels[0])], axis=0)
            for name, entry in draft_marker_set(clip).points.items()
            if entry.labels and _found(clip, entry.labels[0])
        }
    try:
        return find_placement(points, clip.rate, clip.name), True
    except (ClipError, KeyError):
        pass
    extent = np.nanmedian(np.nanmax(clip.positions, axis=1) - np.nanmin(clip.positions, axis=1), axis=0)
    up = int(np.argmax(extent))
    return Placement(np.roll(np.eye(3), 2 - up, axis=0), np.zeros(3)), False


def _found(clip: MarkerClip, labels: tuple[str, ...]) -> list[str]:
    """The clip's labels that end with those of a draft."""
    return [own for label in labels for own in clip.labels if own.casefold().endswith(label.casefold())][: len(labels)]


def text_figure(figure: StickFigure, rows: int = 24) -> str:
    """The figure from the front and from the left, side by side, in characters: o is a point, dots are lines.

    Args:
        figure: what to draw.
        rows: height in lines.
    """
    views = []
    low, high = figure.positions[:, 2].min(), figure.positions[:, 2].max()
    step = max(float(high - low), 1e-6) / max(rows - 1, 1)  # [m] a line
    for name, points in figure.views().items():
        columns = np.rint((points[:, 0] - points[:, 0].min()) / step * _ASPECT).astype(int)
        lines = np.rint((high - points[:, 1]) / step).astype(int)
        grid = np.full((rows, max(int(columns.max()) + 1, len(name))), " ")
        for a, b in figure.bones:
            n = max(abs(columns[a] - columns[b]), abs(lines[a] - lines[b]), 1)
            share = np.linspace(0, 1, n + 1)
            across = np.rint(columns[a] + share * (columns[b] - columns[a])).astype(int)
            grid[np.rint(lines[a] + share * (lines[b] - lines[a])).astype(int), across] = "."
        grid[lines, columns] = "o"
        views.append([name.center(grid.shape[1]), *("".join(row) for row in grid)])
    return "\n".join("    ".join(pair).rstrip() for pair in zip(*views, strict=True))
