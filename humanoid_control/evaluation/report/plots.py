"""Score plots as inline SVG in the page's fonts and colours."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from humanoid_control.evaluation.report.tables import DEG, NAMES
from humanoid_control.evaluation.score import RobotScore
from humanoid_control.evaluation.tracking_error import BIN, LINKS, MEAN
from humanoid_control.files import whole_file
from humanoid_control.mocap.label_words import read_labels
from humanoid_control.mocap.stick_figure import StickFigure
from humanoid_control.retargeting.player import BONES
from humanoid_control.retargeting.scaling import POINTS

INK, GRID = "#010203", "#040506"  # placeholders for the page's text and line colours
SERIES = ("#d9702b", "#2f83c9", "#4a9d58", "#9a68c4", "#c2a01e", "#c94f6d", "#3fa7a0", "#8d8d8d")
"""Colours of the runs, readable on white and on black."""
WIDTHS = (2.6, *([1.2] * 7))
"""Line widths of the runs: the first remains visible where curves coincide."""
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
LARGEST = 115  # pixels per inch
PALE = "#d8d8d8"


def subplots(rows: int, columns: int, width: float, height: float, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure and a flat list of its axes; width and height in inches."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.ravel())


def svg(figure: Figure, title: str, legend: Sequence[tuple[str, str]] = ()) -> str:
    """Return the figure as a scalable <svg> element in page colours."""
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
    """Return the figure as PNG on white, with the legend below."""
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


# -------- Plots of a score

PAIRED = {"sternum": ("sternum",), "glenohumerals": ("l_gh", "r_gh"), "elbows": ("l_elbow", "r_elbow")} | {
    "wrists": ("l_wrist", "r_wrist"),
    "mean": (MEAN,),
}
WIDTH = 10.0


def error_bars(scores: Sequence[RobotScore]) -> str:
    """Return mean and standard deviation of each link on each robot, sides combined (Figs 6.26 and 6.30)."""
    title = "mean and standard deviation of the error of each link on each robot"
    return svg(_error_bars(scores), title, legend(scores[0]))


def error_picture(scores: Sequence[RobotScore]) -> bytes:
    """Return `error_bars` as PNG on white."""
    return png(_error_bars(scores), legend(scores[0]))


def _error_bars(scores: Sequence[RobotScore]) -> Figure:
    figure, axes = subplots(1, len(PAIRED), WIDTH, 1.2 + 0.32 * len(scores) * 1.4, sharex=True, sharey=True)
    runs = len(scores[0].runs)
    height = 0.8 / runs
    for ax, (title, links) in zip(axes, PAIRED.items(), strict=True):
        for i in range(runs):
            values = [np.concatenate([100 * s.runs[i].frames.errors[k] for k in links]) for s in scores]
            at = np.arange(len(scores)) + (i - (runs - 1) / 2) * height
            mean, std = [v.mean() for v in values], [v.std() for v in values]
            below = np.minimum(mean, std)  # errors are never negative
            ax.barh(at, mean, 0.9 * height, color=SERIES[i])
            ax.errorbar(mean, at, xerr=[below, std], fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        ax.set_title(title)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("cm")
    axes[0].set_yticks(range(len(scores)), [s.robot for s in scores])
    axes[0].invert_yaxis()
    return figure


def over_time(s: RobotScore) -> str:
    """Return mean error, deepest self-penetration and joints at a limit over the clip."""
    figure, axes = subplots(3, 1, WIDTH, 4.6, sharex=True, height_ratios=[2, 1, 1])
    t = np.arange(s.n_frames) / s.rate
    for i, r in enumerate(s.runs):
        axes[0].plot(t, 100 * r.frames.errors[MEAN], color=SERIES[i], linewidth=WIDTHS[i])
        axes[1].plot(t, 1000 * r.frames.penetration, color=SERIES[i], linewidth=WIDTHS[i])
        axes[2].plot(t, 100 * r.frames.quality.at_position_limit, color=SERIES[i], linewidth=WIDTHS[i])
    for ax, label in zip(axes, ("mean error\n[cm]", "penetration\n[mm]", "joints at\na limit [%]"), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
    axes[-1].set_xlabel("time [s]")
    axes[0].set_xlim(0, t[-1])
    return svg(figure, f"{s.robot}: error, penetration and joint limits over time", legend(s))


def histograms(s: RobotScore) -> str:
    """Return the error histogram of every link (Figs 6.1 to 6.21)."""
    figure, axes = subplots(2, 4, WIDTH, 3.6, sharex=True, sharey=True)
    for ax, name in zip(axes, LINKS, strict=True):
        for i, r in enumerate(s.runs):
            h = r.links[name].histogram
            ax.stairs(h.counts, 100 * h.edges, color=SERIES[i], fill=i == 0, alpha=0.5 if i == 0 else 1)
        ax.set_title(NAMES[name])
    for ax in axes[4:]:
        ax.set_xlabel(f"cm, bins of {100 * BIN:.0f}")
    for ax in (axes[0], axes[4]):
        ax.set_ylabel("frames")
    return svg(figure, f"{s.robot}: histograms of the errors", legend(s))


def joint_ranges(s: RobotScore) -> str:
    """Return the used within the available range of each joint (Figs 6.27 and 6.28)."""
    joints = [u.joint for u in s.runs[0].joints]
    figure, (ax,) = subplots(1, 1, WIDTH, 0.8 + 0.26 * len(joints))
    height = 0.7 / len(s.runs)
    for k, u in ((k, u) for k, u in enumerate(s.runs[0].joints) if np.isfinite([u.lower, u.upper]).all()):
        ax.barh(k, (u.upper - u.lower) * DEG, 0.86, u.lower * DEG, color="none", edgecolor=INK, linewidth=0.8)
    for i, r in enumerate(s.runs):
        at = np.arange(len(joints)) + (i - (len(s.runs) - 1) / 2) * height
        widths = [(u.used_upper - u.used_lower) * DEG for u in r.joints]
        ax.barh(at, widths, 0.9 * height, [u.used_lower * DEG for u in r.joints], color=SERIES[i])
    ax.set_yticks(range(len(joints)), [name.replace("_", " ") for name in joints])
    ax.set_ylim(len(joints) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("angle [°]; frame: available range, bar: used range")
    return svg(figure, f"{s.robot}: joint ranges used", legend(s))


def legend(s: RobotScore) -> list[tuple[str, str]]:
    """Return label and colour of every run."""
    return [(r.label, SERIES[i]) for i, r in enumerate(s.runs)]


# -------- Postures of the best and worst frame

CHAIN = (
    ("mid_hip", "sternum"),
    *(("sternum", f"{s}_gh") for s in "lr"),
    *((f"{s}_gh", f"{s}_elbow") for s in "lr"),
    *((f"{s}_elbow", f"{s}_wrist") for s in "lr"),
)
VIEWS = {"from the front": [1, 2], "from the right": [0, 2]}  # world axes to the right and up
TARGET = INK
MARGIN = 0.08  # [m]
LEG = ("knee", "ankle", "toe", "heel")


def postures(s: RobotScore) -> str:
    """Return dancer and robot at the deepest trough and highest peak of the mean error (Figs 6.3 to 6.25)."""
    moments = peak_moments(s)
    if not moments:  # a constant error has neither peak nor trough
        return ""
    figure, axes = subplots(len(moments), 4, 10.0, 2.9 * len(moments))
    body = _with_mid_hip(s)
    for row, (what, frame) in enumerate(moments):
        for column, (view, plane) in enumerate(VIEWS.items()):
            dancer, robot = axes[4 * row + 2 * column], axes[4 * row + 2 * column + 1]
            _draw(dancer, {k: v[frame] for k, v in body.items()}, BONES, plane, INK, "-", WIDTHS[1])
            wanted = dict(zip(POINTS, s.targets.positions[frame], strict=True)) | {"mid_hip": s.mid_hip}
            _draw(robot, wanted, CHAIN, plane, TARGET, "--", WIDTHS[1])
            for i, r in enumerate(s.runs):
                actual = dict(zip(POINTS, r.frames.reached[frame], strict=True)) | {"mid_hip": s.mid_hip}
                _draw(robot, actual, CHAIN, plane, SERIES[i], "-", WIDTHS[i])
            _frame(dancer, np.array([v[frame] for k, v in body.items() if k.split("_")[-1] not in LEG])[:, plane])
            _frame(robot, np.concatenate([list(wanted.values()), *(r.frames.reached[frame] for r in s.runs)])[:, plane])
            dancer.set_title(f"dancer {view}")
            robot.set_title(f"{s.robot} {view}")
        axes[4 * row].set_ylabel(f"{what}\n{frame / s.rate:.2f} s", rotation=0, ha="right")
    keys = [("desired, dashed", "currentColor"), *legend(s)]
    return svg(figure, f"{s.robot}: postures at trough and peak, desired and actual", keys)


def peak_moments(s: RobotScore) -> list[tuple[str, int]]:
    """Return (name, frame) of the deepest trough and highest peak of the first run's mean error."""
    link = s.runs[0].links[MEAN]
    return [(what, found[0].frame) for what, found in (("trough", link.troughs), ("peak", link.peaks)) if found]


def _with_mid_hip(s: RobotScore) -> dict[str, np.ndarray]:
    body = {name: s.targets.body[:, k] for k, name in enumerate(s.targets.body_names)}
    return body | {"mid_hip": (body["l_hip"] + body["r_hip"]) / 2}


def _draw(
    ax: Axes,
    points: Mapping[str, np.ndarray],
    bones: Sequence[tuple[str, str]],
    plane: list[int],
    color: str,
    style: str,
    width: float,
) -> None:
    rows = [np.array([points[a], points[b], [np.nan] * 3]) for a, b in bones if a in points and b in points]
    line = np.concatenate(rows)[:, plane]
    ax.plot(line[:, 0], line[:, 1], style, color=color, linewidth=width, marker="o", markersize=3)


def _frame(ax: Axes, points: np.ndarray) -> None:
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    middle, half = (low + high) / 2, float((high - low).max()) / 2 + MARGIN
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_box_aspect(1)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)


# -------- A clip


_COLOURS = {"l": "#c94f6d", "r": "#2f83c9", "": "#666666"}
_INCHES = 8.0  # height
_CROWDED = 60  # labels above which the font is small


def write_stick_figure(path: Path, figure: StickFigure, title: str) -> None:
    """Draw a stick figure from the front and from the left: left points red, right points blue.

    Args:
        path: .png file.

    Raises:
        ConfigError: if the file cannot be written.
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
