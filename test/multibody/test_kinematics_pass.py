"""Motion of single bodies: accelerations against differences, parametrizations of the base, rotors, placement."""

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation

from evidence.benchmarks.branched_system import dill
from humanoid_control.errors import RobotError
from humanoid_control.multibody import (
    ENVIRONMENT,
    Body,
    ForwardDynamics,
    Inertia,
    Joint,
    Model,
    free,
    from_pinocchio,
    polynomial,
    prismatic,
    quadratic,
    revolute,
    rotor,
    spline,
)
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.couplings import FOUR_BAR, FourBarGeometry, four_bar, four_bar_parameters
from humanoid_control.multibody.kinematics_pass import configuration_rate, integrate_configuration
from humanoid_control.multibody.spatial import add_point_inertia
from humanoid_control.robots import load_robot
from humanoid_control.robots.denavit_hartenberg import dh_transform
from test.multibody.random_trees import BASES, random_bodies, random_inertia, random_state
from test.reference.denavit_hartenberg import dh_placement
from test.reference.plain_dynamics import flown, poses


def row(dynamics, i, first, n):
    o = (i + 1) * at.NW + first
    return dynamics.arrays.work.W[o : o + n]


def slopes(f, h):
    """First and second derivative at 0 by differences of sixth and fourth order."""
    y = {k: f(k * h) for k in (-3, -2, -1, 0, 1, 2, 3)}
    first = (45 * (y[1] - y[-1]) - 9 * (y[2] - y[-2]) + (y[3] - y[-3])) / (60 * h)
    second = (2 * (y[3] + y[-3]) - 27 * (y[2] + y[-2]) + 270 * (y[1] + y[-1]) - 490 * y[0]) / (180 * h * h)
    return first, second


@pytest.mark.parametrize("base", BASES)
def test_velocity_and_acceleration_of_every_body_are_the_derivatives_of_its_pose(base):
    """With the poses of `test/reference/plain_dynamics`, along the solver's motion: eq. (2.33) and (2.34)."""
    rng = np.random.default_rng(31)
    joints = [
        revolute("a"),
        prismatic("b"),
        quadratic(["a", "b"], 0.1, [0.4, 0.3], np.array([[0.2, 0.1], [0.1, -0.3]])),
        quadratic(["a", "b"], 0.1, [0.4, 0.3], np.array([[0.2, 0.1], [0.1, -0.3]]), at.PRISMATIC),
        revolute("c"),
        polynomial("a", [0.1, 0.4, -0.3, 0.2]),
        spline("b", [-4.0, -2.0, 2.0, 4.0], [0.3, -0.2, 0.4, -0.1]),
        spline("c", [-4.0, -2.0, 2.0, 4.0], [0.1, 0.5, -0.2, 0.3], at.PRISMATIC),
    ]
    bodies = [] if base == "fixed" else [Body("base", "", free("base", base == "euler"), random_inertia(rng))]
    for k, joint in enumerate(joints):
        parent = bodies[-1].name if bodies else ENVIRONMENT
        turned = Rotation.random(random_state=rng).as_matrix()
        bodies.append(Body(f"b{k}", parent, joint, random_inertia(rng), turned, rng.normal(size=3) * 0.3))
    model = Model(bodies)
    q, v = random_state(model, rng)
    dynamics = ForwardDynamics(model)
    qdd = dynamics(q, v)

    def state(h):
        """Along constant qdd: v(h) = v + h qdd, and q by its rate with fourth-order steps."""
        x, t = q.copy(), 0.0
        for _ in range(4):
            step = h / 4
            k1 = rate(x, v + t * qdd)
            k2 = rate(x + step / 2 * k1, v + (t + step / 2) * qdd)
            k3 = rate(x + step / 2 * k2, v + (t + step / 2) * qdd)
            x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + rate(x + step * k3, v + (t + step) * qdd))
            t += step
        return x

    def rate(x, u):
        out = np.empty(model.nq)
        configuration_rate(dynamics.arrays.tables, x, u, out)
        return out

    X = poses(model, q).real
    velocity, acceleration = slopes(lambda h: poses(model, state(h)).real, 5e-3)
    for i in range(len(bodies)):
        R = X[i, :3, :3]
        W = velocity[i, :3, :3] @ R.T
        omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
        D = acceleration[i, :3, :3] @ R.T - W @ W
        alpha = np.array([D[2, 1], D[0, 2], D[1, 0]])
        expected_v = np.concatenate([R.T @ omega, R.T @ velocity[i, :3, 3]])
        expected_a = np.concatenate([R.T @ alpha, R.T @ acceleration[i, :3, 3]])
        assert np.allclose(row(dynamics, i, at.OMEGA, 6), expected_v, atol=1e-8 * max(1, np.abs(expected_v).max()))
        assert np.allclose(row(dynamics, i, at.ACC, 6), expected_a, atol=1e-7 * max(1, np.abs(expected_a).max()))
        assert np.allclose(row(dynamics, i, at.ROT, 9).reshape(3, 3), R) and np.allclose(
            row(dynamics, i, at.POS, 3), X[i, :3, 3]
        )


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_pose_velocity_and_acceleration_of_every_link_are_pinocchios(base):
    robot = load_robot("lola", base)
    tree, data, rng = from_pinocchio(robot.model), robot.model.createData(), np.random.default_rng(3)
    model = Model(tree.bodies)
    dynamics = ForwardDynamics(model)
    for _ in range(4):
        q = pin.randomConfiguration(robot.model, -np.ones(robot.nq), np.ones(robot.nq))
        v = rng.normal(size=robot.nv)
        qdd = dynamics(q, v, rng.normal(size=robot.nv) * 20)
        pin.forwardKinematics(robot.model, data, q, v, qdd)
        for i, body in enumerate(model.bodies):
            j, turn = robot.model.getJointId(body.name), tree.turn[body.name]
            X, u = data.oMi[j], pin.getVelocity(robot.model, data, j)
            a = pin.getClassicalAcceleration(robot.model, data, j)
            assert np.allclose(row(dynamics, i, at.ROT, 9).reshape(3, 3), X.rotation @ turn, atol=1e-12)
            assert np.allclose(row(dynamics, i, at.POS, 3), X.translation, atol=1e-12)
            expected = np.concatenate([turn.T @ u.angular, turn.T @ u.linear])
            assert np.allclose(row(dynamics, i, at.OMEGA, 6), expected, atol=1e-11)
            expected = np.concatenate([turn.T @ a.angular, turn.T @ a.linear])
            assert np.allclose(row(dynamics, i, at.ACC, 6), expected, atol=1e-9 * max(1.0, np.abs(expected).max()))


def test_euler_angles_and_quaternion_of_the_base_give_the_same_motion():
    rng = np.random.default_rng(4)
    inside = [b for b in random_bodies(rng, 8, "quaternion") if b.name != "base"]
    heavy = random_inertia(rng)
    turned, place = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3)
    by_quaternion = Model([Body("base", "", free("base"), heavy, turned, place), *inside])
    by_euler = Model([Body("base", "", free("base", euler=True), heavy, turned, place), *inside])
    angles, x = np.array([0.7, 1.1, -0.4]), rng.normal(size=3)
    angle_rates, x_rates = rng.normal(size=3), rng.normal(size=3)
    R = Rotation.from_euler("ZXZ", angles)
    joints, rates = rng.uniform(-1, 1, by_euler.nv - 6), rng.normal(size=by_euler.nv - 6)
    one, other = ForwardDynamics(by_euler), ForwardDynamics(by_quaternion)
    a = one(np.concatenate([angles, x, joints]), np.concatenate([angle_rates, x_rates, rates]))
    body_rates = row(one, 0, at.OMEGA, 6).copy()  # all in the base's axes
    v = np.concatenate([body_rates[3:], body_rates[:3], rates])
    b = other(np.concatenate([x, R.as_quat(), joints]), v)
    assert np.allclose(row(other, 0, at.ROT, 9), row(one, 0, at.ROT, 9), atol=1e-14)
    assert np.allclose(a[6:], b[6:], rtol=1e-10) and np.allclose(
        row(one, 0, at.ACC, 6), row(other, 0, at.ACC, 6), rtol=1e-10
    )
    assert np.allclose(b[3:6], row(other, 0, at.ACC, 3))


def test_zxz_rates_give_the_angular_velocity_of_the_turning_axes():
    """omega = J_R qdot, (2.39) with its last s_2 made c_2, against the turn (2.13); its rate against differences."""
    rng = np.random.default_rng(8)
    model = Model([Body("base", "", free("base", euler=True), random_inertia(rng))])
    dynamics = ForwardDynamics(model, gravity=(0, 0, 0))
    for _ in range(20):
        q, v = rng.uniform(0.3, 2.5, 6), rng.normal(size=6)
        dynamics(q, v)

        def turn(h, q=q, v=v):
            return Rotation.from_euler("ZXZ", (q + h * v)[:3]).as_matrix()

        first, _ = slopes(turn, 1e-3)
        W = turn(0).T @ first
        assert np.allclose(row(dynamics, 0, at.OMEGA, 3), [W[2, 1], W[0, 2], W[1, 0]], atol=1e-9)

        def omega(h, q=q, v=v):
            dynamics(q + h * v, v)
            return row(dynamics, 0, at.OMEGA, 3).copy()

        rate, _ = slopes(omega, 1e-3)
        dynamics(q, v)
        assert np.allclose(row(dynamics, 0, at.DRIFT, 3), rate, atol=1e-9)


def test_a_rotor_on_a_fixed_parent_adds_its_inertia_times_the_square_of_the_ratio():
    link = Inertia.about_com(2.0, np.array([0.2, 0, 0]), np.diag([0.01, 0.02, 0.03]))
    ratio, spin = 100.0, 3e-5
    shaft = Inertia(0.0, np.zeros(3), np.diag([2e-5, 2e-5, spin]))
    bodies = [
        Body("link", "", revolute("q"), link),
        Body("rotor", "", rotor("q", ratio), shaft, Rotation.from_euler("x", 0.4).as_matrix()),
    ]
    inertia = link.about_origin[2, 2]
    for solver in ("articulated_body", "sparse", "dense"):
        for listed, expected in ((bodies[:1], inertia), (bodies, inertia + ratio**2 * spin)):
            qdd = ForwardDynamics(Model(listed), solver, (0, 0, 0))(np.zeros(1), np.zeros(1), np.ones(1))
            assert np.isclose(1 / qdd[0], expected, rtol=1e-14)
    assert ratio**2 * spin > inertia


def test_a_rotor_behind_a_four_bar_adds_its_inertia_by_the_slope_and_a_torque_by_the_curvature():
    parameters = four_bar_parameters(FourBarGeometry(0.04, 0.11, 0.05, 0.12, crank_zero=1.4))
    link, ratio, spin, q, u = Inertia(0.0, np.zeros(3), np.diag([0.0, 0.0, 0.03])), 100.0, 3e-5, 0.3, 2.0
    driven = Joint(at.REVOLUTE, ("q",), FOUR_BAR, (ratio, 0.2, *parameters))
    bodies = [
        Body("link", "", revolute("q"), link),
        Body("rotor", "", driven, Inertia(0.0, np.zeros(3), spin * np.eye(3))),
    ]
    _, slope, curvature = four_bar(parameters, 0, q)
    inertia = 0.03 + spin * (ratio * slope) ** 2
    torque = 1.0 - spin * ratio**2 * slope * curvature * u * u
    for solver in ("articulated_body", "sparse", "dense"):
        qdd = ForwardDynamics(Model(bodies), solver, (0, 0, 0))(np.array([q]), np.array([u]), np.ones(1))
        assert qdd[0] == pytest.approx(torque / inertia, rel=1e-12)
    assert abs(1.0 - torque) > 0.01
    with pytest.raises(RobotError, match="a four-bar coupling has 1 coordinate and 9 parameters, not 2 and 9"):
        Joint(at.REVOLUTE, ("q", "p"), FOUR_BAR, driven.parameters)


def test_a_stiff_point_is_an_inertia_that_moves_as_the_point_does():
    """J^T K J with J = [-point~, 1] added to what is there: angular block, angular by linear block, linear block."""
    rng = np.random.default_rng(2)
    point, K, W = rng.normal(size=3), rng.normal(size=(3, 3)), rng.normal(size=at.NW)
    K, before, J = K + K.T, W.copy(), np.hstack([-pin.skew(point), np.eye(3)])
    add_point_inertia(W, 0, tuple(point), tuple(K[np.triu_indices(3)]))
    added, wanted, upper = W - before, J.T @ K @ J, np.triu_indices(3)
    assert added[at.INERTIA : at.CROSS] == pytest.approx(wanted[:3, :3][upper])
    assert added[at.CROSS : at.LINEAR] == pytest.approx(wanted[:3, 3:].ravel())
    assert added[at.LINEAR : at.LINEAR + 6] == pytest.approx(wanted[3:, 3:][upper])
    assert not added[: at.INERTIA].any() and not added[at.LINEAR + 6 :].any()


def test_a_spinning_rotor_turns_the_body_that_carries_it():
    """A gyroscope on a free body: the momentum of both is constant while nothing acts; here by hand for one state."""
    J = np.diag([0.3, 0.4, 0.5])
    shaft = np.diag([1e-2, 1e-2, 2e-2])
    model = Model(
        [
            Body("base", "", free("base"), Inertia(1.0, np.zeros(3), J)),
            Body("wheel", "base", revolute("wheel"), Inertia(0.0, np.zeros(3), shaft)),
        ]
    )
    q, v = model.neutral(), np.array([0, 0, 0, 0.7, -0.2, 0.4, 30.0])
    omega = v[3:6]
    momentum = (J + shaft) @ omega + shaft[2] * v[6]
    for solver in ("articulated_body", "sparse", "dense"):
        qdd = ForwardDynamics(model, solver, (0, 0, 0))(q, v)
        rate = (J + shaft) @ qdd[3:6] + shaft[2] * qdd[6]
        assert np.allclose(rate, -np.cross(omega, momentum), rtol=1e-13)
        assert np.isclose(qdd[5] + qdd[6], 0.0, atol=1e-13)  # no torque about the shaft, which is symmetric


def test_moving_a_configuration_keeps_to_the_flow_of_its_rate():
    rng = np.random.default_rng(2)
    model = Model(random_bodies(rng, 6, "quaternion"))
    tables = ForwardDynamics(model).arrays.tables
    q, v = random_state(model, rng)
    moved = q.copy()
    integrate_configuration(tables, moved, v, 0.01)
    expected = flown(model, flown(model, q, v, 0.005), v, 0.005)
    assert np.allclose(moved, expected, atol=1e-11)
    rate = np.empty(model.nq)
    configuration_rate(tables, q, v, rate)
    assert np.allclose(rate, (flown(model, q, v, 1e-4) - flown(model, q, v, -1e-4)) / 2e-4, atol=1e-6)


def test_a_chain_placed_by_denavit_and_hartenberg_stands_where_their_matrices_put_it():
    """Modified parameters as in Schwienbacher 2014: the parent's x first (alpha, a), then the new z (theta, d)."""
    rng = np.random.default_rng(6)
    bodies, rows = [], rng.uniform(-1, 1, (5, 4))
    for k, (a, alpha, d, theta) in enumerate(rows):
        A, r = dh_placement(a, alpha, d, theta)
        bodies.append(Body(f"b{k}", f"b{k - 1}" if k else "", revolute(f"q{k}"), random_inertia(rng), A, r))
    model = Model(bodies)
    q = rng.uniform(-1, 1, 5)
    X = np.eye(4)
    for (a, alpha, d, theta), angle in zip(rows, q, strict=True):
        X = X @ dh_transform(a, alpha, 0, 0) @ dh_transform(0, 0, d, theta + angle)
    assert np.allclose(poses(model, q).real[-1], X, atol=1e-14)
    dynamics = ForwardDynamics(model)
    dynamics(q, np.zeros(5))
    assert np.allclose(row(dynamics, 4, at.POS, 3), X[:3, 3], atol=1e-14)
    branch = dill(2).bodies[2]  # of Dill: a step along x, a turn about x
    A, r = dh_placement(0.2, 2 / 3, 0, 0)
    assert np.allclose(branch.A, A) and np.allclose(branch.r, r)
