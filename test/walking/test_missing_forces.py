"""Wrenches of feet whose sensors are silent, by the motion of the trunk: beside inverse dynamics of the whole robot."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import load_robot
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.missing_forces import sensed_wrenches, wrenches_of_motion

G = np.array([0.0, 0.0, 9.81])


@pytest.fixture(scope="module")
def robot():
    return load_robot("lola", "floating")


def moving(robot, acceleration):
    """Estimator and feet of a robot at rest that is accelerated as a whole, the ground's force, its (2,) zmp."""
    q = robot.q("neutral")
    R = pin.Quaternion(q[3:7]).toRotationMatrix()
    a = np.zeros(robot.nv)
    a[:3] = R.T @ acceleration
    data = robot.model.createData()
    tau = pin.rnea(robot.model, data, q, np.zeros(robot.nv), a)
    # The wrench on the base is all that holds the robot: moved to the world's origin, then to the ground.
    pin.framesForwardKinematics(robot.model, data, q)
    wrench = data.oMi[1].act(pin.Force(tau[:6]))
    feet, estimator = Feet(robot), FloatingBaseEstimator(robot, Feet(robot).frames)
    ground = data.oMf[feet.frames[0]].translation[2]
    f, n = wrench.linear, wrench.angular
    zmp = np.array([(-n[1] - f[0] * ground) / f[2], (n[0] - f[1] * ground) / f[2]])
    root = R @ robot.model.frames[robot.model.getFrameId(robot.root_link, pin.FrameType.BODY)].placement.rotation
    imu = ImuReading(pin.Quaternion(root).coeffs(), np.zeros(3), root.T @ (acceleration + G))
    estimator.kinematics(q[7:], np.zeros(robot.n), imu)
    return feet, estimator, f[2], zmp - q[:2]  # the estimator computes with the base at the origin


def pressure(feet, data, wrenches):
    """Force and zero-moment point of the wrenches of both feet."""
    total = wrenches[:, 0].sum()
    at = []
    for frame, (f, mx, my) in zip(feet.frames, wrenches, strict=True):
        at.append(f * data.oMf[frame].act(np.array([-my / max(f, 1e-9), mx / max(f, 1e-9), 0.0]))[:2])
    return total, sum(at) / total


@pytest.mark.parametrize("acceleration", [(0, 0, 0), (0.3, 0.2, 0.4), (-0.2, 0.5, -0.6)])
def test_two_silent_feet_press_as_newton_says(robot, acceleration):
    feet, estimator, f, zmp = moving(robot, np.array(acceleration, dtype=float))
    told = wrenches_of_motion(feet, estimator, {}, [True, True], None)
    total, place = pressure(feet, estimator.data, told)
    assert total == pytest.approx(f, rel=1e-9)
    np.testing.assert_allclose(place, zmp, atol=1e-5)
    assert (told[:, 0] > 0).all()


@pytest.mark.parametrize("silent", [0, 1])
def test_a_silent_foot_presses_what_the_other_does_not(robot, silent):
    feet, estimator, f, zmp = moving(robot, np.array([0.2, 0.1, 0.3]))
    both = wrenches_of_motion(feet, estimator, {}, [True, True], None)
    shifted = both.copy()
    shifted[1 - silent] = 0.7 * both[1 - silent, 0], 3.0, -6.0
    measured = sensed_wrenches(feet, estimator.data, shifted)
    heard = {sole.name: measured[sole.name] for sole in feet.soles[1 - silent]}
    told = wrenches_of_motion(feet, estimator, heard, [silent == 0, silent == 1], None)
    assert not told[1 - silent].any()
    told[1 - silent] = shifted[1 - silent]
    total, place = pressure(feet, estimator.data, told)
    assert total == pytest.approx(f, rel=1e-9)
    np.testing.assert_allclose(place, zmp, atol=1e-5)


def test_what_is_in_the_air_presses_nothing_and_no_sole_presses_beyond_its_edge(robot):
    feet, estimator, f, _ = moving(robot, np.array([4.0, 0.0, 0.0]))
    for air in (0, 1):
        told = wrenches_of_motion(feet, estimator, {}, [True, True], air)
        assert not told[air].any() and told[1 - air, 0] == pytest.approx(f)
        x = -told[1 - air, 2] / told[1 - air, 0]
        assert x == pytest.approx(feet.lower[1 - air, 0]), "the heel"
    alone = [True, False]
    nothing = {sole.name: np.zeros(6) for sole in feet.soles[1]}
    assert not wrenches_of_motion(feet, estimator, nothing, alone, 0).any()
    assert wrenches_of_motion(feet, estimator, nothing, alone, None)[0, 0] == pytest.approx(f)


def test_without_an_accelerometer_the_weight_presses_under_the_centre_of_mass(robot):
    feet, estimator, _, _ = moving(robot, np.zeros(3))
    estimator.acceleration = None
    told = wrenches_of_motion(feet, estimator, {}, [True, True], None)
    total, place = pressure(feet, estimator.data, told)
    assert total == pytest.approx(robot.mass * 9.81)
    np.testing.assert_allclose(place, estimator.data.com[0][:2], atol=1e-9)


def test_sensors_read_back_what_feet_press(robot):
    feet, data = Feet(robot), robot.model.createData()
    pin.framesForwardKinematics(robot.model, data, robot.q())
    pressed = np.array([[310.0, 4.0, -7.0], [280.0, -3.0, 5.0]])
    read = feet.wrenches(data, sensed_wrenches(feet, data, pressed))
    np.testing.assert_allclose(read[:, 2:5], pressed, atol=1e-9)
    np.testing.assert_allclose(read[:, [0, 1, 5]], 0, atol=1e-9)
