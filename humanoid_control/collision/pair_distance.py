"""Where the shapes of a mechanism are in the world.

Also here:

* All near pairs of a set of shapes in one call: the kernel for a real-time loop.
* Pairs watched from tick to tick: measured only where they may have come near, with a lower bound for the others.
* The kernels with their arrays: shapes placed once, then asked for near pairs, all distances, or the source's test.
"""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.coal_backend import NearPairs
from humanoid_control.collision.convex_distance import solid_solid
from humanoid_control.collision.primitive_distance import capsule_capsule, segment_solid
from humanoid_control.collision.shapes import CAPSULE, ShapeArrays
from humanoid_control.numerics.vec3 import Vec, along, kernel, mul, rotate, row, sub, unrotate

# -------- Where the shapes of a mechanism are in the world


@kernel
def shape_poses(
    joint_R: np.ndarray,
    joint_p: np.ndarray,
    shape_joint: np.ndarray,
    R_local: np.ndarray,
    p_local: np.ndarray,
    out_R: np.ndarray,
    out_p: np.ndarray,
) -> None:
    """Poses of all shapes in the world.

    Args:
        joint_R, joint_p: (J, 3, 3), (J, 3) poses of the joints' frames in the world.
        shape_joint, R_local, p_local: `joint`, `R`, `p` of ShapeArrays.
        out_R, out_p: (S, 3, 3), (S, 3), filled.
    """
    for s in range(shape_joint.shape[0]):
        j = shape_joint[s]
        for r in range(3):
            a, b, c = joint_R[j, r, 0], joint_R[j, r, 1], joint_R[j, r, 2]
            for k in range(3):
                out_R[s, r, k] = a * R_local[s, 0, k] + b * R_local[s, 1, k] + c * R_local[s, 2, k]
            out_p[s, r] = joint_p[j, r] + a * p_local[s, 0] + b * p_local[s, 1] + c * p_local[s, 2]


# -------- All near pairs of a set of shapes in one call: the kernel for a real-time loop


@kernel
def swept_solid(
    size1: np.ndarray, R1: np.ndarray, p1: Vec, kind2: int, size2: np.ndarray, R2: np.ndarray, p2: Vec
) -> tuple:
    """(d, n, x1, x2) of a sphere or capsule and a solid; n points from the swept sphere to the solid."""
    axis = mul(size1[3], (R1[0, 2], R1[1, 2], R1[2, 2]))
    a, u = unrotate(R2, sub(p1, p2)), unrotate(R2, axis)
    d, n, s = segment_solid(kind2, size2[0], size2[1], size2[2], size2[3], a, u)
    n = mul(-1.0, rotate(R2, n))
    core = along(p1, s, axis)
    return d - size1[0], n, along(core, size1[0], n), along(core, d, n)


@kernel
def pair_distance(kinds: np.ndarray, sizes: np.ndarray, R: np.ndarray, p: np.ndarray, i: int, j: int) -> tuple:
    """Signed distance of shapes i and j, exact.

    Negative inside: how deep the core of a swept sphere, plus its radius, lies in the other shape; for two other
    solids the shortest translation that takes them apart. Both are the same until the core itself is deep inside.

    Args:
        kinds, sizes: of ShapeArrays.
        R, p: (S, 3, 3), (S, 3) poses of the shapes in the world.

    Returns:
        (d, n, x1, x2): d [m]; n the unit normal from shape i to shape j, d's gradient by a motion of shape j (minus
        that of shape i); x1, x2 the witness points on their surfaces, with x2 = x1 + d n.
    """
    swept1, swept2 = kinds[i] <= CAPSULE, kinds[j] <= CAPSULE
    pi, pj = row(p, i), row(p, j)
    if swept1 and swept2:
        u = mul(sizes[i, 3], (R[i, 0, 2], R[i, 1, 2], R[i, 2, 2]))
        w = mul(sizes[j, 3], (R[j, 0, 2], R[j, 1, 2], R[j, 2, 2]))
        return capsule_capsule(pi, u, sizes[i, 0], pj, w, sizes[j, 0])
    if swept1:
        return swept_solid(sizes[i], R[i], pi, kinds[j], sizes[j], R[j], pj)
    if swept2:
        d, n, x2, x1 = swept_solid(sizes[j], R[j], pj, kinds[i], sizes[i], R[i], pi)
        return d, mul(-1.0, n), x1, x2
    return solid_solid(kinds[i], sizes[i], R[i], pi, kinds[j], sizes[j], R[j], pj)


@kernel
def pair_distances(
    kinds: np.ndarray,
    sizes: np.ndarray,
    R_world: np.ndarray,
    p_world: np.ndarray,
    centers: np.ndarray,
    radii: np.ndarray,
    pairs: np.ndarray,
    threshold: float,
    out_pair: np.ndarray,
    out_distance: np.ndarray,
    out_normal: np.ndarray,
    out_x1: np.ndarray,
    out_x2: np.ndarray,
) -> int:
    """Exact signed distances of all pairs closer than a threshold.

    A pair whose bounding spheres are farther apart than the threshold is left out without being measured.

    Args:
        kinds, sizes, radii: of ShapeArrays.
        R_world, p_world: (S, 3, 3), (S, 3) poses of the shapes, from `shape_poses`.
        centers: (S, 3) centres of the bounding spheres in the world: p_world itself for ShapeArrays.
        pairs: (P, 2) indices of shapes.
        threshold: [m].
        out_pair: (P,) filled: rows of `pairs`, rising.
        out_distance, out_normal, out_x1, out_x2: (P,), (P, 3) filled: as `pair_distance` returns them.

    Returns:
        how many rows of the outputs are filled.
    """
    count = 0
    for k in range(pairs.shape[0]):
        i, j = pairs[k, 0], pairs[k, 1]
        x, y, z = centers[i, 0] - centers[j, 0], centers[i, 1] - centers[j, 1], centers[i, 2] - centers[j, 2]
        reach = radii[i] + radii[j] + threshold
        if reach <= 0.0 or x * x + y * y + z * z >= reach * reach:
            continue
        d, n, x1, x2 = pair_distance(kinds, sizes, R_world, p_world, i, j)
        if d >= threshold:
            continue
        out_pair[count], out_distance[count] = k, d
        for c in range(3):
            out_normal[count, c], out_x1[count, c], out_x2[count, c] = n[c], x1[c], x2[c]
        count += 1
    return count


# -------- Pairs watched from tick to tick: measured only where they may have come near


@kernel
def watch_pairs(
    kinds: np.ndarray,
    sizes: np.ndarray,
    R: np.ndarray,
    p: np.ndarray,
    radii: np.ndarray,
    pairs: np.ndarray,
    reach: np.ndarray,
    lower: np.ndarray,
    out_pair: np.ndarray,
    out_distance: np.ndarray,
    out_normal: np.ndarray,
    out_x1: np.ndarray,
    out_x2: np.ndarray,
) -> int:
    """Exact signed distances of the pairs closer than each one's reach.

    Args:
        kinds, sizes, radii: of ShapeArrays. R, p: (S, 3, 3), (S, 3) from `shape_poses`. pairs: (P, 2).
        reach: (P,) [m].
        lower: (P,) bounds that the distances are known not to be below; those found to be in reach, and those whose
            bound had to be renewed, are replaced by the distance, or by that of the bounding spheres.
        out_pair, out_distance, out_normal, out_x1, out_x2: (P,), (P, 3) filled as by `pair_distances`.

    Returns:
        how many rows of the outputs are filled.
    """
    count = 0
    for k in range(pairs.shape[0]):
        if lower[k] >= reach[k]:
            continue
        i, j = pairs[k, 0], pairs[k, 1]
        x, y, z = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1], p[i, 2] - p[j, 2]
        gap = np.sqrt(x * x + y * y + z * z) - radii[i] - radii[j]
        if gap >= reach[k]:
            lower[k] = gap
            continue
        d, n, x1, x2 = pair_distance(kinds, sizes, R, p, i, j)
        lower[k] = d
        if d >= reach[k]:
            continue
        out_pair[count], out_distance[count] = k, d
        for c in range(3):
            out_normal[count, c], out_x1[count, c], out_x2[count, c] = n[c], x1[c], x2[c]
        count += 1
    return count


@kernel
def approach_bounds(lever: np.ndarray, moved: np.ndarray, lower: np.ndarray) -> None:
    """Lower the bounds (P,) by what motion may have taken: lever (P, n) times the joints' ways |moved| (n,)."""
    for k in range(lever.shape[0]):
        s = 0.0
        for c in range(lever.shape[1]):
            s += lever[k, c] * abs(moved[c])
        lower[k] -= s


# -------- The kernels with their arrays: shapes placed once, then asked for near pairs, all distances


class ShapePairs:
    """Pairs of shapes of one mechanism, with all memory that measuring them takes.

    Call `place` with the poses of the joints, then the other methods; what they return is a copy.
    """

    def __init__(self, shapes: ShapeArrays, pairs: np.ndarray) -> None:
        """Prepare.

        Args:
            shapes: from `robots.geometry.shape_arrays`.
            pairs: (P, 2) indices of shapes, such as `Robot.pairs`.
        """
        self.shapes, self.pairs = shapes, np.ascontiguousarray(pairs, dtype=np.int64).reshape(-1, 2)
        count, rows = len(shapes), len(self.pairs)
        self.R, self.p = np.tile(np.eye(3), (count, 1, 1)), np.zeros((count, 3))
        self._pair, self._distance = np.empty(rows, dtype=np.int64), np.empty(rows)
        self._normal, self._x1, self._x2 = (np.empty((rows, 3)) for _ in range(3))

    def place(self, joint_R: np.ndarray, joint_p: np.ndarray) -> None:
        """Move the shapes to where the joints are.

        Args:
            joint_R, joint_p: (J, 3, 3), (J, 3) poses of the joints in the world, C-contiguous floats.
        """
        s = self.shapes
        shape_poses(joint_R, joint_p, s.joint, s.R, s.p, self.R, self.p)

    def near(self, threshold: float) -> NearPairs:
        """The pairs closer than a threshold [m], exact."""
        n = self._measure(threshold)
        rows = (self._pair, self._distance, self._x1, self._x2, self._normal)
        pair, distance, x1, x2, normal = (a[:n].copy() for a in rows)
        return NearPairs(pair, distance, x1, x2, normal)

    def all_distances(self) -> np.ndarray:
        """Signed distance (P,) of every pair [m], exact."""
        self._measure(np.inf)
        return self._distance.copy()

    def _measure(self, threshold: float) -> int:
        s, rows = self.shapes, (self._pair, self._distance, self._normal, self._x1, self._x2)
        return pair_distances(s.kinds, s.sizes, self.R, self.p, self.p, s.radii, self.pairs, threshold, *rows)
