"""Limits of simulated drives: torques and stops recovered from the motion, in pushes and falls, beside the report."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.paths import share_dir
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.simulation import ENGINES, MultibodyWorld, WorldSettings, make_engine
from humanoid_control.simulation.drives.motors_gears import gear_torque, shaft_table
from humanoid_control.simulation.drives.position_control import (
    ACCELERATION,
    FORCE,
    INERTIA,
    JOINT,
    LAST,
    MOST_ROUNDS,
    NEWTON_ROUNDS,
    RECOVERY,
    SPEED,
    SPEED_BAND,
    TORQUE,
    DriveCommands,
    DriveGains,
    begin_drive_step,
    default_gains,
    drive_table,
    switch_drive_step,
    switching_rule,
)
from test.robots_under_test import by_kind
from test.simulation.recovered import DrivenForces, joint_forces
from test.simulation.scenes import SCENES, command_anywhere

TOUCH = 1e-7  # [rad] from the end of a range a stop may be felt
BEYOND = 2e-3  # [rad] a blow may drive a joint


def assert_kept(world, acted, q):
    """No motor gave more than its limit, and each what it reported; what else acted came from stops that push inward.

    Args:
        acted: (n,) forces of motors and stops. q: (n,) angles at the end of the step.
    """
    robot, exact = world.robot, 1e-7 * (1.0 + np.abs(acted).max())
    assert (np.abs(world.torque) <= robot.effort * (1 + 1e-9)).all()
    stop = acted - world.torque
    assert (stop[q > robot.lower + TOUCH] < exact).all(), "away from the lower end nothing pushes up"
    assert (stop[q < robot.upper - TOUCH] > -exact).all(), "away from the upper end nothing pushes down"
    assert (q > robot.lower - BEYOND).all() and (q < robot.upper + BEYOND).all()


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("name", ["armar3", "hrp2", "lola"])  # without legs, with the usual ones, with toes
def test_ideal_drives_give_what_they_report_and_no_more_than_they_can(name, scene):
    base, make = SCENES[scene]
    robot, rng = load_robot(name, base), np.random.default_rng(2)
    world = make(robot, WorldSettings(touching="all"))
    strained = 0
    for k in range(300):
        if k % 50 == 0:
            command_anywhere(world, rng)
        q, v = world.q.copy(), world.v.copy()
        world.step()
        strained += (np.abs(world.torque) > robot.effort * (1 - 1e-9)).sum()
        if k % 50 % 3:  # forces take most of the time: of every third step, and of those with a new command
            continue
        acted = joint_forces(world, q, v)
        assert np.abs(acted[: robot.iv]).max(initial=0) < 1e-7 * (1 + np.abs(acted).max()), "nothing holds the base"
        assert_kept(world, acted[robot.iv :], world.joints)
    assert strained > 100, "it must have been hard"


WITH_DRIVES = [name for name in CATALOGUE if (share_dir() / "urdf" / f"{name}.drives.yaml").exists()]


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("drives", ["rigid", "elastic"])
@pytest.mark.parametrize("name", WITH_DRIVES)
def test_motors_give_what_they_report_and_no_more_than_joints_may_get(name, drives, scene):
    """Motor torque at the joints, recovered from the motion of links and rotors (without friction).

    Currents lag, screws change their ratio, and what is turned faster than its voltage brakes by its back-EMF.
    """
    base, make = SCENES[scene]
    robot, rng = load_robot(name, base), np.random.default_rng(2)
    step = {"rigid": 5e-4, "elastic": 2.5e-4}[drives]
    world = make(robot, WorldSettings(touching="all", drives=drives, step=step))
    world._motors = world._motors._replace(shafts=shaft_table(world.train, friction=False))
    forces, t, index = DrivenForces(world), world.train, [robot.index[j] for j in world.train.joints]
    number = {c: k for k, c in enumerate(t.model.coordinates)}
    strained = 0
    for k in range(400):
        if k % 100 == 0:
            command_anywhere(world, rng)
        q, v = world.full_q.copy(), world.full_v.copy()
        world.step()
        full = np.abs(world.torque) / robot.effort
        assert full.max() <= 1 + 1e-9
        strained += (full > 1 - 1e-9).sum()
        if k % 4:
            continue
        force = forces(q, v)
        acted = np.zeros(robot.n)
        acted[index] = force[robot.iv : robot.iv + len(index)]
        for s in t.shafts:
            if s.elastic:  # the joint feels the gear, and the motor what the gear leaves of it
                own, joint = number[s.body], number[s.joints[0]]
                gear = np.array([s.drive.ratio, s.drive.elastic.stiffness, s.drive.elastic.damping])
                at = t.model.qpos
                passed, back = gear_torque(q[at[own]], v[own], q[at[joint]], v[joint], gear)
                acted[robot.index[s.joints[0]]] += s.drive.ratio * (force[own] - back) - passed
        assert_kept(world, acted, world.joints)
    assert np.abs(world.v).max() > 1.0 and strained > 20, "it must have been hard"


@pytest.fixture(params=ENGINES)
def engine(request):
    if request.param == "mujoco":
        pytest.importorskip("mujoco", reason="needs MuJoCo: pip install mujoco")
    return request.param


def test_a_drive_does_not_drive_beyond_its_speed_limit(engine):
    """Sent to the other end of its range a joint comes near its speed limit, and not past it by its own motor."""
    robot = load_robot("hrp2", "fixed")
    world, k = make_engine(robot, engine, WorldSettings(gravity=0.0)), robot.joint_index("l_elbow_flexion")
    world.reset(robot.from_mapping({"l_elbow_flexion": robot.lower[k]}))
    world.command(robot.from_mapping({"l_elbow_flexion": robot.upper[k]}))
    fastest = 0.0
    for _ in range(1000):
        world.step()
        fastest = max(fastest, abs(world.joint_velocity[k]))
    # The rest of the arm swings and pushes it on by a hair, which the motor brakes in proportion.
    assert 0.97 * robot.velocity[k] < fastest <= robot.velocity[k] * 1.001
    assert world.joints[k] == pytest.approx(robot.upper[k], abs=1e-3)


def test_a_motor_brakes_what_is_driven_past_its_speed_limit(engine):
    """A joint thrown at twice its speed limit, and asked to go on faster, is braked by all its motor can give."""
    robot = load_robot("hrp2", "fixed")
    world, k = make_engine(robot, engine, WorldSettings(gravity=0.0)), robot.joint_index("l_elbow_flexion")
    middle = 0.5 * (robot.lower[k] + robot.upper[k])
    for side in (1.0, -1.0):
        thrown = np.zeros(robot.n)
        thrown[k] = 2 * side * robot.velocity[k]
        world.set_state(robot.from_mapping({"l_elbow_flexion": middle}), thrown)
        world.command(efforts=np.where(thrown != 0, side * robot.effort, np.nan))
        world.step()
        assert world.torque[k] == -side * robot.effort[k]


def stops_alone(robot, stop=None):
    """Gains without motors or damping: only the stops of the default gains."""
    z, given = np.zeros(robot.n), default_gains(robot)
    return DriveGains(z, z, given.rotor, z, given.stop if stop is None else stop)


@pytest.mark.parametrize("step", [0.001, 0.01])
@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_no_energy_comes_of_a_stop(name, step):
    """A limp robot thrown about: no step ends with more kinetic energy than the same step without stops.

    At the velocities of the step, weighed by the inertia at its beginning: the energy that a stop could give or take.
    """
    robot, rng = load_robot(name, "fixed"), np.random.default_rng(3)
    world = MultibodyWorld(robot, WorldSettings(step=step), stops_alone(robot))
    free = MultibodyWorld(robot, WorldSettings(step=step), stops_alone(robot, np.zeros(robot.n)))
    world.set_state(
        rng.uniform(np.maximum(robot.lower, -2.0), np.minimum(robot.upper, 2.0)), rng.normal(size=robot.n) * 3.0
    )
    data, lost = robot.model.createData(), []
    for _ in range(round(0.5 / step)):
        M = np.triu(pin.crba(robot.model, data, world.q))
        M = M + np.triu(M, 1).T + np.diag(world.gains.rotor)
        free.q, free.v, free.acceleration = world.q.copy(), world.v.copy(), world.acceleration.copy()
        free.step()
        world.step()
        lost.append(0.5 * (free.v @ M @ free.v - world.v @ M @ world.v))
        assert (world.joints > robot.lower - BEYOND).all() and (world.joints < robot.upper + BEYOND).all()
    assert min(lost) > -1e-4 and np.count_nonzero(np.array(lost) > 1e-3) > 3, "stops were struck, and took energy"


def test_a_joint_rests_on_its_stop_which_carries_what_gravity_asks():
    """A limp forearm falls onto the end of its range, stays there, and leaves it as freely as if there were none."""
    robot = load_robot("hrp2", "fixed")
    k, given = robot.joint_index("l_elbow_flexion"), default_gains(robot)
    own = np.arange(robot.n) == k
    limp = replace(given, **{f: np.where(own, 0.0, getattr(given, f)) for f in ("kp", "kd", "effort")})
    raised = robot.from_mapping({"l_shoulder_flexion": 1.2, "l_elbow_flexion": 1.0})
    for stop, held in ((given.stop, True), (np.where(own, 0.0, given.stop), False)):
        world = MultibodyWorld(robot, gains=replace(limp, stop=stop))
        world.reset(raised)
        lowest = np.inf
        for _ in range(1500):
            world.step()
            lowest = min(lowest, world.joints[k])
        if not held:
            assert lowest < robot.lower[k] - 0.2, "without a stop it falls through"
            continue
        assert world.joints[k] == pytest.approx(robot.lower[k], abs=1e-6)
        q, v = world.q.copy(), world.v.copy()
        world.step()
        gravity = pin.computeGeneralizedGravity(robot.model, robot.model.createData(), world.q)[k]
        assert gravity > 1.0 and world.torque[k] == 0.0
        assert joint_forces(world, q, v)[k] == pytest.approx(gravity, rel=1e-3), "all of it comes from the stop"
        world.arrays.set_gravity((0.0, 0.0, 9.81))
        world.step(20)
        assert world.joint_velocity[k] > 0.1, "upside down it falls off"


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_a_far_goal_is_approached_at_the_speed_limit_without_chatter(name, engine):
    """A light link reaches its speed limit within a step or two, and a motor that took turns between its two torque
    limits from there on would hold a lower speed on average."""
    robot = load_robot(name, "fixed")
    world, goal = make_engine(robot, engine), robot.postures["neutral"].copy()
    elbow = robot.joint_index("l_elbow_flexion")
    goal[elbow] += 0.9 * (robot.upper[elbow] - goal[elbow])
    world.command(goal)
    torques, speeds = [], []
    while world.joints[elbow] < robot.postures["neutral"][elbow] + 0.5 * (
        goal[elbow] - robot.postures["neutral"][elbow]
    ):
        world.step()
        torques.append(world.torque[elbow])
        speeds.append(world.v[robot.iv + elbow])
        assert world.time < 3.0
    turns = np.count_nonzero(np.diff(np.sign(torques)))
    assert turns <= 2
    assert np.diff(speeds).min() > -0.02 * robot.velocity[elbow], "it does not slow down on the way"
    assert max(speeds) < 1.02 * robot.velocity[elbow]


def motor_law(robot, gains, q_ref, v_ref, q, w):
    """Torques (n,) of ideal drives as their law has them at the end of a step, where the speed limit is a brake."""
    asked = gains.kp * (q_ref - q) + gains.kd * (v_ref - w)
    side = np.where(w < 0.0, -1.0, 1.0)
    room = gains.effort * (robot.velocity - np.abs(w)) / (SPEED_BAND * robot.velocity)
    return np.clip(side * np.minimum(side * asked, np.maximum(room, -gains.effort)), -gains.effort, gains.effort)


def stop_law(robot, gains, q, w, h):
    """Forces (n,) of the stops of a step of h [s] that begins at q (n,) and ends with the speeds w (n,)."""
    low, high = robot.lower - q, robot.upper - q
    up = gains.stop * (low - (h + RECOVERY * (low > 0.0)) * w)
    down = gains.stop * (high - (h + RECOVERY * (high < 0.0)) * w)
    return np.maximum(up, 0.0) + np.minimum(down, 0.0)


def test_pieces_of_coupled_drives_are_found_whatever_couples_them():
    """Inertias and forces of no robot, joints at their speed limits and stops: the equations of motion hold at the end.

    Their solution is the only one, since every force falls with the acceleration. Newton's steps alone do not find it.
    """
    robot, rng, h = load_robot("hrp2", "fixed"), np.random.default_rng(0), 0.001
    gains, n = default_gains(robot), robot.n
    commands = DriveCommands(robot, gains, 1.0)
    drives, rows, rounds = drive_table(robot, commands, gains), np.zeros((6, n)), []
    for _ in range(300):
        A = rng.normal(size=(n, 4)) * rng.choice([0.05, 0.3], (n, 1))
        M, bias = A @ A.T + np.diag(rng.uniform(1e-4, 0.02, n)), rng.normal(0.0, 40.0, n)
        q = rng.uniform(np.maximum(robot.lower, -2.0), np.minimum(robot.upper, 2.0))
        q = np.where(rng.random(n) < 0.2, rng.choice([-1, 1], n) * 1e-4 + rng.choice([robot.lower, robot.upper]), q)
        v = robot.velocity * rng.choice([-1.0, 1.0], n) * rng.uniform(0.8, 1.1, n)
        commands.q_ref[:], commands.v_ref[:] = q + rng.normal(0.0, 0.02, n), np.sign(v) * robot.velocity
        rows[JOINT], rows[SPEED], rows[ACCELERATION] = q, v, rng.normal(0.0, 100.0, n)
        begin_drive_step(drives.table, rows, h)
        rounds.append(0)
        while True:
            rows[ACCELERATION] = np.linalg.solve(M + np.diag(rows[INERTIA]), rows[FORCE] - bias)
            rounds[-1] += 1
            if not switch_drive_step(drives.table, rows, h, switching_rule(rounds[-1])):
                break
        a, w = rows[ACCELERATION], v + h * rows[ACCELERATION]
        given = motor_law(robot, gains, commands.q_ref, commands.v_ref, q + h * w, w)
        assert np.abs(rows[TORQUE] - given).max() < 1e-6 * robot.effort.max()
        missing = M @ a + gains.rotor * a + bias - given - stop_law(robot, gains, q, w, h)
        assert np.abs(missing).max() < 1e-4 * (1.0 + np.abs(M @ a).max())
    assert NEWTON_ROUNDS < max(rounds) < MOST_ROUNDS / 2


def test_the_last_rule_ends_with_torques_within_their_limits_and_toward_the_commands():
    """It follows when the other rules do not end: pieces may only move toward limits."""
    robot, rng, h = load_robot("hrp2", "fixed"), np.random.default_rng(0), 0.001
    gains, n = default_gains(robot), robot.n
    commands = DriveCommands(robot, gains, 1.0)
    drives, rows, at_limit = drive_table(robot, commands, gains), np.zeros((6, n)), 0
    middle = 0.5 * (robot.lower + robot.upper)
    for _ in range(20):
        side = rng.choice([-1.0, 1.0], n)
        commands.q_ref[:], commands.v_ref[:] = middle, 0.0
        rows[JOINT], rows[SPEED], rows[ACCELERATION] = middle, 0.0, 0.0
        begin_drive_step(drives.table, rows, h)  # pieces of a joint at its command: far from every limit
        pushed, rounds = side * 3.0 * robot.effort, 0
        inertia = rng.uniform(0.01, 0.02, n) * h  # so light that the push moves each joint fast within the step
        while True:
            rows[ACCELERATION] = (rows[FORCE] + pushed) / (inertia + rows[INERTIA])
            rounds += 1
            if not switch_drive_step(drives.table, rows, h, LAST):
                break
            assert rounds < 3 * n
        assert (np.abs(rows[TORQUE]) <= robot.effort * (1 + 1e-9)).all()
        assert (rows[TORQUE] * side <= 0.0).all(), "each drive acts against the push, toward its command"
        at_limit += np.count_nonzero(np.abs(rows[TORQUE]) > 0.999 * robot.effort)
    assert at_limit > 100


@pytest.mark.parametrize("name", by_kind(["hrp2", "wabian2"]))
def test_joints_that_drive_each_other_at_their_speed_limits_obey_their_motors(name, engine):
    """All joints wave as fast as they may, coupled by light links, so that many motors and stops change their pieces
    in one step: each step still ends where every motor gives what its law says there."""
    robot = load_robot(name, "fixed")
    world, rng = make_engine(robot, engine, WorldSettings(gravity=0.0)), np.random.default_rng(5)
    middle = robot.postures["neutral"].copy()
    world.reset(middle)
    wave, phase = rng.uniform(8.0, 25.0, robot.n), rng.uniform(0.0, 6.3, robot.n)
    limited, exact = 0, 1e-6 * robot.effort
    for k in range(500):
        t = 0.004 * k
        q = np.clip(middle + 1.3 * robot.velocity / wave * np.sin(wave * t + phase), robot.lower, robot.upper)
        world.command(q, 1.3 * robot.velocity * np.cos(wave * t + phase))
        for _ in range(4):
            world.step()
            w, drives = world.joint_velocity, world.drives
            given = motor_law(robot, world.gains, drives.q_ref, drives.v_ref, world.joints, w)
            assert (np.abs(world.torque - given) < exact).all()
            limited += np.count_nonzero(np.abs(w) > (1 - SPEED_BAND) * robot.velocity)
    assert limited > 1000
