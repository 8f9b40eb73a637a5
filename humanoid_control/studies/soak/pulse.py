"""The pulse of a machine during a soak: a process above all others that sleeps, and notes when it is woken late.

Where it is late no process can be on time: the machine itself stood still, as a virtual one does whose host is busy.
Run as `python -m humanoid_control.studies.soak.pulse FILE`; it says `ready`, ends with SIGINT and then writes FILE
(.npz).
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from array import array
from pathlib import Path

import numpy as np

from humanoid_control.files import whole_file
from humanoid_control.hardware.realtime import become_real_time

PRIORITY = 98  # of real-time scheduling: above nodes (50), a driver's guardian (80) and all else of this package
SLEEP = 0.002  # [s]
LATE = 0.002  # [s] of lateness that is noted
AFTER = 0.02  # [s] after a gap in which its cause may be noted


def granted() -> bool:
    """True where this process is above the nodes; elsewhere its lateness says nothing about the machine."""
    return os.sched_getscheduler(0) == os.SCHED_FIFO


def beat(path: Path) -> None:
    """Sleep and wake until SIGINT or SIGTERM, then write when it was late [s since the epoch], and by how much."""
    stop, late = threading.Event(), array("d")
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    become_real_time(PRIORITY)
    counts = granted()
    print("ready", flush=True)
    before = time.monotonic()
    while not stop.is_set():
        time.sleep(SLEEP)
        now = time.monotonic()
        if counts and now - before - SLEEP > LATE:
            late.extend((time.time(), now - before - SLEEP))
        before = now
    with whole_file(path) as part, part.open("wb") as file:
        np.savez_compressed(file, late=np.frombuffer(late).reshape(-1, 2))


def load_pulse(path: Path) -> np.ndarray:
    """Late wakings (n, 2): when [s since the epoch], and by how much [s]."""
    with np.load(path) as file:
        return np.asarray(file["late"])


def stood_still(late: np.ndarray, begin: float, end: float) -> float:
    """Longest time for which the machine stood still within a gap from `begin` to `end` [s since the epoch]."""
    own = (late[:, 0] >= begin) & (late[:, 0] - late[:, 1] <= end) & (late[:, 0] <= end + AFTER)
    return float(np.minimum(late[own, 1], end - begin).max(initial=0.0))


if __name__ == "__main__":
    beat(Path(sys.argv[1]))
