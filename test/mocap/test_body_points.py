"""Body points: the same person from any markers, without gaps, upright on the floor, facing +x, never mirrored."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import MarkerClip, find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.body_points import find_placement, upright
from humanoid_control.mocap.marker_sets import OPTIONAL, REQUIRED, BodyLocator

WHOLE_BODY = (
    "dance_markers/dance1.trc",
    "dance_markers/walk1.trc",
    "dance_markers/btk_T_pose.trc",
    "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
    "vicon_c3d/PiG_Calibration-FlatFoot-Full.c3d",
    "cmu_bvh/02_01.bvh",
    "cmu_bvh/02_05.bvh",
    "cmu_bvh/05_02.bvh",
    "cmu_bvh/07_01.bvh",
    "cmu_asf/11_01.amc",
)
ALL = (*WHOLE_BODY, "vicon_c3d/shd01.c3d")

DANCE = synthetic_dance(duration=12, rate=10)
POINTS = find_body_points(DANCE)
MIRRORED = {"l": "r", "r": "l"}


@pytest.fixture(scope="module")
def real_points(mocap):
    """Return a function that gives the body points of a real clip, calculated once."""
    known = {}

    def find(relative):
        if relative not in known:
            known[relative] = find_body_points(load_clip(mocap(relative)))
        return known[relative]

    return find


def length(points, a, b):
    """(T,) distance of two points [m]."""
    return np.linalg.norm(points.point(a) - points.point(b), axis=1)


# Plausible length of each segment [m], and how much it may vary in time (standard deviation, share of the mean).
SEGMENTS = {
    ("shoulder", "elbow"): ((0.26, 0.37), 0.04),
    ("elbow", "wrist"): ((0.20, 0.31), 0.04),
    ("hip", "knee"): ((0.33, 0.48), 0.04),
    ("knee", "ankle"): ((0.35, 0.48), 0.04),
}


SEGMENT_CASES = [
    (relative, segment) for relative in ALL for segment in SEGMENTS if relative in WHOLE_BODY or "elbow" in segment
]


@pytest.mark.parametrize(("relative", "segment"), SEGMENT_CASES)
def test_segments_are_those_of_a_person(real_points, relative, segment):
    points = real_points(relative)
    (low, high), spread = SEGMENTS[segment]
    if relative.startswith("cmu_bvh") and segment == ("elbow", "wrist"):
        low = 0.13  # the conversion of that database lost a third of the forearm
    left, right = (length(points, f"{side}_{segment[0]}", f"{side}_{segment[1]}") for side in "lr")
    for values in (left, right):
        assert low < values.mean() < high
        assert values.std() < spread * values.mean()
    assert abs(left.mean() / right.mean() - 1) < 0.15


@pytest.mark.parametrize("relative", ALL)
def test_hips_and_trunk_are_those_of_a_person(real_points, relative):
    points = real_points(relative)
    hips = length(points, "l_hip", "r_hip")
    assert 0.13 < hips.mean() < 0.22
    assert hips.std() < 0.01
    spine = np.linalg.norm(points.point("sternum") - points.mid_hip, axis=1)
    assert 0.30 < spine.mean() < 0.55
    assert spine.std() < 0.05 * spine.mean()
    shoulders = length(points, "l_shoulder", "r_shoulder")
    assert 0.25 < shoulders.mean() < 0.45


@pytest.mark.parametrize("relative", WHOLE_BODY)
def test_feet_are_those_of_a_person(real_points, relative):
    for side in "lr":
        foot = length(real_points(relative), f"{side}_ankle", f"{side}_toe")
        assert 0.08 < foot.mean() < 0.22
        assert foot.std() < 0.03


@pytest.mark.parametrize("relative", ALL)
def test_real_clips_have_no_gaps_left_and_stand_on_the_floor(real_points, relative):
    points = real_points(relative)
    assert set(REQUIRED) <= set(points.names) <= set(REQUIRED + OPTIONAL)
    assert points.positions.shape == (points.n_frames, len(points.names), 3)
    assert np.isfinite(points.positions).all()
    if "l_toe" in points.names:
        assert -0.02 < points.positions[..., 2].min() < 0.02
        assert 1.2 < points.positions[..., 2].max() < 2.2
    assert abs(points.heading[0]) < 0.3
    assert not any("backward" in warning for warning in points.warnings)


def test_share_of_filled_samples_is_reported(real_points):
    points = real_points("dance_markers/walk1.trc")
    share = dict(zip(points.names, points.missing, strict=True))
    assert share["r_shoulder"] == pytest.approx(16 / 351)
    assert share["head"] == pytest.approx(11 / 351)
    assert share["l_elbow"] == 0.0


def test_first_body_points_of_the_dance_by_hand(mocap):
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    points = find_body_points(clip)
    wrist = (clip.marker("Radius_L") + clip.marker("Ulna_L")) / 2
    # A rigid motion keeps distances between averages of markers.
    expected = np.linalg.norm(clip.marker("Elbow_L") - wrist, axis=1)
    np.testing.assert_allclose(length(points, "l_elbow", "l_wrist"), expected, atol=1e-12)


def test_walker_turns_round(real_points):
    heading = real_points("dance_markers/walk1.trc").heading
    assert np.degrees(heading[-1] - heading[0]) == pytest.approx(180, abs=15)


def test_heading_has_no_jumps_over_a_full_turn(real_points):
    heading = real_points("cmu_bvh/05_02.bvh").heading
    assert np.degrees(np.ptp(heading)) == pytest.approx(360, abs=30)
    assert np.abs(np.diff(heading)).max() < 0.2


def test_times_and_names():
    assert POINTS.duration == pytest.approx(12.0)
    np.testing.assert_allclose(POINTS.times[[0, -1]], [0.0, 12.0])
    with pytest.raises(UnknownNameError, match="l_elbow"):
        POINTS.point("l_elbw")
    with pytest.raises(ValueError, match="read-only"):
        POINTS.positions[0] = 0.0


def test_pelvis_frame_sits_between_the_hips():
    inside = dict(zip(POINTS.names, POINTS.in_pelvis().swapaxes(0, 1), strict=True))
    np.testing.assert_allclose(inside["l_hip"], -inside["r_hip"], atol=1e-12)
    np.testing.assert_allclose(inside["l_hip"][:, 0], 0.0, atol=1e-12)
    assert (inside["l_hip"][:, 1] > 0.05).all()
    np.testing.assert_allclose(
        inside["sternum"][:, 2], POINTS.point("sternum")[:, 2] - POINTS.mid_hip[:, 2], atol=1e-12
    )


@settings(max_examples=30)
@given(
    yaw=st.floats(-np.pi, np.pi),
    shift=st.tuples(*[st.floats(-100, 100)] * 3),
)
def test_pelvis_frame_does_not_depend_on_place_and_heading(yaw, shift):
    c, s = np.cos(yaw), np.sin(yaw)
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    moved = MarkerClip("moved", DANCE.labels, DANCE.rate, DANCE.positions @ R.T + shift, "test")
    np.testing.assert_allclose(find_body_points(moved).in_pelvis(), POINTS.in_pelvis(), atol=1e-9)
    np.testing.assert_allclose(find_body_points(moved).heading, POINTS.heading, atol=1e-9)


@settings(max_examples=10)
@given(seed=st.integers(1, 10_000))
def test_mirrored_person_gives_mirrored_points(seed):
    clip = synthetic_dance(duration=12, rate=5, seed=seed)
    swapped = [f"{label[:-2]}_{MIRRORED[label[-1].lower()].upper()}" if label[-2:] in ("_L", "_R") else label
               for label in clip.labels]  # fmt: skip
    mirrored = MarkerClip("mirror", tuple(swapped), clip.rate, clip.positions * [1, -1, 1], "test")
    here, there = find_body_points(clip), find_body_points(mirrored)
    inside = dict(zip(there.names, there.in_pelvis().swapaxes(0, 1), strict=True))
    for name, path in zip(here.names, here.in_pelvis().swapaxes(0, 1), strict=True):
        twin = f"{MIRRORED[name[0]]}{name[1:]}" if name[1] == "_" else name
        np.testing.assert_allclose(inside[twin], path * [1, -1, 1], atol=1e-9)
    np.testing.assert_allclose(there.heading, -here.heading, atol=1e-9)


def hidden(label, frames, clip=DANCE):
    positions = np.array(clip.positions)
    positions[frames, clip.index(label)] = np.nan
    return MarkerClip("gaps", clip.labels, clip.rate, positions, "file.c3d")


def test_short_gap_is_filled_and_counted():
    points = find_body_points(hidden("Wrist_L", slice(40, 45)))
    assert points.missing[points.names.index("l_wrist")] == pytest.approx(5 / DANCE.n_frames)
    assert points.missing.sum() == pytest.approx(5 / DANCE.n_frames)
    np.testing.assert_allclose(points.point("r_wrist"), POINTS.point("r_wrist"), atol=1e-12)
    assert np.abs(points.point("l_wrist") - POINTS.point("l_wrist")).max() > 0


def test_long_gap_of_a_required_point_is_an_error_with_point_and_label():
    with pytest.raises(ClipError) as caught:
        find_body_points(hidden("Wrist_L", slice(40, 46)))
    assert "l_wrist (from Wrist_L) is hidden for 0.60 s, longer than 0.5 s" in str(caught.value)
    assert "file.c3d" in str(caught.value)
    find_body_points(hidden("Wrist_L", slice(40, 46)), max_gap=0.6)


def test_long_gap_of_an_optional_point_leaves_it_out_with_a_warning():
    points = find_body_points(hidden("Forehead", slice(40, 60)))
    assert "head" not in points.names and "l_knee" in points.names
    assert any("head (from Forehead, Chin)" in w for w in points.warnings)


def test_marker_set_may_be_named():
    np.testing.assert_array_equal(find_body_points(DANCE, "dance16").positions, POINTS.positions)
    with pytest.raises(ClipError, match="plug_in_gait"):
        find_body_points(DANCE, "plug_in_gait")


def test_a_handstand_is_one_where_the_file_says_what_is_up():
    """Told which axis is up, a person who is upside down stays so; untold, the feet are below, with a note."""
    turned = MarkerClip("turned", DANCE.labels, DANCE.rate, DANCE.positions * [1, -1, -1], "test")
    head = find_body_points(replace(turned, up="+z")).point("sternum")[:, 2]
    assert (head < find_body_points(replace(turned, up="+z")).mid_hip[:, 2]).mean() > 0.9
    assert (find_body_points(turned).point("sternum")[:, 2] > find_body_points(turned).mid_hip[:, 2]).mean() > 0.9
    assert (find_body_points(replace(turned, up="-z")).positions == find_body_points(turned).positions).all()
    assert any("up is -z, guessed from the posture" in w for w in find_body_points(turned).warnings)
    note = find_body_points(replace(turned, up="+z")).warnings[0]
    assert note.startswith("up is +z, as the file states; most of the time the body is along -z") and "--up -z" in note
    assert find_body_points(replace(turned, up="+z", up_told=True)).warnings[:1] != (note,)


def test_a_posture_that_does_not_tell_what_is_up_asks_the_user():
    """A person who leans by 45 degrees all the time: no axis of the file is more likely than another."""
    c = np.sqrt(0.5)
    R = np.array([[1, 0, 0], [0, c, -c], [0, c, c]])
    leaning = MarkerClip("leaning", DANCE.labels, DANCE.rate, DANCE.positions @ R.T, "test")
    with pytest.raises(ClipError, match=r"neither stated in the file nor clear from the posture.*--up z"):
        find_body_points(leaning)
    assert find_body_points(replace(leaning, up="+z")).names


def test_swapped_sides_are_noticed():
    # Left-handed axes, as some game engines write them: everything is there, but the person walks backwards.
    mirrored = MarkerClip("mirror", DANCE.labels, DANCE.rate, DANCE.positions * [1, -1, 1], "test")
    assert "backward" in find_body_points(mirrored).warnings[-1]
    assert POINTS.warnings == ()


UPRIGHT = upright(DANCE)

# The 24 ways to lay a right-handed frame along the axes of another.
TURNS = [
    np.diag(signs)[list(order)]
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1, -1), repeat=3)
    if np.linalg.det(np.diag(signs)[list(order)]) > 0
]


def turned(clip, R, p=(0.0, 0.0, 0.0)):
    return MarkerClip(clip.name, clip.labels, clip.rate, clip.positions @ np.asarray(R).T + p, "test")


def placement_of(clip):
    return find_placement(BodyLocator(clip).locate(), clip.rate, "clip")


def yaw(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


@pytest.mark.parametrize("R", TURNS, ids=range(len(TURNS)))
def test_every_axis_convention_gives_the_same_result(R):
    np.testing.assert_allclose(upright(turned(DANCE, R, (3, -7, 12))).positions, UPRIGHT.positions, atol=1e-9)


@pytest.mark.parametrize("angle", [0.3, 1.6, -2.9])
def test_heading_and_place_in_the_laboratory_do_not_matter(angle):
    np.testing.assert_allclose(upright(turned(DANCE, yaw(angle), (5, -2, 0.7))).positions, UPRIGHT.positions, atol=1e-9)


@pytest.mark.parametrize(
    "relative",
    ["dance_markers/dance1.trc", "dance_markers/btk_T_pose.trc", "cmu_bvh/05_02.bvh", "cmu_bvh/02_01.bvh",
     "vicon_c3d/PiG_Motion-FlatFoot-One.c3d", "vicon_c3d/shd01.c3d"],
)  # fmt: skip
def test_real_clips_stand_upright_and_face_forward(mocap, relative):
    clip = load_clip(mocap(relative))
    placement = placement_of(clip)
    assert np.linalg.det(placement.R_WF) == pytest.approx(1.0)
    np.testing.assert_allclose(placement.R_WF @ placement.R_WF.T, np.eye(3), atol=1e-12)
    points = {name: placement.apply(path) for name, path in BodyLocator(clip).locate().items()}
    start = slice(0, round(0.5 * clip.rate))
    left = (points["l_hip"] - points["r_hip"])[start].mean(axis=0)
    assert left[0] == pytest.approx(0.0, abs=1e-9)
    assert left[1] > 0.1
    shoulders, hips = (
        (points[f"l_{part}"] + points[f"r_{part}"])[start].mean(axis=0) / 2 for part in ("shoulder", "hip")
    )
    assert shoulders[2] - hips[2] > 0.2
    if not relative.startswith("cmu_bvh"):  # where the sternum is a point between the shoulders
        assert points["sternum"][start, 0].mean() > shoulders[0] + 0.03
    np.testing.assert_allclose(hips[:2], 0.0, atol=1e-9)
    if "l_toe" in points:
        toes = np.concatenate([points["l_toe"], points["r_toe"]])
        assert -0.02 < toes[:, 2].min() < 0.02
        assert np.median(toes[:, 2]) < 0.25
    else:
        assert points["l_hip"][0, 2] == pytest.approx(clip.marker(clip.labels[25])[0, 2], abs=0.15)  # height is kept


def test_person_with_arms_spread_wider_than_tall_is_not_laid_down():
    # 2.2 m from hand to hand: the longest side of the box round the body is horizontal.
    positions = np.array(DANCE.positions)
    for side, sign in (("L", 1), ("R", -1)):
        positions[:, DANCE.index(f"Wrist_{side}")] = [0.0, sign * 1.1, 1.4]
    spread = MarkerClip("T", DANCE.labels, DANCE.rate, positions, "test")
    assert placement_of(spread).R_WF[2].tolist() == [0, 0, 1]


def test_one_stray_sample_below_the_floor_does_not_lift_the_person():
    positions = np.array(DANCE.positions)
    positions[50, DANCE.index("Foot_L"), 2] = -1.0
    stray = upright(MarkerClip("stray", DANCE.labels, DANCE.rate, positions, "test"))
    np.testing.assert_allclose(stray.marker("Chin"), UPRIGHT.marker("Chin"), atol=0.005)


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_a_marker_of_a_foot_that_has_come_off_does_not_lift_the_person(share):
    positions = np.array(DANCE.positions)
    positions[: round(share * len(positions)), DANCE.index("Foot_L"), 2] -= 0.5
    off = MarkerClip("off", DANCE.labels, DANCE.rate, positions, "test")
    np.testing.assert_allclose(upright(off).marker("Chin"), UPRIGHT.marker("Chin"), atol=0.02)
    assert any("l_toe (from Foot_L) lies too far below" in w for w in find_body_points(off).warnings)
    assert not any("too far below" in w for w in find_body_points(DANCE).warnings)


def test_of_four_points_of_the_feet_one_alone_does_not_show_the_floor():
    still = np.zeros((50, 3))
    points = {"l_hip": still + [0, 0.1, 0.9], "r_hip": still + [0, -0.1, 0.9]}
    points |= {f"{s}_shoulder": still + [0, y, 1.4] for s, y in (("l", 0.2), ("r", -0.2))}
    points |= {
        f"{s}_{end}": still + [x, y, 0.02]
        for s, y in (("l", 0.1), ("r", -0.1))
        for end, x in (("toe", 0.2), ("heel", 0))
    }
    points |= {"l_ankle": still + [0, 0.1, 0.1], "r_ankle": still + [0, -0.1, 0.1]}
    right = find_placement(points, 100.0, "made").p_WF[2]
    assert right == pytest.approx(-0.02)
    low = points | {"r_heel": points["r_heel"] - [0, 0, 0.15]}
    assert find_placement(low, 100.0, "made").p_WF[2] == pytest.approx(right)
    step = {k: v - np.array([0, 0, 0.2 * (k in ("r_heel", "r_toe", "r_ankle"))]) for k, v in points.items()}
    assert find_placement(step, 100.0, "made").p_WF[2] == pytest.approx(right + 0.2), "a foot a step lower is the floor"


def test_without_toes_the_ankles_are_on_the_floor():
    ankles = [label for label in DANCE.labels if not label.startswith("Foot")]
    clip = upright(DANCE.select(ankles))
    assert clip.marker("Ankle_L")[:, 2].min() == pytest.approx(0.0, abs=0.002)


def test_missing_markers_do_not_disturb():
    positions = np.array(DANCE.positions)
    positions[:3, DANCE.index("Hip_L")] = np.nan
    positions[20:30, DANCE.index("GH_R")] = np.nan
    clip = upright(MarkerClip("gaps", DANCE.labels, DANCE.rate, positions, "test"))
    np.testing.assert_allclose(clip.marker("Chin"), UPRIGHT.marker("Chin"), atol=0.02)
    assert np.isnan(clip.marker("Hip_L")[:3]).all()


def test_flat_recording_is_refused():
    positions = np.array(DANCE.positions)
    positions[..., 1] = 0.0
    with pytest.raises(ClipError, match="three dimensions"):
        upright(MarkerClip("flat", DANCE.labels, DANCE.rate, positions, "test"))


def test_shoulders_in_the_ankles_are_refused():
    positions = np.array(DANCE.positions)
    for side in "LR":
        positions[:, DANCE.index(f"GH_{side}")] = positions[:, DANCE.index(f"Ankle_{side}")]
    with pytest.raises(ClipError, match="not above the ankles"):
        upright(MarkerClip("bad", DANCE.labels, DANCE.rate, positions, "test"))
