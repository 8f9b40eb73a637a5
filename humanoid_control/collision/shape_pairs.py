"""The kernels with their arrays: shapes placed once, then asked for near pairs, all distances, or the source's test."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.dube import dube_pairs
from humanoid_control.collision.pair_distances import pair_distances
from humanoid_control.collision.self_distance import NearPairs
from humanoid_control.collision.shape_arrays import ShapeArrays
from humanoid_control.collision.shape_poses import shape_poses


@dataclass(frozen=True)
class DubeResult:
    """What the source's test says about P pairs.

    Attributes:
        collides: (P,).
        distance: (P,) gap [m], negative when they overlap, NaN for a pair the source has no test for.
        section: (P,) of SECTION_NAMES in `dube`, -1 for such a pair.
    """

    collides: np.ndarray
    distance: np.ndarray
    section: np.ndarray


class ShapePairs:
    """Pairs of shapes of one mechanism, with all memory that measuring them takes.

    Call `place` with the poses of the joints, then the other methods; what they return is a copy.
    """

    def __init__(self, shapes: ShapeArrays, pairs: np.ndarray) -> None:
        """Prepare.

        Args:
            shapes: from `robots.geometry.shape_arrays`.
            pairs: (P, 2) indices of shapes, such as `Robot.pairs`.
        """
        self.shapes, self.pairs = shapes, np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)
        count, rows = len(shapes), len(self.pairs)
        self.R, self.p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        self._pair, self._distance = np.empty(rows, dtype=np.int64), np.empty(rows)
        self._normal, self._x1, self._x2 = (np.empty((rows, 3)) for _ in range(3))

    def place(self, joint_R: np.ndarray, joint_p: np.ndarray) -> None:
        """Move the shapes to where the joints are.

        Args:
            joint_R, joint_p: (J, 3, 3), (J, 3) poses of the joints in the world, C-contiguous floats.
        """
        s = self.shapes
        shape_poses(joint_R, joint_p, s.joint, s.R, s.p, self.R, self.p)

    def near(self, threshold: float) -> NearPairs:
        """The pairs closer than a threshold [m], exact."""
        n = self._measure(threshold)
        rows = (self._pair, self._distance, self._x1, self._x2, self._normal)
        pair, distance, x1, x2, normal = (a[:n].copy() for a in rows)
        return NearPairs(pair, distance, x1, x2, normal)

    def all_distances(self) -> np.ndarray:
        """Signed distance (P,) of every pair [m], exact."""
        self._measure(np.inf)
        return self._distance.copy()

    def dube(self) -> DubeResult:
        """Every pair by the source's method (Dube 2012, section 4.3.3)."""
        n = len(self.pairs)
        out = DubeResult(np.empty(n, dtype=np.bool_), np.empty(n), np.empty(n, dtype=np.int64))
        s = self.shapes
        dube_pairs(s.kinds, s.sizes, self.R, self.p, self.pairs, out.collides, out.distance, out.section)
        return out

    def _measure(self, threshold: float) -> int:
        s, rows = self.shapes, (self._pair, self._distance, self._normal, self._x1, self._x2)
        return pair_distances(s.kinds, s.sizes, self.R, self.p, self.p, s.radii, self.pairs, threshold, *rows)
