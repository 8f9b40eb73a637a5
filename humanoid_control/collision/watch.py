"""Pairs watched from tick to tick: measured only where they may have come near, with a lower bound for the others."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.jit import kernel
from humanoid_control.collision.pair_distances import pair_distance


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
