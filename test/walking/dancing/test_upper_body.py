"""The upper body of a robot on its feet (13 s on one core, of which 12 s are dances in the simulated world)."""

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.walking.dance_study import dance, held
from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import scale_to_robot
from humanoid_control.robots import load_robot
from humanoid_control.robots.joint_groups import JointGroups
from humanoid_control.simulation import SimulationConfig
from humanoid_control.walking import Walker, WalkSettings, balance_tasks
from humanoid_control.walking.balance_tasks import BalanceTasks
from humanoid_control.walking.dancing.upper_body import (
    ARM_POINTS,
    GUESS,
    MOST_TILT,
    MOST_TWIST,
    CenterRise,
    ClipMotion,
    GestureScore,
    LiveMotion,
    UpperBody,
    UpperGoal,
    bounded_turn,
)
from humanoid_control.walking.feet import Feet


@pytest.fixture(scope="module")
def hrp2():
    return load_robot("hrp2", "floating")


def seven_points(robot, q):
    return robot.point_positions(q, ("sternum", *ARM_POINTS))


def test_arms_on_a_trunk_that_turns_are_found_in_the_axes_of_the_chest(hrp2):
    """The robot's own points, with arms anywhere, turned as a whole about the middle of its hips."""
    rng, body, score = np.random.default_rng(0), UpperBody(hrp2), GestureScore(hrp2)
    arms, hip = JointGroups.of(hrp2).arms, hrp2.point_positions(hrp2.q("neutral"), ["mid_hip"])[0]
    for _ in range(5):
        joints = hrp2.postures["neutral"].copy()
        joints[arms] = np.clip(joints[arms] + 0.4 * rng.uniform(-1, 1, len(arms)), hrp2.lower[arms], hrp2.upper[arms])
        q, R = hrp2.q(joints), pin.exp3(rng.uniform(-0.1, 0.1, 3))
        row = body.rows((hip + (seven_points(hrp2, q) - hip) @ R.T)[None])[0]
        assert score.add(q, UpperGoal(np.eye(3), row[3:].reshape(6, 3), np.zeros((6, 3)))).max() < 1e-6
        assert pin.exp3(row[:3]) == pytest.approx(bounded_turn(R, body.roll), abs=1e-9)
    assert body.rows(seven_points(hrp2, hrp2.q("neutral"))[None])[0] == pytest.approx(body.rest, abs=1e-9)


@pytest.mark.parametrize("axis", ["roll", "pitch", "yaw"])
def test_a_turn_of_the_chest_is_kept_while_small_and_bends_into_its_bound(axis):
    unit = np.eye(3)[["roll", "pitch", "yaw"].index(axis)]
    most = MOST_TWIST if axis == "yaw" else MOST_TILT
    found = [pin.log3(bounded_turn(pin.exp3(a * unit))) @ unit for a in np.linspace(0, 1.3, 14)]
    assert (np.diff(found) > 0).all() and found[-1] < most + 1e-9
    assert pin.log3(bounded_turn(pin.exp3(0.02 * unit))) == pytest.approx(0.02 * unit, abs=1e-4)


@pytest.mark.parametrize(("name", "most"), [("lola", 14.7), ("hrp2", 6.0), ("suralp", 6.0), ("wabian2", 15.0)])
def test_a_chest_leans_to_the_side_as_far_as_the_waist_does_or_the_pelvis_has_to_spare(name, most):
    body = UpperBody(load_robot(name, "floating"))
    assert np.degrees(body.roll) == pytest.approx(most, abs=0.05)
    to_the_side, ahead = (pin.log3(bounded_turn(pin.exp3(1.2 * a), body.roll)) for a in np.eye(3)[:2])
    assert 0.97 * body.roll < to_the_side[0] <= body.roll
    assert 0.97 * MOST_TILT < ahead[1] <= MOST_TILT


@pytest.mark.parametrize("name", ["hrp2", "lola"])
@pytest.mark.parametrize("about", [0.3, 2.0, 4.5])
def test_a_pelvis_that_leans_far_is_pulled_back_straight(name, about):
    """Turned as a whole about a horizontal axis; on Lola the pelvis is not the root link."""
    robot = load_robot(name, "floating")
    tasks, rest = BalanceTasks(robot, Feet(robot), 0.004), UpperBody(robot).rest[3:].reshape(6, 3)
    axis, found = np.array([np.cos(about), np.sin(about), 0.0]), []
    for degrees in (0.0, 10.0, 13.9, 17.0, 19.0, 25.0):
        q = robot.q("neutral")
        pin.framesForwardKinematics(robot.model, robot.data, q)
        upright = robot.data.oMf[tasks.pelvis.frame].rotation.copy()
        turn = pin.exp3(np.radians(degrees) * axis)
        q[3:7] = pin.Quaternion(turn @ pin.Quaternion(q[3:7]).toRotationMatrix()).coeffs()
        tasks.set([pin.SE3.Identity()] * 2, np.zeros(3), np.eye(3), None, UpperGoal(np.eye(3), rest, 0 * rest))
        tasks.hold_pelvis(q)
        goal = pin.exp3(np.radians(min(degrees, 14.0)) * axis) @ upright
        assert tasks.pelvis.target == pytest.approx(goal, abs=1e-9)
        found.append(tasks.pelvis.weight)
    assert found[:3] == [0.0, 0.0, 0.0] and 0.0 < found[3] < found[4] < found[5] == balance_tasks.PELVIS


def test_a_clip_begins_and_ends_at_rest_and_its_velocities_are_its_own():
    rest, rng = np.zeros(21), np.random.default_rng(1)
    rows = np.cumsum(0.01 * rng.normal(size=(40, 21)), axis=0)
    motion = ClipMotion(rest, rows, 20.0, 1.0, (np.array([0.0, 3.9]), np.array([0.0, 1.95])), lead=0.5)
    assert motion.last - motion.first == pytest.approx(3.9, abs=0.03)
    for t in (0.0, motion.begin, motion.end, motion.end + 9):
        assert np.abs(motion.at(t).points).max() < 1e-9
    at = 0.5 * (motion.first + motion.last)
    assert motion.at(motion.first + 2 * 0.5).points.ravel() == pytest.approx(rows[10, 3:], abs=2e-3)
    for joint in (motion.begin, motion.first, motion.last, motion.end):  # nothing jumps, neither place nor velocity
        before, after = motion.at(joint - 0.011), motion.at(joint + 0.011)
        assert np.abs(after.velocity - before.velocity).max() < 0.5
    for t in (motion.begin + 0.203, at, at + 0.0037):
        ahead, back = motion.at(t + 1e-5), motion.at(t - 1e-5)
        assert motion.at(t).velocity == pytest.approx((ahead.points - back.points) / 2e-5, abs=1e-5)


@pytest.mark.parametrize("clock", [([0, 1, 1], [0, 1, 2]), ([0, 1], [1, 0]), ([0], [0])])
def test_a_clock_that_does_not_rise_is_refused(clock):
    with pytest.raises(ClipError, match="times of a clip must increase"):
        ClipMotion(np.zeros(21), np.zeros((5, 21)), 10.0, 0.0, tuple(map(np.array, clock)))


def test_a_live_motion_goes_on_for_a_fifth_of_a_second_then_stands(hrp2):
    body = UpperBody(hrp2)
    motion, points = LiveMotion(body, lead=0.2), seven_points(hrp2, hrp2.q("neutral"))
    assert np.allclose(motion.at(0.0).points, body.rest[3:].reshape(6, 3))
    for k in range(250):
        t = 0.004 * k
        if k % 5 == 0:
            moved = points.copy()
            moved[5] += [0.3 * t, 0, 0]  # the left wrist, forward
            assert motion.take(moved, t)
        motion.advance(t, 0.004)
    now, soon, later = (motion.at(t + x) for x in (0.0, GUESS, 5.0))
    assert now.velocity[4] == pytest.approx([0.3, 0, 0], abs=0.01)
    assert now.points[4] == pytest.approx((moved[5] - moved[0]) + [0.3 * 0.016, 0, 0], abs=3e-3)
    assert soon.points[4] - now.points[4] == pytest.approx([0.3 * GUESS, 0, 0], abs=3e-3)
    assert np.allclose(later.points, soon.points) and np.abs(later.velocity).max() == 0.0
    with pytest.raises(ClipError, match="finite"):
        motion.take(np.full((7, 3), np.nan), t)


def clip_of(robot, seconds, pace=1.0, lead=0.8):
    """The first arm moves of the built-in dance, from its 5th second on."""
    targets = scale_to_robot(load_body_points("dance"), load_robot(robot.name, "fixed"))
    body, first = UpperBody(robot), int(5 * targets.rate)
    rows = body.rows(targets.positions[first : first + int(seconds * targets.rate)])
    clock = np.array([0.0, seconds / pace]), np.array([0.0, seconds - 0.02])
    return ClipMotion(body.rest, rows, targets.rate, 1.0, clock, lead)


def test_arms_overhead_lift_the_center_of_mass_and_legs_keep_their_bend(hrp2):
    neutral, arms = hrp2.postures["neutral"], JointGroups.of(hrp2)
    up = neutral.copy()
    up[[hrp2.joint_names.index(f"{s}_shoulder_flexion") for s in "lr"]] -= 1.5
    rise = CenterRise(hrp2, 0.03)
    assert rise.height == 0.03 and rise.update(neutral, 0.01) == 0.03
    lifted = [rise.update(up, 0.01) for _ in range(500)][-1]
    exact = hrp2.center_of_mass(hrp2.q(up))[2] - hrp2.center_of_mass(hrp2.q("neutral"))[2]
    assert exact > 0.02 and lifted - 0.03 == pytest.approx(exact, abs=0.011)
    bent = up.copy()
    bent[arms.l_leg] += 0.3  # legs are no reason
    assert [rise.update(bent, 0.01) for _ in range(500)][-1] == lifted


@pytest.mark.nightly
def test_a_robot_dances_on_its_feet_as_well_as_with_its_pelvis_held(hrp2):
    motion, knees = clip_of(hrp2, 2.5), [hrp2.joint_names.index(f"{s}_knee_flexion") for s in "lr"]
    bend = []
    free = dance(
        SimulationConfig("hrp2", "floating").build(),
        Walker(hrp2),
        motion,
        seed=3,
        watch=lambda engine, walker, report: bend.append(walker.joints[knees].max()),
    )
    assert max(bend) < 1.45  # 1.6 with a center of mass that stays where it is
    still = held(SimulationConfig("hrp2", "fixed").build(), load_robot("hrp2", "fixed"), motion)
    assert free.fell == "" and free.steps == 0
    assert free.zmp_margin > 0.01
    assert free.wrist < 1.2 * still.wrist and still.wrist < 0.06
    assert free.tilt < MOST_TILT + np.radians(2)


@pytest.mark.nightly
def test_the_future_of_a_clip_keeps_the_zero_moment_point_where_it_is_planned(hrp2):
    """The arms go up at three times their speed: looked ahead into, the plan takes their momentum up beforehand."""
    error = {}
    for horizon in (1.8, 0.0):
        walker, motion = Walker(hrp2, WalkSettings(horizon=horizon)), clip_of(hrp2, 4.5, 3.0, lead=0.4)
        engine = SimulationConfig("hrp2", "floating").build()
        error[horizon] = dance(engine, walker, motion, noise=None).dcm_error
    assert error[1.8] < 0.92 * error[0.0]
