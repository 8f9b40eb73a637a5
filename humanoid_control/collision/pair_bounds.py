"""Lower bounds of pair distances from tick to tick, so that few pairs are measured."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_distance import PairsFound, boxed_distance, pair_distance, put_row
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.compiled.array_types import F1, F2, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.numerics.vec3 import Vec, add, cross, dot, row

UNSEEN, PASSED_OVER, FOUND = range(3)
SLACK = 0.5  # [m/s] allowance above the present closing speed, so that slight acceleration needs no new measurement


class PairBounds(NamedTuple):
    """Lower bounds of pair distances while the joints move.

    Attributes:
        common: last common joint (P,), or 0.
        motion_bound: bound on |d distance / d joint| in all postures (n, P) [m/rad].
        lower: lower bounds (P,) [m]; exact for measured pairs.
        state: UNSEEN, PASSED_OVER or FOUND (P,).
        normal: normals of measured pairs, world frame (P, 3).
        point: their witness points on the first shapes, world frame (P, 3) [m].
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
        """Create bounds without information."""
        count = len(pairs)
        common = np.array([common_joint(parent, int(joint[i]), int(joint[j])) for i, j in pairs], dtype=np.int64)
        lower, joints = np.full(count, -np.inf), np.zeros(len(motion_bound))
        state, points = np.zeros(count, dtype=np.int64), (np.zeros((count, 3)) for _ in range(2))
        return cls(pairs, common, motion_bound, joints, lower, np.empty(count), state, *points)


def common_joint(parent: np.ndarray, i: int, j: int) -> int:
    """Return the last common ancestor of two joints; 0 (the world) if none."""
    while i != j:  # parents have lower indices
        if i > j:
            i = int(parent[i])
        else:
            j = int(parent[j])
    return i


class PairReach(NamedTuple):
    """Activation distance of pairs by closing speed.

    Attributes:
        twist: joint twists (J, 6); (0, 6): ignore speeds.
        per_speed: additional distance for each m/s of closing [s].
    """

    twist: F2
    least: float
    margin: float
    per_speed: float


@inlined
def far_enough(reach: PairReach, closing: float, activation: float) -> float:
    """Return the activation distance [m] for a closing speed [m/s]."""
    return min(activation, max(reach.least, reach.margin + reach.per_speed * max(closing, 0.0)))


@inlined
def reach_of(reach: PairReach, shapes: ShapeArrays, p: np.ndarray, i: int, j: int, activation: float) -> float:
    """Return the activation distance [m] of a pair of shapes, at most `activation`.

    A pair closes at most at the relative speed of its bodies at a nearest point: inside a bounding sphere at most the
    speed of its centre plus the rotational part.
    """
    # Use the smaller sphere: its rotational part is smaller.
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
    """Return bounds (P,) on distance changes [m] for joint motions (n,)."""
    for k in range(out.shape[0]):
        out[k] = 0.0
    # Joints outside, pairs inside: the inner loop is vectorised.
    for c in range(moved.shape[0]):
        m = abs(moved[c])
        if m != 0.0:
            for k in range(out.shape[0]):
                out[k] += motion_bound[c, k] * m


@kernel(allocates=True)
def lower_bounds(bounds: PairBounds, joints: np.ndarray) -> None:
    """Lower the bounds by the largest change for a motion to `joints` (n,)."""
    moved, lower, travel = np.empty(joints.shape[0]), bounds.lower, bounds.travel
    # Motion since the last update.
    for c in range(joints.shape[0]):
        moved[c] = joints[c] - bounds.joints[c]
        bounds.joints[c] = joints[c]
    fill_travel(bounds.motion_bound, moved, travel)
    for k in range(lower.shape[0]):
        lower[k] -= travel[k]


@kernel
def lower_bounds_and_needs(bounds: PairBounds, joints: np.ndarray, need: np.ndarray, needed: np.ndarray) -> None:
    """Do `lower_bounds`, and sum motion bounds times `need` (n,) into `needed` (P,)."""
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
    """Measure the pairs near enough to matter, and return their number.

    Args:
        out: rows in increasing order of pairs, filled.
    """
    pairs, lower, radii, count = bounds.pairs, bounds.lower, shapes.radii, 0
    moving = reach.twist.shape[0] > 0
    for k in range(pairs.shape[0]):
        bounds.state[k], far = UNSEEN, activation[k]
        # Cheapest test first: stored bound, closing speed, bounding spheres, boxes, exact distance.
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
            # The exact normal gives the exact closing speed, below the bound of `reach_of`.
            speed = closing_speed(reach.twist, shapes.joint[i], shapes.joint[j], n, x1)
            far = far_enough(reach, speed + SLACK, np.inf)
        _keep(bounds, k, n, x1)
        # Closing too slowly to matter now.
        if d >= far:
            continue
        bounds.state[k] = FOUND
        put_row(out, count, k, d, n, x1, x2)
        count += 1
    return count


@inlined
def _keep(bounds: PairBounds, k: int, n: Vec, x1: Vec) -> None:
    bounds.state[k] = PASSED_OVER
    bounds.normal[k, 0], bounds.normal[k, 1], bounds.normal[k, 2] = n[0], n[1], n[2]
    bounds.point[k, 0], bounds.point[k, 1], bounds.point[k, 2] = x1[0], x1[1], x1[2]


@kernel
def find_faster_pairs(
    shapes: ShapeArrays, R: np.ndarray, p: np.ndarray, bounds: PairBounds, reach: PairReach, count: int, out: PairsFound
) -> int:
    """Add skipped pairs that matter at another velocity, and return the total number.

    Args:
        reach: with twists of the new velocity.
    """
    lower, state = bounds.lower, bounds.state
    for k in range(lower.shape[0]):
        if state[k] == FOUND:
            continue
        i, j = bounds.pairs[k, 0], bounds.pairs[k, 1]
        # Never measured in this posture: same sequence of tests as in `update_pairs`.
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
        # Measure again: the second witness point was not stored.
        if lower[k] < far_enough(reach, speed, np.inf):
            d, n, x1, x2 = pair_distance(shapes, R, p, i, j)
            put_row(out, count, k, d, n, x1, x2)
            state[k] = FOUND
            count += 1
    return count


@inlined
def closing_speed(twist: np.ndarray, a: int, b: int, n: Vec, x: Vec) -> float:
    """Return the speed [m/s] of joint a's body relative to b's at x, along n; equal at both nearest points."""
    w = (twist[a, 3] - twist[b, 3], twist[a, 4] - twist[b, 4], twist[a, 5] - twist[b, 5])
    v = (twist[a, 0] - twist[b, 0], twist[a, 1] - twist[b, 1], twist[a, 2] - twist[b, 2])
    return dot(n, add(v, cross(w, x)))
