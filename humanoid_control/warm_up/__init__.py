"""Kernels compiled ahead, a module a group of them: retargeting, whole_body, simulation, tendons, walking,
hardware, human, library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from humanoid_control.terminal import warn

RETARGETING, SIMULATION, TENDONS = "retargeting", "simulation", "tendons"
WALKING, HARDWARE, HUMAN, WHOLE_BODY = "walking", "hardware", "human", "whole_body"
GROUPS = (RETARGETING, WHOLE_BODY, SIMULATION, TENDONS, WALKING, HARDWARE, HUMAN, "library")  # modules of this room


def compile_first(*groups: str) -> None:
    """Compile kernels now, with a word about it, where that was not done at installation.

    Args:
        groups: modules of this room; RETARGETING, which brings inverse kinematics too, where none is given.
    """
    for group in groups or (RETARGETING,):
        module = importlib.import_module(f"{__name__}.{group}")
        if not module.compiled():
            warn(module.ADVICE)
            module.compile_kernels()


def compiled(group: str) -> bool:
    """True where the kernels of a group are in memory or on disk."""
    return bool(importlib.import_module(f"{__name__}.{group}").compiled())


@contextmanager
def compiling_told(say: Callable[[str], Any], advice: str) -> Iterator[None]:
    """Within it, say once that something is compiled, when it really is: kernels that are kept on disk are loaded.

    Args:
        say: called with the advice. advice: of the group whose kernels are called.
    """
    from numba.core import event

    class Compiling(event.Listener):
        told = False

        def on_start(self, event: Any) -> None:
            if not self.told:
                self.told = True
                say(advice)

        def on_end(self, event: Any) -> None:
            pass

    with event.install_listener("numba:compile", Compiling()):
        yield
