"""Joints that move no target: they stay in the posture whatever comes near, and return to it slowly."""

import numpy as np
import pytest

from humanoid_control.ik import (
    FollowerSettings,
    IdleJointLimit,
    IkSettings,
    PointsTask,
    PostureTask,
    TargetFollower,
    WholeBodyIk,
    default_limits,
)
from humanoid_control.ik.limits import SelfCollisionLimit
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import POINTS, ClipPlayer, scale_to_robot
from humanoid_control.robots import load_robot
from test.robots_under_test import by_kind, nightly

DT = 0.004


def idle_joints(robot, frames):
    carriers = [robot.model.frames[f].parentJoint for f in frames]
    return ~robot.ancestor_mask[carriers].any(axis=0)[robot.iv :]


class Followed:
    """Extremes of a clip that was followed: idle joints [rad], shares of speed and acceleration, distance [m]."""

    def __init__(self, robot, targets, windows, **settings):
        follower = TargetFollower(robot, FollowerSettings(**settings))
        player = ClipPlayer(targets, robot.point_positions(robot.q(), POINTS), loop=False)
        idle = idle_joints(robot, [robot.point_frame(p) for p in POINTS])
        poses, neutral, v = np.tile([0.0, 0, 0, 0, 0, 0, 1], (7, 1)), robot.postures["neutral"], np.zeros(robot.nv)
        self.left = self.speed = self.acceleration = self.outside = 0.0
        self.closest, self.errors, now = np.inf, [], 0.0
        for begin, length in windows:
            player.seek(begin)
            for k in range(round((1.5 + length) / DT)):
                player.advance(DT)
                now += DT
                poses[:, :3] = player.points()
                if k % 4 == 0:
                    follower.update_many(POINTS, poses, now)
                result = follower.step(now, DT)
                assert result.ok
                self.left = max(self.left, np.abs(result.q - neutral)[idle].max(initial=0.0))
                self.speed = max(self.speed, (np.abs(result.v) / robot.velocity).max())
                self.acceleration = max(self.acceleration, np.abs(result.v - v).max() / (200.0 * DT))
                self.outside = max(self.outside, (robot.lower - result.q).max(), (result.q - robot.upper).max())
                self.closest = min(self.closest, result.near.distance.min(initial=np.inf))
                v = result.v
                if k * DT > 1.5:
                    self.errors += follower.errors().values()


def check(followed):
    assert np.degrees(followed.left) < 0.5
    assert followed.speed <= 1 + 1e-9 and followed.acceleration <= 1 + 1e-6 and followed.outside <= 1e-9
    assert followed.closest > 0.005


@pytest.mark.parametrize("name", by_kind(["hrp2", "suralp"]))
def test_legs_and_hands_stay_in_upper_body_imitation(name):
    """The end of the dance, where both hands pass the thighs."""
    robot = load_robot(name, "fixed")
    check(Followed(robot, scale_to_robot(load_body_points("dance"), robot), [(20.4, 3.4)]))


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["wabian2"])
def test_without_the_limit_hands_push_legs_away_and_are_no_nearer_to_their_targets(name):
    robot = load_robot(name, "fixed")
    targets = scale_to_robot(load_body_points("dance"), robot)
    held, free = (Followed(robot, targets, [(20.4, 3.4)], hold_idle_joints=h) for h in (True, False))
    assert np.degrees(free.left) > 5 > 0.5 > np.degrees(held.left)
    assert np.mean(held.errors) < np.mean(free.errors) + 0.002
    assert held.closest > free.closest - 0.003


CLIPS = {
    "dance_markers/dance1.trc": [(3.0, 1.0), (12.0, 1.0)],
    "cmu_bvh/05_02.bvh": [(4.0, 1.0)],
    "cmu_bvh/02_05.bvh": [(3.0, 1.0)],
    "vicon_c3d/shd01.c3d": [(0.0, 0.9)],
    "vicon_c3d/PiG_Motion-FlatFoot-One.c3d": [(0.5, 1.0)],
}
ROBOTS = ("wabian2", "hrp2", "lola")


@pytest.mark.parametrize("clip", [c if "05_02" in c else nightly(c) for c in CLIPS])
def test_legs_stay_in_motion_of_real_people(clip, mocap):
    """Each clip by one robot in turn."""
    robot = load_robot(ROBOTS[list(CLIPS).index(clip) % len(ROBOTS)], "fixed")
    check(Followed(robot, scale_to_robot(load_body_points(mocap(clip)), robot), CLIPS[clip]))


# -------- Where a robot starts elsewhere


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["lola"])
def test_legs_that_start_bent_return_slowly_and_set_out_gently(name):
    robot = load_robot(name, "fixed")
    follower, start = TargetFollower(robot), robot.postures["neutral"].copy()
    legs = [k for k, n in enumerate(robot.joint_names) if n.endswith(("knee_flexion", "hip_flexion"))]
    assert len(legs) == 4
    start[legs] = np.clip(start[legs] + [0.4, -0.3, 0.3, -0.4], robot.lower[legs], robot.upper[legs])
    follower.start(start)
    wrist = robot.point_positions(robot.q(start), ["l_wrist"])[0]
    q, v, left = follower.q, follower.v, []
    for k in range(1500):
        follower.update("l_wrist", wrist, None, k * DT)
        result = follower.step(k * DT, DT)
        assert np.abs(result.v[legs]).max() <= follower.settings.ik.joint_recovery_speed + 1e-9
        assert (np.abs(result.v[legs]) - np.abs(v[legs])).max() <= 2.0 * DT + 1e-9, "no jump, also not at first"
        far = np.abs(result.q - robot.postures["neutral"])[legs]
        assert (far <= np.abs(q - robot.postures["neutral"])[legs] + 1e-12).all(), "never away from it"
        q, v = result.q, result.v
        left.append(far.max())
    assert left[0] > 0.25 and left[100] > 0.1 and left[-1] < 0.005


def leg_joints(robot):
    return [k for k, n in enumerate(robot.joint_names) if n[1:].startswith(("_hip", "_knee", "_ankle"))]


def crossed_starts(robot, count):
    """Postures with legs near each other, none touching, arms neutral."""
    rng, neutral = np.random.default_rng(3), robot.postures["neutral"]
    legs, found = leg_joints(robot), []
    while len(found) < count:
        joints = neutral.copy()
        joints[legs] += rng.uniform(-0.5, 0.5, len(legs))
        joints = np.clip(joints, robot.lower, robot.upper)
        if 0.002 < robot.shape_clearance(robot.q(joints)).min() < 0.03:
            found.append(joints)
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["hrp2"])
def test_legs_that_start_near_each_other_get_round_and_home(name):
    robot = load_robot(name, "fixed")
    follower, wrist = TargetFollower(robot), robot.point_positions(robot.q(), ["l_wrist"])[0]
    legs = leg_joints(robot)
    for start in crossed_starts(robot, 2):
        follower.start(start)
        first = robot.shape_clearance(robot.q(start)).min()
        for k in range(1500):
            follower.update("l_wrist", wrist, None, k * DT)
            result = follower.step(k * DT, DT)
            assert result.near.distance.min(initial=1.0) > min(first, 0.01) - 1e-3
        assert np.degrees(np.abs(result.q - robot.postures["neutral"])[legs].max()) < 1.0


# -------- What is idle


def test_a_target_frees_the_joints_that_move_it_when_it_comes():
    robot = load_robot("hrp2", "fixed")
    follower, neutral = TargetFollower(robot), robot.postures["neutral"]
    home = robot.link_poses(robot.q())
    legs = [k for k, n in enumerate(robot.joint_names) if n.startswith(("l_hip", "l_knee"))]
    for k in range(600):
        now = k * DT
        follower.update("l_wrist", robot.point_positions(robot.q(), ["l_wrist"])[0], None, now)
        if k >= 200:
            follower.update("l_foot", home["l_foot"].translation + [0.1, 0.0, 0.15], None, now)
        q = follower.step(now, DT).q
        if k == 199:
            assert (q[legs] == neutral[legs]).all()
    assert np.abs(q - neutral)[legs].max() > 0.2 and follower.errors()["l_foot"] < 0.01
    others = [k for k, n in enumerate(robot.joint_names) if n.startswith(("r_hip", "r_knee", "r_shoulder"))]
    assert (q[others] == neutral[others]).all()


def test_it_can_be_switched_off_and_on_while_running():
    robot = load_robot("wabian2", "fixed")
    targets = scale_to_robot(load_body_points("dance"), robot)
    assert np.degrees(Followed(robot, targets, [(20.4, 2.0)], hold_idle_joints=False).left) > 5
    follower = TargetFollower(robot, FollowerSettings(hold_idle_joints=False))
    assert not follower._idle.enabled
    follower.configure(FollowerSettings())
    assert follower._idle.enabled


def test_a_joint_that_moves_when_it_becomes_idle_brakes_within_its_acceleration_and_returns():
    robot, settings = load_robot("hrp2", "fixed"), IkSettings(acceleration=20.0)
    limits = default_limits(robot)
    apart = next(m for m in limits if isinstance(m, SelfCollisionLimit))
    idle = IdleJointLimit(robot, robot.postures["neutral"], 2.0, apart)
    limits.insert(-2, idle)
    solver, foot = WholeBodyIk(robot, settings, limits), robot.model.getFrameId("l_foot")
    task, posture, q, v = PointsTask(robot, [foot], gain=20.0), PostureTask(robot), robot.q(), np.zeros(robot.nv)
    task.set_target(robot.frame_positions(q, [foot]) + [0.25, 0.05, 0.2])
    idle.follow([foot])
    fastest = 0.0
    for k in range(1500):
        if k == 60:
            idle.follow([])
            assert np.abs(v).max() > 0.7, "it moves"
        result = solver.step(q, [task, posture] if k < 60 else [posture], DT)
        assert np.abs(result.v - v).max() <= 20.0 * DT + 1e-9
        q, v = result.q, result.v
        if k > 60 + 1.0 / DT:
            fastest = max(fastest, np.abs(v).max())
    assert 0.05 < fastest <= settings.joint_recovery_speed + 1e-9
    assert np.abs(q - robot.postures["neutral"]).max() < 0.01


def test_all_joints_are_free_while_shapes_are_inside_each_other():
    """Thighs that start inside each other come apart, which joints held to rest could not."""
    robot = load_robot("wabian2", "fixed")
    start = robot.from_mapping({"l_hip_abduction": -0.25, "r_hip_abduction": -0.25})
    assert robot.shape_clearance(robot.q(start)).min() < -0.005
    follower = TargetFollower(robot)
    follower.start(start)
    for k in range(2000):
        result = follower.step(k * DT, DT)
    assert result.report.penetration_depth == 0.0 and robot.shape_clearance(result.q).min() > 0
    assert np.abs(result.q - robot.postures["neutral"])[leg_joints(robot)].max() < 0.02


def test_what_mimics_is_as_idle_as_what_it_mimics():
    robot = load_robot("lola", "fixed")
    assert robot.mimic, "else this says nothing"
    follower, leader, *_ = robot.mimic[0]
    limit = IdleJointLimit(robot, robot.postures["neutral"])
    assert limit.idle.all()
    for joint in (follower, leader):
        frame = next(k for k, f in enumerate(robot.model.frames) if f.parentJoint == joint + 1)
        limit.follow([frame])
        assert not limit.idle[[follower, leader]].any()


def test_the_library_solver_holds_nothing():
    assert not any(isinstance(m, IdleJointLimit) for m in WholeBodyIk(load_robot("lola", "floating")).limits)
