"""Constrained least squares of one frame, solved to convergence.

minimise  sum_k w_k |p_k(x) - target_k|^2 + posture^2 |x - rest|^2 + smoothing^2 |x - x_before - v_before dt|^2
subject to  joint range, joint speed, joint acceleration with room to brake (bounds),
            every near pair of shapes keeps its distance, soles stay above the floor (rows).

It is linearised a few times a frame (Gauss-Newton with all constraints in each step). No frame is ever taken that
brings shapes into each other: where the linearisation was too rough the acceleration limit gives way first, then the
step is shortened, and at last the posture is held, which is always possible. The first frame of a clip has no frame
before it: it is a converged fit from several starts, so that the motion never begins collapsed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.jit import kernel
from humanoid_control.kinematics.forward_kinematics import Followers, set_followers
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, fill_velocity_bounds
from humanoid_control.numerics.array_types import F1, F2, I1
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.box_qp import solve_box_qp_from
from humanoid_control.numerics.packed import Table, uncounted, unpack
from humanoid_control.retargeting.problem import (
    RetargetingProblem,
    Scratch,
    carried_rows,
    closest,
    mean_error,
    measure,
    near_pairs,
    place_points,
    point_jacobian,
)
from humanoid_control.retargeting.scaling import POINTS

NO_FALLBACK, RELAXED, SHORTENED, HELD = 0, 1, 2, 3
CONVERGED = 2e-3  # [rad] a step this short leaves an error of the order of its square
CLOSE = 0.05  # [m] pairs nearer than this count as clearance
FAR = 1e9  # [m] stands for the clearance where no pair is near
NEAR_FLOOR = 0.05  # [m] height of a sole's corner below which a step minds the floor
LOCKED = 1e3  # weight from which a point of a sole is on the floor and stays: acceleration gives way to it
STILL = 2e-4  # [m] it may be off
SUNK = 5e-4  # [m] below the floor, from which on a sole needs more acceleration too
FLOOR_GAIN = 40.0  # [1/s] a sole that swings loses this share of its height a second at most
IN_NEED = 4.0  # times its limit, acceleration for a foot that would slip
SOLVED, CUT_SHORT, UNSOLVED = 0, 1, 2  # programs of the Gauss-Newton steps: all, all but the last one, none


class SolverConstants(NamedTuple):
    """Settings as plain numbers, `acceleration` and `braking` (D,) of each joint; meanings in `RetargetSettings`.

    Attributes:
        yielding: factor on the row of a pair at its margin; it goes to 1 where the pair touches. 1: none yields.
    """

    damping: float
    posture: float
    smoothing: float
    acceleration: F1
    braking: F1
    margin: float
    activation: float
    barrier_gain: float
    pair_recovery_speed: float
    slack_weight: float
    yielding: float
    iterations: int


class FrameBefore(NamedTuple):
    """State in which the frame before ended: x (D,) [rad], v (D,) [rad/s], clearance [m]."""

    x: np.ndarray
    v: np.ndarray
    clearance: float


class FrameGoal(NamedTuple):
    """Targets of a frame: target (K, 3) of the points [m]; expected (D,), the posture that costs no acceleration; rest
    (D,), the one that is preferred where points leave a choice."""

    target: np.ndarray
    expected: np.ndarray
    rest: np.ndarray


class StepBounds(NamedTuple):
    """Bounds (D,) on the next posture [rad]."""

    lower: np.ndarray
    upper: np.ndarray


class SolvedFrames(NamedTuple):
    """Results of all frames of a clip.

    Attributes:
        x: (T, D) postures [rad].
        errors: (T, 7) distances of the points to their targets [m].
        clearance: (T,) least distance of two shapes [m], FAR where none are near.
        used_fallback: (T,) NO_FALLBACK, RELAXED, SHORTENED or HELD.
    """

    x: np.ndarray
    errors: np.ndarray
    clearance: np.ndarray
    used_fallback: np.ndarray


# -------- one frame


@kernel
def bound_step(
    problem: RetargetingProblem, n: SolverConstants, before: FrameBefore, factor: float, dt: float, bounds: StepBounds
) -> None:
    """Fill the bounds: range and speed always, acceleration (`factor` times) with room to brake where range allows."""
    x, low, high = before.x, bounds.lower, bounds.upper
    limits = JointLimits(problem.lower, problem.upper, problem.velocity)
    rules = StepRules(dt, dt, 0.0, factor * n.acceleration, factor * n.braking, 0.0)
    fill_velocity_bounds(x, limits, rules, before.v, low, high)
    for i in range(x.shape[0]):
        low[i] = max(x[i] + dt * low[i], problem.lower[i])
        high[i] = min(x[i] + dt * high[i], problem.upper[i])


@kernel
def normal_equations(
    problem: RetargetingProblem,
    n: SolverConstants,
    goal: FrameGoal,
    x: np.ndarray,
    w: Scratch,
    J: np.ndarray,
    H: np.ndarray,
    g: np.ndarray,
) -> None:
    """Lower triangle of H (D, D) and gradient g (D,) of the cost at x, after `point_jacobian`."""
    d = x.shape[0]
    for i in range(d):
        for j in range(i):
            H[i, j] = 0.0
        H[i, i] = n.damping**2 + n.posture**2 + n.smoothing**2
        g[i] = n.posture**2 * (x[i] - goal.rest[i]) + n.smoothing**2 * (x[i] - goal.expected[i])
    for k in range(w.points.shape[0]):
        weight = problem.weight[k]
        if weight == 0.0:
            continue
        a, b, c = 3 * k, 3 * k + 1, 3 * k + 2
        e0, e1 = goal.target[k, 0] - w.points[k, 0], goal.target[k, 1] - w.points[k, 1]
        e2 = goal.target[k, 2] - w.points[k, 2]
        for i in range(d):
            s0, s1, s2 = weight * J[a, i], weight * J[b, i], weight * J[c, i]
            if s0 == 0.0 and s1 == 0.0 and s2 == 0.0:  # half of them are: one arm does not move the other
                continue
            g[i] -= s0 * e0 + s1 * e1 + s2 * e2
            for j in range(i + 1):
                H[i, j] += s0 * J[a, j] + s1 * J[b, j] + s2 * J[c, j]


@kernel
def floor_rows(
    problem: RetargetingProblem, w: Scratch, J: np.ndarray, keep: float, count: int, G: np.ndarray, b: np.ndarray
) -> int:
    """Add rows: points of soles near the floor that nothing locks there keep a share of their height, or come up to it.

    Returns:
        the number of rows.
    """
    for k in problem.soles:
        if w.points[k, 2] < NEAR_FLOOR and problem.weight[k] < LOCKED:
            z = w.points[k, 2]
            G[count, :], b[count] = J[3 * k + 2], (keep - 1.0) * z if z > 0.0 else -z
            count += 1
    return count


@kernel
def sole_error(problem: RetargetingProblem, target: np.ndarray, w: Scratch) -> float:
    """Largest distance of a locked point of a sole to its place, or of one that sank below the floor [m].

    After `place_points`.
    """
    worst = 0.0
    for k in problem.soles:
        if w.points[k, 2] < -SUNK:
            worst = max(worst, -w.points[k, 2])
        if problem.weight[k] >= LOCKED:
            for i in range(3):
                worst = max(worst, abs(target[k, i] - w.points[k, i]))
    return worst


@kernel
def gauss_newton(
    problem: RetargetingProblem,
    n: SolverConstants,
    goal: FrameGoal,
    bounds: StepBounds,
    dt: float,
    trust: float,
    x: np.ndarray,
    w: Scratch,
) -> int:
    """Gauss-Newton steps from x toward the targets, all inside the bounds, in place.

    The step of a program without a solution is not taken: x stays where the last one that was solved has led.

    Args:
        dt: length of the frame [s].
        trust: longest step of a joint in one iteration [rad].
        x: (D,) start and result.

    Returns:
        SOLVED, CUT_SHORT, or UNSOLVED where x is the start.
    """
    d, low, high, J, G, b, H, guess = x.shape[0], bounds.lower, bounds.upper, w.J, w.G, w.b, w.curvature, w.guess
    g, step, lower, upper = w.vectors[0], w.vectors[1], w.vectors[2], w.vectors[3]
    keep, floor = np.exp(-n.barrier_gain * dt / n.iterations), np.exp(-FLOOR_GAIN * dt / n.iterations)
    for iteration in range(n.iterations):
        place_points(problem, x, w)
        point_jacobian(problem, w, J)
        normal_equations(problem, n, goal, x, w, J, H, g)
        for i in range(d):
            lower[i], upper[i] = max(low[i] - x[i], -trust), min(high[i] - x[i], trust)
        count = carried_rows(problem, x, n.activation, w)
        for k in range(count):
            limit = min(n.margin, problem.at_rest[w.near.pair[k]])
            distance = b[k]
            over = distance - limit
            b[k] = (keep - 1.0) * over if over > 0.0 else min(-over, n.pair_recovery_speed * dt / n.iterations)
            if n.yielding < 1.0 and limit > 0.0:
                stiff = n.yielding ** min(max(distance / limit, 0.0), 1.0)
                G[k] *= stiff
                b[k] *= stiff
        count = floor_rows(problem, w, J, floor, count, G, b)
        guess.works[:] = False
        used = solve_box_qp_from(BoxQp(H, g, lower, upper, G, b), count, n.slack_weight, step, w.price, guess)
        if used < 0 or not np.isfinite(step).all():
            return UNSOLVED if iteration == 0 else CUT_SHORT
        size = 0.0
        for i in range(d):
            x[i] = min(max(x[i] + step[i], low[i]), high[i])
            size = max(size, abs(step[i]))
        if size < CONVERGED:
            break
    return SOLVED


@kernel
def clearance(problem: RetargetingProblem, x: np.ndarray, w: Scratch) -> float:
    """Least distance of all pairs nearer than CLOSE, FAR where none is."""
    place_points(problem, x, w)
    return closest(w, near_pairs(problem, w, CLOSE), FAR)


@kernel
def measured_clearance(problem: RetargetingProblem, n: SolverConstants, x: np.ndarray, w: Scratch) -> float:
    """The same, measured so that the solver need not measure again where it continues from there."""
    if n.activation < CLOSE:
        return clearance(problem, x, w)
    place_points(problem, x, w)
    least = closest(w, measure(problem, x, n.activation, w), FAR)
    return least if least < CLOSE else FAR


@kernel
def solve_frame(
    problem: RetargetingProblem,
    n: SolverConstants,
    target: np.ndarray,
    before: FrameBefore,
    dt: float,
    x: np.ndarray,
    errors: np.ndarray,
    w: Scratch,
) -> tuple:
    """Posture of the next frame.

    Args:
        target: (K, 3) [m]; not finite: the posture is held.
        dt: [s].
        x: (D,) filled with the posture.
        errors: (7,), or more, filled with the points' distances to their targets [m].

    Returns:
        (clearance [m], fallback: NO_FALLBACK, RELAXED, SHORTENED or HELD).
    """
    if not np.isfinite(target).all():
        x[:] = before.x
        errors[:] = np.nan
        return before.clearance, HELD
    result = solve_goal(problem, n, FrameGoal(target, before.x + dt * before.v, problem.rest), before, dt, x, w)
    mean_error(w, target, errors)
    return result


class StepTables(NamedTuple):
    """All that a frame of live input takes.

    Attributes:
        goal: (K, 3) targets [m].
        x, v: (D,) posture and velocity, moved on.
        errors: (7,) filled.
        joints: (n,) posture of the whole robot, moved on.
        moving: (D,) which of these the problem moves.
        followers: joints that mimic others.
    """

    problem: RetargetingProblem
    constants: SolverConstants
    goal: F2
    x: F1
    v: F1
    errors: F1
    joints: F1
    moving: I1
    followers: Followers
    scratch: Scratch


@kernel
def step_frame(table: Table[StepTables], dt: float, clearance: float) -> tuple[float, int, float]:
    """`solve_frame` of packed StepTables, from a clearance [m].

    Returns:
        (clearance [m], fallback, share of the joints at their speed limit).
    """
    t = unpack(table, StepTables)
    x, fast = np.empty(t.x.shape[0]), 0
    distance, fallback = solve_frame(
        t.problem, t.constants, t.goal, FrameBefore(t.x, t.v, clearance), dt, x, t.errors, t.scratch
    )
    for i in range(x.shape[0]):
        way = x[i] - t.x[i]
        fast += abs(way) >= t.problem.velocity[i] * dt - 1e-9
        t.v[i], t.x[i], t.joints[t.moving[i]] = way / dt, x[i], x[i]
    set_followers(t.followers, t.joints, 0)
    return distance, fallback, fast / x.shape[0]


@kernel
def solve_goal(
    problem: RetargetingProblem,
    n: SolverConstants,
    goal: FrameGoal,
    before: FrameBefore,
    dt: float,
    x: np.ndarray,
    w: Scratch,
) -> tuple:
    """Posture of the next frame, for a goal of finite numbers.

    Args:
        dt: [s].
        x: (D,) filled with the posture; `w.points` are those of it.

    Returns:
        (clearance [m], fallback: NO_FALLBACK, RELAXED, SHORTENED or HELD).
    """
    bounds, target = StepBounds(w.vectors[4], w.vectors[5]), goal.target
    floor, distance = min(0.0, before.clearance), before.clearance
    fallback, factor = NO_FALLBACK, 1.0
    first, least, first_solved, solved, slipped = x, np.inf, UNSOLVED, UNSOLVED, np.inf
    for attempt in range(2):
        bound_step(problem, n, before, factor, dt, bounds)
        for i in range(x.shape[0]):
            x[i] = min(max(before.x[i], bounds.lower[i]), bounds.upper[i])
        solved = gauss_newton(problem, n, goal, bounds, dt, np.inf, x, w)
        distance = measured_clearance(problem, n, x, w)
        apart = solved != UNSOLVED and distance >= floor and np.isfinite(x).all()
        slipped = sole_error(problem, target, w) if apart else np.inf
        if apart and slipped <= STILL:
            break
        if attempt == 0 and apart:
            first, least, first_solved = x.copy(), slipped, solved
        factor = IN_NEED if apart else np.inf
        fallback = RELAXED
    worse = solved == UNSOLVED and first_solved != UNSOLVED
    if worse or (fallback == RELAXED and least < 2.0 * sole_error(problem, target, w)):  # feet gain next to nothing
        x[:] = first
        fallback, solved, distance = NO_FALLBACK, first_solved, measured_clearance(problem, n, x, w)
    if solved == UNSOLVED:
        fallback, x[:] = HELD, before.x
        distance = measured_clearance(problem, n, x, w)  # also the points, for the errors
    elif not (distance >= floor and np.isfinite(x).all()):
        fallback = HELD
        share = 0.5
        for _ in range(4):
            trial = before.x + share * (x - before.x)
            distance = measured_clearance(problem, n, trial, w)
            if distance >= floor:
                x[:] = trial
                fallback = SHORTENED
                break
            share *= 0.5
        if fallback == HELD:
            x[:] = before.x
            distance = measured_clearance(problem, n, x, w)  # also the points, for the errors
    if solved == CUT_SHORT and fallback != HELD:
        fallback = SHORTENED
    return distance, fallback


@kernel
def solve_frames(
    problem: RetargetingProblem,
    n: SolverConstants,
    targets: np.ndarray,
    dt: float,
    first: int,
    last: int,
    out: SolvedFrames,
    w: Scratch,
) -> None:
    """Frames first .. last - 1 of a clip, each from the ones before; `out` holds the solution up to first - 1.

    Args:
        targets: (T, K, 3) [m].
    """
    problem, n, out, w = uncounted(problem), uncounted(n), uncounted(out), uncounted(w)
    x = out.x
    v = np.zeros(x.shape[1])
    for t in range(first, last):
        if t > 1:
            v[:] = (x[t - 1] - x[t - 2]) / dt
        before = FrameBefore(x[t - 1], v, out.clearance[t - 1])
        result = solve_frame(problem, n, targets[t], before, dt, x[t], out.errors[t], w)
        out.clearance[t], out.used_fallback[t] = result


# -------- first frame

STARTS = 6
ITERATIONS = 80
TRUST = 0.25  # [rad] a step
A_LONG_TIME = 10.0  # [s] no speed limit counts before the first frame
WORST = 0.4  # [m] mean distance of the points above which a fit is no posture for these targets


def fit_first_frame(
    problem: RetargetingProblem,
    constants: SolverConstants,
    target: np.ndarray,
    w: Scratch,
    name: str = "first frame",
) -> np.ndarray:
    """Joint angles (D,) whose points come nearest to the targets, inside the limits and free of self-collision.

    The rest posture is the first start, the others are scattered about it; the nearest result counts.

    Args:
        problem: of the robot.
        constants: of the solver.
        target: (K, 3) [m].
        w: scratch memory.
        name: for the error message.

    Raises:
        ClipError: targets that are not numbers; no start came to a posture that is free of collision; or the best fit
            is far from the targets: the robot is not forced into a posture that is not one.
    """
    if not np.isfinite(target).all():
        raise ClipError(f"{name}: the first frame has targets that are not numbers")
    rng = np.random.default_rng(0)
    span = np.minimum(problem.upper - problem.lower, np.pi)
    span[: problem.base] = 0.0
    patient = constants._replace(iterations=ITERATIONS, smoothing=0.0)
    bounds = StepBounds(problem.lower, problem.upper)
    floor = min(0.0, clearance(problem, problem.rest, w))
    errors, best, least = np.empty(len(POINTS)), None, np.inf
    for k in range(STARTS):
        scatter = 0.0 if k == 0 else 0.4 * span * rng.uniform(-1, 1, len(span))
        x = np.clip(problem.rest + scatter, problem.lower, problem.upper)
        goal = FrameGoal(target, x.copy(), problem.rest)
        if gauss_newton(problem, patient, goal, bounds, A_LONG_TIME, TRUST, x, w) == UNSOLVED:
            continue
        if not np.isfinite(x).all() or clearance(problem, x, w) < floor:
            continue
        place_points(problem, x, w)
        cost = np.sum(problem.weight @ (w.points - target) ** 2) + constants.posture**2 * np.sum(
            (x - problem.rest) ** 2
        )
        if cost < least:
            least, best = cost, x
    if best is None:
        raise ClipError(f"{name}: no first posture is free of self-collision, from {STARTS} starts; check the targets")
    place_points(problem, best, w)
    reached = mean_error(w, target, errors)
    if not reached <= WORST:
        raise ClipError(
            f"{name}: the best first posture is {100 * reached:.0f} cm from its targets: refused; check that the clip "
            "stands upright, faces forward and is in metres"
        )
    return best
