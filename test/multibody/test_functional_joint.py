"""Functional joints: against their definition, against full chains projected on the coordinates, and pinocchio."""

import re
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from humanoid_control.errors import HumanoidError
from humanoid_control.multibody import (
    ENVIRONMENT,
    Axis,
    ForwardDynamics,
    FunctionalTree,
    Joint,
    Model,
    free,
    functional_joint,
    polynomial,
    prismatic,
    revolute,
    spline,
    totals,
)
from humanoid_control.multibody import layout as at
from humanoid_control.multibody.couplings import LINEAR
from humanoid_control.multibody.forward_dynamics import mass_matrix_at
from humanoid_control.multibody.functional_joint import IDENTITY_FRAME, JointFrame
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from test.multibody.test_energy import fly
from test.reference.plain_dynamics import coupled, equations

SOLVERS = ("articulated_body", "sparse", "dense")
GRAVITY = (0.4, -9.7, -1.1)
# Translation of the shank on the thigh by the flexion of the knee, of the model Gait2354 [rad], [m].
FORWARD = (
    [-2.0944, -1.74533, -1.39626, -1.0472, -0.698132, -0.349066, -0.174533, 0.197344, 0.337395, 0.490178, 1.52146, 2.1],
    [-0.0032, 0.00179, 0.00411, 0.0041, 0.00212, -0.001, -0.0031, -0.005227, -0.005435, -0.005574, -0.00544, -0.00525],
)
UP = (
    [-2.0944, -1.22173, -0.523599, -0.349066, -0.174533, 0.159149, 2.0944],
    [-0.4226, -0.4082, -0.399, -0.3976, -0.3966, -0.395264, -0.396],
)


def linear(coordinate, ratio, offset=0.0):
    return Joint(at.REVOLUTE, (coordinate,), LINEAR, (ratio, offset))


def weighted(rng, mass):
    half = rng.normal(size=(3, 3)) * 0.1
    return {"mass": mass, "com": rng.normal(size=3) * 0.1, "inertia": half @ half.T + 0.02 * np.eye(3)}


def somewhere(rng):
    return JointFrame(Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3) * 0.2)


def leg(rng):
    """Hip of three axes, a knee that rolls and slides, a joint of six functions, and a foot on the same coordinate."""
    tree = FunctionalTree()
    hip = [Axis([0, 0, 1], revolute("flexion")), Axis([1, 0.1, 0], revolute("adduction"))]
    tree.add("femur", "", [*hip, Axis([0, 1, 0], revolute("turn"))], **weighted(rng, 9.0))
    slides = [Axis([1, 0, 0], spline("knee", *FORWARD)), Axis([0, 1, 0], spline("knee", *UP)), Axis([0, 0, 1], 0.01)]
    frames = somewhere(rng), somewhere(rng)
    tree.add("tibia", "femur", [Axis([0, 0.1, 2], revolute("knee"))], slides, **weighted(rng, 3.5), frames=frames)
    turns = [
        Axis([0.3, 1, 0], polynomial("ankle", [0.1, 0.6, -0.3, 0.2])),
        Axis([1, 0.4, 0.2], spline("knee", *FORWARD, ratio=20.0, offset=0.2)),
        Axis([0, 0.2, 1], linear("ankle", -0.7, 0.1)),
    ]
    slides = [
        Axis([0, 0, 1], prismatic("ankle")),
        Axis([1, 1, 0], polynomial("knee", [0.0, 0.02, 0.05])),
        Axis([0, 1, 0.2], spline("ankle", *FORWARD)),
    ]
    frames = somewhere(rng), somewhere(rng)
    tree.add("foot", "tibia", turns, slides, **weighted(rng, 1.2), frames=frames)
    tree.add("toes", "foot", [Axis([0, 0, 1], 0.4), Axis([0, 1, 1], linear("ankle", 0.5))], **weighted(rng, 0.2))
    return tree


def spine(rng, vertebrae=6):
    """Flexion, bending and twist spread over vertebrae by fixed shares; a head on the last."""
    share = rng.uniform(0.5, 1.5, (3, vertebrae))
    share /= share.sum(axis=1, keepdims=True)
    tree, names, below = FunctionalTree(), ("flexion", "bending", "twist"), ENVIRONMENT
    for k in range(vertebrae):
        turns = [Axis(np.eye(3)[[2, 0, 1][j]], linear(names[j], share[j, k])) for j in range(3)]
        here = JointFrame(Rotation.from_rotvec(0.1 * rng.normal(size=3)).as_matrix(), np.array([0.0, 0.05, 0.0]))
        tree.add(f"v{k}", below, turns, **weighted(rng, 0.6), frames=(here, IDENTITY_FRAME))
        below = f"v{k}"
    tree.add("head", below, [Axis([0, 0, 1], revolute("nod"))], **weighted(rng, 4.0))
    return tree


TREES = {"leg": leg, "spine": spine}


def state(model, rng):
    return rng.uniform(-1.2, 0.9, model.nq), rng.normal(size=model.nv)


# -------- The definition


def test_bodies_are_where_the_product_of_the_six_motions_puts_them():
    """Eq. of the module by SciPy's rotations; axes neither unit nor orthogonal, constants between."""
    rng = np.random.default_rng(1)
    P, C = somewhere(rng), somewhere(rng)
    axes = rng.normal(size=(6, 3))
    values = [
        linear("a", 0.7, 0.2),
        0.3,
        polynomial("b", [0.1, 0.5, -0.4]),
        -0.2,
        spline("a", *FORWARD),
        prismatic("b"),
    ]
    tree = FunctionalTree()
    tree.add("root", "", [Axis([0, 1, 0], revolute("root"))], **weighted(rng, 1.0), frames=(somewhere(rng), C))
    moves = [Axis(axes[k], values[k]) for k in range(6)]
    mass = weighted(rng, 2.0)
    tree.add("b", "root", moves[:3], moves[3:], **mass, frames=(P, C))
    model = Model(tree.bodies)
    assert [b.name for b in model.bodies] == ["root", "b.1", "b.2", "b.3", "b"]
    dynamics = ForwardDynamics(model)
    q, _ = state(model, rng)
    kinematics_pass(dynamics.arrays.tables, q, np.zeros(3), dynamics.arrays.work)

    def placed(name):
        o = (model.index[name] + 1) * at.NW
        W = dynamics.arrays.work.W
        return (
            JointFrame(W[o + at.ROT : o + at.ROT + 9].reshape(3, 3), W[o + at.POS : o + at.POS + 3]) @ tree.frames[name]
        )

    c = dict(zip(model.coordinates, q, strict=True))
    f = [x if isinstance(x, float) else coupled(x, np.array([c[x.coordinates[0]]])) for x in values]
    unit = axes / np.linalg.norm(axes, axis=1, keepdims=True)
    turn = np.prod([Rotation.from_rotvec(f[k] * unit[k]) for k in range(3)])
    inside = JointFrame(turn.as_matrix(), f[3] * unit[3] + f[4] * unit[4] + f[5] * unit[5])
    expected = placed("root") @ P @ inside @ C.inverse()
    assert np.allclose(placed("b").R, expected.R, atol=1e-13) and np.allclose(placed("b").p, expected.p, atol=1e-13)
    own, r = tree.frames["b"], np.array([0.1, -0.2, 0.3])
    assert np.allclose(tree.point("b", r), own.R @ r + own.p)
    body = model.bodies[model.index["b"]].inertia
    assert np.allclose(body.com, tree.point("b", mass["com"]))
    about = body.about_origin + 2.0 * pin.skew(body.com) @ pin.skew(body.com)
    assert np.allclose(about, own.R @ mass["inertia"] @ own.R.T)
    assert sum(b.inertia.mass for b in model.bodies[1:4]) == 0
    tree.add("point", "b", [Axis([0, 0, 1], revolute("p"))], mass=0.5, frames=(P, C))
    assert np.allclose(tree.bodies[-1].inertia.com, tree.frames["point"].p), "in its own origin, if nothing is said"


# -------- The full chain, projected


def full_chain(model):
    """Every joint with a coordinate of its own, in pinocchio."""
    tree = pin.Model()
    tree.gravity.linear = np.array(GRAVITY)
    for i, body in enumerate(model.bodies):
        kind = pin.JointModelRZ() if body.joint.motion == at.REVOLUTE else pin.JointModelPZ()
        joint = tree.addJoint(int(model.parents[i]) + 1, kind, pin.SE3(body.A.T, body.r), body.name)
        m, c = body.inertia.mass, body.inertia.com
        about = body.inertia.about_origin + m * pin.skew(c) @ pin.skew(c)
        tree.appendBodyToJoint(joint, pin.Inertia(m, c, about), pin.SE3.Identity())
    return tree


def coupling_map(model, q, v):
    """Values of all joints, B = d value / d coordinates by complex steps, and B' v by differences."""

    def gradient(x):
        B = np.zeros((len(model.bodies), model.nv))
        for i, (body, own) in enumerate(zip(model.bodies, model.coords, strict=True)):
            B[i, own[0]] = np.imag(coupled(body.joint, np.array([x[own[0]] + 1e-30j]))) / 1e-30
        return B

    values = [
        np.real(coupled(b.joint, np.array([q[own[0]]]))) for b, own in zip(model.bodies, model.coords, strict=True)
    ]
    h = 1e-6
    return np.array(values), gradient(q), (gradient(q + h * v) - gradient(q - h * v)) @ v / (2 * h)


def matrix_and_bias(model, q, v):
    """M and h of the engine, h(q, v) = M qdd - tau at tau = 0 without acceleration."""
    dynamics, zero = ForwardDynamics(model, "dense", GRAVITY), np.zeros(model.nv)
    mass_matrix_at(dynamics._packed.table, q, v, zero, np.zeros((len(model.bodies), 6)), zero)
    a = dynamics.arrays
    M = np.tril(a.work.M) + np.tril(a.work.M, -1).T
    rank = a.tables.rank
    return M[np.ix_(rank, rank)], -a.work.rhs[rank]


@pytest.mark.parametrize("kind", TREES)
def test_matrix_bias_and_jacobians_are_those_of_the_full_chain_projected(kind):
    """M = B^T M_full B, h = B^T (h_full + M_full B' v), J = J_full B, with pinocchio's full chain."""
    rng = np.random.default_rng(3)
    model = Model(TREES[kind](rng).bodies)
    assert max(len(loop.bodies) for loop in model.loops) > 8
    tree = full_chain(model)
    data = tree.createData()
    dynamics = ForwardDynamics(model, gravity=GRAVITY)
    for _ in range(8):
        q, v = state(model, rng)
        full_q, B, drift = coupling_map(model, q, v)
        M_full = pin.crba(tree, data, full_q)
        M_full = np.triu(M_full) + np.triu(M_full, 1).T
        M = B.T @ M_full @ B
        h = B.T @ (pin.nonLinearEffects(tree, data, full_q, B @ v) + M_full @ drift)
        ours, bias = matrix_and_bias(model, q, v)
        assert np.allclose(ours, M, rtol=0, atol=1e-10 * np.abs(M).max())
        assert np.allclose(bias, h, rtol=0, atol=1e-6 * np.abs(h).max())
        tau = rng.normal(size=model.nv)
        expected = np.linalg.solve(M, tau - h)
        for solver in SOLVERS:
            qdd = ForwardDynamics(model, solver, GRAVITY)(q, v, tau)
            assert np.allclose(qdd, expected, rtol=0, atol=1e-6 * np.abs(expected).max()), solver
        qdd = dynamics(q, v, tau)
        pin.forwardKinematics(tree, data, full_q, B @ v, B @ qdd + drift)
        W = dynamics.arrays.work.W
        for i in range(len(model.bodies)):
            o = (i + 1) * at.NW
            seen, moved = pin.getVelocity(tree, data, i + 1), pin.getClassicalAcceleration(tree, data, i + 1)
            assert np.allclose(W[o + at.OMEGA : o + at.OMEGA + 6], [*seen.angular, *seen.linear], atol=1e-11)
            size = max(1.0, np.abs(moved.vector).max())
            assert np.allclose(W[o + at.ACC : o + at.ACC + 6], [*moved.angular, *moved.linear], atol=1e-6 * size)
        pin.computeJointJacobians(tree, data, full_q)
        for k in range(model.nv):
            unit = np.eye(model.nv)[k]
            kinematics_pass(dynamics.arrays.tables, q, unit, dynamics.arrays.work)
            for i in range(len(model.bodies)):
                J = pin.getJointJacobian(tree, data, i + 1, pin.LOCAL) @ B[:, k]
                o = (i + 1) * at.NW
                assert np.allclose(W[o + at.OMEGA : o + at.OMEGA + 6], [*J[3:], *J[:3]], atol=1e-10)


def test_functional_joints_obey_newton_and_euler_as_a_plain_program_writes_them():
    rng = np.random.default_rng(4)
    model = Model(leg(rng).bodies)
    q, v = state(model, rng)
    tau, wrench = rng.normal(size=model.nv), np.zeros((len(model.bodies), 6))
    wrench[model.index["foot"]] = rng.normal(size=6)
    M, rhs = equations(model, q, v, wrench, np.array(GRAVITY))
    expected = np.linalg.solve(M, rhs + tau)
    for solver in SOLVERS:
        qdd = ForwardDynamics(model, solver, GRAVITY)(q, v, tau, wrench)
        assert np.allclose(qdd, expected, rtol=0, atol=1e-7 * np.abs(expected).max()), solver
    ours, _ = matrix_and_bias(model, q, v)
    assert np.allclose(ours, M, rtol=0, atol=1e-10 * np.abs(M).max())


def test_a_leg_with_splines_keeps_its_energy_on_a_flying_pelvis():
    rng = np.random.default_rng(6)
    inside = leg(rng).bodies
    root = Joint(at.FREE, free("pelvis").coordinates)
    pelvis = replace(inside[-1], name="pelvis", parent="", joint=root)
    model = Model([pelvis, *(replace(b, parent=b.parent or "pelvis") for b in inside)])
    q, v = model.neutral(), rng.normal(size=model.nv)
    q[7:], drift = [0.2, -0.1, 0.3, -0.8, 0.1], []
    dynamics = ForwardDynamics(model)
    before = totals(dynamics, q, v)
    for steps in (60, 120):
        end = totals(dynamics, *fly(dynamics, q.copy(), v, 0.06 / steps, steps))
        drift.append(abs(end.kinetic + end.potential - before.kinetic - before.potential) / before.kinetic)
    assert np.allclose(end.linear - before.linear, model.mass * np.array([0, 0, -9.81]) * 0.06, atol=1e-6)
    assert drift[1] < 1e-7 and abs(end.potential - before.potential) > 1e-3 * before.kinetic, drift


# -------- A torso of three coordinates


def test_pinocchios_mimic_joints_move_the_spine_alike():
    """Where all functions are straight, pinocchio has them too: rigid bodies by `crba` and `rnea` with mimic joints."""
    rng = np.random.default_rng(8)
    model = Model(spine(rng).bodies)
    tree, first = full_chain(model), {}
    for i, body in enumerate(model.bodies):
        c = model.coords[i][0]
        if c in first:
            ratio = body.joint.parameters[0] / model.bodies[first[c]].joint.parameters[0]
            tree = pin.transformJointIntoMimic(tree, first[c] + 1, i + 1, ratio, 0.0)
        else:
            first[c] = i
    assert tree.nv == model.nv == 4
    moved = [model.bodies[first[c]].joint for c in range(4)]
    scale = np.array([j.parameters[0] if j.coupling == LINEAR else 1.0 for j in moved])  # pinocchio's v = scale v
    q, v = state(model, rng)
    data = tree.createData()
    M = pin.crba(tree, data, scale * q)
    M = np.triu(M) + np.triu(M, 1).T
    h = pin.rnea(tree, data, scale * q, scale * v, np.zeros(4))
    ours, bias = matrix_and_bias(model, q, v)
    assert np.allclose(ours, scale[:, None] * M * scale, atol=1e-12 * np.abs(M).max())
    assert np.allclose(bias, scale * h, atol=1e-11 * np.abs(h).max())


def test_three_coordinates_fit_vertebrae_that_moved_by_the_same_shares():
    """Places of the vertebrae of pinocchio's 18 joints, fitted by three coordinates; another spread leaves a rest."""
    model, q = Model(spine(np.random.default_rng(9)).bodies), np.array([0.7, -0.4, 0.5, 0.2])
    tree = full_chain(model)
    data = tree.createData()
    assert tree.nv == 19 and model.nv == 4
    pin.forwardKinematics(tree, data, coupling_map(model, q, q)[0])
    seen = np.array([X.translation for X in data.oMi[1:]])

    def fit(torso):
        arrays = ForwardDynamics(torso).arrays

        def away(x):
            kinematics_pass(arrays.tables, np.append(x, 0.0), np.zeros(4), arrays.work)
            return (arrays.work.W.reshape(-1, at.NW)[1:, at.POS : at.POS + 3] - seen).ravel()

        found = least_squares(away, np.zeros(3), ftol=1e-15, xtol=1e-15, gtol=1e-15)
        return found.x, float(np.abs(found.fun).max())

    x, rest = fit(model)
    assert rest < 1e-9 and np.allclose(x, q[:3], atol=1e-7)
    stiff = [
        replace(b, joint=linear(b.joint.coordinates[0], 0.5 if b.name[:2] in ("v0", "v5") else 1e-9))
        if b.joint.coupling == LINEAR
        else b
        for b in model.bodies
    ]
    x, rest = fit(Model(stiff))
    assert 1e-3 < rest < 0.05 and np.allclose(x[:2], q[:2], atol=0.3)  # origins alone hardly show the twist


def test_the_example_of_the_module_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", functional_joint.__doc__, re.S)
    exec(compile(block, "functional_joint", "exec"), {})
    assert len(capsys.readouterr().out) > 10


# -------- What is refused


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("unknown parent 'femor': did you mean femur", {"parent": "femor"}),
        ("none of its axes moves", {"rotations": [Axis([1, 0, 0], 0.3)]}),
        ("an axis must not be zero", {"rotations": [Axis([0, 0, 0], revolute("x"))]}),
        ("up to 3 rotations and 3 translations, not 4 and 0", {"rotations": [Axis([1, 0, 0], revolute("x"))] * 4}),
        ("not a free joint", {"rotations": [Axis([1, 0, 0], free("x"))]}),
        ("its centre of gravity must be three numbers", {"com": [1.0, 2.0]}),
    ],
)
def test_bad_joints_are_refused_in_one_line(words, given):
    tree = FunctionalTree()
    tree.add("femur", "", [Axis([1, 0, 0], revolute("hip"))])
    good = {"name": "tibia", "parent": "femur", "rotations": [Axis([1, 0, 0], revolute("knee"))]}
    with pytest.raises(HumanoidError) as e:
        tree.add(**(good | given))
    assert words in str(e.value) and "\n" not in str(e.value)
    assert len(tree.bodies) == 1 and set(tree.frames) == {"", "femur"}
    tree.add(**good)


@pytest.mark.parametrize(
    ("words", "make"),
    [
        ("must increase", lambda: spline("a", [0, 0, 1], [1, 2, 3])),
        ("two finite coefficients or more", lambda: polynomial("a", [1.0])),
        ("a spline coupling has 1 coordinate and", lambda: Joint(at.REVOLUTE, ("a",), 7, (1.0, 0.0, 5.0, 1.0))),
        ("a spline coupling has 1 coordinate and", lambda: Joint(at.REVOLUTE, ("a",), 7, ())),
        ("a polynomial coupling has 1 coordinate", lambda: Joint(at.REVOLUTE, ("a", "b"), 8, (1, 0, 2, 1, 1))),
        ("is not a number", lambda: Joint(at.REVOLUTE, ("a",), 8, (1, 0, np.nan, 1, 1))),
    ],
)
def test_bad_functions_are_refused_in_one_line(words, make):
    with pytest.raises(HumanoidError) as e:
        make()
    assert words in str(e.value) and "\n" not in str(e.value)
