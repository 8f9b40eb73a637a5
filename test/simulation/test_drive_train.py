"""Lola's drives, put together from her file and her URDF."""

import numpy as np
import pinocchio as pin
import pytest
import yaml

from humanoid_control.errors import RobotError
from humanoid_control.paths import share_dir
from humanoid_control.robots import load_robot
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.robots.drives import drives_of, read_drive_file
from humanoid_control.simulation.drives.motors_gears import elastic_gear, friction_torque, gear_friction, motor_settings

RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola")


@pytest.fixture(scope="module")
def mechanisms(lola):
    return mechanisms_of(lola)


@pytest.fixture(scope="module")
def drives(lola):
    return {d.name: d for d in drives_of(lola).drives}


def point(robot, q, link, xyz):
    """Where a point of a link is in the world, from pinocchio."""
    pin.framesForwardKinematics(robot.model, robot.data, q)
    return robot.data.oMf[robot.model.getFrameId(link)].act(np.asarray(xyz, float))


@pytest.mark.parametrize("base", ["floating", "fixed"])
@pytest.mark.parametrize("side", ["l", "r"])
def test_screws_and_couplers_join_the_points_of_the_moving_robot(mechanisms, drives, side, base):
    """Against pinocchio: the knee's length and each coupler's, in whole-body postures; the same with a held pelvis."""
    robot = load_robot("lola", base)
    knee, ankle = drives[f"{side}_knee"].geometry, drives[f"{side}_ankle"].geometry
    lengths = []
    for _ in range(40):
        joints = RNG.uniform(robot.lower, robot.upper)
        q = robot.q(joints)
        hinge = point(robot, q, f"{side}_thigh", knee["hinge"])
        pivot = point(robot, q, f"{side}_shank", knee["pivot"])
        turn = mechanisms[f"{side}_knee"].motor(joints[[robot.index[f"{side}_knee_flexion"]]])[0]
        lengths.append(np.linalg.norm(hinge - pivot) - turn * 0.005 / (2 * np.pi))
        drive = mechanisms[f"{side}_ankle"]
        travel = drive.travel(joints[[robot.index[f"{side}_ankle_{k}"] for k in ("abduction", "flexion")]])
        for k in range(2):
            carriage = point(robot, q, f"{side}_shank", ankle["tops"][k] + travel[k] * ankle["direction"])
            foot = point(robot, q, f"{side}_foot", ankle["bottoms"][k])
            assert np.linalg.norm(carriage - foot) == pytest.approx(ankle["coupler"], abs=1e-12)
            assert ankle["direction"] @ (robot_axes(robot, q, side).T @ (foot - carriage)) > 0, "above the foot"
    assert np.ptp(lengths) < 1e-12


def robot_axes(robot, q, side):
    pin.framesForwardKinematics(robot.model, robot.data, q)
    return robot.data.oMf[robot.model.getFrameId(f"{side}_shank")].rotation


def test_left_and_right_turn_their_motors_alike(mechanisms):
    for name in [n for n in mechanisms if n.startswith("l_")]:
        left, right = mechanisms[name], mechanisms["r_" + name[2:]]
        q = RNG.uniform(left.lower, left.upper)
        np.testing.assert_allclose(left.motor(q), right.motor(q), atol=1e-9)


def test_motors_reach_effort_and_speed_limits(lola, mechanisms, drives):
    """In the neutral posture: torque at the current limit, and back EMF at the speed limit below the supply."""
    neutral = lola.postures["neutral"]
    for name, drive in drives.items():
        if drive.motor is None:
            continue
        k = [lola.index[j] for j in drive.joints]
        J = np.abs(mechanisms[name].jacobian(neutral[k]))
        assert (J.sum(axis=0) * drive.motor.torque >= lola.effort[k]).all(), name
        assert (J.max(axis=0) * lola.velocity[k] * drive.motor.torque_constant < drive.motor.voltage_limit).all(), name
        assert 0.3e-3 <= drive.motor.time_constant <= 3e-3, name
        if drive.elastic is not None:
            reflected = drive.ratio**2 * drive.motor.inertia[0]
            hertz = np.sqrt(drive.elastic.stiffness / reflected) / (2 * np.pi)
            share = drive.elastic.damping / (2 * np.sqrt(drive.elastic.stiffness * reflected))
            assert 15 < hertz < 60 and 0.02 < share < 0.1, (name, hertz, share)


def test_the_knee_lever_is_short_and_the_tilt_of_its_screw_negligible(mechanisms, drives):
    """|r_a| / |r_b| << 1, and the energy of the rotor is its spin (T22): tilt rate against spin rate."""
    knee, motor = mechanisms["l_knee"], drives["l_knee"].motor
    assert np.linalg.norm(knee.r_a) / np.linalg.norm(knee.r_b) < 0.2
    for q in np.linspace(knee.lower[0], knee.upper[0], 50):
        spin, tilt = knee.jacobian([q])[0, 0], knee.tilt(q)[1]
        assert abs(tilt / spin) < 0.012
        assert motor.inertia[1] * tilt**2 < 1e-4 * motor.inertia[0] * spin**2
    assert knee.ratio == pytest.approx(1256.6, abs=0.05)


def changed(tmp_path, change):
    d = yaml.safe_load((share_dir() / "urdf" / "lola.drives.yaml").read_text())
    change({row["name"]: row for row in d["drives"]})
    path = tmp_path / "lola.drives.yaml"
    path.write_text(yaml.safe_dump(d))
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r["l_ankle"].update(coupler=0.01), "drive l_ankle: the loop cannot close at joint angles .* deg"),
        (lambda r: r["vergence"].update(coupler=0.01), "drive vergence: the loop cannot close at joint angle -5.0 deg"),
        (lambda r: r["l_knee"].update(pivot=[-0.03, 0, 0.04]), "drive l_knee: the transmission is singular near"),
        (
            lambda r: r["l_knee"].update(carrier="l_foot"),
            "carrier 'l_foot' must be the link before the joint, 'l_thigh'",
        ),
    ],
)
def test_a_loop_that_cannot_close_is_answered_in_one_line(tmp_path, lola, change, says):
    path = changed(tmp_path, change)
    with pytest.raises(RobotError, match=says) as e:
        mechanisms_of(lola, read_drive_file(path, lola))
    assert "\n" not in str(e.value) and str(path) in str(e.value)


def test_every_drive_gives_motor_friction_and_gear_of_the_simulation(drives):
    for drive in drives.values():
        friction = gear_friction(drive)
        assert friction.stiction >= friction.coulomb and (friction.load_share > 0) == ("screw" in drive.kind)
        assert (elastic_gear(drive) is None) == (drive.elastic is None)
        if drive.motor is None:
            with pytest.raises(RobotError, match="drive 'vergence' has no motor"):
                motor_settings(drive)
            continue
        settings = motor_settings(drive)
        assert settings.array()[2] == settings.array()[3] == drive.motor.torque_constant
        loss = friction_torque(1e3, 0.0, friction.array())[0] * abs(drive.ratio)
        assert loss < 0.2 * drive.motor.torque * abs(drive.ratio)
