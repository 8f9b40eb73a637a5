"""Collision shapes of a pinocchio model, for coal and as arrays, and the pairs that may touch.

`CoalPairs` is the reference for the kernels of `pair_distance`, without compilation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import coal
import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import (
    Box,
    Capsule,
    Cylinder,
    Ellipsoid,
    LinkShape,
    Shape,
    ShapeArrays,
    Sphere,
    fibonacci_sphere,
)

if TYPE_CHECKING:
    from humanoid_control.collision.pair_distance import NearPairs

ELLIPSE_SIDES = 32  # of the polyhedron for an elliptic capsule
CAP_RINGS = 6
GJK_TOLERANCE = 1e-9  # coal's default of 1e-6 leaves errors of centimetres in witness points

# -------- Shapes


def coal_shape(shape: Shape) -> tuple[coal.CollisionGeometry, pin.SE3]:
    """Return the coal geometry of a shape, and its pose in the link frame.

    Elliptic capsules, and ellipsoids as capsules of length 0, become circumscribed polyhedra, 1 / cos(pi / 32) - 1 =
    0.5 % wider, with caps 0.9 % larger.
    """
    if isinstance(shape, Sphere):
        return coal.Sphere(shape.radius), pin.SE3(np.eye(3), np.array(shape.center))
    if isinstance(shape, (Capsule, Cylinder)):
        p0, p1 = np.array(shape.p0), np.array(shape.p1)
        length = float(np.linalg.norm(p1 - p0))
        X = pin.SE3(rotation_of_z_onto(p1 - p0), (p0 + p1) / 2)
        cls = coal.Capsule if isinstance(shape, Capsule) else coal.Cylinder
        return cls(shape.radius, length), X
    if isinstance(shape, Box):
        return coal.Box(*shape.size), pin.SE3(pin.rpy.rpyToMatrix(*shape.rpy), np.array(shape.center))
    if isinstance(shape, Ellipsoid):
        b, a, c = shape.semi_axes
        return _polyhedron(a, b, c, 0.0), pin.SE3(np.eye(3), np.array(shape.center))
    return _polyhedron(shape.a, shape.b, shape.c, shape.l), pin.SE3(np.eye(3), np.array(shape.top_center))


def shape_arrays(model: pin.Model, shapes: tuple[LinkShape, ...]) -> ShapeArrays:
    """Return the shapes as arrays, in the frames of their pinocchio joints."""
    kinds, sizes, joints, rotations, positions = [], [], [], [], []
    for item in shapes:
        frame = model.frames[model.getFrameId(item.link, pin.FrameType.BODY)]
        size, X_link_shape = half_axes(item.shape)
        X = frame.placement * X_link_shape
        kinds.append(item.shape.kind)
        sizes.append(size)
        joints.append(int(frame.parentJoint))
        rotations.append(X.rotation)
        positions.append(X.translation)
    return ShapeArrays.build(kinds, sizes, joints, rotations, positions)


def half_axes(shape: Shape) -> tuple[tuple[float, float, float, float], pin.SE3]:
    """Return the row of `ShapeArrays.sizes` of a shape, and the pose of its centre in the link frame."""
    if isinstance(shape, Sphere):
        return (shape.radius, shape.radius, shape.radius, 0.0), pin.SE3(np.eye(3), np.array(shape.center))
    if isinstance(shape, (Capsule, Cylinder)):
        p0, p1 = np.array(shape.p0), np.array(shape.p1)
        cap = shape.radius if isinstance(shape, Capsule) else 0.0
        half = float(np.linalg.norm(p1 - p0)) / 2
        return (shape.radius, shape.radius, cap, half), pin.SE3(rotation_of_z_onto(p1 - p0), (p0 + p1) / 2)
    if isinstance(shape, Box):
        x, y, z = shape.size
        return (x / 2, y / 2, z / 2, 0.0), pin.SE3(pin.rpy.rpyToMatrix(*shape.rpy), np.array(shape.center))
    if isinstance(shape, Ellipsoid):
        return (*shape.semi_axes, 0.0), pin.SE3(np.eye(3), np.array(shape.center))
    middle = np.array(shape.top_center) - np.array([0.0, 0.0, shape.l / 2])
    return (shape.b, shape.a, shape.c, shape.l / 2), pin.SE3(np.eye(3), middle)


def rotation_of_z_onto(axis: np.ndarray) -> np.ndarray:
    """Return a rotation with the given direction as third column; identity for zero."""
    n = float(np.linalg.norm(axis))
    if n < 1e-12:
        return np.eye(3)
    return pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), axis / n).toRotationMatrix()


def elliptic_capsule_points(a: float, b: float, c: float, l: float) -> np.ndarray:  # noqa: E741
    """Return vertices (n, 3) of a polyhedron around an elliptic capsule with the top centre at the origin."""
    grow = 1.0 / math.cos(math.pi / ELLIPSE_SIDES)
    phi = 2 * math.pi * np.arange(ELLIPSE_SIDES) / ELLIPSE_SIDES
    ring = grow * np.stack([b * np.cos(phi), a * np.sin(phi)], axis=1)
    points = []
    # Rings of the cap at elevation angles from its rim, on a profile around the quarter ellipse.
    up = 1.0 / math.cos(math.pi / (4 * CAP_RINGS))
    for k in range(CAP_RINGS + 1):
        t = (k - 0.5) * math.pi / (2 * CAP_RINGS) if k else 0.0
        scale, z = (up * math.cos(t), up * c * math.sin(t)) if k else (1.0, 0.0)
        points += [np.column_stack([ring * scale, np.full(ELLIPSE_SIDES, s)]) for s in (z, -l - z)]
    return np.vstack(points)


@lru_cache(maxsize=256)
def _polyhedron(a: float, b: float, c: float, l: float) -> coal.CollisionGeometry:  # noqa: E741
    """Return the cached hull of an elliptic capsule; it must not be changed."""
    cloud = coal.StdVec_Vec3s()
    for p in elliptic_capsule_points(a, b, c, l):
        cloud.append(p)
    return coal.Convex.convexHull(cloud, True, "Qt")


# -------- Pairs


def build_geometry(
    model: pin.Model, shapes: tuple[LinkShape, ...], pairs: list[tuple[int, int]] | np.ndarray
) -> pin.GeometryModel:
    """Build a pinocchio geometry model with one object a shape, and the given pairs."""
    geometry = pin.GeometryModel()
    for item in shapes:
        frame_id = model.getFrameId(item.link, pin.FrameType.BODY)
        frame = model.frames[frame_id]
        shape, X_link_shape = coal_shape(item.shape)
        obj = pin.GeometryObject(item.name, frame.parentJoint, frame_id, frame.placement * X_link_shape, shape)
        geometry.addGeometryObject(obj)
    for i, j in pairs:
        geometry.addCollisionPair(pin.CollisionPair(int(i), int(j)))
    return geometry


def watched_pairs(
    model: pin.Model, shapes: tuple[LinkShape, ...], disabled: set[frozenset[str]], q: np.ndarray | None = None
) -> list[tuple[int, int]]:
    """Return all pairs of shapes that can touch and should not.

    Excluded: `disabled` pairs, exemptions by `LinkShape.against`, and shapes without a joint between them. A posture q
        also excludes neighbouring links and shapes that overlap at q.

    Args:
        q: posture without collisions (nq,), or None.
    """
    joint = [model.frames[model.getFrameId(s.link, pin.FrameType.BODY)].parentJoint for s in shapes]
    special = {(s.link, link) for s in shapes for link in s.against}
    pairs = [
        (i, j)
        for i in range(len(shapes))
        for j in range(i + 1, len(shapes))
        if joint[i] != joint[j]
        and frozenset((shapes[i].name, shapes[j].name)) not in disabled
        and _meant_for(shapes[i], shapes[j], special)
    ]
    if q is None:
        return pairs
    parents = model.parents.tolist()
    pairs = [(i, j) for i, j in pairs if parents[joint[i]] != joint[j] and parents[joint[j]] != joint[i]]
    if not pairs:
        return pairs
    geometry = build_geometry(model, shapes, pairs)
    data, gdata = model.createData(), geometry.createData()
    pin.computeDistances(model, data, geometry, gdata, q)
    return [p for p, r in zip(pairs, gdata.distanceResults, strict=True) if r.min_distance > 0]


def _meant_for(one: LinkShape, other: LinkShape, special: set[tuple[str, str]]) -> bool:
    """Return True for shapes that must stay apart, by `LinkShape.against`."""
    if not one.against and not other.against:
        return True
    sides = ((one, other), (other, one))
    return all(b.link in a.against if a.against else (a.link, b.link) not in special for a, b in sides)


def ancestor_mask(model: pin.Model) -> np.ndarray:
    """Return a matrix (njoints, nv): 1 where a column of the Jacobian moves a joint."""
    mask = np.zeros((model.njoints, model.nv))
    for j in range(1, model.njoints):
        for s in model.supports[j].tolist():
            if s > 0:
                joint = model.joints[s]
                mask[j, joint.idx_v : joint.idx_v + joint.nv] = 1.0
    return mask


# -------- Overlap

STARTS, CLIMBS = 4, 40  # directions followed to a local maximum; largest number of steps
PULL = 0.02  # [m] distance to which overlapping shapes are pulled apart for measurement
SETTLED = 1e-10  # [m]
EXACT_IN_COAL = (coal.Sphere, coal.Capsule, coal.Box)  # for other pairs coal's depth is up to 17 cm too large


DIRECTIONS = fibonacci_sphere(800)


def _support(shape: coal.CollisionGeometry, n: np.ndarray) -> np.ndarray:
    """Return the support function: extent along unit vectors n (k, 3) [m]."""
    if isinstance(shape, coal.Box):
        return np.abs(n) @ np.array(shape.halfSide)
    if isinstance(shape, coal.Sphere):
        return np.full(len(n), shape.radius)
    if isinstance(shape, coal.Capsule):
        return shape.radius + shape.halfLength * np.abs(n[:, 2])
    if isinstance(shape, coal.Cylinder):
        return shape.radius * np.hypot(n[:, 0], n[:, 1]) + shape.halfLength * np.abs(n[:, 2])
    return (n @ np.array(shape.points()).T).max(axis=1)


@dataclass(frozen=True)
class _Overlap:
    """Two overlapping shapes at poses X, with the search for the shortest separating translation.

    gap(n) is the distance along n, negative inside. From the best of evenly spread directions, shapes are pulled apart;
    the gap along their nearest normal is at least as large.
    """

    first: coal.CollisionGeometry
    X_1: pin.SE3
    second: coal.CollisionGeometry
    X_2: pin.SE3

    def gap(self, n: np.ndarray) -> np.ndarray:
        inner = _support(self.first, n @ self.X_1.rotation) + _support(self.second, -n @ self.X_2.rotation)
        return n @ (self.X_2.translation - self.X_1.translation) - inner

    def directions(self, guess: np.ndarray) -> list[np.ndarray]:
        # Candidates: the guess, all axes and their cross products, and an even spread over the sphere.
        axes = np.vstack([self.X_1.rotation.T, self.X_2.rotation.T])
        axes = np.vstack([axes, np.cross(axes[:3, None], axes[None, 3:]).reshape(-1, 3)])
        size = np.linalg.norm(axes, axis=1)[:, None]
        axes = (axes / np.maximum(size, 1e-12))[size[:, 0] > 1e-6]
        n = np.vstack([guess, axes, -axes, DIRECTIONS])
        n = n[np.argsort(-self.gap(n), kind="stable")]
        out: list[np.ndarray] = []
        while len(n) and len(out) < STARTS:
            out.append(n[0])
            n = n[n @ n[0] < 0.9]
        return out

    def climb(self, n: np.ndarray, request: coal.DistanceRequest) -> tuple[float, np.ndarray, np.ndarray]:
        """Return (gap, n, witness point on the first shape) of the local maximum near n."""
        d, point = float(self.gap(n[None])[0]), np.array(self.X_1.translation)
        result, pose_1 = coal.DistanceResult(), coal.Transform3s(self.X_1.rotation, self.X_1.translation)
        for _ in range(CLIMBS):
            away = coal.Transform3s(self.X_2.rotation, self.X_2.translation + (PULL - d) * n)
            result.clear()
            if coal.distance(self.first, pose_1, self.second, away, request, result) <= 0:
                break
            point, m = np.array(result.getNearestPoint1()), np.array(result.normal)
            gap = float(self.gap(m[None])[0])
            if gap <= d + SETTLED:
                break
            d, n = gap, m
        return d, n, point


class CoalPairs:
    """Signed distances of the collision pairs of a geometry model, by coal."""

    def __init__(self, model: pin.Model, geometry: pin.GeometryModel) -> None:
        self.model, self.geometry = model, geometry
        self.gdata = geometry.createData()
        for request in self.gdata.distanceRequests:
            request.gjk_tolerance = request.epa_tolerance = GJK_TOLERANCE
            request.gjk_max_iterations = request.epa_max_iterations = 500
        pairs = np.array([[p.first, p.second] for p in geometry.collisionPairs], dtype=int).reshape(-1, 2)
        self.first, self.second = pairs[:, 0], pairs[:, 1]
        # References into the results stay valid, and fetching them again would take longer than the distances.
        self._results = [self.gdata.distanceResults[k] for k in range(len(pairs))]
        shapes = [o.geometry for o in geometry.geometryObjects]
        self._guessed = [
            k for k, p in enumerate(pairs) if not all(isinstance(shapes[i], EXACT_IN_COAL) for i in p)
        ]  # pairs with an inexact depth in coal
        self._depths: dict[int, tuple[float, np.ndarray, np.ndarray]] = {}
        joint = np.array([o.parentJoint for o in geometry.geometryObjects], dtype=np.int64)
        self._joints = joint[self.first], joint[self.second], ancestor_mask(model)

    def name(self, pair: int) -> tuple[str, str]:
        """Return the names of both shapes of a pair."""
        objects = self.geometry.geometryObjects
        return objects[int(self.first[pair])].name, objects[int(self.second[pair])].name

    def near(self, data: pin.Data, threshold: float) -> NearPairs:
        """Return the pairs closer than a threshold [m].

        Args:
            data: after `pin.forwardKinematics` or `pin.computeJointJacobians`.
        """
        from humanoid_control.collision.pair_distance import NearPairs, PairJoints, PairsFound  # loads the compiler
        from humanoid_control.compiled.packed import Packed

        d = self.all_distances(data)
        pair = np.flatnonzero(d < threshold)
        results = [self._results[k] for k in pair]
        p1, p2, n = (np.empty((len(pair), 3)) for _ in range(3))
        for k, r in enumerate(results):
            p1[k], p2[k], n[k] = r.getNearestPoint1(), r.getNearestPoint2(), r.normal
            if (inside := self._depths.get(int(pair[k]))) is not None:
                n[k], p1[k], p2[k] = inside[1], inside[2], inside[2] + inside[0] * inside[1]
        return NearPairs(PairsFound(pair, d[pair], n, p1, p2), Packed(PairJoints(*self._joints)))

    def all_distances(self, data: pin.Data) -> np.ndarray:
        """Return the signed distance of every pair (P,) [m]; `data` as in `near`."""
        pin.updateGeometryPlacements(self.model, data, self.geometry, self.gdata)
        pin.computeDistances(self.geometry, self.gdata)
        out = np.array([r.min_distance for r in self._results])
        self._depths = {k: self._depth(k) for k in self._guessed if out[k] < 0}
        for k, (d, _, _) in self._depths.items():
            out[k] = d
        return out

    def _depth(self, pair: int) -> tuple[float, np.ndarray, np.ndarray]:
        i, j = int(self.first[pair]), int(self.second[pair])
        objects, poses = self.geometry.geometryObjects, self.gdata.oMg
        shapes = _Overlap(objects[i].geometry, poses[i], objects[j].geometry, poses[j])
        request, guess = self.gdata.distanceRequests[pair], np.array(self._results[pair].normal)
        found = [shapes.climb(n, request) for n in shapes.directions(guess)]
        return max(found, key=lambda f: f[0])
