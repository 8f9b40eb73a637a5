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

    A ball around each shape is tested first, for all pairs at once; only pairs whose balls come nearer than the
    threshold go to the exact distance.
    """

    def __init__(self, model: pin.Model, geometry: pin.GeometryModel, radii: np.ndarray, centers: np.ndarray) -> None:
        """Prepare the arrays.

        Args:
            model: the robot.
            geometry: its shapes and pairs.
            radii: (S,) radius of the ball around each shape [m].
            centers: (S, 3) its centre in the frame of the joint that carries the shape [m].
        """
        self.model, self.geometry = model, geometry
        self.gdata = geometry.createData()
        for request in self.gdata.distanceRequests:
            request.gjk_tolerance = request.epa_tolerance = GJK_TOLERANCE
            request.gjk_max_iterations = request.epa_max_iterations = 500
        self._radii, self._centers = radii, centers
        self._joint = np.array([o.parentJoint for o in geometry.geometryObjects], dtype=int)
        pairs = np.array([[p.first, p.second] for p in geometry.collisionPairs], dtype=int).reshape(-1, 2)
        self.first, self.second = pairs[:, 0], pairs[:, 1]
        self._reach = radii[self.first] + radii[self.second] if len(pairs) else np.zeros(0)
        self._used_joints = sorted(set(self._joint.tolist()))
        self._joint_row = np.searchsorted(self._used_joints, self._joint)
        # support[j, c] = 1 where column c of the Jacobian moves joint j.
        self._support = np.zeros((model.njoints, model.nv))
        for j in range(1, model.njoints):
            for s in model.supports[j].tolist():
                if s > 0:
                    joint = model.joints[s]
                    self._support[j, joint.idx_v : joint.idx_v + joint.nv] = 1.0

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
        candidates = self._candidates(data, threshold)
        if len(candidates) == 0:
            return NearPairs(candidates, np.zeros(0), *(np.zeros((0, 3)) for _ in range(3)))
        pin.updateGeometryPlacements(self.model, data, self.geometry, self.gdata)
        rows = []
        for k in candidates:
            result = pin.computeDistance(self.geometry, self.gdata, int(k))
            d = result.min_distance
            if d < threshold:
                rows.append((k, d, result.getNearestPoint1(), result.getNearestPoint2(), result.normal))
        if not rows:
            return NearPairs(candidates[:0], np.zeros(0), *(np.zeros((0, 3)) for _ in range(3)))
        pair, d, p1, p2, n = (np.array(column) for column in zip(*rows, strict=True))
        return NearPairs(pair.astype(int), d, p1, p2, n)

    def all_distances(self, data: pin.Data) -> np.ndarray:
        """Signed distance (P,) of every pair [m], at the last forward kinematics in `data`."""
        pin.updateGeometryPlacements(self.model, data, self.geometry, self.gdata)
        pin.computeDistances(self.geometry, self.gdata)
        return np.array([r.min_distance for r in self.gdata.distanceResults])

    def gradient(self, data: pin.Data, near: NearPairs) -> np.ndarray:
        """d distance / d v of near pairs, (k, nv): n . (velocity of witness 2 - velocity of witness 1).

        Args:
            data: after `pin.computeJointJacobians`, so that `data.J` holds every joint's columns at the world origin.
            near: result of `near` at the same configuration.
        """
        n = near.normal
        wrench_1 = np.hstack([n, _cross(near.point_1, n)])
        wrench_2 = np.hstack([n, _cross(near.point_2, n)])
        S1 = self._support[self._joint[self.first[near.pair]]]
        S2 = self._support[self._joint[self.second[near.pair]]]
        return (wrench_2 @ data.J) * S2 - (wrench_1 @ data.J) * S1

    def _candidates(self, data: pin.Data, threshold: float) -> np.ndarray:
        """Pairs whose bounding balls are closer than the threshold; a pair left out is certainly farther away."""
        if len(self.first) == 0:
            return np.zeros(0, dtype=int)
        R = np.array([data.oMi[j].rotation for j in self._used_joints])[self._joint_row]
        t = np.array([data.oMi[j].translation for j in self._used_joints])[self._joint_row]
        c = np.einsum("sij,sj->si", R, self._centers) + t
        gap = c[self.first] - c[self.second]
        reach = self._reach + threshold
        return np.flatnonzero(np.einsum("pi,pi->p", gap, gap) < reach * reach)


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Row-wise cross product (k, 3); np.cross spends ten times longer on finding out which axis is meant."""
    out = np.empty_like(a)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out
