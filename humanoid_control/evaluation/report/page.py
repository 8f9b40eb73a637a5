"""Score page: one self-contained HTML file with tables and plots, in light and dark mode."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from humanoid_control import __version__
from humanoid_control.evaluation.report.plots import error_bars, histograms, joint_ranges, over_time, postures
from humanoid_control.evaluation.report.tables import NAMES, detail_tables, posture_rows, summary_tables, verdict_lines
from humanoid_control.evaluation.score import RobotScore
from humanoid_control.evaluation.tracking_error import LINKS
from humanoid_control.terminal import ReportTable

STYLE = """
:root { color-scheme: light dark; --ink: #1d2125; --line: #d5dade; --paper: #ffffff; --soft: #f3f5f7; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e7ea; --line: #454c53; --paper: #16191c; --soft: #22272b; }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 76rem; margin: 2rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; }
h2 { font-size: 1.25rem; margin-top: 2.6rem; border-top: 1px solid var(--line); padding-top: 1.2rem; }
h3 { font-size: 1rem; margin: 1.6rem 0 0.4rem; }
p, li { max-width: 46rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 0.86rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.22rem 0.6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { background: var(--soft); font-weight: 600; white-space: normal; vertical-align: bottom; }
td.text, th.text { text-align: left; }
td.long { white-space: normal; min-width: 18rem; }
.note { font-size: 0.82rem; opacity: 0.8; margin: 0.3rem 0 0; }
svg { width: 100%; height: auto; display: block; margin: 0.6rem 0; }
.legend { margin: 0.4rem 0 0; font-size: 0.86rem; max-width: none; }
.legend span { margin-right: 1.2rem; white-space: nowrap; }
summary { cursor: pointer; margin: 0.8rem 0; }
nav a { margin-right: 0.9rem; }
a { color: inherit; }
"""
LONG = 40  # characters above which a cell may wrap


def score_page(scores: Sequence[RobotScore]) -> str:
    """Return the self-contained HTML."""
    first = scores[0]
    runs = "; ".join(r.label for r in first.runs)
    parts = [
        f"<h1>How well robots imitate “{escape(first.clip)}”</h1>",
        f"<p>{first.n_frames} frames at {first.rate:g} Hz, {len(scores)} robot{'s' * (len(scores) > 1)}; "
        f"{escape(runs)}. "
        "The error of a link is the distance of its end point from its target, which has the dancer's segment "
        "directions and the robot's segment lengths.</p>",
        "<nav>" + "".join(f'<a href="#{escape(s.robot)}">{escape(s.robot)}</a>' for s in scores) + "</nav>",
        "<h2>Comparison of the robots</h2>",
        error_bars(scores),
        '<p class="note">Bars: mean; whiskers: one standard deviation; left and right together.</p>',
        *(_table(t) for t in summary_tables(scores)),
        *(_robot(s) for s in scores),
        f'<p class="note">humanoid_control {__version__}, humanoid score. After C. Dube, <i>Imitating human motion '
        "using humanoid upper body models</i>, University of Cape Town, 2012, chapter 6.</p>",
    ]
    head = (
        f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(first.clip)}</title>'
    )
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<style>{STYLE}</style></head><body>\n'
        + "\n".join(parts)
        + ("\n</body></html>\n")
    )


def _robot(s: RobotScore) -> str:
    *costs, distribution, extremes, joints, others = detail_tables(s)
    parts = [
        f'<h2 id="{escape(s.robot)}">{escape(s.robot)}: {escape(s.title)}</h2>',
        *(f"<p>{escape(line)}.</p>" for line in verdict_lines([s])),
        *(_folded(t) for t in costs),
        over_time(s),
        "<h3>Postures: desired and actual</h3>",
        postures(s),
        "<h3>Errors</h3>",
        histograms(s),
        _table(distribution),
        "<h3>Joint ranges</h3>",
        joint_ranges(s),
        _folded(joints),
        _folded(extremes),
        *(_folded(t) for t in _posture_tables(s)),
    ]
    if others.rows:
        parts.append(_folded(others))
    return "\n".join(parts)


def _posture_tables(s: RobotScore, most: int = 3) -> list[ReportTable]:
    tables = []
    for r in s.runs:
        columns, rows = ["joint °"], [[u.joint] for u in r.joints]
        for name in LINKS:
            for what, found in (("peak", r.links[name].peaks), ("trough", r.links[name].troughs)):
                columns += [f"{NAMES[name]} {what} {e.time:.1f} s" for e in found[:most]]
                for k, row in enumerate(posture_rows(found[:most])):
                    rows[k] += row[1:]
        title = f"{s.robot}, {r.label}: joint angles at peaks and troughs"
        tables.append(ReportTable(title, columns, rows, "* within 1° of a limit."))
    return tables


def _table(t: ReportTable) -> str:
    return f"<h3>{escape(t.title)}</h3>\n{grid(t)}"


def _folded(t: ReportTable) -> str:
    return f"<details><summary>{escape(t.title)}</summary>\n{grid(t)}</details>"


def grid(t: ReportTable) -> str:
    """Return a table as HTML, without its title."""
    text = [any(not _is_number(row[k]) for row in t.rows) for k in range(len(t.columns))]
    head = "".join(f"<th{' class=text' * text[k]}>{escape(str(c))}</th>" for k, c in enumerate(t.columns))
    rows = []
    for row in t.rows:
        cells = []
        for k, v in enumerate(row):
            kind = "text long" if text[k] and len(str(v)) > LONG else "text" if text[k] else ""
            cells.append(f'<td class="{kind}">{escape(_cell(v))}</td>' if kind else f"<td>{escape(_cell(v))}</td>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    note = f'<p class="note">{escape(t.note)}</p>' if t.note else ""
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(rows)}</table></div>{note}'


def _is_number(v: Any) -> bool:
    return isinstance(v, (int, float)) or str(v)[:1].isdigit() or str(v)[:1] in "-*"


def _cell(v: Any) -> str:
    return f"{v:.4g}" if isinstance(v, float) else str(v)
