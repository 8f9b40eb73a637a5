"""Landmarks of a video: names, layouts, and the path that standing feet put back."""

from __future__ import annotations

import io

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import LiveCalibration, find_body_points, load_body_points, load_clip
from humanoid_control.mocap.formats.landmarks import LANDMARKS
from humanoid_control.mocap.formats.npz import parse_npz

SOURCE = {"shoulder": "shoulder", "elbow": "elbow", "wrist": "wrist", "hip": "hip", "knee": "knee", "ankle": "ankle",
          "foot_index": "toe"}  # fmt: skip
Y_DOWN = np.array([[0, -1, 0], [0, 0, -1], [1, 0, 0]])  # x of the picture is to the person's right, z away


@pytest.fixture(scope="module")
def walk(mocap):
    return load_body_points(mocap("cmu_bvh/07_01.bvh"))


def landmarks(points):
    """The walk as MediaPipe sees it: 33 points about the hips, y down."""
    found = np.zeros((points.n_frames, len(LANDMARKS), 3))
    for k, name in enumerate(LANDMARKS):
        side, _, part = name.partition("_")
        if part in SOURCE:
            found[:, k] = points.point(f"{side[0]}_{SOURCE[part]}")
        elif part == "heel":
            ankle, toe = points.point(f"{side[0]}_ankle"), points.point(f"{side[0]}_toe")
            found[:, k] = ankle - 0.3 * (toe - ankle) - [0, 0, 0.06]
        elif part in ("index", "pinky", "thumb"):
            found[:, k] = points.point(f"{side[0]}_wrist") + [
                0.05,
                {"index": 0.02, "pinky": -0.02, "thumb": 0.03}[part],
                0,
            ]
        else:
            found[:, k] = points.point("head") + [0, 0.08 if "left" in name else -0.08, 0]
    return (found - points.mid_hip[:, None]) @ Y_DOWN.T


def npz(**arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_the_path_of_a_walk_comes_back(walk):
    clip = parse_npz(npz(landmarks=landmarks(walk), fps=np.array(walk.rate)), "a.npz")
    assert any("no root path" in w for w in clip.warnings)
    assert clip.up == "-y"
    points = find_body_points(clip)
    assert {"l_heel", "r_toe", "l_radius", "r_ulna", "head"} <= set(points.names)
    way = walk.mid_hip[-1] - walk.mid_hip[0]
    found = points.mid_hip[-1] - points.mid_hip[0]
    assert np.linalg.norm(way[:2]) > 2
    assert np.linalg.norm(found[:2]) == pytest.approx(np.linalg.norm(way[:2]), rel=0.12)
    knee = np.linalg.norm(points.point("l_knee") - points.point("l_hip"), axis=1)
    np.testing.assert_allclose(knee, np.linalg.norm(walk.point("l_knee") - walk.point("l_hip"), axis=1), atol=1e-9)
    lowest = np.min([points.point(n)[:, 2] for n in ("l_toe", "r_toe", "l_heel", "r_heel")], axis=0)
    np.testing.assert_allclose(lowest, lowest[0], atol=1e-9)


@pytest.mark.parametrize("width", [3, 4, 5])
def test_layouts_with_visibility(walk, width):
    table = landmarks(walk)
    more = np.concatenate([table, np.ones((*table.shape[:2], width - 3))], axis=2)
    reference = parse_npz(npz(landmarks=table, fps=30), "a.npz")
    for array in (more, more.reshape(len(more), -1)):
        clip = parse_npz(npz(pose_world_landmarks=array, fps=30), "a.npz")
        np.testing.assert_array_equal(clip.positions, reference.positions)


@pytest.mark.parametrize(
    "head",
    [lambda k, a: f"{LANDMARKS[k]}_{a}", lambda k, a: f"{LANDMARKS[k].upper()}.{a}", lambda k, a: f"{a}{k}",
     lambda k, a: f"{a}{k + 1}", lambda k, a: f"landmark_{k}_{a}"],
    ids=["names", "capitals", "from 0", "from 1", "landmark"],
)  # fmt: skip
def test_tables_of_landmarks(walk, tmp_path, head):
    table = landmarks(walk)[:60]
    names = [head(k, a) for k in range(33) for a in "xyz"]
    rows = [",".join([f"{t / 30:.4f}", *(f"{v:.7f}" for v in row)]) for t, row in enumerate(table.reshape(60, -1))]
    (tmp_path / "a.csv").write_text("\n".join([",".join(["time", *names]), *rows]))
    clip = load_clip(tmp_path / "a.csv")
    reference = parse_npz(npz(landmarks=table, fps=30), "a.npz")
    assert tuple(label.lower() for label in clip.labels) == LANDMARKS
    np.testing.assert_allclose(clip.positions, reference.positions, atol=1e-6)
    assert find_body_points(clip).names == find_body_points(reference).names


def test_places_in_the_picture_are_refused(walk):
    picture = landmarks(walk) * 0.5 + 0.5
    with pytest.raises(ClipError, match="export pose_world_landmarks"):
        parse_npz(npz(landmarks=picture, fps=30), "a.npz")


def test_a_hidden_person_is_a_gap(walk):
    table = landmarks(walk)
    table[10:14] = np.nan
    clip = parse_npz(npz(landmarks=table, fps=30), "a.npz")
    assert np.isnan(clip.positions[10:14]).all()
    assert np.isfinite(clip.positions[14:]).all()


def test_landmarks_that_arrive_live_are_a_body(walk):
    """Markers with the names of landmarks, as a node would publish them: the same body as from a file."""
    table = landmarks(walk)
    calibration = LiveCalibration(1.0)
    for k, frame in enumerate(table[:130]):
        calibration.add(LANDMARKS, frame, k / walk.rate)
    body = calibration.body()
    assert body is not None
    assert body.labels_of("l_toe") == ("left_foot_index",)
    columns = [LANDMARKS.index(label) for label in body.labels]
    points = body.locate(table[200][columns])
    names = list(body.names)
    for side in "lr":
        thigh = points[names.index(f"{side}_knee")] - points[names.index(f"{side}_hip")]
        truth = walk.point(f"{side}_knee")[200] - walk.point(f"{side}_hip")[200]
        assert np.linalg.norm(thigh) == pytest.approx(np.linalg.norm(truth), abs=1e-6)
        assert thigh[2] == pytest.approx(truth[2], abs=1e-6), "up is found"
