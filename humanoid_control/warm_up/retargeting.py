"""Kernels of retargeting and inverse kinematics compiled ahead: the first clip does not wait for it."""

from __future__ import annotations

from typing import Any

import numpy as np

from humanoid_control.collision.pair_distance import pair_distances
from humanoid_control.ik.follower import TargetFollower
from humanoid_control.ik.limits.self_collision import fill_pair_rows
from humanoid_control.ik.limits.stopping_path import max_safe_scale
from humanoid_control.ik.tick import tick
from humanoid_control.jit import are_compiled
from humanoid_control.kinematics.forward_kinematics import joint_poses
from humanoid_control.numerics.box_qp import solve_box_qp
from humanoid_control.retargeting import POINTS, Retargeter, Targets
from humanoid_control.retargeting.frame_solver import solve_frame, solve_frames
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.robots.self_collision import ShapeParts, monitor_shapes, part_poses

ADVICE = "compiling the solver for this machine, only this once: about half a minute"


KERNELS: tuple[Any, ...] = (
    solve_frame,
    solve_frames,
    pair_distances,
    joint_poses,
    solve_box_qp,
    fill_pair_rows,
    max_safe_scale,
    tick,
    monitor_shapes,
    part_poses,
)


def compiled() -> bool:
    """True where the solvers' kernels are in memory or on disk."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile the kernels by solving a still clip and making a follower; quick where it is done already."""
    TargetFollower(load_robot("lola", "floating"))
    robot = load_robot("wabian2", "fixed")
    ShapeParts(robot)
    still = np.tile(robot.point_positions(robot.q("neutral"), POINTS), (3, 1, 1))
    solver = Retargeter(robot)
    solver.solve(Targets("still", 50.0, still, still, POINTS))
    solver.step(still[0], 0.02)


if __name__ == "__main__":
    compile_kernels()
