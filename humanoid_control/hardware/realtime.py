"""Real-time scheduling on a stock kernel with the standard library."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

MCL_CURRENT, MCL_FUTURE, MADV_DONTNEED = 1, 2, 4
COMPILER = "libllvmlite"  # of numba: 60 MB that are not needed once the kernels are loaded
LATENCY_TIMER = 1  # [ms] permitted for an FTDI serial adapter
CPUS = Path("/sys/devices/system/cpu")
SERIAL = Path("/sys/bus/usb-serial/devices")
OFTEN = 700  # new objects before a collection of the youngest generation, the interpreter's default
MANY = 200_000  # new objects that force a collection without spare time: memory must not fill up
ROUNDS = 10  # collections of a generation before the next older one
MARGIN = 3.0  # spare time needed for a collection, as a multiple of its last duration


def become_real_time(priority: int, cpus: str = "") -> str:
    """Request SCHED_FIFO, locked memory and frozen objects as permitted; return the granted ones.

    Args:
        priority: SCHED_FIFO priority; 0: normal scheduling.
        cpus: as '2', '2,3' or '2-3'; empty: all.
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


class SpareTimeCollector:
    """Garbage collection only in the spare time of a loop.

    Objects that exist at creation are never collected.
    """

    def __init__(self) -> None:
        """Collect once and disable automatic collection."""
        gc.collect()
        gc.freeze()
        gc.disable()
        self._took, self._since = [0.0001, 0.0003, 0.001], [0, 0, 0]

    def run(self, spare: float) -> bool:
        """Collect if due and if it fits into `spare` [s]; True if it ran."""
        new = gc.get_count()[0]
        if new < OFTEN:
            return False
        generation = max(g for g in range(3) if g == 0 or self._since[g - 1] >= ROUNDS)
        while generation and MARGIN * self._took[generation] > spare:
            generation -= 1
        if MARGIN * self._took[generation] > spare and new < MANY:
            return False
        begin = time.monotonic()
        gc.collect(generation)
        took = time.monotonic() - begin
        self._took[generation] = max(took, 0.5 * (took + self._took[generation]))
        self._since[generation] += 1
        for younger in range(generation):
            self._since[younger] = 0
        return True

    def close(self) -> None:
        """Restore automatic collection."""
        gc.unfreeze()
        gc.enable()


def give_back_memory(library: str = ".so") -> None:
    """Release free memory and unmodified library pages.

    Args:
        library: part of the name; default: all.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):  # glibc only
        libc.malloc_trim(0)
    for begin, end in untouched_pages(library):
        libc.madvise(ctypes.c_void_p(begin), ctypes.c_size_t(end - begin), MADV_DONTNEED)


def untouched_pages(library: str) -> list[tuple[int, int]]:
    """Return addresses (begin, end) of mapped library parts identical to their file."""
    out: list[tuple[int, int]] = []
    with contextlib.suppress(OSError), open("/proc/self/smaps") as f:
        begin = end = 0
        wanted = False
        for line in f:
            first, *words = line.split()
            if "-" in first and not first.endswith(":"):
                begin, end = (int(word, 16) for word in first.split("-"))
                wanted = "w" not in words[0] and library in line
            elif wanted and first == "Anonymous:" and words[0] == "0":  # nothing relocated
                out.append((begin, end))
    return out


def lock_memory() -> bool:
    """Lock all memory of this process; False if not permitted."""
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if soft != resource.RLIM_INFINITY and os.geteuid() != 0:
        return False  # with a finite limit later allocations would fail, which is worse than a page fault
    return ctypes.CDLL(None, use_errno=True).mlockall(MCL_CURRENT | MCL_FUTURE) == 0


def processors(text: str) -> set[int]:
    """Parse a processor list in kernel notation: '0,2-3'.

    Raises:
        ValueError: if the text is not such a list.
    """
    out: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        out |= set(range(int(first), int(last if dash else first) + 1))
    return out


def pin(cpus: str) -> str:
    """Pin thread and children to processors; return the reason of a failure, or ''."""
    if not cpus:
        return ""
    try:
        os.sched_setaffinity(0, processors(cpus))
    except ValueError:
        return f"cpu must be CPU numbers, such as 2 or 2,3 or 2-3, got '{cpus}'"
    except OSError:
        have = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        return f"cpu {cpus}: this process may run on {have}"
    return ""


class Fact(NamedTuple):
    """Property of the machine that affects loop latency.

    Attributes:
        remedy: command that improves it; empty: as it should be.
    """

    name: str
    value: str
    remedy: str


def real_time_facts(root: Path = Path("/")) -> list[Fact]:
    """Return machine properties with remedies."""
    limits = "then log in again; in /etc/security/limits.conf, for the group GROUP"
    priority, memory = (resource.getrlimit(x)[0] for x in (resource.RLIMIT_RTPRIO, resource.RLIMIT_MEMLOCK))
    may_anything = os.geteuid() == 0
    cpus = root / CPUS.relative_to("/")
    preempt = _text(root / "sys/kernel/realtime") == "1"
    isolated = _text(cpus / "isolated")
    governor = _text(cpus / "cpu0/cpufreq/scaling_governor") or "not known"
    fair = governor in ("performance", "not known")
    policy = {os.SCHED_FIFO: "fifo", os.SCHED_RR: "rr"}.get(os.sched_getscheduler(0), "normal")
    fine_memory = may_anything or memory == resource.RLIM_INFINITY
    facts = [
        Fact("policy", policy, ""),
        Fact("preempt_rt", "yes" if preempt else "no", "" if preempt else "install a kernel with PREEMPT_RT"),
        Fact(
            "rtprio_limit", _limit(priority, 1),
            "" if may_anything or priority > 0 else f"'@GROUP - rtprio 98', {limits}",
        ),
        Fact(
            "memlock_limit", _limit(memory, 1024),
            "" if fine_memory else f"'@GROUP - memlock unlimited', {limits}",
        ),
        Fact(
            "isolated_cpus", isolated or "none",
            "" if isolated else "isolcpus=2 on the kernel's command line, and cpu: '2' for the driver",
        ),
        Fact("governor", governor, "" if fair else "cpupower frequency-set -g performance"),
    ]  # fmt: skip
    for timer in sorted((root / SERIAL.relative_to("/")).glob("*/latency_timer")):
        wait = _text(timer)
        slow = wait.isdigit() and int(wait) > LATENCY_TIMER
        facts.append(
            Fact(f"latency_timer {timer.parent.name}", f"{wait} ms", f"echo {LATENCY_TIMER} > {timer}" if slow else "")
        )
    return facts


def _limit(value: int, unit: int) -> str:
    if value == resource.RLIM_INFINITY:
        return "unlimited"
    return f"{value // unit} kB" if unit > 1 else str(value)


def real_time_report(root: Path = Path("/")) -> dict[str, str]:
    """Return machine properties by name, for diagnostics."""
    return {fact.name: fact.value for fact in real_time_facts(root)}


def real_time_advice(root: Path = Path("/")) -> list[str]:
    """Return latency problems that one command solves."""
    out = []
    for name, value, remedy in real_time_facts(root):
        if remedy and name == "governor":
            out.append(f"cpufreq governor is {value}: {remedy}")
        elif remedy and name.startswith("latency_timer "):
            out.append(f"{name.split()[1]} waits {value} for more bytes: {remedy}")
    return out


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text().strip()
    return ""
