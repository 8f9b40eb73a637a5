"""The tables of a tendon study: a line for each filter beside its goal, and every joint where that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from humanoid_control.cli.output import console, table

if TYPE_CHECKING:
    from humanoid_control.simulation.studies.tendons.finding import Finding, Row, Runs

COLUMNS = ("", "filter", "median", "worst joint's median", "worst", "unit", "goal", "reached")
REACHED = {True: "yes", False: "no", None: ""}
FEW = 6  # joints that have a column each; more have a line each
SPENT = ("s", "GB")  # units of what is no error of joints


def print_summary(found: Sequence[Finding], runs: Runs) -> None:
    """One line a filter: over all seeds and joints the median, the worst joint's median, and the worst."""
    lines = [["" if k else f.name, *summary_line(row)] for f in found for k, row in enumerate(f.rows)]
    walks = f"{runs.seeds} seeds, {runs.steps} steps"
    table(f"study tendons: {walks}", COLUMNS, lines)
    for f in found:
        if f.table:
            table(f"{f.name}, {f.title}", list(f.table[0]), [list(line.values()) for line in f.table])
        console.print(f"{f.name}, {f.title}{': ' if f.measure else ''}{f.measure}. Source: {f.source}.")


def summary_line(row: Row) -> list[Any]:
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


def print_details(f: Finding, runs: Runs) -> None:
    """Every joint by every filter of one experiment."""
    errors = [r for r in f.rows if r.unit not in SPENT]
    for joints, unit in dict.fromkeys((r.joints, r.unit) for r in errors):
        these = [r for r in errors if (r.joints, r.unit) == (joints, unit)]
        title = f"{f.name}: median (worst) of {runs.seeds} seeds, {runs.steps} steps [{unit}]"
        if len(joints) <= FEW:
            table(title, ["filter", *joints], [[r.name, *(_pair(r, k) for k in range(len(joints)))] for r in these])
        else:
            lines = [[joint, *(_pair(r, k) for r in these)] for k, joint in enumerate(joints)]
            table(title, ["joint", *(r.name for r in these)], lines)


def _pair(row: Row, k: int) -> str:
    return f"{row.median[k]:.2f} ({row.worst[k]:.2f})"
