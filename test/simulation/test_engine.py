"""What every engine does alike: commands by kind, pushes, states from outside, foot wrenches, refusals."""

import sys

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, EnvironmentProblem, RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import ENGINES, SimulationConfig, WorldSettings, make_engine
from humanoid_control.simulation.contact.points import shape_points
from humanoid_control.simulation.engine import check_model
from test.robots_under_test import nightly

FIXED, FLOATING = load_robot("wabian2", "fixed"), load_robot("suralp", "floating")
ELBOW = FIXED.joint_index("l_elbow_flexion")


def only(robot, joint, value):
    out = np.full(robot.n, np.nan)
    out[joint] = value
    return out


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "mujoco":
        pytest.importorskip("mujoco")
    return lambda robot, **kwargs: make_engine(robot, request.param, WorldSettings(**kwargs))


def test_a_velocity_drive_keeps_its_speed_under_load_and_leaves_the_others_alone(engine):
    w = engine(FIXED)
    w.step(200)
    others, start = np.delete(w.joints, ELBOW), w.joints[ELBOW]
    w.command(velocities=only(FIXED, ELBOW, 0.5))
    w.step(1000)
    assert w.joint_velocity[ELBOW] == pytest.approx(0.5, abs=0.005)
    assert w.joints[ELBOW] - start == pytest.approx(0.5, abs=0.02)
    assert np.abs(np.delete(w.joints, ELBOW) - others).max() < 0.01
    w.command(velocities=only(FIXED, ELBOW, np.nan))
    w.step(100)
    assert w.joint_velocity[ELBOW] == pytest.approx(0.5, abs=0.005), "what is not a number changes nothing"
    w.command(velocities=only(FIXED, ELBOW, 0.0))
    w.step(500)
    assert abs(w.joint_velocity[ELBOW]) < 1e-3


def test_an_effort_is_the_torque_of_the_joint(engine):
    """Gravity's own torque holds the arm up without any gain; a newton metre more lets it go its way."""
    w = engine(FIXED)
    w.set_state(FIXED.from_mapping({"l_elbow_flexion": 1.0}))
    w.step(300)
    held = w.torque[ELBOW]
    w.command(efforts=only(FIXED, ELBOW, held))
    before = w.joints[ELBOW]
    w.step(200)
    assert w.joints[ELBOW] == pytest.approx(before, abs=2e-3) and w.torque[ELBOW] == pytest.approx(held, abs=1e-9)
    w.command(efforts=only(FIXED, ELBOW, held + 1.0))
    w.step(100)
    assert w.joints[ELBOW] > before + 0.02
    w.command(efforts=only(FIXED, ELBOW, 1e9))
    w.step()
    assert w.torque[ELBOW] == FIXED.effort[ELBOW], "clipped at the limit"
    w.command(positions=only(FIXED, ELBOW, before))
    w.step(800)
    assert w.joints[ELBOW] == pytest.approx(before, abs=0.01), "and the position drive takes over again"


def test_a_push_gives_its_impulse_and_ends(engine):
    """In the air: momentum changes by force times time, whatever link is pushed and wherever."""
    w = engine(FLOATING, gravity=0.0)
    w.set_state(X_world_root=pin.SE3(np.eye(3), np.array([0, 0, 3.0])))
    point, force = np.array([0.0, 0.1, 0.2]), np.array([30.0, -20.0, 10.0])
    origin = w.link_pose("l_foot").act(point)
    w.push("l_foot", np.concatenate([force, [0, 0, 2.0]]), 0.05, point)
    w.step(50)
    data = w.model.createData()
    h = pin.computeCentroidalMomentum(w.model, data, w.q, w.v)
    assert h.linear == pytest.approx(force * 0.05, rel=1e-3)
    about = np.cross(origin - data.com[0], force) + [0, 0, 2.0]
    assert h.angular == pytest.approx(about * 0.05, rel=0.03, abs=0.01)
    v = w.v.copy()
    w.step(20)
    assert pin.computeCentroidalMomentum(w.model, data, w.q, w.v).linear == pytest.approx(force * 0.05, rel=1e-3)
    assert not np.array_equal(w.v, v)
    with pytest.raises(UnknownNameError, match="did you mean l_foot"):
        w.push("l_fot", np.zeros(6), 0.1)
    with pytest.raises(ConfigError, match="longer than 0 s"):
        w.push("l_foot", np.zeros(6), 0.0)
    with pytest.raises(ConfigError, match="six numbers"):
        w.push("l_foot", [np.inf] * 6, 0.1)
    for point in ([0.0, np.nan, 0.0], [0.0, 0.0]):
        with pytest.raises(ConfigError, match=r"point of a push on l_foot"):
            w.push("l_foot", np.zeros(6), 0.1, point)


def test_a_push_acts_at_its_point_on_whatever_carries_the_link(engine):
    """Lola held at her pelvis: a link that is fixed to another is pushed as that one, one that is held not at all."""
    robot, rates = load_robot("lola", "fixed"), []
    anchor, link, carrier = "pelvis", "pelvis_1", "pelvis_1__turned"
    same = [robot.model.frames[robot.model.getFrameId(x)] for x in (link, carrier)]
    assert same[0].parentJoint == same[1].parentJoint and not same[0].placement.isApprox(same[1].placement)
    for pushed, force in ((link, 40.0), (carrier, 40.0), (anchor, 40.0), (anchor, 0.0)):
        w, point = engine(robot, gravity=0.0), np.array([0.05, 0.2, 0.3])
        if pushed == carrier:
            point = w.link_pose(carrier).actInv(w.link_pose(link).act(point))
        w.push(pushed, np.array([force, force / 2, 0, 0, 0, 1.0]), 0.05, point)
        w.step(30)
        rates.append(w.v)
    assert np.abs(rates[0]).max() > 0.01 and rates[0] == pytest.approx(rates[1], abs=1e-9)
    assert np.array_equal(rates[2], rates[3])


def test_foot_wrenches_carry_the_weight_about_the_sole(engine):
    """Standing still: they add up to the weight, and their moments about the centre of mass to nothing."""
    w = engine(FLOATING)
    w.step(3000)
    wrenches = w.foot_wrenches()
    data = w.model.createData()
    com = pin.centerOfMass(w.model, data, w.q)
    pin.forwardKinematics(w.model, data, w.q)
    total, moment = np.zeros(3), np.zeros(3)
    for k, name in enumerate(w.soles.names):
        X = data.oMi[w.soles.joints[k]] * w.soles.placement[k]
        force = X.rotation @ wrenches[name][:3]
        total += force
        moment += np.cross(X.translation - com, force) + X.rotation @ wrenches[name][3:]
        assert abs(X.translation[2]) < 0.02, "the frame is at the sole, which is on the ground"
    assert total == pytest.approx([0, 0, 9.81 * FLOATING.mass], abs=12)
    assert np.abs(moment).max() < 6.0


def test_a_push_sideways_shows_in_the_wrenches(engine):
    """Pushed to the left, gently and for long: the ground answers to the right, and the load moves to the left foot."""
    w = engine(FLOATING)
    w.step(1500)
    before = w.foot_wrenches()
    w.push("base_link", np.array([0, 40.0, 0, 0, 0, 0]), 4.0)
    w.step(2000)
    forces, after = [], before
    for _ in range(100):  # it sways a little
        w.step(15)
        after = w.foot_wrenches()
        forces.append(sum(w.link_pose("l_foot").rotation @ f[:3] for f in after.values()))
    assert np.mean(forces, axis=0)[1] == pytest.approx(-40.0, abs=3.0)
    assert after["l_foot"][2] > before["l_foot"][2] + 50 and after["r_foot"][2] < before["r_foot"][2] - 50


def test_a_state_from_outside_is_taken_over_and_held(engine):
    w = engine(FLOATING, gravity=0.0)
    X = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.4, 0.9), np.array([0.3, -0.2, 2.0]))
    joints, twist = FLOATING.from_mapping({"l_elbow_flexion": 0.7}), np.array([0.1, 0.2, -0.1, 0.0, 0.0, 0.0])
    w.set_state(joints, X_world_root=X, twist=twist)
    pose, moving = w.base_state()
    assert pose == pytest.approx(pin.SE3ToXYZQUAT(X), abs=1e-12) and moving == pytest.approx(twist, abs=1e-12)
    w.step(100)
    assert w.base_state()[0][:3] == pytest.approx(X.translation + 0.1 * X.rotation @ twist[:3], abs=1e-4)
    assert w.joints == pytest.approx(joints, abs=1e-4)
    good = w.q.copy()
    joints[FLOATING.joint_index("l_elbow_flexion")] = np.nan
    with pytest.raises(ConfigError, match="joint l_elbow_flexion is non-numeric"):
        w.set_state(joints)
    assert np.array_equal(w.q, good)
    with pytest.raises(ConfigError, match="base of wabian2 is fixed"):
        engine(FIXED).set_state(X_world_root=X)


def test_a_world_that_fails_says_where_and_recovers(engine):
    w = engine(FIXED)
    w.step(10)
    good = w.q.copy()
    w.push("l_hand", np.array([1e12, 0, 0, 0, 0, 0]), 10.0)
    w.step(50)
    assert w.diverged and "diverged at 0.01" in w.failure and "joint" in w.failure
    assert np.abs(w.q - good).max() < 1.0 and np.isfinite(w.v).all()
    w.reset()
    w.step(20)
    assert not w.diverged and not w.failure and w.time == pytest.approx(0.02)


def test_same_seed_and_commands_same_bytes(engine):
    out = []
    for _ in range(2):
        w, rng = engine(FLOATING), np.random.default_rng(4)
        for k in range(30):
            w.command(FLOATING.postures["neutral"] + 0.05 * rng.normal(size=FLOATING.n), rng.normal(size=FLOATING.n))
            if k == 10:
                w.push("base_link", rng.normal(size=6) * 20, 0.03)
            w.step(4)
        out.append(w.q.tobytes() + w.v.tobytes() + b"".join(x.tobytes() for x in w.foot_wrenches().values()))
    assert out[0] == out[1]


def test_without_mujoco_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'humanoid_control\[mujoco\]'") as e:
        make_engine(load_robot("hrp2", "fixed"), "mujoco")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda w: w.command(np.zeros(3)), "positions of a command: expected shape ({n},), got (3,)"),
        (lambda w: w.command(velocities=0.0), "velocities of a command: expected shape ({n},), got ()"),
        (
            lambda w: w.command(efforts=np.zeros((FLOATING.n, 1))),
            "efforts of a command: expected shape ({n},), got ({n}, 1)",
        ),
        (lambda w: w.command(["a"] * FLOATING.n), "positions of a command: expected {n} numbers, got ['a'"),
        (lambda w: w.set_state(np.zeros(99)), "joints of a state: expected shape ({n},), got (99,)"),
        (lambda w: w.set_state(velocities=np.zeros(1)), "velocities of a state: expected shape ({n},), got (1,)"),
        (lambda w: w.set_state(twist=np.zeros(3)), "twist of a state: expected shape (6,), got (3,)"),
        (lambda w: w.reset(np.zeros(2)), "joints of a posture: expected shape ({n},), got (2,)"),
    ],
    ids=range(8),
)
def test_arrays_of_another_shape_are_refused_in_one_line_and_change_nothing(engine, call, words):
    w = engine(FLOATING)
    q, reference = w.q.copy(), w.drives.q_ref.copy()
    with pytest.raises(ValueError) as refused:
        call(w)
    assert str(refused.value).startswith(words.format(n=w.robot.n)) and "\n" not in str(refused.value)
    np.testing.assert_array_equal(w.q, q)
    np.testing.assert_array_equal(w.drives.q_ref, reference)


def test_an_unknown_engine_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean mujoco"):
        make_engine(FIXED, "mujocco")


URDF = """<robot name="bad"><link name="base"/>
<link name="arm"><inertial><origin xyz="0 0 .1"/><mass value="{mass}"/>
<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="{yz}"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="10" velocity="3"/></joint></robot>"""
GOOD = {"mass": 1, "xx": 0.01, "yy": 0.01, "zz": 0.01, "yz": 0}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mass": 0}, "'arm' moves and has no mass"),
        ({"xx": -0.01}, "'arm' has a negative inertia"),
        ({"yz": 0.03}, "'arm' has a negative inertia"),
        ({"zz": 0.03}, "one exceeds the sum"),
        ({"yy": "nan"}, "not a number"),
        ({"mass": "heavy"}, "not a number"),
        ({}, ""),
    ],
    ids=str,
)
def test_bodies_that_cannot_be_are_refused_in_one_line(tmp_path, change, words):
    path = tmp_path / "bad.urdf"
    path.write_text(URDF.format(**{**GOOD, **change}))
    if change.get("mass") == "heavy":  # refused by whoever reads it first
        with pytest.raises((RobotError, ValueError)):
            load_robot(path)
        return
    if not words:
        check_model(load_robot(path))
        return
    with pytest.raises(RobotError, match=words) as refused:
        make_engine(load_robot(path))
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "engine"),
    [("lola", "multibody"), ("lola", "mujoco"), ("hrp2", "multibody"), nightly("hrp2", "mujoco")],
)
def test_a_robot_that_falls_lies_on_the_ground(name, engine):
    if engine == "mujoco":
        pytest.importorskip("mujoco", reason="needs MuJoCo")
    world = SimulationConfig(name, "floating", engine=engine).build()
    robot = world.robot
    world.step(10)
    world.push(robot.root_link, np.array([250.0, 40.0, 0.0, 0.0, 0.0, 0.0]), 0.4)
    world.step(6000)
    X = world.link_pose(robot.root_link)
    assert X.rotation[2, 2] < 0.3, "it fell"
    balls = [(world.link_pose(s.link), row) for s in robot.shapes for row in shape_points(s.shape)]
    lowest = min(X.act(row[:3])[2] - row[3] for X, row in balls)
    assert -0.01 < lowest < 0.01 and X.translation[2] > 0.05, "no part of it is below the ground"
    assert np.abs(world.base_state()[1]).max() < 0.05, "and it rests"
    alone = SimulationConfig(name, "floating", engine=engine, touching="soles").build()
    alone.step(10)
    alone.push(robot.root_link, np.array([250.0, 40.0, 0.0, 0.0, 0.0, 0.0]), 0.4)
    alone.step(3000)
    assert alone.link_pose(robot.root_link).translation[2] < -0.1, "with nothing but soles it hangs below"
