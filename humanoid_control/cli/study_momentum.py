"""`humanoid study momentum`: vertical momentum of a walk with still arms, the source's methods and ours."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.cli.output import console, machine, plain_values, print_json, progress, table
from humanoid_control.cli.output_places import check_folder
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.whole_files import whole_files

if TYPE_CHECKING:
    from humanoid_control.ik.momentum_gait import GaitSettings
    from humanoid_control.ik.momentum_study import Judgement, Lab, Outcome

SLOWER = 1.25  # 0.4 m in 1 s, the source's second experiment
HOLDS = "holds"
SOURCE = (
    "source (its Lola): method 1 to method 0 about -20 % in L_z and its rate; method 2 with delta 0.5 to still arms\n"
    "about -40 % in L_z and -15 % in the peaks of the contact torque"
)
COLUMNS = ["walk", "L_z pp", "to still %", "to m. 0 %", "rms", "rate pp", "to still %", "rms"]
COLUMNS += ["torque", "speed", "range °", "gap mm", "foot mm"]


@dataclass(frozen=True)
class Walk:
    """A row of the tables."""

    method: str
    free: str
    gait: GaitSettings
    outcome: Outcome


def run(args: argparse.Namespace) -> int:
    """Print the tables, and write the folder that is asked for."""
    from humanoid_control.ik.momentum_study import CLAIMS, Lab, find_gait
    from humanoid_control.robots import load_robot

    names = {n.lower(): n for n in CLAIMS}
    asked = [n.strip() for n in args.only.split(",") if n.strip()]
    for name in asked:
        if name.lower() not in names:
            raise UnknownNameError("claim", name, CLAIMS)
    for option, value in (("step-length", args.step_length), ("step-time", args.step_time)):
        if value is not None and not (math.isfinite(value) and value > 0):
            raise ConfigError(f"--{option} must be positive, got {value:g}")
    check_folder(args.output)
    chosen = [CLAIMS[names[n.lower()]] for n in asked] or list(CLAIMS.values())
    robot = load_robot(args.robot or "lola", "floating")
    with progress("study", 1.0, quiet=args.json) as show:
        gait, notes = find_gait(robot, args.step_length, args.step_time)
        lab = Lab(robot, gait)
        walks = [] if asked else _play(lab, lambda share, text: show(0.3 * share, text))
        found = []
        for k, claim in enumerate(chosen):
            show(0.3 + 0.7 * k / len(chosen), claim.name)
            found.append(claim.judge(lab))
    report = to_json(lab, walks, found, notes)
    if args.output is not None:
        _write_folder(args.output, lab, report)
    if args.json:
        print_json(report)
        return 0
    _print(lab, walks, found, notes, args.details)
    if args.output is not None:
        console.print(f"written: {args.output}")
    return 0


def _play(lab: Lab, show: Callable[[float, str], None]) -> list[Walk]:
    """All walks of the tables: the lab's step, and a step a quarter longer in time."""
    from humanoid_control.ik.momentum_study import MAIN

    slow = replace(lab.gait, step_time=SLOWER * lab.gait.step_time)
    todo = [(m, "arms", lab.gait) for m in (*MAIN, "ours xyz")]
    todo += [
        (m, free, lab.gait) for free in ("arms+waist", "all") for m in (lab.best_tracking(), "method 2 0.5", "ours")
    ]
    todo += [(m, "arms", slow) for m in ("still", "method 0", lab.best_tracking(), "method 2 0.5", "ours")]
    out = []
    for k, (method, free, gait) in enumerate(todo):
        show(k / len(todo), f"{method}, {free}")
        out.append(Walk(method, free, gait, lab.outcome(method, free, gait)))
    return out


def to_json(lab: Lab, walks: list[Walk], found: list[Judgement], notes: list[str]) -> dict[str, Any]:
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


def _print(lab: Lab, walks: list[Walk], found: list[Judgement], notes: list[str], details: bool) -> None:
    for gait in dict.fromkeys(w.gait for w in walks):
        these = [w for w in walks if w.gait == gait]
        title = f"{lab.robot.title}, steps of {gait.step_length:g} m in {gait.step_time:g} s: vertical momentum"
        table(f"{title} [kg m²/s], its rate and the contact torque [N m]", COLUMNS, _rows(these))
    if walks:
        axes = [
            [_label(w), *(x for a in w.outcome.axes for x in (a.peak_to_peak, a.rms, a.rate_rms))]
            for w in walks
            if w.method in ("still", "ours", "ours xyz") and w.gait == lab.gait
        ]
        heads = [f"{k} {axis}" for axis in "xyz" for k in ("L pp", "rms", "rate rms")]
        table("all three axes", ["walk", *heads], axes)
        console.print(SOURCE)
    for note in notes:
        console.print(f"note: {note}")
    table(
        "claims of Schwienbacher 2014 on our models",
        ["", "claim", "verdict", "measured"],
        [[f.claim.name, f.claim.statement, f.verdict, _told(f)] for f in found],
    )
    if details:
        table("rules", ["", "holds when"], [[f.claim.name, f.claim.rule] for f in found])
        parts = [[f.claim.name, p.claim, p.verdict, _numbers(p.numbers)] for f in found for p in f.parts]
        table("numbers", ["", "part", "verdict", "measured"], parts)


def _rows(walks: list[Walk]) -> list[list[Any]]:
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


def _label(walk: Walk) -> str:
    return walk.method if walk.free == "arms" else f"{walk.method}, {walk.free}"


def _told(f: Judgement) -> str:
    numbers = f"{f.parts[0].claim}: {_numbers(f.parts[0].numbers)}"
    return f.reason if f.verdict != HOLDS and f.reason else "; ".join(t for t in (numbers, f.reason) if t)


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in numbers.items())


def _change(value: float, reference: float) -> float:
    return round(100.0 * (value / reference - 1.0), 1)


def _write_folder(folder: Path, lab: Lab, report: dict[str, Any]) -> None:
    """momentum.json and momentum.png, each whole or not at all."""
    from humanoid_control.cli.study_momentum_plot import momentum_plot

    with whole_files(folder) as whole:
        (whole / "momentum.json").write_text(json.dumps(plain_values(report), indent=1) + "\n", encoding="utf-8")
        momentum_plot(lab, whole / "momentum.png")
