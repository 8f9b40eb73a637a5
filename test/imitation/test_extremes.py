"""Peaks and troughs against the printed rules, applied one frame after the other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from humanoid_control.errors import UnknownNameError
from humanoid_control.evaluation.tracking_error import describe, joints_at_limit, peak_frames, trough_frames
from humanoid_control.robots import load_robot

series = st.lists(st.integers(0, 1000), min_size=2, max_size=120).map(lambda mm: np.array(mm) / 1000)


def frames_of(runs):
    return {k for _, first, last in runs for k in range(first, last + 1)}


@given(series)
def test_peaks_are_the_frames_of_6_1_and_6_2(e):
    m, s, top = np.mean(e), np.std(e), np.max(e)
    assert frames_of(peak_frames(e)) == {k for k, p in enumerate(e) if p > m + 2 * s and p > top - 0.2 * s}


@given(series)
def test_troughs_by_the_printed_rule_are_the_frames_of_6_3_and_6_4(e):
    m, s, low = np.mean(e), np.std(e), np.min(e)
    second = {k for k, t in enumerate(e) if t < low + 0.2 * s and np.ptp(e) > 0}
    assert frames_of(trough_frames(e, "limit")) == second
    assert frames_of(trough_frames(e, "both")) == {k for k in second if e[k] < m - 2 * s}


@given(series)
def test_the_automatic_rule_is_the_printed_one_where_that_finds_any(e):
    printed = trough_frames(e, "both")
    assert trough_frames(e, "auto") == (printed or trough_frames(e, "limit"))


def test_skewed_errors_have_troughs_only_by_the_second_rule():
    """Mode 6 cm and left limit 6 cm, as for the source's WABIAN: M - 2 S lies below every error."""
    e = 0.06 + np.random.default_rng(0).exponential(0.02, 2000)
    assert e.mean() - 2 * e.std() < e.min()
    assert trough_frames(e, "both") == []
    assert frames_of(trough_frames(e, "auto")) == set(np.flatnonzero(e < e.min() + 0.2 * e.std()))


def test_a_run_of_frames_is_one_peak_told_by_its_highest_frame():
    e = np.full(200, 0.05)
    e[50:54] = [0.305, 0.31, 0.309, 0.305]
    e[120] = 0.307
    assert peak_frames(e) == [(51, 50, 53), (120, 120, 120)]


def test_equal_errors_have_neither_peak_nor_trough():
    e = np.full(50, 0.1)
    assert peak_frames(e) == [] and trough_frames(e) == []


def test_an_unknown_rule_is_refused_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean both"):
        trough_frames(np.arange(5.0), "boht")


def test_joints_within_one_degree_of_a_limit_are_named():
    robot = load_robot("armar3", "fixed")
    joints = robot.postures["neutral"].copy()
    for name, offset in (("waist_flexion", -0.9), ("waist_rotation", -1.1)):
        k = robot.joint_index(name)
        joints[k] = robot.upper[k] + np.radians(offset)
    k = robot.joint_index("l_elbow_flexion")
    joints[k] = robot.lower[k]
    at = joints_at_limit(robot, joints)
    assert at["waist_flexion"] == "upper" and at["l_elbow_flexion"] == "lower" and "waist_rotation" not in at


def test_joints_that_imitation_does_not_move_are_not_told():
    robot = load_robot("hrp2", "fixed")
    joints = robot.postures["neutral"].copy()
    k = robot.joint_index("l_knee_flexion")
    joints[k] = robot.upper[k]
    assert "l_knee_flexion" not in joints_at_limit(robot, joints)


def test_extremes_carry_time_error_and_the_angles_there_worst_first():
    robot = load_robot("suralp", "fixed")
    rng = np.random.default_rng(1)
    joints = rng.uniform(robot.lower, robot.upper, (100, robot.n))
    e = np.full(100, 0.05)
    e[20], e[70] = 0.409, 0.41
    peaks = describe(robot, joints, 25.0, e, peak_frames(e))
    assert [(p.frame, p.time, p.error) for p in peaks] == [(70, 2.8, 0.41), (20, 0.8, 0.409)]
    for name, angle in peaks[0].angles.items():
        assert angle == joints[70, robot.joint_index(name)]
    assert len(peaks[0].angles) == len(robot.imitation_joints)
