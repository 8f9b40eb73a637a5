"""Cleanup of Fast DDS shared-memory files after killed processes.

A keeper process runs this file as a script and cleans up if the supervisor is killed.
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
SETTLE = 0.2  # [s] for a process to map a file that it has just created
# [s] minimum, maximum and period of the cleanup, while the nodes of a killed supervisor end
TIDY_TIME, TIDY_LIMIT, TIDY_PERIOD = 1.5, 60.0, 0.1
SLOW_PERIOD = 0.5  # [s] after the minimum: files of another stack can keep the cleanup waiting
HELD = 4.0  # [s] for which a port of a killed process is held
NAMES = ("fastdds_", "fastrtps_")  # file name prefixes of different releases
DONE = b"."


class SharedMemoryKeeper:
    """Process that cleans up if this process is killed."""

    def __init__(self, since: float) -> None:
        """Start the process; files before `since` [s since the epoch] are kept."""
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
        """End the process without a cleanup."""
        with contextlib.suppress(OSError):
            os.write(self._line, DONE)
        os.close(self._line)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)


def shared_memory_files() -> list[Path]:
    return sorted(p for name in NAMES for p in SHM.glob(f"*{name}*") if p.is_file()) if SHM.is_dir() else []


def files_in_use(pids: set[int] | None = None) -> set[str]:
    """Return names below /dev/shm used by processes (of these ids)."""
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


def leftovers(since: float = 0.0, among: list[Path] | None = None) -> list[Path]:
    """Return files of this user since `since` [s since the epoch] that no process uses.

    Checked twice, because a process maps a new file only after a moment.

    Args:
        among: candidates; default: all.
    """
    out = _unused(shared_memory_files() if among is None else among, since)
    if out:
        time.sleep(SETTLE)
        out = _unused(out, since)
    return out


def _unused(candidates: list[Path], since: float) -> list[Path]:
    used = files_in_use()
    out = []
    for path in _own(candidates, since):
        stem = path.name.removeprefix("sem.").split("_mutex")[0].removesuffix("_el")
        if not any(stem in name for name in used):
            out.append(path)
    return out


def _own(candidates: list[Path], since: float) -> list[Path]:
    """Return the existing files of this user since `since` [s since the epoch]."""
    out = []
    for path in candidates:
        with contextlib.suppress(OSError):
            info = path.stat()
            if info.st_uid == os.getuid() and info.st_mtime >= since - 1:
                out.append(path)
    return out


def remove_leftovers(since: float = 0.0, among: list[Path] | None = None) -> int:
    """Remove `leftovers`; return their number."""
    found = leftovers(since, among)
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(found)


class PortHolder:
    """Locks on shared-memory ports of killed readers, against immediate reuse.

    Writers notice a dead reader after one or two seconds; until then messages to a new reader are lost. New processes
    skip locked ports.
    """

    def __init__(self, since: float) -> None:
        """Create without locks; files before `since` [s since the epoch] are ignored."""
        self._since = since
        self._held: list[tuple[float, int, Path]] = []  # release time [s, monotonic], descriptor of the lock, file

    def hold(self) -> int:
        """Lock all ports without readers; return the number of locks."""
        known = {path for _, _, path in self._held}
        found = 0
        for path in SHM.glob("*_port*_el"):
            if path not in known and path.name.startswith(NAMES) and (lock := self._lock(path)) is not None:
                self._held.append((time.monotonic() + HELD, lock, path))
                found += 1
        return found

    def _lock(self, path: Path) -> int | None:
        """Lock a port of this user without reader, or return None."""
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                locked = os.fstat(descriptor)
                own = locked.st_uid == os.getuid() and locked.st_mtime >= self._since - 1
                if own and locked.st_ino == path.stat().st_ino:  # otherwise it was replaced meanwhile
                    return descriptor
            except OSError:  # in use
                pass
            os.close(descriptor)
        return None

    def release(self, now: float | None = None) -> None:
        """Remove ports held long enough."""
        now = time.monotonic() if now is None else now
        for until, descriptor, path in self._held:
            if until <= now:
                with contextlib.suppress(OSError):
                    if os.fstat(descriptor).st_ino == path.stat().st_ino:  # otherwise it belongs to another process
                        path.with_name(path.name.removesuffix("_el")).unlink(missing_ok=True)
                        path.unlink()
                os.close(descriptor)
        self._held = [held for held in self._held if held[0] > now]


def keep(since: float) -> None:
    """Wait on standard input; if it closes silently, the supervisor was killed: clean up."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if sys.stdin.buffer.read(1) == DONE:
        return
    begin = time.monotonic()
    while time.monotonic() - begin < TIDY_TIME:
        remove_leftovers(since)
        time.sleep(TIDY_PERIOD)
    # On a busy machine a killed node can hold its files for seconds. Files that are made later belong to other stacks.
    held = _own(shared_memory_files(), since)
    while held and time.monotonic() - begin < TIDY_LIMIT:
        remove_leftovers(since, held)
        time.sleep(SLOW_PERIOD)
        held = _own(held, since)


if __name__ == "__main__":
    keep(float(sys.argv[1]))
