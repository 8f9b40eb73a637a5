"""The repulsive law between two shapes: linear near contact, quadratic towards the activation distance (eq. 5.15)."""

from __future__ import annotations

import numpy as np

from humanoid_control.jit import kernel


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
    d, a, s = np.broadcast_arrays(np.asarray(d, dtype=float), activation, contact)
    return np.array([push(*row, blend) for row in zip(d.ravel(), a.ravel(), s.ravel(), strict=True)]).reshape(d.shape)


@kernel
def push(d: float, activation: float, contact: float, blend: float) -> float:
    """As `repulsion`, of one pair."""
    if d >= activation:
        return 0.0
    if d < blend * activation or blend >= 1.0:
        return contact - 2.0 * contact / (activation * (1.0 + blend)) * d
    return contact * (activation - d) ** 2 / (activation * activation * (1.0 - blend * blend))


@kernel
def push_gradient(
    J6: np.ndarray,
    support_1: np.ndarray,
    support_2: np.ndarray,
    pair: np.ndarray,
    distance: np.ndarray,
    normal: np.ndarray,
    point_1: np.ndarray,
    point_2: np.ndarray,
    activation: np.ndarray,
    contact: np.ndarray,
    blend: float,
    out: np.ndarray,
) -> None:
    """The gradient -sum g(d) dd/dv of all near pairs, (5.9) with the sign of E-1.

    Args:
        J6: (6, nv) twists of the velocities at the world origin.
        support_1, support_2: (P, nv) which of them move the shapes of each pair.
        pair, distance, normal, point_1, point_2: (k,) and (k, 3), as of NearPairs.
        activation, contact: (P,). blend: as of `repulsion`.
        out: (nv,) filled.
    """
    out[:] = 0.0
    for k in range(pair.shape[0]):
        i = pair[k]
        g = push(distance[k], activation[i], contact[i], blend)
        if g == 0.0:
            continue
        n0, n1, n2 = normal[k, 0], normal[k, 1], normal[k, 2]
        a0, a1, a2 = point_1[k, 0], point_1[k, 1], point_1[k, 2]
        b0, b1, b2 = point_2[k, 0], point_2[k, 1], point_2[k, 2]
        for c in range(out.shape[0]):
            s1, s2 = support_1[i, c], support_2[i, c]
            if s1 == s2:  # moves both as one, or neither: the distance stays
                continue
            along = n0 * J6[0, c] + n1 * J6[1, c] + n2 * J6[2, c]
            if s2 != 0.0:
                x, y, z = b1 * n2 - b2 * n1, b2 * n0 - b0 * n2, b0 * n1 - b1 * n0
                out[c] -= g * (along + x * J6[3, c] + y * J6[4, c] + z * J6[5, c])
            if s1 != 0.0:
                x, y, z = a1 * n2 - a2 * n1, a2 * n0 - a0 * n2, a0 * n1 - a1 * n0
                out[c] += g * (along + x * J6[3, c] + y * J6[4, c] + z * J6[5, c])


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
