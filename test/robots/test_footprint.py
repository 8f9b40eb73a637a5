"""The footprint beside points on the surfaces of a robot's shapes."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial import ConvexHull

from humanoid_control.robots import load_robot
from humanoid_control.robots.footprint import footprint_polygon

BIPEDS = ("hrp2", "lola", "suralp", "wabian2")


def area(corners):
    x, y = corners.T
    return 0.5 * (x @ np.roll(y, -1) - y @ np.roll(x, -1))


def surface(robot):
    """Points of soles, cylinders and capsules by their own dimensions, in the frame of the footprint (roots face x)."""
    data, rng = robot.model.createData(), np.random.default_rng(1)
    shapes = robot.geometry.createData()
    pin.updateGeometryPlacements(robot.model, data, robot.geometry, shapes, robot.q("neutral"))
    pin.updateFramePlacements(robot.model, data)
    link = {f.name: data.oMf[robot.model.getFrameId(f.link)] for f in robot.feet}
    soles = np.array([link[f.name].act(c) for f in robot.feet for c in f.corners()])
    middle = np.mean([link[f.name].act(f.corners().mean(axis=0)) for f in robot.feet[:2]], axis=0)
    found = [soles]
    around = rng.normal(size=(200, 3))
    around /= np.linalg.norm(around, axis=1)[:, None]
    for k, one in enumerate(robot.geometry.geometryObjects):
        shape = one.geometry
        if hasattr(shape, "halfLength") and hasattr(shape, "radius"):
            ends = np.array([[0, 0, s * shape.halfLength] for s in (1, -1)])
            local = np.concatenate(
                [e + shape.radius * around * ([1, 1, 1] if "Capsule" in type(shape).__name__ else 0) for e in ends]
            )
        elif hasattr(shape, "radius"):
            local = shape.radius * around
        else:
            continue
        found.append(local @ shapes.oMg[k].rotation.T + shapes.oMg[k].translation)
    return np.concatenate(found)[:, :2] - middle[:2]


@pytest.mark.parametrize("name", BIPEDS)
def test_the_outline_holds_every_sole_and_shape_and_little_more(name):
    robot = load_robot(name, "floating")
    corners = footprint_polygon(robot)
    edges = np.roll(corners, -1, axis=0) - corners
    inside = surface(robot)
    for a, e in zip(corners, edges, strict=True):
        side = e[0] * (inside - a)[:, 1] - e[1] * (inside - a)[:, 0]
        assert side.min() > -1e-9, "anticlockwise, with all points on the left"
    assert area(corners) < 1.6 * ConvexHull(inside).volume
    assert 0.2 < np.ptp(corners[:, 0]) < 1.0 and 0.3 < np.ptp(corners[:, 1]) < 1.2


def test_a_turned_and_displaced_root_changes_nothing():
    robot = load_robot("hrp2", "floating")
    here = footprint_polygon(robot)
    q = robot.q("neutral")
    q[:2] += [3.0, -2.0]
    turn = pin.Quaternion(pin.rpy.rpyToMatrix(0.0, 0.0, 1.1)) * pin.Quaternion(q[6], q[3], q[4], q[5])
    q[3:7] = turn.coeffs()
    robot.q = lambda posture: q
    there = footprint_polygon(robot)
    assert area(there) == pytest.approx(area(here))
    assert np.ptp(there, axis=0) == pytest.approx(np.ptp(here, axis=0), abs=1e-9)


@pytest.mark.nightly
def test_a_robot_on_wheels_has_none():
    with pytest.raises(ValueError, match="two soles"):
        footprint_polygon(load_robot("armar3"))
