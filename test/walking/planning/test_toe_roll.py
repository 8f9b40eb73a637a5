"""Feet with toes roll: Lola's toes stay on the ground under a heel that rises, and she lands on her heels."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.trial import WalkConditions, steady, walk
from humanoid_control.errors import ConfigError
from humanoid_control.estimation.floating_base import FloatingBaseEstimator
from humanoid_control.kinematics.joint_state import ImuReading
from humanoid_control.robots import load_robot
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import StepTimes, Walker, WalkSettings
from humanoid_control.walking.feet import Feet
from humanoid_control.walking.planning.plan import References, WalkPlan, schedule
from humanoid_control.walking.planning.step import Footstep
from humanoid_control.walking.planning.toe_roll import RollSettings, ToeRoll
from humanoid_control.walking.stabilizer import Stabilizer

SPEED, TIME = 0.6, 0.8


@pytest.fixture(scope="module")
def lola():
    robot = load_robot("lola", "floating")
    return robot, Feet(robot, 0.005)


@pytest.fixture(scope="module")
def walked():
    """Lola walks five long steps by exact sensors, rolling and flat: what she did, in truth, at every tick."""
    return {"rolling": _walk(RollSettings()), "flat": _walk(None)}


def _walk(roll):
    settings = WalkSettings(times=StepTimes(nominal=TIME, shortest=0.4, comfortable=10.0), roll=roll)
    walker = Walker(load_robot("lola", "floating"), settings)
    limits = walker.planner.limits
    walker.planner.limits = replace(limits, forward=max(limits.forward, SPEED * TIME))
    engine, rows = SimulationConfig("lola", "floating").build(), []
    joints = engine.robot.joint_names
    toe, knee = joints.index("l_toe_flexion"), joints.index("l_knee_flexion")
    data, model = engine.robot.model.createData(), engine.robot.model
    toe_joint = model.getJointId("l_toe_flexion")

    def watch(engine, walker, report):
        if walker.steps < 2:
            return
        pin.forwardKinematics(model, data, engine.q)
        foot = pin.updateFramePlacement(model, data, walker.feet.frames[0])
        felt = engine.foot_wrenches()
        rows.append(
            {
                "angle": 0.0 if walker.roll is None else float(walker.roll.angles[0]),
                "pitch": math.asin(-foot.rotation[2, 0]),
                "toe_pitch": math.asin(-data.oMi[toe_joint].rotation[2, 0]),
                "axis": data.oMi[toe_joint].translation.copy(),
                "heel": float(foot.act(np.array([walker.feet.lower[0, 0], 0.0, 0.0]))[2]),
                "foot_force": float(felt["l_foot"][2]),
                "pressure": -float(felt["l_foot"][4]) / max(float(felt["l_foot"][2]), 1.0),
                "knee": abs(float(engine.v[engine.robot.iv + knee])) / engine.robot.velocity[knee],
                "toe": float(engine.q[engine.robot.iq + toe]),
                "off": report.estimate.q[:2] - engine.q[:2],
                "swinging": report.references.swinging,
            }
        )

    outcome = walk(engine, walker, WalkConditions(steady((SPEED, 0.0, 0.0), 0.9), 3, noise=None), watch)
    return outcome, rows


@pytest.mark.nightly
def test_toes_stay_on_the_ground_under_a_heel_that_rises(walked):
    (outcome, rows), (_, level) = walked["rolling"], walked["flat"]
    assert outcome.fell == "" and outcome.steps >= 5
    assert max(abs(r["pitch"]) for r in level) < math.radians(4.0) and min(r["toe"] for r in level) > -0.05
    standing = [r for r in rows if r["swinging"] != 0 and r["angle"] > math.radians(4.0)]
    assert len(standing) > 8, "it rolls while it stands"
    assert max(r["angle"] for r in rows) > math.radians(10.0)
    assert max(r["heel"] for r in standing) > 0.03
    assert max(abs(r["toe_pitch"]) for r in standing) < math.radians(2.0), "the toes are flat"
    np.testing.assert_allclose([r["axis"][2] for r in standing], 0.02, atol=0.003)
    loaded = [r for r in standing if r["foot_force"] > 20.0]
    assert all(r["pressure"] > 0.08 for r in loaded), "the foot presses with its front edge only"


def test_a_foot_lands_on_its_heel(walked):
    landed = {}
    for way, (_, rows) in walked.items():
        pairs = itertools.pairwise(rows)
        landed[way] = [(b["pitch"], b["angle"]) for a, b in pairs if a["swinging"] == 0 and b["swinging"] is None]
        assert len(landed[way]) >= 2
        assert all(abs(pitch - angle) < math.radians(1.0) for pitch, angle in landed[way])
    assert min(pitch for pitch, _ in landed["rolling"]) < math.radians(-1.2), "toes up"


def test_rolling_spares_the_knees_and_the_estimate_goes_along(walked):
    (rolling, rolled), (flat, level) = walked["rolling"], walked["flat"]
    assert rolling.fell == flat.fell == ""
    assert max(r["knee"] for r in rolled) < 0.75 * max(r["knee"] for r in level), "a long step's knee is quick"
    assert rolling.odometry < 0.005
    assert (rolling.dcm_error < 1.5 * flat.dcm_error + 0.002).all()


def plan_of(feet, way, rise=0.0):
    soles = [pin.SE3(np.eye(3), np.array([0.0, s * 0.095, 0.0])) for s in (1, -1)]
    steps, x, z = [], 0.0, 0.0
    for k in range(4):
        x, z, foot = x + way / (2 if k == 0 else 1), z + rise, k % 2
        p = np.array([x, (1, -1)[foot] * 0.095, z])
        steps.append(Footstep(foot, pin.SE3(np.eye(3), p), 0.64, 0.16, 0.06))
    return WalkPlan(soles, schedule(soles, steps, 1.0), None)


@pytest.mark.parametrize(("way", "rise"), [(0.05, 0.0), (-0.3, 0.0), (0.3, 0.1)])
def test_short_steps_steps_back_and_stairs_up_are_made_flat(lola, way, rise):
    robot, feet = lola
    roll, plan = ToeRoll.of(robot, feet, RollSettings()), plan_of(feet, way, rise)
    assert not any(roll.planned(plan, t).any() for t in np.arange(0.0, plan.phases[-1].end, 0.01))


def test_down_stairs_the_heel_of_the_rear_foot_rises_and_the_front_one_lands_flat(lola):
    """Else the ankle of the rear foot ends before the weight is off it, and Lola falls on stairs of 0.08 m."""
    robot, feet = lola
    roll, plan = ToeRoll.of(robot, feet, RollSettings()), plan_of(feet, 0.35, -0.1)
    angles = np.array([roll.planned(plan, t) for t in np.arange(0.0, plan.phases[-1].end, 0.01)])
    phase = plan.phases[1]
    assert roll.planned(plan, phase.lift)[phase.step.foot] > np.radians(5.0)
    assert angles.max() <= roll.most + 1e-9
    assert angles.min() >= -1e-9


def test_angles_are_continuous_and_return_to_zero(lola):
    robot, feet = lola
    roll, plan, dt = ToeRoll.of(robot, feet, RollSettings(0.3, 0.1)), plan_of(feet, 0.35), 0.004
    angles = np.array([roll.planned(plan, t) for t in np.arange(0.0, 6.0, dt)])
    assert angles.max() == pytest.approx(0.3, abs=0.02) and angles.min() == pytest.approx(-0.1, abs=0.01)
    assert np.abs(np.diff(angles, axis=0)).max() < 6.0 * dt
    assert not angles[-1].any()
    for t in np.arange(0.0, 6.0, dt):  # one plan all the time is followed exactly
        roll.advance(plan, t, dt)
        np.testing.assert_allclose(roll.angles, roll.planned(plan, t), atol=1e-12)


def test_what_is_left_of_a_roll_does_not_choose_the_pivot_and_the_last_step_is_flat(lola):
    robot, feet = lola
    roll, plan = ToeRoll.of(robot, feet, RollSettings()), plan_of(feet, 0.35)
    for rest in (-0.002, 0.0, 0.002):
        roll.angles = np.full(2, rest)
        assert not roll.pivots().any()
    last = plan.phases[-1]
    times = np.arange(last.lift - last.step.double, last.end, 0.01)
    assert not np.any([roll.planned(plan, t)[last.step.foot] for t in times]), (
        "weight may have to stay on the rear foot"
    )


def test_plans_that_are_new_in_every_tick_are_followed(lola):
    robot, feet = lola
    roll, dt = ToeRoll.of(robot, feet, RollSettings(0.3, 0.1)), 0.004
    for t in np.arange(0.0, 6.0, dt):
        plan = plan_of(feet, 0.35 if t < 2.6 else 0.2)
        roll.advance(plan, t, dt)
        if t < 2.6 or t > 3.2:
            np.testing.assert_allclose(roll.angles, roll.planned(plan, t), atol=2e-3)


@pytest.mark.parametrize("way", [0.0, 0.2])
def test_a_plan_that_changes_makes_neither_angle_nor_rate_jump(lola, way):
    """The robot is told to stop in the middle of a roll: the coming step is shorter, or there is none."""
    robot, feet = lola
    roll, plan, dt, angles = ToeRoll.of(robot, feet, RollSettings(0.3, 0.1)), plan_of(feet, 0.35), 0.004, []
    other = plan_of(feet, way) if way else WalkPlan(plan.feet, [], None)
    for t in np.arange(0.0, 6.0, dt):
        roll.advance(plan if t < plan.phases[2].lift else other, t, dt)
        angles.append(roll.angles)
    rate = np.diff(angles, axis=0) / dt
    assert np.max(angles, axis=0)[0] > 0.2
    assert np.abs(np.diff(rate, axis=0)).max() / dt < 400.0, "what joints of a walk may"
    assert np.abs(angles[-1] - roll.planned(other, 6.0)).max() < 1e-6


@pytest.mark.parametrize("angles", [(0.25, -0.05), (-0.05, 0.3), (0.0, 0.1)])
def test_a_rolled_sole_turns_about_its_pivot_and_back(lola, angles):
    robot, feet = lola
    roll = ToeRoll.of(robot, feet, RollSettings())
    roll.angles = np.array(angles)
    soles = [pin.SE3.Random(), pin.SE3.Random()]
    rolled = roll.rolled(soles, roll.angles)
    for k, (flat, X) in enumerate(zip(soles, rolled, strict=True)):
        np.testing.assert_allclose(X.act(roll.pivots()[k]), flat.act(roll.pivots()[k]), atol=1e-12)
        np.testing.assert_allclose(pin.log3(flat.rotation.T @ X.rotation), [0.0, angles[k], 0.0], atol=1e-12)
    for flat, again in zip(soles, roll.flat(rolled), strict=True):
        np.testing.assert_allclose(again.homogeneous, flat.homogeneous, atol=1e-12)
    lower, upper, rolling = roll.carrying()
    assert rolling == [abs(angle) > 0.01 for angle in angles]
    for k, angle in enumerate(angles):
        if angle > 0.01:
            assert lower[k, 0] == roll.axis[k, 0] and upper[k, 0] == feet.upper[k, 0]
        elif angle < -0.01:
            assert lower[k, 0] == feet.lower[k, 0] and upper[k, 0] < feet.lower[k, 0] + 0.03


def test_toe_joints_turn_as_far_as_pinocchio_says(lola):
    """Foot rolled, toes turned by what is asked for: the toes have not moved in the world."""
    robot, feet = lola
    roll = ToeRoll.of(robot, feet, RollSettings())
    roll.angles = np.array([0.2, 0.1])
    joints = robot.postures["neutral"].copy()

    def toe_in_sole(joints, side, name):
        data = robot.model.createData()
        pin.framesForwardKinematics(robot.model, data, robot.q(joints))
        return data.oMf[feet.frames[side]].actInv(data.oMi[robot.model.getJointId(name)])

    for side, name in enumerate(("l_toe_flexion", "r_toe_flexion")):
        flat = toe_in_sole(joints, side, name)
        turned = joints.copy()
        turned[roll.joints[side]] = roll.toes()[side]
        X_turn = roll.rolled([pin.SE3.Identity()] * 2, roll.angles)[side]
        np.testing.assert_allclose((X_turn * toe_in_sole(turned, side, name)).homogeneous, flat.homogeneous, atol=1e-9)


def test_the_estimate_goes_along_with_a_foot_that_rolls(lola):
    """A robot on its left foot that lands on its heel, is flat, and rolls over its toes, as exact sensors see it."""
    robot, feet = lola
    roll, estimator = ToeRoll.of(robot, feet, RollSettings()), FloatingBaseEstimator(robot, feet.frames)
    joints, stood = robot.postures["neutral"], pin.SE3(np.eye(3), np.array([0.4, 0.1, 0.0]))
    data, forces, dt = robot.model.createData(), np.array([robot.mass * 9.81, 0.0]), 0.004
    pin.framesForwardKinematics(robot.model, data, robot.q(joints))
    X_base_sole = data.oMi[1].actInv(data.oMf[feet.frames[0]])
    begin, before, off = None, None, []
    for angle in np.concatenate([np.linspace(-0.05, 0.0, 100), np.zeros(10), np.linspace(0.0, 0.3, 300)]):
        roll.angles = np.array([angle, 0.0])
        X = roll.rolled([stood, stood], roll.angles)[0] * X_base_sole.inverse()
        spin = np.zeros(3) if before is None else pin.log3(before.rotation.T @ X.rotation) / dt
        before = X
        orientation = pin.Quaternion(X.rotation @ robot.model.frames[estimator._root].placement.rotation).coeffs()
        imu = ImuReading(orientation, spin, np.zeros(3))
        estimator.stand_on(roll.pivots())
        estimator.kinematics(joints, np.zeros(robot.n), imu)
        now = estimator.update(forces, (True, False), dt)
        begin = begin if begin is not None else now.q[:3] - X.translation
        off.append(now.q[:3] - begin - X.translation)
        assert (stabilizer_polygon(feet, roll) > 0.05).all() if angle > 0.02 else True
    assert np.abs(np.array(off)[:, [0, 2]]).max() < 1e-3


def stabilizer_polygon(feet, roll):
    """How far ahead the corners are that a robot on its left foot, at the origin, stands on."""
    stabilizer, soles = Stabilizer(feet, 60.0), (pin.SE3.Identity(), pin.SE3.Identity())
    stabilizer.stand_on(*roll.carrying())
    return stabilizer.polygon(References(soles, np.eye(3), 1, 0.5, np.zeros(2), np.zeros(2)))[:, 0]


def test_feet_without_toes_stay_flat_and_bad_angles_are_refused():
    robot = load_robot("hrp2", "floating")
    assert ToeRoll.of(robot, Feet(robot), RollSettings()) is None
    assert ToeRoll.of(robot, Feet(robot), None) is None
    with pytest.raises(ConfigError, match="lifts off at"):
        RollSettings(off=1.0)
    with pytest.raises(ConfigError, match="lands at"):
        RollSettings(strike=float("nan"))
