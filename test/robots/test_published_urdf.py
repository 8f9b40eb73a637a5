"""The URDF as it is published: commands that the controller calls free of collision are free in it, too."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation.self_collision import self_penetration
from humanoid_control.mocap.load import load_body_points
from humanoid_control.retargeting import retarget_clip
from humanoid_control.retargeting.scaling import scale_to_robot
from humanoid_control.robots import CATALOGUE, MODELS, load_robot
from humanoid_control.robots.description.urdf import parse_urdf
from test.robots_under_test import by_kind


def published_pairs(robot) -> pin.GeometryModel:
    """Collision geometry of the URDF by pinocchio alone, with all pairs of it whose shapes the controller watches."""
    geometry = pin.buildGeomFromUrdfString(robot.model, robot.urdf, pin.GeometryType.COLLISION)
    shape_of: dict[str, str] = {}
    for link in parse_urdf(robot.urdf, robot.name).document.findall("link"):
        for k, e in enumerate(link.findall("collision")):
            shape_of[f"{link.get('name')}_{k}"] = e.get("name", "")
    names = [s.name for s in robot.shapes]
    assert {shape_of[g.name] for g in geometry.geometryObjects} == set(names)
    watched = {frozenset((names[i], names[j])) for i, j in robot.pairs}
    objects = [shape_of[g.name] for g in geometry.geometryObjects]
    for i in range(len(objects)):
        for j in range(i + 1, len(objects)):
            if frozenset((objects[i], objects[j])) in watched:
                geometry.addCollisionPair(pin.CollisionPair(i, j))
    return geometry


@pytest.mark.parametrize("name", by_kind(CATALOGUE + MODELS))
def test_no_command_of_the_dance_touches_in_the_published_urdf(name):
    robot = load_robot(name, "fixed")
    trajectory = retarget_clip(scale_to_robot(load_body_points("dance"), robot), robot)
    geometry, data = published_pairs(robot), robot.model.createData()
    results, least = geometry.createData(), np.inf
    postures = trajectory.positions[::10]
    checked = self_penetration(robot, postures).distance.min(axis=1)
    for joints, clear in zip(postures, checked, strict=True):
        pin.computeDistances(robot.model, data, geometry, results, robot.q(joints))
        nearest = min(r.min_distance for r in results.distanceResults)
        assert nearest >= clear - 1e-4, "what is published lies inside what is checked"
        least = min(least, nearest)
    assert checked.min() > 0 and least >= -1e-4
