"""The end of nodes in a test's process, where Fast DDS can deadlock (eProsima/Fast-DDS 6193, 6502).

While its receiving thread removes a peer's writer, it waits for the thread of timed events, which waits for the lock of
discovery that the first one holds. Who destroys an entity then waits for both, and rclpy keeps the lock of the Python
interpreter meanwhile: no thread of the process runs any more, no timeout acts. So the deadlock is looked for first.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

PATIENCE = 20.0  # [s] for a step that takes milliseconds
SAMPLES, EVERY = 50, 0.1  # a receiving thread that waits for a lock in all samples, each 0.1 s, waits for ever
HARD_END = 90.0  # [s] after which the process ends with its stacks: the deadlock came during a step
LAST_WORDS = 15.0  # [s] for a process with a thread that never ends to report its tests
FUTEX = "202"  # number of the system call, x86-64; "98" on arm64

stuck: list[object] = []
_known: set[str] = set()  # threads of deadlocks found before: they say nothing about the next node


def end(*steps: Callable[[], object]) -> None:
    """Take steps one after the other; in a deadlock of DDS they are left out, with a warning.

    Raises:
        Exception: raised by a step.
    """
    if deadlocked():
        _leave_it("before the end of a test")
        return
    raised: list[BaseException] = []

    def take() -> None:
        try:
            for step in steps:
                step()
        except BaseException as e:
            raised.append(e)

    faulthandler.dump_traceback_later(HARD_END, exit=True, file=2)  # by its number: a test may capture stderr
    thread = threading.Thread(target=take, daemon=True, name="end of nodes")
    thread.start()
    thread.join(PATIENCE)
    faulthandler.cancel_dump_traceback_later()
    if thread.is_alive():
        _leave_it("at the end of a test")
    elif raised:
        raise raised[0]


def _leave_it(when: str) -> None:
    stuck.append(when)
    if "rclpy" in sys.modules:  # the next test begins with a context of its own; this one is kept, and never destroyed
        from rclpy.utilities import get_default_context

        stuck.append(get_default_context(shutting_down=True))
    warnings.warn(f"Fast DDS is in a deadlock {when}: a node of the test is left as it is", stacklevel=3)


def deadlocked(tasks: Path = Path("/proc/self/task")) -> bool:
    """Whether a receiving thread of discovery has waited for a lock all the time; it waits for packets otherwise."""
    waiting: set[str] | None = None
    for _ in range(SAMPLES):
        now = {task.name for task in tasks.iterdir() if task.name not in _known and _waits_for_lock(task)}
        waiting = now if waiting is None else waiting & now
        if not waiting:
            return False
        time.sleep(EVERY)
    _known.update(waiting or ())
    return True


def _waits_for_lock(task: Path) -> bool:
    number = FUTEX if os.uname().machine == "x86_64" else "98"
    try:
        return (task / "comm").read_text().startswith("dds.udp") and (task / "syscall").read_text().split()[0] == number
    except OSError:  # a thread that has ended, or a kernel that does not show system calls
        return False


def leave(code: int) -> None:
    """At the end of a process: see that it ends with its exit code, though a thread of it never will."""

    def now() -> None:
        time.sleep(LAST_WORDS)
        os._exit(code)

    if stuck:
        threading.Thread(target=now, daemon=True).start()
