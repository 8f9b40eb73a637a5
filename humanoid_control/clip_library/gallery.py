"""Offline HTML page of animated figures, worst grade first.

Only visible figures are decoded, so large pages open quickly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from humanoid_control import __version__
from humanoid_control.clip_library.manifest import Record
from humanoid_control.evaluation.clip_quality import GRADES, MEASURES

FAILED = "failed"
SHOWN = tuple(m.key for m in MEASURES if m.key not in ("beyond_range_deg", "speed_share"))

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Retargeted clips</title><style>
:root { color-scheme: light dark; --ink: #1d2125; --line: #d5dade; --paper: #ffffff; --soft: #f3f5f7; --bone: #3a4650;
  --A: #1a7f4b; --B: #5f8f1f; --C: #b58100; --D: #c8590b; --F: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e7ea; --line: #454c53; --paper: #16191c; --soft: #22272b;
  --bone: #c4ccd3; --A: #52c78a; --B: #a3cf5e; --C: #e8bd4a; --D: #f0914f; --F: #f2776f; } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0; }
header { position: sticky; top: 0; z-index: 1; background: var(--paper); border-bottom: 1px solid var(--line);
  padding: 0.6rem 1rem; display: flex; flex-wrap: wrap; gap: 0.4rem 1.2rem; align-items: center; }
h1 { font-size: 1.1rem; margin: 0; } label { white-space: nowrap; }
input[type=search], select { font: inherit; padding: 0.15rem 0.4rem; background: var(--soft); color: var(--ink);
  border: 1px solid var(--line); border-radius: 4px; }
main { display: grid; grid-template-columns: repeat(auto-fill, minmax(210px, 1fr)); gap: 0.7rem; padding: 0.8rem 1rem; }
article { border: 1px solid var(--line); border-radius: 6px; overflow: hidden; background: var(--soft); }
canvas { display: block; width: 100%; height: 190px; background: var(--paper); }
.text { padding: 0.4rem 0.6rem 0.6rem; } .name { font-weight: 600; overflow-wrap: anywhere; }
.grade { float: right; font-weight: 700; font-size: 1.15rem; margin-left: 0.5rem; }
.why, .numbers { font-size: 0.8rem; overflow-wrap: anywhere; } .numbers { opacity: 0.75; }
.A { color: var(--A); } .B { color: var(--B); } .C { color: var(--C); } .D { color: var(--D); }
.F, .failed { color: var(--F); } footer { padding: 0 1rem 1rem; font-size: 0.8rem; opacity: 0.75; }
</style></head><body>
"""

_SCRIPT = """
const STEP = 60, GRADE_ORDER = ORDER_OF_GRADES;
const main = document.querySelector('main'), foot = document.querySelector('#end');
const status = document.querySelector('#status'), words = document.querySelector('#words');
const pick = document.querySelector('#robot'), boxes = [...document.querySelectorAll('#grades input')];
let shown = [], made = 0;
const seen = new Map();               // card in sight -> its figure, unpacked
window.gallery = { seen, drawn: 0 };  // for tests

function unpack(card) {
  const f = card.clip.figure, raw = atob(f.places), bytes = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) bytes[k] = raw.charCodeAt(k);
  const at = new Int16Array(bytes.buffer), tree = TREES[f.tree], low = [1e9, 1e9], high = [-1e9, -1e9];
  const shape = { at, f, lines: tree.lines, soles: tree.soles, n: tree.points };
  // One scale for the whole clip: the figure's height and reach about its own middle.
  let reach = 400, top = -1e9, bottom = 1e9;
  for (let t = 0; t < f.frames; t++) {
    const [mx, my] = middle(shape, t);
    for (let p = 0; p < shape.n; p++) {
      const k = 3 * (t * shape.n + p);
      reach = Math.max(reach, Math.abs(across(at[k] - mx, at[k + 1] - my)));
      const up = lift(at[k] - mx, at[k + 1] - my, at[k + 2]);
      top = Math.max(top, up); bottom = Math.min(bottom, up);
    }
  }
  return Object.assign(shape, { reach, top, bottom });
}
function middle(s, t) { const k = 3 * t * s.n; return [s.at[k], s.at[k + 1]]; }
const across = (x, y) => 0.80 * y - 0.60 * x;           // from ahead and a little from the side
const lift = (x, y, z) => 0.97 * z - 0.20 * (0.60 * y + 0.80 * x);

function draw(card, s, now) {
  const c = card.canvas, g = c.getContext('2d'), f = s.f, ratio = window.devicePixelRatio || 1;
  const w = c.clientWidth, h = c.clientHeight;
  if (c.width !== Math.round(w * ratio)) { c.width = Math.round(w * ratio); c.height = Math.round(h * ratio); }
  g.setTransform(ratio, 0, 0, ratio, 0, 0); g.clearRect(0, 0, w, h);
  const place = (now / 1000 * f.rate) % Math.max(f.frames, 1), t = Math.floor(place);
  const next = Math.min(t + 1, f.frames - 1), part = place - t;
  const scale = Math.min((w - 24) / (2 * s.reach), (h - 24) / Math.max(s.top - s.bottom, 400));
  const [ax, ay] = middle(s, t), [bx, by] = middle(s, next), mx = ax + part * (bx - ax), my = ay + part * (by - ay);
  const X = new Float32Array(s.n), Y = new Float32Array(s.n);
  for (let p = 0; p < s.n; p++) {
    const a = 3 * (t * s.n + p), b = 3 * (next * s.n + p);
    const x = s.at[a] + part * (s.at[b] - s.at[a]) - mx, y = s.at[a + 1] + part * (s.at[b + 1] - s.at[a + 1]) - my;
    const z = s.at[a + 2] + part * (s.at[b + 2] - s.at[a + 2]);
    X[p] = w / 2 + scale * across(x, y); Y[p] = h - 12 - scale * (lift(x, y, z) - s.bottom);
  }
  const style = getComputedStyle(document.documentElement), bone = style.getPropertyValue('--bone');
  g.lineWidth = 3; g.lineCap = 'round'; g.strokeStyle = bone; g.beginPath();
  for (const [a, b] of s.lines) { g.moveTo(X[a], Y[a]); g.lineTo(X[b], Y[b]); }
  g.stroke();
  const down = f.contacts ? parseInt(f.contacts[t], 16) : 0;
  for (let side = 0; side < s.soles.length; side += 2) {
    const [a, b] = s.soles[side], [c2, d] = s.soles[side + 1];
    g.lineWidth = 1.5; g.strokeStyle = bone; g.beginPath();
    g.moveTo(X[a], Y[a]); g.lineTo(X[b], Y[b]); g.lineTo(X[d], Y[d]); g.lineTo(X[c2], Y[c2]); g.closePath(); g.stroke();
    for (const edge of [side, side + 1]) if (down >> edge & 1) {
      const [from, to] = s.soles[edge];
      g.lineWidth = 3.5; g.strokeStyle = style.getPropertyValue('--A'); g.beginPath();
      g.moveTo(X[from], Y[from]); g.lineTo(X[to], Y[to]); g.stroke();
    }
  }
  window.gallery.drawn++;
}
function tick(now) { for (const [card, s] of seen) draw(card, s, now); requestAnimationFrame(tick); }

const sight = new IntersectionObserver(entries => { for (const e of entries) {
  if (!e.isIntersecting) seen.delete(e.target);
  else if (e.target.clip.figure) seen.set(e.target, unpack(e.target));
} }, { rootMargin: '80px' });

function add(tag, parent, name, text) {
  const e = document.createElement(tag); if (name) e.className = name; e.textContent = text || '';
  parent.appendChild(e); return e;
}
function card(clip) {
  const box = document.createElement('article'); box.clip = clip;
  if (clip.figure) box.canvas = add('canvas', box);
  const text = add('div', box, 'text');
  add('span', text, 'grade ' + clip.grade, clip.grade);
  add('div', text, 'name', clip.clip); add('div', text, '', clip.robots.join(', '));
  add('div', text, 'why', clip.why); add('div', text, 'numbers', clip.numbers);
  box.title = clip.warnings;
  main.appendChild(box); sight.observe(box);
}
function more() { for (const end = Math.min(made + STEP, shown.length); made < end; made++) card(shown[made]); }
function filter() {
  const grades = new Set(boxes.filter(b => b.checked).map(b => b.value)), text = words.value.toLowerCase();
  shown = CLIPS.filter(c => grades.has(c.grade) && (!pick.value || c.robots.includes(pick.value))
    && (!text || (c.clip + ' ' + c.why).toLowerCase().includes(text)));
  for (const box of main.children) sight.unobserve(box);
  seen.clear(); main.replaceChildren(); made = 0; window.scrollTo(0, 0); more();
  const count = list => list.reduce((n, c) => n + (pick.value ? 1 : c.robots.length), 0);
  status.textContent = count(shown) + ' of ' + CLIPS.reduce((n, c) => n + c.robots.length, 0);
}
new IntersectionObserver(e => { if (e[0].isIntersecting) more(); }, { rootMargin: '600px' }).observe(foot);
for (const e of [...boxes, pick]) e.addEventListener('change', filter);
words.addEventListener('input', filter);
filter(); requestAnimationFrame(tick);
"""


def gallery_page(records: Iterable[Record], figure: Callable[[Record], dict[str, Any] | None]) -> Iterator[str]:
    """Yield the text of the page.

    Args:
        figure: returns the figure of a record.
    """
    order = (FAILED, *reversed(GRADES))
    rows = sorted(records, key=lambda r: (order.index(_grade(r)), r["clip"], r["reason"], r["robot"]))
    robots = sorted({r["robot"] for r in rows})
    counts = {g: sum(_grade(r) == g for r in rows) for g in order}
    yield _HEAD
    yield f"<header><h1>Retargeted clips</h1><span id='status'>{len(rows)}</span><span id='grades'>"
    for grade in order:
        if counts[grade]:
            yield f"<label class='{grade}'><input type='checkbox' value='{grade}' checked> {grade} ({counts[grade]})"
            yield "</label> "
    yield "</span><select id='robot'><option value=''>all robots</option>"
    yield "".join(f"<option>{escape(name)}</option>" for name in robots)
    yield "</select><input type='search' id='words' placeholder='name, or reason'></header><main></main>\n"
    yield f"<div id='end'></div><footer>{_legend()} humanoid_control {__version__}.</footer>\n"
    yield "<script>\nconst CLIPS = [\n"
    trees: dict[str, int] = {}
    for _, alike in groupby(rows, lambda r: (r["clip"], r["reason"]) if r["failed"] else id(r)):
        together = list(alike)  # robots that failed for the same reason, or one that succeeded
        card = _card(together[0], figure(together[0]), trees)
        yield _json(card | {"robots": [r["robot"] for r in together]}) + ",\n"
    yield "];\nconst TREES = [" + ",\n".join(trees) + "];\n"
    yield _SCRIPT.replace("ORDER_OF_GRADES", json.dumps(order)) + "</script></body></html>\n"


def _grade(record: Record) -> str:
    return FAILED if record["failed"] else str(record["grade"])


def _legend() -> str:
    goals = "; ".join(f"{m.meaning} {m.most[0]:.3g} {m.unit}".rstrip() for m in MEASURES if m.most[0] > 0.01)
    return (
        f"Eight seconds around the largest error; green: sole edges on the floor. A: {escape(goals)}; no frame in "
        f"self-collision. The worst measure sets the grade."
    )


def _card(record: Record, figure: dict[str, Any] | None, trees: dict[str, int]) -> dict[str, Any]:
    """Return a card; store its figure tree once in `trees` (JSON -> index)."""
    numbers = record.get("numbers", {})
    told = [
        f"{key.rpartition('_')[0].replace('_', ' ')} {numbers[key]:.3g} {_unit(key)}"
        for key in SHOWN
        if _has(numbers, key)
    ]
    out = {
        "clip": record["clip"],
        "grade": _grade(record),
        "why": record["reason"] if record["failed"] else record["verdict"],
        "numbers": ", ".join(told),
        "warnings": "\n".join(record.get("warnings", [])),
    }
    if figure and not record["failed"]:
        tree = _json({"lines": figure["lines"], "soles": figure["soles"], "points": figure["points"]})
        shown = {key: figure[key] for key in ("frames", "rate", "places", "contacts")}
        out["figure"] = shown | {"tree": trees.setdefault(tree, len(trees))}
    return out


def _has(numbers: dict[str, Any], key: str) -> bool:
    return isinstance(numbers.get(key), (int, float))


def _unit(key: str) -> str:
    unit = key.rpartition("_")[2]
    return "%" if unit == "percent" else unit


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script."""
    text = json.dumps(value, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
