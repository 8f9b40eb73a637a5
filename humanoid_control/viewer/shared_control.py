"""A control that both the page and the people who look at it set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


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
