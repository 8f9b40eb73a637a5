"""Constrained least squares of one frame, solved to convergence.

minimise  sum_k w_k |p_k(x) - target_k|^2 + posture^2 |x - rest|^2 + smoothing^2 |x - x_before - v_before dt|^2
subject to  joint range, joint speed, joint acceleration with room to brake (bounds),
            every near pair of shapes keeps its distance, soles stay above the floor (rows).

Gauss-Newton with all constraints, a few iterations per frame. Frames with colliding shapes are never accepted: if
needed, any joint may stop at once, then the step is shortened, and finally the posture is held. The first frame
is a converged fit from several starts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.jit import kernel
from humanoid_control.errors import ClipError
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, fill_velocity_bounds
from humanoid_control.numerics.box_program import BoxQp
from humanoid_control.numerics.box_qp import solve_box_qp_from
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
CONVERGED = 2e-3  # [rad] a step this short leaves a second-order error
CLOSE = 0.05  # [m] distance below which pairs count as clearance
FAR = 1e9  # [m] clearance without near pairs
NEAR_FLOOR = 0.05  # [m] height below which a sole corner has a floor row
LOCKED = 1e3  # weight from which a sole point is locked: acceleration limits give way to it
STILL = 2e-4  # [m] tolerance of a locked point
SUNK = 5e-4  # [m] depth below the floor at which a sole may use more acceleration
FLOOR_GAIN = 40.0  # [1/s] largest relative descent rate of a swing sole
IN_NEED = 4.0  # factor on the acceleration limit for a foot that would slip
SOLVED, CUT_SHORT, UNSOLVED = 0, 1, 2  # Gauss-Newton programs: all solved, all but the last, none


class SolverConstants(NamedTuple):
    """Solver settings as numbers, see `RetargetSettings`; `acceleration` and `braking` (D,) per joint.

    Attributes:
        yielding: factor on the row of a pair at its margin, 1 at contact; 1: off.
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
    """Final state of the previous frame: x (D,) [rad], v (D,) [rad/s], clearance [m]."""

    x: np.ndarray
    v: np.ndarray
    clearance: float


class FrameGoal(NamedTuple):
    """Goal of a frame.

    Attributes:
        expected: (D,) posture of zero acceleration cost.
    """

    target: np.ndarray
    expected: np.ndarray
    rest: np.ndarray


class StepBounds(NamedTuple):
    """Bounds (D,) of the next posture [rad]."""

    lower: np.ndarray
    upper: np.ndarray


# -------- one frame


@kernel(allocates=True)
def bound_step(
    problem: RetargetingProblem, n: SolverConstants, before: FrameBefore, factor: float, dt: float, bounds: StepBounds
) -> None:
    """Fill the bounds: range and speed always; acceleration (times `factor`) with room to brake where possible.

    A factor above 1 also lets every joint stop at once. An infinite one changes nothing else: speed gathered beyond the
    limit takes many frames to brake.
    """
    x, low, high = before.x, bounds.lower, bounds.upper
    limits = JointLimits(problem.lower, problem.upper, problem.velocity)
    stops = factor > 1.0
    if not np.isfinite(factor):
        factor = 1.0
    rules = StepRules(dt, dt, 0.0, factor * n.acceleration, factor * n.braking, 0.0)
    fill_velocity_bounds(x, limits, rules, before.v, low, high)
    # velocity bounds to position bounds; the range is the last word
    for i in range(x.shape[0]):
        if stops:
            low[i], high[i] = min(low[i], 0.0), max(high[i], 0.0)
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
    """Fill the lower triangle of H (D, D) and the gradient g (D,) of the cost at x, after `point_jacobian`."""
    d = x.shape[0]
    # posture, smoothing and damping terms are diagonal
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
            if s0 == 0.0 and s1 == 0.0 and s2 == 0.0:  # half of the entries: an arm does not move the other arm
                continue
            # g = -J' W e and H = J' W J
            g[i] -= s0 * e0 + s1 * e1 + s2 * e2
            for j in range(i + 1):
                H[i, j] += s0 * J[a, j] + s1 * J[b, j] + s2 * J[c, j]


@kernel(allocates=True)
def floor_rows(
    problem: RetargetingProblem, w: Scratch, J: np.ndarray, keep: float, count: int, G: np.ndarray, b: np.ndarray
) -> int:
    """Add rows G step >= b: free sole points near the floor keep a share of their height; return the number of rows."""
    for k in problem.soles:
        if w.points[k, 2] < NEAR_FLOOR and problem.weight[k] < LOCKED:
            z = w.points[k, 2]
            # above the floor: z + dz >= keep z; below it: dz >= -z
            G[count, :], b[count] = J[3 * k + 2], (keep - 1.0) * z if z > 0.0 else -z
            count += 1
    return count


@kernel
def sole_error(problem: RetargetingProblem, target: np.ndarray, w: Scratch) -> float:
    """Return the largest error of a locked sole point, or depth below the floor [m], after `place_points`."""
    worst = 0.0
    for k in problem.soles:
        if w.points[k, 2] < -SUNK:
            worst = max(worst, -w.points[k, 2])
        if problem.weight[k] >= LOCKED:
            for i in range(3):
                worst = max(worst, abs(target[k, i] - w.points[k, i]))
    return worst


@kernel(allocates=True)
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
    """Take Gauss-Newton steps from x toward the targets within the bounds, in place.

    If a program has no solution, x keeps the last solved step.

    Args:
        trust: longest joint step per iteration [rad].
        x: (D,) start and result.

    Returns:
        SOLVED, CUT_SHORT, or UNSOLVED if x is the start.
    """
    d, low, high, J, G, b, H, guess = x.shape[0], bounds.lower, bounds.upper, w.J, w.G, w.b, w.curvature, w.guess
    g, step, lower, upper = w.vectors[0], w.vectors[1], w.vectors[2], w.vectors[3]
    # decay over a frame, split over the iterations
    keep, floor = np.exp(-n.barrier_gain * dt / n.iterations), np.exp(-FLOOR_GAIN * dt / n.iterations)
    for iteration in range(n.iterations):
        place_points(problem, x, w)
        point_jacobian(problem, w, J)
        normal_equations(problem, n, goal, x, w, J, H, g)
        for i in range(d):
            lower[i], upper[i] = max(low[i] - x[i], -trust), min(high[i] - x[i], trust)
        count = carried_rows(problem, x, n.activation, w)
        # Velocity damper: the excess over the limit may fall to keep times itself; below the limit, the pair must
        # separate.
        for k in range(count):
            limit = min(n.margin, problem.at_rest[w.near.pair[k]])
            distance = b[k]
            over = distance - limit
            b[k] = (keep - 1.0) * over if over > 0.0 else min(-over, n.pair_recovery_speed * dt / n.iterations)
            # A pair at its margin is soft and stiffens toward contact, so jumping nearest points do not push locked
            # feet.
            if n.yielding < 1.0 and limit > 0.0:
                stiff = n.yielding ** min(max(distance / limit, 0.0), 1.0)
                G[k] *= stiff
                b[k] *= stiff
        count = floor_rows(problem, w, J, floor, count, G, b)
        # start without active rows: their number and order change between iterations
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
    """Return the least distance of pairs nearer than CLOSE, else FAR [m]."""
    place_points(problem, x, w)
    return closest(w, near_pairs(problem, w, CLOSE), FAR)


@kernel
def measured_clearance(problem: RetargetingProblem, n: SolverConstants, x: np.ndarray, w: Scratch) -> float:
    """Return `clearance`, measured so that the solver can reuse the near pairs."""
    if n.activation < CLOSE:
        return clearance(problem, x, w)
    place_points(problem, x, w)
    least = closest(w, measure(problem, x, n.activation, w), FAR)
    return least if least < CLOSE else FAR


@kernel(allocates=True)
def solve_goal(
    problem: RetargetingProblem,
    n: SolverConstants,
    goal: FrameGoal,
    before: FrameBefore,
    dt: float,
    x: np.ndarray,
    w: Scratch,
) -> tuple:
    """Solve the posture of the next frame for a finite goal.

    Args:
        x: (D,) result; `w.points` belong to it.

    Returns:
        Clearance [m]; fallback NO_FALLBACK, RELAXED, SHORTENED or HELD.
    """
    bounds, target = StepBounds(w.vectors[4], w.vectors[5]), goal.target
    floor, distance = min(0.0, before.clearance), before.clearance
    fallback, factor = NO_FALLBACK, 1.0
    first, least, first_solved, solved, slipped = x, np.inf, UNSOLVED, UNSOLVED, np.inf
    # First with the acceleration limit. Then any joint may stop at once; with IN_NEED times the limit where feet slip.
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
    # relaxing improves the feet by less than half: keep the first attempt
    if worse or (fallback == RELAXED and least < 2.0 * sole_error(problem, target, w)):
        x[:] = first
        fallback, solved, distance = NO_FALLBACK, first_solved, measured_clearance(problem, n, x, w)
    if solved == UNSOLVED:
        fallback, x[:] = HELD, before.x
        distance = measured_clearance(problem, n, x, w)  # also updates the points, for the errors
    elif not (distance >= floor and np.isfinite(x).all()):
        # Collision: halve the step up to four times; the previous posture is always feasible.
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
            distance = measured_clearance(problem, n, x, w)  # also updates the points, for the errors
    if solved == CUT_SHORT and fallback != HELD:
        fallback = SHORTENED
    return distance, fallback


# -------- first frame

STARTS = 6
ITERATIONS = 80
TRUST = 0.25  # [rad] per step
A_LONG_TIME = 10.0  # [s] no speed limit before the first frame
WORST = 0.4  # [m] mean point distance above which a fit is rejected


def fit_first_frame(
    problem: RetargetingProblem,
    constants: SolverConstants,
    target: np.ndarray,
    w: Scratch,
    name: str = "first frame",
) -> np.ndarray:
    """Return joint angles (D,) nearest to the targets, within limits and without self-collision.

    Args:
        target: (K, 3) [m].

    Raises:
        ClipError: if a target is not finite, no start yields a collision-free posture, or the best fit is too far from
            the targets.
    """
    if not np.isfinite(target).all():
        raise ClipError(f"{name}: the first frame has non-numeric targets")
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
            f"{name}: the best first posture is {100 * reached:.0f} cm from its targets: rejected; check that the clip "
            "stands upright, faces forward and is in metres"
        )
    return best
