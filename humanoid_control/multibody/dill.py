"""Dill(n): Featherstone's branched test system of 2^n links, section 2.18."""

from __future__ import annotations

import numpy as np

from humanoid_control.multibody.body import ENVIRONMENT, Body, Inertia, revolute
from humanoid_control.multibody.model import Model

SKEW = 1.0 / 3.0


def dill(n: int, skew: float = SKEW) -> Model:
    """Dill(n): a link of size n that carries Dill(n - 1), ..., Dill(0), each a step further out and turned further.

    Args:
        n: from 0; 2^n links.
        skew: turn about x of the i-th branch, as a multiple of i [rad]; 1/3 as printed, pi/3 as read by others.
    """
    bodies: list[Body] = []
    _grow(bodies, n, ENVIRONMENT, np.eye(3), np.zeros(3), skew)
    return Model(bodies)


def _grow(bodies: list[Body], n: int, parent: str, A: np.ndarray, r: np.ndarray, skew: float) -> None:
    name, scale = f"link{len(bodies)}", float(max(n, 1))
    # The printed moments are those about the joint's origin: 403/1200000 is the cylinder's and the mass's together.
    moments = np.diag([1 / 200000, 403 / 1200000, 403 / 1200000]) * scale**5
    inertia = Inertia(0.1 * scale**3, np.array([0.05 * scale, 0.0, 0.0]), moments)
    bodies.append(Body(name, parent, revolute(name), inertia, A, r))
    for i in range(1, n + 1):
        c, s = np.cos(skew * i), np.sin(skew * i)
        turn = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]])
        _grow(bodies, i - 1, name, turn, np.array([0.1 * i, 0.0, 0.0]), skew)


def dill_state(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """The state at which run-times are measured: q = pi/6 and v = 1 for every joint."""
    return np.full(model.nq, np.pi / 6), np.ones(model.nv)
