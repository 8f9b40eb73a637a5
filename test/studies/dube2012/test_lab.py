"""Trials of the study as they are solved, and the motion made for singular shoulders."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidence.studies.dube2012 import FAILS, HOLDS, OPEN, hypotheses, judge_hypotheses
from evidence.studies.dube2012.lab import DUBE2012, RATE, RetargetingLab, singular_motion
from evidence.studies.dube2012.robot_variants import with_locked
from humanoid_control.errors import ClipError
from humanoid_control.evaluation.shoulder_singularity import gh_singularity
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.retargeting import retarget_clip, scale_to_robot
from humanoid_control.robots import load_robot
from test.studies.dube2012.conftest import verdict


@pytest.fixture(scope="module")
def body():
    return find_body_points(load_clip("dance").crop(1.5, 5.5))


@pytest.fixture(scope="module")
def lab(body):
    return RetargetingLab(body)


def test_a_trial_is_the_solution_of_the_variant(lab, body):
    trial = lab.trial("we4rii", "girdle locked", lambda r: with_locked(r, ["girdle"]))
    robot = with_locked(load_robot("we4rii", "fixed"), ["girdle"])
    targets = scale_to_robot(body, robot)
    direct = retarget_clip(targets, robot, DUBE2012)
    assert np.array_equal(trial.joints, direct.positions)
    assert trial.error() == pytest.approx(direct.errors.mean(), rel=1e-9)
    assert trial.error("l_wrist") == pytest.approx(direct.errors[:, 5].mean(), rel=1e-9)
    assert lab.trial("we4rii", "girdle locked") is trial, "solved once"
    assert np.ptp(trial.angles("girdle")) == 0 and trial.angles("girdle").shape[1] == 4


def test_a_locked_girdle_shows_in_the_numbers(body):
    (finding,) = judge_hypotheses([body], ["H2"])
    numbers = finding.parts[0].numbers
    assert numbers["locked [cm]"] > numbers["free [cm]"] > 0
    assert finding.clip == body.name and finding.verdict in (HOLDS, FAILS, OPEN)


def test_ranges_that_no_frame_uses_decide_nothing():
    upright = find_body_points(load_clip("dance").crop(0, 1.5))  # stands still
    findings = {f.hypothesis.name: f.verdict for f in judge_hypotheses([upright], ["H7", "H10", "H12"])}
    assert findings == dict.fromkeys(("H7", "H10", "H12"), OPEN)


@pytest.mark.parametrize(
    ("shares", "expected"), [((1.0, 1.0, 0.95), HOLDS), ((1.0, 0.5, 1.0), OPEN), ((1.0, 0.0, 1.0), FAILS)]
)
def test_the_elliptical_capsule_is_judged_over_sizes(monkeypatch, shares, expected):
    monkeypatch.setattr(hypotheses, "share_of_random_sizes", lambda count: shares)
    assert verdict(hypotheses.H19, {}) == expected


def test_what_needs_no_clip_runs_once(body):
    calls = []
    findings = judge_hypotheses(
        [body, body], ["H13", "H3"], lambda done, total, name: calls.append((done, total, name))
    )
    assert [(f.hypothesis.name, f.clip) for f in findings] == [("H13", ""), ("H3", body.name), ("H3", body.name)]
    assert calls == [(0, 3, "H13"), (1, 3, "H3"), (2, 3, "H3"), (3, 3, "")]


def test_a_clip_that_cannot_be_imitated_leaves_the_question_open(monkeypatch, body):
    def refuse(self, *args, **kwargs):
        raise ClipError("the first posture did not converge")

    monkeypatch.setattr(RetargetingLab, "trial", refuse)
    (finding,) = judge_hypotheses([body], ["H1"])
    assert finding.verdict == OPEN and "did not converge" in finding.reason


def test_the_sternum_is_judged_by_the_published_numbers(mocap):
    body = find_body_points(load_clip(mocap("dance_markers/dance1.trc")))
    (finding,) = judge_hypotheses([body], ["H18"])
    numbers = finding.parts[0].numbers
    assert finding.verdict == (HOLDS if numbers["mean [cm]"] <= 2.125 and numbers["std [cm]"] <= 1.0 else FAILS)


@pytest.mark.parametrize("name", ["armar3", "wabian2"])
def test_the_singular_motion_is_slow_reachable_and_passes_90_degrees(name):
    robot = load_robot(name, "fixed")
    p, length = singular_motion(robot).positions, robot.segment_lengths()
    zero = robot.point_positions(robot.q("zero"), ["sternum", "l_gh", "r_gh"])
    assert np.ptp(p[:, :3], axis=0) == pytest.approx(0) and p[0, :3] == pytest.approx(zero)
    for side, mirror in ((0, 1), (1, -1)):
        upper, fore = p[:, 3 + side] - p[:, 1 + side], p[:, 5 + side] - p[:, 3 + side]
        assert np.linalg.norm(upper, axis=1) == pytest.approx(length["upper_arm"])
        assert np.linalg.norm(fore, axis=1) == pytest.approx(length["lower_arm"])
        assert np.sum(upper * fore, axis=1) == pytest.approx(length["upper_arm"] * length["lower_arm"] / 2)  # 60 deg
        u = upper / length["upper_arm"] * [1, mirror, 1]
        turn = np.degrees(np.arccos(np.clip(np.sum(u[1:] * u[:-1], axis=1), -1, 1))) * RATE
        assert turn.max() < 25
        assert np.abs(u - [0, 1, 0]).sum(axis=1).min() < 1e-6, "straight out to the side"
    assert p[:, 3] * [1, -1, 1] == pytest.approx(p[:, 4], abs=1e-9)


def test_arms_straight_out_are_singular_in_the_sense_of_the_robot():
    robot = load_robot("armar3", "fixed")
    out = robot.from_mapping({f"{s}_shoulder_abduction": np.pi / 2 for s in "lr"}, "zero")
    assert gh_singularity(robot, out) == pytest.approx([0, 0], abs=1e-9)
    assert gh_singularity(robot, robot.postures["zero"]) == pytest.approx([1, 1])


@given(st.lists(st.booleans(), max_size=60))
def test_longest_run_is_the_longest_word_of_ones(bits):
    text = "".join("1" if b else "0" for b in bits)
    found = hypotheses.longest_run(np.array(bits, dtype=bool))
    assert found == max((len(w) for w in re.findall("1+", text)), default=0)
