"""Publication of optimised whole-body frames that keep every limit.

Frames that keep range, speed, distances, floor and contacts are published unchanged. Others are solved again from the
previous frame with `frame_solver.solve_goal`, which always keeps range, speed and distances, toward the optimised
points. Contacts off their place are dropped.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.compiled.jit import kernel
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

SUNK = 1e-4  # [m] tolerance of a sole below the floor
CUT = 2e-4  # [rad, m] clipping that still counts as unchanged
HOLDING, DRAWING = 1e5, 100.0  # weights of an edge in a frame that is solved again
NEARLY = 5e-3  # [m] error below which an edge is held, not only attracted
LOST = 5e-4  # [m] error above which an edge is not in contact


@kernel(allocates=True)
def base_from_here(problem: RetargetingProblem, R: np.ndarray, p: np.ndarray, y: np.ndarray) -> None:
    """Compute base coordinates 0 to 5 of a root pose about the base frame: translation, rotations about z, x, y."""
    R0, p0 = problem.tree.joints.R[0], problem.tree.joints.p[0]
    M = R0.T @ R
    for i in range(3):
        y[i] = R0[0, i] * (p[0] - p0[0]) + R0[1, i] * (p[1] - p0[1]) + R0[2, i] * (p[2] - p0[2])
    # z-x-y angles of M = Rz Rx Ry
    y[3] = np.arctan2(-M[0, 1], M[1, 1])
    y[4] = np.arcsin(min(max(M[2, 1], -1.0), 1.0))
    y[5] = np.arctan2(-M[2, 0], M[2, 2])


@kernel
def cut_to_bounds(problem: RetargetingProblem, x: np.ndarray, dt: float, y: np.ndarray) -> float:
    """Clip y (D,) to the range, and to the reach from x (D,) within dt; return the largest change."""
    most = 0.0
    for i in range(y.shape[0]):
        reach = problem.velocity[i] * dt
        kept = min(max(y[i], max(problem.lower[i], x[i] - reach)), min(problem.upper[i], x[i] + reach))
        most = max(most, abs(kept - y[i]))
        y[i] = kept
    return most


@kernel
def edges_off(goal: ClipGoal, t: int, problem: RetargetingProblem, w: Scratch, out: np.ndarray) -> float:
    """Compute errors (4,) of the edges in contact [m], -1 for others; return the largest."""
    first, worst = problem.soles[0], 0.0
    for e in range(4):
        out[e] = -1.0
        for k in range(first + 2 * e, first + 2 * e + 2):
            if goal.weight[t, k] >= LOCKED:
                for i in range(3):
                    out[e] = max(out[e], abs(goal.target[t, k, i] - w.points[k, i]))
        worst = max(worst, out[e])
    return worst


@kernel(allocates=True)
def hold_what_can_be(problem: RetargetingProblem, weight: np.ndarray, off: np.ndarray) -> None:
    """Set the weights of a frame that is solved again: contact edges near their place are held, others attracted."""
    first = problem.soles[0]
    problem.weight[:] = weight
    for k in problem.soles:
        if weight[k] >= LOCKED:
            problem.weight[k] = HOLDING if off[(k - first) // 2] <= NEARLY else DRAWING


@kernel(allocates=True)
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
    """Publish frames, solving infeasible ones again from the previous frame; return the clearance of the last one.

    Args:
        before: last published frame; x, v and the tree's base frame are updated.
    """
    x, v, last = before.x, before.v, before.clearance
    y, off = np.empty_like(x), np.empty(4)
    wanted = FrameGoal(np.empty((problem.point.shape[0], 3)), np.empty_like(x), np.empty_like(x))
    for t in range(out.x.shape[0]):
        y[:] = state.x[t]
        base_from_here(problem, state.R[t], state.p[t], y)
        wanted.expected[:] = y
        # feasible if hardly clipped, free of new collisions, and contacts and soles are in place
        kept = cut_to_bounds(problem, x, dt, y) <= CUT
        distance = clearance(problem, y, w)
        kept = kept and distance >= min(0.0, last) and edges_off(goal, t, problem, w, off) <= STILL
        for k in problem.soles:
            kept = kept and w.points[k, 2] >= -SUNK
        if kept:
            out.x[t], out.used_fallback[t] = y, NO_FALLBACK
        else:
            # targets: the optimised points, but contacts at their places and soles not below the floor
            place_points(problem, wanted.expected, w)
            wanted.target[:] = w.points
            for k in problem.soles:
                if goal.weight[t, k] >= LOCKED:
                    wanted.target[k] = goal.target[t, k]
                wanted.target[k, 2] = max(wanted.target[k, 2], 0.0)
            wanted.rest[:] = wanted.expected
            # contacts out of reach are attracted only
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
