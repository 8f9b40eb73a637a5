"""All near pairs of a set of shapes in one call: the kernel for a real-time loop."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import Vec, along, kernel, mul, rotate, row, sub, unrotate
from humanoid_control.collision.segment_distance import capsule_capsule, segment_solid
from humanoid_control.collision.shape_arrays import CAPSULE
from humanoid_control.collision.solid_distance import solid_solid


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
