"""Energy, momentum and joint wrenches: against pinocchio, kept by all solvers, and against the forces."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.multibody import ForwardDynamics, Model
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.energy import joint_wrenches, total_momentum_rate, totals
from humanoid_control.multibody.kinematics_pass import configuration_rate
from humanoid_control.multibody.model import from_pinocchio
from humanoid_control.robots import load_robot
from test.multibody.random_trees import BASES, geared_model, random_bodies, random_state, random_wrenches
from test.multibody.test_forward_dynamics import knee_and_ankle
from test.reference.plain_dynamics import jacobians, poses

SOLVERS = ("articulated_body", "sparse", "dense")


def fly(dynamics, q, v, h, steps):
    """Runge-Kutta of fourth order; the last state."""
    model, tables = dynamics.model, dynamics.arrays.tables

    def slope(q, v):
        rate = np.empty(model.nq)
        configuration_rate(tables, q, v, rate)
        return rate, dynamics(q, v)

    for _ in range(steps):
        a, b = slope(q, v)
        c, d = slope(q + h / 2 * a, v + h / 2 * b)
        e, f = slope(q + h / 2 * c, v + h / 2 * d)
        g, k = slope(q + h * e, v + h * f)
        q, v = q + h / 6 * (a + 2 * c + 2 * e + g), v + h / 6 * (b + 2 * d + 2 * f + k)
        for k, _ in model.free:  # quaternions
            q[k + 3 : k + 7] /= np.linalg.norm(q[k + 3 : k + 7])
    return q, v


def test_energies_and_momentum_of_a_robot_are_pinocchios():
    robot = load_robot("lola", "floating")
    data, rng = robot.model.createData(), np.random.default_rng(1)
    dynamics = ForwardDynamics(Model(from_pinocchio(robot.model).bodies))
    for _ in range(5):
        q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
        v = rng.normal(size=robot.nv)
        ours = totals(dynamics, q, v)
        momentum = pin.computeCentroidalMomentum(robot.model, data, q, v)
        assert np.isclose(ours.kinetic, pin.computeKineticEnergy(robot.model, data, q, v), rtol=1e-12)
        assert np.isclose(ours.potential, pin.computePotentialEnergy(robot.model, data, q), rtol=1e-12)
        assert np.isclose(ours.mass, pin.computeTotalMass(robot.model)) and np.allclose(ours.com, data.com[0])
        assert np.allclose(ours.linear, momentum.linear) and np.allclose(ours.angular, momentum.angular)
        a = dynamics(q, v, rng.normal(size=robot.nv))
        rate = pin.computeCentroidalMomentumTimeVariation(robot.model, data, q, v, a)
        linear, angular = total_momentum_rate(dynamics, a)
        assert np.allclose(linear, rate.linear) and np.allclose(angular, rate.angular, atol=1e-8)


@pytest.mark.parametrize("base", ["fixed", "quaternion", "euler"])
def test_energy_and_momentum_with_rotors_and_loops_are_those_of_a_plain_program(base):
    rng = np.random.default_rng(5)
    model = geared_model(rng, 8, base)
    q, v = random_state(model, rng)
    dynamics = ForwardDynamics(model, gravity=(0.3, -0.2, -9.0))
    ours, X, (Jc, _, Jw) = totals(dynamics, q, v), poses(model, q).real, jacobians(model, q)
    kinetic, linear, angular = 0.0, np.zeros(3), np.zeros(3)
    for i, body in enumerate(model.bodies):
        R, m, c = X[i, :3, :3], body.inertia.mass, body.inertia.com
        about_c = body.inertia.about_origin - m * ((c @ c) * np.eye(3) - np.outer(c, c))
        u, w, inertia = Jc[i] @ v, Jw[i] @ v, R @ about_c @ R.T
        kinetic += 0.5 * (m * u @ u + w @ inertia @ w)
        linear += m * u
        angular += inertia @ w + m * np.cross(X[i, :3, 3] + R @ c - ours.com, u)
    assert np.isclose(ours.kinetic, kinetic) and np.allclose(ours.linear, linear)
    assert np.allclose(ours.angular, angular)


@pytest.mark.parametrize("solver", SOLVERS)
def test_loops_keep_their_energy_to_the_order_of_the_integrator(solver):
    """A leg with screws at knee and ankle, rotors and all, swings for half a second without drives or friction."""
    leg = knee_and_ankle()
    dynamics = ForwardDynamics(leg.model, solver)
    q, v = np.array([0.3, 0.5, 0.1, -0.05]), np.array([0.5, -0.8, 0.4, 0.6])
    before = totals(dynamics, q, v)
    drift = []
    for steps in (50, 100):
        end = totals(dynamics, *fly(dynamics, q, v, 0.2 / steps, steps))
        drift.append(abs(end.kinetic + end.potential - before.kinetic - before.potential))
    assert abs(end.potential - before.potential) > 0.1
    assert drift[1] < 1e-7 and drift[0] / drift[1] > 8, drift


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_free_tree_keeps_energy_and_momentum(solver):
    rng = np.random.default_rng(20)
    model = geared_model(rng, 7, "quaternion")
    q, v = random_state(model, rng)
    v[6:] *= 0.3
    dynamics = ForwardDynamics(model, solver, (0, 0, 0))
    before = totals(dynamics, q, v)
    after = totals(dynamics, *fly(dynamics, q, v, 5e-4, 400))
    assert np.abs(after.linear - before.linear).max() < 1e-8 * np.abs(before.linear).max()
    assert np.abs(after.angular - before.angular).max() < 1e-8 * np.abs(before.angular).max()
    assert abs(after.kinetic - before.kinetic) < 1e-8 * before.kinetic
    assert abs(before.com - after.com).max() > 0.01
    weight = ForwardDynamics(model, "articulated_body")
    qdd = weight(q, v, rng.normal(size=model.nv) * (np.arange(model.nv) >= 6))
    linear, angular = total_momentum_rate(weight, qdd)
    assert np.allclose(linear, [0, 0, -9.81 * model.mass]) and np.allclose(angular, 0, atol=1e-9)


def test_change_of_momentum_is_the_sum_of_the_impressed_wrenches():
    rng = np.random.default_rng(12)
    model = Model(random_bodies(rng, 9, "euler"))
    q, v = random_state(model, rng)
    wrench, dynamics = random_wrenches(model, rng), ForwardDynamics(model, gravity=(0, 0, 0))
    qdd = dynamics(q, v, wrench=wrench)
    X, com = poses(model, q).real, totals(dynamics, q, v).com
    qdd = dynamics(q, v, wrench=wrench)
    linear, angular = total_momentum_rate(dynamics, qdd)
    forces = np.einsum("bij,bj->bi", X[:, :3, :3], wrench[:, 3:])
    moments = np.einsum("bij,bj->bi", X[:, :3, :3], wrench[:, :3]) + np.cross(X[:, :3, 3] - com, forces)
    assert np.allclose(linear, forces.sum(axis=0)) and np.allclose(angular, moments.sum(axis=0))


def test_a_long_run_leaves_every_loop_closed():
    """There is nothing that could drift; the couplers keep their length to the last digits."""
    leg = knee_and_ankle()
    dynamics = ForwardDynamics(leg.model)
    q, v = np.array([0.3, 0.5, 0.1, -0.05]), np.array([0.5, -0.8, 0.4, 0.6])
    for _ in range(10):
        q, v = fly(dynamics, q, v, 1e-3, 100)
        if np.abs(q[2:]).max() > 0.4 or not 0.1 < q[1] < 1.5:
            v = -v  # stay where the mechanism closes
        assert max(np.abs(leg.closure(q))) < 1e-15


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_joints_of_a_robot_transmit_what_pinocchio_says(base):
    robot = load_robot("hrp2", base)
    tree, data, rng = from_pinocchio(robot.model), robot.model.createData(), np.random.default_rng(0)
    dynamics = ForwardDynamics(Model(tree.bodies))
    q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
    v, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv) * 5
    qdd = dynamics(q, v, tau)
    assert np.allclose(pin.rnea(robot.model, data, q, v, qdd), tau, atol=1e-8)
    for body, ours in zip(tree.bodies, joint_wrenches(dynamics, qdd), strict=True):
        f, turn = data.f[robot.model.getJointId(body.name)], tree.turn[body.name]
        assert np.allclose(turn @ ours[:3], f.angular, atol=1e-8) and np.allclose(turn @ ours[3:], f.linear, atol=1e-8)


@pytest.mark.parametrize("base", BASES)
def test_wrenches_along_shared_axes_add_up_to_the_generalised_force(base):
    rng = np.random.default_rng(7)
    for _ in range(8):
        model = Model(random_bodies(rng, 12, base))
        q, v = random_state(model, rng)
        tau, wrench = rng.normal(size=model.nv), random_wrenches(model, rng)
        dynamics = ForwardDynamics(model)
        qdd = dynamics(q, v, tau, wrench)
        sums, J = np.zeros(model.nv), dynamics.arrays.work.J
        for i, lam in enumerate(joint_wrenches(dynamics, qdd, wrench)):
            own, motion = list(model.coords[i]), model.bodies[i].joint.motion
            if motion >= at.FREE:
                j = dynamics.arrays.ints[i, at.GROUP_JACOBIAN]
                sums[own] += J[j : j + 36].reshape(6, 6) @ lam
            else:
                o = (i + 1) * at.NW + at.GRAD
                sums[own] += dynamics.arrays.work.W[o : o + len(own)] * lam[2 if motion == at.REVOLUTE else 5]
        assert np.allclose(sums, tau, atol=1e-8)
