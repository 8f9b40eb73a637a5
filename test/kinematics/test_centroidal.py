"""The momentum map: against the sum over the links written out, finite differences, and what must not change."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.kinematics.centroidal import (
    centroidal_momentum_map,
    centroidal_momentum_rate,
    inertia_about_center,
)
from humanoid_control.robots import load_robot


def momentum_at(robot, q):
    return centroidal_momentum_map(robot.model, robot.data, q)


def rate_at(robot, *state):
    return centroidal_momentum_rate(robot.model, robot.data, *state)


def state(robot, seed):
    rng = np.random.default_rng(seed)
    joints = rng.uniform(np.maximum(robot.lower, -1.5), np.minimum(robot.upper, 1.5))
    q = robot.q(joints)
    if robot.base == "floating":
        q[:7] = pin.SE3ToXYZQUAT(pin.exp6(rng.normal(size=6)))
    return q, rng.normal(size=robot.nv)


def summed(robot, q, v):
    """Eq. (7.1) in words: every moving link's own momentum and that of its mass, and linear momentum; (6,)."""
    model, data = robot.model, robot.model.createData()
    pin.forwardKinematics(model, data, q, v)
    places, speeds, spins, masses = [], [], [], []
    for j in range(1, model.njoints):
        body, X, V = model.inertias[j], data.oMi[j], data.v[j]
        omega = X.rotation @ V.angular
        places.append(X.act(body.lever))
        speeds.append(X.rotation @ (V.linear + np.cross(V.angular, body.lever)))
        spins.append(X.rotation @ body.inertia @ X.rotation.T @ omega)
        masses.append(body.mass)
    m, r, rdot = np.array(masses), np.array(places), np.array(speeds)
    c, cdot = m @ r / m.sum(), m @ rdot / m.sum()
    L = np.sum(spins, axis=0) + (m[:, None] * np.cross(r - c, rdot - cdot)).sum(axis=0)
    return np.concatenate([m.sum() * cdot, L]), c


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["lola", "wabian2", "armar3"])
def test_momentum_is_the_sum_over_the_links_that_move(name, base):
    robot = load_robot(name, base)
    for seed in range(5):
        q, v = state(robot, seed)
        m = momentum_at(robot, q)
        wanted, center = summed(robot, q, v)
        assert np.allclose(np.concatenate([m.linear @ v, m.angular @ v]), wanted, atol=1e-9)
        assert np.allclose(m.center, center, atol=1e-12)


def test_linear_momentum_is_the_mass_times_the_finite_difference_of_the_center():
    robot, eps = load_robot("hrp2", "floating"), 1e-6
    q, v = state(robot, 1)
    m = momentum_at(robot, q)
    there, back = (momentum_at(robot, pin.integrate(robot.model, q, s * eps * v)).center for s in (1, -1))
    assert np.allclose(m.linear @ v, robot.mass * (there - back) / (2 * eps), atol=1e-5)


def test_rate_is_the_finite_difference_along_a_motion():
    robot, h = load_robot("lola", "floating"), 1e-5
    q, v = state(robot, 2)
    a = np.random.default_rng(3).normal(size=robot.nv)

    def momentum(s):  # motion with velocity v + a s, to second order
        at = pin.integrate(robot.model, q, s * v + 0.5 * s * s * a)
        m = momentum_at(robot, at)
        return np.concatenate([m.linear, m.angular]) @ (v + s * a)

    assert np.allclose(rate_at(robot, q, v, a), (momentum(h) - momentum(-h)) / (2 * h), atol=2e-4)


def test_falling_freely_changes_no_angular_momentum_and_falls_with_g():
    """No force but gravity: the rate of pinocchio's own dynamics is (0, 0, -M g) and nothing else."""
    robot = load_robot("lola", "floating")
    for seed in range(4):
        q, v = state(robot, seed)
        a = pin.aba(robot.model, robot.model.createData(), q, v, np.zeros(robot.nv))
        rate = rate_at(robot, q, v, a)
        assert np.allclose(rate, [0, 0, -robot.mass * 9.81, 0, 0, 0], atol=1e-7)


def test_momentum_of_a_fall_with_inner_torques_stays():
    """Joint torques are inner forces: after 0.2 s of free motion the angular momentum is what it was."""
    robot, dt = load_robot("suralp", "floating"), 2e-5
    q, v = state(robot, 5)
    v *= 0.3
    data = robot.model.createData()
    tau = np.concatenate([np.zeros(6), np.random.default_rng(6).normal(size=robot.n)])
    start = momentum_at(robot, q).angular @ v
    for _ in range(1000):
        a = pin.aba(robot.model, data, q, v, tau)
        q = pin.integrate(robot.model, q, dt * (v + 0.5 * dt * a))
        v = v + dt * a
    moved = momentum_at(robot, q).angular @ v
    assert np.linalg.norm(start) > 0.5
    assert np.allclose(moved, start, atol=2e-3 * np.linalg.norm(start))


def test_a_kilometre_away_nothing_changes_and_a_turned_robot_turns_its_momentum():
    robot = load_robot("lola", "floating")
    q, v = state(robot, 7)
    there = np.concatenate([q[:3] + [1000.0, -500.0, 3.0], q[3:]])
    yaw = pin.SE3(pin.utils.rotate("z", 0.9), np.array([2.0, 1.0, 0.0]))
    turned = np.concatenate([pin.SE3ToXYZQUAT(yaw * pin.XYZQUATToSE3(q[:7])), q[7:]])
    m, far, round_ = (
        momentum_at(robot, q),
        momentum_at(robot, there),
        momentum_at(robot, turned),
    )
    assert np.allclose(far.angular @ v, m.angular @ v, atol=1e-8)
    assert np.allclose(round_.angular @ v, yaw.rotation @ m.angular @ v, atol=1e-10)


def test_a_rigid_turn_has_the_momentum_of_the_frozen_inertia():
    """I_zz of eq. (7.11): all joints still, the base turns about the vertical through the centre of mass."""
    robot = load_robot("hrp2", "floating")
    q, _ = state(robot, 8)
    q[3:7] = [0, 0, 0, 1]
    v = np.zeros(robot.nv)
    v[3:6] = [0.0, 0.0, 1.5]
    inertia = inertia_about_center(robot.model, robot.data, q)
    assert np.allclose(momentum_at(robot, q).angular @ v, 1.5 * inertia[:, 2], atol=1e-9)
    assert np.allclose(inertia, inertia.T) and (np.linalg.eigvalsh(inertia) > 0).all()
