"""The plots of a tendon study: each joint's angle over the steps, actual and estimated."""

from __future__ import annotations

import numpy as np

from humanoid_control.cli.svg import SERIES, png, subplots
from humanoid_control.simulation.tendon_study.finding import Trace

ACTUAL = "#222222"
MANY = 4  # joints from which on there are two columns
MARGIN = 0.15  # of the actual range that is shown beyond it, where an estimate runs away


def tendons_plot(trace: Trace) -> bytes:
    """A PNG with one panel a joint; an estimate that runs away leaves the panel."""
    columns = 2 if len(trace.joints) > MANY else 1
    rows = -(-len(trace.joints) // columns)
    figure, axes = subplots(rows, columns, 8.0, 1.6 * rows + 0.8, sharex=True)
    for k, joint in enumerate(trace.joints):
        ax = axes[k]
        for n, line in enumerate(trace.lines.values()):
            ax.plot(np.degrees(line[:, k]), color=SERIES[n], linewidth=1.0)
        if trace.actual is not None:
            actual = np.degrees(trace.actual[:, k])
            ax.plot(actual, color=ACTUAL, linewidth=0.9, linestyle="--")
            room = max(MARGIN * np.ptp(actual), 1.0)
            reach = np.degrees([np.percentile(line[:, k], (2, 98)) for line in trace.lines.values()])
            low = max(reach.min(), actual.min() - 6 * room)
            high = min(reach.max(), actual.max() + 6 * room)
            ax.set_ylim(min(low, actual.min()) - room, max(high, actual.max()) + room)
        ax.set_ylabel(f"{joint} [°]", fontsize=7)
    for ax in axes[len(trace.joints) :]:
        ax.set_visible(False)
    axes[0].set_title(trace.title)
    axes[len(trace.joints) - 1].set_xlabel("step")
    legend = [(name, SERIES[n]) for n, name in enumerate(trace.lines)]
    return png(figure, [("actual", ACTUAL), *legend] if trace.actual is not None else legend)
