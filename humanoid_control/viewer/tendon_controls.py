"""Controls of a tendon-driven robot on the page: hold, relax, bring up, cut a tendon, co-contraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from humanoid_control.viewer.access import may_command

if TYPE_CHECKING:
    import viser

HOLD, FOLLOW, RELAX, TENSION_UP = "HOLD", "FOLLOW", "RELAX", "TENSION UP"
REQUESTS = (HOLD, FOLLOW, RELAX, TENSION_UP)
FREE = (HOLD,)  # to stop needs no token
MOST = 100.0  # [N] of co-contraction
FIRST = "biceps"  # tendon that is chosen at first, where there is one of such a name


@dataclass(frozen=True)
class TendonActions:
    """Functions that the controls call, from threads of the server.

    Attributes:
        names: of the tendons.
        request: with one of REQUESTS.
        cut: with a tendon; empty: all are mended.
        co_contract: with a tension above the least one [N].
    """

    names: Sequence[str]
    request: Callable[[str], None]
    cut: Callable[[str], None]
    co_contract: Callable[[float], None]


class TendonControls:
    """The controls, and a line with the answer to the last request."""

    def __init__(self, server: viser.ViserServer, actions: TendonActions) -> None:
        """Add them to the panel."""
        gui, names = server.gui, tuple(actions.names)
        first = next((n for n in names if FIRST in n), names[0])
        with gui.add_folder("Tendons"):
            requests = gui.add_button_group("winches", REQUESTS)
            tendon = gui.add_dropdown("tendon", names, initial_value=first)
            cut = gui.add_button("cut this tendon", color="red", hint="in the simulator: its wire never pulls again")
            mend = gui.add_button("mend all tendons", color="gray")
            slider = gui.add_slider("co-contraction [N]", min=0.0, max=MOST, step=1.0, initial_value=0.0)
            self._answer = gui.add_markdown("")

        @requests.on_click
        def _(event: viser.GuiEvent) -> None:
            if requests.value in FREE or may_command(server, event):
                actions.request(requests.value)

        @cut.on_click
        def _(event: viser.GuiEvent) -> None:
            if may_command(server, event):
                actions.cut(str(tendon.value))

        @mend.on_click
        def _(event: viser.GuiEvent) -> None:
            if may_command(server, event):
                actions.cut("")

        @slider.on_update
        def _(event: viser.GuiEvent) -> None:
            if may_command(server, event):
                actions.co_contract(float(slider.value))

    def answer(self, text: str) -> None:
        """Show one line, Markdown."""
        self._answer.content = text
