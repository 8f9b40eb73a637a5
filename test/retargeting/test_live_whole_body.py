"""A robot that follows a person live, root and legs too: as the clip would be, feet that stay, nothing that jumps."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

from humanoid_control.errors import RobotError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import load_body_points
from humanoid_control.retargeting import LIVE, WholeBodyRetargeter, WholeBodyScaler, WholeBodyTask
from humanoid_control.retargeting.live import LiveSettings
from humanoid_control.retargeting.whole_body.live import LONGEST, SHORTEST, LiveWholeBody, edge_points, sole_poses
from humanoid_control.retargeting.whole_body.retargeter import FOLLOWED_ROOT, followed_settings
from humanoid_control.retargeting.whole_body.scaling import BODY_POINTS
from humanoid_control.robots import load_robot
from test.walking_person import RATE, running_person, walking_person

QUICK = LiveSettings(calibration=0.5, lead_in=0.5)
CALIBRATED = 0.7  # [s] by which the walker still stands, and is known


def follow(live, body, frames, change=None, rate=RATE, begin=0.0):
    """Feed frames; configurations (T, nq), contacts (T, 4), and steps [s] of those that moved the robot."""
    q, contacts, steps = [], [], []
    for n, k in enumerate(frames):
        now = begin + n / rate
        positions = body.positions[k].copy()
        if change is not None:
            positions = change(n, positions)
        if positions is None:
            live.hold(now)
        else:
            live.frame(body.names, positions, now)
        if passed := live.follow():
            q.append(np.concatenate([pin.SE3ToXYZQUAT(live.solver.root), live.solver.joints]))
            contacts.append(live.solver.contacts.copy())
            steps.append(passed)
    return np.array(q), np.array(contacts), np.array(steps)


def is_sound(robot, q, contacts, steps, rate=RATE, slip=1e-3):
    """Limits, feet that stay, and nothing that jumps."""
    ground = measure_ground_contact(robot, q, contacts, rate)
    assert ground.slip.max() < slip and ground.penetration.max() < 1e-3
    assert (q[:, 7:] >= robot.lower - 1e-9).all() and (q[:, 7:] <= robot.upper + 1e-9).all()
    assert (np.abs(np.diff(q[:, 7:], axis=0)) <= robot.velocity * steps[1:, None] * (1 + 1e-9)).all()
    assert np.linalg.norm(np.diff(q[:, :3], axis=0), axis=1).max() < 0.05
    return ground


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.mark.nightly
def test_a_person_who_walks_is_followed_as_the_clip_would_be(robot):
    body = walking_person()[0]
    live = LiveWholeBody(robot, QUICK)
    assert live.targets is None and live.follow() == 0.0
    frames = range(len(body.positions))
    q, contacts, steps = follow(live, body, frames)
    ground = is_sound(robot, q, contacts, steps)
    assert len(ground.slip) >= 8 and steps == pytest.approx(np.full(len(steps), 1.0 / RATE))
    targets = WholeBodyScaler(body, robot).targets(body)
    clip = WholeBodyRetargeter.following(targets, robot).solve(targets)
    late = slice(-100, None)
    gone = q[late, :3] - q[0, :3]
    assert gone[-1, 0] > 0.5, "the robot has walked"
    # The same way at the same time, from where it stood.
    assert gone == pytest.approx(clip.q()[late, :3] - clip.q()[0, :3], abs=0.03)
    assert np.abs(q[late, 7:] - clip.positions[late]).mean() < 0.03
    assert (contacts[late] == clip.contacts[late]).mean() > 0.95


def test_it_begins_standing_at_rest_and_goes_over_without_a_jump(robot):
    body = walking_person()[0]
    live = LiveWholeBody(robot, QUICK)
    neutral = np.concatenate([pin.SE3ToXYZQUAT(robot.X_world_root), robot.postures["neutral"]])
    assert np.concatenate([pin.SE3ToXYZQUAT(live.solver.root), live.solver.joints]) == pytest.approx(neutral, abs=0.03)
    q, contacts, steps = follow(live, body, [0] * 150)
    is_sound(robot, q, contacts, steps)
    assert np.abs(np.diff(q[:, 7:], 2, axis=0)).max() * RATE**2 < 250.0, "it does not jerk"
    assert contacts[20:].all(), "both feet stay where they stood"


def test_hidden_feet_and_silence_hold_and_come_back_without_a_jump(robot):
    body = walking_person()[0]
    live = LiveWholeBody(robot, QUICK)
    feet = [body.names.index(f"l_{p}") for p in ("ankle", "toe", "heel")]

    def change(n, positions):
        if 150 <= n < 200:
            positions[feet] = np.nan
        return None if 260 <= n < 330 else positions

    q, contacts, steps = follow(live, body, range(len(body.positions)), change)
    is_sound(robot, q, contacts, steps, slip=2e-3)
    assert np.isfinite(q).all() and not live.problems


@pytest.mark.nightly
def test_a_pause_holds_and_a_new_calibration_goes_on_where_the_robot_is(robot):
    body = walking_person()[0]
    live = LiveWholeBody(robot, QUICK)
    n = len(body.positions)
    q1, c1, s1 = follow(live, body, range(n))
    live.playing = False
    q2, c2, s2 = follow(live, body, range(n), begin=n / RATE)
    assert q2[200:] == pytest.approx(np.tile(q2[200], (len(q2) - 200, 1)), abs=2e-3)
    live.playing = True
    live.calibrate()
    q3, c3, s3 = follow(live, body, range(n), begin=2 * n / RATE)
    is_sound(robot, np.vstack([q1, q2, q3]), np.vstack([c1, c2, c3]), np.concatenate([s1, s2, s3]), slip=3e-3)
    # It walks on from where it was.
    assert q3[-1, 0] - q1[-1, 0] == pytest.approx(q1[-1, 0] - q1[0, 0], abs=0.05)


@pytest.mark.nightly
def test_where_the_person_is_and_faces_does_not_matter(robot):
    body = walking_person(2)[0]
    both = []
    for turn, shift in ((0.0, 0.0), (2.0, 50.0)):
        c, s = np.cos(turn), np.sin(turn)
        R = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        live = LiveWholeBody(robot, QUICK)
        q, *_ = follow(live, body, range(len(body.positions)), lambda _, p, R=R, d=shift: p @ R.T + [d, d, 0.0])
        both.append(q)
    assert both[0] == pytest.approx(both[1], abs=1e-3)


def test_soles_as_points_and_back(robot):
    soles = LiveWholeBody(robot, QUICK).solver.legs.soles
    poses = np.array([[0.3, -0.2, 0.7, 0.02, 0.05], [-0.1, 0.4, -2.9, 0.08, 0.0]])
    assert sole_poses(edge_points(soles, poses)) == pytest.approx(poses, abs=1e-12)


def test_a_fixed_robot_and_markers_without_legs_are_refused(robot):
    with pytest.raises(RobotError, match="fixed base"):
        LiveWholeBody(load_robot("hrp2", "fixed"))
    body = walking_person()[0]
    upper = [k for k, n in enumerate(body.names) if not n.endswith(("knee", "ankle", "toe", "heel"))]
    live = LiveWholeBody(robot, QUICK)
    for k in range(80):
        live.frame(tuple(body.names[i] for i in upper), body.positions[0, upper], k / RATE)
    assert live.targets is None and "the whole body needs legs" in live.problems["calibration"]


@pytest.mark.nightly
def test_a_real_walk_is_followed(robot, mocap):
    body = load_body_points(mocap("dance_markers/walk1.trc"))
    live = LiveWholeBody(robot, LiveSettings(calibration=0.3, lead_in=0.5))
    q, contacts, steps = follow(live, body, [0] * 60 + list(range(len(body.positions))), rate=body.rate)
    is_sound(robot, q, contacts, steps, body.rate, slip=5e-3)
    shown = live.targets[: len(BODY_POINTS)]
    assert live.solver.error(shown) < 0.08


def test_a_person_who_runs_during_the_calibration_is_asked_to_stand(robot):
    body, live = running_person(1.5), LiveWholeBody(robot, QUICK)
    for k in range(body.n_frames):
        live.frame(body.names, body.positions[k], k / RATE)
    assert live.targets is None and "no ground found under them, stand still" in live.problems["calibration"]


def test_time_that_passed_is_followed_once_and_not_more_than_the_longest_step(robot):
    live = LiveWholeBody(robot, QUICK)
    live.targets = live._points_at_rest()
    for passed, followed in ((0.5 * SHORTEST, 0.0), (SHORTEST, SHORTEST), (0.5 * LONGEST, 0.5 * LONGEST)):
        live._followed, live._last_update = 0.0, passed
        assert live.follow() == followed
        assert live.follow() == 0.0, "the same moment again"
    live._followed, live._last_update = 0.0, 3.0 * LONGEST
    assert live.follow() == LONGEST


def test_bones_of_the_figure_meet_at_the_middle_of_the_hips(robot):
    live = LiveWholeBody(robot, QUICK)
    assert live.skeleton() is None
    live.targets = live._points_at_rest()
    at = {name: live.targets[k] for k, name in enumerate(BODY_POINTS)}
    ends = live.skeleton()
    middle = 0.5 * (at["l_hip"] + at["r_hip"])
    assert len(ends) % 2 == 0 and (np.abs(ends - middle).max(axis=1) < 1e-12).any()
    toes = live.targets[live.solver.corners :]
    for edge in toes:
        assert (np.abs(ends - edge).max(axis=1) < 1e-12).any(), "ankles and toes are the edges of the soles"
    bones = ends.reshape(-1, 2, 3)
    for side, (heel, toe) in zip("lr", (toes[:2], toes[2:4]), strict=True):
        for a, b in ((at[f"{side}_knee"], heel), (heel, toe)):
            assert (np.abs(bones - [a, b]).max(axis=(1, 2)) < 1e-12).any(), "heel before toe"


@pytest.mark.nightly
def test_a_root_that_is_followed_jerks_less_and_is_no_less_near(robot):
    """The dance at twice its pace. A foot that stands goes first, which is why single frames exceed the limit."""
    body = load_body_points("dance")
    task = WholeBodyTask.of(replace(body, rate=2.0 * body.rate), robot)
    worst, error = {}, {}
    for name, settings in (("file", WholeBodyRetargeter.SETTINGS), ("followed", followed_settings())):
        found = task.solve(settings, None, LIVE).trajectory
        acceleration = np.abs(np.diff(found.root_position, 2, axis=0)) * found.rate**2
        worst[name], error[name] = np.percentile(acceleration, 99.5), found.errors.mean()
    assert worst["followed"] < 1.5 * FOLLOWED_ROOT < worst["file"], worst
    assert error["followed"] < 1.1 * error["file"]
    assert LiveWholeBody(robot, QUICK).solver.settings.root_acceleration == FOLLOWED_ROOT
