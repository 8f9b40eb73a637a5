"""The floating base by joints, IMU and forces: beside the simulated truth, while the robot sways on its feet."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.estimation.floating_base import (
    BELIEF,
    BLIND,
    LIGHT,
    PLACED,
    RESTING,
    SURE,
    TOUCHING,
    ContactStates,
    FloatingBaseEstimator,
)
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking.feet import Feet

DT = 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("lola", "floating")


def moved(robot, rng, R, p):
    """A state of the robot with both soles where they are: joints of the upper body and the base's turn at random."""
    q = robot.q("neutral", pin.SE3(R, p))
    v = np.concatenate([rng.normal(size=6), 0.3 * rng.normal(size=robot.n)])
    return q, v


def reading(q, v):
    return ImuReading(q[3:7], v[3:6], np.zeros(3))  # without an accelerometer


@pytest.mark.parametrize("stands", [(True, True), (True, False), (False, True)])
def test_pose_velocity_and_centre_of_mass_are_exact_while_soles_stand(robot, stands):
    """Kinematics of a robot that turns about a sole which stands still: every quantity by pinocchio."""
    rng, feet = np.random.default_rng(3), Feet(robot)
    q = robot.q("neutral")
    data = robot.model.createData()
    pin.computeJointJacobians(robot.model, data, q)
    pin.updateFramePlacements(robot.model, data)
    J = np.vstack(
        [
            pin.getFrameJacobian(robot.model, data, f, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            for f, s in zip(feet.frames, stands, strict=True)
            if s
        ]
    )
    v = 0.5 * rng.normal(size=robot.nv)
    v -= np.linalg.pinv(J) @ (J @ v)  # the soles that stand do not move
    estimator = FloatingBaseEstimator(robot, feet.frames)
    estimator.reset([data.oMf[f].translation for f in feet.frames])
    forces = np.where(stands, 300.0, 0.0)
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    got = estimator.update(forces, stands, DT)
    np.testing.assert_allclose(got.q, q, atol=1e-9)
    np.testing.assert_allclose(got.v, v, atol=1e-9)
    pin.centerOfMass(robot.model, data, q, v)
    np.testing.assert_allclose(got.center, data.com[0], atol=1e-9)
    np.testing.assert_allclose(got.center_velocity, data.vcom[0], atol=1e-9)


def test_a_sole_in_the_air_is_not_believed_and_none_keeps_the_velocity(robot):
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    first = estimator.update(np.array([300.0, 300.0]), (True, True), DT)
    v[6:] = 0.1
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    one = estimator.update(np.array([300.0, 300.0]), (False, True), DT)  # the left one brushes the ground in its swing
    assert one.weights.tolist() == [0.0, 1.0]
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    none = estimator.update(np.zeros(2), (True, True), DT)
    np.testing.assert_allclose(none.q[:3] - one.q[:3], DT * one.v[:3], atol=1e-6)
    assert none.airborne == pytest.approx(DT) and first.airborne == 0.0


def test_a_sole_that_comes_down_is_anchored_on_the_ground_that_is_known(robot):
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    got = estimator.update(np.array([300.0, 300.0]), (True, True), DT, ground=(0.2, 0.2))
    assert got.soles[0].translation[2] == pytest.approx(0.2, abs=1e-9)


def test_beside_the_truth_while_the_robot_is_pushed(robot):
    """Odometry and velocity in the simulated world, whose contacts give way by millimetres."""
    engine = SimulationConfig("lola", "floating").build()
    feet, q0 = Feet(robot), None
    estimator = FloatingBaseEstimator(robot, feet.frames)
    engine.step(400)
    errors, speeds = [], []
    engine.push(robot.root_link, np.array([40.0, 30.0, 0, 0, 0, 0]), 0.2)
    for _ in range(150):
        m = engine.read()
        estimator.kinematics(m.joints.q, m.joints.v, m.imu)
        got = estimator.update(feet.wrenches(estimator.data, m.foot_wrenches)[:, 2], (True, True), DT)
        q0 = got.q[:3] - engine.q[:3] if q0 is None else q0
        errors.append(got.q[:3] - engine.q[:3] - q0)
        pin.centerOfMass(robot.model, robot.data, engine.q, engine.v)
        speeds.append(got.center_velocity - robot.data.vcom[0])
        engine.step(4)
    assert np.abs(errors).max() < 3e-3
    assert np.sqrt(np.mean(np.square(speeds))) < 0.02


def test_a_contact_at_its_threshold_does_not_chatter():
    """A sole that rests lightly, its force noisy; then it is pressed, bounces twice, and is lifted."""
    rng, weight = np.random.default_rng(1), 600.0
    light = (TOUCHING - 0.005) * weight + 0.02 * weight * rng.normal(size=500)
    crossings = np.count_nonzero(np.diff(light > TOUCHING * weight))
    contacts = ContactStates(1, weight)
    felt = [bool(contacts.update(np.array([f]), DT)[0]) for f in light]
    assert crossings > 150 and contacts.changes <= 1
    assert felt[-1]
    bouncing = [300.0] * 5 + [0.0] * 3 + [250.0] * 2 + [5.0] * 4 + [300.0] * 5
    assert all(contacts.update(np.array([f]), DT)[0] for f in bouncing)
    lifted = [bool(contacts.update(np.array([0.0]), DT)[0]) for _ in range(10)]
    assert lifted == sorted(lifted, reverse=True) and not lifted[5]
    assert contacts.changes <= 2


def test_a_sole_that_bounces_keeps_its_place(robot):
    """The body drifts as it is told while the left sole has no force for three ticks; then both say where it is."""
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)

    def update(forces):
        estimator.kinematics(q[7:], v[6:], reading(q, v))
        return estimator.update(np.array(forces), (True, True), DT)

    update([300.0, 300.0])
    track = estimator._track.record
    anchor = track.anchors[0].copy()
    for _ in range(3):
        track.position[:] += [0.004, 0.0, 0.0]
        got = update([0.0, 0.0])
    assert got.touches.tolist() == [True, True] and got.airborne > 0
    np.testing.assert_array_equal(track.anchors[0], anchor)
    before = got.deviation[0]
    got = update([300.0, 300.0])
    np.testing.assert_allclose(got.soles[0].translation, anchor, atol=1e-9)
    assert got.deviation[0] == pytest.approx(before, abs=1e-4)


def test_a_sole_that_turns_on_the_ground_is_felt(robot):
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)

    def turned(yaw, forces):
        X = pin.SE3(pin.rpy.rpyToMatrix(0.0, 0.0, yaw), np.zeros(3))
        now = robot.q("neutral", X)
        estimator.kinematics(q[7:], v[6:], reading(now, v))
        return estimator.update(np.array(forces), (True, True), DT).turned

    turned(3.1, [300.0, 300.0])
    np.testing.assert_allclose(turned(3.2, [300.0, 300.0]), [0.1, 0.1], atol=1e-9)
    for _ in range(8):
        lifted = turned(3.2, [300.0, 0.0])
    np.testing.assert_allclose(lifted, [0.1, 0.0], atol=1e-9)
    np.testing.assert_allclose(turned(3.25, [300.0, 300.0]), [0.15, 0.0], atol=1e-9)


def test_a_robot_that_starts_anywhere_has_its_lower_loaded_sole_on_the_ground(robot):
    feet, q = Feet(robot), robot.q("neutral")
    q[7 + robot.joint_index("l_knee_flexion")] += 0.3
    estimator = FloatingBaseEstimator(robot, feet.frames)
    estimator.kinematics(q[7:], np.zeros(robot.n), reading(q, np.zeros(robot.nv)))
    got = estimator.update(np.array([300.0, 300.0]), (True, True), DT)
    heights = [sole.translation[2] for sole in got.soles]
    assert min(heights) == pytest.approx(0.0, abs=1e-9) and max(heights) > 0.01
    assert got.q[:2] == pytest.approx([0.0, 0.0], abs=1e-9)


def test_a_sole_counts_by_its_load_and_a_light_one_less(robot):
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)
    estimator.kinematics(q[7:], v[6:], reading(q, v))
    light, full = 0.5 * (LIGHT + SURE), 2 * SURE
    got = estimator.update(9.81 * robot.mass * np.array([light, full]), (True, True), DT)
    counted = np.array([0.5 * light, full])
    assert got.weights == pytest.approx(counted / counted.sum())


def test_the_accelerometer_carries_the_velocity_on_and_soles_lead_it_back(robot):
    """A body that begins to be pushed while its soles say that it rests: v' = a - BELIEF v, from tick to tick."""
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator, a, wanted = FloatingBaseEstimator(robot, feet.frames), np.array([2.0, -1.0, 0.5]), np.zeros(3)
    imu = ImuReading(q[3:7], v[3:6], a + [0.0, 0.0, 9.81])
    for k in range(30):
        estimator.kinematics(q[7:], v[6:], imu)
        got = estimator.update(np.array([300.0, 300.0]), (True, True), DT)
        if k:
            wanted = (wanted + DT * a) * np.exp(-DT * BELIEF)
        np.testing.assert_allclose(got.v[:3], wanted, atol=1e-9)
    for _ in range(3):
        estimator.kinematics(q[7:], v[6:], imu)
        got = estimator.update(np.zeros(2), (True, True), DT)
        wanted = wanted + DT * a
        np.testing.assert_allclose(got.v[:3], wanted, atol=1e-9)


def test_doubt_grows_with_every_touch_down_and_without_a_sole(robot):
    feet, q, v = Feet(robot), robot.q("neutral"), np.zeros(robot.nv)
    estimator = FloatingBaseEstimator(robot, feet.frames)

    def update(forces, ticks=1):
        for _ in range(ticks):
            estimator.kinematics(q[7:], v[6:], reading(q, v))
            got = estimator.update(np.array(forces), (True, True), DT)
        return got

    assert update([300.0, 300.0]).deviation == pytest.approx([0.0, RESTING]), "where it begins is the origin"
    for k in range(1, 4):
        update([300.0, 0.0], 10)
        assert update([300.0, 300.0]).deviation[0] == pytest.approx(PLACED * np.sqrt(k))
    assert update([0.0, 0.0], 50).deviation[1] == pytest.approx(RESTING + 0.3 * BLIND * 50 * DT)
