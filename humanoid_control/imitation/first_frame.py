"""The first posture: a bounded least-squares fit from several starts, so that the motion never begins collapsed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import least_squares

from humanoid_control.errors import ClipError

STARTS = 6
REGULARISATION = 0.02  # [m/rad] pulls joints that no point needs to the rest posture
WORST = 0.4  # [m] mean distance of the points above which a fit is no posture for these targets


def fit_first_frame(
    points_of: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    targets: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    rest: np.ndarray,
    name: str = "first frame",
) -> np.ndarray:
    """Joint angles (n,) whose points come nearest to the targets, inside the limits.

    Args:
        points_of: joint angles -> (points (P, 3), Jacobian (3 P, n)).
        targets: (P, 3) [m].
        lower, upper: (n,) limits [rad].
        rest: (n,) posture to prefer where the points do not decide, and the first start.
        name: for the error message.

    Raises:
        ClipError: no start converged, or the best fit is far from the targets: the robot is not forced into a posture
            that is not one.
    """
    rng = np.random.default_rng(0)
    span = np.minimum(upper - lower, np.pi)

    def residual(q: np.ndarray) -> np.ndarray:
        return np.concatenate([(points_of(q)[0] - targets).ravel(), REGULARISATION * (q - rest)])

    def jacobian(q: np.ndarray) -> np.ndarray:
        return np.vstack([points_of(q)[1], REGULARISATION * np.eye(len(q))])

    best = None
    for k in range(STARTS):
        start = rest if k == 0 else rest + 0.4 * span * rng.uniform(-1, 1, len(rest))
        inside = np.clip(start, lower + 1e-6, upper - 1e-6)
        fit = least_squares(residual, inside, jacobian, bounds=(lower, upper), max_nfev=200)
        if fit.success and (best is None or fit.cost < best.cost):
            best = fit
    if best is None:
        raise ClipError(f"{name}: the first posture did not converge from {STARTS} starts; check the targets")
    reached = np.linalg.norm(points_of(best.x)[0] - targets, axis=1).mean()
    if not reached <= WORST:
        raise ClipError(
            f"{name}: the best first posture is {100 * reached:.0f} cm from its targets: refused; check that the clip "
            "stands upright, faces forward and is in metres"
        )
    return np.clip(best.x, lower, upper)
