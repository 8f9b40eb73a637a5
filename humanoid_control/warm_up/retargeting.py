"""Kernels of retargeting compiled ahead, for a quick first clip."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.kinematics.forward_kinematics import joint_poses
from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass
from humanoid_control.retargeting import POINTS, Retargeter, RetargetSettings, Targets
from humanoid_control.retargeting.whole_body.frames import solve_frames, step_frame
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.self_collision import ShapeParts, part_poses
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the solver for this machine, only the first time: about half a minute"


KERNELS: tuple[Any, ...] = (
    solve_frames,
    step_frame,
    joint_poses,
    part_poses,
    filtered_both_ways,
)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by solving a still clip."""
    robot = load_robot("wabian2", "fixed")
    ShapeParts(robot)
    still = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (3, 1, 1))
    for settings in (RetargetSettings(), RetargetSettings(avoidance="none")):
        solver = Retargeter(robot, settings)
        solver.solve(Targets("still", 50.0, still, still, POINTS))
        solver.step(still[0], 0.02)
    filtered_both_ways(still.reshape(3, -1), low_pass(5.0, 0.02), 0)  # used in clip cleaning


if __name__ == "__main__":
    compile_here(compile_kernels)
