"""Encoder offsets from poses in a jig: found again when planted, and what cannot be found is named."""

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.schwienbacher2014.calibration import study_calibration
from humanoid_control.errors import ConfigError, RobotError
from humanoid_control.robots import load_robot
from humanoid_control.simulation.encoder_calibration import (
    POSE,
    POSITION,
    JigAccuracy,
    calibrate,
    fixtures,
    jig_poses,
    legs_of,
    mean_offsets,
)
from humanoid_control.simulation.sensors.encoders import AbsoluteEncoders

ACCURACY, EXACT = JigAccuracy(), JigAccuracy(0.0, 0.0)
NOISE = np.radians(0.02)


@pytest.fixture(scope="module")
def leg():
    return legs_of(load_robot("lola", "fixed"))[0]


@pytest.fixture(scope="module")
def postures(leg):
    return jig_poses(leg, 3)


def measure(leg, postures, seed, noise=NOISE, accuracy=ACCURACY, counts=2.0**17):
    random = np.random.default_rng(seed)
    mounting = np.radians(3) * random.standard_normal(leg.robot.n)
    encoders = AbsoluteEncoders(np.full(leg.robot.n, counts), mounting, noise, seed)
    return mounting[leg.index], fixtures(leg, postures, encoders, accuracy, random), encoders.deviation


def test_the_first_six_joints_of_each_leg_are_calibrated_and_the_toe_is_not():
    for leg in legs_of(load_robot("lola", "fixed")):
        side = leg.name[:2]
        names = ["hip_rotation", "hip_abduction", "hip_flexion", "knee_flexion", "ankle_abduction", "ankle_flexion"]
        assert leg.joints == tuple(side + n for n in names)


def test_the_jacobian_of_the_sole_equals_finite_differences(leg, postures):
    q, h = postures[1], 1e-6
    J = leg.jacobian(q)
    for column, k in enumerate(leg.index):
        step = np.zeros(len(q))
        step[k] = h
        moved = pin.log6(leg.pose(q - step).actInv(leg.pose(q + step))).vector / (2 * h)
        np.testing.assert_allclose(J[:, column], moved, atol=1e-8)


@pytest.mark.parametrize("count", [1, 3])
def test_without_noise_the_offsets_are_exact(leg, postures, count):
    planted, measured, _ = measure(leg, postures[:count], 1, 0.0, EXACT, 2.0**45)
    found = calibrate(leg, measured, np.full(leg.robot.n, NOISE), ACCURACY)
    np.testing.assert_allclose(found.offsets, planted, atol=1e-10)
    assert found.residual < 1e-6 and not found.unidentified
    np.testing.assert_allclose(mean_offsets(leg, measured)[0], planted, atol=1e-10)


def test_planted_offsets_lie_within_the_predicted_covariance(leg, postures):
    """Over the seeds: inside three standard errors, and the squared distance over the covariance is chi-square."""
    share, distance, left = [], [], []
    for seed in range(40):
        planted, measured, deviation = measure(leg, postures, seed)
        found = calibrate(leg, measured, deviation, ACCURACY)
        error = found.offsets - planted
        share.append(np.abs(error) <= 3 * found.standard_error)
        distance.append(error @ np.linalg.solve(found.covariance, error))
        left.append(found.residual**2)
    assert np.mean(share) > 0.98
    assert 6 - 4 * np.sqrt(12 / 40) < np.mean(distance) < 6 + 4 * np.sqrt(12 / 40)
    assert np.mean(left) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 12 / 40)), "18 equations, 6 offsets"


def test_three_poses_agree_and_are_better_than_one(leg, postures):
    """T23: offsets from each pose alone differ by no more than the noise of one pose allows."""
    _, measured, deviation = measure(leg, postures, 5)
    three, one = (calibrate(leg, measured[:n], deviation, ACCURACY) for n in (3, 1))
    assert (three.standard_error < 0.75 * one.standard_error).all()
    single = [calibrate(leg, [m], deviation, ACCURACY).standard_error for m in measured]
    assert (three.spread < 5 * np.max(single, axis=0)).all() and (three.spread > 0).all()
    assert np.isnan(one.spread).all()
    assert not three.unidentified and not one.unidentified and three.condition < 10


def test_one_position_leaves_the_parallel_axes_unidentified_and_names_them(leg, postures):
    _, measured, deviation = measure(leg, postures, 5)
    found = calibrate(leg, measured[:1], deviation, ACCURACY, POSITION)
    assert len(found.unidentified) == 3 and found.condition == np.inf
    named = [set(d.parts) for d in found.unidentified]
    assert {"l_hip_flexion", "l_knee_flexion", "l_ankle_flexion"} in named
    assert np.isinf(found.standard_error[3:]).all()
    corrected = measured[0].nominal.copy()
    corrected[leg.index] = measured[0].reading[leg.index] - found.offsets
    for d in found.unidentified:  # moving along it leaves the sole's middle where it is, to first order
        assert d.deviation == np.inf
        assert max(abs(part) for part in d.parts.values()) == pytest.approx(1.0), "shares of the joint that moves most"
        moved = corrected.copy()
        for joint, part in d.parts.items():
            moved[leg.robot.index[joint]] += 1e-5 * part
        distance = np.linalg.norm(leg.pose(moved).translation - leg.pose(corrected).translation)
        assert distance < 0.12 * 1e-5 * 0.9, "parts below a tenth are not named"
    better = calibrate(leg, measured, deviation, ACCURACY, POSITION)
    assert np.isfinite(better.standard_error).all() and better.condition > 20


def test_a_seventh_joint_needs_a_second_pose():
    """WABIAN-2 turns its leg at the hip and at the ankle: standing upright one pose tells only their sum."""
    leg = legs_of(load_robot("wabian2", "fixed"))[0]
    postures = jig_poses(leg, 3)
    _, measured, deviation = measure(leg, postures, 2)
    one = calibrate(leg, measured[:1], deviation, ACCURACY)
    assert [set(d.parts) for d in one.unidentified] == [{"l_hip_rotation", "l_ankle_rotation"}]
    assert not calibrate(leg, measured, deviation, ACCURACY).unidentified


def test_the_study_works_for_other_robots_and_repeats_itself():
    robot = load_robot("hrp2", "fixed")
    legs, again = (study_calibration(robot, poses=2, seeds=1) for _ in range(2))
    assert [s.leg.name for s in legs] == ["l_foot", "r_foot"]
    for s, t in zip(legs, again, strict=True):
        assert [(c.measure, c.poses) for c in s.cases] == [(POSE, 2), (POSE, 1), (POSITION, 2), (POSITION, 1)]
        np.testing.assert_array_equal(s.cases[0].errors, t.cases[0].errors)
        assert np.degrees(s.cases[0].rms.max()) < 0.2 and s.cases[0].within > 0.8


def test_what_cannot_be_calibrated_is_said_in_one_line(leg, postures):
    with pytest.raises(RobotError, match="armar3 has no legs to calibrate"):
        legs_of(load_robot("armar3", "fixed"))
    _, measured, deviation = measure(leg, postures, 5, counts=0.0)
    with pytest.raises(RobotError, match="joint 'l_hip_rotation' has no absolute encoder"):
        calibrate(leg, measured, deviation, ACCURACY)
    with pytest.raises(ConfigError, match="at least one pose"):
        calibrate(leg, [], deviation, ACCURACY)
    with pytest.raises(ConfigError, match="accuracy of the jig must be above zero"):
        calibrate(leg, measured, deviation, EXACT)
    with pytest.raises(ConfigError, match=r"^poses must be at least 1, got 0"):
        study_calibration(leg.robot, poses=0)
