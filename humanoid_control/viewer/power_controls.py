"""Power panel of a real robot, shown after the first driver message.

Buttons stay enabled; the driver explains refusals.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from humanoid_control.viewer.access import REFUSED, may_command
from humanoid_control.viewer.shared_control import on_press

if TYPE_CHECKING:
    import viser

    from humanoid_control.kinematics import NodeStatus

FREE = ("stop", "estop")  # requests without token, because they stop motion
BUTTONS = (
    ("ENABLE", "enable", "green", "switch power on, or resume after a stop"),
    ("STOP", "stop", "orange", "come to rest and hold, with power; ENABLE resumes"),
    ("EMERGENCY STOP", "estop", "red", "the drives stop on their own, then power is switched off"),
)
"""Label, request, colour and hint."""
MORE = {"switch off": "disable", "release e-stop": "release", "clear faults": "clear", "home": "home"}
"""Label of a small button -> request."""
GREY, BLUE, GREEN, AMBER, RED = "#868e96", "#1c7ed6", "#2b8a3e", "#b36b00", "#c92a2a"
COLORS = {"RUN": GREEN, "STOPPING": AMBER, "FAULT": RED, "ESTOP": RED, "MONITOR": GREY, "OFFLINE": GREY}
LEVELS = (GREEN, AMBER, RED)
PATIENCE = 5.0  # [s] for an answer
TEMPERATURE = "temperature "  # prefix of temperature keys in the joint status
ERROR = "following_error "


@dataclass(frozen=True)
class PowerActions:
    """Callbacks of the controls, called from server threads.

    Attributes:
        call: sends a request of `BUTTONS` or `MORE`; returns False without a driver.
    """

    call: Callable[[str], bool]


class PowerControls:
    """Controls and driver state."""

    def __init__(self, server: viser.ViserServer, actions: PowerActions) -> None:
        self.actions, self._server, gui = actions, server, server.gui
        self._lock, self._pending = threading.Lock(), dict[str, float]()
        self._folder = gui.add_folder("Power", visible=False)
        with self._folder:
            self._state = gui.add_html("")
            for label, request, color, hint in BUTTONS:
                button = gui.add_button(label, color=color, hint=hint)  # type: ignore[arg-type]
                self._connect(button, request)
            more = gui.add_button_group("driver", tuple(MORE))
            self._answer = gui.add_html("", visible=False)
            self._figures = gui.add_html("", visible=False)

        on_press(more, lambda event, label: self._ask_for(event, MORE[label]))

    def _connect(self, button: viser.GuiButtonHandle, request: str) -> None:
        @button.on_click
        def _(event: viser.GuiEvent) -> None:
            self._ask_for(event, request)

    def _ask_for(self, event: viser.GuiEvent, request: str) -> None:
        """Send a request if the browser is authorised."""
        if request in FREE or may_command(self._server, event):
            self.ask(request)
        else:
            self.answer(request, False, REFUSED.removeprefix("refused: "))

    def ask(self, request: str) -> None:
        """Send a request to the driver, which replies through `answer`."""
        with self._lock:
            self._pending[request] = time.monotonic()
        if not self.actions.call(request):
            self.answer(request, False, "no driver node is running")

    def answer(self, request: str, done: bool, text: str) -> None:
        with self._lock:
            self._pending.pop(request, None)
        words = text or ("done" if done else "refused")
        color = GREEN if done else RED
        self._answer.content = (
            f"<div style='margin:2px 12px;color:{color};overflow-wrap:anywhere'>"
            f"<b>{html.escape(request)}{'' if done else ' refused'}</b>: {html.escape(words)}</div>"
        )
        self._answer.visible = True

    def update(self, now: float) -> None:
        """Report unanswered requests; `now`: monotonic [s]."""
        with self._lock:
            late = [r for r, at in self._pending.items() if now - at > PATIENCE]
        for request in late:
            self.answer(request, False, f"no response for {PATIENCE:g} s")

    def set_state(self, text: str) -> None:
        """Show 'STATE: reason'; empty: hide the panel."""
        self._folder.visible = bool(text)
        state, _, reason = text.partition(": ")
        content = (
            f"<div style='margin:4px 12px;overflow-wrap:anywhere'><span style='background:{COLORS.get(state, BLUE)};"
            f"color:white;border-radius:4px;padding:2px 10px;font-weight:700'>{html.escape(state)}</span> "
            f"{html.escape(reason)}</div>"
        )
        if self._state.content != content:
            self._state.content = content

    def set_parts(self, parts: Mapping[str, NodeStatus], supplies: Mapping[str, str]) -> None:
        lines = [bus_line(name, parts[name]) for name in sorted(parts) if name != "joints"]
        lines += [f"<div>supply of {html.escape(name)}: {html.escape(text)}</div>" for name, text in supplies.items()]
        if "joints" in parts:
            lines.append(joint_table(parts["joints"]))
        content = f"<div style='margin:4px 12px;font-size:85%'>{''.join(lines)}</div>" if any(lines) else ""
        self._figures.visible = bool(content)
        if self._figures.content != content:
            self._figures.content = content


def bus_line(name: str, status: NodeStatus) -> str:
    v = status.values
    figures = [
        f"{v['load_percent']} % full" if v.get("load_percent", "0.0") not in ("0.0", "0") else "",
        f"{float(v.get('sent_hz', 0)):.0f}/s out, {float(v.get('received_hz', 0)):.0f}/s in",
        f"{v.get('missed_percent', '?')} % missed",
        f"{v.get('lost_samples', '?')} lost",
        f"{v.get('errors', '?')} errors",
    ]
    color = LEVELS[min(status.level, 2)]
    return (
        f"<div style='overflow-wrap:anywhere'><b>{html.escape(name)}</b> <span style='color:{color}'>"
        f"{html.escape(status.message)}</span>: {html.escape(', '.join(f for f in figures if f))}</div>"
    )


def joint_table(status: NodeStatus) -> str:
    """Return an HTML table of temperatures and tracking errors."""
    v = status.values
    hot = [(_number(t), key.removeprefix(TEMPERATURE)) for key, t in v.items() if key.startswith(TEMPERATURE)]
    if not hot:
        return ""
    rows = [
        f"<tr><td>{html.escape(joint)}</td><td style='text-align:right'>{t:.1f}</td>"
        f"<td style='text-align:right'>{_number(v.get(ERROR + joint, 'nan')):.3f}</td></tr>"
        for t, joint in sorted(hot, key=lambda found: (-found[0], found[1]))
    ]
    head = "<tr><th style='text-align:left'>joint</th><th>deg C</th><th>error rad</th></tr>"
    scroll = "max-height:11em;overflow:auto;margin-top:4px"
    return f"<div style='{scroll}'><table style='width:100%'>{head}{''.join(rows)}</table></div>"


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
