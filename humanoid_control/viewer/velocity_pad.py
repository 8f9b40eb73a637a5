"""Pad of a page for a velocity: by pointer or arrow keys; the request ends when released, or when the page is gone.

The pad is HTML with a script, which writes the request and a counter into a text field. If the counter stops for half a
second (page closed, hidden or hung), the request ends.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.viewer.access import may_command

if TYPE_CHECKING:
    import viser

ALIVE = 0.5  # [s] without updates before a page counts as closed
FIELD = "pad "  # prefix of the script's text: forward, left, turn, each -1..1, and a counter

PAD = """
<div style="display:flex;flex-direction:column;align-items:center;gap:6px;margin:4px 0 8px 0;user-select:none">
  <div id="walk-pad" title="drag: forward and turn; with Shift: to the side; or the arrow keys"
       style="position:relative;width:150px;height:150px;border-radius:50%;background:#e9ecef;border:1px solid #adb5bd;
              touch-action:none;cursor:grab">
    <div id="walk-knob" style="position:absolute;left:55px;top:55px;width:38px;height:38px;border-radius:50%;
         background:#1c7ed6;pointer-events:none"></div>
  </div>
  <small>drag, or arrow keys; with Shift to the side</small>
</div>
<img src="data:," style="display:none" onerror="(SCRIPT)()">
"""
SCRIPT = """function() {
  const field = () => [...document.querySelectorAll('input')].find(i => i.value.startsWith('pad '));
  const hidden = setInterval(() => {
    const f = field();
    if (!f) return;
    let row = f;
    while (row.parentElement && ['', 'pad'].includes(row.parentElement.innerText.trim())) row = row.parentElement;
    row.style.display = 'none';
    clearInterval(hidden);
  }, 100);
  if (window.walkPad) return;
  const state = window.walkPad = {keys: new Set(), shift: false, drag: null, count: 0, was: false};
  const say = (x, y, a) => {
    const f = field(), knob = document.getElementById('walk-knob');
    if (knob) { knob.style.left = (55 - 50 * (a || y)) + 'px'; knob.style.top = (55 - 50 * x) + 'px'; }
    if (!f) return;
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    set.call(f, 'pad ' + [x, y, a].map(v => v.toFixed(2)).join(' ') + ' ' + ++state.count);
    f.dispatchEvent(new Event('input', {bubbles: true}));
  };
  const tell = () => {
    const k = state.keys, side = (k.has('ArrowLeft') ? 1 : 0) - (k.has('ArrowRight') ? 1 : 0);
    let x = (k.has('ArrowUp') ? 1 : 0) - (k.has('ArrowDown') ? 1 : 0), turn = side;
    if (state.drag) [x, turn] = state.drag;
    const busy = k.size > 0 || state.drag !== null;
    if (busy || state.was) say(x, state.shift ? turn : 0, state.shift ? 0 : turn);
    state.was = busy;
  };
  const typing = e => /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName || '');
  window.addEventListener('keydown', e => {
    if (!e.key.startsWith('Arrow') || typing(e) || !document.getElementById('walk-pad')) return;
    e.preventDefault(); e.stopImmediatePropagation();
    state.shift = e.shiftKey;
    if (!state.keys.has(e.key)) { state.keys.add(e.key); tell(); }
  }, true);
  window.addEventListener('keyup', e => {
    state.shift = e.shiftKey;
    if (state.keys.delete(e.key)) { e.stopImmediatePropagation(); tell(); }
  }, true);
  const drop = () => { state.keys.clear(); state.drag = null; tell(); };
  window.addEventListener('blur', drop);
  document.addEventListener('visibilitychange', () => { if (document.hidden) drop(); });
  const place = e => {
    const r = document.getElementById('walk-pad').getBoundingClientRect(), R = r.width / 2;
    let u = (e.clientX - r.left - R) / R, v = (e.clientY - r.top - R) / R, n = Math.max(1, Math.hypot(u, v));
    state.shift = e.shiftKey;
    state.drag = [-v / n, -u / n];
    tell();
  };
  window.addEventListener('pointerdown', e => {
    if (e.target.id === 'walk-pad') { e.target.setPointerCapture(e.pointerId); place(e); }
  }, true);
  window.addEventListener('pointermove', e => { if (state.drag) place(e); }, true);
  for (const end of ['pointerup', 'pointercancel'])
    window.addEventListener(end, () => { if (state.drag) { state.drag = null; tell(); } }, true);
  setInterval(tell, 150);
}"""


class VelocityPad:
    """Pad with its current request.

    Args:
        move: takes a velocity (3,), each -1..1: forward, left, turning left; zeros end it. Called by `update`.
        visible: at first.
    """

    def __init__(self, server: viser.ViserServer, move: Callable[[np.ndarray], None], visible: bool = True) -> None:
        self._move, self._lock, self._heard, self._moving = move, threading.Lock(), 0.0, False
        self._velocity = np.zeros(3)
        self._drawing = server.gui.add_html(PAD.replace("SCRIPT", SCRIPT.replace('"', "&quot;")), visible=visible)
        self._field = field = server.gui.add_text("pad", f"{FIELD}0 0 0 0", visible=visible)

        @field.on_update
        def _(event: viser.GuiEvent) -> None:
            with self._lock:  # also while it is read: calls of several updates may overtake each other
                if (velocity := read_pad(field.value)) is None or not self._drawing.visible:
                    return  # an update may be on its way when the pad is hidden
                if not velocity.any() or may_command(server, event):  # stopping needs no token
                    self._velocity, self._heard = velocity, time.monotonic()

    def show(self, visible: bool) -> None:
        """Show or hide the pad; a hidden one requests nothing."""
        if self._drawing.visible != visible:
            with self._lock:
                self._drawing.visible = self._field.visible = visible
                self._velocity = np.zeros(3)  # the end of a request is not heard while the pad is hidden

    def update(self, now: float) -> None:
        """Pass on the current request, and its end once."""
        with self._lock:
            asked = self._drawing.visible and now - self._heard < ALIVE
            velocity = self._velocity if asked else np.zeros(3)
        moving = bool(velocity.any())
        if moving or self._moving:
            self._move(velocity)
        self._moving = moving


def read_pad(text: str) -> np.ndarray | None:
    """Return the velocity (3,) of a pad text, each -1..1, or None."""
    parts = text.removeprefix(FIELD).split()
    try:
        v = np.array([float(x) for x in parts[:3]])
    except ValueError:
        return None
    if not text.startswith(FIELD) or len(v) != 3 or not np.isfinite(v).all():
        return None
    return np.clip(v, -1.0, 1.0)
