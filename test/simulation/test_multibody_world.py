"""The simulated world against pinocchio, energy, Coulomb's law and a robot that should stand still."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.simulation import MultibodyWorld, WorldSettings
from humanoid_control.simulation.contact.points import ContactSettings
from humanoid_control.simulation.drives.position_control import STOP, STOP_GAIN, DriveGains, default_gains
from humanoid_control.simulation.sensors.imu import base_state, read_imu
from test.robots_under_test import by_kind, nightly
from test.simulation.recovered import outside_forces


def free_gains(robot):
    """No drives at all: zero gains, zero rotors."""
    z = np.zeros(robot.n)
    return DriveGains(z, z, z, z, z)


def test_without_drives_the_energy_is_kept():
    """Semi-implicit Euler loses or gains energy in proportion to the step: halving the step halves the drift."""
    robot = load_robot("wabian2", "fixed")
    drift = []
    for h in (1e-3, 5e-4):
        world = MultibodyWorld(robot, WorldSettings(step=h), free_gains(robot))
        world.q = robot.q(robot.from_mapping({"l_shoulder_flexion": 1.0, "r_elbow_flexion": 0.8, "waist_flexion": 0.2}))
        before = world.stored_energy()
        world.step(int(0.3 / h))
        drift.append(abs(world.stored_energy() - before))
        assert np.abs(world.v).max() > 0.5, "it must have moved"
    assert drift[0] < 0.05 * abs(before)
    assert drift[1] == pytest.approx(drift[0] / 2, rel=0.35)


def test_acceleration_is_pinocchios_forward_dynamics():
    """One step from rest without drives: a = M^-1 (-g), from CRBA and RNEA instead of ABA."""
    robot = load_robot("lola", "fixed")
    world = MultibodyWorld(robot, gains=free_gains(robot))
    world.q = robot.q(robot.from_mapping({"l_shoulder_flexion": 0.7, "r_elbow_flexion": 0.5}))
    q = world.q.copy()
    world.step()
    data = robot.model.createData()
    M = pin.crba(robot.model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    a = np.linalg.solve(M, -pin.computeGeneralizedGravity(robot.model, data, q))
    assert world.acceleration == pytest.approx(a, rel=1e-8, abs=1e-8)


def test_the_implicit_drive_is_the_drive_at_the_end_of_the_step():
    robot = load_robot("hrp2", "fixed")
    gains, h, rng = default_gains(robot), 1e-3, np.random.default_rng(0)
    world = MultibodyWorld(robot)
    q_ref, v_ref = world.joints + rng.normal(size=robot.n) * 0.01, rng.normal(size=robot.n) * 0.1
    world.set_state(velocities=rng.normal(size=robot.n) * 0.1)
    world.command(q_ref, v_ref)
    world.step()
    inside = (world.joints > robot.lower) & (world.joints < robot.upper)
    expected = gains.kp * (world.drives.q_ref - world.joints) + gains.kd * (world.drives.v_ref - world.joint_velocity)
    free = inside & (np.abs(expected) < gains.effort)
    assert free.sum() > 20 and world.settings.step == h
    assert world.torque[free] == pytest.approx(expected[free], rel=1e-9, abs=1e-9)


def test_a_step_with_drives_contact_and_a_push_is_pinocchios():
    """The compiled step beside ABA with the same armature and the same forces at the soles."""
    robot = load_robot("lola", "floating")
    world = MultibodyWorld(robot)
    rng = np.random.default_rng(3)
    world.step(400)
    for link, force in (("torso", 60.0), ("l_forearm", 5.0)):
        world.push(link, np.array([force, -3.0, 4.0, 0.5, 1.0, -2.0]), 0.5, point=np.array([0.01, 0.02, 0.1]))
    world.command(robot.postures["neutral"] + 0.02 * rng.normal(size=robot.n))
    for _ in range(20):
        q, v = world.q.copy(), world.v.copy()
        world.step()
        model, data = world.model, world.data
        pin.forwardKinematics(model, data, q, v)
        forces = outside_forces(world, model, data, world.time - 1e-3)
        model.armature = np.concatenate([np.zeros(6), world.gains.rotor])
        reached = np.concatenate([np.zeros(6), world.torque])
        stops, scratch = np.zeros(robot.nv), world._drives.record.scratch
        stops[6:] = scratch[STOP] - scratch[STOP_GAIN] * world.acceleration[6:]
        a = pin.aba(model, data, q, v, reached + stops, forces)
        assert world.acceleration == pytest.approx(a, rel=1e-8, abs=1e-6)
        assert world.q == pytest.approx(pin.integrate(model, q, 1e-3 * world.v), abs=1e-12)


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_drives_hold_the_posture_against_gravity(name):
    robot = load_robot(name, "fixed")
    world = MultibodyWorld(robot)
    world.step(2000)
    assert np.degrees(np.abs(world.joints - robot.postures["neutral"])).max() < 0.5
    assert np.abs(world.v).max() < 1e-3
    gravity = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), world.q)
    free = (world.joints > robot.lower) & (world.joints < robot.upper)  # the others lean on their stops
    assert free.sum() >= robot.n - 4
    assert world.torque[free] == pytest.approx(gravity[free], abs=0.02 * np.abs(gravity).max() + 0.01)


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_torque_never_exceeds_the_effort_limit(name):
    robot = load_robot(name, "fixed")
    world, rng = MultibodyWorld(robot), np.random.default_rng(1)
    strained = 0
    for _ in range(60):
        world.command(rng.uniform(np.maximum(robot.lower, -3), np.minimum(robot.upper, 3)))
        for _ in range(10):
            world.step()
            assert (np.abs(world.torque) <= robot.effort + 1e-9).all()
            strained += int((np.abs(world.torque) >= robot.effort - 1e-9).any())
    assert strained > 20, "the commands should have asked for more than the drives can give"
    assert np.isfinite(world.q).all() and not world.diverged


@pytest.mark.parametrize(("name", "seconds"), [("lola", 20), ("hrp2", 10), nightly("lola", 60), nightly("suralp", 30)])
def test_stands_on_its_feet(name, seconds):
    robot = load_robot(name, "floating")
    world = MultibodyWorld(robot)
    start = world.q.copy()
    for _ in range(seconds):
        world.step(1000)
        assert np.linalg.norm(world.q[:3] - start[:3]) < 0.01
    assert world.forces[:, 2].sum() == pytest.approx(9.81 * robot.mass, rel=0.001)
    assert sum(f[2] for f in world.foot_wrenches().values()) == pytest.approx(9.81 * robot.mass, rel=0.001)
    tilt = np.linalg.norm(pin.log3(pin.Quaternion(world.q[3:7]).toRotationMatrix()))
    assert np.degrees(tilt) < 1.0
    assert np.abs(world.v).max() < 1e-4, "it stands still"
    assert read_imu(world).linear_acceleration == pytest.approx([0, 0, 9.81], abs=0.5)


def test_friction_holds_inside_the_cone_and_slips_outside():
    """A wide robot pulled forward: below mu N its wheels stay where they are, above it they slide along the cone."""
    robot = load_robot("armar3", "floating")
    for share, slides in ((0.5, False), (2.0, True)):
        world = MultibodyWorld(robot, WorldSettings(contact=ContactSettings(friction=0.15)))
        world.step(1500)
        mu, g = 0.15, 9.81
        world.arrays.set_gravity((share * mu * g, 0.0, -g))
        surface = np.zeros(2)  # how far the layers' surfaces have moved along the ground
        for _ in range(300):
            before = world.layers[:, 1:3].mean(axis=0) - world.q[:2]
            world.step()
            surface += before - (world.layers[:, 1:3].mean(axis=0) - world.q[:2])
            f = world.forces
            assert (np.hypot(f[:, 0], f[:, 1]) <= 1.01 * mu * f[:, 2] + 1e-6).all()
        expected = 0.5 * (share - 1) * mu * g * 0.3**2
        assert surface[0] == pytest.approx(expected, rel=0.25) if slides else abs(surface[0]) < 2e-3


def test_nothing_acts_on_feet_in_the_air():
    robot = load_robot("wabian2", "floating")
    world = MultibodyWorld(robot)
    X = robot.X_world_root.copy()
    X.translation = X.translation + np.array([0, 0, 0.5])
    world.set_state(X_world_root=X)
    world.step(100)
    assert np.abs(world.forces).max() == 0
    assert world.v[2] == pytest.approx(-9.81 * 0.1, rel=0.02)
    assert read_imu(world).linear_acceleration == pytest.approx([0, 0, 0], abs=0.3)


def test_commands_are_clipped_and_wrong_ones_passed_over():
    robot = load_robot("hrp2", "fixed")
    world = MultibodyWorld(robot)
    k = robot.joint_index("l_elbow_flexion")
    wanted = robot.postures["neutral"].copy()
    wanted[k] = 99.0
    world.command(wanted)
    assert world.drives.q_ref[k] == robot.upper[k]
    wanted[:] = np.nan
    before = world.drives.q_ref.copy()
    world.command(wanted)
    assert np.array_equal(world.drives.q_ref, before)
    world.command(robot.postures["neutral"], np.full(robot.n, 1e9))
    assert (np.abs(world.drives.v_ref) <= robot.velocity).all()
    world.step(200)
    assert (world.drives.v_ref == 0).all(), "without a further command the reference comes to rest"
    assert np.isfinite(world.q).all()


def test_a_diverged_world_keeps_its_last_state_until_reset():
    robot = load_robot("lola", "fixed")
    world = MultibodyWorld(robot)
    world.step(10)
    good = world.q.copy()
    world.v[:] = np.nan
    world.step(5)
    assert world.diverged and np.array_equal(world.q, good)
    world.reset()
    world.step(10)
    assert not world.diverged and np.isfinite(world.v).all()


def test_same_commands_same_bytes():
    robot, out = load_robot("suralp", "floating"), []
    for _ in range(2):
        world, rng = MultibodyWorld(robot), np.random.default_rng(4)
        for _ in range(50):
            world.command(robot.postures["neutral"] + 0.05 * rng.normal(size=robot.n))
            world.step(4)
        out.append(world.q.tobytes() + world.v.tobytes())
    assert out[0] == out[1]


def test_base_state_is_the_root_link():
    robot = load_robot("lola", "fixed")
    world = MultibodyWorld(robot)
    pose, twist = base_state(world)
    assert pose == pytest.approx(pin.SE3ToXYZQUAT(robot.X_world_root), abs=1e-6)
    world.v[:] = 0
    world.v[robot.joint_index("pelvis_rotation")] = 0.5
    pose, twist = base_state(world)
    assert np.linalg.norm(twist[3:]) == pytest.approx(0.5), "the torso turns when the pelvis joint does"


@pytest.mark.parametrize("step", [0.0, -1.0, 0.5])
def test_a_step_that_makes_no_sense_is_refused(step):
    with pytest.raises(ConfigError, match="step"):
        MultibodyWorld(load_robot("hrp2"), WorldSettings(step=step))
