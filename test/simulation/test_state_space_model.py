"""The first-order models of Lola: counts of the published table, rates against pinocchio, any integrator."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import WorldSettings
from humanoid_control.simulation.contact.points import ContactSettings
from humanoid_control.simulation.drives.drive_train import build_drive_train
from humanoid_control.simulation.state_space.integrators import IntegratorSettings, integrate
from humanoid_control.simulation.state_space.model import TYPES, StateSpaceModel


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola", "floating")


def joints_at_rest(robot):
    u = np.zeros(3 * robot.n)
    u[: robot.n] = robot.postures["neutral"]
    return u


PUBLISHED = [("reduced", 6, 0, 60), ("rigid", 30, 24, 132), ("elastic", 46, 24, 164)]


@pytest.mark.parametrize("depth, mechanical, electrical, equations", PUBLISHED)
def test_orders_are_those_of_the_published_table(lola, depth, mechanical, electrical, equations):
    model = StateSpaceModel(lola, depth, euler=True)
    assert (model.order.mechanical, model.order.contact, model.order.electrical) == (mechanical, 48, electrical)
    assert model.order.first_order == equations == model.n == len(model.initial())
    assert StateSpaceModel(lola, depth).n == equations + 1, "a quaternion has one number more"


def test_rigid_gears_make_22_loops_and_elastic_ones_leave_6(lola):
    rigid, elastic = (build_drive_train(lola, d) for d in ("rigid", "elastic"))
    assert len(rigid.model.loops) == 22 and len(elastic.model.loops) == 6
    assert {b.split("_rotor")[0] for loop in elastic.model.loops for b in loop.bodies if "rotor" in b} == {
        "neck_rotation", "neck_flexion", "l_knee", "r_knee", "l_ankle", "r_ankle"
    }  # fmt: skip
    assert rigid.model.nv == 30 and elastic.model.nv == 46 and len(rigid.model.bodies) == 49
    assert rigid.held == ("l_camera_vergence", "r_camera_vergence")


@pytest.mark.parametrize("euler", [False, True])
def test_the_base_of_the_reduced_model_accelerates_as_pinocchio_says(lola, euler):
    """M_bb a_b = -(h_b + M_bj a_j) for prescribed joints, in the air."""
    model, rng = StateSpaceModel(lola, "reduced", euler=euler), np.random.default_rng(0)
    q = lola.q("neutral", pin.SE3(pin.rpy.rpyToMatrix(0.2, -0.1, 0.5), np.array([0.3, 0.1, 5.0])))
    v, a_j = rng.normal(size=lola.nv), rng.normal(size=lola.n)
    z = model.initial()
    from humanoid_control.simulation.state_space.model import euler_state

    z[:6], z[6 : 6 + model._nb] = (euler_state(q[:7], v[:6])[::-1]) if euler else (v[:6], q[:7])
    z[-48:] = 0.0
    dz = model.rates(0.0, z, np.concatenate([q[7:], v[6:], a_j]))
    data = lola.model.createData()
    M = pin.crba(lola.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.nonLinearEffects(lola.model, data, q, v)
    expected = np.linalg.solve(M[:6, :6], -(h[:6] + M[:6, 6:] @ a_j))
    if not euler:
        assert dz[:6] == pytest.approx(expected, rel=1e-9, abs=1e-9)
        return
    step = 1e-6  # the second derivative of the Euler coordinates, by moving along and back
    found = []
    for s in (-step, step):
        moved = z[:6] + s * dz[:6], z[6:12] + s * z[:6]
        other = np.concatenate([*moved, z[12:]])
        found.append(model.base(other)[1])
    assert (found[1] - found[0]) / (2 * step) == pytest.approx(expected, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("depth", ["rigid", "elastic"])
def test_euler_angles_and_quaternion_fall_alike(lola, depth):
    """Thrown, spinning, motors under voltage: the same motion by both parametrisations of the base."""
    out = []
    for euler in (False, True):
        model = StateSpaceModel(lola, depth, euler=euler)
        z = model.initial()
        q, v = lola.q("neutral")[:7].copy(), np.array([0.3, -0.2, 1.0, 0.4, -0.3, 0.8])
        q[2] += 1.0
        from humanoid_control.simulation.state_space.model import euler_state

        base, rate = euler_state(q, v) if euler else (q, v)
        nv = model.model.nv
        z[:6], z[nv : nv + len(base)] = rate, base
        z = integrate(
            model.rates, z, 0.02, u=np.full(24, 0.5), settings=IntegratorSettings("rk4", 1e-4), layout=model.layout
        )
        out.append(np.concatenate([*model.base(z), z[6 : model.model.nv]]))
    assert out[1] == pytest.approx(out[0], rel=1e-5, abs=1e-6)


def test_stiff_gears_accelerate_as_rigid_ones(lola):
    """With the rotors turning just as their links do, all that differs is what the gear's spring passes on."""
    train = {d: build_drive_train(lola, d) for d in ("rigid", "elastic")}
    from humanoid_control.multibody import ForwardDynamics

    rng = np.random.default_rng(1)
    rigid, elastic = train["rigid"].model, train["elastic"].model
    q, v = rigid.neutral(), rng.normal(size=30) * 0.3
    q[7:] = [lola.postures["neutral"][lola.index[j]] for j in train["rigid"].joints]
    a = ForwardDynamics(rigid)(q, v, np.zeros(30))
    ratio = {
        s.body: (s.drive.ratio, rigid.coordinates.index(s.joints[0])) for s in train["elastic"].shafts if s.elastic
    }
    own = [ratio[c] for c in elastic.coordinates[30:]]
    Q = np.concatenate([q, [n * q[k + 1] for n, k in own]])
    V = np.concatenate([v, [n * v[k] for n, k in own]])
    G = np.zeros((46, 30))  # V = G v: what a rigid gear would enforce
    G[:30] = np.eye(30)
    for row, (n, k) in enumerate(own):
        G[30 + row, k] = n
    f = ForwardDynamics(elastic, "dense")
    free = f(Q, V, np.zeros(46))
    M_inv = np.column_stack([f(Q, V, np.eye(46)[k]) - free for k in range(46)])
    M = np.linalg.inv(M_inv)
    assert np.linalg.solve(G.T @ M @ G, G.T @ M @ free) == pytest.approx(a, rel=1e-6, abs=1e-6)


def test_stands_by_any_integrator(lola):
    """The reduced model on its contact layers, by a fixed-step and by an adaptive method: one motion, and it stays."""
    model = StateSpaceModel(lola, "reduced", euler=True)
    u, out = joints_at_rest(lola), []
    for settings in (IntegratorSettings("rk4", 5e-4), IntegratorSettings("rk45", 0.01, rtol=1e-6, atol=1e-9)):
        z = integrate(model.rates, model.initial(), 0.15, u=u, settings=settings, layout=model.layout)
        out.append(z)
        assert np.linalg.norm(model.base(z)[0][:3] - lola.q()[:3]) < 0.01
    assert out[0] == pytest.approx(out[1], abs=2e-5)


def test_several_rates_take_steps_that_are_too_long_for_one(lola):
    """Elastic gears, motors under voltage, feet on the ground: only the base at 1 ms, the rest in five short steps."""
    model = StateSpaceModel(lola, "elastic", WorldSettings(contact=ContactSettings(4e4, 250.0, 4e4, 250.0)))
    nv, nq = model.model.nv, model.model.nq

    def moved(settings):
        z = integrate(model.rates, model.initial(), 0.02, u=np.ones(24), settings=settings, layout=model.layout)
        return z[nv : nv + nq]

    right = moved(IntegratorSettings("rk4", 1e-4))
    assert np.abs(right - model.initial()[nv : nv + nq]).max() > 0.1, "it has moved"
    assert np.abs(moved(IntegratorSettings("multirate", 1e-3, substeps=5)) - right).max() < 2e-3
    assert np.abs(moved(IntegratorSettings("rk4", 1e-3)) - right).max() > 2e-2


@pytest.mark.parametrize("what", ["depth", "fixed", "input", "drives"])
def test_bad_requests_say_so_in_one_line(lola, what):
    with pytest.raises(HumanoidError) as e:
        if what == "depth":
            StateSpaceModel(lola, "rigit")
        elif what == "fixed":
            StateSpaceModel(load_robot("lola", "fixed"), "rigid")
        elif what == "input":
            StateSpaceModel(lola, "rigid").rates(0.0, np.zeros(133), np.zeros(3))
        else:
            StateSpaceModel(load_robot("hrp2", "floating"), "rigid")
    assert "\n" not in str(e.value) and len(str(e.value)) > 20
    assert set(TYPES.values()) == {1, 2, 3}
