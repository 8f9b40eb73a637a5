"""The end of nodes in a test's process, where Fast DDS may wait for itself for ever (eProsima/Fast-DDS 6193, 6502)."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable

PATIENCE = 20.0  # [s] for what takes milliseconds
LAST_WORDS = 15.0  # [s] for a process with a thread that never ends to say how its tests went

stuck: list[threading.Thread] = []


def end(*steps: Callable[[], object]) -> None:
    """Take steps one after the other; where they do not end they are left to themselves, and it is said.

    Raises:
        Exception: what a step raised.
    """
    raised: list[BaseException] = []

    def take() -> None:
        try:
            for step in steps:
                step()
        except BaseException as e:
            raised.append(e)

    thread = threading.Thread(target=take, daemon=True, name="end of nodes")
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        stuck.append(thread)
        warnings.warn("DDS waits for itself: a node of a test is left as it is", stacklevel=2)
    elif raised:
        raise raised[0]


def leave(code: int) -> None:
    """At the end of a process: see that it ends with its exit code, though a thread of it never will."""

    def now() -> None:
        time.sleep(LAST_WORDS)
        os._exit(code)

    if stuck:
        threading.Thread(target=now, daemon=True).start()
