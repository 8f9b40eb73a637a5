"""Targets in, commands out: what cannot be followed is held, named and recovered from."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.ik import FollowerSettings, SampleVerdict, TargetFollower
from humanoid_control.robots import load_robot

DT = 0.004


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "fixed")


@pytest.fixture
def follower(robot):
    f = TargetFollower(robot)
    f.start(robot.postures["neutral"])
    return f


def wrist(robot):
    return robot.point_positions(robot.q("neutral"), ["l_wrist"])[0]


def run(follower, seconds, offer=None, start=0.0):
    """Step, offering targets at 60 Hz; every command is checked."""
    r, before, t = follower.robot, follower.q.copy(), start
    for k in range(int(seconds / DT)):
        t = start + k * DT
        if offer is not None and k % 4 == 0:
            offer(t)
        result = follower.step(t, DT)
        assert np.isfinite(result.q).all() and np.isfinite(result.v).all()
        assert (result.q >= r.lower).all() and (result.q <= r.upper).all()
        assert (np.abs(result.q - before) <= r.velocity * DT + 1e-12).all()
        before = result.q.copy()
    return t


def test_follows_a_point_and_reports_its_error(follower, robot):
    goal = wrist(robot) + [0.1, 0.05, 0.15]
    run(follower, 2.0, lambda t: follower.update("l_wrist", goal, None, t))
    assert follower.errors()["l_wrist"] < 0.01
    assert follower.problems == {}


def test_follows_a_link_with_orientation(follower, robot):
    import pinocchio as pin

    goal = pin.SE3(robot.link_poses(robot.q(robot.from_mapping({"l_elbow_flexion": 1.0})))["l_hand"])
    quaternion = pin.SE3ToXYZQUAT(goal)[3:]
    run(follower, 3.0, lambda t: follower.update("l_hand", goal.translation, quaternion, t))
    reached = robot.link_poses(follower.q)["l_hand"]
    assert np.linalg.norm(reached.translation - goal.translation) < 0.01
    assert np.linalg.norm(pin.log3(reached.rotation.T @ goal.rotation)) < 0.1


def test_unknown_name_is_named_with_the_nearest(follower):
    assert follower.update("l_wirst", np.zeros(3), None, 0.0) is SampleVerdict.UNKNOWN
    assert "did you mean l_wrist" in follower.problems["l_wirst"]
    run(follower, 0.1)


@pytest.mark.parametrize("bad", [np.full(3, np.nan), np.array([np.inf, 0, 0]), np.array([1e300, 0, 0])])
def test_not_a_number_holds_and_recovers(follower, robot, bad):
    home = wrist(robot)
    t = run(follower, 0.5, lambda t: follower.update("l_wrist", home, None, t))
    before = follower.q.copy()
    t = run(follower, 0.5, lambda t: follower.update("l_wrist", bad, None, t), t)
    assert "not a number" in follower.problems["l_wrist"]
    assert np.abs(follower.q - before).max() < 0.02
    run(follower, 0.3, lambda t: follower.update("l_wrist", home, None, t), t)
    assert follower.problems == {}


def test_a_jump_of_a_metre_is_held_reported_and_then_followed(follower, robot):
    home = wrist(robot)
    t = run(follower, 0.5, lambda t: follower.update("l_wrist", home, None, t))
    before = follower.q.copy()
    t = run(follower, 0.4, lambda t: follower.update("l_wrist", home + [1.0, 0, 0], None, t), t)
    assert "jumped" in follower.problems["l_wrist"]
    assert np.abs(follower.q - before).max() < 0.02
    t = run(follower, 2.0, lambda t: follower.update("l_wrist", home + [1.0, 0, 0], None, t), t)
    assert follower.problems == {}
    assert np.abs(follower.q - before).max() > 0.1, "a place that stays is believed and reached for"


def test_silence_is_held_and_reported(follower, robot):
    home = wrist(robot)
    t = run(follower, 0.5, lambda t: follower.update("l_wrist", home, None, t))
    t = run(follower, 0.5, start=t + DT)
    assert "silent" in follower.problems["l_wrist"]
    run(follower, 0.1, lambda t: follower.update("l_wrist", home, None, t), t)
    assert follower.problems == {}


def test_bad_quaternion_is_refused(follower, robot):
    home = wrist(robot)
    assert follower.update("l_hand", home, np.zeros(4), 0.0) is SampleVerdict.NOT_A_NUMBER
    assert follower.update("l_hand", home, np.array([0, 0, 0, 1.0]), 0.01) is SampleVerdict.ACCEPTED


def test_many_targets_at_once_are_what_they_are_one_by_one(robot):
    """Points, a link, an unknown name and a sample that is no number, with targets that move and one that jumps."""
    together, alone = TargetFollower(robot), TargetFollower(robot)
    names, rng = ["r_wrist", "l_hand", "nobody", "l_elbow", "sternum"], np.random.default_rng(3)
    poses = np.zeros((5, 7))
    poses[:, :3] = robot.frame_positions(
        robot.q(), [robot.model.getFrameId(n) for n in ("r_hand", "l_hand") * 2 + ("l_hand",)]
    )
    for k in range(300):
        now = k * DT
        if k % 3 == 0:
            poses[:, :3] += rng.normal(size=(5, 3)) * (0.01, 0.003, 0.003)
            poses[:, 3:] = [np.sin(now), 0.0, 0.0, np.cos(now)]
            sample = poses.copy()
            sample[3, 0] = np.nan if k % 5 == 0 else sample[3, 0]
            sample[0] += 0.7 if 100 < k < 130 else 0.0
            verdicts = together.update_many(names, sample, now)
            singly = [alone.update(n, p[:3], p[3:], now) for n, p in zip(names, sample, strict=True)]
            assert verdicts.tolist() == singly and verdicts[2] == SampleVerdict.UNKNOWN
            assert together.problems == alone.problems
        q = together.step(now, DT).q
        assert (q == alone.step(now, DT).q).all()


def test_starts_inside_the_limits_whatever_it_is_told(robot):
    f = TargetFollower(robot, FollowerSettings())
    wild = np.full(robot.n, 9.0)
    wild[:3] = np.nan
    f.start(wild)
    assert (f.q >= robot.lower).all() and (f.q <= robot.upper).all()
    assert f.q[:3] == pytest.approx(robot.postures["neutral"][:3])


def test_settings_change_while_running(follower, robot):
    from dataclasses import replace

    goal = wrist(robot) + [0.1, 0.0, 0.1]
    slow = replace(follower.settings, ik=replace(follower.settings.ik, velocity_scale=0.05))
    follower.configure(slow)
    before = follower.q.copy()
    for k in range(50):
        follower.update("l_wrist", goal, None, k * DT)
        q = follower.step(k * DT, DT).q
        assert (np.abs(q - before) <= 0.05 * robot.velocity * DT + 1e-12).all()
        before = q.copy()


def test_the_weight_of_an_orientation_changes_while_running(follower, robot):
    from dataclasses import replace

    follower.update("l_hand", robot.link_poses(robot.q())["l_hand"].translation, (0.0, 0.0, 1.0, 0.0), 0.0)
    follower.configure(replace(follower.settings, orientation_weight=0.0))
    before = robot.link_poses(follower.q)["l_hand"].rotation.copy()
    run(follower, 0.5)
    assert np.abs(robot.link_poses(follower.q)["l_hand"].rotation - before).max() < 0.02


def test_ticks_of_uneven_length_move_the_joints_evenly():
    """Extra ticks come between the others; what they command must not ripple with their length."""
    robot, rng = load_robot("lola", "fixed"), np.random.default_rng(0)
    follower, names = TargetFollower(robot), ("l_wrist", "r_wrist")
    home = robot.point_positions(robot.q(), names)
    now = sampled = 0.0
    before, accelerations = None, []
    while now < 2.5:
        dt = float(rng.choice([0.002, 0.0006, 0.0014, 0.0025]))
        now += dt
        while sampled <= now:
            places = home + np.array([0.1, 0.0, 0.2]) * (1 - np.cos(2 * sampled)) / 2
            follower.update_many(names, np.hstack([places, np.tile([0, 0, 0, 1], (2, 1))]), sampled)
            sampled += 1 / 60
        v = follower.step(now, dt).v
        if before is not None and now > 0.5:
            accelerations.append(np.abs(v - before).max() / dt)
        before = v
    assert np.abs(v).max() > 0.1, "it moves"
    assert np.percentile(accelerations, 99) < 20  # [rad/s^2]; of the motion itself: 3


def test_each_joint_brakes_by_its_own_acceleration(robot):
    """After a stop a heavy waist takes longer than a light wrist, and neither is asked for more than it can do."""
    f = TargetFollower(robot)
    f.start(robot.postures["neutral"])
    f.v = np.where(np.arange(robot.n) % 2 == 0, 2.0, -2.0)
    most = np.minimum(200.0, robot.acceleration_limits)
    assert most.min() < 50.0 and most.max() == 200.0
    for _ in range(60):
        before, at = f.v.copy(), f.q.copy()
        f.brake(DT)
        assert f.v == pytest.approx(np.sign(before) * np.maximum(np.abs(before) - most * DT, 0.0))
        assert f.q == pytest.approx(at + f.v * DT) and (f.solver.v == f.v).all()
    assert (f.v == 0).all()


def test_after_a_start_joints_get_faster_bit_by_bit(robot):
    """Their limits of speed and of acceleration grow with the time since the start, each start anew, then are whole."""
    follower, far = TargetFollower(robot, FollowerSettings(soft_start=0.5)), wrist(robot) + [0.3, 0.1, 0.5]
    most = robot.accelerations_within(np.inf).acceleration
    for _ in range(2):
        follower.start(robot.postures["neutral"])
        before, fastest = np.zeros(robot.n), np.zeros(robot.n)
        for k in range(1, 250):
            follower.update("l_wrist", far + [0.0, 0.0, 0.2 * (k // 40 % 2)], None, k * DT)
            v = follower.step(k * DT, DT).v[robot.iv :]
            share = min(1.0, max(k * DT / 0.5, 0.01)) + 1e-9
            assert (np.abs(v) <= share * robot.velocity).all()
            assert (np.abs(v - before) <= share * most * DT + 1e-9).all()
            before, fastest = v.copy(), np.maximum(fastest, np.abs(v) / robot.velocity)
        assert fastest.max() > 0.9, "in the end they may use all"
    at_once = TargetFollower(robot)
    for k in range(1, 6):
        at_once.update("l_wrist", far, None, k * DT)
        v = at_once.step(k * DT, DT).v
    assert (np.abs(v[robot.iv :]) > 5 * DT / 0.5 * robot.velocity).any(), "which without it they use at once"


def test_a_lower_share_of_speed_in_motion_is_reached_inside_the_acceleration_limit():
    robot, dt = load_robot("hrp2", "fixed"), 0.004
    settings = FollowerSettings()
    follower, speeds = TargetFollower(robot, settings), []
    for k in range(350):
        t = dt * k
        at = [0.25 + 0.15 * np.sin(6 * t), 0.3 + 0.1 * np.cos(6 * t), 1.0 + 0.2 * np.sin(4 * t)]
        follower.update("l_wrist", at, [0.0, 0.0, 0.0, 1.0], t)
        if k == 250:
            follower.configure(replace(settings, ik=replace(settings.ik, velocity_scale=0.05)))
        follower.step(t, dt)
        speeds.append(follower.v.copy())
    v = np.array(speeds)
    assert np.abs(v[200:250]).max() > 1.0 and np.abs(v[-20:]).max() <= 0.05 * robot.velocity.max() + 1e-9
    assert np.abs(np.diff(v[248:], axis=0)).max() / dt <= settings.ik.acceleration + 1e-6
