"""The whole body: kinematics against pinocchio, feet that stay, invariances, limits on every clip."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import ClipError, RobotError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.evaluation.ground_contact import corner_paths
from humanoid_control.mocap import find_body_points, load_body_points, load_clip
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler, retarget_whole_body
from humanoid_control.retargeting.frame_solver import IN_NEED
from humanoid_control.retargeting.problem import place_points, point_jacobian
from humanoid_control.retargeting.whole_body.contacts import ContactRules, find_floor, level
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS, WHOLE_BODY_POINTS, Legs
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind
from test.walking_person import ANKLE, HEEL, RATE, TOE, crossing_person, running_person, walking_person

ROOT = ("x", "y", "z", "qx", "qy", "qz", "qw")
BIPEDS = ("lola", "hrp2", "suralp", "wabian2")
REAL = (
    "cmu_bvh/02_01.bvh",
    "cmu_bvh/05_02.bvh",
    "dance_markers/walk1.trc",
    "dance_markers/dance1.trc",
    "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
)


@pytest.fixture(scope="module")
def walk():
    return walking_person()


def ground(robot, trajectory):
    return measure_ground_contact(robot, trajectory.q(), trajectory.contacts, trajectory.rate)


def keeps_limits(robot, t):
    inside = (t.positions >= robot.lower - 1e-9).all() and (t.positions <= robot.upper + 1e-9).all()
    return inside and (np.abs(t.velocities) <= robot.velocity * (1 + 1e-9)).all()


# -------- kinematics


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_both_sides_count_alike_hips_most_knees_little_and_the_top_of_the_pelvis_least(name):
    """A knee lies where leg lengths put it, the top of a pelvis where the model's spine begins: hips show the root."""
    weight = WholeBodyRetargeter(load_robot(name, "floating")).problem.weight
    of = dict(zip(BODY_POINTS, weight[: len(BODY_POINTS)].tolist(), strict=True))
    for point, value in of.items():
        if point.startswith("l_"):
            assert value == of[point.replace("l_", "r_", 1)], point
    assert of["l_hip"] == max(of.values()) > of["l_wrist"] > of["l_knee"] > 2 * of["pelvis_top"] > 0
    assert of["pelvis_top"] == min(of.values()) and sum(v == of["l_hip"] for v in of.values()) == 2


@pytest.mark.parametrize("name", ["lola", "wabian2"])
def test_points_and_jacobian_are_those_of_pinocchio_wherever_the_base_is(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(1)
    solver = WholeBodyRetargeter(robot)
    p, w, places = solver.problem, solver.scratch, solver.legs.points(robot)
    J = np.empty((3 * len(p.point), len(p.rest)))
    for _ in range(5):
        base = pin.SE3.Random()
        base.translation *= 100.0
        p.tree.joints.R[0], p.tree.joints.p[0] = base.rotation, base.translation
        x = np.concatenate([rng.uniform(-0.3, 0.3, 6), rng.uniform(p.lower[6:], p.upper[6:])])
        place_points(p, x, w)
        X = base * pin.SE3(pin.rpy.rpyToMatrix(0, 0, x[3]), x[:3])
        X = (
            X
            * pin.SE3(pin.rpy.rpyToMatrix(x[4], 0, 0), np.zeros(3))
            * pin.SE3(pin.rpy.rpyToMatrix(0, x[5], 0), np.zeros(3))
        )
        joints = robot.postures["neutral"].copy()
        joints[solver.moving] = x[6:]
        robot.follow(joints)
        q = robot.q(joints, X)
        known = robot.point_positions(q, ["sternum", "l_gh", "r_gh", "l_elbow", "r_elbow", "l_wrist", "r_wrist"])
        known = np.vstack([known, [robot.data.oMi[j].act(c) for j, c, _ in places]])
        assert w.points == pytest.approx(known, abs=1e-9)
        point_jacobian(p, w, J)
        d, eps = rng.normal(size=len(x)), 1e-6
        ends = []
        for sign in (1, -1):
            place_points(p, x + sign * eps * d, w)
            ends.append(w.points.copy())
        assert J @ d == pytest.approx(((ends[0] - ends[1]) / (2 * eps)).ravel(), abs=1e-6)


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_hips_knees_and_ankles_are_found_by_their_axes_too(name):
    robot = load_robot(name, "floating")
    told = Legs.of(robot)
    robot.meanings = {}
    found = Legs.of(robot)
    assert found.joints == told.joints
    assert (found.thigh, found.shank, found.ankle_height) == (told.thigh, told.shank, told.ankle_height)


# -------- feet on the ground


def test_contacts_of_a_known_walk_are_found_at_their_frames(walk):
    body, still = walk
    scaler = WholeBodyScaler(body, load_robot("hrp2", "floating"))
    assert scaler.floor.level[:4] == pytest.approx([0.03, 0.02, 0.03, 0.02], abs=1e-3)
    found = scaler.targets(body).contacts
    for f in (0, 1):
        for edge in (2 * f, 2 * f + 1):
            changes, known = np.flatnonzero(np.diff(found[:, edge])), np.flatnonzero(np.diff(still[:, f]))
            assert len(changes) == len(known)
            # A foot is slow and low for a few frames before it is still, and is let go once it has moved.
            assert np.abs(changes - known).max() <= 0.15 * RATE


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_a_walk_keeps_its_feet_on_the_ground(name, walk):
    robot = load_robot(name, "floating")
    trajectory = retarget_whole_body(walk[0], robot)
    contact = ground(robot, trajectory)
    assert len(contact.slip) >= 8 and (contact.contact_share > 0.4).all()
    assert contact.slip.max() < 1e-3 and contact.penetration.max() < 1e-3 and contact.floating.max() < 2e-3
    assert keeps_limits(robot, trajectory) and (trajectory.clearance >= 0).all()
    assert trajectory.errors[:, :9].mean() < 0.03


def test_without_the_lock_feet_slip(walk):
    """The measure sees it, and the lock is what prevents it."""
    robot, rules = load_robot("hrp2", "floating"), ContactRules(lock=0.3)
    targets = WholeBodyScaler(walk[0], robot, rules).targets(walk[0])
    trajectory = WholeBodyRetargeter(robot, rules=rules).solve(targets)
    assert ground(robot, trajectory).slip.max() > 2e-3


def test_a_foot_is_caught_and_released_without_a_jump(walk):
    """Corners of the soles never move faster than a swing needs, at no frame of it."""
    robot = load_robot("wabian2", "floating")
    trajectory = retarget_whole_body(walk[0], robot)
    speed = np.linalg.norm(np.diff(corner_paths(robot, trajectory.q()), axis=0), axis=3) * RATE
    assert speed.max() < 2.5
    assert np.abs(np.diff(speed, axis=0)).max() * RATE < 120


# -------- invariance


def test_a_kilometre_away_and_turned_is_the_same_motion(walk):
    robot, body = load_robot("hrp2", "floating"), walk[0]
    R = pin.rpy.rpyToMatrix(0.0, 0.0, 2.0)
    there = replace(body, positions=body.positions @ R.T + [1000.0, -500.0, 0.0], missing=body.missing.copy())
    here, far = retarget_whole_body(body, robot), retarget_whole_body(there, robot)
    assert far.positions == pytest.approx(here.positions, abs=1e-4)
    scale = WholeBodyScaler(body, robot).scale
    moved = here.root_position @ R.T + scale * np.array([1000.0, -500.0, 0.0])
    assert far.root_position == pytest.approx(moved, abs=1e-4)
    assert (far.contacts == here.contacts).all()


def test_a_mirrored_person_moves_the_robot_as_in_a_mirror(walk):
    robot, body = load_robot("wabian2", "floating"), walk[0]
    names = [{"l_": "r_", "r_": "l_"}.get(n[:2], n[:2]) + n[2:] for n in body.names]
    order = [body.names.index(n) for n in names]
    mirrored = replace(body, positions=body.positions[:, order] * [1.0, -1.0, 1.0], missing=body.missing.copy())
    one, other = retarget_whole_body(body, robot), retarget_whole_body(mirrored, robot)
    assert (one.contacts == other.contacts[:, [2, 3, 0, 1]]).all()
    assert other.root_position == pytest.approx(one.root_position * [1.0, -1.0, 1.0], abs=2e-3)
    left = [k for k, n in enumerate(robot.joint_names) if n.startswith("l_") and ("knee" in n or "flexion" in n)]
    right = [robot.joint_index("r_" + robot.joint_names[k][2:]) for k in left]
    assert other.positions[:, left] == pytest.approx(one.positions[:, right], abs=2e-2)


def test_a_tilted_floor_is_levelled(walk):
    body = walk[0]
    R = pin.rpy.rpyToMatrix(0.0, np.radians(-2.0), 0.0)  # rises ahead
    tilted = replace(body, positions=body.positions @ R.T, missing=body.missing.copy())
    floor = find_floor(tilted)
    assert np.degrees(np.arctan(floor.slope[0])) == pytest.approx(2.0, abs=0.3)
    assert "tilted by" in floor.notes[0]
    upright = level(tilted, floor)
    assert upright.point("l_toe")[-1, 2] - upright.point("l_toe")[0, 2] == pytest.approx(0.0, abs=0.01)
    assert not find_floor(body).slope.any() and not find_floor(body).notes


@pytest.mark.parametrize("drop", [0.0, 0.5])
def test_feet_that_never_rest_have_their_floor_at_their_lowest_places(drop):
    floor = find_floor(running_person(drop=drop))
    known = [HEEL[2], TOE[2], HEEL[2], TOE[2], ANKLE[2], ANKLE[2]]
    assert floor.level == pytest.approx(np.array(known) - drop, abs=0.01)
    assert not floor.slope.any() and not floor.rests
    assert floor.notes == ("l_heel, l_toe, r_heel, r_toe: never slow, the ground is set at the lowest positions",)


def test_a_marker_that_has_come_off_has_the_level_of_the_other_foot(walk):
    body = walk[0]
    positions = body.positions.copy()
    positions[:, body.names.index("l_toe"), 2] -= 0.4
    floor = find_floor(replace(body, positions=positions, missing=body.missing.copy()))
    assert floor.level == pytest.approx(find_floor(body).level, abs=0.03)
    assert "l_toe lies far below" in floor.notes[0]


def test_a_foot_that_is_slow_shows_the_slope_alone(walk):
    body = walk[0]
    positions = body.positions.copy()
    for k in [body.names.index(name) for name in ("l_heel", "l_toe")]:  # a point that trembles all the time
        positions[:, k, 2] += 0.005 * (np.arange(len(positions)) % 2)
    floor = find_floor(replace(body, positions=positions, missing=body.missing.copy()))
    assert floor.level == pytest.approx(find_floor(body).level, abs=2e-3) and not floor.slope.any()
    assert floor.notes[-1].startswith("l_heel, l_toe: never slow") and not floor.rests and find_floor(body).rests


def test_a_person_who_runs_or_is_shown_in_two_frames_is_retargeted(walk):
    robot, run = load_robot("lola", "floating"), running_person()
    t = retarget_whole_body(run, robot)
    assert len(t.positions) == run.n_frames and keeps_limits(robot, t)
    assert corner_paths(robot, t.q())[..., 2].min() > -1e-3
    two = replace(walk[0], positions=walk[0].positions[:2].copy(), missing=walk[0].missing.copy())
    assert keeps_limits(robot, retarget_whole_body(two, robot))


# -------- frame by frame, and what is refused


def test_steps_are_the_frames_of_the_whole_clip(walk):
    robot = load_robot("suralp", "floating")
    targets = WholeBodyScaler(walk[0], robot).targets(walk[0])
    whole = WholeBodyRetargeter(robot).solve(targets)
    live = WholeBodyRetargeter(robot)
    frames = live.inputs(targets)
    live.start(frames, float(targets.heading[0]))
    for k in range(1, 150):
        joints = live.step(frames, k, 1 / RATE)
        assert joints == pytest.approx(whole.positions[k], abs=1e-12)
        assert live.root.translation == pytest.approx(whole.root_position[k], abs=1e-12)
        assert (live.contacts == whole.contacts[k]).all()


def test_what_has_no_legs_is_refused(walk):
    body = walk[0]
    keep = [k for k, n in enumerate(body.names) if not n.endswith("toe")]
    without = replace(
        body,
        names=tuple(body.names[k] for k in keep),
        positions=body.positions[:, keep].copy(),
        missing=body.missing[keep].copy(),
    )
    with pytest.raises(ClipError, match="does not show l_toe, r_toe"):
        retarget_whole_body(without, load_robot("hrp2", "floating"))
    with pytest.raises(RobotError, match="fixed base"):
        retarget_whole_body(body, load_robot("hrp2", "fixed"))
    with pytest.raises(RobotError, match="we4rii"):
        retarget_whole_body(body, load_robot("we4rii", "floating"))


def test_files_hold_root_and_contacts(walk, tmp_path):
    robot = load_robot("lola", "floating")
    trajectory = retarget_whole_body(walk[0], robot)
    trajectory.write_npz(tmp_path / "a.npz", np.zeros((1, 1, 3)))
    trajectory.write_csv(tmp_path / "a.csv")
    kept = np.load(tmp_path / "a.npz")
    assert kept["root_position"].shape == (len(trajectory.positions), 3)
    assert np.linalg.norm(kept["root_quaternion"], axis=1) == pytest.approx(1.0)
    assert kept["contact_names"].tolist() == ["l_heel", "l_toe", "r_heel", "r_toe"]
    assert kept["errors"].shape[1] == len(WHOLE_BODY_POINTS) == len(kept["point_names"])
    head, first = (tmp_path / "a.csv").read_text().splitlines()[:2]
    assert head.split(",")[:9] == ["time", *(f"root_{a}" for a in ROOT), "contact_l_heel"]
    assert first.split(",")[8:12] == ["1", "1", "1", "1"]


# -------- clips


@pytest.mark.parametrize("name", by_kind(BIPEDS))
def test_the_built_in_dance_keeps_every_limit(name):
    robot = load_robot(name, "floating")
    trajectory = retarget_whole_body(find_body_points(load_clip("dance")), robot)
    contact = ground(robot, trajectory)
    assert keeps_limits(robot, trajectory) and (trajectory.clearance >= 0).all()
    assert np.median(contact.slip) < 2e-3 and contact.penetration.max() < 1e-3 and np.median(contact.floating) < 5e-3


@pytest.mark.parametrize("name", by_kind(BIPEDS))
@pytest.mark.parametrize("clip", REAL)
def test_recorded_people_keep_the_robots_feet_on_the_ground(name, clip, mocap):
    robot = load_robot(name, "floating")
    trajectory = retarget_whole_body(load_body_points(mocap(clip)), robot)
    contact = ground(robot, trajectory)
    assert keeps_limits(robot, trajectory) and (trajectory.clearance >= 0).all()
    assert len(contact.slip) > 5
    assert np.median(contact.slip) < 2e-3
    assert np.quantile(contact.penetration, 0.99) < 1e-3 and np.quantile(contact.floating, 0.99) < 5e-3


@pytest.mark.parametrize(("height", "duration"), [(0.2, 0.1), (0.35, 0.15)])
def test_a_foot_that_stamps_stops_at_the_floor(height, duration):
    """A leg brakes harder than its usual limit where its sole would sink in; it was 0.6 to 0.9 mm otherwise."""
    body, rate = load_body_points("dance"), 120.0
    time = np.arange(240) / rate
    positions = np.repeat(body.positions[:1], len(time), axis=0)
    up = np.interp(time, [0.5, 0.9, 1.0, 1.0 + duration], [0.0, height, height, 0.0])
    for name, along, share in (("r_ankle", 2, 1.0), ("r_toe", 2, 1.0), ("r_knee", 2, 0.5), ("r_knee", 0, 0.6)):
        positions[:, body.names.index(name), along] += share * up
    robot = load_robot("lola", "floating")
    trajectory = retarget_whole_body(replace(body, rate=rate, positions=positions), robot)
    lowest = corner_paths(robot, trajectory.q())[..., 2].min()
    assert -5.5e-4 < lowest < 1e-3 and keeps_limits(robot, trajectory)


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_legs_with_no_room_beside_each_other_yield_and_do_not_push_standing_feet(seed):
    """Which leg yields is a tie: a micrometre of noise, or another processor, decides it, so slip is not one number."""
    body = walking_person()[0]
    positions = body.positions.copy()
    for k, name in enumerate(body.names):  # feet on one line: the robot's thighs cannot
        inward = {"knee": 0.03, "ankle": 0.06, "toe": 0.06, "heel": 0.06}.get(name[2:], 0.0)
        positions[:, k, 1] -= inward if name.startswith("l_") else -inward
    if seed is not None:
        positions += 1e-6 * np.random.default_rng(seed).normal(size=positions.shape)
    body = replace(body, positions=positions)
    robot = load_robot("wabian2", "floating")
    wide = replace(WholeBodyRetargeter.SETTINGS, margin=0.05)
    trajectory = WholeBodyRetargeter(robot, wide).solve(WholeBodyScaler(body, robot).targets(body))
    contact = ground(robot, trajectory)
    assert contact.slip.max() < 2e-3 and contact.penetration.max() < 2e-3
    assert trajectory.clearance.min() > 0.0 and keeps_limits(robot, trajectory)
    assert trajectory.clearance.min() < 0.02, "the thighs are near each other, or this shows nothing"


@pytest.mark.parametrize(("name", "method"), [("lola", "live"), ("hrp2", "live"), ("lola", "clip")])
def test_what_no_robot_can_do_throws_none_about(name, method):
    """A robot that had to evade gathered speed in one frame and needed twenty to brake: pelvises flew at 17 m/s."""
    robot, body = load_robot(name, "floating"), crossing_person(2 * RATE if name == "hrp2" else 3 * RATE)
    body = body if method == "live" else crossing_person()
    trajectory = retarget_whole_body(body, robot, method=method)
    speed = np.linalg.norm(np.diff(trajectory.q()[:, :3], axis=0), axis=1) * trajectory.rate
    assert speed.max() < 4.0 and keeps_limits(robot, trajectory) and trajectory.clearance.min() >= 0.0
    if method == "live":
        gain = np.diff(np.abs(np.diff(trajectory.positions, axis=0)), axis=0) * trajectory.rate**2
        most = IN_NEED * WholeBodyRetargeter(robot).constants.acceleration[6:].max()
        assert gain.max() <= most * (1 + 1e-9)
