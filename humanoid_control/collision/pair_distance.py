"""Signed distances of pairs of shapes, with normals, witness points and gradients.

`pair_distance` measures one pair, `pair_distances` all pairs below a threshold.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from humanoid_control.collision.box_distance import box_box, segment_box
from humanoid_control.collision.capsule_distance import capsule_capsule, segment_solid
from humanoid_control.collision.convex_distance import Solid
from humanoid_control.collision.cylinder_box_distance import cylinder_box
from humanoid_control.collision.ellipsoid_box_distance import ellipsoid_box
from humanoid_control.collision.penetration_depth import overlap, separation, solid_solid
from humanoid_control.collision.shapes import BOX, CAPSULE, CYLINDER, ELLIPSOID, ShapeArrays
from humanoid_control.compiled.array_types import F1, F2, I1
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.compiled.packed import Packed, Table, unpack
from humanoid_control.numerics.vec3 import Vec, along, cross, dot, mul, rotate, row, sub, unrotate

# -------- Near pairs and their gradients


class PairsFound(NamedTuple):
    """Rows of near pairs; in a buffer only the first rows are valid.

    Attributes:
        distance: signed distances (k,) [m], negative inside.
        normal: unit vectors to shape 2, world frame (k, 3).
        point_1: witness points on shapes 1, world frame (k, 3) [m].
        point_2: witness points on shapes 2, world frame (k, 3) [m].
    """

    pair: I1
    distance: F1
    normal: F2
    point_1: F2
    point_2: F2

    @classmethod
    def buffer(cls, rows: int) -> PairsFound:
        """Allocate memory for a number of rows."""
        points = (np.empty((rows, 3)) for _ in range(3))
        return cls(np.empty(rows, dtype=np.int64), np.empty(rows), *points)

    def first(self, count: int) -> PairsFound:
        """Return a copy of the first rows."""
        pair, distance, normal, point_1, point_2 = self
        return PairsFound(
            pair[:count].copy(),
            distance[:count].copy(),
            normal[:count].copy(),
            point_1[:count].copy(),
            point_2[:count].copy(),
        )


class PairJoints(NamedTuple):
    """Joints of P pairs of shapes.

    Attributes:
        first: of the first shape (P,).
        ancestor_mask: 1 where a column of the Jacobian moves a joint (njoints, nv).
    """

    first: I1
    second: I1
    ancestor_mask: F2


@dataclass(frozen=True)
class NearPairs:
    """Pairs of shapes closer than a threshold."""

    found: PairsFound
    joints: Packed[PairJoints]

    @classmethod
    @functools.cache
    def none(cls) -> NearPairs:
        """Return the shared object without pairs."""
        no_joint = np.zeros(0, dtype=np.int64)
        return cls(PairsFound.buffer(0), Packed(PairJoints(no_joint, no_joint, np.zeros((0, 0)))))

    def __len__(self) -> int:
        return len(self.found.pair)

    @property
    def pair(self) -> np.ndarray:
        """Indices of the pairs (k,), increasing."""
        return self.found.pair

    @property
    def distance(self) -> np.ndarray:
        """Signed distances (k,) [m], negative inside."""
        return self.found.distance

    @property
    def normal(self) -> np.ndarray:
        """Unit vectors to shape 2, world frame (k, 3)."""
        return self.found.normal

    @property
    def point_1(self) -> np.ndarray:
        """Witness points on shapes 1, world frame (k, 3) [m]."""
        return self.found.point_1

    @property
    def point_2(self) -> np.ndarray:
        """Witness points on shapes 2, world frame (k, 3) [m]."""
        return self.found.point_2

    def gradient(self, J: np.ndarray) -> np.ndarray:
        """Return d distance / d v (k, nv) = n . (velocity of witness point 2 - velocity of witness point 1).

        Args:
            J: `data.J` (6, nv) after `pin.computeJointJacobians`, at the world origin, linear before angular.
        """
        out = np.empty((len(self), J.shape[1]))
        pair, _, normal, point_1, point_2 = self.found
        distance_gradients(J, self.joints.table, pair, normal, point_1, point_2, out)
        return out


@inlined
def distance_rate(n: Vec, moment_1: Vec, moment_2: Vec, moves_1: float, moves_2: float, J: np.ndarray, c: int) -> float:
    """Return d distance / d v_c for one column c; see `NearPairs.gradient`.

    A point x has the velocity J_linear + J_angular x x, so n . velocity = n . J_linear + (x x n) . J_angular.

    Args:
        moment_1: x x n of witness point 1, world frame.
        moment_2: x x n of witness point 2, world frame.
    """
    angular = (J[3, c], J[4, c], J[5, c])
    # Linear part by the normal, angular part by the moments.
    rate = (moves_2 - moves_1) * dot(n, (J[0, c], J[1, c], J[2, c]))
    rate += moves_2 * dot(moment_2, angular) - moves_1 * dot(moment_1, angular)
    return rate


@kernel(allocates=True)
def distance_gradients(
    J: np.ndarray,
    table: Table[PairJoints],
    pair: np.ndarray,
    normal: np.ndarray,
    point_1: np.ndarray,
    point_2: np.ndarray,
    out: np.ndarray,
) -> None:
    joints = unpack(table, PairJoints)
    moves, J = joints.ancestor_mask, np.ascontiguousarray(J)  # contiguous rows: several columns at a time
    for k in range(out.shape[0]):
        n = row(normal, k)
        moment_1, moment_2 = cross(row(point_1, k), n), cross(row(point_2, k), n)
        i, j = joints.first[pair[k]], joints.second[pair[k]]
        for c in range(out.shape[1]):
            rate = distance_rate(n, moment_1, moment_2, moves[i, c], moves[j, c], J, c)
            out[k, c] = rate if moves[i, c] != moves[j, c] else 0.0  # both shapes move as one, or neither moves


# -------- One pair

INSIDE = 1e-12  # [m] round-off of a separation


@kernel
def swept_solid(swept: Solid, solid: Solid) -> tuple:
    """Return (d, n, x1, x2) of a sphere or capsule and another solid."""
    radius, axis = swept.size[0], mul(swept.size[3], (swept.R[0, 2], swept.R[1, 2], swept.R[2, 2]))
    # Core segment in the frame of the solid.
    a, u = unrotate(solid.R, sub(swept.p, solid.p)), unrotate(solid.R, axis)
    size = solid.size
    d, n, s = segment_solid(solid.kind, size[0], size[1], size[2], size[3], a, u)
    # The outward normal of the solid points towards the swept sphere.
    n = mul(-1.0, rotate(solid.R, n))
    core = along(swept.p, s, axis)
    # No point of the axis is deeper than d; d is exact unless the whole axis needs a longer way out.
    if d < 0.0 and separation(swept, solid, n) < d - radius - INSIDE:
        return overlap(swept, solid, n, core)
    return d - radius, n, along(core, radius, n), along(core, d, n)


@kernel
def _capsule_box(sizes: np.ndarray, R: np.ndarray, p: np.ndarray, i: int, j: int) -> tuple:
    """Return (ok, d, n, x1, x2) of capsule i and the box around shape j."""
    sides, axis, radius = half_sides(sizes, j), (R[i, 0, 2], R[i, 1, 2], R[i, 2, 2]), sizes[i, 0]
    ok, d, n, surface, core = segment_box(sides, R[j], row(p, j), row(p, i), axis, sizes[i, 3])
    return ok, d - radius, mul(-1.0, n), along(core, -radius, n), surface


@inlined
def pair_distance(shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, i: int, j: int) -> tuple:
    """Return the exact signed distance of shapes i and j; inside, minus the shortest separating translation.

    Args:
        R: rotations of the shapes, world (S, 3, 3).
        p: origins of the shapes, world (S, 3) [m].

    Returns:
        (d, n, x1, x2): distance [m]; unit normal from i to j, the gradient of d by motions of j; witness points x2 = x1
        + d n.
    """
    # Two swept spheres, the most frequent case, are measured inline: passing all arrays would take longer.
    kinds, sizes = shapes.kinds, shapes.sizes
    if kinds[i] > CAPSULE or kinds[j] > CAPSULE:
        return _solid_distance(kinds[i], kinds[j], sizes, R, p, i, j)
    u = mul(sizes[i, 3], (R[i, 0, 2], R[i, 1, 2], R[i, 2, 2]))
    w = mul(sizes[j, 3], (R[j, 0, 2], R[j, 1, 2], R[j, 2, 2]))
    return capsule_capsule(row(p, i), u, sizes[i, 0], row(p, j), w, sizes[j, 0])


@kernel
def _solid_distance(kind_i: int, kind_j: int, sizes: np.ndarray, R: np.ndarray, p: np.ndarray, i: int, j: int) -> tuple:
    """Return `pair_distance` if a shape is not a swept sphere."""
    swept1, swept2 = kind_i <= CAPSULE, kind_j <= CAPSULE
    # Closed forms first; a failed one (ok is False) continues with the general method.
    if swept1 and kind_j == BOX and sizes[i, 3] > 0.0:
        ok, d, n, x1, x2 = _capsule_box(sizes, R, p, i, j)
        if ok:
            return d, n, x1, x2
    if swept2 and kind_i == BOX and sizes[j, 3] > 0.0:
        ok, d, n, x2, x1 = _capsule_box(sizes, R, p, j, i)
        if ok:
            return d, mul(-1.0, n), x1, x2
    pi, pj = row(p, i), row(p, j)
    first, second = Solid(kind_i, sizes[i], R[i], pi), Solid(kind_j, sizes[j], R[j], pj)
    if swept1:
        return swept_solid(first, second)
    if swept2:
        d, n, x2, x1 = swept_solid(second, first)
        return d, mul(-1.0, n), x1, x2
    if first.kind == BOX or second.kind == BOX:
        a, b = half_sides(sizes, i), half_sides(sizes, j)
        if first.kind == second.kind:
            ok, d, n, x1, x2 = box_box(a, first.R, pi, b, second.R, pj)
            if ok:
                return d, n, x1, x2
        elif first.kind == ELLIPSOID:
            ok, d, n, x1, x2 = ellipsoid_box(a, first.R, pi, b, second.R, pj)
            if ok:
                return d, n, x1, x2
        elif second.kind == ELLIPSOID:
            ok, d, n, x2, x1 = ellipsoid_box(b, second.R, pj, a, first.R, pi)
            if ok:
                return d, mul(-1.0, n), x1, x2
        elif first.kind == CYLINDER:
            ok, d, n, x1, x2 = cylinder_box(first.size, first.R, pi, b, second.R, pj)
            if ok:
                return d, n, x1, x2
        elif second.kind == CYLINDER:
            ok, d, n, x2, x1 = cylinder_box(second.size, second.R, pj, a, first.R, pi)
            if ok:
                return d, mul(-1.0, n), x1, x2
    return solid_solid(first, second)


@inlined
def half_sides(sizes: np.ndarray, i: int) -> Vec:
    """Return the half sides of the box around shape i."""
    return sizes[i, 0], sizes[i, 1], sizes[i, 2] + sizes[i, 3]


@inlined
def boxed_distance(shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, i: int, j: int) -> float:
    """Return a lower bound of the distance [m] by boxes; -inf if nothing is faster than `pair_distance`."""
    kind_i, kind_j = shapes.kinds[i], shapes.kinds[j]
    if (kind_i <= CAPSULE or kind_i == BOX) and (kind_j <= CAPSULE or kind_j == BOX):
        return -np.inf
    return _box_distance(kind_i <= CAPSULE, kind_j <= CAPSULE, shapes.sizes, R, p, i, j)


@kernel
def _box_distance(swept1: bool, swept2: bool, sizes: np.ndarray, R: np.ndarray, p: np.ndarray, i: int, j: int) -> float:
    """Return `boxed_distance` if a shape is neither a swept sphere nor a box."""
    if swept1 and sizes[i, 3] > 0.0:
        ok, d, _, _, _ = _capsule_box(sizes, R, p, i, j)
    elif swept2 and sizes[j, 3] > 0.0:
        ok, d, _, _, _ = _capsule_box(sizes, R, p, j, i)
    elif swept1 or swept2:
        return -np.inf
    else:
        ok, d, _, _, _ = box_box(half_sides(sizes, i), R[i], row(p, i), half_sides(sizes, j), R[j], row(p, j))
    return d if ok else -np.inf


# -------- All near pairs of placed shapes


@inlined
def boxes_apart(shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, i: int, j: int, threshold: float) -> bool:
    """Return True if the boxes around two shapes are farther apart than a threshold.

    The box of the second shape is enclosed in a box along the axes of the first.
    """
    sizes = shapes.sizes
    dx, dy, dz = p[j, 0] - p[i, 0], p[j, 1] - p[i, 1], p[j, 2] - p[i, 2]
    x, y, z = sizes[j, 0], sizes[j, 1], sizes[j, 2] + sizes[j, 3]
    apart = 0.0
    for a in range(3):
        u, v, w = R[i, 0, a], R[i, 1, a], R[i, 2, a]
        # Half extent of the second box along axis a of the first one.
        reach = x * abs(u * R[j, 0, 0] + v * R[j, 1, 0] + w * R[j, 2, 0])
        reach += y * abs(u * R[j, 0, 1] + v * R[j, 1, 1] + w * R[j, 2, 1])
        reach += z * abs(u * R[j, 0, 2] + v * R[j, 1, 2] + w * R[j, 2, 2])
        own = sizes[i, a] + (sizes[i, 3] if a == 2 else 0.0)
        gap = abs(u * dx + v * dy + w * dz) - own - reach
        # Distance of boxes with common axes: Pythagoras over the gaps.
        if gap > 0.0:
            apart += gap * gap
    return apart >= threshold * threshold


@inlined
def shape_pose(
    joint_R: np.ndarray, joint_p: np.ndarray, shapes: ShapeArrays, s: int, out_R: np.ndarray, out_p: np.ndarray
) -> None:
    """Compute the pose of shape s; arguments as in `shape_poses`."""
    j, R_local, p_local = shapes.joint[s], shapes.R, shapes.p
    for r in range(3):
        # X_world_shape = X_world_joint X_joint_shape, row by row.
        a, b, c = joint_R[j, r, 0], joint_R[j, r, 1], joint_R[j, r, 2]
        for k in range(3):
            out_R[s, r, k] = a * R_local[s, 0, k] + b * R_local[s, 1, k] + c * R_local[s, 2, k]
        out_p[s, r] = joint_p[j, r] + a * p_local[s, 0] + b * p_local[s, 1] + c * p_local[s, 2]


@kernel
def shape_poses(
    joint_R: np.ndarray, joint_p: np.ndarray, shapes: ShapeArrays, out_R: np.ndarray, out_p: np.ndarray
) -> None:
    """Compute the world poses of all shapes.

    Args:
        joint_R: rotations of the joints, world (J, 3, 3).
        joint_p: origins of the joints, world (J, 3) [m].
    """
    for s in range(shapes.joint.shape[0]):
        shape_pose(joint_R, joint_p, shapes, s, out_R, out_p)


@inlined
def put_row(out: PairsFound, count: int, k: int, d: float, n: Vec, x1: Vec, x2: Vec) -> None:
    out.pair[count], out.distance[count] = k, d
    for c in range(3):
        out.normal[count, c], out.point_1[count, c], out.point_2[count, c] = n[c], x1[c], x2[c]


@kernel
def pair_distances(
    shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, pairs: np.ndarray, threshold: float, out: PairsFound
) -> int:
    """Measure all pairs closer than a threshold, and return their number.

    Args:
        out: rows in increasing order of pairs, filled.
    """
    radii, kinds, count = shapes.radii, shapes.kinds, 0
    selective = 0.0 < threshold < np.inf
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        x, y, z = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1], p[i, 2] - p[j, 2]
        # Bounding spheres.
        apart = radii[i] + radii[j] + threshold
        if apart <= 0.0 or x * x + y * y + z * z >= apart * apart:
            continue
        # Boxes only pay off for solids, which take long to measure.
        slow = selective and (kinds[i] > CAPSULE or kinds[j] > CAPSULE)
        if slow and (boxes_apart(shapes, R, p, i, j, threshold) or boxes_apart(shapes, R, p, j, i, threshold)):
            continue
        d, n, x1, x2 = pair_distance(shapes, R, p, i, j)
        if d >= threshold:
            continue
        put_row(out, count, k, d, n, x1, x2)
        count += 1
    return count


class CollisionPairs:
    """Pairs of shapes of one mechanism, with memory.

    Call `place` first; results are copies.
    """

    def __init__(self, shapes: ShapeArrays, pairs: np.ndarray, ancestor_mask: np.ndarray) -> None:
        """Allocate the memory.

        Args:
            ancestor_mask: as `Robot.ancestor_mask` (njoints, nv).
        """
        self.shapes, self.pairs = shapes, np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)
        count = len(shapes.kinds)
        self.R, self.p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        self.joints = Packed(pair_joints(shapes.joint, self.pairs, ancestor_mask))
        self._out = PairsFound.buffer(len(self.pairs))

    def place(self, joint_R: np.ndarray, joint_p: np.ndarray) -> None:
        """Move the shapes to the joint poses.

        Args:
            joint_R: world rotations (J, 3, 3), C-contiguous.
            joint_p: world origins (J, 3) [m], C-contiguous.
        """
        shape_poses(joint_R, joint_p, self.shapes, self.R, self.p)

    def near(self, threshold: float) -> NearPairs:
        """Return the pairs closer than a threshold [m]."""
        count = pair_distances(self.shapes, self.R, self.p, self.pairs, threshold, self._out)
        return NearPairs(self._out.first(count), self.joints)

    def all_distances(self) -> np.ndarray:
        """Return the signed distance of every pair (P,) [m]."""
        pair_distances(self.shapes, self.R, self.p, self.pairs, np.inf, self._out)
        return self._out.distance.copy()


def pair_joints(joint: np.ndarray, pairs: np.ndarray, ancestor_mask: np.ndarray) -> PairJoints:
    """Return the joints of pairs."""
    first, second = (np.ascontiguousarray(joint[pairs[:, k]], dtype=np.int64) for k in (0, 1))
    return PairJoints(first, second, np.ascontiguousarray(ancestor_mask, dtype=float))
