"""Solvers by singular values: weak directions left out, or damped just enough for a speed limit (section 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.ik.objectives import Objective
from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.interface import SolverSettings
from humanoid_control.ik.solvers.moving import Moving
from humanoid_control.ik.solvers.rows import Rows
from humanoid_control.robots import Robot


class TruncatedSvd(VelocitySolver):
    """The pseudo-inverse without the directions whose singular value is below epsilon.

    The objectives may use the directions that were left out: nothing else does.
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
        epsilon: float = 0.005,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, moving: as of every solver.
            epsilon: singular values of J W^-1/2 below it are dropped.

        Raises:
            ConfigError: epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, moving)
        if not epsilon > 0:
            raise ConfigError(f"truncated SVD: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.moving.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        kept = sigma >= self.epsilon
        V, wished = Vt[kept].T, z / half
        task = half * (V @ ((U[:, kept].T @ v) / sigma[kept]))
        null = half * (wished - V @ (V.T @ wished))
        dropped = int(len(v) - kept.sum())
        note = f"{dropped} weak directions left out" if dropped else ""
        return Resolved(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, note=note)


class BoundedNorm(VelocitySolver):
    """Least damping for which the tasks' velocity keeps a bound on its norm: lambda from the singular values.

    |u|_W^2 = sum (sigma_i b_i / (sigma_i^2 + lambda^2))^2 falls with lambda; the root is found by Newton's method on
    1/|u|, as for a trust region (after Maciejewski and Klein 1988).
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
        most: float = 10.0,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, moving: as of every solver.
            most: bound on the weighted norm of the tasks' velocity [rad/s].

        Raises:
            ConfigError: the bound is not positive.
        """
        super().__init__(robot, objectives, settings, moving)
        if not most > 0:
            raise ConfigError(f"bounded norm: the bound must be positive, got {most:g}")
        self.most = most

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.moving.mobility)
        U, sigma, Vt = _svd(rows.J * half)
        b = U.T @ v
        damping = damping_for_norm(sigma, b, self.most)
        live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
        gain = np.zeros(len(sigma))
        gain[live] = sigma[live] / (sigma[live] ** 2 + damping**2)
        wished = z / half
        task = half * (Vt.T @ (gain * b))
        null = half * (wished - Vt.T @ (gain * sigma * (Vt @ wished)))
        return Resolved(task, null, float(np.prod(sigma)) if len(v) <= len(z) else 0.0, damping)


def damping_for_norm(sigma: np.ndarray, b: np.ndarray, most: float) -> float:
    """The least lambda >= 0 with sum (sigma b / (sigma^2 + lambda^2))^2 <= most^2.

    Args:
        sigma: (r,) singular values; those that are zero to rounding do not count.
        b: (r,) what is wanted in their directions.
        most: > 0.
    """
    live = sigma > 1e-9 * max(float(sigma.max(initial=0.0)), 1e-300)
    s, b = sigma[live], b[live]
    if not np.isfinite(b).all() or np.linalg.norm(b / s) <= most:
        return 0.0
    square = 0.0  # lambda^2; the iterates stay below the root and rise towards it
    for _ in range(100):
        x = s * b / (s * s + square)
        norm = float(np.linalg.norm(x))
        if norm <= most * (1 + 1e-12):
            break
        square += (norm - most) / most * norm**2 / float(np.sum(x * x / (s * s + square)))
    return float(np.sqrt(square))


def _svd(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if not np.isfinite(A).all():
        A = np.full(A.shape, 0.0)
    return np.linalg.svd(A, full_matrices=False)
