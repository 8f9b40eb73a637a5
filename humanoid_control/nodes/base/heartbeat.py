"""Heartbeat of a node process: a count in shared memory that its loop keeps going and its supervisor looks at.

It does not pass through DDS, whose threads go on while the loop of a node hangs. The memory has no name in any file
system: nothing of it is left however its two processes end, and a full disk does not stop it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import sys
import time
from typing import Any

VARIABLE = "HUMANOID_HEARTBEAT"  # descriptor of the memory that a node inherits
NAME, SIZE = "humanoid_heartbeat", 24  # words: the count, whether it has to go on, whether an input is missing
COUNT, WATCHED, MISSING = 0, 1, 2
LOOK = 0.25  # [s] counted at the most between two looks: who watches may have been asleep, as the whole machine may


class Heartbeat:
    """A node's side: `beat` at every pass of its loop, `rest` before what may take its time.

    Without a supervisor the count is the process's own, and nobody looks at it.
    """

    def __init__(self) -> None:
        """Open the memory that the environment names; it is not handed on to processes that this one starts."""
        self._words = _inherited_memory(os.environ.pop(VARIABLE, ""))
        self._compiler: Any = None

    def beat(self) -> None:
        """Say that the loop goes round; from now on it has to."""
        self._words[COUNT] += 1
        self._words[WATCHED] = 1

    def rest(self) -> None:
        """Say that nothing is to be expected until the next beat: the node starts, is configured, or is inactive."""
        self._words[WATCHED] = 0

    def miss(self, missing: bool) -> None:
        """Say whether an input from another node, without which this one can do nothing, has not come for a while."""
        self._words[MISSING] = missing

    def excuse_compiler(self) -> None:
        """Rest from now on whenever numba compiles; does nothing the second time, or where numba is not loaded."""
        if self._compiler is not None or "numba" not in sys.modules:
            return
        from numba.core import event

        rest = self.rest

        class Compiling(event.Listener):
            def on_start(self, event: Any) -> None:
                rest()

            def on_end(self, event: Any) -> None:
                rest()

        self._compiler = Compiling()
        event.register("numba:compile", self._compiler)


class HeartbeatMonitor:
    """A supervisor's side, one for each start of a node.

    Attributes:
        descriptor: to be inherited by the node. variable: of its environment, which says the descriptor's number.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create(NAME)
        os.ftruncate(self.descriptor, SIZE)
        self._words = _words_of(self.descriptor)
        self.variable = VARIABLE
        self._count, self._stall, self._looked, self._waited = -1, 0.0, time.monotonic(), 0.0
        self._heard = self._looked

    def handed_over(self) -> None:
        """Close the descriptor here: the node has it."""
        os.close(self.descriptor)

    def deaf(self) -> float:
        """Time for which the node has said that an input is missing without which it can do nothing [s]."""
        now = time.monotonic()
        if not self._words[MISSING]:
            self._heard = now
        return now - self._heard

    def stalled(self, pid: int) -> float:
        """Time for which the loop of the node has not gone round although it has to [s].

        Time in which it wanted to run and was given no processor is not counted: such a node is slow, and to start it
        again would make the machine slower still.

        Args:
            pid: of the node, whose loop is in its main thread.
        """
        now, waited = time.monotonic(), processor_wait(pid)
        passed = min(now - self._looked, LOOK) - (waited - self._waited)
        self._looked, self._waited = now, waited
        count, watched = self._words[COUNT], self._words[WATCHED]
        if not watched or count != self._count:
            self._count, self._stall = count, 0.0
        else:
            self._stall += max(0.0, passed)
        return self._stall


def processor_wait(pid: int) -> float:
    """Time that the main thread of a process has waited for a processor so far [s]; 0 where the kernel does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/schedstat") as f:
        return 1e-9 * int(f.read().split()[1])
    return 0.0


def _inherited_memory(descriptor: str) -> memoryview:
    """Words of the memory with this descriptor; memory of this process where it is none of a supervisor's."""
    with contextlib.suppress(OSError, ValueError):
        if os.readlink(f"/proc/self/fd/{descriptor or '-'}").startswith(f"/memfd:{NAME}"):
            os.set_inheritable(int(descriptor), False)
            return _words_of(int(descriptor))
    return memoryview(bytearray(SIZE)).cast("Q")


def _words_of(descriptor: int) -> memoryview:
    return memoryview(mmap.mmap(descriptor, SIZE)).cast("Q")
