"""`humanoid study imitation`: the hypotheses of Dube 2012 as table, JSON and file."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evidence.studies.report import Progress, StudyReport, over_clips, silent
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.terminal import ReportTable
from humanoid_control.warm_up import compile_first

if TYPE_CHECKING:
    from evidence.studies.report import Finding


BUILT_IN = "dance"
CHOREOGRAPHY = (
    "the built-in dance is computed to use every joint, not recorded: its results apply only to it; recordings of "
    "people decide more: --clip FILE, repeatable"
)


def run_study(
    clips: Sequence[str] = (),
    marker_set: str | None = None,
    only: Sequence[str] = (),
    show: Progress = silent,
    **reading: Any,
) -> StudyReport:
    """Judge the hypotheses, each on every clip and over all of them.

    Args:
        clips: motion files, "dance" for the built-in dance; that alone where none is given.
        marker_set: of the files.
        only: names of some hypotheses; all where none is given.
        show: told how far it is.
        reading: unit, scale and rate of the files, as for `load_clip`.
    """
    from evidence.studies.dube2012.hypotheses import HYPOTHESES, judge_hypotheses
    from humanoid_control.mocap import CLIP_NAMES, load_body_points
    from humanoid_control.mocap.marker_sets import find_marker_set

    names = [name.upper() for name in only] or list(HYPOTHESES)
    chosen = list(dict.fromkeys(clips)) or [BUILT_IN]
    if marker_set:
        find_marker_set(marker_set)
    if (marker_set or reading) and chosen == [BUILT_IN]:
        what = "a marker set" if marker_set else f"a {min(reading)}"
        raise ConfigError(f"{what} applies to clip files only, not to the built-in dance")
    for name in names:
        if name not in HYPOTHESES:
            raise UnknownNameError("hypothesis", name, HYPOTHESES)
    bodies = [
        load_body_points(c) if c in CLIP_NAMES else load_body_points(c, marker_set or None, **reading) for c in chosen
    ]
    compile_first()
    found = judge_hypotheses(bodies, names, lambda done, total, name: show(done / total, name))
    parts: list[ReportTable | str] = [_verdicts(found, [b.name for b in bodies]), _reasons(found)]
    if chosen == [BUILT_IN]:
        parts.append(CHOREOGRAPHY)
    return StudyReport(to_json(found), parts, _details(found), lambda: {"imitation.md": _markdown(found) + "\n"})


def _by_hypothesis(found: Sequence[Finding]) -> list[list[Finding]]:
    """The findings of each hypothesis, on one clip after the other."""
    return [list(group) for _, group in groupby(found, key=lambda f: f.hypothesis.name)]


def _verdicts(found: Sequence[Finding], clips: Sequence[str]) -> ReportTable:
    """A row a hypothesis: its verdict over all clips, and on each."""
    rows = []
    for group in _by_hypothesis(found):
        first = group[0].hypothesis
        each = {f.clip: f.verdict for f in group}
        row = [first.name, first.statement, over_clips(list(each.values()))]
        rows.append([*row, *(each.get(clip, "any clip") for clip in clips)] if len(clips) > 1 else row)
    columns = ["", "conclusion", "verdict", *(clips if len(clips) > 1 else ())]
    return ReportTable(f"conclusions of Dube 2012 on the models: {', '.join(clips)}", columns, rows)


def _reasons(found: Sequence[Finding]) -> ReportTable:
    """Why conclusions do not hold, or what could not be decided, clip by clip."""
    rows = [[f.hypothesis.name, f.clip or "any", f.verdict, why] for f in found if (why := _short(f))]
    return ReportTable("most likely reason", ["", "clip", "verdict", "reason"], rows)


def _details(found: Sequence[Finding]) -> list[ReportTable | str]:
    rules = {f.hypothesis.name: f.hypothesis.rule for f in found}
    parts = [
        [f.hypothesis.name, f.clip or "any", p.claim, p.verdict, _numbers(p.numbers)] for f in found for p in f.parts
    ]
    return [
        ReportTable("rules", ["", "holds when"], list(rules.items())),
        ReportTable("numbers", ["", "clip", "claim", "verdict", "measured"], parts),
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
    over = []
    for group in _by_hypothesis(found):
        h, clips = group[0].hypothesis, {f.clip or "any": f.verdict for f in group}
        verdict = over_clips(list(clips.values()))
        over.append({"name": h.name, "statement": h.statement, "verdict": verdict, "clips": clips})
    return {"study": "imitation", "over_clips": over, "findings": rows}


def _short(f: Finding) -> str:
    """Why it does not hold, or what could not be decided."""
    undecided = "; ".join(p.claim for p in f.parts if p.verdict == f.verdict)
    return f.reason or (undecided if f.verdict.startswith("cannot") else "")


def _numbers(numbers: Any) -> str:
    return ", ".join(f"{k} {v:g}" for k, v in numbers.items())


def _markdown(found: Sequence[Finding]) -> str:
    lines = ["# Conclusions of Dube 2012 on the models", "", "Written by `humanoid study imitation`.", ""]
    for group in _by_hypothesis(found):
        h, each = group[0].hypothesis, "; ".join(f"{f.clip or 'any clip'}: {f.verdict}" for f in group)
        lines.append(f"* {h.name}, {h.statement}: **{over_clips([f.verdict for f in group])}** ({each})")
    lines += [""]
    for f in found:
        lines += [f"## {f.hypothesis.name}, {f.clip or 'any clip'}: {f.verdict}", "", f"{f.hypothesis.statement}.", ""]
        lines += [f"Rule: {f.hypothesis.rule}.", ""]
        lines += [f"* {p.claim}: **{p.verdict}** ({_numbers(p.numbers)})" for p in f.parts]
        lines += ["", f"Most likely reason: {f.reason}.", ""] if f.reason else [""]
    return "\n".join(lines)
