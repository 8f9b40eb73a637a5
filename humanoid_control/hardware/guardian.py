"""Guardian: process that damps the drives if the driver is killed or hangs.

Every cycle the driver writes a heartbeat and a damping frame into shared memory. The guardian is a fresh interpreter in
its own session, without ROS and numpy, with a higher priority if permitted.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from humanoid_control.hardware.realtime import become_real_time

LIMIT = 0.01  # [s] of permitted silence with power
DAMP_RATE, DAMP_TIME = 100.0, 2.0  # [Hz], [s] of damping before the power is removed
POLL, IDLE_POLL = 0.001, 0.02  # [s] between checks, with and without power
ALIVE = 0.5  # [s] after which a silent guardian counts as dead, or `limit` if that is longer
END_TIME = 1.0  # [s] for an orderly end
START_TIME = 10.0  # [s]
PRIORITY = 80  # SCHED_FIFO, above nodes (50)
IDLE, POWERED, ENDED = 0, 1, 2  # states that the driver writes
# Eight-byte words of the shared memory, each written atomically: three by the driver, three by the guardian.
COUNTER, BEAT, STATE, SEEN, TRIPPED, DAMPED = range(6)
HEADER = 64  # [bytes]


class Guard(Protocol):
    """Damping of one bus without its transport; created by the factory of a `GuardSpec`."""

    def damp(self, frame: bytes) -> None:
        """Send a damping frame."""

    def off(self) -> None:
        """Remove the power."""

    def close(self) -> None:
        """Close the bus."""


class GuardedBus(NamedTuple):
    """Guarded bus; see `GuardSpec`."""

    name: str
    factory: str
    arguments: tuple[Any, ...]
    descriptors: tuple[int, ...]
    size: int


class SharedBeat:
    """Shared memory of driver and guardian: words, and two alternating frames for each bus."""

    def __init__(self, descriptor: int, sizes: Sequence[int]) -> None:
        self._sizes = [8 * ((size + 7) // 8) for size in sizes]
        total = HEADER + sum(2 * (8 + size) for size in self._sizes)
        if os.fstat(descriptor).st_size < total:
            os.ftruncate(descriptor, total)
        self._memory = mmap.mmap(descriptor, total)
        self._bytes = memoryview(self._memory)
        self.words = self._bytes.cast("Q")

    def put(self, powered: bool, frames: Sequence[bytes]) -> None:
        """Write a heartbeat and the frame of each bus."""
        count = self.words[COUNTER] + 1
        for bus, frame in enumerate(frames):
            at = self._place(bus, count)
            self.words[at // 8] = len(frame)
            self._bytes[at + 8 : at + 8 + len(frame)] = frame
        # COUNTER changes after the frames: the reader never sees a partial frame
        self.words[COUNTER] = count
        self.words[BEAT] = time.monotonic_ns()
        self.words[STATE] = POWERED if powered else IDLE

    def frames(self) -> list[bytes]:
        """Return the last complete frame of each bus."""
        out = []
        for bus in range(len(self._sizes)):
            at = self._place(bus, self.words[COUNTER])
            out.append(bytes(self._bytes[at + 8 : at + 8 + self.words[at // 8]]))
        return out

    def _place(self, bus: int, count: int) -> int:
        before = sum(2 * (8 + size) for size in self._sizes[:bus])
        return HEADER + before + (count % 2) * (8 + self._sizes[bus])

    def close(self) -> None:
        self.words.release()
        self._bytes.release()
        self._memory.close()


class Guardian:
    """Driver side of the guardian process."""

    def __init__(self, buses: Sequence[GuardedBus], limit: float = LIMIT, priority: int = PRIORITY) -> None:
        """Start the process and wait until it guards.

        Args:
            limit: permitted silence of the driver with power [s].
            priority: SCHED_FIFO priority; 0: normal scheduling.

        Raises:
            OSError: if the process does not start.
        """
        self.buses, self._silence = tuple(b.name for b in buses), max(ALIVE, limit)
        sizes = [b.size for b in buses]
        descriptor = os.memfd_create("humanoid_guardian")
        self._shared = SharedBeat(descriptor, sizes)
        rows = [{"factory": b.factory, "arguments": b.arguments, "size": b.size} for b in buses]
        job = {"memory": descriptor, "limit": limit, "priority": priority, "parent": os.getpid(), "buses": rows}
        inherited = (descriptor, *(d for b in buses for d in b.descriptors))
        command = [sys.executable, "-m", __name__, json.dumps(job)]
        try:
            self._process = subprocess.Popen(
                command, pass_fds=inherited, stdin=subprocess.DEVNULL, start_new_session=True
            )
        finally:
            os.close(descriptor)
        self.pid = self._process.pid
        end = time.monotonic() + START_TIME
        while not self._shared.words[SEEN]:
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                raise OSError("the guardian did not start")
            time.sleep(0.005)

    def beat(self, powered: bool, frames: Sequence[bytes]) -> None:
        """Send a heartbeat with the frame of each bus."""
        self._shared.put(powered, frames)

    def alive(self) -> bool:
        """Return True while it guards; False once it has stopped the drives."""
        words = self._shared.words
        lately = time.monotonic_ns() - words[SEEN] < self._silence * 1e9
        return bool(lately and not words[TRIPPED]) and self._process.poll() is None

    def tripped(self) -> bool:
        """Return True once it has stopped the drives."""
        return bool(self._shared.words[TRIPPED])

    def close(self) -> None:
        """End the process; the driver ended regularly."""
        if self._process.poll() is None:
            self._shared.words[STATE] = ENDED
            try:
                self._process.wait(END_TIME)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


# -------- The process


def watch(shared: SharedBeat, guards: Sequence[Guard], limit: float, parent: int) -> bool:
    """Watch the driver until it ends; True if it fell silent with power and was stopped."""
    words, most = shared.words, int(limit * 1e9)
    while True:
        state, now = words[STATE], time.monotonic_ns()
        words[SEEN] = now
        if state == POWERED and now - words[BEAT] > most:
            stop_drives(shared, guards)
            return True
        if state == ENDED or (state == IDLE and os.getppid() != parent):
            return False
        time.sleep(POLL if state == POWERED else IDLE_POLL)


def stop_drives(shared: SharedBeat, guards: Sequence[Guard]) -> None:
    """Damp all drives for DAMP_TIME, then remove their power."""
    shared.words[TRIPPED] = 1
    end = time.monotonic() + DAMP_TIME
    while time.monotonic() < end:
        for guard, frame in zip(guards, shared.frames(), strict=True):
            with contextlib.suppress(OSError):  # the other buses still need their frames
                guard.damp(frame)
        shared.words[DAMPED] += 1
        time.sleep(1.0 / DAMP_RATE)
    for guard in guards:
        with contextlib.suppress(OSError):
            guard.off()


class DatagramGuard:
    """Guard that sends frames to a local socket, for tests.

    A datagram is a letter (D: damp, O: off), the monotonic time [ns] as eight bytes, and the frame.
    """

    def __init__(self, path: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._path = path

    def damp(self, frame: bytes) -> None:
        self._send(b"D", frame, socket.MSG_DONTWAIT)

    def off(self) -> None:
        # it is sent only once: wait for a place in the queue of its reader, which may hang
        self._socket.settimeout(END_TIME)
        self._send(b"O", b"", 0)
        self._socket.settimeout(None)

    def close(self) -> None:
        self._socket.close()

    def _send(self, letter: bytes, frame: bytes, flags: int) -> None:
        now = time.monotonic_ns().to_bytes(8, "little")
        with contextlib.suppress(OSError):  # no receiver any more
            self._socket.sendto(letter + now + frame, flags, self._path)


def main(argv: Sequence[str]) -> int:
    """Run the guardian; return 3 if it stopped the drives, else 0."""
    for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)  # sent by a terminal or a supervisor; only the driver ends the guardian
    job = json.loads(argv[1])
    shared = SharedBeat(job["memory"], [b["size"] for b in job["buses"]])
    guards: list[Guard] = []
    for bus in job["buses"]:
        module, _, name = bus["factory"].partition(":")
        guards.append(getattr(importlib.import_module(module), name)(*bus["arguments"]))
    become_real_time(job["priority"])
    gc.disable()
    stopped = watch(shared, guards, job["limit"], job["parent"])
    for guard in guards:
        guard.close()
    return 3 if stopped else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
