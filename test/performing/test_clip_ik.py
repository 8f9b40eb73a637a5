"""Compiled kinematics of the centre of mass beside pinocchio's, and weights of the soles."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.performing.clip_ik import ClipIk, center_jacobian, center_of, sole_weights
from humanoid_control.performing.source_motion import RigidSoles
from humanoid_control.retargeting.problem import place_points
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind


@pytest.mark.parametrize("name", by_kind(("hrp2", "lola", "wabian2")))
def test_the_centre_of_mass_and_its_jacobian_are_pinocchios(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(0)
    ik = ClipIk(robot, RigidSoles.of(robot), robot.imitation_joints)
    p, w, d = ik.problem, ik.scratch, len(ik.problem.rest)
    p.tree.joints.R[0], p.tree.joints.p[0] = pin.exp3(np.array([0.1, -0.2, 0.7])), [0.3, 0.1, 0.8]
    found, J, ahead = np.empty(3), np.empty((3, d)), np.empty(3)
    for _ in range(5):
        x = np.concatenate([np.zeros(6), np.clip(p.rest[6:] + rng.normal(0, 0.2, d - 6), p.lower[6:], p.upper[6:])])
        place_points(p, x, w)
        center_of(ik.masses, w, found)
        center_jacobian(ik.masses, p.tree, w, J)
        q = robot.q("neutral")
        q[:3], q[3:7] = p.tree.joints.p[0], pin.Quaternion(p.tree.joints.R[0]).coeffs()
        q[robot.iq + ik.moving] = x[6:]
        robot.follow(q[robot.iq :])
        assert np.abs(pin.centerOfMass(robot.model, robot.data, q) - found).max() < 1e-12
        for i in range(d):
            e = np.zeros(d)
            e[i] = 1e-6
            place_points(p, x + e, w)
            center_of(ik.masses, w, ahead)
            assert np.abs((ahead - found) / 1e-6 - J[:, i]).max() < 1e-5


def test_weights_of_soles_rise_before_a_landing_and_fall_after_a_lift_off():
    stands = np.ones((100, 2), dtype=bool)
    stands[20:80, 0] = False
    w = sole_weights(stands, 100.0)
    assert (w[:, 1] == w[0, 0]).all() and w[50, 0] < 1e-2 * w[0, 0]
    assert (np.diff(w[20:50, 0]) <= 0).all() and (np.diff(w[50:80, 0]) >= 0).all()
    assert (w[70:80, 0] > w[50, 0]).any()
    assert np.diff(np.log(w[:50, 0])).min() > -0.25, "a posture that a sole has bent may not snap back in 0.1 s"
    assert w[70, 0] == w[50, 0] and w[75, 0] > 2 * w[50, 0], "a landing needs no more than 0.08 s"
