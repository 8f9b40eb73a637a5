"""Signed distances between the shapes of one robot, with the gradient of each, by pinocchio and coal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

GJK_TOLERANCE = 1e-9  # coal's default of 1e-6 leaves witness points, hence gradients, off by centimetres


@dataclass(frozen=True)
class NearPairs:
    """The pairs of shapes closer than a threshold.

    Attributes:
        pair: (k,) indices into the pairs of the geometry model.
        distance: (k,) signed distance [m], negative inside.
        point_1, point_2: (k, 3) witness points on the two shapes, world frame [m].
        normal: (k, 3) unit vector along which shape 2 moves away from shape 1, world frame.
    """

    pair: np.ndarray
    distance: np.ndarray
    point_1: np.ndarray
    point_2: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.pair)


class SelfDistance:
    """Distances of the collision pairs of a geometry model.

    All pairs are measured in one call: 132 pairs take coal 60 us, while choosing the near ones beforehand in Python
    takes longer than that.
    """

    def __init__(self, model: pin.Model, geometry: pin.GeometryModel) -> None:
        """Prepare.

        Args:
            model: the robot.
            geometry: its shapes and pairs.
        """
        self.model, self.geometry = model, geometry
        self.gdata = geometry.createData()
        for request in self.gdata.distanceRequests:
            request.gjk_tolerance = request.epa_tolerance = GJK_TOLERANCE
            request.gjk_max_iterations = request.epa_max_iterations = 500
        pairs = np.array([[p.first, p.second] for p in geometry.collisionPairs], dtype=int).reshape(-1, 2)
        self.first, self.second = pairs[:, 0], pairs[:, 1]
        # References into the results stay valid; fetching them anew each time would cost more than the distances.
        self._results = [self.gdata.distanceResults[k] for k in range(len(pairs))]
        support = support_of_joints(model)
        joint = np.array([o.parentJoint for o in geometry.geometryObjects], dtype=int)
        self._support_1 = support[joint[self.first]] if len(pairs) else np.zeros((0, model.nv))
        self._support_2 = support[joint[self.second]] if len(pairs) else np.zeros((0, model.nv))

    def name(self, pair: int) -> tuple[str, str]:
        """The names of the two shapes of a pair."""
        objects = self.geometry.geometryObjects
        return objects[int(self.first[pair])].name, objects[int(self.second[pair])].name

    def near(self, data: pin.Data, threshold: float) -> NearPairs:
        """The pairs closer than a threshold, at the configuration of the last forward kinematics in `data`.

        Args:
            data: after `pin.forwardKinematics` or `pin.computeJointJacobians`.
            threshold: [m].
        """
        d = self.all_distances(data)
        pair = np.flatnonzero(d < threshold)
        if not len(pair):
            none = np.zeros((0, 3))
            return NearPairs(pair, d[pair], none, none, none)
        results = [self._results[k] for k in pair]
        p1 = np.array([r.getNearestPoint1() for r in results])
        p2 = np.array([r.getNearestPoint2() for r in results])
        return NearPairs(pair, d[pair], p1, p2, np.array([r.normal for r in results]))

    def all_distances(self, data: pin.Data) -> np.ndarray:
        """Signed distance (P,) of every pair [m], at the last forward kinematics in `data`."""
        pin.updateGeometryPlacements(self.model, data, self.geometry, self.gdata)
        pin.computeDistances(self.geometry, self.gdata)
        return np.array([r.min_distance for r in self._results])

    def gradient(self, data: pin.Data, near: NearPairs) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv): n . (velocity of witness 2 - velocity of witness 1).

        Args:
            data: after `pin.computeJointJacobians`, so that `data.J` holds every joint's columns at the world origin.
            near: result of `near` at the same configuration.
        """
        n = near.normal
        wrench_1 = np.hstack([n, _cross(near.point_1, n)])
        wrench_2 = np.hstack([n, _cross(near.point_2, n)])
        J = data.J
        return (wrench_2 @ J) * self._support_2[near.pair] - (wrench_1 @ J) * self._support_1[near.pair]


def support_of_joints(model: pin.Model) -> np.ndarray:
    """A 0/1 matrix (njoints, nv): which columns of the Jacobian move which joint."""
    support = np.zeros((model.njoints, model.nv))
    for j in range(1, model.njoints):
        for s in model.supports[j].tolist():
            if s > 0:
                joint = model.joints[s]
                support[j, joint.idx_v : joint.idx_v + joint.nv] = 1.0
    return support


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row-wise cross product (k, 3); np.cross spends ten times longer on finding out which axis is meant."""
    out = np.empty_like(a)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out
