"""Report of `humanoid study tendons`: tables, plain values and plots of the experiments of Kawaharazuka 2018."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from evidence.studies.kawaharazuka2018.result import DEGREES, ExperimentResult, Trace
from evidence.studies.report import Progress, StudyReport, silent
from humanoid_control.evaluation.report.plots import SERIES, STYLE, png, subplots
from humanoid_control.terminal import ReportTable, machine, warn
from humanoid_control.warm_up import TENDONS, compile_first

if TYPE_CHECKING:
    from evidence.studies.kawaharazuka2018.result import ResultRow, Runs


# -------- Tables

COLUMNS = ("", "filter", "median", "median of the worst joint", "worst", "unit", "goal", "reached")
REACHED = {True: "yes", False: "no", None: ""}
FEW = 6  # joints that have a column each; more have a line each
SPENT = ("s", "GB")  # units of what is no error of joints


def summary(found: Sequence[ExperimentResult], runs: Runs) -> list[ReportTable | str]:
    """One line a filter: over all seeds and joints the median, the median of the worst joint, and the worst."""
    lines = [["" if k else f.name, *summary_line(row)] for f in found for k, row in enumerate(f.rows)]
    walks = f"{runs.seeds} seeds, {runs.steps} steps"
    parts: list[ReportTable | str] = [ReportTable(f"study tendons: {walks}", COLUMNS, lines)]
    for f in found:
        if f.table:
            parts.append(
                ReportTable(f"{f.name}, {f.title}", list(f.table[0]), [list(line.values()) for line in f.table])
            )
        parts.append(f"{f.name}, {f.title}{': ' if f.measure else ''}{f.measure}. Published: {f.source}.")
    return parts


def summary_line(row: ResultRow) -> list[Any]:
    """Cells of the summary after the first."""
    at, worst = int(np.argmax(row.median)), int(np.argmax(row.worst))
    name = row.joints[at] if len(row.joints) > 1 else ""
    where = f" ({row.joints[worst]})" if len(row.joints) > 1 and worst != at else ""
    middle = float(np.median(row.errors)) * row.scale
    return [
        row.name,
        f"{middle:.2f}",
        f"{row.median[at]:.2f} {name}".rstrip(),
        f"{row.worst[worst]:.2f}{where}",
        row.unit,
        str(row.goal or ""),
        REACHED[row.reached],
    ]


def detail_tables(f: ExperimentResult, runs: Runs) -> list[ReportTable]:
    """Every joint by every filter of one experiment."""
    tables, errors = [], [r for r in f.rows if r.unit not in SPENT]
    for joints, unit in dict.fromkeys((r.joints, r.unit) for r in errors):
        these = [r for r in errors if (r.joints, r.unit) == (joints, unit)]
        title = f"{f.name}: median (worst) of {runs.seeds} seeds, {runs.steps} steps [{unit}]"
        if len(joints) <= FEW:
            rows = [[r.name, *(_pair(r, k) for k in range(len(joints)))] for r in these]
            tables.append(ReportTable(title, ["filter", *joints], rows))
        else:
            lines = [[joint, *(_pair(r, k) for r in these)] for k, joint in enumerate(joints)]
            tables.append(ReportTable(title, ["joint", *(r.name for r in these)], lines))
    return tables


def _pair(row: ResultRow, k: int) -> str:
    return f"{row.median[k]:.2f} ({row.worst[k]:.2f})"


# -------- The study

ROBOT = "kengoro_upper"


def run_study(
    robot: str = ROBOT,
    only: Sequence[str] = (),
    seeds: int | None = None,
    steps: int | None = None,
    models: Path | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Run the experiments.

    Args:
        robot: name or path.
        only: names of some experiments; all where none is given.
        seeds, steps: how many walks, and how long each is; None: as published results are told.
        models: folder of others' arms.
        show: told how far it is.
    """
    from evidence.studies.kawaharazuka2018.experiments import chosen, run_experiments
    from evidence.studies.kawaharazuka2018.result import Runs
    from evidence.studies.kawaharazuka2018.testbed import TendonTestbed
    from humanoid_control.robots.catalogue import load_robot

    defaults = Runs()
    runs = Runs(defaults.seeds if seeds is None else seeds, defaults.steps if steps is None else steps)
    names, left_out = chosen(list(only), models)
    testbed = TendonTestbed(load_robot(robot, "fixed"))
    for line in left_out:
        warn(line)
    compile_first(TENDONS)
    found = run_experiments(testbed, names, runs, models, show)
    data = to_json(testbed.robot.name, found, runs, left_out)
    details = [t for f in found for t in detail_tables(f, runs)]
    return StudyReport(
        data, summary(found, runs), details, lambda: {name: png for f in found for name, png in pictures(f).items()}
    )


def to_json(robot: str, found: Sequence[ExperimentResult], runs: Runs, left_out: Sequence[str]) -> dict[str, Any]:
    """The study as plain dictionaries; errors in the unit of their row."""
    experiments = [
        {
            "name": f.name,
            "title": f.title,
            "source": f.source,
            "measure": f.measure or None,
            "rows": [
                {"name": r.name, "unit": r.unit, "joints": r.joints, "median": r.median, "worst": r.worst}
                | ({"goal": str(r.goal), "reached": r.reached} if r.goal else {})
                for r in f.rows
            ],
            "table": f.table,
        }
        for f in found
    ]
    head = {"study": "tendons", "robot": robot, "seeds": runs.seeds, "steps": runs.steps, "left_out": left_out}
    return {**head, "experiments": experiments, "machine": machine()}


# -------- Plots of angles and errors

ACTUAL, WIDE = "#bdbdbd", 4.0  # the actual angles lie as a wide line below the estimates
THIN, THICKER = 1.0, 0.6  # of the estimates: the last, and by how much those below it are wider
NEAR = 0.1  # of the actual range: estimates that mostly lie within that are drawn above the actual line
WIDTH, PANEL, ERRORS, REST = 10.0, 1.35, 1.9, 0.6  # [inch]
LEAST, MOST = 1e-2, 400.0  # errors at which the logarithmic scale ends [deg or mm]
MARGIN, BEYOND = 0.08, 0.5  # of the actual range: what is shown beyond it, at the least and of those that run away


def pictures(result: ExperimentResult) -> dict[str, bytes]:
    """PNGs of an experiment by the name of the file, each about 1150 pixels wide."""
    traces = result.traces
    out = {}
    for trace in traces:
        more = "_" + re.sub(r"[^A-Za-z0-9]+", "_", trace.title) if len(traces) > 1 else ""
        out[f"{result.name}{more}.png"] = tendons_plot(trace)
    if built_in(result):
        out[f"{result.name}.png"] = seconds_plot(result)
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


# -------- Plot of table I

PARTS = {"lengths of all postures": "data s", "regression": "regression s"}
SHORT = 0.01  # [s] where the logarithmic scale begins


def built_in(result: ExperimentResult) -> bool:
    """True where the result has the columns of table I."""
    return bool(result.table) and set(PARTS.values()) <= set(result.table[0])


def seconds_plot(result: ExperimentResult) -> bytes:
    """A PNG with bars on a logarithmic scale."""
    groups = [f"{line['group']}\n{line['data']:,} postures" for line in result.table]
    figure, axes = subplots(1, len(PARTS), 10.0, 1.1 + 0.62 * len(groups), sharex=True, sharey=True)
    at = np.arange(len(groups))
    for ax, (title, column) in zip(axes, PARTS.items(), strict=True):
        for k, prefix in enumerate(("", "source ")):
            seconds = np.array([line[prefix + column] for line in result.table], float)
            bars = ax.barh(at + 0.2 * (2 * k - 1), np.maximum(seconds, SHORT), 0.36, left=0, color=SERIES[k])
            ax.bar_label(bars, [f"{s:,.3g}" if s < 100 else f"{s:,.0f}" for s in seconds], padding=4, fontsize=8)
        ax.set_xscale("log")
        ax.set_xlim(SHORT, 3e5)
        ax.minorticks_off()
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        ax.grid(axis="y", visible=False)
        ax.set_title(title)
        ax.set_xlabel("s")
    axes[0].set_yticks(at, groups)
    axes[0].invert_yaxis()
    return png(figure, [("here, one core", SERIES[0]), ("Kawaharazuka 2018, 12 cores", SERIES[1])])
