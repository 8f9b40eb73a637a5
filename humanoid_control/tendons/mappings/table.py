"""Joint-muscle mapping as a table with nearest-pattern search (Nakanishi 2010), a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter

import numpy as np

from humanoid_control.errors import ConfigError
from humanoid_control.tendons.mappings.mapping import Array, FitReport, FitTarget, JointMuscleMapping


class TableMapping(JointMuscleMapping):
    """Lengths of the nearest table posture, moment arms by a plane through its neighbours.

    Not smooth; its size grows as N^D. f(0) is the nearest row, which need not be 0.

    Attributes:
        postures: (n, D) [rad].
        table: (n, M) lengths since the zero posture [m].
    """

    kind = "table"

    def __init__(
        self,
        postures: Array,
        table: Array,
        joint_names: Sequence[str],
        muscle_names: Sequence[str],
        limits: Array,
        model_hash: str = "",
        fit: FitReport | None = None,
    ) -> None:
        super().__init__(joint_names, muscle_names, limits, model_hash, fit)
        d, m = len(self.joint_names), len(self.muscle_names)
        if postures.shape != (len(table), d) or table.shape[1] != m or len(table) < 3 * d:
            raise ConfigError(
                f"table mapping: {postures.shape} postures with {table.shape} lengths; needs >= {3 * d} rows"
            )
        self.postures, self._scale = postures, 2.0 / np.ptp(self.limits, axis=1)
        from scipy.spatial import cKDTree  # slow to import and rarely needed

        self._angles = cKDTree(postures * self._scale)
        self.table = table
        self._patterns = cKDTree(self.table)
        self._spacing = float(np.median(self._angles.query(postures[:200] * self._scale, 2)[0][:, 1]))

    def evaluate_into(self, theta: Array, lengths: Array, jacobian: Array) -> None:
        d = len(self.joint_names)
        _, near = self._angles.query(theta * self._scale, 3 * d)
        lengths[:] = self.table[near[0]]
        steps = self.postures[near[1:]] - self.postures[near[0]]
        jacobian[:] = np.linalg.lstsq(steps, self.table[near[1:]] - lengths, rcond=None)[0].T

    def directional_into(self, theta: Array, v: Array, out: Array) -> None:
        size = float(np.linalg.norm(v * self._scale))
        if size == 0.0:
            out[:] = 0.0
            return
        # Central difference over two rows, as closer postures share their nearest row.
        step = v * (self._spacing / size)
        out[:] = (self.jacobian(theta + step) - self.jacobian(theta - step)) * (size / (2 * self._spacing))

    def search(self, lengths: Array) -> Array:
        """Return angles (D,) or (S, D) [rad] of the rows nearest to calibrated lengths (M,) or (S, M)."""
        return self.postures[self._patterns.query(lengths)[1]]


def build_table(target: FitTarget, postures: Array) -> TableMapping:
    """Return the table of the target's lengths at postures (n, D) [rad]."""
    begin = perf_counter()
    zero = np.zeros((1, postures.shape[1]))
    table = target.geometry(postures)[0] - target.geometry(zero)[0]
    names = (target.joint_names, target.muscle_names)
    mapping = TableMapping(postures, table, *names, target.limits, target.model_hash)
    off = float(np.abs(mapping.lengths(zero[0])).max())
    mapping.fit = FitReport(len(postures), 0.0, off, perf_counter() - begin)
    return mapping
