"""Kernels compiled ahead, a module a group of them: retargeting, inverse_kinematics, simulation, whole_body, tendons,
walking, hardware, human, performing, library.
"""

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
# Modules of this room, in the order in which they are begun: the longest first, and what calls others' kernels later.
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
COMPILING = "compiling kernels for this machine, only this once: up to some minutes (ahead of it: humanoid warm)"
TELL_EVERY = 10.0  # [s]
RARE_COLLECTIONS = (100_000, 50, 100)  # a compiler makes millions of objects that live as long as it

_telling = False


def compile_first(*groups: str) -> None:
    """Compile kernels now, with a word about it, where that was not done at installation.

    Args:
        groups: modules of this room; RETARGETING where none is given.
    """
    cold = [group for group in groups or (RETARGETING,) if not compiled(group)]
    for group in cold:
        warn(_module(group).ADVICE)
    if len(cold) > 1:
        compile_groups(cold, quiet=True)
    for group in cold:  # alone, or where a process of its own could not
        if not compiled(group):
            _module(group).compile_kernels()


def compile_groups(groups: Sequence[str], quiet: bool = False) -> dict[str, str]:
    """Compile groups of kernels, each in a process of its own, as many at once as there are cores.

    Args:
        groups: modules of this room. quiet: without a progress bar.

    Returns:
        Of each group that failed, the last line that its process said.
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
        finally:  # also where somebody interrupts it
            for key in list(running.get_map().values()):
                key.data[1].kill()
                key.data[1].wait()
                key.data[1].stderr.close()
    return failed


def compile_here(compile_kernels: Callable[[], None]) -> None:
    """What the process of a group does: its modules are run by `python -m`."""
    gc.set_threshold(*RARE_COLLECTIONS)
    compile_kernels()


def compiled(group: str) -> bool:
    """True where the kernels of a group are in memory or on disk."""
    return bool(_module(group).compiled())


def _module(group: str) -> Any:
    return importlib.import_module(f"{__name__}.{group}")


@contextmanager
def compiling_told(say: Callable[[str], Any], advice: str = COMPILING) -> Iterator[None]:
    """Within it, say that kernels are compiled, when they really are, and now and then that it continues.

    Kernels that are kept on disk are loaded without a word. Does nothing inside another one, or before numba is loaded.

    Args:
        say: called with the advice, then with the time that has passed. advice: of the group whose kernels are called.
    """
    global _telling
    if _telling or "numba" not in sys.modules:
        yield
        return
    from numba.core import event

    class Compiling(event.Listener):
        begun, due, kernels = 0.0, 0.0, 0

        def on_start(self, event: Any) -> None:
            now = time.monotonic()
            self.kernels += 1
            if not self.begun:
                self.begun, self.due = now, now + TELL_EVERY
                say(advice)
            elif now > self.due:
                self.due = now + TELL_EVERY
                say(f"still compiling: {self.kernels} kernels in {now - self.begun:.0f} s")

        def on_end(self, event: Any) -> None:
            pass

    _telling = True
    try:
        with event.install_listener("numba:compile", Compiling()):
            yield
    finally:
        _telling = False
