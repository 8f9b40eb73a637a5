"""The Robot class against the check values of the sources, brute force and pinocchio."""

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError, UnknownNameError
from humanoid_control.paths import share_dir
from humanoid_control.robots import CATALOGUE, MODELS, load_robot, load_robots
from humanoid_control.robots.generate.source import read_source, source_dir

BASES = ("fixed", "floating")


def source(name):
    return read_source(source_dir() / f"{name}.yaml")


@pytest.fixture(scope="module", params=CATALOGUE + MODELS)
def name(request):
    return request.param


@pytest.mark.parametrize("base", BASES)
def test_check_values_of_the_source(name, base):
    robot, derived = load_robot(name, base), source(name).derived
    assert robot.mass == pytest.approx(derived["total_mass"], abs=0.01)
    lengths = robot.segment_lengths()
    for key, value in lengths.items():
        assert value == pytest.approx(derived["segment_lengths"][key], abs=2e-4)
    q = robot.q("zero")
    points = {k: robot.point_positions(q, [k])[0] for k in ("mid_hip", "l_gh", "l_elbow", "l_wrist")}
    # The check values stand at the zero height of the root; relative to the mid-hip they hold wherever it is.
    zero = {**derived["zero_pose"], "mid_hip": derived["mid_hip_zero"]}
    for key in ("l_gh", "l_elbow", "l_wrist"):
        expected = np.array(zero[key]) - zero["mid_hip"]
        assert points[key] - points["mid_hip"] == pytest.approx(expected, abs=2e-3)


def test_centre_of_mass_in_the_neutral_posture(name):
    derived = source(name).derived
    for base in BASES:
        robot = load_robot(name, base)
        assert robot.center_of_mass(robot.q("neutral")) == pytest.approx(derived["com_neutral"], abs=2e-3)


def test_feet_are_flat_on_the_floor_in_the_neutral_posture(name):
    robot = load_robot(name, "floating")
    poses = robot.link_poses(robot.q("neutral"))
    heights = [poses[f.link].act(c)[2] for f in robot.feet for c in f.corners()]
    assert heights == pytest.approx([0.0] * len(heights), abs=1e-3)


def test_same_point_positions_fixed_and_floating(name):
    """Holding the anchor link still is the same robot seen from another link."""
    fixed, floating = load_robot(name, "fixed"), load_robot(name, "floating")
    rng = np.random.default_rng(1)
    points = ["sternum", "l_gh", "r_elbow", "l_wrist"]
    for _ in range(20):
        values = {j: rng.uniform(max(fixed.lower[k], -2), min(fixed.upper[k], 2)) for j, k in fixed.index.items()}
        q_fixed = fixed.q(fixed.from_mapping(values))
        q_floating = floating.q(floating.from_mapping(values))
        anchor_a = fixed.link_poses(q_fixed)[fixed.anchor].copy()
        anchor_b = floating.link_poses(q_floating)[floating.anchor].copy()
        a = [anchor_a.inverse().act(p) for p in fixed.point_positions(q_fixed, points)]
        b = [anchor_b.inverse().act(p) for p in floating.point_positions(q_floating, points)]
        assert np.allclose(a, b, atol=1e-9)


def test_turned_round_joints_keep_dynamics():
    """Lola is held at the pelvis, but its tree begins at the torso: energy and inertia do not depend on the root."""
    fixed, floating = load_robot("lola", "fixed"), load_robot("lola", "floating")
    assert fixed.anchor == "pelvis" != fixed.root_link
    rng = np.random.default_rng(2)
    joints = {j: rng.uniform(fixed.lower[k], fixed.upper[k]) for j, k in fixed.index.items()}
    speed = {j: rng.normal() for j in fixed.index}
    q, v = fixed.q(fixed.from_mapping(joints)), np.array([speed[j] for j in fixed.joint_names])
    energy = pin.computeKineticEnergy(fixed.model, fixed.data, q, v)
    # The same motion on the floating model: choose the base velocity that keeps the pelvis still.
    qf = floating.q(floating.from_mapping(joints))
    vf = np.concatenate([np.zeros(6), [speed[j] for j in floating.joint_names]])
    frame = floating.model.getFrameId("pelvis")
    pin.computeJointJacobians(floating.model, floating.data, qf)
    pin.updateFramePlacements(floating.model, floating.data)
    J = pin.getFrameJacobian(floating.model, floating.data, frame, pin.ReferenceFrame.LOCAL)
    vf[:6] = np.linalg.solve(J[:, :6], -J[:, 6:] @ vf[6:])
    assert energy == pytest.approx(pin.computeKineticEnergy(floating.model, floating.data, qf, vf), rel=1e-9)


MOTIONS = {  # joint -> (point that moves, direction in which a positive angle moves it)
    "waist_flexion": ("sternum", (1, 0, 0)),
    "waist_lateral_flexion": ("sternum", (0, -1, 0)),
    "l_shoulder_flexion": ("l_wrist", (1, 0, 0)),
    "l_shoulder_abduction": ("l_wrist", (0, 1, 0)),
    "l_elbow_flexion": ("l_wrist", (1, 0, 0)),
    "l_girdle_protraction": ("l_gh", (1, 0, 0)),
    "l_girdle_elevation": ("l_gh", (0, 0, 1)),
}


def test_positive_angles_mean_the_same_on_every_robot(name):
    robot = load_robot(name, "fixed")
    q0 = robot.q("zero")
    seen = 0
    for joint, (point, direction) in MOTIONS.items():
        for side in "lr":
            j = joint if side == "l" or not joint.startswith("l_") else "r_" + joint[2:]
            p = point if side == "l" or not point.startswith("l_") else "r_" + point[2:]
            if robot.joint_for(j) is None:
                continue
            d = np.array(direction, float) * ([1, -1, 1] if side == "r" and joint.startswith("l_") else [1, 1, 1])
            q = robot.q(robot.from_mapping({j: 0.1}, start="zero"))
            moved = robot.point_positions(q, [p])[0] - robot.point_positions(q0, [p])[0]
            assert moved @ d > 0.5 * np.linalg.norm(moved) > 0, f"{name} {j}"
            seen += 1
    assert seen >= 6


def test_legs_bend_as_they_should(name):
    robot = load_robot(name, "floating")
    if robot.joint_for("l_knee_flexion") is None:
        pytest.skip(f"{name} has no legs")
    low = {
        f"{s}_{j}": v for s in "lr" for j, v in (("hip_flexion", 0.3), ("knee_flexion", 0.6), ("ankle_flexion", 0.3))
    }
    foot = {
        k: robot.link_poses(robot.q(robot.from_mapping(v, "zero")))["l_foot"].copy()
        for k, v in {"bent": low, "straight": {}}.items()
    }
    assert foot["bent"].translation[2] > foot["straight"].translation[2] + 0.02
    assert np.allclose(foot["bent"].rotation, np.eye(3), atol=1e-6), "knee = hip + ankle keeps the sole level"


def test_no_shapes_touch_in_zero_and_neutral(name):
    robot = load_robot(name, "fixed")
    for posture in ("zero", "neutral"):
        assert robot.shape_clearance(robot.q(posture)).min() > 0.01, posture


def test_joint_order_of_messages(name):
    robot = load_robot(name)
    shuffled = list(robot.joint_names)[::-1] + ["not_a_joint"]
    theirs, ours = robot.order_of(shuffled)
    assert [shuffled[k] for k in theirs] == [robot.joint_names[k] for k in ours]
    assert len(ours) == robot.n


def test_mimicking_joint_follows():
    robot = load_robot("lola")
    joints = robot.postures["neutral"].copy()
    joints[robot.joint_index("l_camera_vergence")] = 0.2
    assert robot.follow(joints)[robot.joint_index("r_camera_vergence")] == pytest.approx(0.2)


def test_unknown_names_offer_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean hrp2"):
        load_robot("hpr2")
    robot = load_robot("hrp2")
    with pytest.raises(UnknownNameError, match="l_elbow_flexion"):
        robot.joint_index("l_elbow_flection")
    with pytest.raises(UnknownNameError, match="sternum"):
        robot.point_frame("stermum")
    with pytest.raises(UnknownNameError, match="neutral"):
        robot.q("neutrl")
    with pytest.raises(RobotError, match="base must be"):
        load_robot("hrp2", "flying")


def test_a_robot_that_is_absent_is_named_before_any_is_loaded(monkeypatch):
    """The first use of a model lays shapes around its meshes, which may take minutes."""
    loaded = []
    monkeypatch.setattr("humanoid_control.robots.catalogue.load_robot", lambda *given: loaded.append(given))
    with pytest.raises(UnknownNameError, match="'loal'"):
        load_robots(["hrp2", "loal"])
    assert not loaded


def test_several_robots_are_loaded_each_once_and_sets_stand_for_several():
    assert [r.name for r in load_robots(["all"])] == list(CATALOGUE)
    sources = ["armar3", "hrp2", "suralp", "wabian2", "we4rii", "recommended"]
    assert [r.name for r in load_robots(["dube2012"], "fixed", imitate=True)] == sources
    assert [r.name for r in load_robots(["we4rii", "dube2012", "we4rii"])][:2] == ["we4rii", "armar3"]
    for names, words in (
        ([], "no robot given"),
        ([""], "no robot given"),
        (["hrp2", "urdf/hrp2.urdf"], "two robots are named 'hrp2'"),
        (["hrp2", "hpr2"], "did you mean hrp2"),
    ):
        with pytest.raises((RobotError, UnknownNameError), match=words):
            load_robots([share_dir() / n if "/" in n else n for n in names])
    with pytest.raises(RobotError, match="lacks the points"):
        load_robots(["kengoro_upper"], imitate=True)
