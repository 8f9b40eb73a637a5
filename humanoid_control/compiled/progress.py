"""Callbacks at the beginning and end of compilations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event

COMPILATION = "numba:compile"  # name of numba; loading a kernel from disk is none


class _Listener(event.Listener):  # type: ignore[misc, unused-ignore]
    def __init__(self, started: Callable[[], Any], ended: Callable[[], Any]) -> None:
        self._started, self._ended = started, ended

    def on_start(self, event: Any) -> None:
        self._started()

    def on_end(self, event: Any) -> None:
        self._ended()


def call_at_compilations(started: Callable[[], Any], ended: Callable[[], Any]) -> None:
    """Call two functions at the beginning and end of each compilation from now on."""
    event.register(COMPILATION, _Listener(started, ended))


@contextmanager
def calling_at_compilations(started: Callable[[], Any]) -> Iterator[None]:
    """Call a function at the beginning of each compilation meanwhile."""
    with event.install_listener(COMPILATION, _Listener(started, lambda: None)):
        yield
