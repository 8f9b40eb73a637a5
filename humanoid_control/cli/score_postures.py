"""Posture pictures: the dancer, and the robot against its targets, where it is best and where it is worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from humanoid_control.cli.score_plots import legend
from humanoid_control.cli.svg import INK, SERIES, WIDTHS, subplots, svg
from humanoid_control.imitation.figure import BONES
from humanoid_control.imitation.link_error import MEAN
from humanoid_control.imitation.scaling import POINTS
from humanoid_control.imitation.score import RobotScore

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
    """Dancer and robot at the deepest trough and the highest peak of the mean error (Figs 6.3 to 6.25)."""
    moments = extreme_moments(s)
    if not moments:  # an error that never changes has neither peak nor trough
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


def extreme_moments(s: RobotScore) -> list[tuple[str, int]]:
    """(what, frame) of the deepest trough and the highest peak of the first run's mean error."""
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
    """Bones between named points, as one line with gaps."""
    rows = [np.array([points[a], points[b], [np.nan] * 3]) for a, b in bones if a in points and b in points]
    line = np.concatenate(rows)[:, plane]
    ax.plot(line[:, 0], line[:, 1], style, color=color, linewidth=width, marker="o", markersize=3)


def _frame(ax: Axes, points: np.ndarray) -> None:
    """A square around points (P, 2), the same scale in both directions; what lies outside is cut off."""
    low, high = np.nanmin(points, axis=0), np.nanmax(points, axis=0)
    middle, half = (low + high) / 2, float((high - low).max()) / 2 + MARGIN
    ax.set_xlim(middle[0] - half, middle[0] + half)
    ax.set_ylim(middle[1] - half, middle[1] + half)
    ax.set_box_aspect(1)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
