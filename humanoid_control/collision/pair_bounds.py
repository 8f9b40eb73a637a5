"""Pairs of shapes watched from tick to tick: a lower bound of every distance, so that few have to be measured.

A pair whose bound is far enough is left out; `reach_of` says how far that is where the bodies move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairsFound, pair_distance, put_row
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I2


class PairBounds(NamedTuple):
    """Pairs whose distances are bounded from below while the joints move.

    Attributes:
        pairs: (P, 2) indices of shapes.
        motion_bound: (n, P) bound on |d distance / d joint| in every posture [m/rad], 1 for a sliding joint.
        joints: (n,) joints at the last update [rad, m].
        lower: (P,) no pair is closer than this [m]; exact for those that were found to be near.
        travel: (P,) memory.
    """

    pairs: I2
    motion_bound: F2
    joints: F1
    lower: F1
    travel: F1


class PairReach(NamedTuple):
    """How far off pairs matter that close as fast as their bodies move now.

    Attributes:
        twist: (J, 6) of `joint_twists`; (0, 6): all pairs matter from their activation distances on.
        least: a pair matters at this distance at least [m]. margin: what is kept [m].
        per_speed: distance above the margin for each m/s of closing [s].
        share: of a pair's activation distance above the margin, which is added to it.
    """

    twist: F2
    least: float
    margin: float
    per_speed: float
    share: float


@inlined
def reach_of(reach: PairReach, shapes: ShapeArrays, p: np.ndarray, i: int, j: int, activation: float) -> float:
    """Distance [m] from which a pair of shapes matters: its activation distance, or less.

    Along the line between its two nearest points a pair closes as fast as one body moves against the other at either of
    them. Inside a bounding sphere that is at most the speed at its centre and that of turning about it.
    """
    a, b, k = shapes.joint[i], shapes.joint[j], i if shapes.radii[i] < shapes.radii[j] else j
    t, x, y, z = reach.twist, p[k, 0], p[k, 1], p[k, 2]
    wx, wy, wz = t[a, 3] - t[b, 3], t[a, 4] - t[b, 4], t[a, 5] - t[b, 5]
    vx = t[a, 0] - t[b, 0] + wy * z - wz * y
    vy = t[a, 1] - t[b, 1] + wz * x - wx * z
    vz = t[a, 2] - t[b, 2] + wx * y - wy * x
    turning = np.sqrt(wx * wx + wy * wy + wz * wz) * shapes.radii[k]
    speed = np.sqrt(vx * vx + vy * vy + vz * vz) + turning
    need = reach.margin + reach.per_speed * speed + reach.share * (activation - reach.margin)
    return min(activation, max(reach.least, need))


@kernel
def fill_travel(motion_bound: np.ndarray, moved: np.ndarray, out: np.ndarray) -> None:
    """Bounds (P,) on the changes of all distances [m] while the joints move by as much (n,), either way.

    Joint by joint: the processor takes several pairs at once.
    """
    for k in range(out.shape[0]):
        out[k] = 0.0
    for c in range(moved.shape[0]):
        m = abs(moved[c])
        if m != 0.0:
            for k in range(out.shape[0]):
                out[k] += motion_bound[c, k] * m


@kernel
def lower_bounds(bounds: PairBounds, joints: np.ndarray) -> None:
    """Lower the bounds by what the motion to `joints` (n,) may have taken of every distance."""
    moved, lower, travel = np.empty(joints.shape[0]), bounds.lower, bounds.travel
    for c in range(joints.shape[0]):
        moved[c] = joints[c] - bounds.joints[c]
        bounds.joints[c] = joints[c]
    fill_travel(bounds.motion_bound, moved, travel)
    for k in range(lower.shape[0]):
        lower[k] -= travel[k]


@kernel
def lower_bounds_and_needs(bounds: PairBounds, joints: np.ndarray, need: np.ndarray, needed: np.ndarray) -> None:
    """As `lower_bounds`, and the sums `needed` (P,) of all motion bounds times `need` (n,): one pass for both."""
    b, lower, travel = bounds.motion_bound, bounds.lower, bounds.travel
    for k in range(lower.shape[0]):
        travel[k] = needed[k] = 0.0
    for c in range(joints.shape[0]):
        m, e = abs(joints[c] - bounds.joints[c]), need[c]
        bounds.joints[c] = joints[c]
        if m != 0.0 or e != 0.0:
            for k in range(lower.shape[0]):
                travel[k] += b[c, k] * m
                needed[k] += b[c, k] * e
    for k in range(lower.shape[0]):
        lower[k] -= travel[k]


@kernel
def update_pairs(
    shapes: ShapeArrays,
    R: np.ndarray,
    p: np.ndarray,
    bounds: PairBounds,
    activation: np.ndarray,
    reach: PairReach,
    out: PairsFound,
) -> int:
    """Exact signed distances of the pairs closer than each one's activation distance, and near enough to matter.

    Args:
        shapes: all of them. R, p: (S, 3, 3), (S, 3) from `shape_poses`.
        bounds: `lower` of the pairs found, and of those whose bound had to be renewed, is replaced by the distance, or
            by that of the bounding spheres.
        activation: (P,) [m]. reach: from where a pair matters.
        out: room for P rows, filled; pairs rise.

    Returns:
        the number of rows that are filled.
    """
    pairs, lower, radii, count = bounds.pairs, bounds.lower, shapes.radii, 0
    moving = reach.twist.shape[0] > 0
    for k in range(pairs.shape[0]):
        far = activation[k]
        if lower[k] >= far:
            continue
        i, j = pairs[k, 0], pairs[k, 1]
        if moving:
            far = reach_of(reach, shapes, p, i, j, far)
            if lower[k] >= far:
                continue
        x, y, z = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1], p[i, 2] - p[j, 2]
        gap = np.sqrt(x * x + y * y + z * z) - radii[i] - radii[j]
        if gap >= far:
            lower[k] = gap
            continue
        d, n, x1, x2 = pair_distance(shapes, R, p, i, j)
        lower[k] = d
        if d >= far:
            continue
        put_row(out, count, k, d, n, x1, x2)
        count += 1
    return count
