"""Acceleration limits of joints: against inverse dynamics, a pendulum on paper, a simulated drive; and of the file."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.ik import IkSettings
from humanoid_control.kinematics.joint_limits import JointLimits, StepRules, fill_velocity_bounds
from humanoid_control.robots import CATALOGUE, load_robot
from humanoid_control.robots.accelerations import (
    BRAKING_SHARE,
    HALF,
    LEAST,
    ROTOR_PER_EFFORT,
    SHARE,
    drive_accelerations,
    rotor_inertia,
    sampled_postures,
)
from humanoid_control.robots.drives import drives_of
from humanoid_control.simulation import SimulationConfig
from test.robots_under_test import by_kind

ARM = """<robot name="arm"><link name="base"/>
  <link name="bar"><inertial><origin xyz="0.5 0 0"/><mass value="2.0"/>
    <inertia ixx="0.01" iyy="0.3" izz="0.3" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tip"><inertial><origin xyz="0 0 0"/><mass value="0.1"/>
    <inertia ixx="0.001" iyy="0.001" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="bar"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="2" {effort}/></joint>
  <joint name="wrist" type="revolute"><parent link="bar"/><child link="tip"/><origin xyz="1 0 0"/><axis xyz="0 0 1"/>
    <limit lower="-3" upper="3" velocity="2" effort="5"/>{mimic}</joint></robot>"""


def arm(folder, effort='effort="40"', mimic="", file=""):
    """A heavy bar on a hinge with a light tip; a robot file beside it where there is something to say."""
    path = folder / "arm.urdf"
    path.write_text(ARM.format(effort=effort, mimic=mimic))
    if file:
        (folder / "arm.yaml").write_text(f"schema: humanoid_robot/1\n{file}\n")
    return load_robot(path)


@pytest.mark.parametrize("name", ["hrp2", "lola", "we4rii"])
def test_in_every_posture_the_drive_that_accelerates_so_gives_its_effort_limit(name):
    """By recursive inverse dynamics: what the joint's own rotor and all that it carries need, beside the weight."""
    robot = load_robot(name, "fixed")
    sampled, rotor, data = drive_accelerations(robot), rotor_inertia(robot), robot.model.createData()
    rest, checked = np.zeros(robot.nv), 0
    for k in range(0, len(sampled), 97):
        q = robot.q(sampled_postures(robot)[k])
        weight = pin.rnea(robot.model, data, q, rest, rest)
        for i, a in enumerate(sampled[k]):
            one = np.where(np.arange(robot.n) == i, np.copysign(a, weight), 0.0)  # against the weight: the harder way
            needed = abs(pin.rnea(robot.model, data, q, rest, one)[i]) + rotor[i] * a
            if abs(weight[i]) < (1 - LEAST) * robot.effort[i]:
                assert needed == pytest.approx(robot.effort[i], rel=1e-9)
                checked += 1
            else:
                assert a == pytest.approx(LEAST * robot.effort[i] / ((needed - abs(weight[i])) / a), rel=1e-6)
    assert checked > 100


def test_limits_of_a_pendulum_are_those_on_paper(tmp_path):
    """Half of the angles of a bar from -3 to 3 rad load it by less than m g l |cos q| at its quartile."""
    robot = arm(tmp_path)
    weight = 9.81 * (2.0 * 0.5 + 0.1 * 1.0)
    inertia = 0.3 + 2.0 * 0.25 + 0.001 + 0.1 + ROTOR_PER_EFFORT * 40.0
    at_ends = np.abs(np.cos(np.where(np.random.default_rng(5).random(200_000) < 0.5, 3.0, 0.0)))
    anywhere = np.abs(np.cos(np.random.default_rng(6).uniform(-3, 3, 200_000)))
    load = np.where(at_ends < 1.0, at_ends, anywhere)  # at an end of its range every second time, else anywhere
    expected = SHARE * (40.0 - weight * np.quantile(load, 1 - HALF)) / inertia
    assert robot.acceleration_limits[0] == pytest.approx(expected, rel=0.02)
    assert robot.braking_limits[0] == pytest.approx(BRAKING_SHARE * SHARE * (40.0 - weight) / inertia, rel=1e-3)
    assert (robot.braking_limits <= robot.acceleration_limits).all()


def test_an_effort_that_the_urdf_does_not_say_limits_nothing(tmp_path):
    for effort in ("", 'effort="0"'):
        robot = arm(tmp_path, effort)
        assert robot.acceleration_limits[0] == np.inf == robot.braking_limits[0]
        assert (
            robot.accelerations_within(200.0).acceleration[0] == 200.0 == robot.accelerations_within(200.0).braking[0]
        )
        assert np.isfinite(robot.acceleration_limits[1])


def test_the_robot_file_comes_first_and_nothing_is_above_the_limit_of_all(tmp_path):
    robot = arm(tmp_path, file="acceleration_limits: {hinge: 3.5}")
    assert robot.acceleration_limits[0] == 3.5 and robot.braking_limits[0] == BRAKING_SHARE * 3.5
    assert robot.acceleration_limits[1] > 200.0
    within = robot.accelerations_within(200.0, 0.8)
    assert within.acceleration == pytest.approx([0.8 * 3.5, 200.0]) and within.braking[0] == pytest.approx(1.4)
    alone = robot.accelerations_within(200.0, np.inf)
    assert (alone.acceleration == 200.0).all() and (alone.braking == 200.0).all()


@pytest.mark.parametrize("value", ["0", "-2", ".nan", ".inf", "fast"])
def test_a_limit_in_the_file_that_is_none_is_refused_by_name(tmp_path, value):
    with pytest.raises(RobotError, match=r"acceleration_limits.*hinge"):
        arm(tmp_path, file=f"acceleration_limits: {{hinge: {value}}}")


def test_a_joint_of_the_file_that_the_robot_lacks_is_named_with_the_nearest(tmp_path):
    with pytest.raises(UnknownNameError, match="hinge"):
        _ = arm(tmp_path, file="acceleration_limits: {hinges: 2.0}").acceleration_limits


def test_a_leader_asks_of_its_mimic_what_that_can_do(tmp_path):
    robot = arm(tmp_path, mimic='<mimic joint="hinge" multiplier="-0.5"/>', file="acceleration_limits: {wrist: 4.0}")
    assert robot.acceleration_limits == pytest.approx([8.0, 4.0])
    robot = arm(tmp_path, mimic='<mimic joint="hinge" multiplier="-0.5"/>', file="acceleration_limits: {hinge: 4.0}")
    assert robot.acceleration_limits == pytest.approx([4.0, 2.0])


@pytest.mark.parametrize("name", by_kind(CATALOGUE))
def test_every_robot_has_limits_that_it_can_dance_with(name):
    """None so low that a joint would need a second to its full speed, both sides alike, the same on its feet."""
    robot, standing = load_robot(name, "fixed"), load_robot(name, "floating")
    limits = dict(zip(robot.joint_names, robot.acceleration_limits, strict=True))
    assert all(0 < robot.velocity[robot.index[j]] / a < 0.35 for j, a in limits.items())
    for joint, a in limits.items():
        if joint.startswith("l_") and f"r_{joint[2:]}" in limits:
            assert a == limits[f"r_{joint[2:]}"]
    assert dict(zip(standing.joint_names, standing.acceleration_limits, strict=True)) == pytest.approx(limits)


def test_rotors_of_the_file_of_drives_count():
    """A harmonic drive's rotor turns by its ratio: its inertia at the joint is ratio^2 as large."""
    robot = load_robot("lola", "fixed")
    drive = drives_of(robot).of_joint("l_shoulder_flexion")
    own = drive.ratio**2 * drive.motor.inertia[0]
    assert rotor_inertia(robot)[robot.index["l_shoulder_flexion"]] == pytest.approx(own)
    assert own > 2 * ROTOR_PER_EFFORT * robot.effort[robot.index["l_shoulder_flexion"]]


def speed_at_the_stop(acceleration, braking, joint="waist_flexion", ease=0.0):
    """HRP-2 moves a joint at full speed to the upper end of its range, its arms held out: speed there [rad/s]."""
    robot, dt = load_robot("hrp2", "fixed"), 0.004
    waist = robot.index[joint]
    engine, q = SimulationConfig("hrp2", "fixed").build(), robot.postures["neutral"].copy()
    q[[robot.index[f"{side}_shoulder_flexion"] for side in "lr"]] = np.pi / 2
    engine.set_state(q)
    limits, rules = (
        JointLimits(robot.lower, robot.upper, robot.velocity),
        StepRules(dt, 0.0, 0.5, acceleration, braking, ease),
    )
    v, low, high, speed = np.zeros(robot.n), np.empty(robot.n), np.empty(robot.n), 0.0
    for _ in range(400):
        fill_velocity_bounds(q, limits, rules, v, low, high)
        v = np.where(np.arange(robot.n) == waist, high, 0.0)
        q = q + v * dt
        engine.command(q, v)
        for _ in range(4):
            speed = engine.joint_velocity[waist]
            engine.step()
            if engine.joints[waist] > robot.upper[waist] - 1e-4:
                return speed
    assert engine.joints[waist] == pytest.approx(robot.upper[waist], abs=0.02), "and it gets there"
    return 0.0


def test_a_simulated_waist_does_not_run_into_its_stop_where_it_brakes_by_its_own():
    """With 20 rad/s^2 for all joints the trunk hits the stop; with what its drive always can give half as fast."""
    robot = load_robot("hrp2", "fixed")
    same = np.full(robot.n, 20.0)
    own = speed_at_the_stop(*robot.accelerations_within(20.0))
    assert speed_at_the_stop(same, same) > 0.75 and own < 0.45


def test_the_last_part_of_the_way_is_slow_enough_for_a_drive_that_lags():
    """A deceleration that ends at the end of the range runs the elbow into its stop; one that falls before does not."""
    own = load_robot("hrp2", "fixed").accelerations_within(200.0)
    assert speed_at_the_stop(*own, joint="l_elbow_flexion") > 0.5
    assert speed_at_the_stop(*own, joint="l_elbow_flexion", ease=IkSettings.range_ease) < 0.15
    assert speed_at_the_stop(*own, ease=IkSettings.range_ease) < speed_at_the_stop(*own)
