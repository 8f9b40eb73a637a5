"""Collision shapes as what every viewer can draw: ellipsoids, cylinders and boxes, each with one pose and one size."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.shape_arrays import BOX, CYLINDER, ELLIPSOID, SPHERE
from humanoid_control.collision.shape_poses import shape_poses
from humanoid_control.jit import kernel
from humanoid_control.robots.geometry import shape_arrays
from humanoid_control.robots.joint_poses import JointPoses
from humanoid_control.robots.robot import Robot

BALL_PART, CYLINDER_PART, BOX_PART = range(3)


class ShapeParts:
    """A robot's collision shapes in P parts; a capsule of any kind is a cylinder and two ellipsoids.

    Attributes:
        kind: (P,) BALL_PART, CYLINDER_PART or BOX_PART.
        size: (P, 3) full widths along x, y, z of the part; a cylinder's axis is z [m].
        shape: (P,) index into `Robot.shapes`.
        poses: (P, 7) x, y, z [m] and quaternion x, y, z, w of the parts in the world, as of the last `place`.
    """

    def __init__(self, robot: Robot) -> None:
        self._joints, self._shapes = JointPoses(robot.model), shape_arrays(robot.model, robot.shapes)
        rows: list[tuple[int, tuple[float, float, float], int, float]] = []
        for k, (kind, (x, y, z, h)) in enumerate(zip(self._shapes.kinds, self._shapes.sizes.tolist(), strict=True)):
            widths = (2 * x, 2 * y, 2 * z)
            if kind == BOX:
                rows.append((BOX_PART, widths, k, 0.0))
                continue
            if kind not in (SPHERE, ELLIPSOID):
                rows.append((CYLINDER_PART, (2 * x, 2 * y, 2 * h), k, 0.0))
            if kind in (SPHERE, ELLIPSOID):
                rows.append((BALL_PART, widths, k, 0.0))
            elif kind != CYLINDER:
                rows += [(BALL_PART, widths, k, h), (BALL_PART, widths, k, -h)]
        self.kind = np.array([r[0] for r in rows], dtype=np.int64)
        self.size = np.array([r[1] for r in rows]).reshape(-1, 3)
        self.shape = np.array([r[2] for r in rows], dtype=np.int64)
        self._along = np.array([r[3] for r in rows])
        self._R, self._p = np.tile(np.eye(3), (len(self._shapes), 1, 1)), np.zeros((len(self._shapes), 3))
        self.poses = np.zeros((len(rows), 7))
        self.place(robot.q("neutral"))

    def place(self, q: np.ndarray) -> np.ndarray:
        """Move the parts to where they are at the configuration q (nq,); `poses`."""
        j, s = self._joints, self._shapes
        j.update(q)
        shape_poses(j.R, j.p, s.joint, s.R, s.p, self._R, self._p)
        part_poses(self._R, self._p, self.shape, self._along, self.poses)
        return self.poses


@kernel
def part_poses(R: np.ndarray, p: np.ndarray, shape: np.ndarray, along: np.ndarray, out: np.ndarray) -> None:
    """Poses (P, 7) of parts that lie `along` (P,) the z axes of the shapes with poses R (S, 3, 3), p (S, 3).

    The quaternion is taken from its largest component, which is at least 1/2, so that no precision is lost.
    """
    for k in range(shape.shape[0]):
        A, s = R[shape[k]], shape[k]
        for i in range(3):
            out[k, i] = p[s, i] + along[k] * A[i, 2]
        t = (
            1.0 + A[0, 0] - A[1, 1] - A[2, 2],
            1.0 - A[0, 0] + A[1, 1] - A[2, 2],
            1.0 - A[0, 0] - A[1, 1] + A[2, 2],
            1.0 + A[0, 0] + A[1, 1] + A[2, 2],
        )
        m = 0
        for i in range(1, 4):
            if t[i] > t[m]:
                m = i
        r = np.sqrt(t[m])
        f = 0.5 / r
        a, b, c = A[2, 1] - A[1, 2], A[0, 2] - A[2, 0], A[1, 0] - A[0, 1]
        d, e, g = A[1, 0] + A[0, 1], A[0, 2] + A[2, 0], A[2, 1] + A[1, 2]
        if m == 0:
            x, y, z, w = 0.5 * r, f * d, f * e, f * a
        elif m == 1:
            x, y, z, w = f * d, 0.5 * r, f * g, f * b
        elif m == 2:
            x, y, z, w = f * e, f * g, 0.5 * r, f * c
        else:
            x, y, z, w = f * a, f * b, f * c, 0.5 * r
        out[k, 3], out[k, 4], out[k, 5], out[k, 6] = x, y, z, w
