"""A robot's near pairs of swept-sphere volumes, asked as its pairs of exact shapes are."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from humanoid_control.collision import NearPairs
from humanoid_control.collision.pose_rows import PoseRows
from humanoid_control.collision.ssv_model import SsvModel
from humanoid_control.robots.near_pairs import RobotPairs, witness_gradient
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.ssv_model import ssv_distance, ssv_of


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
