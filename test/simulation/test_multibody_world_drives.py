"""Lola with her motors and gears: stands, keeps limits and loops, and its power is accounted for."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import HumanoidError
from humanoid_control.multibody import ForwardDynamics
from humanoid_control.multibody.energy import totals
from humanoid_control.multibody.kinematics_pass import kinematics_pass
from humanoid_control.multibody.layout import NW, RATE
from humanoid_control.robots import load_robot
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.simulation import MultibodyWorld, WorldSettings, make_engine
from humanoid_control.simulation.drives.drive_train import build_drive_train
from humanoid_control.simulation.drives.position_control import driven_gains


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola", "floating")


@pytest.mark.parametrize("drives", ["rigid", "elastic"])
def test_stands_where_ideal_drives_stand(lola, drives):
    ideal, driven = MultibodyWorld(lola), make_engine(lola, settings=WorldSettings(drives=drives))
    start = driven.q.copy()
    for _ in range(8):
        ideal.step(1000)
        driven.step(1000)
        assert np.linalg.norm(driven.q[:3] - start[:3]) < 0.01
    assert driven.q == pytest.approx(ideal.q, abs=2e-3)
    assert np.abs(driven.v).max() < 1e-3
    assert driven.torque == pytest.approx(ideal.torque, abs=1.5), "the motors carry what ideal drives carry"
    assert driven.forces[:, 2].sum() == pytest.approx(9.81 * lola.mass, rel=1e-3)


def test_position_loops_are_damped_for_the_inertia_with_the_rotors(lola):
    """A joint's inertia is twice the energy of all bodies at 1 rad/s; rotors that only ride along count for little."""
    gains, train = driven_gains(lola), build_drive_train(lola, "rigid")
    dynamics, q = ForwardDynamics(train.model), train.model.neutral()
    joints = lola.joints(lola.q("neutral"))
    links = np.diag(pin.crba(lola.model, lola.model.createData(), lola.q("neutral")))[6:]
    q[7 : 7 + len(train.joints)] = [joints[lola.index[j]] for j in train.joints]
    for k, name in enumerate(train.joints):
        v, j = np.zeros(train.model.nv), lola.index[name]
        v[6 + k] = 1.0
        inertia = 2 * totals(dynamics, q, v).kinetic
        assert gains.rotor[j] == pytest.approx(inertia - links[j], rel=2e-3), name
        assert gains.kd[j] == pytest.approx(2 * np.sqrt(gains.kp[j] * inertia), rel=1e-3), name


@pytest.mark.parametrize("drives", ["rigid", "elastic"])
def test_loops_stay_closed_and_limits_kept_in_fast_motion(lola, drives):
    """Rotors turn as their mechanisms say, to rounding, after seconds of hard motion: nothing can drift."""
    robot = load_robot("lola", "fixed")
    world, rng = make_engine(robot, settings=WorldSettings(drives=drives)), np.random.default_rng(5)
    mechanisms = mechanisms_of(robot)
    neutral = robot.postures["neutral"]
    for _ in range(30):
        goal = np.clip(neutral + rng.normal(size=robot.n) * 0.5, robot.lower, robot.upper)
        world.command(goal)
        world.step(100)
        assert (np.abs(world.current) <= world._motors.shafts.motor[:, 4] * 1.0001).all()
    assert np.abs(world.v).max() > 0.05
    kinematics_pass(world.arrays.tables, world.full_q, world.full_v, world.arrays.work)
    rows = world.arrays.work.W.reshape(-1, NW)
    for k, s in enumerate(world.train.shafts):
        if not s.elastic:
            index = [robot.index[j] for j in s.joints]
            J = mechanisms[s.drive.name].jacobian(world.joints[index])
            number = 0 if len(J) == 1 else int(s.body[-1]) - 1
            rate = rows[world._motors.shafts.body[k] + 1, RATE]
            assert rate == pytest.approx(float(J[number] @ world.joint_velocity[index]), rel=1e-9, abs=1e-9)
    held = [robot.index[j] for j in world.train.held]
    assert world.joints[held] == pytest.approx(world.drives.q_ref[held], abs=1e-9), "cameras go where they are told"


def test_elastic_gears_twist_by_torque_over_stiffness(lola):
    world = make_engine(lola, settings=WorldSettings(drives="elastic"))
    world.command(lola.from_mapping({"l_shoulder_flexion": 0.8, "r_shoulder_flexion": 0.8}))
    world.step(6000)
    shafts = [s for s in world.train.shafts if s.elastic]
    twisted = 0
    for s in shafts:
        k = world.train.model.qpos[world.train.model.coordinates.index(s.body)]
        j = lola.index[s.joints[0]]
        twist = world.full_q[k] / s.drive.ratio - world.joints[j]
        passed = s.drive.elastic.stiffness * twist
        lost = 1.5 * s.drive.ratio * (s.drive.friction.stiction)
        assert abs(passed - world.torque[j]) <= lost + 0.01, s.body
        twisted += abs(passed) > 1.0
    assert len(shafts) == 16 and twisted >= 4


def test_a_push_and_a_command_move_it_as_the_ideal_world(lola):
    robot = load_robot("lola", "fixed")
    ideal, driven = MultibodyWorld(robot), make_engine(robot, settings=WorldSettings(drives="rigid"))
    goal = robot.postures["neutral"].copy()
    goal[robot.joint_index("l_elbow_flexion")] += 0.4
    for w in (ideal, driven):
        w.step(500)
        w.command(goal)
        w.push("r_forearm", np.array([20.0, 0, 0, 0, 0, 0]), 2.0)
        w.step(1500)
    assert driven.joints == pytest.approx(ideal.joints, abs=0.01)
    k = robot.joint_index("r_shoulder_flexion")
    assert abs(driven.joints[k] - robot.postures["neutral"][k]) > 1e-4, "the push is felt"


def test_a_push_on_a_link_behind_a_held_joint_acts_on_what_carries_it(lola):
    """Cameras move without dynamics: who pushes one pushes the head, at the same point."""
    rates = []
    for link in ("l_camera", "head"):
        w, point = make_engine(lola, settings=WorldSettings(drives="rigid", gravity=0.0)), np.array([0.1, 0.05, 0.02])
        assert "l_camera_vergence" in w.train.held
        if link == "head":
            point = w.link_pose("head").actInv(w.link_pose("l_camera").act(point))
        w.push(link, np.array([5.0, -8.0, 3.0, 0.1, 0.0, 0.2]), 0.1, point)
        w.step(40)
        rates.append(w.v)
    assert np.abs(rates[0]).max() > 0.01 and rates[0] == pytest.approx(rates[1], abs=1e-9)


@pytest.mark.parametrize("drives", ["rigid", "elastic"])
def test_time_passes_by_the_steps_and_ends_pushes_and_commanded_speeds(lola, drives):
    world = make_engine(load_robot("lola", "fixed"), settings=WorldSettings(drives=drives, gravity=0.0))
    k = world.robot.joint_index("l_elbow_flexion")
    goal, speed = world.joints.copy(), np.zeros(world.robot.n)
    speed[k] = 0.5
    world.command(goal, speed)
    world.push("r_forearm", np.array([20.0, 0, 0, 0, 0, 0]), 0.05)
    for n in range(1, 61):
        world.step(2)
        assert world.time == pytest.approx(0.002 * n, abs=1e-12)
    assert world.drives.q_ref[k] - goal[k] == pytest.approx(0.5 * world.settings.coast, rel=0.2), "silent since then"
    assert not list(world.pushes.active(world.time)), "the push is over"


def test_same_commands_same_bytes(lola):
    out = []
    for _ in range(2):
        world, rng = make_engine(lola, settings=WorldSettings(drives="elastic")), np.random.default_rng(4)
        for _ in range(20):
            world.command(lola.postures["neutral"] + 0.03 * rng.normal(size=lola.n))
            world.step(5)
        out.append(world.q.tobytes() + world.full_v.tobytes() + world.current.tobytes())
    assert out[0] == out[1]


def test_robots_without_a_file_of_drives_and_other_engines_are_refused(lola):
    for robot, engine in ((load_robot("hrp2", "floating"), "multibody"), (lola, "mujoco")):
        with pytest.raises(HumanoidError) as e:
            make_engine(robot, engine, WorldSettings(drives="rigid"))
        assert "\n" not in str(e.value) and "drives" in str(e.value)
    with pytest.raises(HumanoidError, match="elastic"):
        MultibodyWorld(lola, WorldSettings(drives="elastik"))
