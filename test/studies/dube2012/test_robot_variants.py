"""Robots with one thing changed: only that changes, and what stays in place at zero stays there."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from evidence.studies.dube2012.robot_variants import (
    add_fourth_shoulder_axis,
    girdle_offset,
    joints_named,
    waist_height,
    with_girdle_at,
    with_locked,
    with_ranges,
    with_waist_at,
)
from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.evaluation.shoulder_singularity import GH_MOTIONS, gh_singularity, gh_smallest_singular_value
from humanoid_control.robots import CATALOGUE, MODELS, load_robot
from test.robots_under_test import by_kind, nightly

POINTS = ["mid_hip", "sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist"]
GIRDLES = ("we4rii", "recommended")


def zero_points(robot):
    return robot.point_positions(robot.q("zero"), POINTS)


def all_variants(name, base="fixed"):
    robot = load_robot(name, base)
    yield with_ranges(robot, {"shoulder_flexion": (-20, 30), "l_elbow_flexion": (-1, 50)})
    yield with_locked(robot, ["shoulder_abduction", "l_elbow_flexion"])
    for height in (0.1, 0.25, 0.3):
        yield with_waist_at(robot, height)
    if name in GIRDLES:
        for offset in (0.0, 0.03, 0.15):
            yield with_girdle_at(robot, offset)


def fingerprint(robot):
    return (
        robot.urdf, robot.file, robot.joint_names, robot.lower.tobytes(), robot.upper.tobytes(),
        robot.imitation_joints.tobytes(), zero_points(robot).tobytes(),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "base"), [("hrp2", "fixed"), ("we4rii", "fixed"), nightly("recommended", "fixed"), ("hrp2", "floating")]
)
def test_zero_posture_stays_where_it_is(name, base):
    robot = load_robot(name, base)
    before = {k: X.copy() for k, X in robot.link_poses(robot.q("zero")).items() if not k.endswith("__turned")}
    points, lengths = zero_points(robot), robot.segment_lengths()
    for variant in all_variants(name, base):
        assert np.allclose(zero_points(variant), points, atol=1e-9)
        assert variant.segment_lengths() == pytest.approx(lengths, abs=1e-9)
        after = variant.link_poses(variant.q("zero"))
        assert all(after[k].isApprox(X, 1e-9) for k, X in before.items())
        assert variant.mass == pytest.approx(robot.mass)
        assert variant.joint_names == robot.joint_names


@pytest.mark.parametrize("name", ["armar3", "we4rii"])
def test_the_original_is_untouched(name):
    robot = load_robot(name, "fixed")
    before = fingerprint(robot)
    for _ in all_variants(name):
        pass
    with_ranges(robot, {"elbow_flexion": (0, 1)})
    assert fingerprint(robot) == before == fingerprint(load_robot(name, "fixed"))


# -- ranges ---------------------------------------------------------------------------------------------------------


def test_ranges_hold_for_both_sides_unless_one_is_named():
    robot = with_ranges(
        load_robot("armar3"), {"waist_flexion": (-30, 90), "elbow_flexion": (0, 100), "l_elbow_flexion": (-5, 90)}
    )
    limits = {j: np.degrees([robot.lower[k], robot.upper[k]]).round(9).tolist() for j, k in robot.index.items()}
    assert limits["waist_flexion"] == [-30, 90]
    assert limits["l_elbow_flexion"] == [-5, 90] and limits["r_elbow_flexion"] == [0, 100]
    assert limits["l_shoulder_flexion"] == pytest.approx([-10, 180], abs=1e-6), "what is not named stays"


def test_a_posture_outside_a_new_range_moves_to_its_edge():
    robot = with_ranges(load_robot("armar3"), {"shoulder_abduction": (-5, 4), "r_elbow_flexion": (0, 90)})
    k = robot.joint_index("l_shoulder_abduction")
    assert robot.postures["neutral"][k] == pytest.approx(np.radians(4))
    assert robot.postures["neutral"][robot.joint_index("r_elbow_flexion")] == pytest.approx(np.radians(20))


# -- locked joints ---------------------------------------------------------------------------------------------------


def test_locked_joints_leave_imitation_and_nothing_else():
    robot = load_robot("armar3", "fixed")
    locked = with_locked(robot, ["waist_lateral", "l_shoulder_rotation"])
    gone = {"waist_lateral_flexion", "l_shoulder_rotation"}
    names = [robot.joint_names[k] for k in robot.imitation_joints]
    assert [locked.joint_names[k] for k in locked.imitation_joints] == [n for n in names if n not in gone]
    assert np.array_equal(locked.lower, robot.lower) and np.array_equal(
        locked.postures["neutral"], robot.postures["neutral"]
    )


def test_first_words_stand_for_all_joints_that_begin_with_them():
    robot = load_robot("we4rii")
    girdle = {f"{s}_girdle_{m}" for s in "lr" for m in ("protraction", "elevation")}
    assert set(joints_named(robot, "girdle")) == girdle
    assert set(joints_named(robot, "l_girdle")) == {j for j in girdle if j[0] == "l"}
    assert set(joints_named(robot, "elbow_flexion")) == {"l_elbow_flexion", "r_elbow_flexion"}
    assert joints_named(robot, "r_elbow_flexion") == ("r_elbow_flexion",)
    assert len(with_locked(robot, ["girdle"]).imitation_joints) == len(robot.imitation_joints) - 4


# -- the waist -------------------------------------------------------------------------------------------------------

WAIST_NOW = {
    "armar3": 0.13,
    "hrp2": 0.3477,
    "suralp": 0.15,
    "wabian2": 0.14,
    "we4rii": 0.06,
    "lola": 0.16,
    "recommended": 0.06,
}


@pytest.mark.parametrize("name", by_kind(WAIST_NOW))
def test_the_waist_turns_about_its_new_height(name):
    """Bending moves the sternum on a circle round the new axis: the point of it at the axis stays."""
    robot = load_robot(name, "fixed")
    assert waist_height(robot) == pytest.approx(WAIST_NOW[name], abs=1e-9)
    moved = with_waist_at(robot, 0.2)
    assert waist_height(moved) == pytest.approx(0.2, abs=1e-9)
    joint = max(
        (j for j in robot.joint_names if j.startswith(("waist", "pelvis"))), key=lambda j: axis_point(moved, j)[2]
    )
    mid_hip = zero_points(moved)[0]
    assert axis_point(moved, joint)[2] - mid_hip[2] == pytest.approx(0.2, abs=1e-9)
    # Rotating about a point p0 along w maps x to p0 + R (x - p0): the sternum, against pinocchio's own kinematics.
    zero = moved.q("zero")
    turned = moved.q(moved.from_mapping({joint: 0.1}, "zero"))
    p0, w = axis_point(moved, joint), axis_direction(moved, joint)
    before, after = (moved.point_positions(q, ["sternum"])[0] for q in (zero, turned))
    assert after == pytest.approx(p0 + pin.exp3(0.1 * w) @ (before - p0), abs=1e-9)


def axis_point(robot, joint):
    pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
    return np.array(robot.data.oMi[robot.model.getJointId(joint)].translation)


def axis_direction(robot, joint):
    """Axis in the world at zero, as the joint's own Jacobian column says."""
    pin.computeJointJacobians(robot.model, robot.data, robot.q("zero"))
    return np.array(robot.data.J[3:, robot.model.joints[robot.model.getJointId(joint)].idx_v])


def test_a_low_waist_moves_the_sternum_further():
    robot = load_robot("hrp2", "fixed")
    reach = []
    for height in (0.06, 0.2, 0.3477):
        v = with_waist_at(robot, height)
        zero, bent = (
            v.point_positions(v.q(v.from_mapping({"waist_flexion": a}, "zero")), ["sternum"])[0] for a in (0, 0.5)
        )
        reach.append(np.linalg.norm(bent - zero))
    spine = robot.segment_lengths()["spine"]
    assert reach[0] > reach[1] > reach[2] > 0
    assert reach[0] == pytest.approx(2 * np.sin(0.25) * np.hypot(spine - 0.06, 0.008), rel=0.01)


@pytest.mark.parametrize("name", by_kind(CATALOGUE + MODELS))
def test_the_border_of_the_torso_shapes_goes_with_the_waist(name):
    robot = load_robot(name, "fixed")
    for height in (0.1, 0.25):
        v = with_waist_at(robot, height)
        for posture in ("zero", "neutral"):
            assert v.shape_clearance(v.q(posture)).min() > 0.01
        old, new = ({s.name: s.shape for s in r.shapes} for r in (robot, v))
        shift = new["lower_torso"].l - old["lower_torso"].l
        assert new["upper_torso"].l == pytest.approx(old["upper_torso"].l - shift), (
            "together they are as long as before"
        )
        bottom = [s["lower_torso"].top_center[2] - s["lower_torso"].l for s in (old, new)]
        assert bottom[0] == pytest.approx(bottom[1])
        assert new["upper_torso"].top_center == old["upper_torso"].top_center
        assert (shift > 0) == (height > waist_height(robot))


def test_there_and_back_is_the_same_robot():
    robot = load_robot("wabian2", "fixed")
    back = with_waist_at(with_waist_at(robot, 0.2), waist_height(robot))
    rng = np.random.default_rng(1)
    for _ in range(5):
        joints = rng.uniform(robot.lower, robot.upper)
        a, b = (r.point_positions(r.q(joints), POINTS) for r in (robot, back))
        assert np.allclose(a, b, atol=1e-9)


# -- the girdle ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GIRDLES)
def test_the_girdle_turns_at_its_new_offset(name):
    robot = load_robot(name, "fixed")
    assert girdle_offset(robot) == pytest.approx({"we4rii": 0.06, "recommended": 0.0}[name], abs=1e-9)
    for offset in (0.0, 0.1):
        v = with_girdle_at(robot, offset)
        assert girdle_offset(v) == pytest.approx(offset, abs=1e-9)
        half = v.segment_lengths()["clavicle"]
        for side, sign in (("l", 1), ("r", -1)):
            for motion in ("protraction", "elevation"):
                assert axis_point(v, f"{side}_girdle_{motion}")[1] == pytest.approx(sign * offset, abs=1e-9)
            up = v.q(v.from_mapping({f"{side}_girdle_elevation": 0.5}, "zero"))
            (gh,) = v.point_positions(up, [f"{side}_gh"])
            assert gh[1] == pytest.approx(sign * (offset + (half - offset) * np.cos(0.5)), abs=1e-9)


@pytest.mark.nightly
def test_elevation_needed_for_a_shrug_grows_with_the_offset():
    """A girdle off the sternum needs more range for the same height (Dube 2012, section 6.2.1)."""
    robot = load_robot("recommended", "fixed")
    need = []
    for offset in (0.0, 0.06, 0.12):
        v = with_girdle_at(robot, offset)
        angles = np.linspace(0, 1.5, 200)
        z = [v.point_positions(v.q(v.from_mapping({"l_girdle_elevation": a}, "zero")), ["l_gh"])[0][2] for a in angles]
        need.append(np.interp(z[0] + 0.05, z, angles))
    assert need[0] < need[1] < need[2]


# -- nonsense --------------------------------------------------------------------------------------------------------

ALL = ["waist", "girdle", "shoulder", "elbow", "forearm", "wrist"]
NONSENSE = {
    "unknown joint": (lambda r: with_ranges(r, {"waist_flexin": (0, 1)}), UnknownNameError, "mean waist_flexion"),
    "unknown joint locked": (lambda r: with_locked(r, ["elbo"]), UnknownNameError, "elbow_flexion"),
    "empty range": (lambda r: with_ranges(r, {"waist_flexion": (20, 20)}), RobotError, "20 deg is not below 20 deg"),
    "range that is not one": (lambda r: with_ranges(r, {"waist_flexion": (0, float("nan"))}), RobotError, "not below"),
    "range without zero": (lambda r: with_ranges(r, {"elbow_flexion": (10, 90)}), RobotError, "must hold 0 deg"),
    "range of several": (lambda r: with_ranges(r, {"girdle": (-1, 1)}), RobotError, "several joints"),
    "locked already": (lambda r: with_locked(r, ["neck_flexion"]), RobotError, "not an imitation joint"),
    "all locked": (lambda r: with_locked(r, ALL), RobotError, "all imitation joints of we4rii would"),
    "waist below the hips": (lambda r: with_waist_at(r, -0.1), RobotError, r"outside the trunk; give 0 \.\. 0.441 m"),
    "waist above the sternum": (lambda r: with_waist_at(r, 0.5), RobotError, "outside the trunk"),
    "waist nowhere": (lambda r: with_waist_at(r, float("nan")), RobotError, "outside the trunk"),
    "girdle behind the midline": (lambda r: with_girdle_at(r, -0.01), RobotError, "not between sternum and shoulder"),
    "girdle in the shoulder": (lambda r: with_girdle_at(r, 0.197), RobotError, "not between sternum and shoulder"),
    "no girdle": (lambda _: with_girdle_at(load_robot("hrp2"), 0.05), RobotError, "hrp2 has no girdle joints"),
}  # fmt: skip


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_refused_in_one_line(case):
    action, error, message = NONSENSE[case]
    with pytest.raises(error, match=message) as e:
        action(load_robot("we4rii", "fixed"))
    assert "\n" not in str(e.value) and isinstance(e.value, HumanoidError)


@pytest.mark.parametrize("name", ["we4rii", "recommended"])
def test_with_a_girdle_it_is_an_arm_of_ten_joints(name):
    """2 girdle, 4 glenohumeral, 1 elbow, 1 forearm, 2 wrist on each side; nothing has moved at zero."""
    robot = load_robot(name, "fixed")
    ten = add_fourth_shoulder_axis(robot)
    for side in "lr":
        arm = [ten.joint_names[k] for k in ten.imitation_joints if ten.joint_names[k].startswith(f"{side}_")]
        assert len(arm) == 10
        assert sum("girdle" in j for j in arm) == 2 and sum("shoulder" in j for j in arm) == 4
    assert len(robot.imitation_joints) == len(ten.imitation_joints) - 2, "the original stays as it is"
    for posture in ("zero", "neutral"):
        a, b = (r.point_positions(r.q(posture), POINTS) for r in (robot, ten))
        assert np.allclose(a, b, atol=1e-9)
    assert ten.mass == pytest.approx(robot.mass)


@pytest.mark.parametrize("name", ["hrp2", "suralp", "recommended"])
def test_the_new_axis_moves_a_sideways_arm_forward(name):
    ten = add_fourth_shoulder_axis(load_robot(name, "fixed"))
    for s in "lr":
        side = {f"{s}_shoulder_abduction": np.pi / 2}
        a, b = (
            ten.point_positions(ten.q(ten.from_mapping({**side, **more}, "zero")), [f"{s}_wrist", f"{s}_gh"])
            for more in ({}, {f"{s}_shoulder_horizontal_flexion": 0.2})
        )
        assert b[1] == pytest.approx(a[1]), "the shoulder stays"
        reach = a[0] - a[1]
        turn = pin.exp3(np.array([0, 0, -0.2 if s == "l" else 0.2]))
        assert b[0] - b[1] == pytest.approx(turn @ reach, abs=1e-9)
        assert b[0][0] > a[0][0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["hrp2", "we4rii"])
def test_where_three_axes_are_singular_four_are_not(name):
    three = load_robot(name, "fixed")
    four = add_fourth_shoulder_axis(three)
    mounting = {"hrp2": 0, "we4rii": 10}[name]
    pose = {f"{s}_shoulder_abduction": np.radians(90 + mounting) for s in "lr"}
    for flexion in (-0.6, 0.0, 0.6):
        pose |= {f"{s}_shoulder_flexion": flexion for s in "lr"}
        assert gh_singularity(three, three.from_mapping(pose)) == pytest.approx([0, 0], abs=1e-5)
        assert gh_smallest_singular_value(four, four.from_mapping(pose)).min() > 0.5


def test_values_of_four_axes_are_those_of_pinocchio():
    robot = add_fourth_shoulder_axis(load_robot("recommended", "fixed"))
    postures = np.random.default_rng(0).uniform(robot.lower, robot.upper, (20, robot.n))
    value, smallest = gh_singularity(robot, postures), gh_smallest_singular_value(robot, postures)
    for joints, v, s in zip(postures, value, smallest, strict=True):
        pin.computeJointJacobians(robot.model, robot.data, robot.q(joints))
        for k, side in enumerate("lr"):
            names = [f"{side}_shoulder_horizontal_flexion", *(f"{side}_{m}" for m in GH_MOTIONS)]
            last = robot.model.getJointId(names[-1])
            J = pin.getJointJacobian(robot.model, robot.data, last, pin.ReferenceFrame.WORLD)[3:]
            A = J[:, [robot.joint_index(n) for n in names]]
            assert v[k] == pytest.approx(min(np.sqrt(np.linalg.det(A @ A.T)), 1), abs=1e-9)
            assert s[k] == pytest.approx(np.linalg.svd(A, compute_uv=False)[2], abs=1e-9)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda r: add_fourth_shoulder_axis(add_fourth_shoulder_axis(r)), "four axes in its shoulders already"),
        (lambda r: add_fourth_shoulder_axis(r, (10, 90)), "does not hold 0"),
        (lambda r: add_fourth_shoulder_axis(r, (5, -5)), "empty"),
    ],
)
def test_nonsense_is_refused(action, message):
    with pytest.raises(RobotError, match=message):
        action(load_robot("hrp2", "fixed"))
