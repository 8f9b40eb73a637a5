"""A robot's pairs of shapes watched from tick to tick, each as far as it matters."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision import NearPairs
from humanoid_control.collision.shape_poses import shape_poses
from humanoid_control.collision.watch import approach_bounds, watch_pairs
from humanoid_control.robots.geometry import shape_arrays
from humanoid_control.robots.joint_poses import JointPoses
from humanoid_control.robots.pair_levers import pair_levers
from humanoid_control.robots.robot import Robot


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
