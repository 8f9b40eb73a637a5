"""The plot of a calibration study: error of each offset over the seeds, inside three predicted standard errors."""

from __future__ import annotations

import numpy as np

from humanoid_control.cli.svg import SERIES, png, subplots
from humanoid_control.simulation.studies.calibration_study import LegStudy


def calibration_plot(legs: list[LegStudy]) -> bytes:
    """A PNG with one panel a leg: all poses beside one pose; joints that one pose does not bound are left out."""
    figure, axes = subplots(len(legs), 1, 8.0, 2.8 * len(legs))
    shown = [c for c in legs[0].cases if c.measure == "pose"]
    for study, ax in zip(legs, axes, strict=True):
        for n, case in enumerate(c for c in study.cases if c.measure == "pose"):
            at = np.arange(len(study.leg.joints)) + 0.26 * n - 0.13
            error = case.first.standard_error
            band = np.where(np.isfinite(error), 3 * np.degrees(error), np.nan)
            ax.bar(at, 2 * band, 0.22, -band, color=SERIES[n], alpha=0.25, linewidth=0)
            for errors in np.degrees(case.errors):
                ax.plot(at, np.where(np.isfinite(band), errors, np.nan), ".", color=SERIES[n], markersize=3)
        ax.set_xticks(range(len(study.leg.joints)), study.leg.joints, rotation=15, ha="right", fontsize=7)
        ax.set_ylabel(f"{study.leg.name}: error [°]")
    return png(figure, [(f"{c.poses} pose{'s' * (c.poses > 1)}", SERIES[n]) for n, c in enumerate(shown)])
