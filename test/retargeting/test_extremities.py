"""Heads and hands: which joints turn them, against pinocchio, and that they point where the person's do."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import WholeBodyRetargeter, WholeBodyScaler
from humanoid_control.retargeting.problem import place_points, point_jacobian
from humanoid_control.retargeting.whole_body.extremities import LEVER, extremities, gaze_turn, shown_directions
from humanoid_control.retargeting.whole_body.player import WholeBodyPlayer
from humanoid_control.robots import load_robot
from test.walking_person import RATE, walking_person

ALL = ("head", "l_hand", "r_hand")
MOUNTED = 25.0  # [deg] by which the points of the head look down when the head looks ahead


def turned(yaw, pitch):
    """Unit vectors (T, 3) ahead, turned to the left by yaw and up by pitch [deg]."""
    yaw, pitch = np.radians(yaw), np.radians(pitch)
    return np.stack([np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)], axis=1)


@pytest.fixture(scope="module")
def person():
    """The walking person looks about and bends the wrists; where head and hands really point."""
    body = walking_person(3)[0]
    t = np.arange(len(body.positions)) / RATE
    yaw, pitch = 30.0 * np.sin(2.0 * t), 12.0 * np.sin(4.0 * np.pi * t / t[-1])
    truth = {"head": turned(yaw, pitch)}
    points = {"head_front": body.point("head") + 0.1 * turned(yaw, pitch - MOUNTED)}
    for s in "lr":
        forearm = body.point(f"{s}_wrist") - body.point(f"{s}_elbow")
        forearm /= np.linalg.norm(forearm, axis=1, keepdims=True)
        bend = np.radians(30.0 * np.sin(4.0 * np.pi * t / t[-1]))[:, None]
        across = np.cross(forearm, [0.0, 1.0, 0.0])
        across /= np.linalg.norm(across, axis=1, keepdims=True)
        truth[f"{s}_hand"] = np.cos(bend) * forearm + np.sin(bend) * across
        points[f"{s}_hand"] = body.point(f"{s}_wrist") + 0.08 * truth[f"{s}_hand"]
    names = (*body.names, *points)
    positions = np.concatenate([body.positions, np.stack(list(points.values()), axis=1)], axis=1)
    return replace(body, names=names, positions=positions, missing=np.zeros(len(names))), truth


def shown(body):
    """Directions of a clip that is scaled by itself."""
    return shown_directions(body, gaze_turn(body))


def angle(a, b):
    """[deg] between unit vectors (T, 3)."""
    return np.degrees(np.arccos(np.clip(np.sum(a * b, axis=1), -1.0, 1.0)))


def pointed(robot, trajectory, name):
    """Where the head or a hand of a robot points in each frame, by pinocchio."""
    e, out = extremities(robot)[name], []
    for q in trajectory.q():
        pin.forwardKinematics(robot.model, robot.data, q)
        out.append(robot.data.oMi[e.joint].rotation @ e.axis)
    return np.array(out)


def test_what_the_points_show_is_where_head_and_hands_point_however_the_heads_points_are_mounted(person):
    body, truth = person
    directions = shown(body)
    assert set(directions) == set(ALL)
    for name in ALL:
        assert np.median(angle(directions[name], truth[name])) < (3.0 if name == "head" else 1e-4), name
    one_handed = replace(body, names=(*body.names[:-1], "x"), positions=body.positions.copy())
    assert set(shown(one_handed)) == {"head"}


def test_points_on_top_of_the_head_are_no_gaze(person):
    body, _ = person
    up = body.positions.copy()
    up[:, body.names.index("head_front")] = body.point("head") + [0.0, 0.0, 0.1]
    assert "head" not in shown(replace(body, positions=up))


@pytest.mark.parametrize("name", ["wabian2", "hrp2", "lola"])
def test_joints_of_head_and_hands_are_found_and_point_where_they_should_at_rest(name):
    robot = load_robot(name, "floating")
    found = extremities(robot)
    pin.forwardKinematics(robot.model, robot.data, robot.q("neutral"))
    head = found["head"]
    assert robot.data.oMi[head.joint].rotation @ head.axis == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)
    assert all(robot.joint_names[k].startswith("neck") for k in head.moving)
    if name == "lola":
        assert set(found) == {"head"}  # her forearms end in weights
        return
    pin.forwardKinematics(robot.model, robot.data, robot.q("zero"))
    for s in "lr":
        hand = found[f"{s}_hand"]
        elbow, wrist = robot.point_positions(robot.q("zero"), [f"{s}_elbow", f"{s}_wrist"])
        along = robot.data.oMi[hand.joint].rotation @ hand.axis
        assert along @ (wrist - elbow) == pytest.approx(np.linalg.norm(wrist - elbow))
        assert all(robot.joint_names[k].startswith(f"{s}_") for k in hand.moving)


@pytest.mark.parametrize("name", ["wabian2", "hrp2"])
def test_directions_and_their_jacobian_are_those_of_pinocchio_wherever_the_base_is(name):
    robot, rng = load_robot(name, "floating"), np.random.default_rng(3)
    solver = WholeBodyRetargeter(robot, directions=ALL)
    p, w, found = solver.problem, solver.scratch, extremities(robot)
    J = np.empty((3 * len(p.point), len(p.rest)))
    rows = np.flatnonzero(p.free)
    assert len(rows) == 3
    for _ in range(5):
        base = pin.SE3.Random()
        base.translation *= 100.0
        p.tree.joints.R[0], p.tree.joints.p[0] = base.rotation, base.translation
        x = np.concatenate([np.zeros(6), rng.uniform(p.lower[6:], p.upper[6:])])
        place_points(p, x, w)
        joints = robot.postures["neutral"].copy()
        joints[solver.moving] = x[6:]
        robot.follow(joints)
        pin.forwardKinematics(robot.model, robot.data, robot.q(joints, base))
        for row, direction in zip(rows, solver.directions, strict=True):
            e = found[direction]
            assert w.points[row] == pytest.approx(LEVER * robot.data.oMi[e.joint].rotation @ e.axis, abs=1e-9)
        point_jacobian(p, w, J)
        d, eps, ends = rng.normal(size=len(x)), 1e-6, []
        for sign in (1, -1):
            place_points(p, x + sign * eps * d, w)
            ends.append(w.points.copy())
        assert J @ d == pytest.approx(((ends[0] - ends[1]) / (2 * eps)).ravel(), abs=1e-6)


def test_the_robot_looks_and_points_where_the_person_does_and_without_it_does_not(person):
    body, truth = person
    robot = load_robot("wabian2", "floating")
    targets = WholeBodyScaler(body, robot).targets(body)
    followed = WholeBodyRetargeter.following(targets, robot).solve(targets)
    blind = WholeBodyRetargeter(robot, forearms=targets.forearms is not None).solve(targets)
    for name, most in (("head", 5.0), ("l_hand", 5.0), ("r_hand", 5.0)):
        assert np.median(angle(pointed(robot, followed, name), truth[name])) < most, name
        assert np.median(angle(pointed(robot, blind, name), truth[name])) > 2.0 * most, name
    assert (followed.positions >= robot.lower - 1e-9).all() and (followed.positions <= robot.upper + 1e-9).all()
    assert (np.abs(followed.velocities) <= robot.velocity * (1 + 1e-9)).all()
    assert followed.errors[:, :12].mean() < blind.errors[:, :12].mean() + 0.003, "nothing else is worse for it"


@pytest.mark.nightly
def test_a_turn_of_the_world_turns_the_gaze_and_a_shift_does_not(person):
    body, _ = person
    robot = load_robot("wabian2", "floating")
    c, s = np.cos(1.1), np.sin(1.1)
    R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
    moved = replace(body, positions=body.positions @ R.T + [300.0, -200.0, 0.0])
    both = []
    for one in (body, moved):
        targets = WholeBodyScaler(one, robot).targets(one)
        both.append(pointed(robot, WholeBodyRetargeter.following(targets, robot).solve(targets), "head"))
    assert both[1] == pytest.approx(both[0] @ R.T, abs=1e-4)


@pytest.mark.nightly
def test_a_moment_that_is_sought_moves_points_and_turns_directions(person):
    body, _ = person
    robot = load_robot("wabian2", "floating")
    targets = WholeBodyScaler(body, robot).targets(body)
    solver = WholeBodyRetargeter.following(targets, robot)
    player = WholeBodyPlayer(targets, solver.inputs(targets), solver.legs.soles, free=solver.problem.free)
    player.advance(2.0)
    player.seek(0.5)
    for _ in range(100):
        points = player.advance(0.02).points[0]
    assert np.linalg.norm(player.X_world_clip.translation) > 0.1
    assert np.linalg.norm(points[solver.problem.free], axis=1) == pytest.approx(np.full(3, LEVER), abs=1e-3)


@pytest.mark.parametrize("clip", ["cmu_bvh/02_01.bvh", "cmu_asf/11_01.amc", "vicon_c3d/PiG_Motion-FlatFoot-One.c3d"])
def test_a_walker_looks_where_he_walks(mocap, clip):
    body = load_body_points(mocap(clip))
    directions = shown(body)
    v = np.gradient(body.mid_hip[:, :2], axis=0) * body.rate
    fast = np.linalg.norm(v, axis=1) > 0.5
    way = np.concatenate([v, np.zeros((len(v), 1))], axis=1)[fast]
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    assert np.median(angle(directions["head"][fast], way)) < 20.0


def test_a_frame_by_itself_shows_what_the_clip_shows_there(person):
    """Live markers are scaled by the person's calibration: a head that nods then is not taken for one that is level."""
    body, _ = person
    turn, whole = gaze_turn(body), shown(body)
    for k in (60, 200):
        one = replace(body, positions=body.positions[k : k + 2].copy(), missing=body.missing.copy())
        for name, u in shown_directions(one, turn).items():
            assert u == pytest.approx(whole[name][k : k + 2], abs=1e-9), name
