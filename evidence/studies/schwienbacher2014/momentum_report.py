"""Report of `humanoid study momentum`: walks with still arms, the published methods and the constrained solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evidence.studies.report import HOLDS, Progress, StudyReport, silent
from evidence.studies.schwienbacher2014 import momentum_sweep
from evidence.studies.schwienbacher2014.momentum_walks import MAIN, MomentumWalkOutcome, WalkingLab, find_gait
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.evaluation.report.plots import SERIES, png, subplots
from humanoid_control.terminal import ReportTable, machine
from humanoid_control.walking import WalkTask

if TYPE_CHECKING:
    from evidence.studies.schwienbacher2014.momentum_claims import MomentumJudgement
    from humanoid_control.walking import GaitSettings


SLOWER = 1.25  # 0.4 m in 1 s, the second published experiment
PUBLISHED = (
    "published (another Lola): method 1 to method 0 about -20 % in L_z and its rate; method 2 with delta 0.5 to still\n"
    "arms about -40 % in L_z and -15 % in the peaks of the contact torque"
)
COLUMNS = ["walk", "L_z pp", "to still %", "to m. 0 %", "rms", "rate pp", "to still %", "rms"]
COLUMNS += ["torque", "speed", "range °", "gap mm", "foot mm"]


@dataclass(frozen=True)
class WalkRow:
    """A row of the tables."""

    method: str
    free: str
    gait: GaitSettings
    outcome: MomentumWalkOutcome


def run_study(
    robot: str = "lola",
    only: Sequence[str] = (),
    step_length: float | None = None,
    step_time: float | None = None,
    show: Progress = silent,
) -> StudyReport:
    """Walk, and judge the claims.

    Args:
        robot: name or path, with legs and arms.
        only: names of some claims; all of them, and the tables of walks, where none is given.
        step_length: [m]. step_time: [s]. None: those of the published walk, scaled where legs are short or slow.
        show: told how far it is.
    """
    from evidence.studies import schwienbacher2014
    from humanoid_control.robots.catalogue import load_robot

    claims = schwienbacher2014.CLAIMS
    names = {n.lower(): n for n in claims}
    for name in only:
        if name.lower() not in names:
            raise UnknownNameError("claim", name, claims)
    for option, value in (("step_length", step_length), ("step_time", step_time)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{option} must be positive, got {value:g}")
    chosen = [claims[names[n.lower()]] for n in only] or list(claims.values())
    model = load_robot(robot, "floating")
    gait, notes = find_gait(model, step_length, step_time)
    lab = schwienbacher2014.WalkingLab(model, gait)
    walks = [] if only else _play(lab, lambda share, text: show(0.3 * share, text))
    found = []
    for k, claim in enumerate(chosen):
        show(0.3 + 0.7 * k / len(chosen), claim.name)
        found.append(claim.judge(lab))
    swept = [] if only else momentum_sweep.sweep(lab)  # played for the claims already
    told = momentum_sweep.sweep_parts(swept) if swept else []
    parts = [*_walk_tables(lab, walks), *told, *(f"note: {note}" for note in notes), _claim_table(found)]
    details = [*_details(found), *([momentum_sweep.all_runs(swept)] if swept else [])]
    data = to_json(lab, walks, found, notes) | {"sweep": [asdict(run) for run in swept]}
    return StudyReport(data, parts, details, lambda: _pictures(lab))


def _pictures(lab: WalkingLab) -> dict[str, bytes | str]:
    g = lab.gait
    title = f"{lab.robot.title}, steps of {g.step_length:g} m in {g.step_time:g} s"
    front = momentum_sweep.front_plot(momentum_sweep.sweep(lab), title)
    return {"momentum.png": momentum_plot(lab), "momentum_front.png": front}


def _play(lab: WalkingLab, show: Callable[[float, str], None]) -> list[WalkRow]:
    """All walks of the tables: the lab's step, and a step a quarter longer in time."""
    slow = replace(lab.gait, step_time=SLOWER * lab.gait.step_time)
    todo = [(m, "arms", lab.gait) for m in (*MAIN, "constrained xyz")]
    todo += [
        (m, free, lab.gait)
        for free in ("arms+waist", "all")
        for m in (lab.best_tracking(), "method 2 0.5", "constrained")
    ]
    todo += [(m, "arms", slow) for m in ("still", "method 0", lab.best_tracking(), "method 2 0.5", "constrained")]
    out = []
    for k, (method, free, gait) in enumerate(todo):
        show(k / len(todo), f"{method}, {free}")
        out.append(WalkRow(method, free, gait, lab.outcome(method, free, gait)))
    return out


def to_json(lab: WalkingLab, walks: list[WalkRow], found: list[MomentumJudgement], notes: list[str]) -> dict[str, Any]:
    """The study as plain dictionaries."""
    rows = [
        {
            "method": w.method,
            "free": w.free,
            "step_time": w.gait.step_time,
            **{axis: asdict(a) for axis, a in zip("xyz", w.outcome.axes, strict=True)},
        }
        for w in walks
    ]
    claims = [
        {
            "name": f.claim.name,
            "statement": f.claim.statement,
            "rule": f.claim.rule,
            "verdict": f.verdict,
            "reason": f.reason or None,
            "parts": [{"claim": p.claim, "verdict": p.verdict, "numbers": dict(p.numbers)} for p in f.parts],
        }
        for f in found
    ]
    head = {"study": "momentum", "robot": lab.robot.name, "gait": asdict(lab.gait), "notes": notes}
    return {**head, "walks": rows, "findings": claims, "machine": machine()}


def _walk_tables(lab: WalkingLab, walks: list[WalkRow]) -> list[ReportTable | str]:
    parts: list[ReportTable | str] = []
    for gait in dict.fromkeys(w.gait for w in walks):
        these = [w for w in walks if w.gait == gait]
        title = f"{lab.robot.title}, steps of {gait.step_length:g} m in {gait.step_time:g} s: vertical momentum"
        parts.append(ReportTable(f"{title} [kg m²/s], its rate and the contact torque [N m]", COLUMNS, _rows(these)))
    if walks:
        axes = [
            [_label(w), *(x for a in w.outcome.axes for x in (a.peak_to_peak, a.rms, a.rate_rms))]
            for w in walks
            if w.method in ("still", "constrained", "constrained xyz") and w.gait == lab.gait
        ]
        heads = [f"{k} {axis}" for axis in "xyz" for k in ("L pp", "rms", "rate rms")]
        parts += [ReportTable("all three axes", ["walk", *heads], axes), PUBLISHED]
    return parts


def _claim_table(found: list[MomentumJudgement]) -> ReportTable:
    rows = [[f.claim.name, f.claim.statement, f.verdict, _told(f)] for f in found]
    return ReportTable("claims of Schwienbacher 2014 on these models", ["", "claim", "verdict", "measured"], rows)


def _details(found: list[MomentumJudgement]) -> list[ReportTable | str]:
    parts = [[f.claim.name, p.claim, p.verdict, _numbers(p.numbers)] for f in found for p in f.parts]
    return [
        ReportTable("rules", ["", "holds when"], [[f.claim.name, f.claim.rule] for f in found]),
        ReportTable("numbers", ["", "part", "verdict", "measured"], parts),
    ]


def _rows(walks: list[WalkRow]) -> list[list[Any]]:
    by_method = {w.method: w.outcome.z for w in walks if w.free == "arms"}
    still, zero = by_method["still"], by_method["method 0"]
    lines: list[list[Any]] = []
    for w in walks:
        z = w.outcome.z
        change = [_change(z.peak_to_peak, s.peak_to_peak) for s in (still, zero)]
        line = [_label(w), z.peak_to_peak, *change, z.rms, z.rate_peak_to_peak]
        line += [_change(z.rate_peak_to_peak, still.rate_peak_to_peak), z.rate_rms, max(z.torque_left, z.torque_right)]
        line += [round(z.speed_share, 2), round(math.degrees(max(z.beyond_limit, 0.0)), 1)]
        lines.append([*line, round(1000 * z.clearance, 1), round(1000 * z.foot_error, 2)])
    return lines


def _label(walk: WalkRow) -> str:
    return walk.method if walk.free == "arms" else f"{walk.method}, {walk.free}"


def _told(f: MomentumJudgement) -> str:
    numbers = f"{f.parts[0].claim}: {_numbers(f.parts[0].numbers)}"
    return f.reason if f.verdict != HOLDS and f.reason else "; ".join(t for t in (numbers, f.reason) if t)


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in numbers.items())


def _change(value: float, reference: float) -> float:
    return round(100.0 * (value / reference - 1.0), 1)


# -------- Plot

GREY = "#888888"


def momentum_plot(lab: WalkingLab) -> bytes:
    """A PNG: still arms, method 0, method 1 in its best mode, method 2 with delta 0.5, and constrained."""
    shown = ["still", lab.reference(), lab.best_tracking(), "method 2 0.5", "constrained"]
    runs: list[tuple[str, MomentumWalkOutcome]] = [(m, lab.outcome(m)) for m in shown]
    runs.append(("constrained, waist too", lab.outcome("constrained", "arms+waist")))
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
    return png(figure)
