"""The plot of table I: how long data and polynomials of each group take, beside the source's times."""

from __future__ import annotations

import numpy as np

from humanoid_control.cli.svg import SERIES, png, subplots
from humanoid_control.simulation.studies.tendons.finding import Finding

PARTS = {"lengths of all postures": "data s", "regression": "regression s"}
SHORT = 0.01  # [s] where the logarithmic scale begins


def built_in(finding: Finding) -> bool:
    """Whether the finding has the columns of table I."""
    return bool(finding.table) and set(PARTS.values()) <= set(finding.table[0])


def seconds_plot(finding: Finding) -> bytes:
    """A PNG with bars on a logarithmic scale."""
    groups = [f"{line['group']}\n{line['data']:,} postures" for line in finding.table]
    figure, axes = subplots(1, len(PARTS), 10.0, 1.1 + 0.62 * len(groups), sharex=True, sharey=True)
    at = np.arange(len(groups))
    for ax, (title, column) in zip(axes, PARTS.items(), strict=True):
        for k, prefix in enumerate(("", "source ")):
            seconds = np.array([line[prefix + column] for line in finding.table], float)
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
    return png(figure, [("ours, one core", SERIES[0]), ("the source, 12 cores", SERIES[1])])
