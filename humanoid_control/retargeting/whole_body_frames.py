"""The loop over the frames of a whole body, compiled: feet caught and released, a frame solved, the base moved on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.retargeting.contacts import ContactRules, FootMemory, FootTargets, Soles, foot_targets
from humanoid_control.retargeting.frame_solver import FrameBefore, SolverConstants, solve_frame
from humanoid_control.retargeting.problem import RetargetingProblem, Scratch, place_points


class FootWork(NamedTuple):
    """What the loop over frames needs for the feet: rules, soles, memory, and where their targets go."""

    rules: ContactRules
    soles: Soles
    memory: FootMemory
    out: FootTargets


class FrameInputs(NamedTuple):
    """Targets of frames: points (T, K, 3), whose last eight rows are for the soles; soles (T, 2, 5); contact (T, 4)."""

    points: np.ndarray
    soles: np.ndarray
    contact: np.ndarray


class FrameResults(NamedTuple):
    """Results of frames.

    Attributes:
        x: (T, D) coordinates; those of the base are about where it was at the frame before.
        R, p: (T, 3, 3), (T, 3) pose of the root. errors: (T, K) [m]. clearance: (T,) [m]. used_fallback: (T,).
        contact: (T, 4).
    """

    x: np.ndarray
    R: np.ndarray
    p: np.ndarray
    errors: np.ndarray
    clearance: np.ndarray
    used_fallback: np.ndarray
    contact: np.ndarray


@kernel
def move_base(problem: RetargetingProblem, w: Scratch, x: np.ndarray, v: np.ndarray) -> None:
    """Put the base's frame where the base is, after `place_points`; its coordinates become zero.

    Args:
        x, v: (D,) coordinates and velocities; v of the base is turned into the new frame.
    """
    R, p = problem.tree.joints.R[0], problem.tree.joints.p[0]
    turn = R.T @ w.bodies.R[6]
    slide = turn.T @ v[:3]
    spin = turn.T @ np.array([v[4], v[5], v[3]])
    v[0], v[1], v[2] = slide[0], slide[1], slide[2]
    v[3], v[4], v[5] = spin[2], spin[0], spin[1]
    R[:] = w.bodies.R[6]
    p[:] = w.bodies.p[6]
    x[:6] = 0.0


@kernel
def solve_whole_body_frames(
    problem: RetargetingProblem,
    n: SolverConstants,
    frames: FrameInputs,
    feet: FootWork,
    before: FrameBefore,
    dt: float,
    out: FrameResults,
    w: Scratch,
) -> float:
    """Solve frames one after the other, each from the one before.

    Args:
        frames: all of them. feet: memory is updated.
        before: state at the end of the frame before; x and v are updated.
        out: of the same length, filled.

    Returns:
        The clearance of the last frame.
    """
    x, v = before.x, before.v
    corners = problem.soles[0]
    last = before.clearance
    goal = np.empty((problem.point.shape[0], 3))
    for t in range(frames.points.shape[0]):
        place_points(problem, x, w)
        foot_targets(
            feet.rules, feet.soles, frames.soles[t], frames.contact[t], w.points[corners:], dt, feet.memory, feet.out
        )
        goal[:] = frames.points[t]
        goal[corners:] = feet.out.target
        problem.weight[corners:] = feet.out.weight
        result = solve_frame(problem, n, goal, FrameBefore(x, v, last), dt, out.x[t], out.errors[t], w)
        last, out.used_fallback[t] = result
        out.clearance[t] = last
        out.contact[t] = feet.out.contact
        v[:] = (out.x[t] - x) / dt
        x[:] = out.x[t]
        move_base(problem, w, x, v)
        out.R[t], out.p[t] = problem.tree.joints.R[0], problem.tree.joints.p[0]
    return last
