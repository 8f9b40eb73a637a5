"""Distances between the segments of one mechanism: placed, asked, and differentiated."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.ssv_batch import COLUMNS
from humanoid_control.collision.ssv_boxes import BROAD_PHASES
from humanoid_control.collision.ssv_gradient import gradient_rows
from humanoid_control.collision.ssv_lanes import LANES, MEET, ROWS
from humanoid_control.collision.ssv_model import SsvModel, place_segments
from humanoid_control.collision.ssv_nearest import nearest_pairs
from humanoid_control.errors import ConfigError, UnknownNameError


@dataclass(frozen=True)
class NearestSsv:
    """One result for each pair of segments that is near.

    Attributes:
        pair: (k,) indices into the model's pairs, rising.
        table: (k, 11) d, normal, point_0, point_1, core.
        ssv: (k, 2) the nearest volume of either segment.
    """

    pair: np.ndarray
    table: np.ndarray
    ssv: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)

    @property
    def distance(self) -> np.ndarray:
        """(k,) signed distance [m]: d = d* - r0 - r1."""
        return self.table[:, 0]

    @property
    def normal(self) -> np.ndarray:
        """(k, 3) unit vector from the first segment to the second, world frame."""
        return self.table[:, 1:4]

    @property
    def point_0(self) -> np.ndarray:
        """(k, 3) nearest point on the first segment's surface, world frame [m]."""
        return self.table[:, 4:7]

    @property
    def point_1(self) -> np.ndarray:
        """(k, 3) on the second: point_0 + d normal."""
        return self.table[:, 7:10]

    @property
    def core(self) -> np.ndarray:
        """(k,) distance d* of the cores [m]."""
        return self.table[:, 10]

    @property
    def penetrating(self) -> np.ndarray:
        """(k,) whether the cores themselves touch: a safety layer should stop the robot."""
        return self.core <= MEET


class SsvDistance:
    """The calculator of one mechanism, with all memory that it takes.

    Each cycle: `place`, `nearest`, `gradient`; what they return is a copy.
    """

    def __init__(
        self, model: SsvModel, support: np.ndarray, activation: float = math.inf, broad_phase: str = "obb"
    ) -> None:
        """Prepare.

        Args:
            model: segments and pairs.
            support: (njoints, nv) of `support_of_joints`.
            activation: d_a [m], pairs farther apart than this are left out; infinite: none is.
            broad_phase: 'obb', 'aabb' or 'none': the boxes that leave out far pairs without measuring them.

        Raises:
            UnknownNameError: another broad phase.
            ConfigError: an activation distance that is not a number.
        """
        if broad_phase not in BROAD_PHASES:
            raise UnknownNameError("broad phase", broad_phase, BROAD_PHASES)
        if math.isnan(activation):
            raise ConfigError("the activation distance must be a number of metres, or inf")
        self.model, self.activation, self.broad_phase = model, activation, broad_phase
        self._support = np.ascontiguousarray(support, dtype=float)
        rows, n, segments = len(model.pairs), len(model.radii), len(model.segments)
        self.vertices, self.boxes, self.bounds = np.zeros((n, 3, 3)), np.zeros((segments, 15)), np.zeros((segments, 6))
        self._blocks, self._lanes = np.zeros((9, ROWS * LANES)), np.zeros((9, LANES + 1, 2), dtype=np.int64)
        self._scratch, self._nearest = np.zeros((rows, COLUMNS)), np.zeros(rows, dtype=np.int64)
        self._last_normal = np.zeros((rows, 3))
        self._pair, self._table = np.zeros(rows, dtype=np.int64), np.zeros((rows, COLUMNS))
        self._ssv = np.zeros((rows, 2), dtype=np.int64)
        self._columns = np.zeros((6, self._support.shape[1]))

    def place(self, poses: np.ndarray) -> None:
        """Move the segments to where the joints are; `poses` (J, 12) as in PoseRows."""
        m = self.model
        place_segments(poses, m.joint, m.start, m.vertices, m.radii, m.boxes, self.vertices, self.boxes, self.bounds)

    def nearest(self, activation: float | None = None) -> NearestSsv:
        """The nearest pair of volumes of every pair of segments nearer than the activation distance.

        Args:
            activation: instead of the calculator's own [m].
        """
        m, reach = self.model, self.activation if activation is None else activation
        n = nearest_pairs(
            m.pair_rows,
            m.volume_pairs,
            m.radii,
            self.vertices,
            self.boxes,
            self.bounds,
            # Nothing is beyond an infinite distance.
            BROAD_PHASES[self.broad_phase] if reach < math.inf else 0,
            reach,
            self._blocks,
            self._lanes,
            self._scratch,
            self._nearest,
            self._last_normal,
            self._pair,
            self._table,
            self._ssv,
        )
        return NearestSsv(self._pair[:n].copy(), self._table[:n].copy(), self._ssv[:n].copy())

    def gradient(self, J: np.ndarray, near: NearestSsv) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv).

        Args:
            J: (6, nv) `data.J` after `pin.computeJointJacobians` at the same configuration.
            near: result of `nearest`.
        """
        return pair_gradients(J, self._support, self.model, near, self._columns)

    def forget(self) -> None:
        """Drop the normals remembered from earlier calls, as after a jump to another posture."""
        self._last_normal[:] = 0.0


def pair_gradients(
    J: np.ndarray, support: np.ndarray, model: SsvModel, near: NearestSsv, columns: np.ndarray | None = None
) -> np.ndarray:
    """d distance / d v (k, nv) of near pairs from the Jacobian of all joints; world frame.

    Args:
        J: (6, nv) columns of all joints at the world's origin, linear then angular (pinocchio's `data.J`).
        support: (njoints, nv) 1 where a column moves a joint.
        model: whose pairs they are.
        near: the pairs.
        columns: (6, nv) scratch, made where absent.
    """
    nv = support.shape[1]
    out = np.empty((len(near), nv))
    scratch = np.empty((6, nv)) if columns is None else columns
    gradient_rows(np.ascontiguousarray(J.T), support, model.pair_rows, model.joint, near.pair, near.table, scratch, out)
    return out
