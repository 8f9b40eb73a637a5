"""`humanoid study`: the source's conclusions, tried on our models and clips."""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.cli.output import compile_first, console, plain_values, print_json, progress, table
from humanoid_control.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from humanoid_control.imitation.study import Finding

STUDIES = {
    "imitation": "H1 to H21 of Dube 2012: which joints and ranges matter for imitating a dance (minutes)",
    "momentum": "T-27 to T-35 of Schwienbacher 2014: how much arms lower angular momentum in walking (minutes)",
    "calibration": "encoder offsets of each leg, planted and found again in a simulated jig (seconds)",
    "safety": "bad starts: inside itself, outside its ranges; how the safe solver leaves them (2000 a robot: minutes)",
    "worlds": "one robot standing in many simulated worlds: which conditions and pushes topple it (seconds)",
}
ONLY_FOR = {
    "imitation": ("clip", "marker_set"),
    "momentum": ("step_length", "step_time"),
    "calibration": ("poses", "noise", "seeds"),
    "safety": ("starts",),
    "worlds": ("vary", "seconds", "workers", "engine", "drives"),
}
NOT_FOR = {
    "imitation": ("robot",),
    "safety": ("only", "details", "output"),
    "calibration": ("only", "details"),
    "worlds": ("only", "details"),
}
FORMATS = (".json", ".md")
EXAMPLES = (
    "studies:\n"
    + "\n".join(f"  {k:11} {v}" for k, v in STUDIES.items())
    + """

examples:
  humanoid study imitation                              on the built-in dance
  humanoid study imitation --clip dance1.trc            on that and on the built-in one
  humanoid study imitation --only H2,H4 --json
  humanoid study imitation --clip dance1.trc -o findings.md
  humanoid study momentum                               Lola, steps of 0.4 m in 0.8 s
  humanoid study momentum --robot hrp2 -o momentum      and a folder with plots and JSON
  humanoid study calibration --robot hrp2 --poses 5 --noise 0.05
  humanoid study safety                                 all robots, 2000 bad starts each
  humanoid study safety --robot lola --starts 200
  humanoid study worlds --robot lola --vary friction=0.2,0.4,0.8 --vary stiffness=30,60
  humanoid study worlds --robot hrp2 --vary push_x=50,100,150 --engine mujoco --seconds 3 -o pushed

The rule by which each is judged was fixed before it was measured, and is printed with --details. A hypothesis that does
not hold is a finding, not an error: the exit code is 0.
"""
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=", ".join(STUDIES))
    parser.add_argument("--clip", action="append", default=[], help="motion file beside the built-in dance; repeatable")
    parser.add_argument("--only", default="", help="some hypotheses or claims, separated by commas: H1,H4")
    parser.add_argument("--marker-set", default="", help="marker set of the clips, or the path of an own one")
    parser.add_argument("--robot", help="momentum, calibration, worlds: with legs (default: lola); safety: default all")
    parser.add_argument("--step-length", type=float, help="momentum: [m] (default: 0.4, scaled by the legs' length)")
    parser.add_argument("--step-time", type=float, help="momentum: [s] (default: 0.8, more where joints are slow)")
    parser.add_argument("--starts", type=int, help="safety: how many starts of each robot (default: 2000)")
    parser.add_argument("--poses", type=int, help="calibration: poses in the jig (default: 3)")
    parser.add_argument("--noise", type=float, help="calibration: of an encoder reading [deg] (default: 0.02)")
    parser.add_argument("--seeds", type=int, help="calibration: how often, with other offsets each time (default: 10)")
    parser.add_argument(
        "--vary", action="append", help="worlds: name=1,2,3: friction, stiffness, push_x ...; repeatable"
    )
    parser.add_argument("--seconds", type=float, help="worlds: simulated time (default: 5)")
    parser.add_argument("--engine", help="worlds: multibody (default) or mujoco")
    parser.add_argument("--drives", help="worlds: ideal (default), rigid or elastic")
    parser.add_argument("--workers", type=int, help="worlds: processes (default: one a core)")
    parser.add_argument("--details", action="store_true", help="also the rule and the numbers of every part")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.add_argument("-o", "--output", type=Path, help=f"file to write: {', '.join(FORMATS)}; others: folder")


def run(args: argparse.Namespace) -> int:
    if args.name not in STUDIES:
        raise UnknownNameError("study", args.name, STUDIES)
    for option in (o for study, options in ONLY_FOR.items() if study != args.name for o in options):
        if getattr(args, option) not in (None, "", []):
            raise ConfigError(f"--{option.replace('_', '-')} is not for the study '{args.name}'")
    for option in NOT_FOR.get(args.name, ()):
        if getattr(args, option):
            raise ConfigError(f"--{option} is not for the study '{args.name}'")
    if args.name == "worlds":
        from humanoid_control.cli.study_worlds import run as run_worlds

        return run_worlds(args)
    if args.name == "safety":
        from humanoid_control.cli.study_safety import run as run_safety

        return run_safety(args)
    if args.name == "calibration":
        from humanoid_control.cli.study_calibration import run as run_calibration

        return run_calibration(args)
    if args.name == "momentum":
        from humanoid_control.cli.study_momentum import run as run_momentum

        return run_momentum(args)
    from humanoid_control.capture import load_body_points
    from humanoid_control.imitation.study import HYPOTHESES, study

    names = [n.strip().upper() for n in args.only.split(",") if n.strip()] or list(HYPOTHESES)
    for name in names:
        if name not in HYPOTHESES:
            raise UnknownNameError("hypothesis", name, HYPOTHESES)
    _check_output(args.output)
    bodies = [load_body_points("dance")]
    bodies += [load_body_points(c, args.marker_set or None) for c in dict.fromkeys(args.clip) if c != "dance"]
    compile_first()
    with progress("study", 1.0, quiet=args.json) as show:
        found = study(bodies, names, lambda done, total, name: show(done / total, name))
    if args.output is not None:
        text = _markdown(found) if args.output.suffix == ".md" else json.dumps(plain_values(to_json(found)), indent=1)
        with tempfile.TemporaryDirectory(dir=args.output.parent, prefix=".writing_") as folder:
            whole = Path(folder) / args.output.name
            whole.write_text(text + "\n", encoding="utf-8")
            os.replace(whole, args.output)
    if args.json:
        print_json(to_json(found))
        return 0
    rows = [[f.hypothesis.name, f.hypothesis.statement, f.clip or "any", f.verdict, _short(f)] for f in found]
    table("conclusions of Dube 2012 on our models", ["", "conclusion", "clip", "verdict", "why not, most likely"], rows)
    if args.details:
        table(
            "rules",
            ["", "holds when"],
            [[h.name, h.rule] for h in {f.hypothesis.name: f.hypothesis for f in found}.values()],
        )
        parts = [
            [f.hypothesis.name, f.clip or "any", p.claim, p.verdict, _numbers(p.numbers)]
            for f in found
            for p in f.parts
        ]
        table("numbers", ["", "clip", "claim", "verdict", "measured"], parts)
    if args.output is not None:
        console.print(f"written: {args.output}")
    return 0


def to_json(found: Sequence[Finding]) -> dict[str, Any]:
    """The findings as plain dictionaries."""
    rows = []
    for f in found:
        parts = [{"claim": p.claim, "verdict": p.verdict, "numbers": dict(p.numbers)} for p in f.parts]
        rows.append(
            {
                "name": f.hypothesis.name,
                "statement": f.hypothesis.statement,
                "rule": f.hypothesis.rule,
                "clip": f.clip or None,
                "verdict": f.verdict,
                "reason": f.reason or None,
                "parts": parts,
            }
        )
    return {"study": "imitation", "findings": rows}


def _check_output(path: Path | None) -> None:
    if path is None:
        return
    if path.suffix not in FORMATS:
        raise UnknownNameError("format", path.suffix, FORMATS, hint=f"(of {path})")
    if not path.parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist")


def _short(f: Finding) -> str:
    """Why it does not hold, or what could not be decided."""
    undecided = "; ".join(p.claim for p in f.parts if p.verdict == f.verdict)
    return f.reason or (undecided if f.verdict.startswith("cannot") else "")


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in numbers.items())


def _markdown(found: Sequence[Finding]) -> str:
    lines = ["# Conclusions of Dube 2012 on our models", "", "Written by `humanoid study imitation`.", ""]
    for f in found:
        lines += [f"## {f.hypothesis.name}, {f.clip or 'any clip'}: {f.verdict}", "", f"{f.hypothesis.statement}.", ""]
        lines += [f"Rule: {f.hypothesis.rule}.", ""]
        lines += [f"* {p.claim}: **{p.verdict}** ({_numbers(p.numbers)})" for p in f.parts]
        lines += ["", f"Most likely reason: {f.reason}.", ""] if f.reason else [""]
    return "\n".join(lines)
