"""What all parts of the editor's panel share: acts of the user, told apart from values that the program sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import viser

NONE = "-"
Act = Callable[[], object]
Do = Callable[[Act], None]


def on_change(handle: Any, do: Do, act: Callable[[Any], object]) -> None:
    """Call `act` with the new value when a user, not the program, changes a control."""

    @handle.on_update
    async def _(event: viser.GuiEvent) -> None:
        if event.client_id is not None:
            value = handle.value
            do(lambda: act(value))


def on_click(handle: Any, do: Do, act: Act) -> None:
    """Call `act` when a button is clicked."""

    @handle.on_click
    async def _(_: viser.GuiEvent) -> None:
        do(act)


def on_choice(handle: Any, do: Do, act: Callable[[str], object]) -> None:
    """Call `act` with the label of the button of a group that is clicked."""

    @handle.on_click
    async def _(_: viser.GuiEvent) -> None:
        value = str(handle.value)
        do(lambda: act(value))


def put(handle: Any, **values: Any) -> None:
    """Set properties of a control that differ."""
    for name, value in values.items():
        if getattr(handle, name) != value:
            setattr(handle, name, value)


def choose(handle: Any, options: Sequence[str], value: str) -> None:
    """The options of a drop-down list, and which one it shows; never none."""
    options = tuple(options) or (NONE,)
    value = value if value in options else options[0]
    if tuple(handle.options) != options:
        handle.options = options
    put(handle, value=value)
