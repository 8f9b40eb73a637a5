"""A robot's near pairs of shapes and how they move with it: exact, in a few microseconds.

Also here:

* How far a joint can move one shape of a pair against the other: levers that hold in every posture.
* A robot's pairs of shapes watched from tick to tick, each as far as it matters.
* A robot's near pairs of swept-sphere volumes, asked as its pairs of exact shapes are.
* Collision shapes as what every viewer can draw: ellipsoids, cylinders and boxes, each with one pose and one size.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import NearPairs, half_axes, shape_arrays
from humanoid_control.collision.pair_distance import ShapePairs, approach_bounds, shape_poses, watch_pairs
from humanoid_control.collision.shapes import BOX, CYLINDER, ELLIPSOID, SPHERE
from humanoid_control.collision.ssv.model import PoseRows, SsvModel
from humanoid_control.jit import kernel
from humanoid_control.kinematics.tree import JointPoses, joint_axis
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.volumes import ssv_distance, ssv_of

# -------- A robot's near pairs of shapes and how they move with it: exact, in a few microseconds


class RobotPairs:
    """The collision pairs of a robot, measured by the exact kernels.

    Attributes:
        count: P, how many pairs.
        supports: two (P, nv) 1 where a column of the Jacobian moves the first, the second shape of a pair.
    """

    def __init__(self, robot: Robot) -> None:
        """Prepare for a robot's own shapes and pairs."""
        shapes = shape_arrays(robot.model, robot.shapes)
        self.pairs = ShapePairs(shapes, robot.pairs)
        self.poses = JointPoses(robot.model)
        self._names = [s.name for s in robot.shapes]
        support = robot.support[shapes.joint]
        self.count = len(robot.pairs)
        self.supports = support[robot.pairs[:, 0]], support[robot.pairs[:, 1]]

    def name(self, pair: int) -> tuple[str, str]:
        """The names of the two shapes of a pair."""
        i, j = self.pairs.pairs[pair]
        return self._names[i], self._names[j]

    def near(self, q: np.ndarray, threshold: float) -> NearPairs:
        """The pairs closer than a threshold [m] at the configuration q (nq,)."""
        self.poses.update(q)
        self.pairs.place(self.poses.R, self.poses.p)
        return self.pairs.near(threshold)

    def gradient(self, J: np.ndarray, near: NearPairs) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv): n . (velocity of witness 2 - velocity of witness 1).

        Args:
            J: (6, nv) every joint's columns at the world origin: `data.J` after `pin.computeJointJacobians` at the same
                configuration.
            near: result of `near`.
        """
        return witness_gradient(J, near, *self.supports)


def witness_gradient(J: np.ndarray, near: NearPairs, support_1: np.ndarray, support_2: np.ndarray) -> np.ndarray:
    """d distance / d v of near pairs, (k, nv); `supports` of the pairs (P, nv)."""
    n, a, b = near.normal, near.point_1, near.point_2
    lever_1, lever_2 = np.empty((len(near), 6)), np.empty((len(near), 6))
    for lever, p in ((lever_1, a), (lever_2, b)):
        lever[:, :3] = n
        lever[:, 3] = p[:, 1] * n[:, 2] - p[:, 2] * n[:, 1]
        lever[:, 4] = p[:, 2] * n[:, 0] - p[:, 0] * n[:, 2]
        lever[:, 5] = p[:, 0] * n[:, 1] - p[:, 1] * n[:, 0]
    return (lever_2 @ J) * support_2[near.pair] - (lever_1 @ J) * support_1[near.pair]


# -------- How far a joint can move one shape of a pair against the other: levers that hold in every posture

STROKE = 1.5  # a sliding joint may be this many times as far out as its range goes


def pair_levers(robot: Robot) -> np.ndarray:
    """Bounds (P, nv) on |d distance / d v|, one row a pair of `robot.pairs`, the same for all postures.

    A point of a shape is no farther from a joint's axis than the way along the links to it, each taken straight. So
    whatever the joints do, the distance of a pair changes by no more than the sum of lever times angle turned (for a
    joint that slides: of the way). Joints that carry both shapes, and a floating base, have the lever 0.

    Returns:
        [m/rad], or 1 for a sliding joint.
    """
    model, shapes = robot.model, shape_arrays(robot.model, robot.shapes)
    parents = model.parents.tolist()
    first = 2 if robot.base == "floating" else 1
    slides = [j >= first and joint_axis(model, j)[1] for j in range(model.njoints)]
    stroke = [
        STROKE * max(abs(robot.lower[j - first]), abs(robot.upper[j - first])) if slides[j] else 0.0
        for j in range(model.njoints)
    ]
    out = np.zeros((len(robot.shapes), robot.nv))
    for s, shape in enumerate(robot.shapes):
        j = int(shapes.joint[s])
        far = _farthest(shapes.p[s], shapes.R[s], half_axes(shape.shape)[0])
        while j >= first:
            out[s, model.joints[j].idx_v] = 1.0 if slides[j] else far
            far += float(np.linalg.norm(model.jointPlacements[j].translation)) + stroke[j]
            j = parents[j]
    a, b = robot.pairs[:, 0], robot.pairs[:, 1]
    return np.where((out[a] > 0) != (out[b] > 0), out[a] + out[b], 0.0)


def _farthest(p: np.ndarray, R: np.ndarray, size: tuple[float, float, float, float]) -> float:
    """Distance from a joint's origin to the farthest corner of a shape's box, at p with axes R and half axes there."""
    x, y, z = size[0], size[1], size[2] + size[3]
    corners = [p + R @ np.array([i * x, j * y, k * z]) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return max(float(np.linalg.norm(c)) for c in corners)


# -------- A robot's pairs of shapes watched from tick to tick, each as far as it matters


class PairWatch:
    """The collision pairs of a robot that moves little from one call to the next.

    A pair is measured only when it may have come within reach since it was measured last: what the joints have turned,
    times the levers, bounds how much nearer it is. Any jump is allowed; it only costs time.

    Attributes:
        shapes, pairs, poses: as of RobotPairs. lever: (P, nv) from `pair_levers`.
        joint_1, joint_2: (P,) pinocchio's joints that carry the shapes.
        R, p: (S, 3, 3), (S, 3) poses of the shapes at the last call.
        lower: (P,) no pair is closer than this [m]; exact for those within reach.
        pair, distance, normal, x1, x2: of the near pairs; the first `count` rows.
    """

    def __init__(self, robot: Robot) -> None:
        """Prepare for a robot's own shapes and pairs."""
        self.shapes = shape_arrays(robot.model, robot.shapes)
        self.pairs = np.ascontiguousarray(robot.pairs, dtype=np.int64).reshape(-1, 2)
        self.poses, self.lever = JointPoses(robot.model), pair_levers(robot)
        self.joint_1, self.joint_2 = (np.ascontiguousarray(self.shapes.joint[self.pairs[:, k]]) for k in (0, 1))
        count, rows = len(self.shapes), len(self.pairs)
        self.R, self.p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        self.pair, self.distance = np.empty(rows, dtype=np.int64), np.empty(rows)
        self.normal, self.x1, self.x2 = (np.empty((rows, 3)) for _ in range(3))
        self._names = [s.name for s in robot.shapes]
        self._joints, self._lever = slice(robot.iq, robot.nq), np.ascontiguousarray(self.lever[:, robot.iv :])
        self.lower, self._before, self.count = np.full(rows, -np.inf), np.zeros(robot.n), 0

    def name(self, pair: int) -> tuple[str, str]:
        """The names of the two shapes of a pair."""
        i, j = self.pairs[pair]
        return self._names[i], self._names[j]

    def look(self, q: np.ndarray, reach: np.ndarray) -> int:
        """Measure what may be closer than the reach (P,) [m] of each pair, at q (nq,): how many are."""
        joints = q[self._joints]
        approach_bounds(self._lever, joints - self._before, self.lower)
        self._before = joints.copy()
        self.poses.update(q)
        s = self.shapes
        shape_poses(self.poses.R, self.poses.p, s.joint, s.R, s.p, self.R, self.p)
        out = (self.pair, self.distance, self.normal, self.x1, self.x2)
        self.count = watch_pairs(s.kinds, s.sizes, self.R, self.p, s.radii, self.pairs, reach, self.lower, *out)
        return self.count

    def near(self) -> NearPairs:
        """The pairs within reach, as a copy."""
        rows = (self.pair, self.distance, self.x1, self.x2, self.normal)
        pair, distance, x1, x2, normal = (a[: self.count].copy() for a in rows)
        return NearPairs(pair, distance, x1, x2, normal)


# -------- A robot's near pairs of swept-sphere volumes, asked as its pairs of exact shapes are


class VolumePairs:
    """The pairs of segments that a robot's volumes watch.

    Attributes:
        model: segments and pairs.
        count: P, how many pairs.
        supports: two (P, nv) 1 where a column of the Jacobian moves the first, the second segment of a pair.
    """

    def __init__(self, robot: Robot, model: SsvModel | None = None) -> None:
        """Prepare.

        Args:
            robot: whose.
            model: of its volumes; default: `ssv_of`.

        Raises:
            UnknownNameError, RobotError: the robot's file of volumes cannot be read, or does not fit it.
        """
        self.model = ssv_of(robot) if model is None else model
        self.count = len(self.model.pairs)
        support = robot.support[self.model.joint[self.model.pair_rows[:, :2]]]
        self.supports = np.ascontiguousarray(support[:, 0]), np.ascontiguousarray(support[:, 1])
        self._pinocchio, self._data = robot.model, robot.model.createData()
        self._poses, self._distance = PoseRows(self._data), ssv_distance(robot, self.model)

    def name(self, pair: int) -> tuple[str, str]:
        """The names of the two segments of a pair."""
        return self.model.names(pair)

    def near(self, q: np.ndarray, threshold: float) -> NearPairs:
        """The pairs closer than a threshold [m] at the configuration q (nq,)."""
        pin.forwardKinematics(self._pinocchio, self._data, q)
        self._distance.place(self._poses.rows())
        near = self._distance.nearest(threshold)
        return NearPairs(near.pair, near.distance, near.point_0, near.point_1, near.normal)

    def gradient(self, J: np.ndarray, near: NearPairs) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv); J (6, nv) as for RobotPairs."""
        return witness_gradient(J, near, *self.supports)


def near_pairs_of(robot: Robot) -> RobotPairs | VolumePairs:
    """What a robot keeps clear of: its own volumes where it has a file of them, else its exact shapes."""
    return RobotPairs(robot) if robot.volumes is None else VolumePairs(robot)


# -------- Collision shapes as what every viewer can draw: ellipsoids, cylinders and boxes

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
