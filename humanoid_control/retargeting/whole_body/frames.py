"""Compiled frame loop: lock and release feet, solve a frame, move the base.

An upper body is a whole body with a fixed base and no soles: no feet to lock, no base to move, and no errors that decay
(`NO_FEET`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import B2, F1, F2, F3, I1
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Table, uncounted, unpack
from humanoid_control.kinematics.forward_kinematics import Followers, set_followers
from humanoid_control.numerics.cholesky import solve_upper, upper_cholesky
from humanoid_control.retargeting.frame_solver import HELD, FrameBefore, FrameGoal, SolverConstants, solve_goal
from humanoid_control.retargeting.problem import RetargetingProblem, Scratch, mean_error, place_points
from humanoid_control.retargeting.whole_body.contacts import (
    ContactRules,
    ContactSoles,
    FootMemory,
    FootTargets,
    foot_targets,
)

LEFT, RIGHT, OTHERS, BASE = 0, 1, 2, 3
NO_FEET = ContactSoles(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 4)))
FORGETFUL = ContactRules(body_return=np.inf)  # errors are gone in the next frame
INDIFFERENT = 0.02  # [m/rad] posture stiffness: directions in which points move by more are left to the points


class ErrorMemory(NamedTuple):
    """Point errors (K, 3) of the last two frames [m]."""

    last: F2
    before: F2

    @classmethod
    def new(cls, points: int) -> ErrorMemory:
        """Return zero errors."""
        return cls(np.zeros((points, 3)), np.zeros((points, 3)))

    def begin(self, points: np.ndarray, first: np.ndarray, second: np.ndarray) -> None:
        """Initialise by points (K, 3) at rest and targets that move from the first to the second (K, 3) [m]."""
        self.last[:] = points - first
        self.before[:] = self.last + (second - first)


class FootWork(NamedTuple):
    """Contact rules, soles, foot state, foot targets and errors of the frame loop.

    Attributes:
        whose: (D,) part of each coordinate: BASE, LEFT leg, RIGHT leg or OTHERS.
    """

    rules: ContactRules
    soles: ContactSoles
    memory: FootMemory
    out: FootTargets
    errors: ErrorMemory
    whose: I1

    @classmethod
    def new(cls, rules: ContactRules, soles: ContactSoles, points: int, whose: np.ndarray) -> FootWork:
        """Return free feet of a problem with K points."""
        corners = 4 * len(soles.length)
        target, free = np.zeros((2, corners, 3))
        out = FootTargets(target, np.ones(corners), free, np.zeros(corners // 2, dtype=np.bool_))
        return cls(rules, soles, FootMemory.new(), out, ErrorMemory.new(points), whose)


class FrameInputs(NamedTuple):
    """Targets of frames.

    Attributes:
        points: (T, K, 3) targets; not finite: hold. The last eight rows are for the soles, if there are any.
        soles: (T, 2, 5) free sole poses; (T, 0, 5) without soles.
        contact: (T, 4) the person's contacts; (T, 0) without soles.
    """

    points: F3
    soles: F3
    contact: B2


class FrameResults(NamedTuple):
    """Results of frames.

    Attributes:
        x: (T, D) coordinates; base coordinates are relative to the previous frame.
        R: (T, 3, 3) rotation of the base, like p (T, 3) and contact (T, 4) empty without one.
        errors: (T, K) target distances [m].
        used_fallback: (T,) NO_FALLBACK, RELAXED, SHORTENED or HELD.
    """

    x: F2
    R: F3
    p: F2
    errors: F2
    clearance: F1
    used_fallback: I1
    contact: B2


class FrameTables(NamedTuple):
    """Kernel arguments of a frame, with the previous state x, v (D,).

    Attributes:
        joints: (n,) posture of the whole robot, updated.
    """

    problem: RetargetingProblem
    constants: SolverConstants
    frames: FrameInputs
    feet: FootWork
    x: F1
    v: F1
    out: FrameResults
    scratch: Scratch
    joints: F1
    moving: I1
    followers: Followers


@kernel(allocates=True)
def move_base(problem: RetargetingProblem, w: Scratch, x: np.ndarray, v: np.ndarray) -> None:
    """Move the base frame to the base, after `place_points`; the base coordinates become zero.

    Args:
        x: (D,) coordinates.
        v: (D,) velocities; base velocities are rotated to the new frame.
    """
    R, p = problem.tree.joints.R[0], problem.tree.joints.p[0]
    # base coordinates: translation, then rotations about z, x, y; hence the order of the spin
    turn = R.T @ w.bodies.R[6]
    slide = turn.T @ v[:3]
    spin = turn.T @ np.array([v[4], v[5], v[3]])
    v[0], v[1], v[2] = slide[0], slide[1], slide[2]
    v[3], v[4], v[5] = spin[2], spin[0], spin[1]
    R[:] = w.bodies.R[6]
    p[:] = w.bodies.p[6]
    x[:6] = 0.0


@kernel
def returning_goal(
    problem: RetargetingProblem, feet: FootWork, before: FrameBefore, dt: float, wanted: np.ndarray, goal: FrameGoal
) -> None:
    """Fill the goal of a frame so that errors decay like a critically damped oscillator.

    The error of each point follows e(k) = 2 z e(k-1) - z^2 e(k-2), z = exp(-rate dt). Undisturbed targets are tracked
    exactly.
    Locked feet are excluded.
    """
    slow, fast = np.exp(-feet.rules.body_return * dt), np.exp(-feet.rules.foot_return * dt)
    corners = wanted.shape[0] - problem.soles.shape[0]
    for k in range(wanted.shape[0]):
        held = k >= corners and feet.memory.locked[(k - corners) // 4]
        z = fast if k >= corners else slow
        for i in range(3):
            # discrete critically damped decay from the last two errors
            e = 2.0 * z * feet.errors.last[k, i] - z * z * feet.errors.before[k, i]
            goal.target[k, i] = wanted[k, i] + (0.0 if held else e)
    for i in range(before.x.shape[0]):
        goal.expected[i] = before.x[i] + dt * before.v[i]
        off = before.x[i] - problem.rest[i]
        # the same decay for the posture, with the previous offset off - dt v
        goal.rest[i] = problem.rest[i] + 2.0 * slow * off - slow * slow * (off - dt * before.v[i])
    for i in range(problem.base):  # the base has no rest posture
        goal.rest[i] = goal.expected[i]


@kernel
def forget_posture(
    problem: RetargetingProblem,
    n: SolverConstants,
    feet: FootWork,
    before: FrameBefore,
    dt: float,
    w: Scratch,
    goal: FrameGoal,
) -> None:
    """Return the posture to rest in directions that the points leave free.

    The difference between a critically damped return and constant velocity is projected to the null space of the
    points, N = e^2 (J' W J + e^2)^-1, with J' W J of the last solver step, and added to `goal.expected`. Legs of free
    feet are excluded.
    """
    d = before.x.shape[0]
    own = n.damping**2 + n.posture**2 + n.smoothing**2  # diagonal terms added by the solver
    # z is the discrete pole of the critically damped return
    z, e = np.exp(-feet.rules.posture_return * dt), INDIFFERENT**2
    A, step, last = w.memory, w.vectors[0], d - 1
    for i in range(d):  # reversed order turns the lower triangle into an upper one
        for j in range(i, d):
            A[i, j] = w.curvature[last - i, last - j]
        A[i, i] += e - own
    for i in range(d):
        step[last - i], part = 0.0, feet.whose[i]
        if part == OTHERS or (part != BASE and feet.memory.locked[part]):
            off = before.x[i] - problem.rest[i]
            step[last - i] = (2.0 * z - 1.0) * off - z * z * (off - dt * before.v[i]) - dt * before.v[i]
    if upper_cholesky(A, d):
        solve_upper(A, d, step)
        for i in range(d):
            goal.expected[i] += e * step[last - i]


@kernel(allocates=True)
def solve_frames(
    problem: RetargetingProblem,
    n: SolverConstants,
    frames: FrameInputs,
    feet: FootWork,
    before: FrameBefore,
    dt: float,
    out: FrameResults,
    w: Scratch,
) -> float:
    """Solve frames one after another, updating feet and state; return the clearance of the last one [m]."""
    problem, frames, feet, before = uncounted(problem), uncounted(frames), uncounted(feet), uncounted(before)
    n, out, w = uncounted(n), uncounted(out), uncounted(w)
    x, v = before.x, before.v
    stands, memory = problem.soles.shape[0] > 0, feet.errors
    corners = problem.point.shape[0] - problem.soles.shape[0]
    last, d = before.clearance, x.shape[0]
    wanted = np.empty((problem.point.shape[0], 3))
    goal = FrameGoal(np.empty_like(wanted), np.empty_like(x), np.empty_like(x))
    for t in range(frames.points.shape[0]):
        # feet first: their targets and weights depend on the current soles
        if stands:
            place_points(problem, x, w)
            here = w.points[corners:]
            foot_targets(feet.rules, feet.soles, frames.soles[t], frames.contact[t], here, dt, feet.memory, feet.out)
            wanted[corners:] = feet.out.target
            problem.weight[corners:] = feet.out.weight
            out.contact[t] = feet.out.contact
        finite = True
        for k in range(wanted.shape[0]):
            for i in range(3):
                if k < corners:
                    wanted[k, i] = frames.points[t, k, i]
                finite &= np.isfinite(wanted[k, i])
        if finite:
            now = FrameBefore(x, v, last)
            returning_goal(problem, feet, now, dt, wanted, goal)
            if stands:
                forget_posture(problem, n, feet, now, dt, w, goal)
            last, out.used_fallback[t] = solve_goal(problem, n, goal, now, dt, out.x[t], w)
            mean_error(w, wanted, out.errors[t])
            for k in range(wanted.shape[0]):
                for i in range(3):
                    # errors relative to free soles, so that a released foot decays toward them
                    to = wanted[k, i] if k < corners else feet.out.free[k - corners, i]
                    memory.before[k, i] = memory.last[k, i]
                    memory.last[k, i] = w.points[k, i] - to
        else:
            out.x[t], out.errors[t], out.used_fallback[t] = x, np.nan, HELD
        out.clearance[t] = last
        # velocity for the next frame; the base frame then follows the base
        for i in range(d):
            v[i] = (out.x[t, i] - x[i]) / dt
            x[i] = out.x[t, i]
        if problem.base > 0:
            move_base(problem, w, x, v)
            out.R[t], out.p[t] = problem.tree.joints.R[0], problem.tree.joints.p[0]
    return last


@kernel(allocates=True)
def step_frame(table: Table[FrameTables], dt: float, clearance: float) -> tuple[float, float]:
    """Apply `solve_frames` to packed FrameTables of one frame, from a clearance [m].

    Returns:
        Clearance [m]; share of joints at their speed limit.
    """
    t = unpack(table, FrameTables)
    start, base, fast = t.x.copy(), t.problem.base, 0
    before = FrameBefore(t.x, t.v, clearance)
    last = solve_frames(t.problem, t.constants, t.frames, t.feet, before, dt, t.out, t.scratch)
    for i in range(base, start.shape[0]):
        y = t.out.x[0, i]
        fast += abs(y - start[i]) >= t.problem.velocity[i] * dt - 1e-9
        t.joints[t.moving[i - base]] = y
    set_followers(t.followers, t.joints, 0)
    return last, fast / (start.shape[0] - base)
