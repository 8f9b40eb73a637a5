"""Joint naming dialects of BVH: the same person under any names, joint order and channel order gives the same points.

The headers are made here, with the joint names that the datasets and programs are known to write.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError
from humanoid_control.mocap import find_body_points
from humanoid_control.mocap.body_points import BodyPoints
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.load import locate_body
from humanoid_control.mocap.marker_sets import BodyLocator

# A person in a T-pose [cm], x to the left, y up, z forward: role, parent, offset; * stands for l and r.
BODY = (
    ("pelvis", "", (0, 0, 0)), ("spine", "pelvis", (0, 12, -1)), ("chest", "spine", (0, 15, -1)),
    ("neck", "chest", (0, 22, 0)), ("head", "neck", (0, 10, 1)),
    ("*clavicle", "chest", (3, 17, 2)), ("*shoulder", "*clavicle", (15, 1, -2)), ("*elbow", "*shoulder", (29, 0, 0)),
    ("*wrist", "*elbow", (25, 0, 0)), ("*hip", "pelvis", (9, -3, 0)), ("*knee", "*hip", (0, -41, 0)),
    ("*ankle", "*knee", (0, -41, -1)), ("*toe", "*ankle", (0, -6, 14)),
)  # fmt: skip
CMU = {
    "pelvis": "Hips", "spine": "Spine", "chest": "Spine1", "neck": "Neck", "head": "Head", "clavicle": "*Shoulder",
    "shoulder": "*Arm", "elbow": "*ForeArm", "wrist": "*Hand", "hip": "*UpLeg", "knee": "*Leg", "ankle": "*Foot",
    "toe": "*ToeBase",
}  # fmt: skip
SIDES = {"l": "Left", "r": "Right"}
DIALECTS = {
    "cmu_bvh": (CMU, SIDES),
    "lafan1": ({**CMU, "toe": "*Toe"}, SIDES),
    "bandai": (
        {"pelvis": "Hips", "spine": "Spine", "chest": "Chest", "neck": "Neck", "head": "Head",
         "clavicle": "Shoulder_*", "shoulder": "UpperArm_*", "elbow": "LowerArm_*", "wrist": "Hand_*",
         "hip": "UpperLeg_*", "knee": "LowerLeg_*", "ankle": "Foot_*", "toe": "Toes_*"},
        {"l": "L", "r": "R"},
    ),
    "xsens_bvh": (
        {"pelvis": "Hips", "spine": "Chest", "chest": "Chest4", "neck": "Neck", "head": "Head",
         "clavicle": "*Collar", "shoulder": "*Shoulder", "elbow": "*Elbow", "wrist": "*Wrist",
         "hip": "*Hip", "knee": "*Knee", "ankle": "*Ankle", "toe": "*Toe"},
        SIDES,
    ),
    "xsens_mvn": (
        {"pelvis": "Pelvis", "spine": "L5", "chest": "T8", "neck": "Neck", "head": "Head",
         "clavicle": "*Shoulder", "shoulder": "*UpperArm", "elbow": "*ForeArm", "wrist": "*Hand",
         "hip": "*UpperLeg", "knee": "*LowerLeg", "ankle": "*Foot", "toe": "*Toe"},
        SIDES,
    ),
    "poser": (
        {"pelvis": "hip", "spine": "abdomen", "chest": "chest", "neck": "neck", "head": "head",
         "clavicle": "*Collar", "shoulder": "*Shldr", "elbow": "*ForeArm", "wrist": "*Hand",
         "hip": "*Thigh", "knee": "*Shin", "ankle": "*Foot", "toe": "*Toe"},
        {"l": "l", "r": "r"},
    ),
    "soma": ({**CMU, "spine": "Spine1", "chest": "Chest", "neck": "Neck1", "hip": "*Leg", "knee": "*Shin"}, SIDES),
    "smpl": (
        {"pelvis": "pelvis", "spine": "spine1", "chest": "spine3", "neck": "neck", "head": "head",
         "clavicle": "*_collar", "shoulder": "*_shoulder", "elbow": "*_elbow", "wrist": "*_wrist",
         "hip": "*_hip", "knee": "*_knee", "ankle": "*_ankle", "toe": "*_foot"},
        {"l": "left", "r": "right"},
    ),
}  # fmt: skip
UNKNOWN = {  # names for which there is no set: the words in them must do
    "unreal": (
        {"pelvis": "pelvis", "spine": "spine_01", "chest": "spine_03", "neck": "neck_01", "head": "head",
         "clavicle": "clavicle_*", "shoulder": "upperarm_*", "elbow": "lowerarm_*", "wrist": "hand_*",
         "hip": "thigh_*", "knee": "calf_*", "ankle": "foot_*", "toe": "ball_*"},
        {"l": "l", "r": "r"},
    ),
    "rigify": (
        {"pelvis": "hips", "spine": "spine.001", "chest": "spine.003", "neck": "neck", "head": "head",
         "clavicle": "shoulder.*", "shoulder": "upper_arm.*", "elbow": "forearm.*", "wrist": "hand.*",
         "hip": "thigh.*", "knee": "shin.*", "ankle": "foot.*", "toe": "toe.*"},
        {"l": "L", "r": "R"},
    ),
    "biped": (
        {"pelvis": "Bip01", "spine": "Bip01 Spine", "chest": "Bip01 Spine1", "neck": "Bip01 Neck",
         "head": "Bip01 Head", "clavicle": "Bip01 * Clavicle", "shoulder": "Bip01 * UpperArm",
         "elbow": "Bip01 * Forearm", "wrist": "Bip01 * Hand", "hip": "Bip01 * Thigh", "knee": "Bip01 * Calf",
         "ankle": "Bip01 * Foot", "toe": "Bip01 * Toe0"},
        {"l": "L", "r": "R"},
    ),
    "vrm": (
        {"pelvis": "J_Bip_C_Hips", "spine": "J_Bip_C_Spine", "chest": "J_Bip_C_Chest", "neck": "J_Bip_C_Neck",
         "head": "J_Bip_C_Head", "clavicle": "J_Bip_*_Shoulder", "shoulder": "J_Bip_*_UpperArm",
         "elbow": "J_Bip_*_LowerArm", "wrist": "J_Bip_*_Hand", "hip": "J_Bip_*_UpperLeg",
         "knee": "J_Bip_*_LowerLeg", "ankle": "J_Bip_*_Foot", "toe": "J_Bip_*_ToeBase"},
        {"l": "L", "r": "R"},
    ),
    "rokoko": ({**CMU, "chest": "Spine3", "hip": "*Thigh", "knee": "*Shin", "toe": "*Toe"}, SIDES),
    "daz": (
        {"pelvis": "hip", "spine": "abdomenLower", "chest": "chestLower", "neck": "neckLower", "head": "head",
         "clavicle": "*Collar", "shoulder": "*ShldrBend", "elbow": "*ForearmBend", "wrist": "*Hand",
         "hip": "*ThighBend", "knee": "*Shin", "ankle": "*Foot", "toe": "*Toe"},
        {"l": "l", "r": "r"},
    ),
    "motive": (
        {"pelvis": "Anna:Hip", "spine": "Anna:Ab", "chest": "Anna:Chest", "neck": "Anna:Neck", "head": "Anna:Head",
         "clavicle": "Anna:*Shoulder", "shoulder": "Anna:*UArm", "elbow": "Anna:*FArm", "wrist": "Anna:*Hand",
         "hip": "Anna:*Thigh", "knee": "Anna:*Shin", "ankle": "Anna:*Foot", "toe": "Anna:*Toe"},
        {"l": "L", "r": "R"},
    ),
}  # fmt: skip


def joints():
    """Roles with parents and offsets, left and right written out."""
    for role, parent, offset in BODY:
        if "*" not in role:
            yield role, parent, np.array(offset, float)
            continue
        for side, sign in (("l", 1), ("r", -1)):
            where = parent.replace("*", f"{side}_")
            yield role.replace("*", f"{side}_"), where, np.array(offset, float) * [sign, 1, 1]


def motion(n=8, seed=1):
    """Rotation of every joint in every frame, and the place of the pelvis."""
    rng = np.random.default_rng(seed)
    swing = {role: rng.uniform(-25, 25, 3) for role, _, _ in joints()}
    swing["pelvis"] *= 0.3
    time = np.linspace(0, 1, n)[:, None]
    rotations = {role: Rotation.from_rotvec(np.sin(2 * time) * a, degrees=True) for role, a in swing.items()}
    return rotations, np.array([0, 96.0, 0]) + time * [5.0, 0.0, 30.0]


def bvh(names, sides, shuffle=0, order="ZXY", prefix="", positions_everywhere=False, scene="", rename=None):
    """A BVH file of the person: joint order by `shuffle`, rotation channels in `order`, perhaps below a scene root."""
    rng = np.random.default_rng(shuffle)
    rotations, place = motion()
    children: dict[str, list[str]] = {}
    offsets = {}
    for role, parent, offset in joints():
        children.setdefault(parent, []).append(role)
        offsets[role] = offset
    lines, columns = ["HIERARCHY"], []

    def name_of(role):
        side, _, part = role.rpartition("_")
        name = prefix + names[part].replace("*", sides.get(side, ""))
        return (rename or {}).get(name, name)

    def write(role, keyword):
        lines.extend([f"{keyword} {name_of(role)}", "{", f"OFFSET {' '.join(f'{v:.6f}' for v in offsets[role])}"])
        moves = role == "pelvis" or positions_everywhere
        channels = [f"{a}position" for a in "XYZ"] * moves + [f"{a}rotation" for a in order]
        lines.append(f"CHANNELS {len(channels)} {' '.join(channels)}")
        if moves:
            columns.append(place if role == "pelvis" else np.tile(offsets[role], (len(place), 1)))
        columns.append(rotations[role].as_euler(order, degrees=True))
        below = children.get(role, [])
        for child in rng.permutation(below) if shuffle else below:
            write(str(child), "JOINT")
        if not below:
            lines.extend(["End Site", "{", "OFFSET 0 2 3", "}"])
        lines.append("}")

    if scene:
        lines += [f"ROOT {scene}", "{", "OFFSET 0 0 0", "CHANNELS 3 Xposition Yposition Zposition"]
        columns.append(np.zeros((len(place), 3)))
    write("pelvis", "JOINT" if scene else "ROOT")
    lines += ["}"] * bool(scene)
    table = np.hstack(columns)
    rows = "\n".join(" ".join(f"{v:.9f}" for v in row) for row in table)
    return ("\n".join(lines) + f"\nMOTION\nFrames: {len(table)}\nFrame Time: 0.01\n{rows}\n").encode()


def points_of(data) -> BodyPoints:
    return find_body_points(parse_bvh(data, "x.bvh"))


REFERENCE = points_of(bvh(*DIALECTS["cmu_bvh"]))
SHOWN_BY_SOME = ("l_hand", "r_hand")  # skeletons may end at the wrist


def same_points(points, but):
    """The points, but for some that may be missing, are where those of the reference are."""
    assert [name for name in REFERENCE.names if name not in but] == [name for name in points.names if name not in but]
    for name in points.names:
        np.testing.assert_allclose(points.point(name), REFERENCE.point(name), atol=1e-8, err_msg=name)


def test_reference_is_the_person_that_was_written():
    def length(a, b):
        return np.linalg.norm(REFERENCE.point(a) - REFERENCE.point(b), axis=1)

    assert length("l_shoulder", "l_elbow") == pytest.approx(0.29)
    assert length("r_elbow", "r_wrist") == pytest.approx(0.25)
    assert length("l_hip", "r_hip") == pytest.approx(0.18)
    assert length("r_knee", "r_ankle") == pytest.approx(np.hypot(0.41, 0.01))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_gives_the_same_points(dialect):
    clip = parse_bvh(bvh(*DIALECTS[dialect]), "x.bvh")
    assert BodyLocator(clip).marker_set.name == dialect
    points = find_body_points(clip)
    same_points(points, but=SHOWN_BY_SOME)
    assert not any("does not know" in warning for warning in points.warnings)
    assert points.estimated == ()


@pytest.mark.parametrize("dialect", UNKNOWN)
def test_names_that_no_set_knows_are_read_by_their_words(dialect):
    clip = parse_bvh(bvh(*UNKNOWN[dialect]), "x.bvh")
    with pytest.raises(ClipError, match=r"no marker set fits|belongs to one"):
        find_body_points(clip)
    points = locate_body(clip)
    same_points(points, but=SHOWN_BY_SOME)
    assert any("no marker set matches these labels; guessed from their names" in w for w in points.warnings)


def test_a_guess_is_not_taken_for_a_set():
    names = {part: name.replace("*Hand", "*Thing") for part, name in UNKNOWN["rokoko"][0].items()}
    with pytest.raises(ClipError, match="no marker set fits"):
        locate_body(parse_bvh(bvh(names, SIDES), "x.bvh"))


@pytest.mark.parametrize("order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"])
@pytest.mark.parametrize("shuffle", [0, 1, 2])
def test_order_of_joints_and_channels_does_not_matter(order, shuffle):
    points = points_of(bvh(*DIALECTS["xsens_bvh"], shuffle=shuffle, order=order))
    np.testing.assert_allclose(points.positions, REFERENCE.positions, atol=1e-8)


def test_position_channels_everywhere_and_a_scene_root_do_not_matter():
    data = bvh(*DIALECTS["bandai"], positions_everywhere=True, scene="joint_Root")
    np.testing.assert_allclose(points_of(data).positions, REFERENCE.positions, atol=1e-8)
    assert not any("does not know" in warning for warning in points_of(data).warnings)


@pytest.mark.parametrize("prefix", ["mixamorig:", "Model_", "Character1:", "mixamorig_"])
def test_name_of_the_character_before_each_joint_does_not_matter(prefix):
    points = points_of(bvh(*DIALECTS["cmu_bvh"], prefix=prefix))
    np.testing.assert_allclose(points.positions, REFERENCE.positions, atol=1e-8)


def test_unknown_joint_that_is_needed_is_an_error_with_the_nearest_known_ones():
    with pytest.raises(ClipError) as caught:
        points_of(bvh(*DIALECTS["cmu_bvh"], rename={"LeftForeArm": "LeftFourArm"}))
    assert "misses LeftForeArm (for l_elbow; is it LeftFourArm?)" in str(caught.value)
    assert "does not know LeftFourArm (nearest: LeftForeArm" in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("joint", "strange", "lost"), [("LeftToeBase", "LeftTeoBase", "l_toe"), ("Spine1", "Spien1", None)]
)
def test_unknown_joint_that_is_not_needed_is_a_warning_with_the_nearest_known_ones(joint, strange, lost):
    points = points_of(bvh(*DIALECTS["cmu_bvh"], rename={joint: strange}))
    warning = next(w for w in points.warnings if "does not know" in w)
    assert f"marker set 'cmu_bvh' does not know {strange} (nearest: {joint}" in warning
    assert lost is None or lost not in points.names
    assert set(REFERENCE.names) - set(points.names) <= {lost}


def test_names_of_nobody_are_an_error():
    names = {part: f"*joint{k}" for k, part in enumerate(CMU)}
    with pytest.raises(ClipError, match=r"none of its 26 labels \(joint0, ") as caught:
        points_of(bvh(names, SIDES))
    assert str(caught.value).isprintable()
