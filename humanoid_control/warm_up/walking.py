"""Kernels of walking compiled ahead: a robot on its feet must not wait."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.ik.tick import tick
from humanoid_control.walking.support import ask_for_zmp, left_share, nearest_in_polygon
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the walker for this machine, only the first time: about a minute"
KERNELS: tuple[Any, ...] = (tick, ask_for_zmp, left_share)
SECONDS = 1.2  # [s] of a walk: it stands and shifts its weight; planning of steps happens at creation


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by a first step of a walker."""
    from humanoid_control.robots import load_robot
    from humanoid_control.simulation import SimulationConfig
    from humanoid_control.walking import Walker

    engine, walker = SimulationConfig("lola", "floating").build(), Walker(load_robot("lola", "floating"))
    while walker.t < SECONDS:
        walker.command(np.array([0.2, 0.0, 0.0]))
        walker.step(engine.read())
        engine.command(walker.joints, walker.joint_velocity)
        engine.step(4)
    nearest_in_polygon(
        walker.stabilizer.polygon(walker.plan.at(walker.t)), np.zeros(2)
    )  # called when a step is adjusted


if __name__ == "__main__":
    compile_here(compile_kernels)
