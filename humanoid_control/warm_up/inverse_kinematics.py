"""Kernels of inverse kinematics compiled ahead, for a short first tick."""

from __future__ import annotations

from typing import Any

from humanoid_control.ik.follower import TargetFollower
from humanoid_control.ik.limits.self_collision import watch_faster_pairs, watch_pairs
from humanoid_control.ik.tick import tick
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling inverse kinematics for this machine, only the first time: about half a minute"
KERNELS: tuple[Any, ...] = (watch_pairs, watch_faster_pairs, tick)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by creating a follower."""
    TargetFollower(load_robot("lola", "floating"))


if __name__ == "__main__":
    compile_here(compile_kernels)
