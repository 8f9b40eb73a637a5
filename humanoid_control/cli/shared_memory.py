"""Shared-memory files of the middleware that nobody uses any more, as a killed process leaves them."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

SHM = Path("/dev/shm")
SETTLE = 0.2  # [s]


def segments() -> list[Path]:
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
    """Files of ours, made after a time [s since the epoch], that no process uses.

    A port of the middleware consists of several files with one name and different endings; they go together. Files
    are listed before it is asked who uses them, and asked about twice: a process that has just made one takes a moment
    until it maps it, and dies when it is removed in between.
    """
    out = _unused(segments(), since)
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
    """Remove them; how many."""
    found = leftovers(since)
    for path in found:
        with contextlib.suppress(OSError):
            path.unlink()
    return len(found)
