"""Marker sets: the file is checked word by word, the best set is chosen, joint centres follow their regressions."""

from __future__ import annotations

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import MarkerClip, load_clip, synthetic_dance
from humanoid_control.mocap.marker_sets import (
    ESTIMATED,
    MARKER_SETS,
    OPTIONAL,
    REQUIRED,
    WRIST_SIDES,
    BodyLocator,
    builtin_marker_set,
    hip_centre,
    read_marker_set,
    shoulder_centre,
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
    assert set(locator.points) == set(REQUIRED + OPTIONAL) - {
        "l_heel",
        "r_heel",
        "head_front",
        "l_hand",
        "r_hand",
        *WRIST_SIDES,
    }
    np.testing.assert_array_equal(locator.locate()["l_elbow"], DANCE.marker("Elbow_L"))
    np.testing.assert_allclose(locator.locate()["head"], (DANCE.marker("Forehead") + DANCE.marker("Chin")) / 2)


@pytest.mark.parametrize("name", MARKER_SETS)
def test_every_built_in_set_can_be_read_and_gives_both_sides_alike(name):
    points = set(builtin_marker_set(name).points)
    assert set(REQUIRED) - set(ESTIMATED) <= points <= set(REQUIRED + OPTIONAL)
    assert {p[2:] for p in points if p.startswith("l_")} == {p[2:] for p in points if p.startswith("r_")}


@pytest.mark.parametrize("change", [str.upper, str.lower, "Anna:{}".format, "lab:Anna:{}".format, "{} ".format])
def test_case_and_subject_do_not_matter(change):
    located = BodyLocator(relabelled(change)).locate()
    np.testing.assert_array_equal(located["r_wrist"], DANCE.marker("Wrist_R"))


def test_upper_body_alone_is_enough(mocap):
    locator = BodyLocator(load_clip(mocap("vicon_c3d/shd01.c3d")))
    assert set(locator.points) == {*REQUIRED, "head", "head_front", "l_hand", "r_hand", *WRIST_SIDES}


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


GOOD = {"points": {point: [point.upper()] for point in REQUIRED}}


def write(tmp_path, content):
    path = tmp_path / "set.yaml"
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return path


def changed(**points):
    return {"points": {**GOOD["points"], **points}}


def test_lists_and_alternatives(tmp_path):
    content = changed(head=[["A", "B"], ["C"]])
    found = read_marker_set(write(tmp_path, content), "mine")
    assert found.name == "mine"
    assert found.points["head"].inputs == {"head": (("A", "B"), ("C",))}
    assert found.points["l_hip"].inputs == {"l_hip": (("L_HIP",),)}
    assert found.points["l_hip"].function is None


def test_rules_get_their_landmarks_and_side(tmp_path):
    content = changed(l_hip={"rule": "hip_centre"}, r_hip={"rule": "hip_centre"})
    content["landmarks"] = {"l_asis": ["A"], "r_asis": ["B"], "mid_psis": [["C", "D"], ["E"]]}
    found = read_marker_set(write(tmp_path, content), "mine")
    assert found.points["l_hip"].inputs == {"l_asis": (("A",),), "r_asis": (("B",),), "mid_psis": (("C", "D"), ("E",))}
    assert (found.points["l_hip"].side, found.points["r_hip"].side) == (1, -1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("points: [", "not valid YAML"),
        ("", "needs a mapping 'points'"),
        ("- a\n- b", "needs a mapping 'points'"),
        ("points: 3", "needs a mapping 'points'"),
        ({**GOOD, "point": {}}, "unknown entry 'point'"),
        (changed(l_elbw=["A"]), "did you mean l_elbow"),
        ({"points": {point: ["A"] for point in REQUIRED if point != "l_wrist"}}, "no labels for l_wrist"),
        (changed(l_elbow="LELB"), "expected a list of labels"),
        (changed(l_elbow=[]), "expected a list of labels"),
        (changed(l_elbow=[3]), "expected a list of labels"),
        (changed(l_elbow=[["A"], "B"]), "expected a list of labels"),
        (changed(l_elbow=None), "expected a list of labels"),
        (changed(l_hip={"rule": "hip"}), "hip_centre or shoulder_centre"),
        (changed(l_hip={"rule": ["hip_centre"]}), "hip_centre or shoulder_centre"),
        (changed(l_hip={"rule": "hip_centre"}), "needs the landmark(s) l_asis, r_asis, mid_psis"),
        ({**GOOD, "landmarks": {"left_asis": ["A"]}}, "'left_asis' is unknown"),
        ({**GOOD, "landmarks": ["l_asis"]}, "landmark"),
    ],
)
def test_mistake_is_named_in_one_line(tmp_path, content, says):
    with pytest.raises(ClipError) as caught:
        read_marker_set(write(tmp_path, content), "mine")
    assert says in str(caught.value)
    assert str(caught.value).startswith("marker set mine")
    assert str(caught.value).isprintable()


def test_file_that_is_not_there(tmp_path):
    with pytest.raises(ClipError, match="cannot be read"):
        read_marker_set(tmp_path / "none.yaml", "mine")


def test_file_that_is_no_text(tmp_path):
    path = tmp_path / "set.yaml"
    path.write_bytes(b"\xff\xfe\x00points")
    with pytest.raises(ClipError, match="not valid YAML"):
        read_marker_set(path, "mine")


PELVIS = {  # 0.24 m wide, 0.16 m deep, facing +x, level
    "l_asis": np.array([[0.10, 0.12, 1.0]]),
    "r_asis": np.array([[0.10, -0.12, 1.0]]),
    "mid_psis": np.array([[-0.06, 0.0, 1.0]]),
}
ACROMIA = {"l_acromion": np.array([[0.02, 0.2, 1.5]]), "r_acromion": np.array([[0.02, -0.2, 1.5]])}


@pytest.mark.parametrize("side", [1, -1])
def test_hip_regression_by_hand(side):
    expected = [0.10 - 0.24 * 0.16 - 0.0099, side * (0.33 * 0.24 + 0.0073), 1.0 - 0.30 * 0.24 - 0.0109]
    np.testing.assert_allclose(hip_centre(side, **PELVIS), [expected], atol=1e-12)


def test_shoulder_by_hand():
    # Straight down: the middle of the pelvis is under the middle of the acromia.
    np.testing.assert_allclose(shoulder_centre(1, **ACROMIA, **PELVIS), [[0.02, 0.2, 1.5 - 0.17 * 0.4]], atol=1e-12)
    np.testing.assert_allclose(shoulder_centre(-1, **ACROMIA, **PELVIS), [[0.02, -0.2, 1.5 - 0.17 * 0.4]], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_centres_move_with_the_markers(seed):
    R = Rotation.from_rotvec(np.random.default_rng(seed).normal(size=3)).as_matrix()
    p = np.random.default_rng(seed).normal(size=3)

    def moved(markers):
        return {name: position @ R.T + p for name, position in markers.items()}

    for side in (1, -1):
        np.testing.assert_allclose(hip_centre(side, **moved(PELVIS)), hip_centre(side, **PELVIS) @ R.T + p, atol=1e-12)
        np.testing.assert_allclose(
            shoulder_centre(side, **moved(ACROMIA), **moved(PELVIS)),
            shoulder_centre(side, **ACROMIA, **PELVIS) @ R.T + p,
            atol=1e-12,
        )


def test_missing_marker_gives_a_missing_centre_in_that_frame_only():
    markers = {name: np.repeat(position, 3, axis=0) for name, position in PELVIS.items()}
    markers["mid_psis"][1] = np.nan
    assert np.isnan(hip_centre(1, **markers)).all(axis=1).tolist() == [False, True, False]


def test_markers_on_one_spot_give_a_number():
    spot = dict.fromkeys(PELVIS, np.ones((2, 3)))
    assert np.isfinite(hip_centre(1, **spot)).all()
