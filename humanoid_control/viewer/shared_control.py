"""Controls that the page and several people set, and values that belong to one press of a button."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import Any


def on_press(button: Any, action: Callable[[Any, Any], None], value: Callable[[], Any] | None = None) -> None:
    """Call an action for each press of a button, in a thread, with the value at the moment of the press.

    viser stores the pressed button of a group, which all browsers share, and calls a plain function later, in another
    thread. By then another press may have replaced it: an emergency stop would become that other request. Coroutines
    begin before the next message is read.

    Args:
        button: button or group of buttons of viser.
        action: takes the event and the value.
        value: returns the value; None: that of the group.
    """

    def report(done: asyncio.Future) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            traceback.print_exception(error)

    async def pressed(event: Any) -> None:
        chosen = button.value if value is None else value()
        asyncio.get_running_loop().run_in_executor(None, action, event, chosen).add_done_callback(report)

    button.on_click(pressed)


class SharedControl:
    """A control whose value the page shows without overwriting what somebody has just chosen.

    viser stores a new value at once and calls the action later, in another thread. A page that sets the control in
    between would put its own value in the place of the choice, and the action would read that.

    Args:
        handle: control of viser.
        action: called with each new value, except those of `show`.
    """

    def __init__(self, handle: Any, action: Callable[[Any], None]) -> None:
        self.handle, self._action = handle, action
        self._shown, self._showing = handle.value, False
        handle.on_update(self._changed)

    @property
    def value(self) -> Any:
        return self.handle.value

    def _changed(self, event: Any) -> None:
        self._shown = value = self.handle.value
        if not (self._showing and event.client_id is None):
            self._action(value)

    def show(self, value: Any, **properties: Any) -> None:
        """Set properties of the control, and its value unless a choice waits for its action."""
        self._showing = True
        try:
            for name, new in properties.items():
                if getattr(self.handle, name) != new:
                    setattr(self.handle, name, new)
            if self.handle.value == self._shown != value:
                self.handle.value = value
        finally:
            self._showing = False
