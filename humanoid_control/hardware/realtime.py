"""Real time on a stock kernel: what a process can ask for, and what the machine grants; by the standard library."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
from pathlib import Path

MCL_CURRENT, MCL_FUTURE = 1, 2
LATENCY_TIMER = 1  # [ms] that a serial adapter of FTDI should wait at the most
CPUS = Path("/sys/devices/system/cpu")
SERIAL = Path("/sys/bus/usb-serial/devices")


def become_real_time(priority: int, cpus: str = "") -> str:
    """Ask for everything that keeps a loop on time, as far as it is permitted.

    SCHED_FIFO for every thread, memory that is never paged out, no pauses of the garbage collector for objects that
    are there already.

    Args:
        priority: of SCHED_FIFO; 0: as any process.
        cpus: processors to run on, as '2' or '2,3' or '2-3'; empty: all.

    Returns:
        What was granted, in a few words.
    """
    granted = []
    if priority > 0:
        with contextlib.suppress(OSError):
            for thread in os.listdir("/proc/self/task"):
                os.sched_setscheduler(int(thread), os.SCHED_FIFO, os.sched_param(priority))
            granted.append(f"fifo {priority}")
        if lock_memory():
            granted.append("memory locked")
    if cpus:
        with contextlib.suppress(OSError, ValueError):
            os.sched_setaffinity(0, processors(cpus))
            granted.append(f"cpu {cpus}")
    gc.collect()
    gc.freeze()
    return ", ".join(granted) or "normal"


def lock_memory() -> bool:
    """Keep all memory of this process, now and later, from being paged out; False where that is not permitted."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        return False  # with a finite limit later allocations would fail, which is worse than a page fault
    return ctypes.CDLL(None, use_errno=True).mlockall(MCL_CURRENT | MCL_FUTURE) == 0


def processors(text: str) -> set[int]:
    """Numbers of processors from a list as the kernel writes it: '0,2-3'.

    Raises:
        ValueError: not such a list.
    """
    out: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        out |= set(range(int(first), int(last if dash else first) + 1))
    return out


def real_time_report(root: Path = Path("/")) -> dict[str, str]:
    """Facts of the machine that decide how late a loop may be, by name, for diagnostics.

    Args:
        root: of the file system, for tests.
    """
    policy = {os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr"}.get(os.sched_getscheduler(0), "normal")
    memory = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    cpus = root / CPUS.relative_to("/")
    return {
        "policy": policy,
        "preempt_rt": "yes" if _text(root / "sys/kernel/realtime") == "1" else "no",
        "rtprio_limit": str(resource.getrlimit(resource.RLIMIT_RTPRIO)[0]),
        "memlock_limit": "unlimited" if memory == resource.RLIM_INFINITY else f"{memory // 1024} kB",
        "isolated_cpus": _text(cpus / "isolated") or "none",
        "governor": _text(cpus / "cpu0/cpufreq/scaling_governor") or "not known",
    }


def real_time_advice(root: Path = Path("/")) -> list[str]:
    """What would make loops of this machine later than they need be, each with the command that mends it."""
    out = []
    facts = real_time_report(root)
    if facts["governor"] not in ("performance", "not known"):
        out.append(f"cpufreq governor is {facts['governor']}: cpupower frequency-set -g performance")
    for timer in sorted((root / SERIAL.relative_to("/")).glob("*/latency_timer")):
        wait = _text(timer)
        if wait.isdigit() and int(wait) > LATENCY_TIMER:
            out.append(f"{timer.parent.name} waits {wait} ms for more bytes: echo {LATENCY_TIMER} > {timer}")
    return out


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
