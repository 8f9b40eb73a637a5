"""The solid shapes of a mechanism as plain arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

SPHERE, CAPSULE, BOX, CYLINDER, ELLIPSOID, ELLIPTIC_CAPSULE = range(6)
KIND_NAMES = ("sphere", "capsule", "box", "cylinder", "ellipsoid", "elliptic_capsule")


@dataclass(frozen=True)
class ShapeArrays:
    """S shapes, each centred in a frame of its own that is fixed to a joint.

    All but the box are a segment along z, from -h to h, swept by an ellipsoid (Minkowski sum): a ball for sphere and
    capsule, a flat disc for the cylinder, an ellipsoid with half axes (b, a, c) for the elliptic capsule.

    Attributes:
        kinds: (S,) SPHERE ... ELLIPTIC_CAPSULE.
        sizes: (S, 4) half axes along x, y, z of the swept ellipsoid (or of the box) and half length h [m]:
            sphere (r, r, r, 0), capsule (r, r, r, h), box (x, y, z, 0), cylinder (r, r, 0, h),
            ellipsoid (x, y, z, 0), elliptic capsule (x, y, z, h).
        joint: (S,) the joint that carries the shape.
        R, p: (S, 3, 3), (S, 3) the shape's frame in its joint's frame; p is also the centre of the bounding sphere.
        radii: (S,) radius of the smallest sphere about p that holds the shape [m].
    """

    kinds: np.ndarray
    sizes: np.ndarray
    joint: np.ndarray
    R: np.ndarray
    p: np.ndarray
    radii: np.ndarray

    @classmethod
    def build(
        cls,
        kinds: Sequence[str],
        sizes: Sequence[Sequence[float]],
        joint: Sequence[int],
        R: Sequence[np.ndarray],
        p: Sequence[np.ndarray],
    ) -> ShapeArrays:
        """Arrays from one entry a shape; `kinds` are the names in KIND_NAMES, the rest as in the attributes."""
        kind = np.array([KIND_NAMES.index(k) for k in kinds], dtype=np.int64)
        size = np.array(sizes, dtype=float).reshape(-1, 4)
        return cls(
            kind,
            size,
            np.array(joint, dtype=np.int64),
            np.array(R, dtype=float).reshape(-1, 3, 3),
            np.array(p, dtype=float).reshape(-1, 3),
            np.array([bounding_radius(int(k), s) for k, s in zip(kind, size, strict=True)], dtype=float),
        )

    def __len__(self) -> int:
        return len(self.kinds)


def bounding_radius(kind: int, size: np.ndarray) -> float:
    """Distance from a shape's centre to its farthest point [m]."""
    if kind == BOX:
        return float(np.linalg.norm(size[:3]))
    wide, cap, h = float(max(size[0], size[1])), float(size[2]), float(size[3])
    if wide <= cap or (sine := h * cap / (wide**2 - cap**2)) >= 1:
        return h + cap
    # The farthest point of a flat cap lies between its rim and its pole.
    return float(np.sqrt(wide**2 * (1 - sine**2) + (h + cap * sine) ** 2))
