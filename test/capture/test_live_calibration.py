"""The calibration of live markers: complete or refused with names, and the same body points as offline afterwards."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.live import LiveCalibration

DANCE = synthetic_dance(duration=12, rate=50)


def fed(clip=DANCE, duration=2.0, change=None, labels=None, seconds=None, **options):
    """A calibration that has seen the beginning of a clip."""
    calibration = LiveCalibration(duration, **options)
    for k in range(round((seconds or duration) * clip.rate) + 1):
        positions = np.array(clip.positions[k])
        calibration.add(labels or clip.labels, change(positions, k) if change else positions, k / clip.rate)
    return calibration


def hide(label, share=1.0):
    column = DANCE.index(label)

    def change(positions, k):
        if k % 10 < 10 * share:
            positions[column] = np.nan
        return positions

    return change


def test_too_little_gives_nothing():
    assert LiveCalibration().body() is None
    assert fed(seconds=1.0).body() is None
    assert fed(seconds=1.0).collected == pytest.approx(1.0)


@pytest.mark.parametrize(
    "relative",
    [
        None,
        "dance_markers/dance1.trc",
        "dance_markers/walk1.trc",
        "vicon_c3d/shd01.c3d",
        "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
        "cmu_bvh/05_02.bvh",
        "cmu_asf/11_01.amc",
    ],
)
def test_every_later_frame_gives_the_body_points_of_the_clip(relative, mocap):
    """The offline way is the reference: the same points, up to where the recording was put on the floor."""
    clip = DANCE if relative is None else load_clip(mocap(relative))
    offline = find_body_points(clip)
    body = fed(clip, min(2.0, clip.duration / 2)).body()
    column = [clip.index(label) for label in body.labels]
    frames = [k for k in range(0, clip.n_frames, 7) if not np.isnan(clip.positions[k, column]).any()]
    ours = np.array([body.locate(clip.positions[k, column]) for k in frames])
    hips = [body.names.index(n) for n in ("l_hip", "r_hip")]
    shared = [n for n in offline.names if n in body.names]
    assert {"l_wrist", "r_wrist", "sternum"} <= set(shared) and len(frames) > 20
    theirs = offline.positions[frames]
    for name in shared:
        mine = ours[:, body.names.index(name)] - ours[:, hips].mean(axis=1)
        other = theirs[:, offline.names.index(name)] - offline.mid_hip[frames]
        np.testing.assert_allclose(mine[:, 2], other[:, 2], atol=1e-9, err_msg=name)
        np.testing.assert_allclose(np.linalg.norm(mine, axis=1), np.linalg.norm(other, axis=1), atol=1e-9)


def test_missing_markers_are_named():
    keep = [k for k, label in enumerate(DANCE.labels) if label not in ("Wrist_R", "Elbow_R")]
    with pytest.raises(ClipError, match=r"Elbow_R \(for r_elbow\), Wrist_R \(for r_wrist\)"):
        fed(change=lambda p, k: p[keep], labels=[DANCE.labels[k] for k in keep]).body()


@pytest.mark.parametrize("share", [0.7, 0.9])
def test_markers_that_are_rarely_seen_are_named(share):
    with pytest.raises(ClipError, match=r"seen too rarely: Wrist_L \(\d+ % of the time\)"):
        fed(change=hide("Wrist_L", share)).body()


def test_a_marker_hidden_now_and_then_does_not_matter():
    body = fed(change=hide("Wrist_L", 0.3)).body()
    assert np.isfinite(body.start).all() and np.isfinite(body.calibration.positions).all()


def test_without_a_sternum_marker_it_stays_where_it_is_in_the_chest():
    column = DANCE.index("Sternum")
    labels = [label for label in DANCE.labels if label != "Sternum"]
    body = fed(change=lambda p, k: np.delete(p, column, axis=0), labels=labels).body()
    assert body.calibration.estimated == ("sternum",) and "estimated" in " ".join(body.calibration.warnings)
    offline = find_body_points(DANCE.select(labels))
    k = 300
    ours = body.locate(np.array([DANCE.marker(label)[k] for label in body.labels]))
    sternum, hips = (
        ours[body.names.index("sternum")],
        (ours[body.names.index("l_hip")] + ours[body.names.index("r_hip")]) / 2,
    )
    expected = offline.point("sternum")[k] - offline.mid_hip[k]
    assert np.linalg.norm(sternum - hips) == pytest.approx(np.linalg.norm(expected), abs=0.005)


def test_millimetres_are_said():
    """1.7 m of a person are 1700: too far away for a marker, and said before that for a small one."""
    with pytest.raises(ClipError, match="in metres"):
        fed(change=lambda p, k: 40 * p).body()


def test_two_labels_on_one_marker_are_said():
    a, b = DANCE.index("Elbow_L"), DANCE.index("Wrist_L")

    def together(p, k):
        p[b] = p[a]
        return p

    with pytest.raises(ClipError, match=r"l_elbow and l_wrist are 0\.000 m apart"):
        fed(change=together).body()


@pytest.mark.parametrize(("up", "turn"), [("+z", np.eye(3)), ("+y", [[1, 0, 0], [0, 0, 1], [0, -1, 0]])])
def test_up_can_be_given_or_found(up, turn):
    turned = np.array(turn, float)
    for option in (up, "auto"):
        body = fed(change=lambda p, k: p @ turned.T, up=option).body()
        shoulders = body.calibration.point("l_shoulder")[:, 2] - body.calibration.point("l_hip")[:, 2]
        assert shoulders.min() > 0.3
    with pytest.raises(UnknownNameError, match="axis"):
        LiveCalibration(up="up")


def test_a_pause_begins_anew():
    calibration = fed(seconds=1.9)
    calibration.add(DANCE.labels, np.array(DANCE.positions[0]), 30.0)
    assert calibration.collected == 0.0 and calibration.body() is None


def test_it_succeeds_once_the_marker_comes_into_view():
    """Old frames are dropped: what was wrong at first does not stay wrong."""

    def late(p, k):
        if k < 150:
            p[DANCE.index("Wrist_L")] = np.nan
        return p

    with pytest.raises(ClipError, match="Wrist_L"):
        fed(change=late, seconds=2.5).body()
    assert fed(change=late, seconds=6.0).body() is not None


def test_body_points_by_their_own_names():
    offline = find_body_points(DANCE)
    calibration = LiveCalibration(1.0)
    for k in range(60):
        calibration.add(offline.names, np.array(offline.positions[k]), k / 50)
    body = calibration.body()
    assert body.marker_set == "body_points" and set(body.names) == set(offline.names)
    assert body.missing(np.array([n == "l_wrist" for n in body.labels])) == {"l_wrist": ("l_wrist",)}
