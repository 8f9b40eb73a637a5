"""Axes: whatever way a recording stands, the person ends upright on the floor, facing +x, and never mirrored."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import MarkerClip, load_clip, synthetic_dance
from humanoid_control.mocap.body_points import find_placement, upright
from humanoid_control.mocap.marker_sets import BodyLocator

DANCE = synthetic_dance(duration=12, rate=10)
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
