"""Pairs of shapes that joint speeds would bring too near within a horizon.

All pairs of two links share one bound on their motion, so a step without danger looks at pairs of links only, and
places and measures no shape.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from humanoid_control.collision.pair_bounds import PairReach, reach_of
from humanoid_control.collision.pair_distance import PairsFound, boxed_distance, pair_distance, put_row, shape_pose
from humanoid_control.collision.shapes import ShapeArrays
from humanoid_control.compiled.array_types import F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import inlined, kernel
from humanoid_control.kinematics.forward_kinematics import ModelTree, WorldPoses, joint_poses, joint_twists
from humanoid_control.robots.robot import Robot
from humanoid_control.robots.self_collision import ShapePairs

SLACK = 1e-6  # [m] round-off of a distance
FAR = 1e6  # [m] of travel after which bounds are measured again, before it costs digits


class ClosingPairs(NamedTuple):
    """Shapes, pairs grouped by two links, and lower bounds of their distances.

    Attributes:
        pairs: (P, 2) shapes, group by group.
        place: (P,) index of a pair in `Robot.pairs`.
        first: (G + 1,) first pair of each group.
        links: (G, 2) joints that carry the shapes of each group.
        ball: (njoints, 4) centre, joint frame, and radius of a ball around the shapes of each joint [m].
        path: joints between the links, group by group.
        path_first: (G + 1,) first entry of each group in `path`.
        path_bound: largest |d distance / d joint| of its pairs in all postures [m/rad].
        travel: (G,) largest possible change of a distance so far [m].
        lower: (P,) bound plus the travel at that time [m]: the bound now is `lower - travel`.
        least: (G,) smallest `lower` of each group [m].
        joints: (n,) of the last step [rad].
        twist: (njoints, 6) memory.
        R: (S, 3, 3) of placed shapes.
        p: (S, 3) [m].
        placed: (S,) step in which a shape was placed.
        step: (1,) number of the step.
    """

    shapes: ShapeArrays
    pairs: I2
    place: I1
    first: I1
    links: I2
    ball: F2
    path: I1
    path_first: I1
    path_bound: F1
    travel: F1
    lower: F1
    least: F1
    joints: F1
    twist: F2
    R: F3
    p: F2
    placed: I1
    step: I1

    @classmethod
    def of(cls, robot: Robot, monitor: ShapePairs | None, ignored: Iterable[int] = ()) -> ClosingPairs:
        """Group the pairs of a robot.

        Args:
            monitor: of its shapes; None: no pairs.
            ignored: indices of pairs to leave out.
        """
        if monitor is None:
            shapes, pairs, bound = ShapeArrays.build([], [], [], [], []), np.zeros((0, 2), int), np.zeros((0, robot.n))
        else:
            shapes, pairs, bound = monitor.shapes, monitor.pairs, monitor.motion_bound[:, robot.iv :]
        kept = np.setdiff1d(np.arange(len(pairs)), np.array(list(ignored), dtype=np.int64))
        links = np.sort(shapes.joint[pairs[kept]], axis=1).reshape(-1, 2)
        names, group = np.unique(links, axis=0, return_inverse=True)
        place = kept[np.argsort(group.ravel(), kind="stable")]
        first = np.concatenate([[0], np.cumsum(np.bincount(group.ravel(), minlength=len(names)))])
        largest = [bound[place[a:b]].max(axis=0) for a, b in itertools.pairwise(first)]
        paths = [np.flatnonzero(row) for row in largest]
        bounds = [row[path] for row, path in zip(largest, paths, strict=True)]
        count, groups, total = len(shapes.kinds), len(names), len(kept)
        return cls(
            shapes,
            np.ascontiguousarray(pairs[place], dtype=np.int64).reshape(-1, 2),
            place.astype(np.int64),
            first.astype(np.int64),
            names.astype(np.int64).reshape(-1, 2),
            _balls(shapes, robot.model.njoints),
            np.concatenate([np.zeros(0), *paths]).astype(np.int64),
            np.concatenate([[0], np.cumsum([len(p) for p in paths])]).astype(np.int64),
            np.concatenate([np.zeros(0), *bounds]),
            np.zeros(groups),
            np.full(total, -np.inf),
            np.full(groups, -np.inf),
            np.zeros(robot.n),
            np.zeros((robot.model.njoints, 6)),
            np.tile(np.eye(3), (count, 1, 1)),
            np.zeros((count, 3)),
            np.full(count, -1, dtype=np.int64),
            np.zeros(1, dtype=np.int64),
        )


def _balls(shapes: ShapeArrays, joints: int) -> np.ndarray:
    """Return `ClosingPairs.ball`."""
    out = np.zeros((joints, 4))
    for j in np.unique(shapes.joint):
        mine = shapes.joint == j
        center = (shapes.p[mine].min(axis=0) + shapes.p[mine].max(axis=0)) / 2
        out[j] = *center, (np.linalg.norm(shapes.p[mine] - center, axis=1) + shapes.radii[mine]).max()
    return out


class Approach(NamedTuple):
    """Pairs that matter: those that may be nearer than a margin after a horizon.

    Attributes:
        horizon: [s].
        margin: [m].
        near: [m] beyond which a pair never matters.
    """

    horizon: float
    margin: float
    near: float


@kernel
def find_closing_pairs(
    tree: ModelTree, poses: WorldPoses, a: ClosingPairs, q: np.ndarray, v: np.ndarray, law: Approach, out: PairsFound
) -> int:
    """Measure the pairs that may come too near; return their number, -1 if no joint had to be placed.

    A superset: each pair with distance + horizon * rate < margin is among them.

    Args:
        q: (nq,); may jump between calls.
        v: (nv,) of which only joints count.
        out: rows, group by group, filled.
    """
    n = a.joints.shape[0]
    iq, iv, count = q.shape[0] - n, v.shape[0] - n, -1
    a.step[0] += 1
    for g in range(a.travel.shape[0]):
        moved = speed = 0.0
        for e in range(a.path_first[g], a.path_first[g + 1]):
            j, bound = a.path[e], a.path_bound[e]
            moved += bound * abs(q[iq + j] - a.joints[j])
            speed += bound * abs(v[iv + j])
        a.travel[g] += moved
        far = min(law.near, law.margin + SLACK + law.horizon * speed)
        if a.least[g] - a.travel[g] >= far:
            continue
        if count < 0:
            joint_poses(tree, q, poses)
            joint_twists(tree, poses, v, a.twist)
            count = 0
        far = min(far, law.margin + SLACK + law.horizon * _largest_speed(poses, a, g))
        if a.least[g] - a.travel[g] < far:
            count = _measure_group(poses, a, g, far, law, count, out)
    for j in range(n):
        a.joints[j] = q[iq + j]
    return count


@inlined
def _largest_speed(poses: WorldPoses, a: ClosingPairs, g: int) -> float:
    """Return a bound on the closing speed of all pairs of a group [m/s], as `reach_of` does for one pair."""
    i, j = a.links[g, 0], a.links[g, 1]
    k = i if a.ball[i, 3] < a.ball[j, 3] else j
    t, R, b = a.twist, poses.R[k], a.ball[k]
    x = poses.p[k, 0] + R[0, 0] * b[0] + R[0, 1] * b[1] + R[0, 2] * b[2]
    y = poses.p[k, 1] + R[1, 0] * b[0] + R[1, 1] * b[1] + R[1, 2] * b[2]
    z = poses.p[k, 2] + R[2, 0] * b[0] + R[2, 1] * b[1] + R[2, 2] * b[2]
    wx, wy, wz = t[i, 3] - t[j, 3], t[i, 4] - t[j, 4], t[i, 5] - t[j, 5]
    vx = t[i, 0] - t[j, 0] + wy * z - wz * y
    vy = t[i, 1] - t[j, 1] + wz * x - wx * z
    vz = t[i, 2] - t[j, 2] + wx * y - wy * x
    return np.sqrt(vx * vx + vy * vy + vz * vz) + np.sqrt(wx * wx + wy * wy + wz * wz) * b[3]


@inlined
def _measure_group(
    poses: WorldPoses, a: ClosingPairs, g: int, far: float, law: Approach, count: int, out: PairsFound
) -> int:
    """Measure the pairs of a group whose bounds are below `far` [m]; return the number of rows."""
    shapes, R, p, travel = a.shapes, a.R, a.p, a.travel[g]
    reach = PairReach(a.twist, 0.0, law.margin + SLACK, law.horizon)
    if not travel < FAR:
        travel = a.travel[g] = 0.0
        for k in range(a.first[g], a.first[g + 1]):
            a.lower[k] = -np.inf
    least = np.inf
    for k in range(a.first[g], a.first[g + 1]):
        if a.lower[k] - travel < far:
            i, j = a.pairs[k, 0], a.pairs[k, 1]
            for s in (i, j):
                if a.placed[s] != a.step[0]:
                    a.placed[s] = a.step[0]
                    shape_pose(poses.R, poses.p, shapes, s, R, p)
            # cheapest test first: closing speed, bounding spheres, boxes, exact distance
            need = reach_of(reach, shapes, p, i, j, far)
            if a.lower[k] - travel < need:
                x, y, z = p[i, 0] - p[j, 0], p[i, 1] - p[j, 1], p[i, 2] - p[j, 2]
                d = np.sqrt(x * x + y * y + z * z) - shapes.radii[i] - shapes.radii[j]
                if d < need:
                    d = max(d, boxed_distance(shapes, R, p, i, j))
                if d < need:
                    d, normal, x1, x2 = pair_distance(shapes, R, p, i, j)
                    if d < need:
                        put_row(out, count, a.place[k], d, normal, x1, x2)
                        count += 1
                a.lower[k] = d + travel
        least = min(least, a.lower[k])
    a.least[g] = least
    return count
