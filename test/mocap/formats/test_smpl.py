"""SMPL: places of joints against MuJoCo and against the markers people wore; every layout; legs that fit the motion."""

from __future__ import annotations

import io

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_body_points, load_clip
from humanoid_control.mocap.formats.common import Size
from humanoid_control.mocap.formats.npz import parse_npz
from humanoid_control.mocap.formats.smpl import JOINTS, OFFSETS, PARENTS, find_smpl, leg_factor, smpl_clip

RNG = np.random.default_rng(4)
T = 12
POSES = np.cumsum(RNG.normal(0, 0.05, (T, 22, 3)), axis=0)
POSES[:, 0] += Rotation.from_euler("ZX", [30, 90], degrees=True).as_rotvec()  # upright, z up, as AMASS stands
TRANS = np.cumsum(RNG.normal(0, 0.01, (T, 3)), axis=0) + [1.0, 2.0, 0.9]
AMASS = {"poses": np.hstack([POSES.reshape(T, 66), np.zeros((T, 90))]), "trans": TRANS, "betas": np.zeros(16),
         "gender": np.array("neutral"), "mocap_framerate": np.array(120.0)}  # fmt: skip


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def read(rate=None, size=None, **arrays):
    return parse_npz(npz(**arrays), "walk.npz", rate, size or Size())


def body(child):
    """A body of the tree as MJCF, with what hangs on it."""
    inner = "".join(body(k) for k in range(len(JOINTS)) if PARENTS[k] == child)
    place = " ".join(str(v) for v in 1.66 * OFFSETS[child])
    joint = "<freejoint/>" if child == 0 else f'<joint type="ball" name="{JOINTS[child]}"/>'
    return f'<body name="{JOINTS[child]}" pos="{place}">{joint}<geom size="0.01" mass="1"/>{inner}</body>'


def test_joints_are_where_mujoco_has_them():
    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{body(0)}</worldbody></mujoco>")
    data = mujoco.MjData(model)
    clip = read(**AMASS)
    for t in range(T):
        data.qpos[:3], data.qpos[3:7] = TRANS[t], Rotation.from_rotvec(POSES[t, 0]).as_quat(scalar_first=True)
        for k, name in enumerate(JOINTS[1:], start=1):
            at = model.jnt_qposadr[model.joint(name).id]
            data.qpos[at : at + 4] = Rotation.from_rotvec(POSES[t, k]).as_quat(scalar_first=True)
        mujoco.mj_kinematics(model, data)
        places = np.array([data.body(name).xpos for name in JOINTS])
        np.testing.assert_allclose(clip.positions[t, :22], places, atol=1e-9)


def test_rest_pose_stands_upright_with_the_thumbs_forward():
    clip = read(poses=np.zeros((4, 66)), trans=np.zeros((4, 3)), fps=np.array(30))
    at = {label: clip.positions[0, k] for k, label in enumerate(clip.labels)}
    assert at["head"][1] > at["neck"][1] > at["pelvis"][1] > at["left_knee"][1] > at["left_ankle"][1]
    assert at["left_wrist"][0] > at["left_elbow"][0] > 0 > at["right_wrist"][0]
    assert at["left_thumb_side"][2] > at["left_little_side"][2]
    assert at["left_toe"][2] > at["left_foot"][2] > at["left_heel"][2]
    height = at["head_top"][1] - at["left_heel"][1]
    assert height == pytest.approx(1.66, abs=0.06)
    assert at["head_top"][1] > at["head"][1] + 0.1
    np.testing.assert_allclose(at["head_top"][[0, 2]], at["head"][[0, 2]], atol=0.02)
    for label, place in at.items():
        if label.startswith("left_"):
            np.testing.assert_allclose(at[label.replace("left", "right")], place * [-1, 1, 1], atol=1e-12)
    sole = [at[name][1] for name in ("left_toe", "left_heel", "right_toe")]
    assert np.ptp(sole) < 1e-9
    assert min(place[1] for place in at.values()) == pytest.approx(min(sole)), "nothing is below the soles"


def test_bones_are_as_long_as_published():
    """de Leva 1996, table 4: means of women and men [mm], of 1735 and 1741 mm; the joints of the trunk by Dempster."""
    clip = read(poses=np.zeros((4, 66)), trans=np.zeros((4, 3)), fps=np.array(30))
    scale = 1660 / 1738
    for a, b, women, men in (
        ("shoulder", "elbow", 275.1, 281.7),
        ("elbow", "wrist", 264.3, 268.9),
        ("hip", "knee", 368.5, 422.2),
        ("knee", "ankle", 432.3, 434.0),
    ):
        for side in ("left", "right"):
            length = 1000 * np.linalg.norm(clip.marker(f"{side}_{a}")[0] - clip.marker(f"{side}_{b}")[0])
            assert length == pytest.approx(scale * (women + men) / 2, rel=0.01), a


def test_a_person_whose_legs_are_longer_than_told_walks_on_them():
    """One leg swings about a foot that stands, as on a leg 12 % longer than that of 1.66 m."""
    t = np.linspace(0, 6 * np.pi, 300)
    poses = np.zeros((300, 22, 3))
    poses[:, 1, 0] = 0.5 * np.sin(t)  # the left hip
    poses[:, 2, 0] = 0.5 * np.cos(t)
    resting = read(poses=poses.reshape(300, 66), trans=np.zeros((300, 3)), fps=np.array(60))
    foot = resting.marker("left_foot") - resting.marker("pelvis")
    trans = -foot * 1.12 / (np.linalg.norm(resting.marker("left_hip")[0] - resting.marker("left_knee")[0]) /
                            (1.66 * np.linalg.norm(OFFSETS[4])))  # fmt: skip
    clip = read(poses=poses.reshape(300, 66), trans=trans, fps=np.array(60))
    assert any("standing feet" in w for w in clip.warnings)
    thigh = np.linalg.norm(clip.marker("left_hip")[0] - clip.marker("left_knee")[0])
    assert thigh == pytest.approx(1.12 * 1.66 * np.linalg.norm(OFFSETS[4]), rel=0.01)
    assert np.ptp(clip.marker("left_foot"), axis=0).max() < 0.01


@pytest.mark.parametrize(
    "other",
    [
        {"poses": POSES, "trans": TRANS, "fps": np.array(120)},
        {"root_orient": POSES[:, 0], "pose_body": POSES[:, 1:].reshape(T, 63), "trans": TRANS,
         "mocap_frame_rate": np.array(120.0)},
        {"global_orient": POSES[:, 0], "body_pose": POSES[:, 1:].reshape(T, 63), "transl": TRANS, "fps": np.array(120)},
        {"pose_world": POSES.reshape(T, 66), "trans_world": TRANS, "fps": np.array(120)},
        {"smpl_poses": POSES.reshape(T, 66), "smpl_trans": 90 * TRANS, "smpl_scaling": np.array([90.0]),
         "fps": np.array(120)},
        {"poses": Rotation.from_rotvec(POSES.reshape(-1, 3)).as_matrix().reshape(T, 22, 3, 3), "trans": TRANS,
         "fps": np.array(120)},
    ],
    ids=["joints", "smplx", "gvhmr", "wham", "aist", "matrices"],
)  # fmt: skip
def test_every_layout_is_the_same_motion(other):
    clip, reference = read(**other), read(**AMASS)
    assert clip.rate == 120
    np.testing.assert_allclose(clip.positions, reference.positions, atol=1e-9)


def test_height_is_told_by_the_first_coefficient_but_of_men():
    def thigh(**more):
        clip = read(**{**AMASS, **more})
        return np.linalg.norm(clip.marker("left_hip")[0] - clip.marker("left_knee")[0])

    taller = np.r_[1.0, np.zeros(9)]
    assert thigh(betas=taller) / thigh() == pytest.approx(1.76 / 1.66)
    assert thigh(betas=taller, gender=np.array(b"male")) == pytest.approx(thigh() * 1.74 / 1.66)
    assert thigh(betas=np.full(10, 50.0)) / thigh() == pytest.approx(2.1 / 1.66)


def test_standing_feet_tell_the_length_of_the_legs(mocap):
    points = load_body_points(mocap("cmu_bvh/07_01.bvh"))
    root = points.mid_hip
    feet = np.stack([points.point(name) for name in ("l_toe", "r_toe")], axis=1) - root[:, None]
    true = leg_factor(root, feet, points.rate)
    assert true == pytest.approx(1.0, abs=0.03)
    for wrong in (0.85, 0.95, 1.1):
        assert leg_factor(root, wrong * feet, points.rate) * wrong == pytest.approx(true, abs=0.01)
    assert leg_factor(root, 0.5 * feet, points.rate) is None, "nobody's legs are twice as long as given"
    assert leg_factor(root[:40], feet[:40] * 0, points.rate) is None, "nothing moves"


def test_a_frame_without_numbers_is_a_gap():
    poses = AMASS["poses"].copy()
    poses[3, 7] = np.nan
    clip = read(**{**AMASS, "poses": poses})
    assert np.isnan(clip.positions[3]).all()
    assert np.isfinite(clip.positions[[2, 4]]).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"trans": None}, "no path of the root"),
        ({"trans": TRANS[:-1]}, "12 frames of rotations, 11 of the root's path"),
        (
            {"trans": np.zeros((T // 2, 6))},
            r"the path of the root has shape \(6, 6\), three numbers per frame are needed",
        ),
        ({"poses": np.zeros((T, 66), complex)}, "are non-numeric"),
        ({"poses": np.zeros((T, 48))}, "48 numbers per frame are not joint rotations"),
        ({"mocap_framerate": None}, "states no frame rate: give it"),
        ({"mocap_framerate": np.array("fast")}, "'mocap_framerate' is not a frame rate"),
        ({"poses": np.full((T, 66), np.inf)}, "infinite numbers"),
        ({"poses": np.full((T, 66), "x")}, "are non-numeric"),
    ],
)
def test_what_is_missing_is_said(change, message):
    arrays = {k: v for k, v in {**AMASS, **change}.items() if v is not None}
    with pytest.raises(ClipError, match=message) as caught:
        read(**arrays)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["smpl/amass1.npz", "smpl/dmpl.npz"])
def test_limbs_go_where_the_markers_of_the_recording_are(recording, name):
    """AMASS samples hold the markers from which the motion was fitted: no body model is between them and the person."""
    clip = load_clip(recording(name))
    with np.load(recording(name)) as file:
        markers, labels = file["marker_data"], [label.decode() for label in file["marker_labels"]]

    def middle(*names):
        return np.mean([markers[:, labels.index(n)] for n in names], axis=0)

    inner = "LIEL" if "LIEL" in labels else "LELBIN"
    limbs = {
        ("left_elbow", "left_wrist"): middle("LOWR", "LIWR") - middle("LELB", inner),
        ("left_knee", "left_ankle"): middle("LANK") - middle("LKNE", "LKNI"),
    }
    for (a, b), seen in limbs.items():
        bone = clip.marker(b) - clip.marker(a)
        cosine = np.sum(bone * seen, axis=1) / np.linalg.norm(bone, axis=1) / np.linalg.norm(seen, axis=1)
        assert np.degrees(np.arccos(np.nanmedian(cosine))) < 9, (a, b)  # the ankle's marker is 4 cm to the side


def test_an_amass_file_has_hands_heels_and_a_warning_on_its_bones(recording):
    points = load_body_points(recording("smpl/dmpl.npz"))
    assert {"l_heel", "r_toe", "l_radius", "r_ulna", "head"} <= set(points.names)
    assert any("average person" in w for w in points.warnings)
    lower = points.point("l_ankle")[:, 2].min(), points.point("r_toe")[:, 2].min()
    assert max(lower) < 0.15, "feet are on the floor"


def test_degrees_and_millimetres_are_noticed_and_a_motion_without_frames_is_refused():
    poses, path = np.zeros((30, 72)), np.tile([0.0, 0.0, 0.9], (30, 1))
    turned = poses.copy()
    turned[:, 3] = 90.0
    for p, t, says in ((turned, path, "90 rad: are the rotations in degrees?"), (poses, 1e3 * path, "in millimetres?")):
        clip = smpl_clip(find_smpl({"poses": p, "trans": t}, "x"), 30.0, "x", Size())
        assert any(says in w for w in clip.warnings)
    clip = smpl_clip(find_smpl({"poses": poses, "trans": path}, "x"), 30.0, "x", Size())
    assert not any("?" in w for w in clip.warnings)
    with pytest.raises(ClipError, match="contains no frames"):
        find_smpl({"poses": poses[:0], "trans": path[:0]}, "x")
