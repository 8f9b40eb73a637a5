"""The quality of a clip: its numbers against coal, finite differences and places moved by known amounts; its grade."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.evaluation import measure_clip, measure_ground_contact
from humanoid_control.evaluation.clip_quality import GRADES, MEASURES, grade_numbers
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import retarget_clip, retarget_whole_body, scale_to_robot
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def motion(robot):
    return retarget_whole_body(load_body_points("dance").cropped(150), robot)


GOOD = {m.key: m.most[0] for m in MEASURES}


def test_every_goal_met_is_an_a_and_the_worst_measure_is_the_grade():
    assert grade_numbers(GOOD).grade == "A" and "every goal is met" in grade_numbers(GOOD).verdict
    for m in MEASURES:
        for k, grade in enumerate(GRADES[:-1]):
            if m.most[k] == m.most[0] and k:
                continue  # what is always kept has no grade between
            at = grade_numbers(GOOD | {m.key: m.most[k]})
            assert at.grade == at.grades[m.key] == grade
            beyond = grade_numbers(GOOD | {m.key: m.most[k] + 1e-3})
            assert beyond.grade > grade and m.meaning in beyond.verdict
        worst = grade_numbers(GOOD | {m.key: 1e9})
        assert worst.grade == "F" and worst.verdict.startswith("F: ") and m.meaning in worst.verdict
        assert grade_numbers(GOOD | {m.key: float("nan")}).grade == "F"
        without = grade_numbers({k: v for k, v in GOOD.items() if k != m.key})
        assert without.verdict.endswith(f"; not graded: {m.topic}") and m.key not in without.grades
    assert grade_numbers({}).grade == "F"


def test_torque_balance_and_speed_limits_count_for_the_grade():
    assert "not graded" not in grade_numbers(GOOD).verdict
    poor = {
        "torque_p99_percent": (327.0, "D"),
        "com_unsupported_cm": (30.0, "D"),
        "infeasible_percent": (51.0, "D"),
        "at_speed_limit_percent": (83.0, "F"),
    }
    for key, (value, grade) in poor.items():
        assert grade_numbers(GOOD | {key: value}).grade == grade
    assert grade_numbers(GOOD | {"torque_p99_percent": 130.0}).verdict == "B: torque / limit 130 %"


def test_a_motion_without_contacts_has_no_number_that_is_none(robot, motion):
    quality = measure_clip(robot, replace(motion, contacts=np.zeros_like(motion.contacts)))
    assert np.isfinite(list(quality.numbers.values())).all()
    assert "com_outside_cm" not in quality.numbers and "balance" in quality.verdict.split("not graded: ")[1]


def test_forces_that_no_contact_gives_are_counted_and_the_worst_second_is_found(robot, motion):
    """A root that is shaken as no foot could do it, for half a second of three: these frames lack their forces."""
    t = np.arange(len(motion.positions)) / motion.rate
    still = replace(
        motion,
        positions=np.repeat(motion.positions[:1], len(t), axis=0),
        root_position=np.repeat(motion.root_position[:1], len(t), axis=0),
        root_quaternion=np.repeat(motion.root_quaternion[:1], len(t), axis=0),
        contacts=np.ones_like(motion.contacts),
    )
    calm = measure_clip(robot, still)
    assert calm.numbers["infeasible_percent"] == 0.0 and calm.numbers["com_unsupported_cm"] == 0.0
    shaken = (t > 1.5) & (t < 2.0)
    shake = np.zeros((len(t), 3))
    shake[shaken, 0] = 0.05 * np.sin(2 * np.pi * 4 * t[shaken]) * np.sin(np.pi * (t[shaken] - 1.5) / 0.5) ** 2
    quality = measure_clip(robot, replace(still, root_position=still.root_position + shake))
    share = 100 * 0.5 / t[-1]
    assert 0.5 * share < quality.numbers["infeasible_percent"] < 1.3 * share
    assert 35 < quality.numbers["infeasible_worst_second_percent"] <= 60
    assert 0.9 < quality.numbers["infeasible_worst_second_s"] < 1.6


def test_no_a_where_every_fifth_frame_is_infeasible():
    assert grade_numbers(GOOD | {"infeasible_percent": 20.0}).grade == "A"
    worse = grade_numbers(GOOD | {"infeasible_percent": 20.1})
    assert worse.grade == "B" and "frames with forces beyond the contacts 20.1 %" in worse.verdict


def test_the_goals_are_those_of_the_documentation():
    goals = {m.key: m.most[0] for m in MEASURES}
    assert goals["slip_mm"] == 2.0 and goals["penetration_mm"] == 1.0 and goals["floating_mm"] == 5.0
    assert goals["colliding_percent"] == 0.0 and goals["beyond_range_deg"] < 1e-5


def test_a_retargeted_clip_keeps_everything(robot, motion):
    quality = measure_clip(robot, motion)
    dynamic = (
        "torque_p99_percent",
        "com_unsupported_cm",
        "infeasible_percent",
    )  # of a dance that nobody has made feasible
    assert {grade for key, grade in quality.grades.items() if key not in dynamic} == {"A"}, quality.verdict
    assert {*dynamic} <= {*quality.grades} and "not graded: meshes" in quality.verdict
    n = quality.numbers
    assert n["frames"] == 150 and n["error_cm"] == pytest.approx(100 * motion.errors[:, :12].mean(), abs=1e-4)
    assert n["error_l_wrist_cm"] == pytest.approx(100 * motion.errors[:, 5].mean(), abs=1e-4)
    assert n["closest_mm"] == pytest.approx(min(1000 * motion.clearance.min(), 50.0), abs=1e-3)


def test_a_motion_lifted_or_sunk_or_pushed_shows_it(robot, motion):
    """By amounts that are known: 8 mm up, 4 mm down, 7 mm aside in the middle of a contact."""

    def moved(offset):
        root = motion.root_position + offset
        return measure_clip(robot, replace(motion, root_position=root))

    still = measure_clip(robot, motion).numbers
    up, down = moved(np.array([0, 0, 0.008])), moved(np.array([0, 0, -0.004]))
    assert up.numbers["floating_mm"] == pytest.approx(still["floating_mm"] + 8, abs=0.1)
    assert up.grades["floating_mm"] == "B"
    assert down.numbers["penetration_mm"] == pytest.approx(still["penetration_mm"] + 4, abs=0.1)
    assert down.grades["penetration_mm"] == "C"
    shove = np.zeros((len(motion.positions), 3))
    shove[75:, 0] = 0.007
    aside = moved(shove)
    contacts = motion.contacts.copy()
    contacts[40:44] = False  # so that some contacts do not slip
    parted = replace(motion, root_position=motion.root_position + shove, contacts=contacts)
    slip = 1000 * measure_ground_contact(robot, parted.q(), contacts, parted.rate).slip
    assert np.ptp(slip) > 5
    assert measure_clip(robot, parted).numbers["slip_mm"] == pytest.approx(np.percentile(slip, 95), abs=1e-3)
    assert aside.numbers["slip_max_mm"] == pytest.approx(7, abs=0.7) and aside.grades["slip_mm"] in "BC"


def test_limits_are_always_kept_or_the_grade_is_f(robot, motion):
    q = motion.positions.copy()
    joint = int(robot.imitation_joints[3])
    q[70, joint] = robot.upper[joint] + np.radians(2.0)
    broken = measure_clip(robot, replace(motion, positions=q))
    assert broken.grade == "F" and broken.numbers["beyond_range_deg"] == pytest.approx(2.0, abs=1e-3)
    fast = motion.positions.copy()
    fast[70:, joint] += 1.1 * robot.velocity[joint] / motion.rate * np.sign(robot.lower[joint] - fast[70, joint])
    v = np.abs(np.diff(fast, axis=0)).max(axis=0) * motion.rate / robot.velocity
    quality = measure_clip(robot, replace(motion, positions=fast))
    assert quality.numbers["speed_share"] == pytest.approx(v.max(), abs=1e-4) and v.max() > 1
    assert quality.grades["speed_share"] == "F"


def test_frames_in_self_collision_are_those_of_coal(robot, motion):
    """Random arms against another library's distances."""
    rng = np.random.default_rng(3)
    q = motion.positions.copy()
    arms = robot.imitation_joints
    q[:, arms] = rng.uniform(robot.lower[arms], robot.upper[arms], (len(q), len(arms)))
    tangled = replace(motion, positions=q)
    coal = robot.self_distance()
    data, nearest = robot.model.createData(), []
    for row in tangled.q():
        pin.forwardKinematics(robot.model, data, row)
        nearest.append(coal.all_distances(data).min())
    touching = 100 * np.mean(np.array(nearest) < 0)
    assert touching > 2
    assert measure_clip(robot, tangled).numbers["colliding_percent"] == pytest.approx(touching, abs=1e-3)


def test_an_upper_body_has_no_numbers_of_the_ground():
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(load_body_points("dance").cropped(100), robot)
    quality = measure_clip(robot, retarget_clip(targets, robot))
    assert quality.grade in "AB" and "slip_mm" not in quality.numbers and "error_sternum_cm" in quality.numbers
