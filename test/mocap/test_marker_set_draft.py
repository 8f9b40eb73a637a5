"""A drafted marker set: the same people under labels that no set knows give the same body points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import MarkerClip, draft_marker_set, find_body_points, load_clip, write_draft
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.label_words import read_labels
from test.mocap.formats.test_bvh_dialects import CMU, SIDES, bvh

# Other names for the 28 markers of the dance, left and right by {}.
SIDED = {
    "Head_F*": ("{}Forehead", "{}FHD", "Head{}Front", "{}_front_head"),
    "Head_B*": ("{}HeadBack", "{}BHD", "Head{}Back", "{}_back_head"),
    "Shoulder_*": ("{}.Acromion", "{}SHO", "{}ShoulderTop", "{}_acromion"),
    "Hip_F*": ("{}.ASIS", "{}FWT", "Waist{}Front", "{}_asis"),
    "Hip_B*": ("{}.PSIS", "{}BWT", "Waist{}Back", "{}_psis"),
    "Elbow_*": ("{}.Elbow", "{}ELBW", "{}ElbowOut", "{}_lat_elbow"),
    "Radius_*": ("{}.Wrist.Lat", "{}WRR", "{}WristIn", "{}_radial_styloid"),
    "Ulna_*": ("{}.Wrist.Med", "{}WRU", "{}WristOut", "{}_ulnar_styloid"),
    "Finger_*": ("{}.Finger", "{}FIN", "{}HandOut", "{}_hand"),
    "Knee_*": ("{}.Knee", "{}KNL", "{}KneeOut", "{}_knee"),
    "Ankle_*": ("{}.Ankle", "{}MAL", "{}AnkleOut", "{}_ankle"),
    "Pinkie_*": ("{}.Toe5", "{}MT5", "{}ToeOut", "{}_mt5"),
    "BigToe_*": ("{}.Toe", "{}MT1", "{}ToeIn", "{}_toe"),
}
MIDDLE = {"Spine": ("C7", "T10", "BackTop", "c7"), "Sternum": ("STERN", "CHEST", "Chest", "sternum")}
LETTERS = (("L", "R"), ("L", "R"), ("L", "R"), ("left", "right"))
ALWAYS = ("l_hip", "r_hip", "sternum", "l_shoulder", "r_shoulder", "l_elbow", "r_elbow", "l_wrist", "r_wrist", "l_knee",
          "r_knee", "l_ankle", "r_ankle")  # fmt: skip


def convention(k):
    """The labels of the dance in another convention, by their own."""
    names = {label: others[k] for label, others in MIDDLE.items()}
    for label, others in SIDED.items():
        for side, letter in zip("LR", LETTERS[k], strict=True):
            names[label.replace("*", side)] = others[k].format(letter)
    return names


def renamed(clip, names, prefix="", seed=0):
    """The clip under other labels, its markers shuffled."""
    order = np.random.default_rng(seed).permutation(len(clip.labels))
    labels = tuple(prefix + names.get(clip.labels[k], clip.labels[k]) for k in order)
    return replace(clip, labels=labels, positions=clip.positions[:, order])


@pytest.fixture(scope="module")
def dancer(mocap):
    """Three seconds of a dance with 28 markers, and its body points."""
    clip = load_clip(mocap("dance_markers/dance1.trc")).crop(0, 3)
    return clip, find_body_points(clip)


def from_hips(points, name):
    """(T, 3) path of a point from the middle of the hips: which toe marker finds the floor does not count."""
    return points.point(name) - points.mid_hip


def drafted(clip, folder):
    """Draft, and body points found with it."""
    draft, problem = write_draft(clip, folder / "set.yaml")
    assert problem == ""
    return draft, find_body_points(clip, folder / "set.yaml")


@pytest.mark.parametrize("prefix", ["", "Anna:", "Skeleton 001:"])
@pytest.mark.parametrize("k", range(4))
def test_markers_under_any_convention(dancer, tmp_path, k, prefix):
    clip, points = dancer
    draft, found = drafted(renamed(clip, convention(k), prefix, seed=k), tmp_path)
    assert not draft.skeleton and not draft.missing
    for name in ALWAYS:
        np.testing.assert_allclose(from_hips(found, name), from_hips(points, name), atol=1e-9, err_msg=name)
    assert {"head", "l_toe", "r_toe"} <= set(found.names)
    assert not any(entry.weak for name, entry in draft.points.items() if name != "sternum")


def test_label_that_says_nothing_is_found_by_its_bones_and_called_a_guess(dancer, tmp_path):
    clip, points = dancer
    names = convention(0) | {"Elbow_L": "M17", "Radius_L": "M18", "Ulna_L": "M19"}
    draft, found = drafted(renamed(clip, names), tmp_path)
    np.testing.assert_allclose(from_hips(found, "l_elbow"), from_hips(points, "l_elbow"), atol=1e-9)
    assert np.linalg.norm(from_hips(found, "l_wrist") - from_hips(points, "l_wrist"), axis=1).max() < 0.06
    assert {"l_elbow", "l_wrist"} <= {name for name, entry in draft.points.items() if entry.weak}
    assert "GUESS, no name; its bones keep their length" in (tmp_path / "set.yaml").read_text()


@pytest.mark.parametrize("marker", ["Finger_L", "Radius_L"])
def test_a_marker_of_the_hand_is_no_shoulder(dancer, tmp_path, marker):
    """It keeps its distance from the elbow as a shoulder does; without a marker on the shoulder there is none."""
    clip, _ = dancer
    names = convention(0) | {marker: "M5"}
    clip = clip.select(label for label in clip.labels if label != "Shoulder_L")
    draft, problem = write_draft(renamed(clip, names), tmp_path / "set.yaml")
    assert "l_shoulder" in draft.missing and "l_shoulder" in problem
    shoulder = draft.points["r_shoulder"]
    assert shoulder.labels or shoulder.rule == "shoulder_centre"


def test_labels_that_are_left_out_are_said_to_be_missing(dancer, tmp_path):
    clip, _ = dancer
    clip = clip.select(label for label in clip.labels if not label.endswith("_R") or label == "Hip_R")
    draft, problem = write_draft(clip, tmp_path / "set.yaml")
    assert set(draft.missing) == {"r_shoulder", "r_elbow", "r_wrist"}
    assert "gives no labels for r_shoulder, r_elbow, r_wrist" in problem
    assert "# r_elbow: []  # MISSING" in (tmp_path / "set.yaml").read_text()


def test_known_clips_are_drafted_as_their_own_sets_have_them(mocap, tmp_path):
    for k, path in enumerate(("vicon_c3d/shd01.c3d", "dance_markers/btk_T_pose.trc", "cmu_bvh/07_01.bvh")):
        clip = load_clip(mocap(path))
        clip = clip.crop(0, min(clip.duration, 1.0))
        (tmp_path / str(k)).mkdir()
        draft, found = drafted(clip, tmp_path / str(k))
        usual = find_body_points(clip)
        assert not any(entry.weak for entry in draft.points.values()), path
        for name in usual.names:
            if name in found.names:
                np.testing.assert_allclose(found.point(name), usual.point(name), atol=1e-9, err_msg=f"{path} {name}")


# -------- skeletons

UNREAL = {
    "pelvis": "pelvis", "spine": "spine_01", "chest": "spine_03", "neck": "neck_01", "head": "head",
    "clavicle": "clavicle_*", "shoulder": "upperarm_*", "elbow": "lowerarm_*", "wrist": "hand_*", "hip": "thigh_*",
    "knee": "calf_*", "ankle": "foot_*", "toe": "ball_*",
}  # fmt: skip
BIPED = {
    "pelvis": "Bip01 Pelvis", "spine": "Bip01 Spine", "chest": "Bip01 Spine1", "neck": "Bip01 Neck",
    "head": "Bip01 Head", "clavicle": "Bip01 * Clavicle", "shoulder": "Bip01 * UpperArm", "elbow": "Bip01 * Forearm",
    "wrist": "Bip01 * Hand", "hip": "Bip01 * Thigh", "knee": "Bip01 * Calf", "ankle": "Bip01 * Foot",
    "toe": "Bip01 * Toe0",
}  # fmt: skip
DAZ = {
    "pelvis": "hip", "spine": "abdomen", "chest": "chest", "neck": "neck", "head": "head", "clavicle": "*Collar",
    "shoulder": "*Shldr", "elbow": "*ForeArm", "wrist": "*Hand", "hip": "*Thigh", "knee": "*Shin", "ankle": "*Foot",
    "toe": "*Toe",
}  # fmt: skip
SMPL = {
    "pelvis": "pelvis", "spine": "spine1", "chest": "spine3", "neck": "neck", "head": "head", "clavicle": "*_collar",
    "shoulder": "*_shoulder", "elbow": "*_elbow", "wrist": "*_wrist", "hip": "*_hip", "knee": "*_knee",
    "ankle": "*_ankle", "toe": "*_foot",
}  # fmt: skip
VRM = {
    "pelvis": "J_Bip_C_Hips", "spine": "J_Bip_C_Spine", "chest": "J_Bip_C_Chest", "neck": "J_Bip_C_Neck",
    "head": "J_Bip_C_Head", "clavicle": "J_Bip_*_Shoulder", "shoulder": "J_Bip_*_UpperArm",
    "elbow": "J_Bip_*_LowerArm", "wrist": "J_Bip_*_Hand", "hip": "J_Bip_*_UpperLeg", "knee": "J_Bip_*_LowerLeg",
    "ankle": "J_Bip_*_Foot", "toe": "J_Bip_*_ToeBase",
}  # fmt: skip
BLENDER = {
    "pelvis": "hips", "spine": "spine", "chest": "chest", "neck": "neck", "head": "head", "clavicle": "shoulder.*",
    "shoulder": "upper_arm.*", "elbow": "forearm.*", "wrist": "hand.*", "hip": "thigh.*", "knee": "shin.*",
    "ankle": "foot.*", "toe": "toe.*",
}  # fmt: skip
SMALL, BIG, WORDS = {"l": "l", "r": "r"}, {"l": "L", "r": "R"}, {"l": "left", "r": "right"}
SKELETONS = {
    "unreal": (UNREAL, SMALL), "biped": (BIPED, BIG), "daz": (DAZ, SMALL), "smpl": (SMPL, WORDS), "vrm": (VRM, BIG),
    "blender": (BLENDER, BIG), "mixamo": (CMU, SIDES),
}  # fmt: skip


@pytest.fixture(scope="module")
def person():
    """Body points of the skeleton in names that a set knows."""
    return find_body_points(parse_bvh(bvh(CMU, SIDES), "x.bvh"))


@pytest.mark.parametrize("prefix", ["", "mixamorig:", "Anna_"])
@pytest.mark.parametrize("names", SKELETONS)
def test_skeletons_under_any_names(person, tmp_path, names, prefix):
    clip = parse_bvh(bvh(*SKELETONS[names], shuffle=3, prefix=prefix), "x.bvh")
    draft, found = drafted(clip, tmp_path)
    assert draft.skeleton and not draft.missing
    for name in (*ALWAYS, "head"):
        np.testing.assert_allclose(found.point(name), person.point(name), atol=1e-8, err_msg=name)
    assert {name for name, entry in draft.points.items() if entry.weak} <= {"l_toe", "r_toe"}


def test_skeleton_without_hierarchy_is_known_by_its_bones(person, tmp_path):
    """Joint positions from a table: calculated joints keep their distances as no skin does."""
    clip = replace(parse_bvh(bvh(*SKELETONS["unreal"]), "x.bvh"), noun="marker")
    assert draft_marker_set(clip).skeleton
    rng = np.random.default_rng(0)
    noisy = replace(clip, positions=clip.positions + rng.normal(scale=0.005, size=clip.positions.shape))
    assert not draft_marker_set(noisy).skeleton


# -------- file


def test_a_file_that_is_there_stays(dancer, tmp_path):
    (tmp_path / "set.yaml").write_text("mine")
    with pytest.raises(ClipError, match="exists already"):
        write_draft(dancer[0], tmp_path / "set.yaml")
    assert (tmp_path / "set.yaml").read_text() == "mine"
    with pytest.raises(ClipError, match=r"is a \.yaml file"):
        write_draft(dancer[0], tmp_path / "set.txt")


def test_labels_of_nobody_cannot_be_drafted(tmp_path):
    positions = np.random.default_rng(0).uniform(0, 1.7, (20, 12, 3))
    clip = MarkerClip("odd", tuple(f"Channel{k}" for k in range(12)), 50.0, positions, "test")
    with pytest.raises(ClipError, match="none of its 12 labels") as caught:
        write_draft(clip, tmp_path / "set.yaml")
    assert str(caught.value).isprintable() and not list(tmp_path.iterdir())


def test_odd_labels_survive_yaml(person, tmp_path):
    clip = parse_bvh(bvh(*SKELETONS["unreal"]), "x.bvh")
    names = {
        "upperarm_l": "upper arm #1 'l'",
        "hand_l": 'hand "l"',
        "head": "head\\",
        "spine_01": "no",
        "neck_01": "1e3",
    }
    _, found = drafted(renamed(clip, names), tmp_path)
    np.testing.assert_allclose(found.point("l_wrist"), person.point("l_wrist"), atol=1e-8)


# -------- words


@pytest.mark.parametrize(
    ("label", "side", "word"),
    [
        ("RightForeArm", "r", "forearm"), ("forearm.R", "r", "forearm"), ("Bip01 R Forearm", "r", "forearm"),
        ("LFHD", "l", "fhd"), ("LSHO", "l", "sho"), ("SHO_R", "r", "sho"), ("WristLeft", "l", "wrist"),
        ("leftelbow", "l", "elbow"), ("LUArm", "l", "uarm"), ("LMAL", "l", "mal"), ("LLMAL", "l", "lmal"),
        ("Hip_FL", "l", "hipfront"), ("WaistRBack", "r", "waistback"), ("SACR", "", "sacr"), ("CLAV", "", "clav"),
        ("LeftHandIndex1", "l", ""), ("C7", "", ""), ("L5", "", ""), ("upperarm_twist_01_l", "l", ""), ("", "", ""),
        ("LeftShuolder", "l", "shoulder"), ("%&", "", ""), ("elbowleft", "l", "elbow"),
        ("upper_armright", "r", "upperarm"),
    ],
)  # fmt: skip
def test_words_of_labels(label, side, word):
    (read,) = read_labels([label])
    assert (read.side, read.word) == (side, word)
