"""Pairs of shapes watched from tick to tick: a lower bound of every distance, so that few have to be measured.

A pair whose bound is far enough is left out; `reach_of` says how far that is where the bodies move.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairsFound, boxed_distance, pair_distance, put_row
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.jit import inlined, kernel
from humanoid_control.numerics.array_types import F1, F2, I1, I2
from humanoid_control.numerics.vec3 import Vec, add, cross, dot, row

UNSEEN, PASSED_OVER, FOUND = range(3)
SLACK = 0.5  # [m/s] faster than it closes now: what accelerates a little need not be looked at again


class PairBounds(NamedTuple):
    """Pairs whose distances are bounded from below while the joints move.

    Attributes:
        pairs: (P, 2) indices of shapes.
        common: (P,) last joint that carries both, 0 where none does.
        motion_bound: (n, P) bound on |d distance / d joint| in every posture [m/rad], 1 for a sliding joint.
        joints: (n,) joints at the last update [rad, m].
        lower: (P,) no pair is closer than this [m]; exact for those that were measured.
        travel: (P,) memory.
        state: (P,) UNSEEN, PASSED_OVER or FOUND by the last update.
        normal: (P, 3) normals of the measured pairs in the world.
        point: (P, 3) witness points on the first shapes of the measured pairs in the world [m].
    """

    pairs: I2
    common: I1
    motion_bound: F2
    joints: F1
    lower: F1
    travel: F1
    state: I1
    normal: F2
    point: F2

    @classmethod
    def of(cls, pairs: np.ndarray, joint: np.ndarray, parent: np.ndarray, motion_bound: np.ndarray) -> PairBounds:
        """Bounds of which nothing is known yet.

        Args:
            pairs: (P, 2) indices of shapes.
            joint: (S,) that carries each.
            parent: (N,) of the joints.
            motion_bound: (n, P).
        """
        count = len(pairs)
        common = np.array([common_joint(parent, int(joint[i]), int(joint[j])) for i, j in pairs], dtype=np.int64)
        lower, joints = np.full(count, -np.inf), np.zeros(len(motion_bound))
        state, points = np.zeros(count, dtype=np.int64), (np.zeros((count, 3)) for _ in range(2))
        return cls(pairs, common, motion_bound, joints, lower, np.empty(count), state, *points)


def common_joint(parent: np.ndarray, i: int, j: int) -> int:
    """The last joint that carries what joints i and j carry; 0, the world, where none does."""
    while i != j:  # a parent has a lower number
        if i > j:
            i = int(parent[i])
        else:
            j = int(parent[j])
    return i


class PairReach(NamedTuple):
    """How far off pairs matter that close as fast as their bodies move now.

    Attributes:
        twist: (J, 6) of `joint_twists`; (0, 6): all pairs matter from their activation distances on.
        least: a pair matters at this distance at least [m].
        margin: what is kept [m].
        per_speed: distance above the margin for each m/s of closing [s].
    """

    twist: F2
    least: float
    margin: float
    per_speed: float


@inlined
def far_enough(reach: PairReach, closing: float, activation: float) -> float:
    """Distance [m] from which a pair matters that closes so fast [m/s]: its activation distance, or less."""
    return min(activation, max(reach.least, reach.margin + reach.per_speed * max(closing, 0.0)))


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
    return far_enough(reach, speed, activation)


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
        shapes: all of them.
        R: (S, 3, 3) rotations of the shapes from `shape_poses`.
        p: (S, 3) origins of the shapes from `shape_poses` [m].
        bounds: `lower` of the pairs found, and of those whose bound had to be renewed, is replaced by the distance, or
            by that of the bounding spheres.
        activation: (P,) [m].
        reach: from where a pair matters.
        out: room for P rows, filled; pairs rise.

    Returns:
        the number of rows that are filled.
    """
    pairs, lower, radii, count = bounds.pairs, bounds.lower, shapes.radii, 0
    moving = reach.twist.shape[0] > 0
    for k in range(pairs.shape[0]):
        bounds.state[k], far = UNSEEN, activation[k]
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
        least = boxed_distance(shapes, R, p, i, j)
        if least >= far:
            lower[k] = least
            continue
        d, n, x1, x2 = pair_distance(shapes, R, p, i, j)
        lower[k] = d
        if moving:
            speed = closing_speed(reach.twist, shapes.joint[i], shapes.joint[j], n, x1)
            far = far_enough(reach, speed + SLACK, np.inf)
        _keep(bounds, k, n, x1)
        if d >= far:
            continue
        bounds.state[k] = FOUND
        put_row(out, count, k, d, n, x1, x2)
        count += 1
    return count


@inlined
def _keep(bounds: PairBounds, k: int, n: Vec, x1: Vec) -> None:
    """Keep of pair k, which has been measured and may be passed over, what says how fast it closes."""
    bounds.state[k] = PASSED_OVER
    bounds.normal[k, 0], bounds.normal[k, 1], bounds.normal[k, 2] = n[0], n[1], n[2]
    bounds.point[k, 0], bounds.point[k, 1], bounds.point[k, 2] = x1[0], x1[1], x1[2]


@kernel
def find_faster_pairs(
    shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, bounds: PairBounds, reach: PairReach, count: int, out: PairsFound
) -> int:
    """Of the pairs that `update_pairs` has passed over in this posture, those that matter at another velocity.

    Args:
        shapes: see `update_pairs`.
        R: see `update_pairs`.
        p: see `update_pairs`.
        bounds: see `update_pairs`.
        reach: with the twists of that velocity.
        count: rows that are filled; the new ones come behind them.

    Returns:
        the number of rows that are filled.
    """
    lower, state = bounds.lower, bounds.state
    for k in range(lower.shape[0]):
        if state[k] == FOUND:
            continue
        i, j = bounds.pairs[k, 0], bounds.pairs[k, 1]
        if state[k] == UNSEEN:
            far = reach_of(reach, shapes, p, i, j, np.inf)
            if lower[k] >= far:
                continue
            x, y, z = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1], p[i, 2] - p[j, 2]
            gap = np.sqrt(x * x + y * y + z * z) - shapes.radii[i] - shapes.radii[j]
            least = gap if gap >= far else boxed_distance(shapes, R, p, i, j)
            if least >= far:
                lower[k] = least
                continue
            lower[k], n, x1, _ = pair_distance(shapes, R, p, i, j)
            _keep(bounds, k, n, x1)
        speed = closing_speed(
            reach.twist, shapes.joint[i], shapes.joint[j], row(bounds.normal, k), row(bounds.point, k)
        )
        if lower[k] < far_enough(reach, speed, np.inf):
            d, n, x1, x2 = pair_distance(shapes, R, p, i, j)
            put_row(out, count, k, d, n, x1, x2)
            state[k] = FOUND
            count += 1
    return count


@inlined
def closing_speed(twist: np.ndarray, a: int, b: int, n: Vec, x: Vec) -> float:
    """Speed [m/s] of joint a's body against joint b's at a point x, along n.

    At both nearest points it is the same: they lie along n from each other.
    """
    w = (twist[a, 3] - twist[b, 3], twist[a, 4] - twist[b, 4], twist[a, 5] - twist[b, 5])
    v = (twist[a, 0] - twist[b, 0], twist[a, 1] - twist[b, 1], twist[a, 2] - twist[b, 2])
    return dot(n, add(v, cross(w, x)))
