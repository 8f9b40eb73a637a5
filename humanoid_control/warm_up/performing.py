"""Kernels of feasible motions and their controller compiled ahead."""

from __future__ import annotations

from typing import Any

from humanoid_control.estimation.floating_base import follow_soles
from humanoid_control.mocap import load_body_points
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.numerics.butterworth import filtered_both_ways
from humanoid_control.performing import FeasibilitySettings, Stage, make_feasible
from humanoid_control.performing.clip_ik import follow_clip
from humanoid_control.retargeting import CLIP, retarget_whole_body
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.walking.support import convex_hull
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the solver of feasible motions for this machine, only the first time: about a minute"

KERNELS: tuple[Any, ...] = (follow_clip, filtered_both_ways, convex_hull, follow_soles, solve_box_qp)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by a built-in dance."""
    robot = load_robot("lola", "floating")
    trajectory = retarget_whole_body(load_body_points("gentle_dance"), robot, method=CLIP)
    Stage(robot, make_feasible(trajectory, robot, FeasibilitySettings(passes=1, pace=1.0)))


if __name__ == "__main__":
    compile_here(compile_kernels)
