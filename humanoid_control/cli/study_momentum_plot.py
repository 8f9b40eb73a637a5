"""The plot of a momentum study: vertical momentum, its rate and an arm over one gait cycle."""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from humanoid_control.cli.svg import SERIES, subplots
from humanoid_control.ik.momentum_study import Lab, Outcome
from humanoid_control.ik.momentum_walk import WalkTask

DPI = 130
GREY, PALE = "#888888", "#dddddd"


def momentum_plot(lab: Lab, path: Path) -> None:
    """Write the PNG: still arms, method 0, method 1 in its best mode, method 2 with delta 0.5, ours."""
    shown = ["still", lab.reference(), lab.best_tracking(), "method 2 0.5", "ours"]
    runs: list[tuple[str, Outcome]] = [(m, lab.outcome(m)) for m in shown]
    runs.append(("ours, waist too", lab.outcome("ours", "arms+waist")))
    walk = WalkTask(lab.robot, lab.gait, "arms", lab.dt)
    joint = int(walk.groups.l_arm[0])
    figure, axes = subplots(3, 1, 8.0, 7.0, sharex=True, height_ratios=[3, 3, 2])
    for k, (name, o) in enumerate(runs):
        s = o.run.steady
        share = np.array([walk.clock(t) for t in o.run.t[s]]) / walk.gait.cycle % 1.0
        order = np.argsort(share)
        joints = np.degrees(o.run.q[s, lab.robot.iq + joint])
        for ax, values in zip(axes, (o.run.momentum[s, 2], o.run.rate[s, 2], joints), strict=True):
            ax.plot(100 * share[order], values[order], color=SERIES[k], label=name, linewidth=1.4)
    both = 100 * lab.gait.double_support / 2
    for ax in axes:
        for begin in (0.0, 50.0):
            ax.axvspan(begin, begin + both, color=GREY, alpha=0.15, linewidth=0)
        ax.grid(color=PALE)
        ax.axhline(0, color=GREY, linewidth=0.6)
    axes[0].set_ylabel("L_z [kg m²/s]")
    axes[1].set_ylabel("dL_z/dt [N m]")
    axes[2].set_ylabel(f"{lab.robot.joint_names[joint]} [°]")
    axes[2].set_xlabel("gait cycle [%]; grey: both feet stand")
    axes[2].set_xlim(0, 100)
    g = lab.gait
    axes[0].set_title(f"{lab.robot.title}: steps of {g.step_length:g} m in {g.step_time:g} s, vertical momentum")
    axes[0].legend(loc="upper left", ncols=3, fontsize=8, frameon=False)
    axes[0].margins(y=0.25)
    with matplotlib.rc_context({"font.size": 9}):
        figure.savefig(path, dpi=DPI, facecolor="white")
