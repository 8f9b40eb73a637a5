"""`humanoid study imitation`: the hypotheses of Dube 2012 as table, JSON and file."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.files import check_file, whole_file
from humanoid_control.terminal import compile_first, console, plain_values, print_json, progress, table

if TYPE_CHECKING:
    from humanoid_control.studies.verdict import Finding

FORMATS = (".json", ".md")


def run(args: argparse.Namespace) -> int:
    """Judge the hypotheses and print them."""
    from humanoid_control.mocap.load import load_body_points
    from humanoid_control.studies.dube2012.hypotheses import HYPOTHESES, study

    names = [n.strip().upper() for n in args.only.split(",") if n.strip()] or list(HYPOTHESES)
    if args.marker_set and not args.clip:
        raise ConfigError("--marker-set belongs to --clip FILE; the built-in dance has its own")
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
        with whole_file(args.output) as whole:
            whole.write_text(text + "\n", encoding="utf-8")
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
    check_file(path)


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
