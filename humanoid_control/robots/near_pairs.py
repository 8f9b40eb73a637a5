"""A robot's near pairs of shapes and how they move with it: exact, in a few microseconds."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision import NearPairs
from humanoid_control.collision.shape_pairs import ShapePairs
from humanoid_control.robots.geometry import shape_arrays
from humanoid_control.robots.joint_poses import JointPoses
from humanoid_control.robots.robot import Robot


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
