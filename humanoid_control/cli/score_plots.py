"""The plots of a score."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from humanoid_control.cli.score_tables import DEG, NAMES
from humanoid_control.cli.svg import INK, SERIES, WIDTHS, png, subplots, svg
from humanoid_control.imitation.error_histogram import BIN
from humanoid_control.imitation.link_error import LINKS, MEAN
from humanoid_control.imitation.score import RobotScore

PAIRED = {"sternum": ("sternum",), "glenohumerals": ("l_gh", "r_gh"), "elbows": ("l_elbow", "r_elbow")} | {
    "wrists": ("l_wrist", "r_wrist"),
    "mean": (MEAN,),
}
WIDTH = 10.0


def error_bars(scores: Sequence[RobotScore]) -> str:
    """Mean and standard deviation of each link on each robot, left and right together (Figs 6.26 and 6.30)."""
    title = "mean and standard deviation of the error of each link on each robot"
    return svg(_error_bars(scores), title, legend(scores[0]))


def error_picture(scores: Sequence[RobotScore]) -> bytes:
    """The same as a PNG on white."""
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
            below = np.minimum(mean, std)  # an error is never below 0
            ax.barh(at, mean, 0.9 * height, color=SERIES[i])
            ax.errorbar(mean, at, xerr=[below, std], fmt="none", ecolor=INK, elinewidth=1, capsize=2)
        ax.set_title(title)
        ax.grid(axis="y", visible=False)
        ax.set_xlabel("cm")
    axes[0].set_yticks(range(len(scores)), [s.robot for s in scores])
    axes[0].invert_yaxis()
    return figure


def over_time(s: RobotScore) -> str:
    """Mean error, deepest self-penetration and joints at a limit over the clip."""
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
    """Histogram of every link's error (Figs 6.1 to 6.21)."""
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
    """Range used in the range that each joint has (Figs 6.27 and 6.28)."""
    joints = [u.joint for u in s.runs[0].joints]
    figure, (ax,) = subplots(1, 1, WIDTH, 0.8 + 0.26 * len(joints))
    height = 0.7 / len(s.runs)
    for k, u in enumerate(s.runs[0].joints):
        ax.barh(k, (u.upper - u.lower) * DEG, 0.86, u.lower * DEG, color="none", edgecolor=INK, linewidth=0.8)
    for i, r in enumerate(s.runs):
        at = np.arange(len(joints)) + (i - (len(s.runs) - 1) / 2) * height
        widths = [(u.used_upper - u.used_lower) * DEG for u in r.joints]
        ax.barh(at, widths, 0.9 * height, [u.used_lower * DEG for u in r.joints], color=SERIES[i])
    ax.set_yticks(range(len(joints)), [name.replace("_", " ") for name in joints])
    ax.set_ylim(len(joints) - 0.4, -0.6)
    ax.margins(x=0.02)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("angle [°]; frame: the range there is, bar: the range used")
    return svg(figure, f"{s.robot}: joint ranges used", legend(s))


def legend(s: RobotScore) -> list[tuple[str, str]]:
    """Label and colour of every run."""
    return [(r.label, SERIES[i]) for i, r in enumerate(s.runs)]
