"""Tracking errors: of each link, their histograms, and the frames where they peak."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from humanoid_control.errors import UnknownNameError
from humanoid_control.evaluation.tracking_error import (
    BIN,
    HEIGHT_STEP,
    HEIGHTS,
    LINKS,
    SPREAD_STEP,
    SPREADS,
    describe_peaks,
    error_histogram,
    grade,
    joints_at_limit,
    link_errors,
    peak_frames,
    reached_points,
    shape_name,
    skewness,
    trough_frames,
)
from humanoid_control.retargeting import POINTS, Targets
from humanoid_control.robots import load_robot


@pytest.fixture(scope="module")
def robot():
    return load_robot("we4rii", "fixed")


@pytest.fixture(scope="module")
def joints(robot):
    return np.random.default_rng(3).uniform(robot.lower, robot.upper, (20, robot.n))


def targets_of(points):
    return Targets("made", 50.0, points, np.zeros((len(points), 1, 3)), ("l_hip",))


def test_reached_points_are_where_pinocchio_puts_the_links(robot, joints):
    reached = reached_points(robot, joints)
    data = robot.model.createData()
    for k in (0, 7, 19):
        pin.forwardKinematics(robot.model, data, robot.q(joints[k]))
        for p, name in enumerate(POINTS):
            frame = robot.model.frames[robot.point_frame(name)]
            at = data.oMi[frame.parentJoint].act(frame.placement.translation)
            assert reached[k, p] == pytest.approx(at, abs=1e-12)


def test_error_is_the_distance_whatever_the_direction(robot, joints):
    reached = reached_points(robot, joints)
    rng = np.random.default_rng(4)
    direction = rng.normal(size=reached.shape)
    direction /= np.linalg.norm(direction, axis=2, keepdims=True)
    distance = rng.uniform(0, 0.3, reached.shape[:2])
    errors = link_errors(reached, targets_of(reached + distance[..., None] * direction))
    for k, name in enumerate(POINTS):
        assert errors[name] == pytest.approx(distance[:, k])
    assert errors["mean"] == pytest.approx(distance.sum(axis=1) / 7)
    assert tuple(errors) == LINKS


def test_errors_do_not_change_when_the_world_turns_and_moves(robot, joints):
    reached = reached_points(robot, joints)
    wanted = reached + np.random.default_rng(5).normal(0, 0.1, reached.shape)
    X = pin.SE3(pin.rpy.rpyToMatrix(0.3, -1.0, 2.0), np.array([100.0, -50.0, 3.0]))
    turn = np.vectorize(lambda p: X.act(p), signature="(3)->(3)")
    before, after = link_errors(reached, targets_of(wanted)), link_errors(turn(reached), targets_of(turn(wanted)))
    for name in LINKS:
        assert after[name] == pytest.approx(before[name], abs=1e-9)


errors = st.lists(st.floats(0, 1.5), min_size=1, max_size=200).map(np.array)


@given(errors)
def test_every_frame_is_in_exactly_one_bin(e):
    h = error_histogram(e)
    assert h.counts.sum() == len(e) and len(h.edges) == len(h.counts) + 1
    assert np.diff(h.edges) == pytest.approx(0.02)
    assert h.edges[0] == 0 and h.edges[-1] > e.max() - 1e-12 and h.counts[-1] > 0
    assert h.height == h.counts.max() == h.counts[round(h.mode / 0.02)]


def test_counts_are_numpys():
    e = np.random.default_rng(0).gamma(2.0, 0.03, 3000)
    h = error_histogram(e)
    assert h.counts.tolist() == np.histogram(e, h.edges)[0].tolist()


@given(errors)
def test_skewness_is_scipys(e):
    ours = skewness(e)
    if e.std() < 1e-6:
        assert abs(ours) < 50  # all but equal: rounding decides
    else:
        assert ours == pytest.approx(stats.skew(e), rel=1e-6, abs=1e-6)


def test_equal_errors_have_no_skew_and_no_spread():
    h = error_histogram(np.full(300, 0.05))
    assert (h.skewness, h.spread, h.shape, h.spread_grade) == (0.0, 0.0, "almost symmetrical", "very low")
    assert (h.mode, h.height, h.height_share, h.height_grade) == (pytest.approx(0.04), 300, 1.0, "very low")


@pytest.mark.parametrize(
    ("skew", "name"),
    [
        (0.0, "almost symmetrical"),
        (-0.2, "almost symmetrical"),
        (0.3, "slight right skew"),
        (0.7, "right skew"),
        (1.0, "distinct right skew"),
        (9.0, "distinct right skew"),
        (-0.7, "left skew"),
    ],
)
def test_a_shape_is_named_by_its_skewness(skew, name):
    assert shape_name(skew) == name


def test_mirrored_errors_lean_to_the_other_side():
    e = np.random.default_rng(1).gamma(2.0, 0.03, 2000)
    assert error_histogram(e).shape == "distinct right skew"
    assert error_histogram(e.max() - e).shape == "distinct left skew"


def test_grades_of_spread_go_in_steps_of_10_cm_and_of_height_in_200_frames():
    assert [grade(v, SPREAD_STEP, SPREADS) for v in (0, 0.09, 0.15, 0.25, 0.35, 0.45, 0.55, 3)] == [
        "very low",
        "very low",
        "low",
        "moderate",
        "high",
        "very high",
        "extremely high",
        "extremely high",
    ]
    assert [grade(v, HEIGHT_STEP, HEIGHTS) for v in (0, 199, 200, 400, 600, 999, 1000, 5000)] == [
        "extremely low",
        "extremely low",
        "very low",
        "low",
        "medium",
        "high",
        "very high",
        "very high",
    ]


def test_the_mode_is_an_even_number_of_centimetres():
    h = error_histogram(np.array([0.061, 0.0799, 0.065, 0.2]))
    assert 100 * h.mode == pytest.approx(6) and BIN == 0.02


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
    """Mode 6 cm and left limit 6 cm, as for WABIAN in Dube 2012: M - 2 S lies below every error."""
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
    peaks = describe_peaks(robot, joints, 25.0, e, peak_frames(e))
    assert [(p.frame, p.time, p.error) for p in peaks] == [(70, 2.8, 0.41), (20, 0.8, 0.409)]
    for name, angle in peaks[0].angles.items():
        assert angle == joints[70, robot.joint_index(name)]
    assert len(peaks[0].angles) == len(robot.imitation_joints)
