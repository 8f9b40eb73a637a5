"""The first posture: a converged, constrained fit from several starts, so that the motion never begins collapsed."""

from __future__ import annotations

import numpy as np

from humanoid_control.errors import ClipError
from humanoid_control.imitation.arrays import Problem, Scratch
from humanoid_control.imitation.linearise import mean_error, place_points
from humanoid_control.imitation.scaling import POINTS
from humanoid_control.imitation.solve_frame import Numbers, clearance, descend

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
