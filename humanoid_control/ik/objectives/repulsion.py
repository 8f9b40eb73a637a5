"""The repulsive law between two shapes: linear near contact, quadratic towards the activation distance (eq. 5.15)."""

from __future__ import annotations

import numpy as np


def repulsion(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """g(d) >= 0: how strongly a pair at the distance d is pushed apart; -g is dH/dd (erratum E-1).

    Args:
        d: (k,) signed distances [m].
        activation: d_a > 0 from which on there is no push [m], one or (k,).
        contact: s_0 = g(0), one or (k,).
        blend: t, the share of d_a below which the law is a line: 0 makes it quadratic (5.12), 1 linear (5.11); the
            source uses 0.4 to 0.6. Value and slope are continuous for t < 1.
    """
    line = contact - 2 * contact / (activation * (1 + blend)) * d
    if blend >= 1:
        return np.where(d < activation, line, 0.0)
    curve = contact * (activation - d) ** 2 / (activation**2 * (1 - blend**2))
    return np.where(d < blend * activation, line, np.where(d < activation, curve, 0.0))


def repulsion_potential(
    d: np.ndarray, activation: float | np.ndarray, contact: float | np.ndarray, blend: float = 0.5
) -> np.ndarray:
    """H_C(d) with dH_C/dd = -g(d) and H_C = 0 from the activation distance on; arguments as of `repulsion`."""
    a, s, t = activation, contact, blend
    start = s * a * (1 - t) ** 2 / (3 * (1 + t))
    line = start + s * (t * a - d) - s * (t**2 * a**2 - d**2) / (a * (1 + t))
    if t >= 1:
        return np.where(d < a, line, 0.0)
    curve = s * (a - d) ** 3 / (3 * a**2 * (1 - t**2))
    return np.where(d < t * a, line, np.where(d < a, curve, 0.0))


def stable_contact_gradient(
    null_gain: float, dt: float, activation: float | np.ndarray, blend: float, mobility: float | np.ndarray
) -> float | np.ndarray:
    """The largest s_0 for which an Euler step of one active pair does not overshoot; twice it is the edge of stability.

    From alpha_N dt 2 s_0 / (d_a (1 + t)) m < 1, the steepest slope of the law times what a push moves.

    Args:
        null_gain: alpha_N. dt: [s]. activation: d_a [m]. blend: t.
        mobility: m = grad d N W^-1 grad d^T; with N left out it is at least that, hence on the safe side.
    """
    return activation * (1 + blend) / (2 * null_gain * dt * mobility)
