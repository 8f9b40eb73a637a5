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
NAMES = ("fastdds_", "fastrtps_")  # of its files; the name changed between releases
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

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it: everything was tidied up."""
        with contextlib.suppress(OSError):
            os.write(self._line, DONE)
        os.close(self._line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def shared_memory_files() -> list[Path]:
    """All shared-memory files of Fast DDS."""
    return sorted(p for name in NAMES for p in SHM.glob(f"*{name}*") if p.is_file()) if SHM.is_dir() else []


def files_in_use(pids: set[int] | None = None) -> set[str]:
    """Names below /dev/shm that some process has mapped or open; of these process ids alone, where they are given."""
    used: set[str] = set()
    for proc in Path("/proc").iterdir():
        if not proc.name.isdigit() or (pids is not None and int(proc.name) not in pids):
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
    say to a new process that took the same port is lost. A port that is locked is passed over by new processes. Fast
    DDS takes it for one that is read, so that it must be removed here when it is let go.
    """

    def __init__(self, since: float) -> None:
        """Hold nothing yet.

        Args:
            since: files made before are none of its business [s since the epoch].
        """
        self._since = since
        self._held: list[tuple[float, int, Path]] = []  # until when, on the monotonic clock [s]; descriptor of the lock

    def hold(self) -> int:
        """Lock all ports whose readers are gone; how many are new."""
        known = {path for _, _, path in self._held}
        found = 0
        for path in SHM.glob("*_port*_el"):
            if path not in known and path.name.startswith(NAMES) and (lock := self._lock(path)) is not None:
                self._held.append((time.monotonic() + HELD, lock, path))
                found += 1
        return found

    def _lock(self, path: Path) -> int | None:
        """Descriptor of the lock on a port of this user that nobody reads; None of all others."""
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = os.fstat(descriptor)
                own = locked.st_uid == os.getuid() and locked.st_mtime >= self._since - 1
                if own and locked.st_ino == path.stat().st_ino:  # else it was removed, and made anew, meanwhile
                    return descriptor
            except OSError:  # somebody reads it
                pass
            os.close(descriptor)
        return None

    def release(self, now: float | None = None) -> None:
        """Remove those that were held long enough, by the time on the monotonic clock [s]; default: the present."""
        now = time.monotonic() if now is None else now
        for until, descriptor, path in self._held:
            if until <= now:
                with contextlib.suppress(OSError):
                    if os.fstat(descriptor).st_ino == path.stat().st_ino:  # else it is somebody else's by now
                        path.with_name(path.name.removesuffix("_el")).unlink(missing_ok=True)
                        path.unlink()
                os.close(descriptor)
        self._held = [held for held in self._held if held[0] > now]


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
