"""Tendons at constant tensions move a robot that is pushed: torques, energy, MuJoCo with the same tendons (TE-19)."""

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.drives.position_control import default_gains
from humanoid_control.simulation.drives.tendon_plant import EncoderErrors, TendonEncoders
from humanoid_control.simulation.engine import SimulationConfig
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.mujoco_world import mjcf_text
from humanoid_control.simulation.worlds.multibody_world import TensionWorld, tension_gains


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


def world_of(robot, step=1e-3, damping=1.0, stops=True, **settings):
    gains = tension_gains(robot, damping_ratio=damping)
    gains = gains if stops else replace(gains, stop=np.zeros(robot.n))
    return TensionWorld(robot, WorldSettings(step, drives="tendons", **settings), gains)


def somewhere(robot, seed, share=0.5):
    rng = np.random.default_rng(seed)
    middle, half = (robot.upper + robot.lower) / 2, (robot.upper - robot.lower) / 2
    return middle + share * half * rng.uniform(-1, 1, robot.n), rng.normal(0, 0.5, robot.n)


@pytest.mark.parametrize("error", [0.0, 0.2])
def test_joints_move_by_the_virtual_work_of_the_tensions(robot, error):
    """M a + h = -(dl/dq)^T T by pinocchio, with dl/dq from differences of the lengths that the tendons show."""
    world = world_of(robot, damping=0.0, moment_arm_error=error, seed=3)
    world.tensions = np.random.default_rng(0).uniform(10, 150, len(world.plant.names))
    h = 1e-6
    for seed in range(3):
        q, v = somewhere(robot, seed)
        lengths = [world.plant.measure(q + s * h * e)[0].copy() for e in np.eye(robot.n) for s in (1, -1)]
        arms = (np.array(lengths[::2]) - np.array(lengths[1::2])).T / (2 * h)
        world.set_state(q, v)
        world.step(1)
        tau = -arms.T @ world.tensions
        assert world.torque == pytest.approx(tau, abs=1e-6)
        expected = pin.aba(world.model, world.data, q, v, tau)
        assert world.acceleration == pytest.approx(expected, abs=1e-6 * np.abs(expected).max())


def test_the_tension_changes_while_it_runs(robot):
    """A new tension is that of a world made with it, also back at 0; other drives pass it over; nonsense is refused."""
    world, rest = world_of(robot), world_of(robot).tensions
    for tension in (40.0, 0.0):
        world.set_tension(tension)
        other = world_of(robot, tension=tension)
        for w in (world, other):
            w.reset()
            w.step(20)
        assert np.array_equal(world.tensions, np.full(len(rest), 40.0) if tension else rest)
        assert np.array_equal(world.q, other.q) and np.array_equal(world.v, other.v)
    ideal = make_engine(robot)
    ideal.set_tension(40.0)
    ideal.step(20)
    assert np.abs(ideal.joints - robot.postures["neutral"]).max() < 0.05
    for engine in (world, ideal):
        for tension in (-1.0, np.nan, np.inf):
            with pytest.raises(ConfigError, match="tension must be 0 or more"):
                engine.set_tension(tension)
    assert np.array_equal(world.tensions, rest)


def test_a_new_tension_is_led_to_and_does_not_jerk_the_joints(robot):
    """In half a second and evenly; a new target begins where the last one is."""
    world, step = world_of(robot, 1e-3), 1e-3
    rest = world.tensions.copy()
    world.set_tension(200.0)
    assert np.array_equal(world.tensions, rest), "not at once"
    passed = []
    for _ in range(500):
        world.step(1)
        passed.append(world.tensions.copy())
    assert np.abs(np.diff([rest, *passed], axis=0)).max() <= 200.0 * step / 0.5 + 1e-9
    assert np.array_equal(passed[-1], np.full(len(rest), 200.0)) and not np.array_equal(passed[-2], passed[-1])
    world.step(1)
    assert np.array_equal(world.tensions, passed[-1])
    world.set_tension(0.0)
    world.step(100)
    half = world.tensions.copy()
    world.set_tension(200.0)
    world.step(1)
    assert np.abs(world.tensions - half).max() < 0.5


def energy_of_motion(robot, step, damping):
    """Change of energy, work of the tensions, and what damping took [J]; stops, which would add to it, take no part."""
    world = world_of(robot, step, damping, stops=False)
    world.set_state(*somewhere(robot, 2 if damping else 3, 0.3))
    world.tensions = np.random.default_rng(1).uniform(10, 30, len(world.tensions))
    start, length, lost = world.stored_energy(), world.tendon_states().lengths, 0.0
    for _ in range(round((0.1 if damping else 0.03) / step)):
        before = world.joint_velocity.copy()
        world.step(1)
        lost += step * float(world.gains.kd @ (before * world.joint_velocity))
    assert not damping or ((world.joints > robot.lower) & (world.joints < robot.upper)).all()
    work = -float(world.tensions @ (world.tendon_states().lengths - length))
    return world.stored_energy() - start, work, lost


@pytest.mark.parametrize("damping", [0.0, 1.0])
def test_the_work_of_the_tensions_becomes_energy_and_heat(robot, damping):
    """d(kinetic + potential) = -T . dl - lost; what is missing is of the order of the step."""
    missing = []
    for step in (5e-4, 2.5e-4, 1.25e-4) if damping else (2.5e-4, 1.25e-4, 6.25e-5):
        gained, work, lost = energy_of_motion(robot, step, damping)
        assert work > 5.0 and gained > 0.5 and (lost > 4.0 if damping else lost == 0.0)
        missing.append(gained - work + lost)
    assert abs(2 * missing[2] - missing[1]) < 2e-3 * work, "nothing for infinitely small steps"
    assert missing[0] / missing[1] == pytest.approx(2.0, abs=0.25)
    assert missing[1] / missing[2] == pytest.approx(2.0, abs=0.15)


def with_tendons(robot, plant, settings):
    """The robot in MuJoCo's words, its tendons as MuJoCo's own, each pulled by one actuator."""
    top = ET.fromstring(mjcf_text(robot, settings, replace(default_gains(robot), rotor=np.zeros(robot.n))))
    bodies = {b.get("name"): b for b in top.iter("body")} | {"universe": top.find("worldbody")}
    tendons, actuators = ET.SubElement(top, "tendon"), top.find("actuator")
    actuators.clear()
    for t in plant.geometry.tendons:
        spatial = ET.SubElement(tendons, "spatial", name=t.name)
        for k, p in enumerate(t.path):
            frame = robot.model.frames[robot.model.getFrameId(p.link, pin.FrameType.BODY)]
            body = bodies[robot.model.names[frame.parentJoint]]
            at = " ".join(repr(float(x)) for x in frame.placement.act(np.array(p.xyz)))
            ET.SubElement(body, "site", name=f"{t.name} {k}", pos=at)
            ET.SubElement(spatial, "site", site=f"{t.name} {k}")
        ET.SubElement(actuators, "motor", name=t.name, tendon=t.name)
    for joint in top.iter("joint"):
        joint.set("limited", "false")
    return ET.tostring(top, encoding="unicode")


def test_mujoco_moves_by_the_same_tendons_alike(robot):
    mujoco = pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")
    world = world_of(robot, 2e-4, damping=0.0, stops=False)
    model = mujoco.MjModel.from_xml_string(with_tendons(robot, world.plant, WorldSettings(2e-4)))
    data = mujoco.MjData(model)
    joints = [model.joint(n).dofadr[0] for n in robot.joint_names]
    tendons = [model.tendon(n).id for n in world.plant.names]
    q, v = somewhere(robot, 8, 0.3)
    data.qpos[joints], data.qvel[joints], data.ctrl[tendons] = q, v, -world.tensions
    world.set_state(q, v)
    world.step(1)
    mujoco.mj_forward(model, data)
    assert data.ten_length[tendons] == pytest.approx(world.plant.measure(q)[0], abs=1e-9)
    assert data.qacc[joints] == pytest.approx(world.acceleration, abs=1e-6 * np.abs(world.acceleration).max())
    mujoco.mj_step(model, data)
    world.step(499)
    mujoco.mj_step(model, data, 499)
    assert np.abs(world.joints - q).max() > 0.1, "it moved"
    assert data.qpos[joints] == pytest.approx(world.joints, abs=2e-3)


def test_tensions_hold_the_neutral_posture_until_it_is_pushed(robot):
    world = world_of(robot)
    weight = pin.computeGeneralizedGravity(world.model, world.data, world.q)
    world.step(1)
    assert np.abs(weight).max() > 5 and world.torque == pytest.approx(weight, abs=0.01)
    world.step(50)
    neutral = robot.postures["neutral"]
    assert np.abs(world.joints - neutral).max() < 0.005
    for side in "lr":
        world.push(f"{side}_forearm", np.array([0, 0, 15.0, 0, 0, 0]), 0.3, np.array([0, 0, -0.2]))
    world.step(300)
    turned = world.joints[robot.index["l_elbow_pitch"]] - neutral[robot.index["l_elbow_pitch"]]
    assert turned < -0.2, "the forearm was lifted"
    left, right = ([robot.index[f"{s}_{j}"] for j in ("elbow_pitch", "gh_pitch", "sc_roll")] for s in "lr")
    assert world.joints[left] == pytest.approx(world.joints[right], abs=1e-6), "both sides alike"


def test_only_joints_without_tendons_take_commands():
    """The shoulders of a robot whose legs have no tendons hang; its legs go where they are told."""
    robot = load_robot("suralp", "fixed")
    engine = SimulationConfig("suralp", "fixed", drives="tendons", tension=20.0).build(robot)
    free = {robot.joint_names[k] for k in engine.uncommanded}
    leg = next(k for k, n in enumerate(robot.joint_names) if "knee" in n)
    assert free and all(n[:2] in ("l_", "r_") for n in free) and robot.joint_names[leg] not in free
    goal = engine.joints + 0.2
    for _ in range(40):
        engine.command(goal)
        engine.step(10)
    assert engine.joints[leg] == pytest.approx(min(goal[leg], robot.upper[leg]), abs=0.02)
    assert not np.isclose(engine.joints, goal, atol=0.02)[engine.uncommanded].all()
    assert engine.tendon_states().tensions == pytest.approx(np.full(len(engine.plant.names), 20.0))


def test_wrong_moment_arms_are_those_of_the_encoders(robot):
    """Lengths since zero are scaled as the study scales them; where all joints are zero nothing is wrong."""
    right, wrong = (make_engine(robot, settings=WorldSettings(moment_arm_error=e, seed=7)) for e in (0.0, 0.1))
    encoders = TendonEncoders(46, EncoderErrors(scale=0.1), 7)
    true, seen = (e.tendon_states().lengths for e in (right, wrong))
    zero = right._tendons.geometry.zero
    assert seen - zero == pytest.approx(encoders.measure(true - zero), abs=1e-12)
    assert np.std(wrong._tendons.factors) == pytest.approx(0.1, rel=0.3) and np.abs(seen - true).max() > 1e-4
    at_zero = [e._tendons.measure(np.zeros(robot.n))[0].copy() for e in (right, wrong)]
    assert at_zero[0] == pytest.approx(at_zero[1], abs=1e-12)


def test_what_cannot_be_is_said():
    bare = load_robot("recommended", "fixed")
    with pytest.raises(RobotError, match="recommended has no tendons"):
        make_engine(bare, settings=WorldSettings(drives="tendons"))
    with pytest.raises(ConfigError, match="'tendons' need engine 'multibody'"):
        make_engine(bare, "mujoco", WorldSettings(drives="tendons"))
    with pytest.raises(ConfigError, match="tension must be 0 or more, got -1"):
        WorldSettings(tension=-1.0).check()
