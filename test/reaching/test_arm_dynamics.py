"""Torques of an arm, their derivatives of both orders and their rate: pinocchio and finite differences."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.reaching import person_arm, robot_arm
from humanoid_control.reaching.optimal.hand_jerk import HandJerk, hand_jerk
from humanoid_control.reaching.optimal.inverse_dynamics import (
    SecondDerivatives,
    TorqueRate,
    arm_motion,
    move_arm,
    torque,
    torque_derivatives,
    torque_rate,
    torque_second_derivatives,
)
from humanoid_control.robots import load_robot
from test.reaching.arms import random_arm

N = 6


def state(seed=3, rows=4):
    return np.random.default_rng(seed).normal(size=(rows, N))


def pinocchio_derivatives(model, q, v, a):
    data = model.createData()
    pin.computeRNEADerivatives(model, data, q, v, a)
    M = pin.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    return np.array(data.dtau_dq), np.array(data.dtau_dv), M


def differences(function, z, step=1e-6):
    """Derivative by each entry of z, the last axis of the result."""
    columns = [(function(z + step * e) - function(z - step * e)) / (2 * step) for e in np.eye(len(z))]
    return np.stack(columns, axis=-1)


def test_torques_and_first_derivatives_are_pinocchio_s():
    arm, model = random_arm(N)
    q, v, a, _ = state()
    motion, tau = arm_motion(q), np.empty(N)
    move_arm(arm, q, v, a, motion)
    torque(motion, tau)
    assert np.allclose(tau, pin.rnea(model, model.createData(), q, v, a), atol=1e-11)
    found = np.empty((3, N, N))
    torque_derivatives(motion, *found)
    for mine, theirs in zip(found, pinocchio_derivatives(model, q, v, a), strict=True):
        assert np.allclose(mine, theirs, atol=1e-11)


def test_second_derivatives_are_the_differences_of_pinocchio_s_first_ones():
    arm, model = random_arm(N, 1)
    q, v, a, factor = state(4)

    def gradient(z):
        return np.concatenate([D.T @ factor for D in pinocchio_derivatives(model, *np.split(z, 3))])

    H = differences(gradient, np.concatenate([q, v, a]))
    motion, d = arm_motion(q), SecondDerivatives(*np.zeros((4, N, N)))
    move_arm(arm, q, v, a, motion)
    torque_second_derivatives(motion, factor, d)
    expected = SecondDerivatives(H[:N, :N], H[N : 2 * N, :N], H[N : 2 * N, N : 2 * N], H[2 * N :, :N])
    for mine, theirs in zip(d, expected, strict=True):
        assert np.allclose(mine, theirs, atol=1e-6 * np.abs(H).max())
    assert np.allclose(H[2 * N :, N:], 0.0, atol=1e-6 * np.abs(H).max()), "none by speed and acceleration"


def test_the_rate_of_the_torque_is_its_derivative_by_time():
    arm, model = random_arm(N, 2)
    q, v, a, jerk = state(5)
    data = model.createData()

    def along(t):
        return pin.rnea(
            model, data, q + v * t + a * t**2 / 2 + jerk * t**3 / 6, v + a * t + jerk * t**2 / 2, a + jerk * t
        )

    out = TorqueRate(np.zeros(N), *np.zeros((4, N, N)))
    torque_rate(arm, q, v, a, jerk, arm_motion(q.astype(complex)), out)
    assert np.allclose(out.rate, (along(1e-6) - along(-1e-6)) / 2e-6, atol=1e-6 * np.abs(out.rate).max())

    def rate(z):
        by_q, by_v, M = pinocchio_derivatives(model, *np.split(z, 4)[:3])
        _, v, a, jerk = np.split(z, 4)
        return by_q @ v + by_v @ a + M @ jerk

    J = differences(rate, np.concatenate([q, v, a, jerk]))
    assert np.allclose(np.hstack(out[1:]), J, atol=1e-6 * np.abs(J).max())


def test_the_jerk_of_the_hand_and_its_derivatives():
    arm, model = random_arm(N, 6)
    z = state(7).ravel()
    data = model.createData()

    def position(q):
        pin.forwardKinematics(model, data, q)
        return data.oMi[N].act(arm.hand)

    def jerk(z):
        out = HandJerk(np.zeros(3), *np.zeros((4, 3, N)))
        hand_jerk(arm, np.ascontiguousarray(z.reshape(4, N)), arm_motion(z[:N]), out)
        return out.jerk.copy()

    q, v, a, j = z.reshape(4, N)

    def at(t):
        return position(q + v * t + a * t**2 / 2 + j * t**3 / 6)

    h = 2e-3
    third = (at(2 * h) - 2 * at(h) + 2 * at(-h) - at(-2 * h)) / (2 * h**3)
    assert np.allclose(jerk(z), third, atol=1e-3 * np.abs(third).max())
    out = HandJerk(np.zeros(3), *np.zeros((4, 3, N)))
    hand_jerk(arm, np.ascontiguousarray(z.reshape(4, N)), arm_motion(q), out)
    J = differences(jerk, z)
    assert np.allclose(np.hstack(out[1:]), J, atol=1e-6 * np.abs(J).max())


# -------- Arms


@pytest.mark.parametrize(("name", "side"), [("lola", "right"), ("wabian2", "left"), ("hrp2", "right")])
def test_an_arm_of_a_robot_is_the_part_of_the_whole_robot_that_moves(name, side):
    robot = load_robot(name, "fixed")
    arm, rng = robot_arm(robot, side), np.random.default_rng(1)
    joints = [robot.joint_index(joint) for joint in arm.joint_names]
    q, v, a = robot.q("neutral"), np.zeros(robot.nv), np.zeros(robot.nv)
    q[joints], v[joints], a[joints] = rng.normal(size=(3, arm.n))
    whole = pin.rnea(robot.model, robot.data, q, v, a)[joints]
    assert np.allclose(arm.torque(q[joints], v[joints], a[joints]), whole, atol=1e-9)
    points = [f"{side[0]}_{h}" for h in ("tcp", "fingertip", "wrist") if f"{side[0]}_{h}" in robot.points]
    assert np.allclose(arm.hand(q[joints]), robot.point_positions(q, points)[0], atol=1e-12)
    assert all(joint.startswith(side[0]) for joint in arm.joint_names), "the trunk is no part of an arm"


def test_a_payload_hangs_at_the_hand():
    arm = person_arm(4)
    q, still = np.deg2rad([0.0, -90.0, 0.0, 0.0]), np.zeros(4)
    more = arm.with_payload(2.0).torque(q, still, still) - arm.torque(q, still, still)
    reach = arm.hand(q)[0]
    assert more[1] == pytest.approx(-2.0 * 9.81 * reach)
    assert np.allclose(arm.without_gravity().torque(q, still, still), 0.0)
    with pytest.raises(ConfigError, match="0 kg or more"):
        arm.with_payload(-1.0)


@pytest.mark.parametrize("joints", [2, 4, 5, 7])
def test_a_person_s_arm_weighs_what_de_leva_says_and_hangs_straight_down(joints):
    arm = person_arm(joints, 80.0, 1.741)
    assert arm.model.mass.sum() == pytest.approx(80.0 * (0.0271 + 0.0162 + 0.0061))
    assert np.allclose(arm.hand(np.zeros(joints)), [0.0, 0.0, -(0.2817 + 0.2689 + 0.0862)], atol=1e-12)
    still = np.zeros(joints)
    assert np.allclose(arm.torque(still, still, still), 0.0, atol=1e-12), "nothing holds an arm that hangs"
    level = person_arm(2, 80.0, 1.741).torque(np.array([-np.pi / 2, 0.0]), np.zeros(2), np.zeros(2))
    moment = 0.0271 * 0.5772 * 0.2817 + 0.0162 * (0.2817 + 0.4574 * 0.2689) + 0.0061 * (0.5506 + 0.79 * 0.0862)
    assert level[0] == pytest.approx(-80.0 * 9.81 * moment)


def test_arms_that_are_none_are_refused():
    with pytest.raises(ConfigError, match="2, 4, 5, 7"):
        person_arm(3)
    with pytest.raises(ConfigError, match="is implausible"):
        person_arm(4, -3.0)
    with pytest.raises(UnknownNameError, match="right"):
        robot_arm(load_robot("lola", "fixed"), "rihgt")
    robot = load_robot("lola", "fixed")
    robot.points = {"sternum": robot.points["sternum"]}
    with pytest.raises(RobotError, match="r_wrist"):
        robot_arm(robot, "right")
