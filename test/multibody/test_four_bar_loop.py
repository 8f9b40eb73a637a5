"""A whole four-bar, each of its bodies with mass: loops by shared coordinates against the constrained equations.

The oracle is the open chain with a closing condition: M a + C^T lambda = tau - h, C a = -C' v, projected after each
step, with the matrices of a plain program.
"""

import numpy as np
import pytest

from humanoid_control.multibody import (
    Body,
    ForceElements,
    ForwardDynamics,
    Joint,
    JointElement,
    Model,
    revolute,
    totals,
)
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.couplings import FOUR_BAR, FourBarGeometry, four_bar_parameters
from test.multibody.random_trees import random_inertia
from test.multibody.test_energy import SOLVERS, fly
from test.reference.plain_dynamics import equations

CRANK, COUPLER, ROCKER, GROUND = 0.10, 0.32, 0.20, 0.35  # [m]
GRAVITY = (0.8, -9.6, -0.4)


def shape(angle):
    """Angles of coupler and rocker from the x axis at an angle of the crank, by the circles' intersection."""
    a = CRANK * np.array([np.cos(angle), np.sin(angle)])
    to = np.array([GROUND, 0.0]) - a
    d = np.linalg.norm(to)
    along = (COUPLER**2 - ROCKER**2 + d * d) / (2 * d)
    up = np.sqrt(COUPLER**2 - along**2)
    b = a + along * to / d + up * np.array([-to[1], to[0]]) / d
    return np.arctan2(*(b - a)[::-1]), np.arctan2(b[1], b[0] - GROUND)


def bodies(rng, coupler, rocker):
    """Crank on the ground, coupler on the crank, rocker on the ground; each angle is zero where its body lies on x."""
    weights = [random_inertia(rng) for _ in range(3)]
    return [
        Body("crank", "", revolute("q"), weights[0]),
        Body("coupler", "crank", coupler, weights[1], r=np.array([CRANK, 0.0, 0.0])),
        Body("rocker", "", rocker, weights[2], r=np.array([GROUND, 0.0, 0.0])),
    ]


def closed(rng):
    """One coordinate: the rocker by its four-bar, the coupler by the four-bar as the crank sees it, mirrored."""
    # Seen from the crank the ground turns: its arm is the crank of a four-bar whose ground is the crank's length.
    by_rocker = FourBarGeometry(CRANK, COUPLER, ROCKER, GROUND, 0.0, -1)
    by_coupler = FourBarGeometry(GROUND, ROCKER, COUPLER, CRANK, 0.0, -1)
    rest = four_bar_parameters(by_rocker), four_bar_parameters(by_coupler)
    rocker = Joint(at.REVOLUTE, ("q",), FOUR_BAR, (1.0, rest[0][6], *rest[0]))
    coupler = Joint(at.REVOLUTE, ("q",), FOUR_BAR, (-1.0, -rest[1][6], *rest[1]))
    return Model(bodies(rng, coupler, rocker))


def gap(q):
    """How far the coupler's end is from the rocker's (2,), and its derivative (2, 3) by the three angles."""
    s = np.array([q[0], q[0] + q[1], q[2]])
    length = np.array([CRANK, COUPLER, -ROCKER])
    along, across = np.array([np.cos(s), np.sin(s)]), np.array([-np.sin(s), np.cos(s)])
    by = across * length
    C = np.array([by[:, 0] + by[:, 1], by[:, 1], by[:, 2]]).T
    return along @ length - [GROUND, 0.0], C


def constrained(model, q, v, tau):
    """Accelerations of the open chain under the closing condition."""
    M, rhs = equations(model, q, v, np.zeros((3, 6)), np.array(GRAVITY))
    _, C = gap(q)
    h = 1e-6
    drift = (gap(q + h * v)[1] - gap(q - h * v)[1]) @ v / (2 * h)
    K = np.block([[M, C.T], [C, np.zeros((2, 2))]])
    return np.linalg.solve(K, np.concatenate([rhs + tau, -drift]))[:3]


def put_on(q, v):
    """The nearest state that closes."""
    for _ in range(4):
        e, C = gap(q)
        q = q - np.linalg.pinv(C) @ e
    C = gap(q)[1]
    return q, v - np.linalg.pinv(C) @ (C @ v)


def opened(q, rate):
    """State of the open chain at a crank's angle and rate."""
    psi, phi = shape(q)
    x = np.array([q, psi - q, phi])
    C = gap(x)[1]
    return x, np.array([rate, *np.linalg.solve(C[:, 1:], -C[:, 0] * rate)])


def test_the_loop_closes_all_the_way_round():
    model = closed(np.random.default_rng(0))
    assert model.nv == 1 and model.loops[0].bodies == ("crank", "coupler", "rocker")
    for q in np.linspace(-np.pi, np.pi, 41):
        X = poses_of(model, q)
        end = X[1][:3, :3] @ [COUPLER, 0, 0] + X[1][:3, 3]
        assert np.allclose(end, X[2][:3, :3] @ [ROCKER, 0, 0] + X[2][:3, 3], atol=1e-12)


def poses_of(model, q):
    """Poses (3, 4, 4) by the engine."""
    dynamics = ForwardDynamics(model)
    dynamics(np.array([q]), np.zeros(1))
    W = dynamics.arrays.work.W
    out = np.zeros((3, 4, 4))
    for i in range(3):
        o = (i + 1) * at.NW
        out[i, :3, :3] = W[o + at.ROT : o + at.ROT + 9].reshape(3, 3)
        out[i, :3, 3] = W[o + at.POS : o + at.POS + 3]
    return out


@pytest.mark.parametrize("solver", SOLVERS)
def test_accelerations_are_those_of_the_constrained_equations(solver):
    model = closed(np.random.default_rng(1))
    open_chain = Model(bodies(np.random.default_rng(1), revolute("p"), revolute("r")))
    dynamics, rng = ForwardDynamics(model, solver, GRAVITY), np.random.default_rng(2)
    for q in rng.uniform(-np.pi, np.pi, 12):
        rate, torque = rng.normal() * 3, rng.normal() * 5
        x, v = opened(q, rate)
        expected = constrained(open_chain, x, v, np.array([torque, 0.0, 0.0]))
        ours = dynamics(np.array([q]), np.array([rate]), np.array([torque]))
        assert ours[0] == pytest.approx(expected[0], abs=1e-6 * max(1.0, np.abs(expected).max()))


def test_it_moves_as_the_projected_chain_does_and_keeps_its_energy():
    model = closed(np.random.default_rng(1))
    open_chain = Model(bodies(np.random.default_rng(1), revolute("p"), revolute("r")))
    dynamics, free_chain = ForwardDynamics(model, gravity=GRAVITY), ForwardDynamics(open_chain, gravity=GRAVITY)
    q, v = np.array([0.4]), np.array([6.0])
    x, u = opened(q[0], v[0])
    before, same = totals(dynamics, q, v), totals(free_chain, x, u)
    assert before.kinetic == pytest.approx(same.kinetic) and before.potential == pytest.approx(same.potential)
    h, steps, zero = 2e-3, 100, np.zeros(3)
    for _ in range(steps):
        a = constrained(open_chain, x, u, zero)
        b = constrained(open_chain, x + h / 2 * u, u + h / 2 * a, zero)
        c = constrained(open_chain, x + h / 2 * u + h * h / 4 * a, u + h / 2 * b, zero)
        d = constrained(open_chain, x + h * u + h * h / 2 * b, u + h * c, zero)
        x, u = put_on(x + h * u + h * h / 6 * (a + b + c), u + h / 6 * (a + 2 * b + 2 * c + d))
    q, v = fly(dynamics, q, v, h, steps)
    assert abs(q[0] - 0.4) > 0.8
    assert q[0] == pytest.approx(x[0], abs=1e-6) and v[0] == pytest.approx(u[0], abs=1e-5)
    after = totals(dynamics, q, v)
    assert abs(after.potential - before.potential) > 0.01
    energy = before.kinetic + before.potential
    assert after.kinetic + after.potential == pytest.approx(energy, abs=1e-6 * before.kinetic)


def test_a_spring_in_the_coupler_s_joint_acts_on_the_crank_by_the_transmission():
    model = closed(np.random.default_rng(1))
    open_chain = Model(bodies(np.random.default_rng(1), revolute("p"), revolute("r")))
    elements = ForceElements(model, [JointElement("s", "coupler", 30.0, 0.2, 0.5)])
    dynamics = ForwardDynamics(model, gravity=GRAVITY)
    for q in (-2.0, 0.3, 1.7):
        x, v = opened(q, 2.0)
        wrench = elements.wrenches(dynamics, np.array([q]), np.array([2.0]))
        away = elements.state[0, 0] - x[1]
        assert abs(away - 2 * np.pi * np.round(away / (2 * np.pi))) < 1e-12
        tau = np.array([0.0, elements.force[0], 0.0])
        assert elements.force[0] == pytest.approx(-30.0 * (elements.state[0, 0] - 0.2) - 0.5 * v[1])
        expected = constrained(open_chain, x, v, tau)
        ours = dynamics(np.array([q]), np.array([2.0]), wrench=wrench)
        assert ours[0] == pytest.approx(expected[0], abs=1e-6 * np.abs(expected).max())
