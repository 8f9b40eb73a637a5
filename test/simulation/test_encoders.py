"""Encoders at links and motors, and how the counters learn where they are."""

import numpy as np
import pytest

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError
from humanoid_control.robots import load_robot
from humanoid_control.robots.drive_mechanisms import mechanisms_of
from humanoid_control.robots.drives import drives_of
from humanoid_control.simulation.sensors.encoders import AbsoluteEncoders, MotorEncoders, absolute_encoders

RNG = np.random.default_rng(8)
CAMERAS = ("l_camera_vergence", "r_camera_vergence")
HEAD = ("neck_rotation", "neck_flexion")


@pytest.fixture(scope="module")
def lola():
    return load_robot("lola")


@pytest.fixture(scope="module")
def drives(lola):
    return drives_of(lola)


@pytest.fixture(scope="module")
def mechanisms(lola, drives):
    return mechanisms_of(lola, drives)


def posture(robot):
    return robot.follow(RNG.uniform(robot.lower, robot.upper))


def test_an_absolute_encoder_reads_the_angle_its_mounting_and_whole_steps(lola, drives):
    mounting = RNG.normal(size=lola.n) * 0.05
    encoders = absolute_encoders(lola, drives, mounting)
    q = posture(lola)
    reading = encoders.read(q)
    without = [n for n, r in zip(lola.joint_names, reading, strict=True) if np.isnan(r)]
    assert sorted(without) == sorted(HEAD + CAMERAS)
    seen = np.isfinite(reading)
    steps = 2 * np.pi / encoders.counts[seen]
    assert (np.abs(reading - q - mounting)[seen] <= steps / 2 + 1e-12).all()
    turns = reading[seen] / steps
    np.testing.assert_allclose(turns, np.round(turns), atol=1e-6)
    noisy = AbsoluteEncoders(np.full(3, 4096), None, 0.01, 3)
    spread = np.std([noisy.read(np.zeros(3)) for _ in range(3000)])
    assert spread == pytest.approx(noisy.deviation[0], rel=0.04)


def test_a_robot_without_a_file_of_drives_has_an_absolute_encoder_on_every_joint():
    robot = load_robot("hrp2")
    assert (absolute_encoders(robot, drives_of(robot)).counts == 2**17).all()


def test_counters_started_from_the_absolute_encoders_follow_every_joint(lola, drives, mechanisms):
    q0 = posture(lola)
    motors = MotorEncoders(lola, drives, mechanisms, q0)
    assert all((abs(c) <= 1).all() for c in motors.counters(q0).values()), "zero at power-on, wherever that is"
    absolute = absolute_encoders(lola, drives)
    q1 = posture(lola)  # moved by hand before the start-up
    motors.start_up(q1, absolute.read(q1))
    known = [k for k, n in enumerate(lola.joint_names) if n not in HEAD + CAMERAS]
    near = q1
    for _ in range(10):
        q = posture(lola)
        measured = motors.joints(motors.counters(q), near)
        assert np.isnan(np.delete(measured, known)).all()
        # the step of the absolute encoder once, through the changing transmission, and that of the motor's
        assert np.abs(measured - q)[known].max() < 4 * (np.pi / 65536) + 2e-5
        near = np.where(np.isfinite(measured), measured, q)


def test_an_offset_that_is_not_corrected_stays_in_the_joint_angles(lola, drives, mechanisms):
    mounting = np.full(lola.n, 0.02)
    q = lola.postures["neutral"]
    for correction, left in ((0.0, 0.02), (mounting, 0.0)):
        motors = MotorEncoders(lola, drives, mechanisms, q)
        motors.start_up(q, absolute_encoders(lola, drives, mounting).read(q) - correction)
        measured = motors.joints(motors.counters(q))
        known = np.isfinite(measured)
        np.testing.assert_allclose((measured - q)[known], left, atol=1.5e-4)


def test_the_head_is_homed_at_its_limit_switches(lola, drives, mechanisms):
    motors = MotorEncoders(lola, drives, mechanisms, lola.postures["neutral"])
    at_switch = lola.postures["neutral"].copy()
    for name in (*HEAD, "vergence"):
        joint = lola.index["l_camera_vergence" if name == "vergence" else name]
        at_switch[joint] = lola.lower[joint]
        assert np.isnan(motors.joints(motors.counters(at_switch))[joint])
        motors.home(name, at_switch)
    q = posture(lola)
    measured = motors.joints(motors.counters(q))
    for name in HEAD + CAMERAS:
        assert measured[lola.index[name]] == pytest.approx(q[lola.index[name]], abs=2e-5), name
    motors.home("neck_flexion", at_switch, lola.lower[lola.index["neck_flexion"]] + 0.01)  # a switch said elsewhere
    k = lola.index["neck_flexion"]
    assert motors.joints(motors.counters(q - 0.1))[k] == pytest.approx(q[k] - 0.1 + 0.01, abs=2e-5)


def test_bad_encoders_are_said_in_one_line(lola, drives, mechanisms):
    motors = MotorEncoders(lola, drives, mechanisms, lola.postures["neutral"])
    with pytest.raises(UnknownNameError, match="unknown drive 'neck_flexon': did you mean neck_flexion"):
        motors.home("neck_flexon", lola.postures["neutral"])
    with pytest.raises(ConfigError, match="noise must not be negative"):
        AbsoluteEncoders(np.ones(2), None, -1.0)
    with pytest.raises(ConfigError, match="2 finite angles"):
        AbsoluteEncoders(np.ones(2), np.array([0.0, np.nan]))
    with pytest.raises(RobotError, match="'vergence': its loop cannot close at"):
        motors.home("vergence", lola.postures["neutral"], np.array([2.0]))
