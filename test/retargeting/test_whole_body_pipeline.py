"""The way from a clip to a motion: few or very many frames a second, pace, and the same for all who go it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.cli.main import main
from humanoid_control.clip_library import LibrarySettings, WorkerRobot, library_jobs
from humanoid_control.clip_library.clips import LibraryClip
from humanoid_control.clip_library.work import do_job
from humanoid_control.errors import ClipError, RobotError
from humanoid_control.evaluation import measure_ground_contact
from humanoid_control.mocap import clean, find_body_points, load_body_points, load_clip
from humanoid_control.retargeting import (
    WholeBodyRetargeter,
    WholeBodyScaler,
    WholeBodyTask,
    at_solving_rate,
    every,
    retarget_whole_body,
    whole_body_settings,
)
from humanoid_control.retargeting.whole_body.pipeline import FASTEST, SLOWEST, rate_factors
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("hrp2", "floating")


@pytest.fixture(scope="module")
def walk(mocap):
    return load_clip(mocap("cmu_bvh/07_01.bvh"))


def body_at(walk, rate):
    return find_body_points(clean(walk.resample(rate))[0])


@pytest.mark.parametrize("rate", [1, 5, 12.5, 24, 29.97, 30, 49.9, 50, 60, 119.88, 120, 250, 251, 300, 480, 1000])
def test_every_rate_is_brought_between_the_bounds(rate):
    more, fewer = rate_factors(rate)
    assert min(more, fewer) == 1
    assert SLOWEST - 1e-6 <= rate * more / fewer <= FASTEST + 1e-6
    if SLOWEST <= rate <= FASTEST:
        assert (more, fewer) == (1, 1)


def test_frames_of_the_clip_are_kept_and_those_between_lie_on_its_path(walk):
    slow, fine = body_at(walk, 30), body_at(walk, 120)
    body, between, notes = at_solving_rate(slow)
    assert (body.rate, between, notes) == (60.0, 2, ())
    np.testing.assert_allclose(body.positions[::2], slow.positions, atol=1e-12)
    middle = body.point("r_wrist")[1:-2:2] - body.mid_hip[1:-2:2]
    truth = (fine.point("r_wrist") - fine.mid_hip)[2::4][: len(middle)]
    assert np.abs(middle - truth).max() < 0.01
    body, between, notes = at_solving_rate(body_at(walk, 1000))
    assert (body.rate, between) == (250.0, 1)
    assert "250 of 1000 frames/s" in notes[0]


@pytest.mark.parametrize("rate", [5, 30, 1000])
def test_feet_stay_at_any_rate(walk, rate):
    robot = load_robot("hrp2", "floating")
    body, between, _ = at_solving_rate(body_at(walk, rate))
    targets = WholeBodyScaler(body, robot).targets(body)
    trajectory = WholeBodyRetargeter.following(targets, robot).solve(targets)
    thin = every(trajectory, between)
    contact = measure_ground_contact(robot, thin.q(), thin.contacts, thin.rate).row()
    assert contact["slip_max_mm"] < 2, "19 mm when 1,000 frames a second are solved"
    assert contact["penetration_mm"] < 1, "27 mm when 5 frames a second are solved, 32 mm at 1,000"
    assert trajectory.errors[:, :7].mean() < 0.02, "7 cm at 5, 14 cm at 1,000"
    assert len(thin.positions) == (len(body.positions) - 1) // between + 1
    assert thin.rate == pytest.approx(min(rate, 250))
    np.testing.assert_array_equal(thin.positions, trajectory.positions[::between])
    np.testing.assert_allclose(thin.velocities[0], (thin.positions[1] - thin.positions[0]) * thin.rate)


def test_a_clip_of_30_hz_is_solved_at_60_and_written_at_30(robot):
    """Step by step beside the pipeline: frames of the clip, their targets, the person's contacts."""
    body = load_body_points("dance").cropped(300)
    slow = replace(body, rate=body.rate / 4, positions=body.positions[::4].copy(), missing=body.missing.copy())
    task = WholeBodyTask.of(slow, robot)
    told = []
    motion = task.solve(progress=lambda k, total: told.append((k, total)))
    fast, between, notes = at_solving_rate(slow)
    scaler = WholeBodyScaler(fast, robot)
    targets = scaler.targets(fast)
    by_hand = WholeBodyRetargeter.following(targets, robot).solve(targets)
    assert between > 1 and len(task) == len(targets) == told[-1][1] == told[-1][0]
    assert len(motion.trajectory.positions) == slow.n_frames and motion.trajectory.rate == pytest.approx(slow.rate)
    np.testing.assert_array_equal(motion.trajectory.q(), by_hand.q()[::between])
    np.testing.assert_array_equal(motion.trajectory.contacts, by_hand.contacts[::between])
    np.testing.assert_array_equal(motion.targets.positions, targets.positions[::between])
    np.testing.assert_array_equal(motion.targets.contacts, targets.contacts[::between])
    assert motion.targets.rate == pytest.approx(slow.rate) and len(motion.targets.heading) == slow.n_frames
    assert all(len(pointing) == slow.n_frames for pointing in motion.targets.directions.values())
    assert task.notes == (*notes, *scaler.floor.notes)
    np.testing.assert_array_equal(retarget_whole_body(slow, robot).q(), motion.trajectory.q())


def test_pace_and_acceleration_reach_the_solver(robot):
    body = load_body_points("dance").cropped(200)
    half = retarget_whole_body(body, robot, speed=0.5)
    assert len(half.positions) == 2 * body.n_frames - 1 and half.rate == body.rate
    assert whole_body_settings() == WholeBodyRetargeter.SETTINGS
    assert whole_body_settings(15.0) == replace(WholeBodyRetargeter.SETTINGS, acceleration=15.0)
    gentle = retarget_whole_body(body, robot, whole_body_settings(15.0))
    targets = WholeBodyScaler(body, robot).targets(body)
    solver = WholeBodyRetargeter.following(targets, robot, whole_body_settings(15.0))
    np.testing.assert_array_equal(gentle.q(), solver.solve(targets).q())
    assert np.abs(gentle.positions - retarget_whole_body(body, robot).positions).max() > 0.05


def test_a_clip_of_1000_hz_tells_what_is_left_out(robot):
    body = load_body_points("dance").cropped(120)
    fast = replace(body, rate=1000.0, missing=body.missing.copy())
    task = WholeBodyTask.of(fast, robot, speed=0.2)
    assert task.between == 1 and task.targets.rate == 250.0 and "250 of 1000 frames" in task.notes[0]


def test_what_has_no_legs_is_refused_before_anything_is_solved(robot):
    body = load_body_points("dance").cropped(100)
    arms = [k for k, name in enumerate(body.names) if not name.endswith(("ankle", "toe"))]
    upper = replace(
        body,
        names=tuple(body.names[k] for k in arms),
        positions=body.positions[:, arms].copy(),
        missing=body.missing[arms].copy(),
    )
    with pytest.raises(ClipError, match="needs legs"):
        WholeBodyTask.of(upper, robot)
    with pytest.raises(RobotError, match="floating base"):
        WholeBodyTask.of(body, load_robot("hrp2", "fixed"))


def test_the_command_and_a_library_write_the_same_motion(robot, tmp_path, capsys):
    """One pipeline: bytes of the library's file are those of the command's, and its motion that of the function."""
    body = load_body_points("gentle_dance")
    assert (
        main(
            [
                "retarget",
                "gentle_dance",
                "--robot",
                "hrp2",
                "--whole-body",
                "--speed",
                "8",
                "-o",
                str(tmp_path / "a.npz"),
            ]
        )
        == 0
    )
    settings = LibrarySettings(whole_body=True, speed=8.0)
    job = library_jobs([LibraryClip("gentle_dance", "")], [WorkerRobot.of("hrp2")], settings)[0][0]
    outcome = do_job(job)
    (tmp_path / "b.npz").write_bytes(outcome.content)
    by_command, by_library = (np.load(tmp_path / name) for name in ("a.npz", "b.npz"))
    motion = WholeBodyTask.of(body, robot, 8.0).solve()
    for key in by_command.files:
        np.testing.assert_array_equal(by_command[key], by_library[key])
    np.testing.assert_array_equal(by_command["positions"], motion.trajectory.positions)
    np.testing.assert_array_equal(by_command["targets"], motion.targets.positions)
    agree = 100 * np.mean(np.all(motion.trajectory.contacts == motion.targets.contacts, axis=1))
    assert outcome.record["numbers"]["contacts_agree_percent"] == pytest.approx(agree, abs=1e-3)


def test_directions_of_head_and_hands_are_left_out_with_their_frames(robot):
    targets = WholeBodyTask.of(load_body_points("dance").cropped(100), robot).targets
    pointing = np.random.default_rng(0).normal(size=(100, 3))
    thin = every(replace(targets, directions={"head": pointing}), 3)
    np.testing.assert_array_equal(thin.directions["head"], pointing[::3])
    assert len(thin) == 34 and thin.name == targets.name
