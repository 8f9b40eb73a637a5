"""Matplotlib figures as SVG text that lives inside a page: no fonts, no scripts, the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

INK, GRID = "#010203", "#040506"  # stand for the page's text and line colours; no plot uses them otherwise
SERIES = ("#d9702b", "#2f83c9", "#4a9d58", "#9a68c4", "#c2a01e", "#c94f6d", "#3fa7a0", "#8d8d8d")
"""Colours of the runs, in their order; each is readable on white and on black."""
WIDTHS = (2.6, *([1.2] * 7))
"""Line widths of the runs: the first shows at both sides of the others where they coincide."""
FONT = "system-ui, sans-serif"
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "humanoid_control",
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.titlesize": 9,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "grid.linewidth": 0.5,
    "xtick.color": INK,
    "ytick.color": INK,
    "path.simplify_threshold": 0.5,
}
LARGEST = 115  # pixels an inch
PALE = "#d8d8d8"


def subplots(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with a grid of axes, in one flat list; width and height in inches."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def svg(figure: Figure, title: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """The figure as an <svg> element that grows with the page and takes its colours from it.

    Args:
        figure: made by `subplots`.
        title: said to those who cannot see it.
        legend: (label, colour) of the series, shown above.
    """
    out = io.StringIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = text.replace(INK, "var(--ink)").replace(GRID, "var(--line)").replace("'DejaVu Sans'", FONT)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    width = figure.get_figwidth() * LARGEST
    keys = "".join(f'<span><b style="color:{color}">\u25a0</b> {escape(label)}</span>' for label, color in legend)
    image = text.replace("<svg", f'<svg role="img" aria-label="{escape(title)}" style="max-width:{width:.0f}px"', 1)
    return (f'<p class="legend">{keys}</p>\n' if keys else "") + image


def png(figure: Figure, legend: Sequence[tuple[str, str]] = ()) -> bytes:
    """The figure as a PNG on white, its legend below."""
    out = io.BytesIO()
    for axes in figure.axes:
        lines: tuple[Any, ...] = (*axes.get_xgridlines(), *axes.get_ygridlines(), *axes.spines.values())
        for line in lines:
            line.set_color(PALE)
    with matplotlib.rc_context(STYLE):
        keys = [Patch(color=color, label=label) for label, color in legend]
        if keys:
            figure.legend(handles=keys, loc="outside lower center", ncols=len(keys), frameon=False)
        figure.savefig(out, format="png", dpi=LARGEST, facecolor="white")
    return out.getvalue()
