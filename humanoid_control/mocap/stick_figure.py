"""Stick figure of any clip: lines between neighbours at constant distance."""

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

_FRAMES = 200  # sampled frames
_LENGTH = 0.1  # [1/m] weight of a distance relative to its relative deviation
_NEAR = 0.02  # [m] lower limit of distances
_ASPECT = 2.0  # height to width of a character


@dataclass(frozen=True, eq=False)
class StickFigure:
    """One frame of a clip, upright and facing +x.

    Attributes:
        labels: of the K visible points.
        positions: (K, 3) [m], z up; x forward if hips are known.
        bones: connected pairs.
        placed: up and forward are not guessed.
    """

    labels: tuple[str, ...]
    positions: np.ndarray
    bones: tuple[tuple[int, int], ...]
    frame: int
    placed: bool

    def views(self) -> Mapping[str, np.ndarray]:
        """Return (K, 2) across and up [m], from the front and the left."""
        x, y, z = self.positions.T
        return {"front": np.stack([y, z], axis=1), "left side": np.stack([-x, z], axis=1)}


def build_stick_figure(clip: MarkerClip, frame: int | None = None, marker_set: str | Path | None = None) -> StickFigure:
    """Return the stick figure of a clip.

    Args:
        frame: default: first with the most points.
        marker_set: as for `find_body_points`, else a draft.

    Raises:
        ClipError: if the frame does not exist, or shows fewer than two points.
    """
    seen = ~np.isnan(clip.positions[..., 0])
    frame = int(np.argmax(seen.sum(axis=1))) if frame is None else frame
    if not 0 <= frame < clip.n_frames:
        raise ClipError(f"clip '{clip.name}': frame must be between 0 and {clip.n_frames - 1}, got {frame}")
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
    """Return the tree of the shortest and stiffest distances of points (T, K, 3)."""
    from scipy.sparse.csgraph import minimum_spanning_tree  # slow import, seldom needed

    n = positions.shape[1]
    cost = np.zeros((n, n))
    for k in range(n):
        distance = np.linalg.norm(positions - positions[:, k : k + 1], axis=2)
        there = ~np.isnan(distance).all(axis=0)
        mean, std = np.nanmean(distance[:, there], axis=0), np.nanstd(distance[:, there], axis=0)
        cost[k, there] = std / np.maximum(mean, _NEAR) + _LENGTH * mean
    tree = minimum_spanning_tree(np.maximum(cost, 1e-6) - 1e-6 * np.eye(n)).tocoo()  # joins coincident joints, too
    return tuple((int(a), int(b)) for a, b in zip(tree.row, tree.col, strict=True))


def _placement(clip: MarkerClip, marker_set: str | Path | None) -> tuple[Placement, bool]:
    """Return the placement by a marker set or draft and True, else by extent and False."""
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
    """Return the clip's labels that end with those of a draft."""
    return [own for label in labels for own in clip.labels if own.casefold().endswith(label.casefold())][: len(labels)]


def text_figure(figure: StickFigure, rows: int = 24) -> str:
    """Return front and left view as `rows` lines: o: point, dots: lines."""
    views = []
    low, high = figure.positions[:, 2].min(), figure.positions[:, 2].max()
    step = max(float(high - low), 1e-6) / max(rows - 1, 1)  # [m] per line
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
