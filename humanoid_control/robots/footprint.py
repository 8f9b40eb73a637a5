"""Footprint of a standing robot for path planners: convex outline of soles and collision shapes."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.spatial import ConvexHull

from humanoid_control.robots.robot import Robot


def footprint_polygon(robot: Robot, posture: str = "neutral") -> np.ndarray:
    """Return the outline corners (K, 2), anticlockwise, in `base_footprint` of REP 120 [m].

    The outline uses bounding boxes of shapes, hence is conservative. It overwrites the robot's data.

    Raises:
        ValueError: if the robot has fewer than two soles.
    """
    if not robot.has_feet:
        raise ValueError(f"{robot.name} does not have two soles: no frame base_footprint")
    model, data, geometry = robot.model, robot.data, robot.geometry
    shapes = geometry.createData()
    pin.updateGeometryPlacements(model, data, geometry, shapes, robot.q(posture))
    pin.updateFramePlacements(model, data)
    soles = [data.oMf[model.getFrameId(f.link)].act(c) for f in robot.feet for c in f.corners()]
    middles = [data.oMf[model.getFrameId(f.link)].act(f.corners().mean(axis=0)) for f in robot.feet[:2]]
    points = [np.array(soles)]
    for k, one in enumerate(geometry.geometryObjects):
        one.geometry.computeLocalAABB()
        box = one.geometry.aabb_local
        low, high = np.array(box.min_), np.array(box.max_)
        corners = np.array([[x, y, z] for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])])
        points.append(corners @ shapes.oMg[k].rotation.T + shapes.oMg[k].translation)
    flat = np.concatenate(points)[:, :2] - np.mean(middles, axis=0)[:2]
    forward = data.oMf[model.getFrameId(robot.root_link)].rotation[:2, 0]
    c, s = forward / np.linalg.norm(forward)
    flat = flat @ np.array([[c, -s], [s, c]])
    return np.asarray(flat[ConvexHull(flat).vertices])
