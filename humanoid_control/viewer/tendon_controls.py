"""Panel of a tendon-driven robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from humanoid_control.viewer.access import may_command
from humanoid_control.viewer.shared_control import on_press

if TYPE_CHECKING:
    import viser

HOLD, FOLLOW, RELAX, TENSION_UP = "HOLD", "FOLLOW", "RELAX", "TENSION UP"
REQUESTS = (HOLD, FOLLOW, RELAX, TENSION_UP)
FREE = (HOLD,)  # stopping needs no token
MOST = 100.0  # [N] maximum co-contraction
FIRST = "biceps"  # initially selected tendon, by part of its name


@dataclass(frozen=True)
class TendonActions:
    """Callbacks of the controls, called from server threads.

    Attributes:
        request: takes one of REQUESTS.
        cut: takes a tendon; empty: repairs all.
        co_contract: takes a tension above the minimum [N].
    """

    names: Sequence[str]
    request: Callable[[str], None]
    cut: Callable[[str], None]
    co_contract: Callable[[float], None]


class TendonControls:
    """Controls with the answer to the last request."""

    def __init__(self, server: viser.ViserServer, actions: TendonActions) -> None:
        gui, names = server.gui, tuple(actions.names)
        first = next((n for n in names if FIRST in n), names[0])
        with gui.add_folder("Tendons"):
            requests = gui.add_button_group("winches", REQUESTS)
            tendon = gui.add_dropdown("tendon", names, initial_value=first)
            cut = gui.add_button("cut this tendon", color="red", hint="in the simulator: permanently")
            mend = gui.add_button("repair all tendons", color="gray")
            slider = gui.add_slider("co-contraction [N]", min=0.0, max=MOST, step=1.0, initial_value=0.0)
            self._answer = gui.add_markdown("")

        def ask(event: viser.GuiEvent, name: str) -> None:
            if name in FREE or may_command(server, event):
                actions.request(name)

        def cut_one(event: viser.GuiEvent, name: str) -> None:
            if may_command(server, event):
                actions.cut(str(name))

        on_press(requests, ask)
        on_press(cut, cut_one, lambda: tendon.value)

        @mend.on_click
        def _(event: viser.GuiEvent) -> None:
            if may_command(server, event):
                actions.cut("")

        @slider.on_update
        def _(event: viser.GuiEvent) -> None:
            if may_command(server, event):
                actions.co_contract(float(slider.value))

    def answer(self, text: str) -> None:
        self._answer.content = text
