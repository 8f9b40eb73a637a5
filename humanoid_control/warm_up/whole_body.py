"""Kernels of whole-body retargeting compiled ahead."""

from __future__ import annotations

from typing import Any

from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import ClipRetargeter, WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.frame_solver import clearance, gauss_newton
from humanoid_control.retargeting.whole_body.clip_solver import (
    advance,
    frame_costs,
    newton_step,
    place_corners,
    place_soles,
)
from humanoid_control.retargeting.whole_body.contacts import (
    find_contacts,
    foot_targets,
    sole_corners,
    sole_pitch,
    sole_pose,
)
from humanoid_control.retargeting.whole_body.feasible_frames import follow_frames
from humanoid_control.retargeting.whole_body.frames import move_base, solve_frames, step_frame
from humanoid_control.retargeting.whole_body.live import LiveWholeBody, edge_points
from humanoid_control.robots.catalogue import load_robot
from humanoid_control.warm_up import compile_here
from humanoid_control.warm_up.kernel_files import are_compiled

ADVICE = "compiling the solver of the whole body for this machine, only the first time: about a minute"

KERNELS: tuple[Any, ...] = (
    step_frame,
    solve_frames,
    gauss_newton,
    clearance,
    move_base,
    foot_targets,
    sole_corners,
    find_contacts,
    sole_pose,
    sole_pitch,
    newton_step,
    frame_costs,
    advance,
    place_corners,
    place_soles,
    follow_frames,
)


def compiled() -> bool:
    """Return whether these kernels are compiled."""
    return are_compiled(KERNELS)


def compile_kernels() -> None:
    """Compile them by the beginning of a built-in dance."""
    robot = load_robot("lola", "floating")
    targets = WholeBodyScaler(load_body_points("gentle_dance"), robot).targets(load_body_points("gentle_dance"))
    solver = WholeBodyRetargeter.following(targets, robot)
    frames = solver.inputs(targets)
    solver.start(frames, float(targets.heading[0]))
    solver.step(frames, 1, 1.0 / targets.rate)
    edge_points(solver.legs.soles, targets.soles[0])
    LiveWholeBody(robot)  # includes sole poses
    ClipRetargeter.following(targets, robot).solve(targets)


if __name__ == "__main__":
    compile_here(compile_kernels)
