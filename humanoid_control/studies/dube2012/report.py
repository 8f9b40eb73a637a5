"""`humanoid study imitation`: the hypotheses of Dube 2012 as table, JSON and file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.studies.report import Progress, StudyReport, silent
from humanoid_control.terminal import Table, compile_first

if TYPE_CHECKING:
    from humanoid_control.studies.verdict import Finding


def run_study(
    clips: Sequence[str] = (), marker_set: str | None = None, only: Sequence[str] = (), show: Progress = silent
) -> StudyReport:
    """Judge the hypotheses.

    Args:
        clips: motion files beside the built-in dance. marker_set: of these clips.
        only: names of some hypotheses; all where none is given.
        show: told how far it is.
    """
    from humanoid_control.mocap import load_body_points
    from humanoid_control.studies.dube2012.hypotheses import HYPOTHESES, judge_hypotheses

    names = [name.upper() for name in only] or list(HYPOTHESES)
    if marker_set and not clips:
        raise ConfigError("--marker-set belongs to --clip FILE; the built-in dance has its own")
    for name in names:
        if name not in HYPOTHESES:
            raise UnknownNameError("hypothesis", name, HYPOTHESES)
    bodies = [load_body_points("dance")]
    bodies += [load_body_points(c, marker_set or None) for c in dict.fromkeys(clips) if c != "dance"]
    compile_first()
    found = judge_hypotheses(bodies, names, lambda done, total, name: show(done / total, name))
    rows = [[f.hypothesis.name, f.hypothesis.statement, f.clip or "any", f.verdict, _short(f)] for f in found]
    columns = ["", "conclusion", "clip", "verdict", "why not, most likely"]
    parts = [Table("conclusions of Dube 2012 on the models", columns, rows)]
    return StudyReport(to_json(found), parts, _details(found), lambda: {"imitation.md": _markdown(found) + "\n"})


def _details(found: Sequence[Finding]) -> list[Table | str]:
    rules = {f.hypothesis.name: f.hypothesis.rule for f in found}
    parts = [
        [f.hypothesis.name, f.clip or "any", p.claim, p.verdict, _numbers(p.numbers)] for f in found for p in f.parts
    ]
    return [
        Table("rules", ["", "holds when"], list(rules.items())),
        Table("numbers", ["", "clip", "claim", "verdict", "measured"], parts),
    ]


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


def _short(f: Finding) -> str:
    """Why it does not hold, or what could not be decided."""
    undecided = "; ".join(p.claim for p in f.parts if p.verdict == f.verdict)
    return f.reason or (undecided if f.verdict.startswith("cannot") else "")


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in numbers.items())


def _markdown(found: Sequence[Finding]) -> str:
    lines = ["# Conclusions of Dube 2012 on the models", "", "Written by `humanoid study imitation`.", ""]
    for f in found:
        lines += [f"## {f.hypothesis.name}, {f.clip or 'any clip'}: {f.verdict}", "", f"{f.hypothesis.statement}.", ""]
        lines += [f"Rule: {f.hypothesis.rule}.", ""]
        lines += [f"* {p.claim}: **{p.verdict}** ({_numbers(p.numbers)})" for p in f.parts]
        lines += ["", f"Most likely reason: {f.reason}.", ""] if f.reason else [""]
    return "\n".join(lines)
