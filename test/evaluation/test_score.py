"""The score as a whole: measured anew, complete, the same for a mirrored dancer."""

import dataclasses

import numpy as np
import pytest

from humanoid_control.evaluation.score import score_clip, score_trajectories
from humanoid_control.evaluation.tracking_error import LINKS
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import RetargetSettings, retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(6, 14))


@pytest.fixture(scope="module")
def robot():
    return load_robot("suralp", "fixed")


@pytest.fixture(scope="module")
def targets(body, robot):
    return scale_to_robot(body, robot)


@pytest.fixture(scope="module")
def scored(robot, targets):
    runs = [
        ("two steps", retarget_clip(targets, robot)),
        ("one", retarget_clip(targets, robot, RetargetSettings(iterations=1))),
    ]
    return score_trajectories(robot, targets, runs), runs


def test_every_run_has_everything_for_every_link(scored, targets, robot):
    s, _ = scored
    assert [r.label for r in s.runs] == ["two steps", "one"] and s.n_frames == len(targets)
    for r in s.runs:
        assert tuple(r.links) == LINKS
        for name, link in r.links.items():
            e = r.frames.errors[name]
            assert (link.mean, link.std, link.min, link.max) == pytest.approx((e.mean(), e.std(), e.min(), e.max()))
            assert link.histogram.counts.sum() == len(targets)
            assert link.troughs, "the smallest error is always a trough"
        assert len(r.joints) == len(robot.imitation_joints)
        assert len(r.frames.penetration) == len(r.frames.quality.jerk) == len(targets)
        assert r.collisions.frames == len(targets)


def test_errors_of_a_good_solver_are_those_it_reports(scored):
    s, runs = scored
    for r, (_, trajectory) in zip(s.runs, runs, strict=True):
        measured = np.stack([r.frames.errors[name] for name in LINKS[:7]], axis=1)
        assert measured == pytest.approx(trajectory.errors, abs=1e-12)


def test_a_solver_that_lies_about_its_errors_is_found_out(robot, targets):
    honest = retarget_clip(targets, robot)
    liar = dataclasses.replace(honest, errors=np.zeros_like(honest.errors), saturated=np.zeros_like(honest.saturated))
    a, b = score_trajectories(robot, targets, [("honest", honest), ("liar", liar)]).runs
    assert a.links["mean"].mean == b.links["mean"].mean > 0.005
    assert a.quality.frames_at_speed_limit == b.quality.frames_at_speed_limit


def test_longer_joint_speeds_lower_the_error(robot, targets):
    slow, fast = (retarget_clip(targets, robot, RetargetSettings(velocity_scale=v)) for v in (0.3, 10.0))
    a, b = score_trajectories(robot, targets, [("slow", slow), ("fast", fast)]).runs
    assert a.links["mean"].mean > b.links["mean"].mean
    assert a.quality.speed.max < b.quality.speed.max
    assert b.quality.speed_share > 1, "the limit counts, whatever the solver was allowed"


def test_shoulders_near_their_singularity_are_reported(robot, targets):
    solved = retarget_clip(targets, robot)
    for side in "lr":
        k = robot.joint_index(f"{side}_shoulder_abduction")
        solved.positions[100:120, k] = np.radians(85 if side == "l" else 60)
        solved.positions[:100, k] = solved.positions[120:, k] = 0.0
    (run,) = score_trajectories(robot, targets, [("made", solved)]).runs
    assert run.frames.singularity[110, 0] < run.frames.singularity[110, 1] < run.frames.singularity[0, 1]
    assert run.singularity.smallest == run.frames.singularity.min()
    assert run.singularity.share_near == pytest.approx(np.mean((run.frames.singularity < 0.2).any(axis=1)))


def test_progress_runs_from_nothing_to_all_and_never_back(body, robot):
    shares, variants = [], [("one", RetargetSettings(iterations=1)), ("two", RetargetSettings(iterations=2))]
    score_clip(body, robot, variants, progress=shares.append)
    assert shares == sorted(shares) and 0.0 < shares[0] < 0.2 and shares[-1] == pytest.approx(1.0)
    solving = [share for share in shares if share < 0.8]
    assert 0.4 < max(solving) <= 0.5 and len(set(solving)) > 4
