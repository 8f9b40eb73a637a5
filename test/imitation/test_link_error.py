"""Position errors against forward kinematics written out here."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation.tracking_error import LINKS, link_errors, reached_points
from humanoid_control.retargeting import POINTS, Targets
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("we4rii", "fixed")


@pytest.fixture(scope="module")
def joints(robot):
    return np.random.default_rng(3).uniform(robot.lower, robot.upper, (20, robot.n))


def targets_of(points):
    return Targets("made", 50.0, points, np.zeros((len(points), 1, 3)), ("l_hip",))


def test_reached_points_are_where_pinocchio_puts_the_links(robot, joints):
    reached = reached_points(robot, joints)
    data = robot.model.createData()
    for k in (0, 7, 19):
        pin.forwardKinematics(robot.model, data, robot.q(joints[k]))
        for p, name in enumerate(POINTS):
            frame = robot.model.frames[robot.point_frame(name)]
            at = data.oMi[frame.parentJoint].act(frame.placement.translation)
            assert reached[k, p] == pytest.approx(at, abs=1e-12)


def test_error_is_the_distance_whatever_the_direction(robot, joints):
    reached = reached_points(robot, joints)
    rng = np.random.default_rng(4)
    direction = rng.normal(size=reached.shape)
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    distance = rng.uniform(0, 0.3, reached.shape[:2])
    errors = link_errors(reached, targets_of(reached + distance[..., None] * direction))
    for k, name in enumerate(POINTS):
        assert errors[name] == pytest.approx(distance[:, k])
    assert errors["mean"] == pytest.approx(distance.sum(axis=1) / 7)
    assert tuple(errors) == LINKS


def test_errors_do_not_change_when_the_world_turns_and_moves(robot, joints):
    reached = reached_points(robot, joints)
    wanted = reached + np.random.default_rng(5).normal(0, 0.1, reached.shape)
    X = pin.SE3(pin.rpy.rpyToMatrix(0.3, -1.0, 2.0), np.array([100.0, -50.0, 3.0]))
    turn = np.vectorize(lambda p: X.act(p), signature="(3)->(3)")
    before, after = link_errors(reached, targets_of(wanted)), link_errors(turn(reached), targets_of(turn(wanted)))
    for name in LINKS:
        assert after[name] == pytest.approx(before[name], abs=1e-9)
