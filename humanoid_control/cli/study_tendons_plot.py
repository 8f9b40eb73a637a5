"""The plots of a tendon study: each joint's angle over the steps, actual and estimated, and the errors of all seeds."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from humanoid_control.cli.svg import SERIES, STYLE, png
from humanoid_control.simulation.studies.tendons.finding import DEGREES, Finding, Trace

ACTUAL, WIDE = "#bdbdbd", 4.0  # the actual angles lie as a wide line below the estimates
THIN, THICKER = 1.0, 0.6  # of the estimates: the last, and by how much those below it are wider
NEAR = 0.1  # of the actual range: estimates that mostly lie within that are drawn above the actual line
WIDTH, PANEL, ERRORS, REST = 10.0, 1.35, 1.9, 0.6  # [inch]
LEAST, MOST = 1e-2, 400.0  # errors at which the logarithmic scale ends [deg or mm]
MARGIN, BEYOND = 0.08, 0.5  # of the actual range: what is shown beyond it, at the least and of those that run away


def pictures(finding: Finding) -> dict[str, bytes]:
    """PNGs of an experiment by the name of the file, each about 1150 pixels wide."""
    from humanoid_control.cli.study_tendons_bars import built_in, seconds_plot

    traces = finding.traces
    out = {}
    for trace in traces:
        more = "_" + re.sub(r"[^A-Za-z0-9]+", "_", trace.title) if len(traces) > 1 else ""
        out[f"{finding.name}{more}.png"] = tendons_plot(trace)
    if built_in(finding):
        out[f"{finding.name}.png"] = seconds_plot(finding)
    return out


def tendons_plot(trace: Trace) -> bytes:
    """A PNG with one panel a joint, the errors of all seeds below; an estimate that runs away leaves its panel."""
    columns = _columns(len(trace.joints))
    rows = -(-len(trace.joints) // columns)
    cells: list[Any] = [[trace.joints[r * columns + c] for c in range(columns)] for r in range(rows)]
    if trace.spread:
        cells.append(["errors"] * columns)
    heights = [PANEL if columns > 2 else 1.2 * PANEL] * rows + [ERRORS] * bool(trace.spread)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, sum(heights) + REST), layout="constrained")
        axes = figure.subplot_mosaic(cells, height_ratios=heights)
    names = list(dict.fromkeys((*trace.lines, *trace.spread)))
    colours = dict(zip(names, SERIES, strict=False))
    unit = "°" if trace.unit == DEGREES else trace.unit
    for k, joint in enumerate(trace.joints):
        _walk(axes[joint], trace, k, colours)
        axes[joint].set_title(joint, fontsize=9)
        axes[joint].tick_params(labelbottom=k >= len(trace.joints) - columns)
        if k % columns == 0:
            axes[joint].set_ylabel(f"[{unit}]")
    if trace.spread:
        _spread(axes["errors"], trace, colours)
        axes["errors"].set_ylabel(f"[{unit}]")
    figure.suptitle(trace.title, fontsize=11)
    legend = list(colours.items())
    return png(figure, [("actual", ACTUAL), *legend] if trace.actual is not None else legend)


def _columns(joints: int) -> int:
    """The most of 4 that leaves no panel empty."""
    return next(c for c in (4, 3, 2, 1) if joints % c == 0 and not (c == joints == 4))


def _walk(ax: Axes, trace: Trace, k: int, colours: dict[str, str]) -> None:
    """Joint k of the first seed."""
    lines = {name: line[:, k] * trace.scale for name, line in trace.lines.items()}
    near: list[str] = []
    if trace.actual is not None:
        actual = trace.actual[:, k] * trace.scale
        ax.plot(actual, color=ACTUAL, linewidth=WIDE, solid_capstyle="round", zorder=2.1)
        _limit(ax, actual, list(lines.values()))
        near = [n for n in lines if np.median(np.abs(lines[n] - actual)) < NEAR * np.ptp(actual)]
    for name, line in lines.items():
        if name in near:  # above the actual line; the last is the thinnest, so that those below it are seen
            width, order = THIN + THICKER * (len(near) - 1 - near.index(name)), 2.2 + 0.01 * near.index(name)
        else:
            width, order = THIN, 2.0
        ax.plot(line, color=colours[name], linewidth=width, zorder=order)
    ax.set_xlim(0, len(line) - 1)


def _limit(ax: Axes, actual: np.ndarray, lines: Sequence[np.ndarray]) -> None:
    low, high = float(actual.min()), float(actual.max())
    room = max(high - low, 1.0)
    reach = [np.percentile(line, (2, 98)) for line in lines]
    low = min(low, max(min(r[0] for r in reach), low - BEYOND * room))
    high = max(high, min(max(r[1] for r in reach), high + BEYOND * room))
    ax.set_ylim(low - MARGIN * room, high + MARGIN * room)


def _spread(ax: Axes, trace: Trace, colours: dict[str, str]) -> None:
    """Median and worst of the absolute errors over the steps."""
    values = {name: np.maximum(v * trace.scale, LEAST) for name, v in trace.spread.items()}
    for name, (median, worst) in values.items():
        ax.fill_between(np.arange(len(median)), median, worst, color=colours[name], alpha=0.12, linewidth=0)
        ax.plot(worst, color=colours[name], linewidth=0.6, alpha=0.7)
        ax.plot(median, color=colours[name], linewidth=1.6)
    low = min(float(np.percentile(median, 1)) for median, _ in values.values())
    high = max(float(worst.max()) for _, worst in values.values())
    ax.set_yscale("log")
    ax.set_ylim(0.7 * low, min(1.5 * high, MOST))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_xlim(0, len(median) - 1)
    ax.set_xlabel("step")
    ax.set_title(f"{trace.of}: median (thick line) and worst (thin line)", fontsize=9)
