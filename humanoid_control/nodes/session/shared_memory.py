"""Files that Fast DDS leaves in shared memory when its processes are killed: found, held, removed, by a keeper too.

A supervisor that is killed cannot tidy up. Its keeper, a process that does nothing else, notices it and does. This
file is run by it as a script, without the packages that a node needs: it takes 10 MB.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SHM = Path("/dev/shm")
SETTLE = 0.2  # [s] in which a process maps a file that it has just made
TIDY_TIME, TIDY_LIMIT, TIDY_PERIOD = 1.5, 10.0, 0.1  # [s] in which the nodes of a killed supervisor die too
HELD = 4.0  # [s] for which a port of a killed process is held
DONE = b"."


class SharedMemoryKeeper:
    """A process that outlives this one, should it be killed, long enough to remove what is left in shared memory."""

    def __init__(self, since: float) -> None:
        """Start it.

        Args:
            since: files made before are none of its business [s since the epoch].
        """
        end, self._line = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, repr(since)],
            stdin=end,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )
        os.close(end)

    def close(self) -> None:
        """End it: everything was tidied up."""
        with contextlib.suppress(OSError):
            os.write(self._line, DONE)
        os.close(self._line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def shared_memory_files() -> list[Path]:
    """All shared-memory files of Fast DDS."""
    patterns = ("*fastdds_*", "*fastrtps_*")  # the name changed between releases
    return sorted(p for pattern in patterns for p in SHM.glob(pattern) if p.is_file()) if SHM.is_dir() else []


def files_in_use() -> set[str]:
    """Names below /dev/shm that some process has mapped or open."""
    used: set[str] = set()
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            for line in (proc / "maps").read_text().splitlines():
                _, found, name = line.partition("/dev/shm/")
                if found:
                    used.add(name.split(" (deleted)")[0])
        with contextlib.suppress(OSError):
            for fd in (proc / "fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(fd)
                    if target.startswith("/dev/shm/"):
                        used.add(target.removeprefix("/dev/shm/").split(" (deleted)")[0])
    return used


def leftovers(since: float = 0.0) -> list[Path]:
    """Files of this user, made after a time [s since the epoch], that no process uses.

    A port of the middleware consists of several files with one name and different endings; they go together. Files
    are listed before their users are, and twice: a process that has just made one takes a moment until it maps it, and
    dies when it is removed in between.
    """
    out = _unused(shared_memory_files(), since)
    if out:
        time.sleep(SETTLE)
        out = _unused(out, since)
    return out


def _unused(candidates: list[Path], since: float) -> list[Path]:
    used = files_in_use()
    out = []
    for path in candidates:
        with contextlib.suppress(OSError):
            info = path.stat()
            stem = path.name.removeprefix("sem.").split("_mutex")[0].removesuffix("_el")
            busy = any(stem in name for name in used)
            if info.st_uid == os.getuid() and info.st_mtime >= since - 1 and not busy:
                out.append(path)
    return out


def remove_leftovers(since: float = 0.0) -> int:
    """Remove `leftovers` of the middleware; returns how many there were."""
    found = leftovers(since)
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(found)


class PortHolder:
    """Ports in shared memory whose readers were killed, kept from being used again at once.

    Who wrote to such a port notices that nobody reads it only after one or two seconds, and until then what he has to
    say to a new process that took the same port is lost. A port that is locked is passed over by new processes.
    """

    def __init__(self) -> None:
        self._held: list[tuple[float, int]] = []  # until when, on the monotonic clock [s], and the descriptor

    def hold(self) -> int:
        """Lock all ports whose readers are gone; how many there are."""
        found = 0
        for path in shared_memory_files():
            if "_port" not in path.name or not path.name.endswith("_el"):
                continue
            with contextlib.suppress(OSError):  # in use, or gone
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    os.close(descriptor)
                    continue
                self._held.append((time.monotonic() + HELD, descriptor))
                found += 1
        return found

    def release(self, all_of_them: bool = False) -> None:
        """Let go of those that were held long enough."""
        now = time.monotonic()
        for until, descriptor in self._held:
            if all_of_them or until <= now:
                os.close(descriptor)
        self._held = [] if all_of_them else [h for h in self._held if h[0] > now]


def keep(since: float) -> None:
    """Wait for a word on standard input; where it ends without one, its writer was killed: remove leftovers."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read(1) == DONE:
        return
    begin, removed = time.monotonic(), 0
    while (passed := time.monotonic() - begin) < TIDY_TIME or (removed and passed < TIDY_LIMIT):
        removed = remove_leftovers(since)
        time.sleep(TIDY_PERIOD)


if __name__ == "__main__":
    keep(float(sys.argv[1]))
