"""Panel of a learned policy, shown after its first message."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from humanoid_control.viewer.access import REFUSED, may_command
from humanoid_control.viewer.velocity_pad import VelocityPad

if TYPE_CHECKING:
    import viser

FREE = ("stop",)  # requests without token, because they stop motion
BUTTONS = (
    ("STOP", "stop", "red", "lower the robot: stiffness fades, damping grows"),
    ("START", "start", "green", "move the robot to the first posture, then run the policy"),
    ("SWITCH", "switch", "blue", "hand over to the other policy"),
)
"""Label, request, colour and hint."""
GREY, BLUE, GREEN, AMBER, RED = "#868e96", "#1c7ed6", "#2b8a3e", "#b36b00", "#c92a2a"
COLORS = {"RUN": GREEN, "CATCH": AMBER, "SIT": RED, "DAMP": RED, "WAITING": GREY}
FULL = 3.0  # scaled value of a full bar; training scales terms to about 1
MOST_BARS = 48  # per term


@dataclass(frozen=True)
class PolicyActions:
    """Callbacks of the controls, called from server threads.

    Attributes:
        call: sends a request of `BUTTONS`; returns False without a policy.
        move: takes a velocity (3,), each -1..1: forward, left, turning left; zeros end it. None: no pad.
    """

    call: Callable[[str], bool]
    move: Callable[[np.ndarray], None] | None = None


class PolicyControls:
    """Controls and policy state.

    Attributes:
        pad: for the velocity of a policy that follows one, or None.
    """

    def __init__(self, server: viser.ViserServer, actions: PolicyActions) -> None:
        self.actions, self._server, gui = actions, server, server.gui
        self._folder = gui.add_folder("Policy", visible=False)
        with self._folder:
            self._state = gui.add_html("")
            for label, request, color, hint in BUTTONS:
                self._connect(gui.add_button(label, color=color, hint=hint), request)  # type: ignore[arg-type]
            self._answer = gui.add_html("", visible=False)
            self.pad = VelocityPad(server, actions.move, visible=False) if actions.move is not None else None
            self._terms = gui.add_html("", visible=False)

    def _connect(self, button: viser.GuiButtonHandle, request: str) -> None:
        @button.on_click
        def _(event: viser.GuiEvent) -> None:
            if request not in FREE and not may_command(self._server, event):
                self.answer(request, False, REFUSED.removeprefix("refused: "))
            elif not self.actions.call(request):
                self.answer(request, False, "no policy node is running")

    def answer(self, request: str, done: bool, text: str) -> None:
        color, words = (GREEN if done else RED), text or ("done" if done else "refused")
        self._answer.content = (
            f"<div style='margin:2px 12px;color:{color};overflow-wrap:anywhere'><b>{html.escape(request)}</b>: "
            f"{html.escape(words)}</div>"
        )
        self._answer.visible = True

    def set_state(self, state: str, reason: str = "") -> None:
        """Show state and reason; empty: hide the panel."""
        self._folder.visible = bool(state)
        content = (
            f"<div style='margin:4px 12px;overflow-wrap:anywhere'><span style='background:{COLORS.get(state, BLUE)};"
            f"color:white;border-radius:4px;padding:2px 10px;font-weight:700'>{html.escape(state)}</span> "
            f"{html.escape(reason)}</div>"
        )
        if self._state.content != content:
            self._state.content = content

    def set_driven(self, driven: bool) -> None:
        """Show the pad while a policy follows a velocity."""
        if self.pad is not None:
            self.pad.show(driven)

    def set_terms(self, terms: Mapping[str, Sequence[float]]) -> None:
        """Show the scaled observation terms as bars."""
        self._terms.content = bars_of(terms)
        self._terms.visible = bool(terms)


def bars_of(terms: Mapping[str, Sequence[float]]) -> str:
    """Return HTML bars around zero; full bars are red."""
    rows = []
    for name, values in terms.items():
        bars = []
        for value in list(values)[:MOST_BARS]:
            share = float(np.clip(np.nan_to_num(value / FULL), -1.0, 1.0))
            top, height = (50 - 50 * share if share > 0 else 50), max(50 * abs(share), 2)
            color = RED if abs(share) >= 1.0 else BLUE
            place = f"left:0;right:0;top:{top:.0f}%;height:{height:.0f}%"
            bars.append(
                "<span style='position:relative;flex:1;max-width:8px;background:#f1f3f5'>"
                f"<span style='position:absolute;{place};background:{color}'></span></span>"
            )
        rows.append(
            f"<div style='margin-top:3px'>{html.escape(name)}</div>"
            f"<div style='display:flex;gap:1px;height:22px'>{''.join(bars)}</div>"
        )
    return f"<div style='margin:4px 12px;font-size:75%'>{''.join(rows)}</div>" if rows else ""
