"""How far a joint can move one shape of a pair against the other: levers that hold in every posture."""

from __future__ import annotations

import numpy as np

from humanoid_control.robots.geometry import half_axes, shape_arrays
from humanoid_control.robots.moving_tree import joint_axis
from humanoid_control.robots.robot import Robot

STROKE = 1.5  # a sliding joint may be this many times as far out as its range goes


def pair_levers(robot: Robot) -> np.ndarray:
    """Bounds (P, nv) on |d distance / d v|, one row a pair of `robot.pairs`, the same for all postures.

    A point of a shape is no farther from a joint's axis than the way along the links to it, each taken straight. So
    whatever the joints do, the distance of a pair changes by no more than the sum of lever times angle turned (for a
    joint that slides: of the way). Joints that carry both shapes, and a floating base, have the lever 0.

    Returns:
        [m/rad], or 1 for a sliding joint.
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
        while j >= first:
            out[s, model.joints[j].idx_v] = 1.0 if slides[j] else far
            far += float(np.linalg.norm(model.jointPlacements[j].translation)) + stroke[j]
            j = parents[j]
    a, b = robot.pairs[:, 0], robot.pairs[:, 1]
    return np.where((out[a] > 0) != (out[b] > 0), out[a] + out[b], 0.0)


def _farthest(p: np.ndarray, R: np.ndarray, size: tuple[float, float, float, float]) -> float:
    """Distance from a joint's origin to the farthest corner of a shape's box, at p with axes R and half axes there."""
    x, y, z = size[0], size[1], size[2] + size[3]
    corners = [p + R @ np.array([i * x, j * y, k * z]) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)]
    return max(float(np.linalg.norm(c)) for c in corners)
