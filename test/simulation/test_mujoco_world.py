"""The robot in MuJoCo is the same robot: mass, inertia matrix, forward dynamics, drives, standing."""

import sys

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, EnvironmentProblem, RobotError
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.simulation import WorldSettings, make_engine
from humanoid_control.simulation.contact.ground import Ground
from humanoid_control.simulation.contact.points import ContactSettings
from test.robots_under_test import by_kind
from test.simulation.recovered import outside_forces
from test.simulation.scenes import SCENES, command_anywhere

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo: pip install mujoco")

BIPEDS = ("hrp2", "suralp", "wabian2", "lola")


def moved(world, seed=0):
    """The world in a random state without drives and far from the ground."""
    r, rng = world.robot, np.random.default_rng(seed)
    X = None
    if r.base == "floating":
        X = pin.SE3(pin.Quaternion(*rng.normal(size=4)).normalized().toRotationMatrix(), np.array([0.3, -0.5, 5.0]))
    middle = np.clip(0.3 * rng.normal(size=r.n), r.lower + 1e-3, r.upper - 1e-3)
    world.set_state(middle, rng.normal(size=r.n), X, rng.normal(size=6) if X is not None else None)
    return rng


def pinocchio_order(world):
    """Columns of MuJoCo's velocities in our order, and the rotation of the base's linear part."""
    r = world.robot
    T = np.zeros((r.nv, r.nv))
    T[np.arange(r.iv, r.nv), world._iv] = 1.0
    if r.base == "floating":
        T[:3, :3] = pin.Quaternion(world.q[3:7]).toRotationMatrix().T
        T[3:6, 3:6] = np.eye(3)
    return T


def acceleration(world, T, v):
    """The accelerations of the last step as pinocchio has them, in axes that turn with the base; v where it began."""
    spin = np.zeros(world.robot.nv)
    if world.robot.base == "floating":
        spin[:3] = np.cross(v[3:6], v[:3])
    return T @ world.mj_data.qacc - spin


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_mass_inertia_matrix_and_forward_dynamics_are_pinocchios(name, base):
    """T M_mujoco T^T = M_crba + rotors, and M a + h = tau gives the acceleration of ABA with those rotors."""
    robot = load_robot(name, base)
    world = make_engine(robot, "mujoco")
    rng = moved(world)
    m, d, T = world.mj_model, world.mj_data, pinocchio_order(world)
    if base == "floating":
        assert m.body_mass.sum() == pytest.approx(robot.mass, rel=1e-12)
    rotors = np.concatenate([np.zeros(robot.iv), world.gains.rotor])
    M = np.zeros((robot.nv, robot.nv))
    mujoco.mj_fullM(m, d, M)
    data = robot.model.createData()
    ours = pin.crba(robot.model, data, world.q)
    ours = np.triu(ours) + np.triu(ours, 1).T + np.diag(rotors)
    assert np.abs(T @ M @ T.T - ours).max() < 1e-9 * max(1.0, np.abs(ours).max())

    tau, q, v = robot.effort * rng.uniform(-0.9, 0.9, robot.n), world.q, world.v
    world.command(efforts=tau)
    world.step()
    assert np.isclose(world.torque, tau).mean() > 0.6, "the others come near their speed limits"
    model = world.model
    model.armature = rotors
    a = pin.aba(model, data, q, v, np.concatenate([np.zeros(robot.iv), world.torque]))
    assert d.ncon == 0 and d.nefc == 0
    assert np.abs(acceleration(world, T, v) - a).max() < 1e-8 * max(1.0, np.abs(a).max())


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("name", by_kind(["armar3", "hrp2", "lola"]))
def test_drives_give_what_they_report_and_no_more_than_they_can(name, scene):
    """What acts in the joints, by pinocchio, is what is reported and what MuJoCo's own stops and contacts do."""
    base, make = SCENES[scene]
    robot, rng = load_robot(name, base), np.random.default_rng(2)
    world = make(robot, WorldSettings(touching="all"), "mujoco")
    rotors, data, strained = np.concatenate([np.zeros(robot.iv), world.gains.rotor]), world.model.createData(), 0
    for k in range(200):
        if k % 50 == 0:
            command_anywhere(world, rng)
        q, v, T = world.q, world.v, pinocchio_order(world)
        world.step()
        a = acceleration(world, T, v)
        pin.forwardKinematics(world.model, data, q, v)
        pushes = outside_forces(world, world.model, data, world.time - world.settings.step)
        acted = pin.rnea(world.model, data, q, v, a, pushes) + rotors * a - T @ world.mj_data.qfrc_constraint
        exact = 1e-3 if world.mj_data.nefc else 1e-7  # MuJoCo stops looking for constraint forces somewhere
        exact *= 1.0 + np.abs(acted).max() + np.abs(world.mj_data.qfrc_constraint).max()
        assert np.abs(acted[: robot.iv]).max(initial=0) < exact, "nothing holds the base"
        assert acted[robot.iv :] == pytest.approx(world.torque, abs=exact)
        assert (np.abs(world.torque) <= robot.effort * (1 + 1e-9)).all()
        strained += (np.abs(world.torque) > robot.effort * (1 - 1e-9)).sum()
    assert strained > 100, "it must have been hard"


@pytest.mark.parametrize("name", ["armar3", "lola"])
def test_an_arm_motion_is_the_same_in_both_engines(name):
    """Fixed base, no contact, drives below their limits of torque and speed: two programs, one trajectory."""
    robot = load_robot(name, "fixed")
    worlds = [make_engine(robot, engine) for engine in ("multibody", "mujoco")]
    elbow, shoulder = robot.joint_index("l_elbow_flexion"), robot.joint_index("r_shoulder_flexion")
    neutral, speed = robot.postures["neutral"], np.zeros(robot.n)
    goal = neutral.copy()
    for k in range(150):
        goal[elbow] = neutral[elbow] + 0.15 * (1 - np.cos(0.02 * k))
        goal[shoulder] = neutral[shoulder] + 0.1 * (1 - np.cos(0.02 * k))
        speed[elbow] = 0.15 * 0.02 / 0.005 * np.sin(0.02 * k)
        for w in worlds:
            w.command(goal, speed)
            w.step(5)
        if k == 40:
            assert np.abs(worlds[0].v).max() > 0.1, "it moves"
    assert np.abs(worlds[0].q - worlds[1].q).max() < 1e-6
    assert np.abs(worlds[0].torque - worlds[1].torque).max() < 1e-3


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_drives_hold_the_posture_against_gravity(name):
    """Nobody moves, and every joint inside its range carries what pinocchio says gravity asks of it."""
    robot = load_robot(name, "fixed")
    world = make_engine(robot, "mujoco")
    world.step(2000)
    assert np.degrees(np.abs(world.joints - robot.postures["neutral"])).max() < 0.5
    assert np.abs(world.v).max() < 1e-3
    gravity = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), world.q)
    free = (world.joints > robot.lower) & (world.joints < robot.upper)
    assert free.sum() >= robot.n - 4
    assert world.torque[free] == pytest.approx(gravity[free], abs=0.02 * np.abs(gravity).max() + 0.01)


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_stands_for_ten_seconds(name):
    robot = load_robot(name, "floating")
    world = make_engine(robot, "mujoco", WorldSettings(step=0.002))
    world.step(1500)
    settled = world.q.copy()
    world.step(3500)
    assert np.linalg.norm(world.q[:2] - settled[:2]) < 0.002
    assert np.degrees(np.linalg.norm(pin.log3(pin.Quaternion(world.q[3:7]).toRotationMatrix()))) < 2.0
    assert sum(f[2] for f in world.foot_wrenches().values()) == pytest.approx(9.81 * robot.mass, rel=0.01)
    assert world.imu().linear_acceleration == pytest.approx([0, 0, 9.81], abs=0.4)


def test_the_ground_is_the_one_of_the_settings():
    """A slope below the angle of friction is stood on and above it slid down; other shapes are refused."""
    robot = load_robot("armar3", "floating")
    tan = {}
    for friction in (0.3, 0.1):
        settings = WorldSettings(ground=Ground.plane(0.5, 0.2, np.pi), contact=ContactSettings(friction=friction))
        world = make_engine(robot, "mujoco", settings)
        R = pin.rpy.rpyToMatrix(0, 0.2, 0)
        start = robot.X_world_root.translation
        world.set_state(X_world_root=pin.SE3(R, R @ start + [0, 0, 0.5]))
        world.step(1000)
        tan[friction] = world.base_state()[0][0] - (R @ start)[0]
    assert abs(tan[0.3]) < 0.02
    assert tan[0.1] == pytest.approx(0.5 * 9.81 * (np.sin(0.2) - 0.1 * np.cos(0.2)) * np.cos(0.2), rel=0.1)
    with pytest.raises(ConfigError, match="a plane as ground, not 'stairs'"):
        make_engine(robot, "mujoco", WorldSettings(ground=Ground.stairs(0.1, 0.3)))


def test_other_links_touch_the_ground_where_they_are_told_to():
    robot = load_robot("suralp", "floating")
    lying = pin.SE3(pin.rpy.rpyToMatrix(0, np.pi / 2, 0), np.array([0, 0, 0.5]))
    heights = []
    for touching in ((), "all"):
        world = make_engine(robot, "mujoco", WorldSettings(touching=touching, step=0.002))
        world.set_state(X_world_root=lying)
        world.step(750)
        heights.append(world.base_state()[0][2])
    assert heights[0] < 0.05 < heights[1], "only its soles: it sinks into the ground; all of it: it lies there"


def test_without_mujoco_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(EnvironmentProblem, match=r"pip install 'humanoid_control\[mujoco\]'"):
        make_engine(load_robot("hrp2"), "mujoco")


def test_what_mujoco_refuses_is_one_line(tmp_path):
    """A mass without extension: our engine can do with it, MuJoCo cannot."""
    path = tmp_path / "point.urdf"
    path.write_text(
        '<robot name="point"><link name="base"/><link name="arm"><inertial><origin xyz="0 0 .1"/><mass value="1"/>'
        '<inertia ixx="0" iyy="0" izz="0" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="revolute">'
        '<parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>'
        '<limit lower="-1" upper="1" effort="10" velocity="3"/></joint></robot>'
    )
    robot = load_robot(path)
    make_engine(robot).step(10)
    with pytest.raises(RobotError, match="MuJoCo rejects the model") as refused:
        make_engine(robot, "mujoco")
    assert "\n" not in str(refused.value)
