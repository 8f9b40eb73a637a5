"""Kernels of walking compiled ahead of time, so that no robot waits for the compiler on its feet."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.ik.task_table import fill_rows
from humanoid_control.ik.velocity_program import solve_program
from humanoid_control.walking.support import ask_for_zmp, left_share, nearest_in_polygon
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the walker for this machine, only this once: about a minute"
KERNELS: tuple[Any, ...] = (fill_rows, solve_program, ask_for_zmp, left_share)
SECONDS = 1.2  # of a walk: it stands and shifts its weight; steps are tried in thought when it is made


def compiled() -> bool:
    """True where the walker's kernels are in memory or on disk."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile what a walker and its world need, by a first step; quick where it is done already."""
    from humanoid_control.robots import load_robot
    from humanoid_control.simulation import SimulationConfig
    from humanoid_control.walking import Walker

    engine, walker = SimulationConfig("lola", "floating").build(), Walker(load_robot("lola", "floating"))
    while walker.t < SECONDS:
        walker.command(np.array([0.2, 0.0, 0.0]))
        walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
    nearest_in_polygon(walker.stabilizer.polygon(walker.plan.at(walker.t)), np.zeros(2))  # where a step is adjusted


if __name__ == "__main__":
    compile_here(compile_kernels)
