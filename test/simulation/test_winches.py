"""Winches move a robot by its tendons alone: statics, energy, slack, friction, faults; MuJoCo beside (TC-20)."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ConfigError, NotANumberError, RobotError, SizeError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.simulation import make_engine
from humanoid_control.simulation.drives.winches import perturbed
from humanoid_control.simulation.settings import WorldSettings
from humanoid_control.simulation.worlds.winch_world import WinchWorld, winch_gains
from humanoid_control.tendons.control.commands import HYBRID, LENGTH, OFF, TENSION, WinchCommand
from test.simulation.winched import reach

STEP = 1e-3


@pytest.fixture(scope="module")
def robot():
    return load_robot("kengoro_upper", "fixed")


def world_of(robot, step=STEP, stops=True, damping=1.0, **settings):
    gains = winch_gains(robot, damping_ratio=damping)
    gains = gains if stops else replace(gains, stop=np.zeros(robot.n))
    return WinchWorld(robot, WorldSettings(step, drives="winches", **settings), gains)


def switch_off(world):
    m = len(world.winches.names)
    world.set_tendon_commands(WinchCommand(np.full(m, OFF), *np.zeros((3, m))))


def command(world, kind, speed=0.0, tension=0.0, length=0.0):
    m = len(world.winches.names)
    rows = (np.broadcast_to(np.asarray(x, dtype=float), m) for x in (speed, tension, length))
    world.set_tendon_commands(WinchCommand(np.full(m, kind), *rows))


def change_units(world, **values):
    for name, value in values.items():
        for unit in (world.winches.record.unit, world.winches.loop.record.unit):
            getattr(unit, name)[:] = value


def stretch(world):
    r = world.winches.record
    return world.winches.plant.measure(world.joints)[0] - r.wire - r.slipped


def energy(world):
    """Energy of the robot, of the winches' rotors and of the stretched wires [J]."""
    r = world.winches.record
    wire = 0.5 * r.unit.stiffness * np.maximum(stretch(world), 0.0) ** 2
    return world.stored_energy() + float((wire + 0.5 * r.unit.mass * r.speed**2).sum())


def test_at_rest_wires_are_stretched_by_t_over_k_and_carry_the_weight(robot):
    world = world_of(robot)
    world.step(1500)
    T = world.winches.record.tension
    assert (T > 1.0).all() and np.abs(world.v).max() < 1e-4
    assert stretch(world) == pytest.approx(T / world.winches.record.unit.stiffness, abs=1e-8)
    weight = pin.computeGeneralizedGravity(world.model, world.data, world.q)
    assert pytest.approx(weight, abs=2e-3) == -world.winches.plant.measure(world.joints)[1].T @ T
    assert world.torque == pytest.approx(weight, abs=2e-3) and np.abs(weight).max() > 5
    assert np.abs(world.joints - robot.postures["neutral"]).max() < 1e-3


@pytest.mark.parametrize("mu", [0.0, 0.2])
def test_a_step_is_the_implicit_one_of_its_equations(robot, mu):
    """M dv/dt + h = -G^T T and m dw/dt = F - T - b w - f_c, with T and G v at the end of the step, by pinocchio."""
    world = world_of(robot, damping=0.0, stops=False, path_friction=mu)
    rng = np.random.default_rng(1)
    world.set_state(world.joints, rng.normal(0, 0.3, robot.n))
    r = world.winches.record
    r.speed[:] = rng.normal(0, 0.02, len(r.speed))
    for _ in range(3):
        q, v, w = world.joints.copy(), world.joint_velocity.copy(), r.speed.copy()
        s = stretch(world)
        G = world.winches.plant.measure(q)[1].copy()
        world.step(1)
        after, rate = world.joint_velocity, G @ world.joint_velocity
        T = r.unit.stiffness * (s + STEP * (rate + r.speed)) + r.unit.damping * (rate + r.speed)
        assert r.tension == pytest.approx(np.maximum(T, 0.0), abs=1e-6)
        along = mu * r.unit.stiffness * np.maximum(s, 0.0) / np.maximum(np.abs(G @ v), 0.01)
        tau = -G.T @ np.where(T > 0, T + along * rate, 0.0)
        assert pin.aba(world.model, world.data, q, v, tau) == pytest.approx((after - v) / STEP, abs=1e-5)
        friction = (r.unit.viscous + r.unit.friction / np.maximum(np.abs(w), 1e-3)) * r.speed
        force = world.winches.loop.record.force
        assert r.unit.mass * (r.speed - w) / STEP == pytest.approx(force - r.tension - friction, abs=1e-6)


def test_energy_of_a_robot_without_power_never_grows(robot):
    """Motors off: falling arms, their wires and rotors lose energy in every step."""
    for step in (1e-3, 2.5e-4):
        world = world_of(robot, step, stops=False, damping=0.0)
        start, worst = energy(world), 0.0
        switch_off(world)
        for _ in range(round(0.4 / step)):
            before = energy(world)
            world.step(1)
            worst = max(worst, energy(world) - before)
        assert energy(world) < start - 1.0, "it fell, and friction took what that gave"
        assert worst < 1e-9


@pytest.mark.parametrize("stiffness", [5e4, 1e6])
def test_stiff_wires_need_no_short_steps(robot, stiffness):
    """Winches that lock (A1): pushed arms on their wires end at the same place at 4 ms and at 0.25 ms."""
    ends = []
    for step in (4e-3, 2.5e-4):
        world = world_of(robot, step, damping=10.0)
        change_units(world, stiffness=stiffness, friction=1e5, damping=500.0)
        world.reset()
        switch_off(world)
        world.push("l_forearm", np.array([0, 60.0, 60.0, 0, 0, 0]), 1.2)
        world.step(round(1.15 / step))
        pushed = world.joints.copy()
        assert not world.diverged and np.abs(world.v).max() < 3
        world.step(round(0.65 / step))
        ends.append((pushed, world.joints.copy()))
    assert np.abs(ends[0][0] - robot.postures["neutral"]).max() > (1e-2 if stiffness < 1e5 else 1e-3), "pushed"
    for long, short in zip(*ends, strict=True):
        assert np.degrees(np.abs(long - short)).max() < 0.1


def test_slack_wires_pull_nothing_and_are_taken_up(robot):
    world = world_of(robot)
    k = world.winches.names.index("l_biceps")
    world.set_tendon_fault("l_biceps", "slack", 0.03)
    world.step(1)
    assert world.winches.record.tension[k] == 0.0
    before = world.winches.record.wire[k]
    command(world, HYBRID, tension=20.0)
    world.step(1500)
    assert before - world.winches.record.wire[k] > 0.012 and world.winches.record.tension[k] > 5.0


def test_the_winch_of_a_torn_wire_runs_to_its_speed_without_load_and_no_farther(robot):
    world = world_of(robot)
    k = world.winches.names.index("l_biceps")
    change_units(world, viscous=0.0, friction=0.0)
    world.set_tendon_fault("l_biceps", "snapped")
    command(world, TENSION, speed=2.0, tension=300.0)
    fastest = 0.0
    for _ in range(300):
        world.step(1)
        fastest = max(fastest, world.winches.record.speed[k])
        assert world.winches.record.tension[k] == 0.0
    assert 0.85 * 0.45 < fastest <= 0.45


def test_wires_without_stretch_tie_joints_to_winches(robot):
    """k to infinity: winches that servo l(theta_r), and nothing else, bring the joints to theta_r."""
    goal = robot.postures["neutral"].copy()
    goal[[robot.index["l_elbow_pitch"], robot.index["neck_yaw"]]] += [-0.3, 0.2]
    away = []
    for stiffness in (5e4, 5e6):
        world = world_of(robot)
        change_units(world, stiffness=stiffness)
        world.reset()
        start = world.winches.plant.measure(robot.postures["neutral"])[0].copy()
        end, held = world.winches.plant.measure(goal)[0].copy(), world.winches.record.tension.copy()
        for share in np.linspace(0, 1, 100):
            command(world, LENGTH, tension=held, length=start + share * (end - start))
            world.step(10)
        world.step(500)
        away.append(np.degrees(np.abs(world.joints - goal)).max())
    assert away[0] > 0.3 and away[1] < away[0] / 15 and away[1] < 0.05


def test_any_units_are_stable(robot):
    """Random motors, wires and steps, jerked: finite, and no wire pushes."""
    rng = np.random.default_rng(4)
    for _ in range(12):
        world = world_of(robot, float(rng.uniform(5e-4, 1e-3)), path_friction=float(rng.uniform(0, 0.3)))
        m = len(world.winches.names)
        change_units(
            world,
            mass=rng.uniform(4.5, 80, m),
            viscous=rng.uniform(0, 200, m),
            friction=rng.uniform(0, 60, m),
            stiffness=10 ** rng.uniform(4, 7, m),
            damping=rng.uniform(0, 300, m),
        )
        world.reset()
        for kind in (HYBRID, TENSION, LENGTH, OFF):
            command(world, kind, rng.uniform(-0.1, 0.1, m), rng.uniform(0, 100, m), world.winches.record.wire)
            world.step(60)
            assert not world.diverged and np.isfinite(world.q).all()
            assert (world.winches.record.tension >= 0).all()
            assert (np.abs(world.winches.record.speed) < 3).all()


def test_path_friction_takes_energy(robot):
    """An arm that swings on locked winches keeps less of its energy."""
    left = []
    for mu in (0.0, 0.2):
        world = world_of(robot, path_friction=mu, stops=False, damping=0.0)
        change_units(world, friction=1e5, damping=0.0)
        world.reset()
        switch_off(world)
        rest = energy(world)
        world.push("l_forearm", np.array([0, 20.0, 20.0, 0, 0, 0]), 0.05)
        world.step(50)
        given = energy(world) - rest
        assert given > 0.02
        world.step(60)
        left.append((energy(world) - rest) / given)
    assert left[1] < 0.85 * left[0]


def test_stiffening_wires_begin_soft(robot):
    world = world_of(robot)
    change_units(world, stiffening=2e-3)
    world.reset()
    world.step(1000)
    T, u = world.winches.record.tension, world.winches.record.unit
    s = stretch(world)
    assert u.stiffness * s * (1 + s / 2e-3) == pytest.approx(T, abs=1e-3) and np.abs(world.v).max() < 1e-3


def test_mujoco_moves_by_the_same_winches_alike(robot):
    """Closed loop over 2 s (A2): MuJoCo's bodies, tendons and integrator at 0.25 ms beside this plant at 1 ms."""
    pytest.importorskip("mujoco", reason="needs the package mujoco, to compare with it")
    worlds = [make_engine(robot, name, WorldSettings(drives="winches")) for name in ("multibody", "mujoco")]
    lengths = worlds[1].mj_data.ten_length
    assert lengths == pytest.approx(worlds[0].winches.plant.measure(worlds[0].joints)[0], abs=1e-9)
    rng = np.random.default_rng(2)
    joints = worlds[0].winches.joints
    middle, half = (robot.upper + robot.lower)[joints] / 2, (robot.upper - robot.lower)[joints] / 2
    goal = robot.postures["neutral"][joints]
    goal = goal + 0.2 * (middle + half * rng.uniform(-1, 1, len(joints)) - goal)
    ours, theirs = reach(worlds, goal, 2.0)
    assert np.degrees(np.abs(ours[-1][joints] - ours[0][joints])).max() > 8, "it moved"
    assert np.degrees(np.abs(ours - theirs)).max() < 0.15
    assert np.degrees(np.abs(ours[-1][joints] - goal)).max() < 1.0


def test_a_robot_of_the_catalogue_reaches_by_its_virtual_tendons():
    """Legs without tendons keep their drives; arms follow their winches."""
    robot = load_robot("suralp", "fixed")
    world = make_engine(robot, settings=WorldSettings(drives="winches"))
    leg = next(k for k, n in enumerate(robot.joint_names) if "knee" in n)
    goal = world.joints.copy()
    goal[leg] += 0.2
    world.command(goal)
    arms = world.joints[world.uncommanded].copy()
    reach([world], arms, 0.4)
    assert np.degrees(np.abs(world.joints[world.uncommanded] - arms)).max() < 2.0
    world.command(goal)
    world.step(200)
    assert world.joints[leg] == pytest.approx(min(goal[leg], robot.upper[leg]), abs=0.02)


def test_faults_of_tendons_are_physical(robot):
    world = world_of(robot)
    k = world.winches.names.index("l_triceps")
    world.step(50)
    T = world.winches.record.tension[k]
    world.set_tendon_fault("l_triceps", "slipped", 0.02)
    seen = world.tendon_states().lengths[k]
    world.step(1)
    assert world.winches.record.tension[k] == 0.0 and world.tendon_states().lengths[k] == pytest.approx(seen, abs=1e-3)
    world.reset()
    world.set_tendon_fault("l_triceps", "mended")
    world.step(50)
    world.set_tendon_fault("l_triceps", "deaf")
    world.step(5)
    assert world.tendon_states().tensions[k] == 0.0 and world.winches.record.tension[k] == pytest.approx(T, rel=0.2)
    with pytest.raises(UnknownNameError, match="l_triceps"):
        world.set_tendon_fault("l_tricep", "deaf")
    with pytest.raises(UnknownNameError, match="snapped"):
        world.set_tendon_fault("l_triceps", "snaped")


def test_errors_of_the_plant_are_those_asked_for(robot):
    exact, wrong = world_of(robot), world_of(robot, winch_error=0.3, moment_arm_error=0.05, seed=3)
    ratio = wrong.winches.record.unit.stiffness / exact.winches.record.unit.stiffness
    assert np.std(ratio) == pytest.approx(0.3, rel=0.35) and (wrong.winches.loop.record.unit.stiffness == 5e4).all()
    assert np.std(wrong.winches.record.factor) == pytest.approx(0.05, rel=0.35)
    wrong.step(500)
    assert np.degrees(np.abs(wrong.joints - robot.postures["neutral"])).max() < 2.0, "it begins where it was put"
    tendons = exact.winches.plant.geometry.tendons
    moved = WinchWorld(robot, WorldSettings(drives="winches"), tendons=perturbed(tendons, 3e-3, 1))
    away = moved.winches.plant.measure(exact.joints)[0] - exact.winches.plant.measure(exact.joints)[0]
    assert 1e-3 < np.std(away) < 8e-3


def test_what_cannot_be_is_said(robot):
    with pytest.raises(RobotError, match="recommended has no tendons"):
        make_engine(load_robot("recommended", "fixed"), settings=WorldSettings(drives="winches"))
    with pytest.raises(ConfigError, match=r"path friction must be in 0..0.3, got 0.5"):
        world_of(robot, path_friction=0.5)
    with pytest.raises(ConfigError, match="winch_error must be 0 or more"):
        WorldSettings(winch_error=-0.1).check()
    with pytest.raises(ConfigError, match="attachments"):
        perturbed(world_of(robot).winches.plant.geometry.tendons, 0.5, 0)
    world = world_of(robot)
    m = len(world.winches.names)
    with pytest.raises(SizeError, match="expected 46 speeds"):
        world.set_tendon_commands(WinchCommand(np.full(m, HYBRID), np.zeros(m - 1), np.zeros(m), np.zeros(m)))
    bad = np.full(m, 20.0)
    bad[3] = np.nan
    before = world.winches.loop.record.tension.copy()
    with pytest.raises(NotANumberError, match=world.winches.names[3]):
        world.set_tendon_commands(WinchCommand(np.full(m, HYBRID), np.zeros(m), bad, np.zeros(m)))
    assert world.winches.loop.record.tension[3] == before[3] and world.winches.loop.record.tension[4] == 20.0
