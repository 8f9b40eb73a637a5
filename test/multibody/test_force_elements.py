"""Springs, ropes, muscles and joint springs: virtual work, energy, momentum, MuJoCo, and the routing of tendons."""

import re

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.multibody import (
    ENVIRONMENT,
    Body,
    ForceElements,
    ForwardDynamics,
    Inertia,
    JointElement,
    Model,
    MuscleLaw,
    PathElement,
    SpringLaw,
    force_elements,
    free,
    from_pinocchio,
    prismatic,
    revolute,
    rotor,
    routed_force,
    totals,
)
from humanoid_control.multibody.force_elements import law_energy, law_force
from humanoid_control.multibody.kinematics_pass import configuration_rate
from humanoid_control.multibody.layout import PRISMATIC, REVOLUTE
from humanoid_control.robots import load_robot
from humanoid_control.simulation.drives.tendon_plant import TendonPlant
from test.multibody.random_trees import BASES, geared_model, random_bodies, random_inertia, random_state
from test.reference.plain_dynamics import coupled, flown, moved, poses

SPRING, MUSCLE = SpringLaw(300.0, 0.2, 8.0), MuscleLaw(150.0, 0.4, 0.1, 8.0)


def felt(model):
    return [b.name for b in model.bodies if b.inertia.mass > 0]


def random_paths(model, rng, laws, environment=True):
    bodies = felt(model) + [ENVIRONMENT] * environment
    out = []
    for k, law in enumerate(laws):
        points = [(str(bodies[rng.integers(len(bodies))]), rng.normal(size=3) * 0.2) for _ in range(2 + k % 3)]
        out.append(PathElement(f"path{k}", points, law))
    return out


def lengths(model, paths, q):
    """Lengths (M,) by products of homogeneous transforms; q may be complex."""
    X, out = poses(model, q), []
    for path in paths:
        of = [X[model.index[b]] if b else np.eye(4) for b, _ in path.points]
        places = [Y[:3, :3] @ r + Y[:3, 3] for Y, (_, r) in zip(of, path.points, strict=True)]
        steps = np.diff(np.array(places), axis=0)
        out.append(np.sum(np.sqrt(np.sum(steps * steps, axis=1))))
    return np.array(out)


def arms(model, paths, q):
    """dl/dq (M, nv) by complex steps."""
    columns = [lengths(model, paths, moved(model, q, k, 1e-30j)).imag / 1e-30 for k in range(model.nv)]
    return np.array(columns).T


def joint_angles(model, names, q):
    out = []
    for name in names:
        i = model.index[name]
        out.append(coupled(model.bodies[i].joint, q[model.qpos[list(model.coords[i])]]))
    return np.array(out)


def joint_springs(model, rng):
    single = [b.name for b in model.bodies if len(b.joint.coordinates) < 6 and b.inertia.mass > 0]
    chosen = rng.choice(single, min(4, len(single)), replace=False)
    return [JointElement(f"at {n}", str(n), *rng.uniform([5, -1, 0.1], [20, 1, 2])) for n in chosen]


# -------- Against virtual work


@pytest.mark.parametrize("base", BASES)
def test_wrenches_do_the_work_of_the_lengths_and_angles(base):
    """The accelerations are those of the generalised forces -(dl/dq)^T F and (d angle/dq) T, loops and all."""
    rng = np.random.default_rng(BASES.index(base))
    kinds = set()
    for _ in range(4):
        model = geared_model(rng, 9, base)
        q, v = random_state(model, rng)
        paths, springs = random_paths(model, rng, [SPRING, MUSCLE, SPRING, MUSCLE, SPRING]), joint_springs(model, rng)
        elements = ForceElements(model, [springs[0], *paths, *springs[1:]])
        assert elements.names == tuple(e.name for e in [*paths, *springs])
        elements.command[:] = rng.uniform(0, 1, 5)
        dynamics = ForwardDynamics(model)
        wrench = elements.wrenches(dynamics, q, v)
        long, G, names = lengths(model, paths, q), arms(model, paths, q), [s.body for s in springs]
        A = np.array([joint_angles(model, names, moved(model, q, k, 1e-30j)).imag / 1e-30 for k in range(model.nv)]).T
        angles, n = joint_angles(model, names, q).real, len(paths)
        joints = [model.bodies[model.index[name]].joint for name in names]
        kinds |= {(joint.motion, joint.coupling) for joint in joints}
        assert np.allclose(elements.state[:n, 0], long.real) and np.allclose(elements.state[:n, 1], G @ v, atol=1e-12)
        assert np.allclose(elements.state[n:, 0], angles) and np.allclose(elements.state[n:, 1], A @ v, atol=1e-12)
        for e, law in enumerate([SPRING, MUSCLE, SPRING, MUSCLE, SPRING]):
            if law is SPRING:
                expected = 300.0 * (long[e].real - 0.2) + 8.0 * (G @ v)[e] + elements.command[e]
                assert elements.force[e] == pytest.approx(expected)
        k, rest, d = np.array([(s.stiffness, s.rest, s.damping) for s in springs]).T
        assert np.allclose(elements.force[n:], -k * (angles - rest) - d * (A @ v))
        tau = -G.T @ elements.force[:n] + A.T @ elements.force[n:]
        expected = dynamics(q, v, tau)
        assert np.allclose(dynamics(q, v, wrench=wrench), expected, rtol=0, atol=1e-9 * np.abs(expected).max())
        assert np.abs(tau).max() > 1
        power = -elements.force[:n] @ (G @ v) + elements.force[n:] @ (A @ v)
        assert elements.power.sum() == pytest.approx(power)
    assert {motion for motion, _ in kinds} == {REVOLUTE, PRISMATIC} and len({coupling for _, coupling in kinds}) > 1


def test_generalised_force_is_the_fall_of_the_stored_energy():
    rng = np.random.default_rng(5)
    model = Model(random_bodies(rng, 8, "quaternion"))
    q, _ = random_state(model, rng)
    ropes = [SpringLaw(200.0, rest, pulls_only=True) for rest in (0.1, 9.0)]
    paths = random_paths(model, rng, [SpringLaw(300.0, 0.2), MUSCLE, *ropes])
    elements = ForceElements(model, [*paths, JointElement("j", model.bodies[-1].name, 12.0, 0.4)])
    dynamics, still, h = ForwardDynamics(model, gravity=(0, 0, 0)), np.zeros(model.nv), 1e-6
    slope = []
    for k in range(model.nv):
        ends = []
        for s in (1, -1):
            elements.wrenches(dynamics, flown(model, q, np.eye(model.nv)[k], s * h), still)
            ends.append(elements.stored_energy)
        slope.append((ends[0] - ends[1]) / (2 * h))
    wrench = elements.wrenches(dynamics, q, still)
    assert elements.state[1, 0] > 0.5 and elements.force[3] == 0, "a stretched muscle, and a rope that hangs"
    expected = dynamics(q, still, -np.array(slope))
    assert np.allclose(dynamics(q, still, wrench=wrench), expected, rtol=0, atol=1e-6 * np.abs(expected).max())


# -------- Motion


def swing(damping, steps, time):
    """A free tree without weight whose bodies pull at each other; totals, stored energy and work at both ends."""
    rng = np.random.default_rng(2)
    model = Model(random_bodies(rng, 6, "quaternion", sharing=0.3))
    paths = random_paths(model, rng, [SpringLaw(30.0, 0.1, damping), SpringLaw(20.0, 0.3, damping)] * 2, False)
    springs = [JointElement("j", model.bodies[-1].name, 3.0, 0.3, damping / 10)]
    elements, dynamics = ForceElements(model, [*paths, *springs]), ForwardDynamics(model, gravity=(0, 0, 0))
    q, v = random_state(model, rng)
    h, work = time / steps, 0.0

    def rates(q, v):
        rate = np.empty(model.nq)
        configuration_rate(dynamics.arrays.tables, q, v, rate)
        wrench = elements.wrenches(dynamics, q, v)
        return rate, dynamics(q, v, wrench=wrench), elements.power.sum()

    def all_of(q, v):
        elements.wrenches(dynamics, q, v)
        return totals(dynamics, q, v), elements.stored_energy

    start = all_of(q, v)
    for _ in range(steps):
        a, b, p1 = rates(q, v)
        c, d, p2 = rates(q + h / 2 * a, v + h / 2 * b)
        e, f, p3 = rates(q + h / 2 * c, v + h / 2 * d)
        g, k, p4 = rates(q + h * e, v + h * f)
        q, v = q + h / 6 * (a + 2 * c + 2 * e + g), v + h / 6 * (b + 2 * d + 2 * f + k)
        work += h / 6 * (p1 + 2 * p2 + 2 * p3 + p4)
        q[3:7] /= np.linalg.norm(q[3:7])
    return start, all_of(q, v), work


@pytest.mark.parametrize("damping", [0.0, 6.0])
def test_inner_forces_keep_momentum_and_their_power_becomes_kinetic_energy(damping):
    (before, stored), (after, left), work = swing(damping, 300, 0.2)
    assert np.allclose(after.linear, before.linear, atol=1e-7) and abs(after.kinetic - before.kinetic) > 0.5
    com_moved = before.com + 0.2 * before.linear / before.mass
    assert np.allclose(after.com, com_moved, atol=1e-7) and np.allclose(after.angular, before.angular, atol=1e-6)
    assert after.kinetic - before.kinetic == pytest.approx(work, abs=1e-5 * before.kinetic)
    lost = before.kinetic + stored - after.kinetic - left
    assert lost > 0.5 if damping else abs(lost) < 1e-5 * (before.kinetic + stored)


def test_mujoco_has_the_same_springs():
    mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")
    text = """<mujoco><option gravity="0 0 -9.81"/><worldbody><site name="w" pos="0.3 0.1 0.4"/>
      <body name="a"><joint name="a" axis="0 0 1" stiffness="7" damping="0.4" springref="30"/>
        <inertial mass="2" pos="0.1 0.02 -0.2" diaginertia="0.02 0.03 0.04"/><site name="a" pos="0.1 0.1 -0.3"/>
        <body name="b" pos="0.05 0 -0.4"><joint name="b" type="slide" axis="0 0 1" stiffness="90" damping="3"/>
          <inertial mass="1" pos="0 0.1 0" diaginertia="0.01 0.02 0.02"/><site name="b" pos="0.2 0 0.1"/>
          <body name="c" pos="0.1 0.2 0" quat="0.7071067811865476 0.7071067811865476 0 0"><joint name="c" axis="0 0 1"/>
            <inertial mass="1.5" pos="0.1 0 0" diaginertia="0.01 0.01 0.02"/><site name="c" pos="0.2 0.1 0"/>
      </body></body></body></worldbody>
      <tendon><spatial name="s" stiffness="120" damping="5" springlength="0.3"><site site="w"/><site site="c"/>
        </spatial>
        <spatial name="t" stiffness="60" damping="2" springlength="0.1"><site site="a"/><site site="b"/><site site="c"/>
        </spatial></tendon></mujoco>"""
    theirs = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(theirs)

    def inertia(mass, com, about):
        return Inertia.about_com(mass, np.array(com), np.diag(about))

    turned = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]]).T
    bodies = [
        Body("a", "", revolute("a"), inertia(2, [0.1, 0.02, -0.2], [0.02, 0.03, 0.04])),
        Body("b", "a", prismatic("b"), inertia(1, [0, 0.1, 0], [0.01, 0.02, 0.02]), r=np.array([0.05, 0, -0.4])),
        Body("c", "b", revolute("c"), inertia(1.5, [0.1, 0, 0], [0.01, 0.01, 0.02]), turned, np.array([0.1, 0.2, 0])),
    ]
    model = Model(bodies)
    site_a, site_b, site_c = ("a", [0.1, 0.1, -0.3]), ("b", [0.2, 0, 0.1]), ("c", [0.2, 0.1, 0])
    elements = ForceElements(
        model,
        [
            PathElement("s", [("", [0.3, 0.1, 0.4]), site_c], SpringLaw(120, 0.3, 5)),
            PathElement("t", [site_a, site_b, site_c], SpringLaw(60, 0.1, 2)),
            JointElement("a", "a", 7, np.radians(30), 0.4),
            JointElement("b", "b", 90, 0, 3),
        ],
    )
    dynamics, rng = ForwardDynamics(model), np.random.default_rng(1)
    for _ in range(5):
        q, v = rng.uniform(-0.8, 0.8, 3), rng.normal(size=3)
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(theirs, data)
        ours = dynamics(q, v, wrench=elements.wrenches(dynamics, q, v))
        assert elements.state[:2, 0] == pytest.approx(data.ten_length, abs=1e-12)
        assert ours == pytest.approx(data.qacc, abs=1e-8 * np.abs(data.qacc).max())


# -------- Paths laid elsewhere


def test_tendons_of_a_robot_pull_as_paths_through_the_same_points():
    """Lengths and moment arms of the tendons' own routing give the generalised force of the wrenches."""
    robot = load_robot("kengoro_upper", "fixed")
    plant, tree = TendonPlant(robot), from_pinocchio(robot.model)
    model = Model(tree.bodies)
    paths, laws, rng = [], [], np.random.default_rng(0)
    for k, t in enumerate(plant.geometry.tendons):
        law = MuscleLaw(300.0, 0.1 + 0.001 * k, 0.05) if k % 2 else SpringLaw(500.0, 0.1, 3.0, True)
        points = []
        for p in t.path:
            frame = robot.model.frames[robot.model.getFrameId(p.link, pin.FrameType.BODY)]
            name, r = robot.model.names[frame.parentJoint], frame.placement.act(np.array(p.xyz))
            points.append((name, tree.turn[name].T @ r) if frame.parentJoint else ("", r))
        laws.append((t.name, law))
        paths.append(PathElement(t.name, points, law))
    elements, dynamics = ForceElements(model, paths), ForwardDynamics(model)
    elements.command[:] = rng.uniform(0, 1, len(paths))

    def routing(q):
        length, moment_arms = plant.measure(q)
        G = np.zeros((len(paths), robot.n))
        G[:, plant.joints] = moment_arms
        return length, G

    for _ in range(3):
        q, v = rng.uniform(0.4 * robot.lower, 0.4 * robot.upper), rng.normal(size=robot.n)
        tau, force = routed_force(laws, routing, elements.command, q, v)
        wrench = elements.wrenches(dynamics, q, v)
        assert np.allclose(elements.force, force, atol=1e-8) and np.ptp(force) > 10
        expected = dynamics(q, v, tau)
        assert np.allclose(dynamics(q, v, wrench=wrench), expected, rtol=0, atol=1e-8 * np.abs(expected).max())


# -------- Laws


def test_a_muscle_has_the_curves_of_thelen():
    kind, numbers = MuscleLaw(100.0, 0.2, 0.05, 10.0).numbers("m")
    par = np.array(numbers)

    def force(a, length, speed=0.0):
        return law_force(kind, par, a, 0.05 + 0.2 * length, speed * 10.0 * 0.2)

    assert force(1, 1.0) == pytest.approx(100) and force(0.3, 1.0) == pytest.approx(30) and force(0, 0.8) == 0
    assert force(0, 1.6) == pytest.approx(100), "the largest passive force at a strain of 0.6"
    assert force(1, 0.7) == pytest.approx(100 * np.exp(-0.09 / 0.45))
    assert force(1, 1.0, -1.0) == pytest.approx(0, abs=1e-9) and force(1, 1.0, -3.0) == pytest.approx(0, abs=1e-9)
    assert force(1, 1.0, -0.5) == pytest.approx(100 * 0.5 / 3.0)
    assert 135 < force(1, 1.0, 1.0) < 140 and force(1, 1.0, 50.0) < 140.0001
    assert force(1, 1.0, 0.1) == pytest.approx(100 * (1 + 0.1 * 25 * 1.4) / (1 + 2.5))
    speeds = [force(1, 0.9, u) for u in np.linspace(-1, 1, 201)]
    assert (np.diff(speeds) > 0).all() and np.abs(np.diff(speeds)).max() < 10, "rises without a step"
    for length in (0.8, 1.0, 1.3, 1.7):
        x, h = 0.05 + 0.2 * length, 1e-6
        slope = (law_energy(kind, par, x + h) - law_energy(kind, par, x - h)) / (2 * h)
        assert slope == pytest.approx(force(0, length), abs=1e-4)


def test_a_rope_never_pushes_and_points_that_meet_give_numbers():
    kind, numbers = SpringLaw(100.0, 0.5, 10.0, True).numbers("rope")
    par = np.array(numbers)
    assert law_force(kind, par, 0.0, 0.4, 5.0) == 0 and law_force(kind, par, 0.0, 0.6, 0.0) == pytest.approx(10)
    assert law_force(kind, par, 0.0, 0.6, -5.0) == 0 and law_force(kind, par, 7.0, 0.4, 0.0) == 7
    assert law_energy(kind, par, 0.4) == 0 and law_energy(kind, par, 0.6) == pytest.approx(0.5)
    spring = np.array(SpringLaw(100.0, 0.5, 10.0).numbers("spring")[1])
    assert law_energy(kind, spring, 0.4) == pytest.approx(0.5)
    assert law_force(kind, spring, 0.0, 0.4, 0.0) == pytest.approx(-10)
    model = Model([Body("a", "", free("a"), random_inertia(np.random.default_rng(0)))])
    elements = ForceElements(model, [PathElement("p", [("", [0, 0, 0]), ("a", [0, 0, 0])], SpringLaw(10.0, 0.2))])
    assert np.isfinite(elements.wrenches(ForwardDynamics(model), model.neutral(), np.ones(6))).all()


def test_the_example_of_the_module_runs(capsys):
    (block,) = re.findall(r"```python\n(.*?)```", force_elements.__doc__, re.S)
    exec(compile(block, "force_elements", "exec"), {})
    assert len(capsys.readouterr().out) > 10


SHAFT = Inertia(0.0, np.zeros(3), np.diag([1e-3, 1e-3, 1e-3]))
GOOD = [("", [0, 0, 1]), ("a", [0, 0, 0])]


@pytest.mark.parametrize(
    ("words", "elements"),
    [
        ("unknown body 'aa': did you mean a?", [PathElement("p", [("", [0, 0, 0]), ("aa", [0, 0, 0])], SPRING)]),
        ("two elements are named 'p'", [PathElement("p", GOOD, SPRING), JointElement("p", "a", 1.0)]),
        ("'p': a path has two points or more, not 1", [PathElement("p", GOOD[:1], SPRING)]),
        ("'p': a point must be three numbers", [PathElement("p", [("", [0, 0]), *GOOD], SPRING)]),
        ("'p': 'shaft' is a massless shaft", [PathElement("p", [*GOOD, ("shaft", [0, 0, 0])], SPRING)]),
        ("'j': 'shaft' is a massless shaft", [JointElement("j", "shaft", 1.0)]),
        ("'j': the joint of 'base' has no single axis", [JointElement("j", "base", 1.0)]),
        ("'j': a number is not finite", [JointElement("j", "a", np.nan)]),
        ("'j': a number is not finite, or its damping is negative", [JointElement("j", "a", 1.0, 0.0, -1.0)]),
        ("'p': stiffness, rest and damping must be 0 or more", [PathElement("p", GOOD, SpringLaw(-1.0))]),
        ("'p': max_force must be above zero", [PathElement("p", GOOD, MuscleLaw(0.0, 0.1))]),
        ("'p': slack must be 0 or more", [PathElement("p", GOOD, MuscleLaw(1.0, 0.1, -0.1))]),
    ],
)
def test_bad_elements_are_refused_in_one_line(words, elements):
    rng = np.random.default_rng(0)
    base, link = (
        Body("base", "", free("base"), random_inertia(rng)),
        Body("a", "base", revolute("a"), random_inertia(rng)),
    )
    model = Model([base, link, Body("shaft", "base", rotor("a", 50.0), SHAFT)])
    with pytest.raises(HumanoidError) as e:
        ForceElements(model, elements)
    assert words in str(e.value) and "\n" not in str(e.value)
