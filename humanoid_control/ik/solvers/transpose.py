"""The transposed Jacobian in place of its inverse: cheap, never singular, slow (section 4.3.2)."""

from __future__ import annotations

import numpy as np

from humanoid_control.ik.solvers.base import Resolved, VelocitySolver
from humanoid_control.ik.solvers.rows import Rows


class JacobianTranspose(VelocitySolver):
    """u = W^-1 J^T K e (4.17), as if the wanted task velocities were forces that pull at the joints.

    The largest eigenvalue of J W^-1 J^T multiplies the gain of the loop; where that would make it unstable in steps of
    dt, the velocity is divided by it, and the report says so. There is no null space: objectives are not looked at.
    """

    def resolve(self, rows: Rows, v: np.ndarray, z: np.ndarray) -> Resolved:
        J = rows.J
        if not len(v) or not np.isfinite(J).all():
            return Resolved(np.full(len(z), 0.0 if not len(v) else np.nan), np.zeros(len(z)))
        largest = float(np.linalg.eigvalsh((J * self.moving.mobility) @ J.T)[-1])
        task = self.moving.mobility * (J.T @ v) / max(1.0, largest)
        note = f"slowed {largest:.2g} times to stay stable" if largest > 1 else ""
        return Resolved(task, np.zeros(len(z)), note=note)
