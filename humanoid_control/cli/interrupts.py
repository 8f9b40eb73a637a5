"""An interrupt that a library's callback swallowed is raised again, so that Ctrl+C always ends a command."""

from __future__ import annotations

import _thread
import sys
import threading
from typing import Any

AGAIN = 0.05  # [s]


def keep_interrupts() -> None:
    """Raise KeyboardInterrupt in the main thread once more where it came while no exception could pass.

    Compiled code calls back into Python, when a kernel is loaded for instance; an exception there is only reported
    ("Exception ignored"), and a command would run on as if nobody had asked it to stop.
    """
    sys.unraisablehook = _again


def _again(unraisable: Any) -> None:
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    timer = threading.Timer(AGAIN, _thread.interrupt_main)  # later: here it would be swallowed once more
    timer.daemon = True
    timer.start()
