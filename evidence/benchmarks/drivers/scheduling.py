"""Conditions of a measurement: real-time priority where it is permitted, no pauses, other work on the machine."""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
from collections.abc import Iterator

from humanoid_control.in_child import die_with

PRIORITY = 50  # SCHED_FIFO, as that of nodes
BUSY = 4  # processes that work all the time


@contextlib.contextmanager
def scheduled(priority: int = PRIORITY) -> Iterator[str]:
    """Run this thread, and what it starts, as a driver is run: SCHED_FIFO where permitted, without collections.

    Yields the scheduling that was granted.
    """
    before, granted = (os.sched_getscheduler(0), os.sched_getparam(0)), "normal"
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
        granted = f"fifo {priority}"
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield granted
    finally:
        if was_on:
            gc.enable()
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, *before)


@contextlib.contextmanager
def busy(processes: int = BUSY) -> Iterator[None]:
    """Have other processes compute all the time, as any user's would, however this one is scheduled."""
    code = "import os\nos.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))\nwhile True: pass"
    end = die_with(os.getpid())
    others = [subprocess.Popen([sys.executable, "-c", code], preexec_fn=end) for _ in range(processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()
