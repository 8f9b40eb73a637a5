"""Self-collision of a robot: near pairs with distances, normals and moving joints.

`CollisionMonitor` is the interface, `ShapePairs` measures exact shapes, `VolumePairs` swept-sphere volumes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from humanoid_control.collision.coal_backend import half_axes, shape_arrays
from humanoid_control.collision.pair_bounds import (
    PairBounds,
    PairReach,
    find_faster_pairs,
    lower_bounds,
    lower_bounds_and_needs,
    update_pairs,
)
from humanoid_control.collision.pair_distance import (
    NearPairs,
    PairJoints,
    PairsFound,
    pair_joints,
    shape_poses,
)
from humanoid_control.collision.shapes import BOX, CYLINDER, ELLIPSOID, SPHERE, ShapeArrays
from humanoid_control.collision.ssv.model import PoseArray, SsvModel
from humanoid_control.compiled.array_types import F1, F2, F3
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.errors import UnknownNameError
from humanoid_control.kinematics.forward_kinematics import (
    JointPoses,
    ModelTree,
    WorldPoses,
    joint_axis,
    joint_poses,
    joint_twists,
)
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.volumes import segment_pairs, volumes_of

SHAPES, VOLUMES = "shapes", "volumes"


class CollisionMonitor(ABC):
    """Pairs of shapes that must not touch; each tick returns the near ones.

    Attributes:
        count: number P of pairs.
        joints: packed: joints that carry both sides, Jacobian columns that move them.
    """

    count: int
    joints: Packed[PairJoints]

    @staticmethod
    def of(robot: Robot, kind: str | None = None) -> CollisionMonitor:
        """Create the monitor of a robot, see `Robot.collision_monitor`."""
        monitors = {SHAPES: ShapePairs, VOLUMES: VolumePairs}
        if kind is None:
            kind = SHAPES if robot.volumes is None else VOLUMES
        if kind not in monitors:
            raise UnknownNameError("kind of collision monitor", kind, monitors)
        monitor: CollisionMonitor = monitors[kind](robot)
        return monitor

    @abstractmethod
    def name(self, pair: int) -> tuple[str, str]:
        """Return the names of both sides of a pair."""

    @abstractmethod
    def update(self, q: np.ndarray, activation: float | np.ndarray) -> NearPairs:
        """Return the pairs closer than their activation distance.

        Args:
            q: (nq,); may jump between calls.
            activation: [m] of all pairs, or (P,).
        """

    def largest_margins(self, robot: Robot) -> np.ndarray:
        """Return the largest margin (P,) of each pair [m]: its distance in the neutral posture."""
        near = self.update(robot.q(), np.inf)
        out = np.full(self.count, np.inf)
        out[near.pair] = np.maximum(near.distance, 0.0)
        return out


# -------- Exact shapes


class MonitorArrays(NamedTuple):
    """Arrays of `monitor_shapes`."""

    tree: ModelTree
    world: WorldPoses
    shapes: ShapeArrays
    R: F3
    p: F2
    twist: F2
    activation: F1
    bounds: PairBounds
    found: PairsFound


@kernel
def monitor_shapes(table: Table[MonitorArrays], q: np.ndarray, activation: np.ndarray) -> int:
    """Place joints and shapes at q (nq,), measure pairs within activation (P,) [m]; return their number."""
    a = unpack(table, MonitorArrays)
    # Skipping is safe: each bound falls by joint motion times motion bound before pairs are selected.
    lower_bounds(a.bounds, q[q.shape[0] - a.bounds.joints.shape[0] :])
    joint_poses(a.tree, q, a.world)
    shape_poses(a.world.R, a.world.p, a.shapes, a.R, a.p)
    # No twist: pairs are selected by distance alone.
    everywhere = PairReach(a.twist[:0], 0.0, 0.0, 0.0)
    return update_pairs(a.shapes, a.R, a.p, a.bounds, activation, everywhere, a.found)


@kernel
def monitor_moving_shapes(
    table: Table[MonitorArrays], q: np.ndarray, v: np.ndarray, need: np.ndarray, law: tuple
) -> int:
    """`monitor_shapes` for velocities v (nv,): measure only pairs near enough for their closing speed.

    Args:
        need: (n,) distance required by each joint's motion, per motion bound.
        law: (least [m], margin [m], per_speed [s]) of `PairReach`.
    """
    a = unpack(table, MonitorArrays)
    lower_bounds_and_needs(a.bounds, q[q.shape[0] - a.bounds.joints.shape[0] :], need, a.activation)
    for k in range(a.activation.shape[0]):
        # Activation distance: margin plus the braking distance of the pair, at least `least`.
        a.activation[k] = max(law[0], law[1] + a.activation[k])
    joint_poses(a.tree, q, a.world)
    joint_twists(a.tree, a.world, v, a.twist)
    shape_poses(a.world.R, a.world.p, a.shapes, a.R, a.p)
    reach = PairReach(a.twist, law[0], law[1], law[2])
    return update_pairs(a.shapes, a.R, a.p, a.bounds, a.activation, reach, a.found)


@kernel
def find_faster_shapes(table: Table[MonitorArrays], v: np.ndarray, law: tuple, count: int) -> int:
    """Add pairs skipped by `monitor_moving_shapes` that matter at velocities v (nv,); return the number of rows.

    Args:
        count: filled rows.
    """
    a = unpack(table, MonitorArrays)
    joint_twists(a.tree, a.world, v, a.twist)
    return find_faster_pairs(a.shapes, a.R, a.p, a.bounds, PairReach(a.twist, law[0], law[1], law[2]), count, a.found)


class ShapePairs(CollisionMonitor):
    """Collision pairs of a robot, measured exactly.

    A pair is measured only if joint motion times motion bound may have brought it within its activation distance. Jumps
    are safe, only slow.

    Attributes:
        shapes: of the robot.
        pairs: (P, 2) of their indices.
        motion_bound: (P, nv) of `motion_bounds`.
        arrays: input of `monitor_shapes`.
        packed: the same, packed.
        poses: of the joints.
        R: (S, 3, 3) of the shapes.
        p: (S, 3) of the shapes [m].
        lower: (P,) lower bounds [m], exact for near pairs.
    """

    def __init__(self, robot: Robot) -> None:
        """Create the pairs of a robot's shapes."""
        self.shapes = shape_arrays(robot.model, robot.shapes)
        self.pairs = np.ascontiguousarray(robot.pairs, dtype=np.int64).reshape(-1, 2)
        self.joints = Packed(pair_joints(self.shapes.joint, self.pairs, robot.ancestor_mask))
        self.poses, self.motion_bound = JointPoses(robot.model), motion_bounds(robot)
        self.count, shapes = len(self.pairs), len(self.shapes.kinds)
        self.R, self.p = np.tile(np.eye(3), (shapes, 1, 1)), np.zeros((shapes, 3))
        of_joints = np.ascontiguousarray(self.motion_bound[:, robot.iv :].T)
        bounds = PairBounds.of(self.pairs, self.shapes.joint, self.poses.tree.parent, of_joints)
        self.lower, self._activation = bounds.lower, np.empty(self.count)
        found, twist = PairsFound.buffer(self.count), np.zeros((robot.model.njoints, 6))
        memory = (self.R, self.p, twist, self._activation)
        self.arrays = MonitorArrays(self.poses.tree, self.poses.world, self.shapes, *memory, bounds, found)
        self.packed = Packed(self.arrays)
        self._names = [s.name for s in robot.shapes]

    def largest_margins(self, robot: Robot) -> np.ndarray:
        return robot.largest_margins()

    def name(self, pair: int) -> tuple[str, str]:
        """See `CollisionMonitor.name`."""
        i, j = self.pairs[pair]
        return self._names[i], self._names[j]

    def update(self, q: np.ndarray, activation: float | np.ndarray) -> NearPairs:
        """See `CollisionMonitor.update`."""
        self._activation[:] = activation
        count = monitor_shapes(self.packed.table, q, self._activation)
        return NearPairs(self.arrays.found.first(count), self.joints)


STROKE = 1.5  # reach of a sliding joint relative to its range, for configurations beyond it


def motion_bounds(robot: Robot) -> np.ndarray:
    """Return bounds (P, nv) on |d distance / d v| [m/rad], 1 for sliding joints, for all postures.

    A point is at most as far from a joint axis as the path along the links (Schwarzer, Saha and Latombe 2005).
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
        # Walk to the root: each link adds its length to the reach of the shape about the next axis.
        while j >= first:
            out[s, model.joints[j].idx_v] = 1.0 if slides[j] else far
            far += float(np.linalg.norm(model.jointPlacements[j].translation)) + stroke[j]
            j = parents[j]
    a, b = robot.pairs[:, 0], robot.pairs[:, 1]
    # A joint that moves both shapes, or none, does not change their distance.
    return np.where((out[a] > 0) != (out[b] > 0), out[a] + out[b], 0.0)


def _farthest(p: np.ndarray, R: np.ndarray, size: tuple[float, float, float, float]) -> float:
    """Return the distance from a joint to the farthest corner of a shape's box, at p with axes R."""
    x, y, z = size[0], size[1], size[2] + size[3]
    corners = [p + R @ np.array([i * x, j * y, k * z]) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return max(float(np.linalg.norm(c)) for c in corners)


# -------- Swept-sphere volumes


class VolumePairs(CollisionMonitor):
    """Pairs of swept-sphere segments.

    Attributes:
        model: segments and pairs.
        segments: distance computation.
    """

    def __init__(self, robot: Robot, model: SsvModel | None = None) -> None:
        """Create the pairs, by default of `volumes_of`.

        Raises:
            UnknownNameError: if the file has an unknown name.
            RobotError: if it does not fit.
        """
        self.model = volumes_of(robot) if model is None else model
        self.count = len(self.model.pairs)
        self._pinocchio, self._data = robot.model, robot.model.createData()
        self._poses, self.segments = PoseArray(self._data), segment_pairs(robot, self.model)
        self.joints = self.segments.joints

    def name(self, pair: int) -> tuple[str, str]:
        """See `CollisionMonitor.name`."""
        return self.model.names(pair)

    def update(self, q: np.ndarray, activation: float | np.ndarray) -> NearPairs:
        """See `CollisionMonitor.update`."""
        pin.forwardKinematics(self._pinocchio, self._data, q)
        self.segments.place(self._poses.rows())
        near = self.segments.nearest(float(np.max(activation, initial=-np.inf)))
        return near.where(near.distance < np.asarray(activation)[near.pair]) if np.ndim(activation) else near


# -------- Shapes for viewers

BALL_PART, CYLINDER_PART, BOX_PART = range(3)


class ShapeParts:
    """Collision shapes in P drawable parts; capsules are a cylinder and two ellipsoids.

    Attributes:
        kind: (P,) BALL_PART, CYLINDER_PART or BOX_PART.
        size: (P, 3) full widths, cylinder axis z [m].
        shape: (P,) index into `Robot.shapes`.
        poses: (P, 7) x, y, z [m], quaternion x, y, z, w in the world, after `place`.
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
            # Capsules: end caps at +-h on the axis.
            elif kind != CYLINDER:
                rows += [(BALL_PART, widths, k, h), (BALL_PART, widths, k, -h)]
        self.kind = np.array([r[0] for r in rows], dtype=np.int64)
        self.size = np.array([r[1] for r in rows]).reshape(-1, 3)
        self.shape = np.array([r[2] for r in rows], dtype=np.int64)
        self._along = np.array([r[3] for r in rows])
        self._R, self._p = np.tile(np.eye(3), (len(robot.shapes), 1, 1)), np.zeros((len(robot.shapes), 3))
        self.poses = np.zeros((len(rows), 7))
        self.place(robot.q("neutral"))

    def place(self, q: np.ndarray) -> np.ndarray:
        """Place the parts at q (nq,); return `poses`."""
        j, s = self._joints, self._shapes
        j.update(q)
        shape_poses(j.R, j.p, s, self._R, self._p)
        part_poses(self._R, self._p, self.shape, self._along, self.poses)
        return self.poses


@kernel
def part_poses(R: np.ndarray, p: np.ndarray, shape: np.ndarray, along: np.ndarray, out: np.ndarray) -> None:
    """Compute poses (P, 7) of parts at `along` (P,) on the z axes of shapes R (S, 3, 3), p (S, 3).

    The largest quaternion component, at least 1/2, is computed first: no loss of precision.
    """
    for k in range(shape.shape[0]):
        A, s = R[shape[k]], shape[k]
        for i in range(3):
            out[k, i] = p[s, i] + along[k] * A[i, 2]
        # t = 4 x^2, 4 y^2, 4 z^2, 4 w^2 of the quaternion.
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
        # Antisymmetric part 4 w (x, y, z), symmetric part 4 (x y, x z, y z).
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
