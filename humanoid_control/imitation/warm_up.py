"""The kernels compiled ahead of time, so that the first clip does not wait for the compiler."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.imitation.retarget import Retargeter
from humanoid_control.imitation.scaling import POINTS, Targets
from humanoid_control.imitation.solve_frame import solve_frame, solve_frames
from humanoid_control.robots import load_robot

ADVICE = "compiling the solver for this machine, only this once: about half a minute"


def compiled() -> bool:
    """Whether the solver's kernels are in memory or on disk."""
    kernels: dict[str, Any] = {"solve_frame": solve_frame, "solve_frames": solve_frames}
    return all(
        kernel.signatures or any(Path(kernel.stats.cache_path).glob(f"solve_frame.{name}-*.nbi"))
        for name, kernel in kernels.items()
    )


def compile_kernels() -> None:
    """Compile what imitation needs, by solving a still clip of three frames; quick where it is done already."""
    robot = load_robot("wabian2", "fixed")
    still = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (3, 1, 1))
    solver = Retargeter(robot)
    solver.solve(Targets("still", 50.0, still, still, POINTS))
    solver.step(still[0], 0.02)


if __name__ == "__main__":
    compile_kernels()
