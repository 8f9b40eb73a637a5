"""Plane geometry of footsteps: headings, arcs, sole distances."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin


def planar_exp(d: np.ndarray) -> pin.SE3:
    """Return the planar motion of a constant velocity, d (3,) forward, sideways [m], turn [rad]: an arc."""
    x, y, a = float(d[0]), float(d[1]), float(d[2])
    s, c = (np.sin(a) / a, (1 - np.cos(a)) / a) if abs(a) > 1e-9 else (1.0, 0.5 * a)
    R = np.array([[np.cos(a), -np.sin(a), 0.0], [np.sin(a), np.cos(a), 0.0], [0.0, 0.0, 1.0]])
    return pin.SE3(R, np.array([s * x - c * y, c * x + s * y, 0.0]))


def yaw_of(X: pin.SE3) -> float:
    """Return the heading of a pose [rad]."""
    return float(np.arctan2(X.rotation[1, 0], X.rotation[0, 0]))


def planar(X: pin.SE3) -> pin.SE3:
    """Return the pose made upright, with the same place and heading."""
    return pin.SE3(pin.exp3(np.array([0.0, 0.0, yaw_of(X)])), X.translation)


def middle_of(feet: Sequence[pin.SE3]) -> pin.SE3:
    """Return the upright pose in the middle of both soles, with their mean heading."""
    x, y = feet[0].rotation[:2, 0] + feet[1].rotation[:2, 0]
    R = pin.exp3(np.array([0.0, 0.0, np.arctan2(y, x)]))
    return pin.SE3(R, 0.5 * (feet[0].translation + feet[1].translation))


def polygon_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the distance of two convex polygons (k, 2), counter-clockwise; 0 if they overlap [m]."""
    apart = 0.0
    # separating axes: the normals of all edges
    for one, other in ((a, b), (b, a)):
        edge = np.roll(one, -1, axis=0) - one
        normal = np.column_stack([edge[:, 1], -edge[:, 0]]) / np.linalg.norm(edge, axis=1)[:, None]
        depth = ((other[None] - one[:, None]) * normal[:, None]).sum(axis=2)  # (edges of one, corners of the other)
        apart = max(apart, float(depth.min(axis=1).max()))
    if apart <= 0.0:
        return 0.0
    return min(_corner_distance(a, b), _corner_distance(b, a))


def _corner_distance(corners: np.ndarray, polygon: np.ndarray) -> float:
    d = np.roll(polygon, -1, axis=0) - polygon
    off = corners[:, None] - polygon[None]
    s = np.clip((off * d).sum(axis=2) / (d * d).sum(axis=1), 0.0, 1.0)
    return float(np.sqrt(((off - s[..., None] * d) ** 2).sum(axis=2).min()))


def arc_of(d: np.ndarray) -> np.ndarray:
    """Return the arc displacement (2,) that ends at d (3,): inverse of `planar_exp`."""
    a = float(d[2])
    if abs(a) < 1e-9:
        return d[:2]
    s, c = np.sin(a) / a, (1 - np.cos(a)) / a
    return np.linalg.solve(np.array([[s, -c], [c, s]]), d[:2])


def at_height_of(X_goal: pin.SE3, X_from: pin.SE3) -> pin.SE3:
    """Return the goal at the height of `X_from`."""
    return pin.SE3(X_goal.rotation, np.array([*X_goal.translation[:2], X_from.translation[2]]))
