"""Strict priorities: each level is served as well as those above it leave room for, and never disturbs them."""

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


class Hierarchy(VelocitySolver):
    """Levels 0, 1, 2, ... in the null space of all rows above, objectives in what is left (section 4.3.4).

    Z is an orthonormal basis of the augmented null space. A level minimises |J_i (u + Z y) - v_i| over y; then Z loses
    the directions it used. What a level cannot have it does not get, and no level above pays for it. Directions weaker
    than epsilon count as lost, which keeps joints slow where levels compete (algorithmic singularities).
    """

    def __init__(
        self,
        robot: Robot,
        objectives: Sequence[Objective] = (),
        settings: SolverSettings | None = None,
        moving: Moving | None = None,
        epsilon: float = 1e-4,
    ) -> None:
        """Make the solver.

        Args:
            robot, objectives, settings, moving: as of every solver.
            epsilon: singular values below it are dropped.

        Raises:
            ConfigError: epsilon is not positive.
        """
        super().__init__(robot, objectives, settings, moving)
        if not epsilon > 0:
            raise ConfigError(f"hierarchy: epsilon must be positive, got {epsilon:g}")
        self.epsilon = epsilon

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        half = np.sqrt(self.moving.mobility)
        J = rows.J * half
        u, Z = np.zeros(len(z)), np.eye(len(z))
        lost: list[int] = []
        if not np.isfinite(J).all():
            return Resolved(np.full(len(z), np.nan), u)
        for level in np.unique(rows.level):
            own = rows.level == level
            A = J[own] @ Z
            U, sigma, Vt = np.linalg.svd(A, full_matrices=True)
            rank = int(np.sum(sigma >= self.epsilon))
            y = (U[:, :rank].T @ (v[own] - J[own] @ u)) / sigma[:rank]
            u = u + Z @ (Vt[:rank].T @ y)
            Z = Z @ Vt[rank:].T
            if rank < A.shape[0]:
                lost.append(int(level))
        wished = z / half
        null = half * (Z @ (Z.T @ wished))
        note = f"no room for all of level {', '.join(map(str, lost))}" if lost else ""
        return Resolved(half * u, null, note=note)
