"""Marker sets: which one is chosen, whose labels count as equal, and what is said when none fits."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import MarkerClip, load_clip, synthetic_dance
from humanoid_control.mocap.marker_sets import (
    MARKER_SETS,
    OPTIONAL,
    REQUIRED,
    WRIST_SIDES,
    BodyLocator,
    builtin_marker_set,
)

DANCE = synthetic_dance(duration=12, rate=5)


def relabelled(change, clip=DANCE):
    labels = [change(label) for label in clip.labels]
    keep = [i for i, label in enumerate(labels) if label]
    chosen = tuple(label for label in labels if label)
    return MarkerClip(clip.name, chosen, clip.rate, clip.positions[:, keep], "test")


@pytest.mark.parametrize(
    ("relative", "expected"),
    [
        ("dance_markers/dance1.trc", "dance28"),
        ("dance_markers/walk1.trc", "dance28"),
        ("dance_markers/btk_T_pose.trc", "plug_in_gait"),
        ("vicon_c3d/PiG_Motion-FlatFoot-One.c3d", "plug_in_gait"),
        ("vicon_c3d/shd01.c3d", "plug_in_gait"),
        ("cmu_bvh/02_01.bvh", "cmu_bvh"),
        ("cmu_bvh/05_02.bvh", "cmu_bvh"),
    ],
)
def test_right_set_is_chosen(mocap, relative, expected):
    assert BodyLocator(load_clip(mocap(relative))).marker_set.name == expected


def test_built_in_dance_has_its_set():
    locator = BodyLocator(DANCE)
    assert locator.marker_set.name == "dance16"
    assert set(locator.points) == set(REQUIRED + OPTIONAL) - {"l_heel", "r_heel", *WRIST_SIDES}
    np.testing.assert_array_equal(locator.locate()["l_elbow"], DANCE.marker("Elbow_L"))
    np.testing.assert_allclose(locator.locate()["head"], (DANCE.marker("Forehead") + DANCE.marker("Chin")) / 2)


@pytest.mark.parametrize("name", MARKER_SETS)
def test_every_built_in_set_can_be_read_and_gives_both_sides_alike(name):
    points = set(builtin_marker_set(name).points)
    assert set(REQUIRED) <= points <= set(REQUIRED + OPTIONAL)
    assert {p[2:] for p in points if p.startswith("l_")} == {p[2:] for p in points if p.startswith("r_")}


@pytest.mark.parametrize("change", [str.upper, str.lower, "Anna:{}".format, "lab:Anna:{}".format, "{} ".format])
def test_case_and_subject_do_not_matter(change):
    located = BodyLocator(relabelled(change)).locate()
    np.testing.assert_array_equal(located["r_wrist"], DANCE.marker("Wrist_R"))


def test_upper_body_alone_is_enough(mocap):
    locator = BodyLocator(load_clip(mocap("vicon_c3d/shd01.c3d")))
    assert set(locator.points) == {*REQUIRED, "head", *WRIST_SIDES}


def test_old_pelvis_names_and_the_sacrum_marker(mocap):
    old = BodyLocator(load_clip(mocap("dance_markers/btk_T_pose.trc")))
    assert set(old.labels("l_hip")) == {"LFWT", "RFWT", "LBWT", "RBWT"}
    clip = load_clip(mocap("vicon_c3d/PiG_Calibration-FlatFoot-Full.c3d"))
    positions = np.array(clip.positions)
    positions[:, clip.index("LPSI")] = (clip.marker("LPSI") + clip.marker("RPSI")) / 2
    labels = tuple({"LPSI": "SACR", "RPSI": "other"}.get(label, label) for label in clip.labels)
    sacrum = BodyLocator(MarkerClip("clip", labels, clip.rate, positions, "test"))
    assert set(sacrum.labels("l_hip")) == {"LASI", "RASI", "SACR"}
    np.testing.assert_allclose(sacrum.locate()["l_hip"], BodyLocator(clip).locate()["l_hip"], atol=1e-12)


def test_missing_label_is_named_with_what_it_is_for():
    clip = relabelled(lambda label: None if label == "Wrist_R" else label)
    with pytest.raises(ClipError) as caught:
        BodyLocator(clip)
    assert "no marker set fits, the nearest 'dance16' misses Wrist_R (for r_wrist)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_mistyped_label_is_recognised():
    clip = relabelled(lambda label: label.replace("Elbow_L", "Elbow_Left"))
    with pytest.raises(ClipError, match=r"Elbow_L \(for l_elbow; is it Elbow_Left\?\)"):
        BodyLocator(clip)


def test_every_missing_label_is_named():
    gone = {"GH_L", "GH_R", "Wrist_R"}
    with pytest.raises(ClipError) as caught:
        BodyLocator(relabelled(lambda label: None if label in gone else label))
    assert all(label in str(caught.value) for label in gone)
    assert "Wrist_L" not in str(caught.value)


def test_marker_that_is_never_seen_counts_as_missing():
    positions = np.array(DANCE.positions)
    positions[:, DANCE.index("Hip_R")] = np.nan
    with pytest.raises(ClipError, match="misses Hip_R"):
        BodyLocator(MarkerClip("dance", DANCE.labels, DANCE.rate, positions, "test"))


def test_two_people_are_not_mixed():
    labels = (*(f"Anna:{label}" for label in DANCE.labels), *(f"Ben:{label}" for label in DANCE.labels))
    both = MarkerClip("two", labels, DANCE.rate, np.concatenate([DANCE.positions, DANCE.positions + 1], axis=1), "test")
    with pytest.raises(ClipError, match="several subjects"):
        BodyLocator(both)
    ben = BodyLocator(both.select([label for label in labels if label.startswith("Ben:")]))
    np.testing.assert_allclose(ben.locate()["l_elbow"], DANCE.marker("Elbow_L") + 1)


def test_named_set_must_fit():
    assert BodyLocator(DANCE, "dance16").marker_set.name == "dance16"
    with pytest.raises(ClipError, match="marker set 'cmu_bvh' misses LeftUpLeg"):
        BodyLocator(DANCE, "cmu_bvh")


def test_unknown_set_offers_the_nearest():
    with pytest.raises(UnknownNameError, match="plug_in_gait"):
        BodyLocator(DANCE, "plugin_gait")


def test_own_set_from_a_file(tmp_path):
    lines = [f"  {point}: [Marker_{point}]" for point in REQUIRED]
    (tmp_path / "mine.yaml").write_text("\n".join(["about: mine", "points:", *lines]))
    names = dict(zip(DANCE.labels, DANCE.labels, strict=True))
    names.update(
        {"Hip_L": "Marker_l_hip", "Hip_R": "Marker_r_hip", "Sternum": "Marker_sternum", "GH_L": "Marker_l_shoulder",
         "GH_R": "Marker_r_shoulder", "Elbow_L": "Marker_l_elbow", "Elbow_R": "Marker_r_elbow",
         "Wrist_L": "Marker_l_wrist", "Wrist_R": "Marker_r_wrist"}
    )  # fmt: skip
    clip = relabelled(names.get)
    for path in (tmp_path / "mine.yaml", str(tmp_path / "mine.yaml")):
        locator = BodyLocator(clip, path)
        assert locator.points == REQUIRED
        np.testing.assert_array_equal(locator.locate()["l_elbow"], DANCE.marker("Elbow_L"))
