"""Kernels compiled ahead, one module per group."""

from __future__ import annotations

import gc
import importlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from humanoid_control.terminal import progress, warn

RETARGETING, INVERSE_KINEMATICS, SIMULATION, TENDONS = "retargeting", "inverse_kinematics", "simulation", "tendons"
WALKING, HARDWARE, HUMAN, WHOLE_BODY = "walking", "hardware", "human", "whole_body"
PERFORMING = "performing"
# Modules of this package in starting order: longest first, callers of other groups' kernels later.
GROUPS = (
    INVERSE_KINEMATICS,
    SIMULATION,
    RETARGETING,
    HUMAN,
    "library",
    WHOLE_BODY,
    PERFORMING,
    TENDONS,
    WALKING,
    HARDWARE,
)
COMPILING = "compiling kernels for this machine, only the first time: up to a few minutes (in advance: humanoid warm)"
TELL_EVERY = 10.0  # [s]
RARE_COLLECTIONS = (100_000, 50, 100)  # a compiler creates millions of long-lived objects

_telling = False


def compile_first(*groups: str) -> None:
    """Compile groups (default: RETARGETING) now with a message, unless compiled at installation."""
    cold = [group for group in groups or (RETARGETING,) if not compiled(group)]
    for group in cold:
        warn(_module(group).ADVICE)
    if len(cold) > 1:
        compile_groups(cold, quiet=True)
    for group in cold:  # a single group, or a failed process
        if not compiled(group):
            _module(group).compile_kernels()


def compile_groups(groups: Sequence[str], quiet: bool = False) -> dict[str, str]:
    """Compile groups in one process each, as many at once as cores.

    Returns:
        Failed group -> last line of its process.
    """
    waiting, cores = list(dict.fromkeys(groups)), len(os.sched_getaffinity(0))
    total, done, failed = len(waiting), 0, dict[str, str]()
    with selectors.DefaultSelector() as running, progress("compiling", total, quiet) as told:
        try:
            while waiting or running.get_map():
                while waiting and len(running.get_map()) < cores:
                    command = [sys.executable, "-m", f"{__name__}.{waiting[0]}"]
                    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                    errors: Any = process.stderr
                    running.register(errors, selectors.EVENT_READ, (waiting.pop(0), process, []))
                told(done, ", ".join(key.data[0] for key in running.get_map().values()))
                for key, _ in running.select():
                    group, process, lines = key.data
                    if line := process.stderr.readline():
                        lines.append(line.strip())
                        continue
                    running.unregister(key.fileobj)
                    process.stderr.close()
                    done += 1
                    if process.wait():
                        failed[group] = next(filter(None, reversed(lines)), f"exit code {process.returncode}")
        finally:  # also on an interrupt
            for key in list(running.get_map().values()):
                key.data[1].kill()
                key.data[1].wait()
                key.data[1].stderr.close()
    return failed


def compile_here(compile_kernels: Callable[[], None]) -> None:
    """Run the compilation of a group as `python -m` module."""
    gc.set_threshold(*RARE_COLLECTIONS)
    compile_kernels()


def compiled(group: str) -> bool:
    """Return whether a group's kernels are in memory or on disk."""
    return bool(_module(group).compiled())


def _module(group: str) -> Any:
    return importlib.import_module(f"{__name__}.{group}")


@contextmanager
def report_compiling(say: Callable[[str], Any], advice: str = COMPILING) -> Iterator[None]:
    """Report compilation of kernels, not their loading from disk.

    Does nothing when nested, or before numba is loaded.

    Args:
        say: called with the advice, then with the elapsed time.
    """
    global _telling
    if _telling or "numba" not in sys.modules:
        yield
        return
    from humanoid_control.compiled.progress import calling_at_compilations

    begun, due, kernels = 0.0, 0.0, 0

    def count() -> None:
        nonlocal begun, due, kernels
        now = time.monotonic()
        kernels += 1
        if not begun:
            begun, due = now, now + TELL_EVERY
            say(advice)
        elif now > due:
            due = now + TELL_EVERY
            say(f"still compiling: {kernels} kernels in {now - begun:.0f} s")

    _telling = True
    try:
        with calling_at_compilations(count):
            yield
    finally:
        _telling = False
