"""Our method: each frame a small constrained least-squares problem, solved to convergence.

minimise  sum_k |p_k(x) - target_k|^2 + posture^2 |x - rest|^2 + smoothing^2 |x - x_before - v_before dt|^2
subject to  joint range, joint speed, joint acceleration with room to brake (bounds),
            every near pair of shapes keeps its distance (rows).

It is linearised a few times a frame (Gauss-Newton with all constraints in each step). No frame is ever taken that
brings shapes into each other: where the linearisation was too rough the acceleration limit gives way first, then the
step is shortened, and at last the posture is held, which is always possible.


Also here:

* The first posture: a converged, constrained fit from several starts, so that the motion never begins collapsed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.jit import kernel
from humanoid_control.kinematics.limits import JointLimits, StepRules, fill_velocity_bounds
from humanoid_control.numerics.box_qp import BoxQp, solve_box_qp
from humanoid_control.retargeting.problem import (
    Problem,
    Scratch,
    closest,
    distance_rows,
    mean_error,
    near_pairs,
    place_points,
    point_jacobian,
)
from humanoid_control.retargeting.scaling import POINTS

# -------- Our method: each frame a small constrained least-squares problem, solved to convergence

FREE, RELAXED, SHORTENED, HELD = 0, 1, 2, 3
CONVERGED = 2e-3  # [rad] a step this short leaves an error of the order of its square
FAR = 1e9


class Numbers(NamedTuple):
    """Settings as plain numbers; meanings in `RetargetSettings`."""

    damping: float
    posture: float
    smoothing: float
    acceleration: float
    margin: float
    activation: float
    approach: float
    recovery: float
    price: float
    iterations: int


@kernel
def step_bounds(
    problem: Problem,
    before: np.ndarray,
    v: np.ndarray,
    acceleration: float,
    dt: float,
    low: np.ndarray,
    high: np.ndarray,
) -> None:
    """Bounds (D,) on the next posture: range and speed always, acceleration with room to brake where range allows."""
    limits = JointLimits(problem.lower, problem.upper, problem.velocity)
    fill_velocity_bounds(before, limits, StepRules(dt, dt, 0.0, acceleration), v, low, high)
    for i in range(before.shape[0]):
        low[i] = max(before[i] + dt * low[i], problem.lower[i])
        high[i] = min(before[i] + dt * high[i], problem.upper[i])


@kernel
def normal_equations(
    problem: Problem,
    n: Numbers,
    target: np.ndarray,
    expected: np.ndarray,
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
        g[i] = n.posture**2 * (x[i] - problem.rest[i]) + n.smoothing**2 * (x[i] - expected[i])
    for r in range(J.shape[0]):
        e = target[r // 3, r % 3] - w.points[r // 3, r % 3]
        for i in range(d):
            c = J[r, i]
            if c != 0.0:  # half of them are: one arm does not move the other
                g[i] -= c * e
                for j in range(i + 1):
                    H[i, j] += c * J[r, j]


@kernel
def descend(
    problem: Problem,
    n: Numbers,
    target: np.ndarray,
    expected: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    dt: float,
    trust: float,
    x: np.ndarray,
    w: Scratch,
) -> None:
    """Gauss-Newton steps from x toward the targets, all inside the bounds, in place.

    Args:
        target: (K, 3) [m]. expected: (D,) posture that costs no acceleration.
        low, high: (D,) bounds. dt: length of the frame [s].
        trust: longest step of a joint in one iteration [rad].
        x: (D,) start and result.
    """
    d, p = x.shape[0], problem.pairs.shape[0]
    J, G, b = np.empty((3 * problem.point.shape[0], d)), np.empty((p, d)), np.empty(p)
    H, g = np.empty((d, d)), np.empty(d)
    step, lower, upper, price = np.empty(d), np.empty(d), np.empty(d), np.empty(d + p)
    keep = np.exp(-n.approach * dt / n.iterations)
    for _ in range(n.iterations):
        place_points(problem, x, w)
        point_jacobian(problem, w, J)
        normal_equations(problem, n, target, expected, x, w, J, H, g)
        for i in range(d):
            lower[i], upper[i] = max(low[i] - x[i], -trust), min(high[i] - x[i], trust)
        count = near_pairs(problem, w, n.activation)
        distance_rows(problem, w, count, G)
        for k in range(count):
            over = w.near.distance[k] - n.margin
            b[k] = (keep - 1.0) * over if over > 0.0 else min(-over, n.recovery * dt / n.iterations)
        solve_box_qp(BoxQp(H, g, lower, upper, G, b), count, n.price, step, price)
        size = 0.0
        for i in range(d):
            x[i] = min(max(x[i] + step[i], low[i]), high[i])
            size = max(size, abs(step[i]))
        if size < CONVERGED:
            break


@kernel
def clearance(problem: Problem, x: np.ndarray, w: Scratch) -> float:
    """The least distance of all pairs nearer than 5 cm, FAR where none is."""
    place_points(problem, x, w)
    return closest(w, near_pairs(problem, w, 0.05), FAR)


@kernel
def solve_frame(
    problem: Problem,
    n: Numbers,
    target: np.ndarray,
    before: np.ndarray,
    v: np.ndarray,
    kept: float,
    dt: float,
    x: np.ndarray,
    errors: np.ndarray,
    w: Scratch,
) -> tuple:
    """The posture of the next frame.

    Args:
        target: (K, 3) [m]; not finite: the posture is held.
        before, v, kept: (D,) posture [rad], velocity [rad/s] and clearance [m] of the frame before.
        dt: [s].
        x: (D,) filled with the posture. errors: (7,) filled with the points' distances to their targets [m].

    Returns:
        (clearance [m], what had to give way: FREE, RELAXED, SHORTENED or HELD).
    """
    d = before.shape[0]
    low, high, expected = np.empty(d), np.empty(d), before + dt * v
    floor, distance = min(0.0, kept), kept
    if not np.isfinite(target).all():
        x[:] = before
        errors[:] = np.nan
        return kept, HELD
    gave = FREE
    for relaxed in range(2):
        step_bounds(problem, before, v, np.inf if relaxed else n.acceleration, dt, low, high)
        for i in range(d):
            x[i] = min(max(before[i], low[i]), high[i])
        descend(problem, n, target, expected, low, high, dt, np.inf, x, w)
        distance = clearance(problem, x, w)
        if distance >= floor and np.isfinite(x).all():
            break
        gave = RELAXED
    if not (distance >= floor and np.isfinite(x).all()):
        gave = HELD
        share = 0.5
        for _ in range(4):
            trial = before + share * (x - before)
            distance = clearance(problem, trial, w)
            if distance >= floor:
                x[:] = trial
                gave = SHORTENED
                break
            share *= 0.5
        if gave == HELD:
            x[:] = before
            distance = clearance(problem, x, w)  # also the points, for the errors
    mean_error(w, target, errors)
    return distance, gave


@kernel
def solve_frames(
    problem: Problem,
    n: Numbers,
    targets: np.ndarray,
    dt: float,
    first: int,
    last: int,
    x: np.ndarray,
    errors: np.ndarray,
    distance: np.ndarray,
    gave: np.ndarray,
    w: Scratch,
) -> None:
    """Frames first .. last - 1 of a clip, each from the ones before; x (T, D) holds the solution up to first - 1.

    Args:
        targets: (T, K, 3). errors: (T, 7), distance: (T,), gave: (T,), all filled.
    """
    v = np.zeros(x.shape[1])
    for t in range(first, last):
        if t > 1:
            v[:] = (x[t - 1] - x[t - 2]) / dt
        distance[t], gave[t] = solve_frame(problem, n, targets[t], x[t - 1], v, distance[t - 1], dt, x[t], errors[t], w)


# -------- The first posture: a converged, constrained fit from several starts

STARTS = 6
ITERATIONS = 80
TRUST = 0.25  # [rad] a step
A_LONG_TIME = 10.0  # [s] no speed limit counts before the first frame
WORST = 0.4  # [m] mean distance of the points above which a fit is no posture for these targets


def fit_first_frame(
    problem: Problem, numbers: Numbers, target: np.ndarray, w: Scratch, name: str = "first frame"
) -> np.ndarray:
    """Joint angles (D,) whose points come nearest to the targets, inside the limits and free of self-collision.

    The rest posture is the first start, the others are scattered about it; the nearest result counts.

    Args:
        problem: of the robot.
        numbers: of the solver.
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
    patient = numbers._replace(iterations=ITERATIONS, smoothing=0.0)
    floor = min(0.0, clearance(problem, problem.rest, w))
    errors, best, least = np.empty(len(POINTS)), None, np.inf
    for k in range(STARTS):
        scatter = 0.0 if k == 0 else 0.4 * span * rng.uniform(-1, 1, len(span))
        x = np.clip(problem.rest + scatter, problem.lower, problem.upper)
        descend(problem, patient, target, x.copy(), problem.lower, problem.upper, A_LONG_TIME, TRUST, x, w)
        if not np.isfinite(x).all() or clearance(problem, x, w) < floor:
            continue
        place_points(problem, x, w)
        cost = np.sum((w.points - target) ** 2) + numbers.posture**2 * np.sum((x - problem.rest) ** 2)
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
