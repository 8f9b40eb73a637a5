"""Heartbeat of a node process: a counter in shared memory, watched by the supervisor.

It detects hung loops even if DDS threads stay alive. The memory is anonymous, so nothing remains of it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import time

VARIABLE = "HUMANOID_HEARTBEAT"  # inherited descriptor of the memory
NAME, SIZE = "humanoid_heartbeat", 24  # words: count, loop must run, input is missing
COUNT, WATCHED, MISSING = 0, 1, 2
LOOK = 0.25  # [s] maximum time counted between checks, in case the supervisor or the machine was suspended


class Heartbeat:
    """Heartbeat of a node: `beat` in every pass of the loop, `rest` before long work."""

    def __init__(self) -> None:
        """Open the memory named by the environment, or private memory."""
        self._words = _inherited_memory(os.environ.pop(VARIABLE, ""))
        self._excuses_compiler = False

    def beat(self) -> None:
        """Signal a pass of the loop; further passes are expected from now on."""
        self._words[COUNT] += 1
        self._words[WATCHED] = 1

    def rest(self) -> None:
        """Suspend the supervision until the next beat."""
        self._words[WATCHED] = 0

    def miss(self, missing: bool) -> None:
        """Signal whether a required input is missing."""
        self._words[MISSING] = missing

    def excuse_compiler(self) -> None:
        """Suspend the supervision during numba compilations."""
        if self._excuses_compiler or "numba" not in sys.modules:
            return
        from humanoid_control.compiled.progress import call_at_compilations

        call_at_compilations(self.rest, self.rest)
        self._excuses_compiler = True


class HeartbeatMonitor:
    """Heartbeat on the supervisor's side, one per start of a node.

    Attributes:
        descriptor: descriptor that the node inherits.
        variable: environment variable with its number.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create(NAME)
        os.ftruncate(self.descriptor, SIZE)
        self._words = _words_of(self.descriptor)
        self.variable = VARIABLE
        self._count, self._stall, self._checked_at, self._waited = -1, 0.0, time.monotonic(), 0.0
        self._received_at = self._checked_at

    def handed_over(self) -> None:
        os.close(self.descriptor)

    def deaf(self) -> float:
        """Return the time for which a required input has been missing [s]."""
        now = time.monotonic()
        if not self._words[MISSING]:
            self._received_at = now
        return now - self._received_at

    def stalled(self, pid: int) -> float:
        """Return the time for which the loop has hung [s], without waits for a processor.

        Args:
            pid: process id of the node; its main thread runs the loop.
        """
        now, waited = time.monotonic(), processor_wait(pid)
        passed = min(now - self._checked_at, LOOK) - (waited - self._waited)
        self._checked_at, self._waited = now, waited
        count, watched = self._words[COUNT], self._words[WATCHED]
        if not watched or count != self._count:
            self._count, self._stall = count, 0.0
        else:
            self._stall += max(0.0, passed)
        return self._stall


def processor_wait(pid: int) -> float:
    """Return the total wait of the main thread for a processor [s]; 0 if unknown."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/schedstat") as f:
        return 1e-9 * int(f.read().split()[1])
    return 0.0


def _inherited_memory(descriptor: str) -> memoryview:
    with contextlib.suppress(OSError, ValueError):
        if os.readlink(f"/proc/self/fd/{descriptor or '-'}").startswith(f"/memfd:{NAME}"):
            os.set_inheritable(int(descriptor), False)
            return _words_of(int(descriptor))
    return memoryview(bytearray(SIZE)).cast("Q")


def _words_of(descriptor: int) -> memoryview:
    return memoryview(mmap.mmap(descriptor, SIZE)).cast("Q")
