"""Kernels compiled ahead, a module a group of them: retargeting, simulation, tendons, walking, library."""

from __future__ import annotations

import importlib

from humanoid_control.terminal import warn

RETARGETING, SIMULATION, TENDONS, WALKING = "retargeting", "simulation", "tendons", "walking"


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
