"""Score as tables for terminal and page, and as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from humanoid_control.evaluation.score import RobotScore, RunScore
from humanoid_control.evaluation.self_collision import ARM_TORSO_COLUMNS
from humanoid_control.evaluation.tracking_error import LINKS, MEAN, ErrorPeak
from humanoid_control.terminal import ReportTable

DEG = 180 / np.pi
NAMES = {
    "sternum": "sternum",
    "l_gh": "left GH",
    "r_gh": "right GH",
    "l_elbow": "left elbow",
    "r_elbow": "right elbow",
    "l_wrist": "left wrist",
    "r_wrist": "right wrist",
    MEAN: "mean",
}
UNITS = {"length": "m", "angle": "rad", "time": "s", "speed": "rad/s", "acceleration": "rad/s^2", "jerk": "rad/s^3"}


def summary_tables(scores: Sequence[RobotScore]) -> list[ReportTable]:
    """Return tables that compare the robots."""
    return [error_table(scores), collision_table(scores), quality_table(scores)]


def detail_tables(s: RobotScore) -> list[ReportTable]:
    """Return all tables of one robot."""
    costs = [] if s.costs is None else [s.costs.table()]
    return [*costs, distribution_table(s), peak_table(s), joint_table(s), other_collisions_table(s)]


def verdict_lines(scores: Sequence[RobotScore]) -> list[str]:
    """Return a sentence per robot: error, main cause, and helpful changes."""
    return ["; ".join([s.costs.verdict, *s.costs.advice()]) for s in scores if s.costs is not None]


def error_table(scores: Sequence[RobotScore]) -> ReportTable:
    """Return mean and standard deviation of every link."""
    rows = [
        [s.robot, r.label, *(f"{100 * r.links[k].mean:.1f} ± {100 * r.links[k].std:.1f}" for k in LINKS)]
        for s, r in _runs(scores)
    ]
    return ReportTable("error of each link [cm], mean ± standard deviation", ["robot", "", *NAMES.values()], rows)


def collision_table(scores: Sequence[RobotScore]) -> ReportTable:
    """Return collisions as in Table 6.6 of Dube 2012."""
    rows = [
        [s.robot, r.label, *r.collisions.arm_torso.values(), r.collisions.total, r.collisions.frames]
        + [round(1000 * r.collisions.worst, 1), sum(r.collisions.others.values())]
        for s, r in _runs(scores)
    ]
    columns = ["robot", "", *ARM_TORSO_COLUMNS, "sum", "frames N", "deepest mm", "other pairs"]
    note = "A frame counts once for each colliding arm, left plus right; a hand belongs to its lower arm. "
    note += "Other pairs: each pair separately."
    return ReportTable("self-collisions of the arms with the torso [frames]", columns, rows, note)


def quality_table(scores: Sequence[RobotScore]) -> ReportTable:
    """Return limits, speed, acceleration, jerk, drift."""
    rows = []
    for s, r in _runs(scores):
        q = r.quality
        rows.append(
            [s.robot, r.label, round(100 * q.at_position_limit, 1), round(100 * q.frames_at_speed_limit, 1)]
            + [f"{level.max:.3g} / {level.p99:.3g}" for level in (q.speed, q.acceleration, q.jerk)]
            + [round(100 * v, 2) + 0.0 for v in (r.singularity.share_near, r.drift.drift, r.drift.growth)]
        )
    columns = ["robot", "", "joints at limit %", "frames at speed limit %", "speed rad/s max / p99"]
    columns += ["acceleration rad/s² max / p99", "jerk rad/s³ max / p99", "near singularity %", "drift cm", "growth cm"]
    note = (
        "Joints at limit: mean share of the moving joints within 1° of a limit. Near singularity: frames with a "
        "shoulder within 12° of its singular posture. Drift: root mean square error in the "
        "last frame minus that of the best posture computed for it alone; growth: drift minus that of the first frame."
    )
    return ReportTable("quality of the motion", columns, rows, note)


def distribution_table(s: RobotScore) -> ReportTable:
    """Return error distributions as in Tables 6.1 to 6.5 of Dube 2012."""
    rows = []
    for name in LINKS:
        for r in s.runs:
            e = r.links[name]
            h = e.histogram
            rows.append(
                [NAMES[name], r.label, *(round(100 * v, 1) for v in (e.mean, e.std, e.min, e.max))]
                + [f"{h.shape} ({h.skewness:.2f})", f"{h.spread_grade} ({100 * h.spread:.0f})"]
                + [f"{h.height_grade} ({h.height})", f"{100 * h.mode:.0f}", len(e.peaks), len(e.troughs)]
            )
    columns = ["link", "", "mean cm", "std cm", "min cm", "max cm", "shape (skewness)", "spread (cm)"]
    columns += ["height (frames)", "mode cm", "peaks", "troughs"]
    note = "Bins of 2 cm; the mode is the lower edge of the fullest one. The height grade counts frames and so depends "
    return ReportTable(
        f"{s.robot}: distribution of the errors", columns, rows, note + f"on their number ({s.n_frames})."
    )


def peak_table(s: RobotScore, most: int = 3) -> ReportTable:
    """Return the most extreme peaks and troughs of each link, with joints at a limit."""
    rows = []
    for r in s.runs:
        for name in LINKS:
            for what, found in (("peak", r.links[name].peaks), ("trough", r.links[name].troughs)):
                for e in found[:most]:
                    limits = ", ".join(f"{joint} {which}" for joint, which in e.at_limit.items())
                    rows.append([NAMES[name], r.label, what, f"{e.time:.2f}", f"{100 * e.error:.1f}", limits or "none"])
    columns = ["link", "", "", "time s", "error cm", "joints at a limit"]
    note = f"At most {most} of each; all of them, with every joint angle, are in the JSON."
    return ReportTable(f"{s.robot}: peaks and troughs", columns, rows, note)


def joint_table(s: RobotScore) -> ReportTable:
    """Return the used range of each joint."""
    rows = []
    for uses in zip(*(r.joints for r in s.runs), strict=True):
        lower, upper = uses[0].lower * DEG, uses[0].upper * DEG
        ends = f"{lower:.0f} .. {upper:.0f}" if np.isfinite([lower, upper]).any() else "no end"
        row: list[Any] = [uses[0].joint, ends]
        for u in uses:
            row += [f"{u.used_lower * DEG:.0f} .. {u.used_upper * DEG:.0f}", round(100 * u.share)]
            row += [round(100 * (u.at_lower + u.at_upper))]
        rows.append(row)
    columns = ["joint", "range °"]
    for r in s.runs:
        columns += [f"used °, {r.label}", "% of range", "% of frames at a limit"]
    return ReportTable(f"{s.robot}: joint range used", columns, rows)


def other_collisions_table(s: RobotScore) -> ReportTable:
    """Return collisions of pairs not in Table 6.6."""
    pairs = dict.fromkeys(pair for r in s.runs for pair in r.collisions.others)
    rows = [[pair, *(r.collisions.others.get(pair, 0) for r in s.runs)] for pair in pairs]
    columns = ["pair", *(r.label for r in s.runs)]
    return ReportTable(f"{s.robot}: collisions of other pairs [frames of {s.n_frames}]", columns, rows)


def posture_rows(peaks: Sequence[ErrorPeak]) -> list[list[Any]]:
    """Return joint angles [deg] at peaks, one row per joint."""
    if not peaks:
        return []
    return [
        [joint, *(f"{e.angles[joint] * DEG:.0f}{'*' if joint in e.at_limit else ''}" for e in peaks)]
        for joint in peaks[0].angles
    ]


def to_json(scores: Sequence[RobotScore]) -> dict[str, Any]:
    """Return all scores without single frames, for `print_json`."""
    first = scores[0]
    robots = []
    for s in scores:
        runs = {}
        for r in s.runs:
            runs[r.label] = {k: v for k, v in dataclasses.asdict(r).items() if k not in ("label", "frames")}
        row = {"robot": s.robot, "title": s.title, "runs": runs}
        robots.append(row | ({"limit_costs": s.costs.to_json()} if s.costs is not None else {}))
    return {
        "clip": first.clip,
        "rate_hz": first.rate,
        "frames": first.n_frames,
        "units": UNITS,
        "robots": robots,
    }


def _runs(scores: Sequence[RobotScore]) -> list[tuple[RobotScore, RunScore]]:
    return [(s, r) for s in scores for r in s.runs]
