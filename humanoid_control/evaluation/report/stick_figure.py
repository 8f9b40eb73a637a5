"""A stick figure of a clip as a picture, with the labels at its points."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from humanoid_control.files import whole_file
from humanoid_control.mocap.label_words import read_labels
from humanoid_control.mocap.stick_figure import StickFigure

_COLOURS = {"l": "#c94f6d", "r": "#2f83c9", "": "#666666"}
_INCHES = 8.0  # height
_CROWDED = 60  # labels, from which they are written small


def write_stick_figure(path: Path, figure: StickFigure, title: str) -> None:
    """Draw a stick figure from the front and from the left: left points red, right ones blue by their labels.

    Args:
        path: .png file.
        figure: what to draw.
        title: above it.

    Raises:
        ConfigError: it cannot be written.
    """
    sides = [word.side for word in read_labels([label.rpartition(":")[2] for label in figure.labels])]
    views = figure.views()
    widths = [float(max(points[:, 0].max() - points[:, 0].min(), 0.4)) + 0.4 for points in views.values()]
    tall = float(figure.positions[:, 2].max() - figure.positions[:, 2].min()) + 0.2
    canvas = Figure(figsize=(_INCHES * sum(widths) / tall + 1, _INCHES), layout="constrained")
    axes = canvas.subplots(1, len(views), width_ratios=widths, sharey=True)
    size = 7 if len(figure.labels) < _CROWDED else 4
    for ax, (name, points) in zip(axes, views.items(), strict=True):
        for a, b in figure.bones:
            ax.plot(points[[a, b], 0], points[[a, b], 1], color="#bbbbbb", linewidth=1.5, zorder=1)
        ax.scatter(points[:, 0], points[:, 1], s=18, c=[_COLOURS[side] for side in sides], zorder=2)
        for label, (across, up) in zip(figure.labels, points, strict=True):
            ax.annotate(label, (across, up), xytext=(4, 2), textcoords="offset points", fontsize=size)
        ax.set_aspect("equal")
        ax.set_title(name)
        ax.set_xlabel("m")
    canvas.suptitle(title)
    with whole_file(path) as part:
        canvas.savefig(part, dpi=110)
