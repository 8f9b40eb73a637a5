"""Which processes the kernel prefers: control before drawing."""

from __future__ import annotations

import os


def set_priority(priority: int) -> str:
    """Ask for real-time scheduling of every thread of this process, for a negative priority for a lower one.

    A user without the right (no rtprio limit, not root) gets the ordinary scheduling, as with other controllers.

    Returns:
        What was granted, for diagnostics: 'fifo 50', 'nice 10' or 'normal'.
    """
    try:
        if priority > 0:
            for thread in os.listdir("/proc/self/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
            return f"fifo {priority}"
        if priority < 0:
            os.nice(-priority)
            return f"nice {-priority}"
    except OSError:
        pass
    return "normal"
