"""The solid shapes of a mechanism as plain arrays, and where they are in the world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from humanoid_control.collision.jit import kernel

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


@kernel
def shape_poses(
    joint_R: np.ndarray,
    joint_p: np.ndarray,
    shape_joint: np.ndarray,
    R_local: np.ndarray,
    p_local: np.ndarray,
    out_R: np.ndarray,
    out_p: np.ndarray,
) -> None:
    """Poses of all shapes in the world.

    Args:
        joint_R, joint_p: (J, 3, 3), (J, 3) poses of the joints' frames in the world.
        shape_joint, R_local, p_local: `joint`, `R`, `p` of ShapeArrays.
        out_R, out_p: (S, 3, 3), (S, 3), filled.
    """
    for s in range(shape_joint.shape[0]):
        j = shape_joint[s]
        for r in range(3):
            a, b, c = joint_R[j, r, 0], joint_R[j, r, 1], joint_R[j, r, 2]
            for k in range(3):
                out_R[s, r, k] = a * R_local[s, 0, k] + b * R_local[s, 1, k] + c * R_local[s, 2, k]
            out_p[s, r] = joint_p[j, r] + a * p_local[s, 0] + b * p_local[s, 1] + c * p_local[s, 2]
