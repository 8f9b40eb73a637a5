"""Publication of optimised frames of a whole body: only postures go out that keep every limit.

A frame that keeps range, speed, distances, floor and contacts goes out as it is. Any other is solved again from the
frame before it (`frame_solver.solve_goal`, which always keeps range, speed and distances), toward the optimised points.
A contact that is off its place is none.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel
from humanoid_control.retargeting.frame_solver import (
    LOCKED,
    NO_FALLBACK,
    STILL,
    FrameBefore,
    FrameGoal,
    SolverConstants,
    clearance,
    solve_goal,
)
from humanoid_control.retargeting.problem import RetargetingProblem, Scratch, mean_error, place_points
from humanoid_control.retargeting.whole_body.clip_solver import ClipGoal, ClipPostures
from humanoid_control.retargeting.whole_body.frames import FrameResults, move_base

SUNK = 1e-4  # [m] a sole may be below the floor
CUT = 2e-4  # [rad, m] by which a frame may be cut to its bounds and count as unchanged
HOLDING, DRAWING = 1e5, 100.0  # weights of an edge in a frame that is solved again
NEARLY = 5e-3  # [m] from its place within which an edge is held there, not just drawn
LOST = 5e-4  # [m] from its place at which an edge is said to be in contact no more


@kernel
def base_from_here(problem: RetargetingProblem, R: np.ndarray, p: np.ndarray, y: np.ndarray) -> None:
    """Coordinates 0 to 5 of a pose of the root about the tree's base frame: slides, then turns about z, x, y."""
    R0, p0 = problem.tree.joints.R[0], problem.tree.joints.p[0]
    M = R0.T @ R
    for i in range(3):
        y[i] = R0[0, i] * (p[0] - p0[0]) + R0[1, i] * (p[1] - p0[1]) + R0[2, i] * (p[2] - p0[2])
    y[3] = np.arctan2(-M[0, 1], M[1, 1])
    y[4] = np.arcsin(min(max(M[2, 1], -1.0), 1.0))
    y[5] = np.arctan2(-M[2, 0], M[2, 2])


@kernel
def cut_to_bounds(problem: RetargetingProblem, x: np.ndarray, dt: float, y: np.ndarray) -> float:
    """Cut y (D,) to the range, and to what speed allows from x (D,) in dt; the largest cut."""
    most = 0.0
    for i in range(y.shape[0]):
        reach = problem.velocity[i] * dt
        kept = min(max(y[i], max(problem.lower[i], x[i] - reach)), min(problem.upper[i], x[i] + reach))
        most = max(most, abs(kept - y[i]))
        y[i] = kept
    return most


@kernel
def edges_off(goal: ClipGoal, t: int, problem: RetargetingProblem, w: Scratch, out: np.ndarray) -> float:
    """Distances (4,) of the edges in contact from their places [m], -1 of the others; the largest."""
    first, worst = problem.soles[0], 0.0
    for e in range(4):
        out[e] = -1.0
        for k in range(first + 2 * e, first + 2 * e + 2):
            if goal.weight[t, k] >= LOCKED:
                for i in range(3):
                    out[e] = max(out[e], abs(goal.target[t, k, i] - w.points[k, i]))
        worst = max(worst, out[e])
    return worst


@kernel
def hold_what_can_be(problem: RetargetingProblem, weight: np.ndarray, off: np.ndarray) -> None:
    """Weights of a frame that is solved again: an edge in contact is held if it is at its place, or else drawn there.

    Args:
        weight: (K,) of the optimisation.
        off: (4,) of `edges_off`.
    """
    first = problem.soles[0]
    problem.weight[:] = weight
    for k in problem.soles:
        if weight[k] >= LOCKED:
            problem.weight[k] = HOLDING if off[(k - first) // 2] <= NEARLY else DRAWING


@kernel
def follow_frames(
    problem: RetargetingProblem,
    n: SolverConstants,
    state: ClipPostures,
    goal: ClipGoal,
    before: FrameBefore,
    dt: float,
    out: FrameResults,
    w: Scratch,
) -> float:
    """Publish frames, those that violate anything solved again from the frame before.

    Args:
        state, goal: of as many frames as `out` holds.
        before: published last; x and v are updated, and the tree's base frame is the root's.

    Returns:
        The clearance of the last frame.
    """
    x, v, last = before.x, before.v, before.clearance
    y, off = np.empty_like(x), np.empty(4)
    wanted = FrameGoal(np.empty((problem.point.shape[0], 3)), np.empty_like(x), np.empty_like(x))
    for t in range(out.x.shape[0]):
        y[:] = state.x[t]
        base_from_here(problem, state.R[t], state.p[t], y)
        wanted.expected[:] = y
        kept = cut_to_bounds(problem, x, dt, y) <= CUT
        distance = clearance(problem, y, w)
        kept = kept and distance >= min(0.0, last) and edges_off(goal, t, problem, w, off) <= STILL
        for k in problem.soles:
            kept = kept and w.points[k, 2] >= -SUNK
        if kept:
            out.x[t], out.used_fallback[t] = y, NO_FALLBACK
        else:
            place_points(problem, wanted.expected, w)
            wanted.target[:] = w.points
            for k in problem.soles:
                if goal.weight[t, k] >= LOCKED:
                    wanted.target[k] = goal.target[t, k]
                wanted.target[k, 2] = max(wanted.target[k, 2], 0.0)
            wanted.rest[:] = wanted.expected
            hold_what_can_be(problem, goal.weight[t], off)
            distance, out.used_fallback[t] = solve_goal(problem, n, wanted, FrameBefore(x, v, last), dt, out.x[t], w)
            edges_off(goal, t, problem, w, off)
        mean_error(w, goal.target[t], out.errors[t])
        for e in range(4):
            out.contact[t, e] = 0.0 <= off[e] <= LOST
        out.clearance[t], last = distance, distance
        v[:] = (out.x[t] - x) / dt
        x[:] = out.x[t]
        move_base(problem, w, x, v)
        out.R[t], out.p[t] = problem.tree.joints.R[0], problem.tree.joints.p[0]
    return last
