"""Where a posture puts the tracked points and the collision shapes, and how they move with the joints."""

from __future__ import annotations

import numpy as np

from humanoid_control.collision.pair_distances import pair_distances
from humanoid_control.collision.shape_poses import shape_poses
from humanoid_control.imitation.arrays import Problem, Scratch
from humanoid_control.jit import kernel
from humanoid_control.robots.moving_tree import add_point_row, body_poses


@kernel
def place_points(problem: Problem, x: np.ndarray, w: Scratch) -> None:
    """Bodies, axes and tracked points (`w.points`) at the coordinates x (D,)."""
    body_poses(problem.tree, x, w.R, w.p, w.axes)
    for k in range(problem.point.shape[0]):
        b = problem.point_body[k]
        for i in range(3):
            w.points[k, i] = (
                w.p[b, i]
                + w.R[b, i, 0] * problem.point[k, 0]
                + w.R[b, i, 1] * problem.point[k, 1]
                + w.R[b, i, 2] * problem.point[k, 2]
            )


@kernel
def point_jacobian(problem: Problem, w: Scratch, J: np.ndarray) -> None:
    """Jacobian (3 K, D) of the tracked points, after `place_points`."""
    J[:] = 0.0
    for k in range(problem.point.shape[0]):
        at = (w.points[k, 0], w.points[k, 1], w.points[k, 2])
        b = problem.point_body[k]
        add_point_row(problem.tree, b, at, (1.0, 0.0, 0.0), 1.0, w.p, w.axes, J[3 * k])
        add_point_row(problem.tree, b, at, (0.0, 1.0, 0.0), 1.0, w.p, w.axes, J[3 * k + 1])
        add_point_row(problem.tree, b, at, (0.0, 0.0, 1.0), 1.0, w.p, w.axes, J[3 * k + 2])


@kernel
def near_pairs(problem: Problem, w: Scratch, threshold: float) -> int:
    """Measure the pairs closer than a threshold, after `place_points`; returns how many rows of `w.near` ... count."""
    if problem.pairs.shape[0] == 0:
        return 0
    shape_poses(w.R, w.p, problem.shape_body, problem.shape_R, problem.shape_p, w.shape_R, w.shape_p)
    return pair_distances(
        problem.kinds,
        problem.sizes,
        w.shape_R,
        w.shape_p,
        w.shape_p,
        problem.radii,
        problem.pairs,
        threshold,
        w.near,
        w.distance,
        w.normal,
        w.x1,
        w.x2,
    )


@kernel
def distance_rows(problem: Problem, w: Scratch, count: int, G: np.ndarray) -> None:
    """Gradients (count, D) of the near pairs' distances, after `near_pairs`."""
    for k in range(count):
        G[k, :] = 0.0
        i, j = problem.pairs[w.near[k], 0], problem.pairs[w.near[k], 1]
        n = (w.normal[k, 0], w.normal[k, 1], w.normal[k, 2])
        on_1, on_2 = (w.x1[k, 0], w.x1[k, 1], w.x1[k, 2]), (w.x2[k, 0], w.x2[k, 1], w.x2[k, 2])
        add_point_row(problem.tree, problem.shape_body[j], on_2, n, 1.0, w.p, w.axes, G[k])
        add_point_row(problem.tree, problem.shape_body[i], on_1, n, -1.0, w.p, w.axes, G[k])


@kernel
def closest(w: Scratch, count: int, none: float) -> float:
    """The least of the near distances; `none` where there are none."""
    d = none
    for k in range(count):
        d = min(d, w.distance[k])
    return d


@kernel
def mean_error(w: Scratch, target: np.ndarray, out: np.ndarray) -> float:
    """Distances (7,) of the first points to their targets [m], after `place_points`; their mean."""
    total = 0.0
    for k in range(out.shape[0]):
        e = 0.0
        for i in range(3):
            e += (target[k, i] - w.points[k, i]) ** 2
        out[k] = np.sqrt(e)
        total += out[k]
    return total / out.shape[0]
