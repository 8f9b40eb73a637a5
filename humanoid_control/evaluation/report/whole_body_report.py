"""Whole-body scores as tables, JSON, a page with plots, and files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control import __version__
from humanoid_control.evaluation.clip_quality import MEASURES
from humanoid_control.evaluation.report.files import write_files
from humanoid_control.evaluation.report.page import STYLE, grid
from humanoid_control.evaluation.report.plots import GRID, INK, SERIES, subplots, svg
from humanoid_control.evaluation.report.small_multiples import Curve, PlotPanel, small_multiples
from humanoid_control.evaluation.whole_body_score import WholeBodyScore
from humanoid_control.retargeting.whole_body.contacts import EDGES, runs
from humanoid_control.terminal import ReportTable, plain_values

DEG = 180 / np.pi
UNKNOWN = "-"
Column = tuple[str, str, int]  # header, key of the number, digits

ERRORS: tuple[Column, ...] = (("mean", "error_cm", 2), ("worst 5 %", "error_p95_cm", 2), ("most", "error_max_cm", 1))
CONTACT: tuple[Column, ...] = (
    ("contacts", "contacts", 0),
    ("in contact %", "contact_percent", 1),
    ("slip mm, median", "slip_median_mm", 3),
    ("95 % below", "slip_mm", 3),
    ("most", "slip_max_mm", 3),
    ("mm/s", "slip_mm_s", 2),
    ("skating mm/s", "skating_mm_s", 2),
    ("penetration mm", "penetration_mm", 3),
    ("floating mm", "floating_mm", 3),
)
AGREEMENT: tuple[Column, ...] = (
    ("frames equal %", "contacts_agree_percent", 1),
    ("precision %", "contact_precision_percent", 1),
    ("recall %", "contact_recall_percent", 1),
)
LIMITS: tuple[Column, ...] = (
    ("beyond range °", "beyond_range_deg", 4),
    ("speed / limit", "speed_share", 3),
    ("at speed limit %", "at_speed_limit_percent", 1),
    ("acceleration rad/s², p99", "acceleration_p99_rad_s2", 1),
    ("jerk rad/s³, p99", "jerk_p99_rad_s3", 0),
    ("fallback %", "fallback_percent", 1),
)
COLLISION: tuple[Column, ...] = (
    ("shapes touch %", "colliding_percent", 2),
    ("nearest mm", "closest_mm", 1),
    ("meshes touch %", "meshes_percent", 2),
)
DYNAMICS: tuple[Column, ...] = (
    ("CoM over its support %", "balanced_percent", 1),
    ("farthest outside cm", "com_outside_cm", 1),
    ("infeasible %", "infeasible_percent", 1),
    ("worst second %", "infeasible_worst_second_percent", 0),
    ("residual force, % of weight", "missing_force_percent", 1),
    ("torque / limit %, p99", "torque_p99_percent", 0),
    ("frames beyond %", "torque_beyond_percent", 1),
)


# -------- Tables


def whole_body_tables(scores: Sequence[WholeBodyScore]) -> list[ReportTable]:
    """Return tables that compare the robots."""
    points = [k.removeprefix("error_").removesuffix("_cm") for k in scores[0].quality.numbers if _is_point(k)]
    errors = (*ERRORS, *((p.replace("_", " "), f"error_{p}_cm", 1) for p in points))
    collision = _table("self-collision", COLLISION, scores, COLLISION_NOTE)
    if any(s.measures.meshes is not None for s in scores):
        collision = _more(collision, ["frames of meshes", "most often"], [_meshes(s) for s in scores])
    dynamics = _table("balance, and torques by inverse dynamics", DYNAMICS, scores, DYNAMICS_NOTE)
    loaded = [s.most_loaded() for s in scores]
    if any(loaded):
        dynamics = _more(dynamics, ["most loaded joint"], [[UNKNOWN if j is None else j.joint] for j in loaded])
    tables = [
        _table("distance of the points to their targets [cm]", errors, scores, ERRORS_NOTE),
        _table("contact of the soles with the floor", CONTACT, scores, CONTACT_NOTE),
        _table("contacts compared with the person's", AGREEMENT, scores, AGREEMENT_NOTE),
        _table("limits of the joints", LIMITS, scores, LIMITS_NOTE),
        collision,
        dynamics,
    ]
    return [t for t in tables if len(t.columns) > 1]


ERRORS_NOTE = "Targets: the person's directions with the robot's lengths. Worst 5 %: frames by the mean of all points."
CONTACT_NOTE = (
    "Slip: largest displacement of a sole corner since its contact began; mm/s: its largest speed. Skating: mean "
    "speed of corners below 5 mm, in contact or not. Penetration: depth of the lowest corner. Floating: height of "
    "the highest edge in contact."
)
AGREEMENT_NOTE = (
    "Frames in which the same heels and toes of robot and person are on the floor; precision: contacts of the robot "
    "that are the person's, recall: contacts of the person that are the robot's."
)
LIMITS_NOTE = "By frame differences. p99: 99th percentile over frames and moving joints."
COLLISION_NOTE = (
    "Shapes: pairs that the solver keeps apart, in every frame. Meshes: the robot's own collision geometry, in the "
    "stated frames, without neighbouring links and pairs that touch at rest."
)
DYNAMICS_NOTE = (
    "CoM: frames with its projection inside the polygon of the edges in contact. Torques: inverse dynamics of frame "
    "differences, unsmoothed. The corners in contact supply the root wrench as evenly as possible, with a friction "
    "coefficient of 0.7. The residual force is the missing part. Not graded."
)


def joint_table(s: WholeBodyScore) -> ReportTable:
    """Return range, speed and torque of every moving joint."""
    rows: list[list[Any]] = []
    for j in s.joints():
        known = np.isfinite(j.torque) and np.isfinite(j.effort)
        torque = [round(j.torque, 1), round(j.effort, 1), round(100 * j.torque / j.effort)] if known else [UNKNOWN] * 3
        rows.append(
            [j.joint, _degrees(j.lower, j.upper), _degrees(j.lowest, j.highest)] + [round(j.speed_share, 2), *torque]
        )
    columns = ["joint", "range °", "used °", "speed / limit", "torque N m, p99", "limit N m", "torque / limit %"]
    return ReportTable(f"{s.robot.name}: joints", columns, rows)


def _degrees(low: float, high: float) -> str:
    return f"{low * DEG:.0f} .. {high * DEG:.0f}" if np.isfinite([low, high]).any() else "no end"


def whole_body_verdicts(scores: Sequence[WholeBodyScore]) -> list[str]:
    """Return a line per robot: grade and reason."""
    return [f"{s.robot.name}: {s.quality.verdict}" for s in scores]


def whole_body_notes(scores: Sequence[WholeBodyScore]) -> list[str]:
    """Return the notes on clip and missing measures, without duplicates."""
    return list(dict.fromkeys(note for s in scores for note in s.notes))


def whole_body_json(scores: Sequence[WholeBodyScore]) -> dict[str, Any]:
    """Return all scores without single frames, for `print_json`."""
    robots = []
    for s in scores:
        meshes = s.measures.meshes
        touching = None
        if meshes is not None:
            pairs = zip(meshes.pairs, meshes.frames_of_pairs, strict=True)
            touching = {
                "frames": len(meshes.touching),
                "every": s.mesh_step,
                "pairs": [{"links": list(p), "frames": n} for p, n in pairs],
            }
        robots.append(
            {"robot": s.robot.name, "title": s.robot.title, "grade": s.quality.grade, "verdict": s.quality.verdict}
            | {"grades": s.quality.grades, "numbers": s.quality.numbers, "meshes": touching, "notes": list(s.notes)}
            | {"joints": {j.joint: {k: v for k, v in vars(j).items() if k != "joint"} for j in s.joints()}}
        )
    motion = scores[0].motion
    out = {"clip": scores[0].clip, "rate_hz": motion.rate, "frames": len(motion.positions), "robots": robots}
    return dict(plain_values(out))


def _is_point(key: str) -> bool:
    return key.startswith("error_") and key not in {column[1] for column in ERRORS}


def _table(title: str, columns: Sequence[Column], scores: Sequence[WholeBodyScore], note: str) -> ReportTable:
    has = [c for c in columns if any(_known(s.quality.numbers, c[1]) for s in scores)]
    rows = [[s.robot.name, *(_cell(s.quality.numbers, key, digits) for _, key, digits in has)] for s in scores]
    return ReportTable(title, ["robot", *(c[0] for c in has)], rows, note)


def _more(table: ReportTable, columns: Sequence[str], cells: Sequence[Sequence[Any]]) -> ReportTable:
    rows = [[*row, *more] for row, more in zip(table.rows, cells, strict=True)]
    return table._replace(columns=[*table.columns, *columns], rows=rows)


def _known(numbers: Mapping[str, float], key: str) -> bool:
    return key in numbers and bool(np.isfinite(numbers[key]))


def _cell(numbers: Mapping[str, float], key: str, digits: int) -> Any:
    if not _known(numbers, key):
        return UNKNOWN
    return round(float(numbers[key]), digits) if digits else round(float(numbers[key]))


def _meshes(s: WholeBodyScore) -> list[Any]:
    m = s.measures.meshes
    if m is None:
        return [UNKNOWN, UNKNOWN]
    looked = f"{len(m.touching)}" + (f", every {s.mesh_step}." if s.mesh_step > 1 else "")
    return [looked, " - ".join(m.pairs[0]) if m.pairs else "none"]


# -------- The page

WIDTH = 10.0
COLUMNS = 2
ROBOT, PERSON = SERIES[1], SERIES[0]
CURVES = (
    ("lowest corner of the soles [mm]", "lowest_corner_m", 1000),
    ("displacement of a corner in its contact [mm]", "slip_m", 1000),
    ("nearest shapes [mm], at most 50", "nearest_shapes_m", 1000),
    ("centre of mass outside its support [cm]", "com_outside_m", 100),
    ("residual force, share of the weight [%]", "missing_force_share", 100),
    ("torque of the most loaded joint, share of its limit [%]", "torque_share", 100),
)


def whole_body_page(scores: Sequence[WholeBodyScore]) -> str:
    """Return the self-contained HTML."""
    first, motion = scores[0], scores[0].motion
    items = "".join(f"<li><b>{escape(v)}</b></li>" for v in whole_body_verdicts(scores))
    notes = "".join(f"<li>{escape(n)}</li>" for n in whole_body_notes(scores))
    goals = ", ".join(f"{m.meaning} {m.most[0]:.3g} {m.unit}".rstrip() for m in MEASURES if m.most[0] < m.most[-1])
    parts = [
        f"<h1>Whole bodies that imitate “{escape(first.clip)}”</h1>",
        f"<p>{len(motion.positions)} frames at {motion.rate:g} Hz, {len(scores)} robot{'s' * (len(scores) > 1)}. "
        f"The worst measure sets the grade. Limits of grade A: {escape(goals)}. Joint ranges and speeds are always "
        f"kept.</p>",
        f"<ul>{items}</ul>",
        *([f"<ul>{notes}</ul>"] if notes else []),
        "<nav>" + "".join(f'<a href="#{escape(s.robot.name)}">{escape(s.robot.name)}</a>' for s in scores) + "</nav>",
        "<h2>Comparison of the robots</h2>",
        _error_bars(scores),
        *(f"<h3>{escape(t.title)}</h3>\n{grid(t)}" for t in whole_body_tables(scores)),
        *(_robot(s) for s in scores),
        f'<p class="note">humanoid_control {__version__}, humanoid score --whole-body.</p>',
    ]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(first.clip)}</title>'
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'


def _robot(s: WholeBodyScore) -> str:
    joints = joint_table(s)
    return "\n".join(
        [
            f'<h2 id="{escape(s.robot.name)}">{escape(s.robot.name)}: {escape(s.robot.title)}</h2>',
            f"<p>{escape(s.quality.verdict)}.</p>",
            _over_time(s),
            "<h3>Heels and toes on the floor</h3>",
            _contacts(s),
            "<h3>Joints</h3>",
            _joint_use(s),
            f"<details><summary>{escape(joints.title)}</summary>\n{grid(joints)}</details>",
        ]
    )


def _error_bars(scores: Sequence[WholeBodyScore]) -> str:
    points = [k for k in scores[0].quality.numbers if _is_point(k)]
    figure, (ax,) = subplots(1, 1, WIDTH, 1.0 + 0.09 * (len(scores) + 1) * len(points))
    height = 0.8 / len(scores)
    for i, s in enumerate(scores):
        at = np.arange(len(points)) + (i - (len(scores) - 1) / 2) * height
        ax.barh(at, [s.quality.numbers.get(p, np.nan) for p in points], 0.9 * height, color=SERIES[i % len(SERIES)])
    ax.set_yticks(range(len(points)), [p.removeprefix("error_").removesuffix("_cm").replace("_", " ") for p in points])
    ax.invert_yaxis()
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("mean distance to its target [cm]")
    legend = [(s.robot.name, SERIES[i % len(SERIES)]) for i, s in enumerate(scores)]
    return svg(figure, "mean error of each point on each robot", legend)


def _over_time(s: WholeBodyScore) -> str:
    columns = s.columns()
    times = np.arange(len(s.motion.positions)) / s.motion.rate
    points = [
        columns[f"error_{k.removeprefix('error_').removesuffix('_cm')}_m"] for k in s.quality.numbers if _is_point(k)
    ]
    panels = [PlotPanel("mean distance of the points [cm]", (Curve(100 * np.mean(points, axis=0), ROBOT),))]
    for title, key, scale in CURVES:
        if key in columns and np.isfinite(columns[key]).any():
            panels.append(PlotPanel(title, (Curve(scale * _filled(columns[key]), ROBOT),)))
    return small_multiples(times, panels, COLUMNS, f"{s.robot.name}: error, feet, balance and torque over time")


def _filled(values: np.ndarray) -> np.ndarray:
    """Interpolate between measured frames of every n-th frame; keep gaps without contact."""
    known = np.flatnonzero(np.isfinite(values))
    step = int(np.diff(known).min()) if len(known) > 1 else 1
    out = values.copy()
    for a, b in pairwise(known.tolist()):
        if b - a == step:
            out[a:b] = np.linspace(values[a], values[b], step, endpoint=False)
    return out


def _contacts(s: WholeBodyScore) -> str:
    figure, (ax,) = subplots(1, 1, WIDTH, 1.9)
    rate, motion = s.motion.rate, s.motion
    shown = [
        (motion.contacts, ROBOT, 0.0),
        *([(s.measures.person, PERSON, 0.38)] if s.measures.person is not None else []),
    ]
    for contacts, color, down in shown:
        for e in range(len(EDGES)):
            bars = [(a / rate, (b - a) / rate) for a, b in runs(contacts[:, e])]
            ax.broken_barh(bars, (e - 0.38 + down, 0.36), facecolors=color)
    ax.set_yticks(range(len(EDGES)), [e.replace("_", " ") for e in EDGES])
    ax.set_ylim(3.5, -0.5)
    ax.set_xlim(0, len(motion.positions) / rate)
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("time [s]")
    keys = [("robot", ROBOT), *([("person", PERSON)] if s.measures.person is not None else [])]
    return svg(figure, f"{s.robot.name}: heels and toes on the floor, of the robot and of the person", keys)


def _joint_use(s: WholeBodyScore) -> str:
    joints = s.joints()
    figure, axes = subplots(1, 3, WIDTH, 0.8 + 0.2 * len(joints), sharey=True, width_ratios=[2, 1, 1])
    rows = range(len(joints))
    for k, j in ((k, j) for k, j in enumerate(joints) if np.isfinite([j.lower, j.upper]).all()):
        axes[0].barh(k, (j.upper - j.lower) * DEG, 0.8, j.lower * DEG, color="none", edgecolor=INK, linewidth=0.8)
    axes[0].barh(
        rows, [(j.highest - j.lowest) * DEG for j in joints], 0.6, [j.lowest * DEG for j in joints], color=ROBOT
    )
    axes[1].barh(rows, [100 * j.speed_share for j in joints], 0.6, color=ROBOT)
    axes[2].barh(rows, [100 * j.torque / j.effort for j in joints], 0.6, color=ROBOT)
    titles = ("angle [°]; frame: available range", "largest speed [% of its limit]", "torque, p99 [% of its limit]")
    for ax, title in zip(axes, titles, strict=True):
        ax.set_xlabel(title)
        ax.grid(axis="y", visible=False)
    for ax in axes[1:]:
        ax.axvline(100, color=GRID, linewidth=1.2)
    axes[0].set_yticks(rows, [j.joint.replace("_", " ") for j in joints])
    axes[0].set_ylim(len(joints) - 0.4, -0.6)
    return svg(figure, f"{s.robot.name}: range, speed and torque of the joints")


# -------- Files


def write_whole_body(scores: Sequence[WholeBodyScore], html: Path | None, folder: Path | None) -> list[str]:
    """Write the requested files atomically; return their names.

    Args:
        folder: for score.json, score.html, and a CSV of frames per robot.
    """
    if html is None and folder is None:
        return []
    frames = {f"{s.robot.name}.csv": _csv(s) for s in scores}
    return write_files(html, folder, whole_body_page(scores), whole_body_json(scores), frames)


def _csv(s: WholeBodyScore) -> str:
    columns, out = s.columns(), io.StringIO(newline="")
    rows = csv.writer(out)
    rows.writerow(["time_s", *columns])
    for k, values in enumerate(zip(*columns.values(), strict=True)):
        rows.writerow([f"{k / s.motion.rate:.6f}", *("" if np.isnan(v) else f"{v:.6g}" for v in values)])
    return out.getvalue()
