"""The least distance of two convex sets by constrained optimisation (section 6.4.7): slow, general, for checking.

Each set is {point(x): g(x) <= 0}. A sequential quadratic programme minimises phi = |c|^2 / 2 with c the difference of
the points (eq. (6.50), (6.51)); what it returns is judged by the conditions of Karush, Kuhn and Tucker (eq. (6.53)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, nnls

ACTIVE = 1e-7  # a constraint nearer to zero than this is taken as active


@dataclass(frozen=True)
class ConvexSet:
    """A set of points with parameters x (k,).

    Attributes:
        start: (k,) parameters inside.
        point: x -> (3,) [m]. jacobian: x -> (3, k).
        constraint: x -> (c,), all <= 0 inside. constraint_jacobian: x -> (c, k).
    """

    start: np.ndarray
    point: Callable[[np.ndarray], np.ndarray]
    jacobian: Callable[[np.ndarray], np.ndarray]
    constraint: Callable[[np.ndarray], np.ndarray]
    constraint_jacobian: Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Minimum:
    """Where two sets are nearest.

    Attributes:
        distance: [m]. point_0, point_1: (3,).
        stationarity: how far the multiplier rule is from holding, as a length [m]: the part of c that no active
            constraint explains.
        violation: the largest constraint, positive when one is broken.
    """

    distance: float
    point_0: np.ndarray
    point_1: np.ndarray
    stationarity: float
    violation: float


def core(vertices: np.ndarray) -> ConvexSet:
    """A point, line or triangle, (1 to 3, 3), as a set: x are the weights of all vertices but the first (eq. (6.5))."""
    v = np.asarray(vertices, dtype=float)
    D, k = (v[1:] - v[0]).T, len(v) - 1
    G = np.vstack([-np.eye(k), np.ones((min(k, 1), k))])
    h = np.concatenate([np.zeros(k), np.ones(min(k, 1))])
    return ConvexSet(np.full(k, 1.0 / (k + 1)), lambda x: v[0] + D @ x, lambda x: D, lambda x: G @ x - h, lambda x: G)


def constrained_minimum(set_0: ConvexSet, set_1: ConvexSet, tolerance: float = 1e-16) -> Minimum:
    """The nearest points of two sets.

    Args:
        set_0, set_1: convex, so that the minimum found is the only one.
        tolerance: of the squared distance at which the programme stops [m^2].
    """
    k, m = len(set_0.start), len(set_1.start)

    def c(x: np.ndarray) -> np.ndarray:
        return set_1.point(x[k:]) - set_0.point(x[:k])

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.concatenate([-set_0.jacobian(x[:k]).T @ c(x), set_1.jacobian(x[k:]).T @ c(x)])

    def g(x: np.ndarray) -> np.ndarray:
        return np.concatenate([set_0.constraint(x[:k]), set_1.constraint(x[k:])])

    def g_jacobian(x: np.ndarray) -> np.ndarray:
        a, b = set_0.constraint_jacobian(x[:k]), set_1.constraint_jacobian(x[k:])
        return np.block([[a, np.zeros((len(a), m))], [np.zeros((len(b), k)), b]])

    x = np.concatenate([set_0.start, set_1.start])
    if k + m:
        rule = {"type": "ineq", "fun": lambda x: -g(x), "jac": lambda x: -g_jacobian(x)}
        options = {"maxiter": 1000, "ftol": tolerance}
        x = minimize(
            lambda x: 0.5 * c(x) @ c(x), x, jac=gradient, method="SLSQP", constraints=[rule], options=options
        ).x
    violation = float(np.max(g(x), initial=0.0))
    rest = 0.0
    if k + m:
        active = g(x) > -ACTIVE
        J = g_jacobian(x)[active].T
        residual = nnls(J, -gradient(x))[1] if active.any() else float(np.linalg.norm(gradient(x)))
        size = max(*(float(np.linalg.norm(s.jacobian(y))) for s, y in ((set_0, x[:k]), (set_1, x[k:]))), 1e-300)
        rest = residual / size
    return Minimum(float(np.linalg.norm(c(x))), set_0.point(x[:k]), set_1.point(x[k:]), float(rest), violation)
