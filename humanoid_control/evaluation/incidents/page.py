"""HTML page of a time line: a lane per kind, a bar per violation, and tables; self-contained."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from humanoid_control.evaluation.incidents.difference import RunDifference
from humanoid_control.evaluation.incidents.timeline import KINDS, SHOWN, Timeline
from humanoid_control.evaluation.report.page import STYLE, grid
from humanoid_control.terminal import ReportTable

COLOURS = dict(zip(KINDS, ("#c2a01e", "#c94f6d", "#d9702b", "#2f83c9", "#9a68c4", "#d03030", "#8d8d8d"), strict=True))
LEFT, WIDTH, LANE, TOP = 110.0, 1000.0, 30.0, 14.0  # of the drawing [px]
NARROWEST = 3.0  # minimum bar width, so that instants are visible [px]


def timeline_page(runs: Sequence[Timeline], difference: RunDifference | None = None) -> str:
    """Return the self-contained HTML of one run, or of two with their difference."""
    parts = [f"<h1>{'Why' if len(runs) == 1 else 'Two runs'}: the first violated quantity</h1>"]
    for run in runs:
        parts += [f"<h2>{escape(run.bag)}</h2>", f"<p>{escape(run.headline())}</p>", _drawing(run)]
        parts += [_part(p) for p in run.parts()[1:]]
        rows = [[f"{v.begin:.3f}", f"{v.end - v.begin:.3f}", v.kind, v.source, v.text] for v in run.violations]
        if len(rows) > SHOWN:
            columns = ["at [s]", "for [s]", "quantity", "source", "what"]
            table = grid(ReportTable("", columns, rows))
            parts.append(f"<details><summary>all {len(rows)} violations</summary>{table}</details>")
    if difference is not None:
        parts += ["<h2>Difference</h2>", *(_part(p) for p in difference.parts())]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>humanoid why</title>'
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n{body}\n</body></html>\n'


def _part(part: ReportTable | str) -> str:
    if isinstance(part, str):
        return f"<p>{escape(part)}</p>"
    return f"<h3>{escape(part.title)}</h3>\n{grid(part)}"


def _drawing(run: Timeline) -> str:
    height = TOP + LANE * len(KINDS) + 24
    scale = (WIDTH - LEFT - 20) / max(run.duration, 1e-9)
    out = []
    for k, kind in enumerate(KINDS):
        y = TOP + LANE * k
        out.append(
            f'<text x="{LEFT - 8}" y="{y + 18}" text-anchor="end" fill="var(--ink)" font-size="13">{kind}</text>'
            f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{y + LANE}" y2="{y + LANE}" stroke="var(--line)"/>'
        )
    for v in reversed(run.violations):  # the first one is on top
        x, w = LEFT + scale * v.begin, max(NARROWEST, scale * (v.end - v.begin))
        y = TOP + LANE * KINDS.index(v.kind) + 6
        tip = escape(f"{v.begin:.3f} s: {v.text}")
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{LANE - 12}" rx="2" fill="{COLOURS[v.kind]}" '
            f'fill-opacity="0.85"><title>{tip}</title></rect>'
        )
    if run.violations:
        x = LEFT + scale * run.violations[0].begin
        out.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{height - 22}" stroke="var(--ink)" stroke-dasharray="4 3"/>'
        )
    ticks = 6
    for k in range(ticks + 1):
        t = run.duration * k / ticks
        out.append(
            f'<text x="{LEFT + scale * t:.1f}" y="{height - 4}" text-anchor="middle" fill="var(--ink)" '
            f'font-size="12">{t:.1f} s</text>'
        )
    title = escape(run.headline())
    return f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-label="{title}">{"".join(out)}</svg>'
