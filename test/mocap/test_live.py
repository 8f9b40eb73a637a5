"""Live markers: paths without holes or jumps, and the calibration of the first seconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.live import LiveCalibration, MarkerTracks, TrackSettings

RATE = 100.0
DT = 1 / RATE
BODY = np.array(
    [[0.1, 0.12, 1.0], [0.1, -0.12, 1.0], [-0.1, 0.0, 1.02], [0, 0.2, 1.45], [0, -0.2, 1.45], [0.3, 0.3, 1.1]]
)
TRUNK = np.arange(5)
WRIST = 5


def tracks(**changes):
    return MarkerTracks(BODY, TRUNK, TrackSettings(**changes))


def moving(velocity, seconds):
    """The trunk at rest, the wrist at constant velocity."""
    t = np.arange(round(seconds * RATE)) * DT
    p = np.tile(BODY, (len(t), 1, 1))
    p[:, WRIST] += t[:, None] * np.asarray(velocity, float)
    return p


def run(t, frames):
    return np.array([t.update(p, DT).copy() for p in frames])


def test_seen_markers_pass_unchanged():
    frames = moving((1.0, 0.5, -0.3), 1.0) + 0.001 * np.random.default_rng(0).normal(size=(100, 6, 3))
    np.testing.assert_array_equal(run(tracks(), frames), frames)


@pytest.mark.parametrize("fade", [0.1, 0.3, 0.8])
def test_hidden_marker_goes_on_with_a_velocity_that_fades_to_zero(fade):
    frames = moving((1.0, 0.0, 0.0), 3.0)
    frames[100:, WRIST] = np.nan
    x = run(tracks(fade=fade), frames)[:, WRIST, 0]
    assert x[-1] - x[99] == pytest.approx(fade / 2, rel=0.05), "the area below the fading velocity"
    v = np.diff(x)[99:] * RATE
    assert v[0] == pytest.approx(1.0, abs=0.12) and (np.diff(v) <= 1e-9).all()
    assert v[round(fade * RATE) + 1 :] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("hidden", [[0], [3], [WRIST], [1, WRIST], [2, 4, WRIST]])
def test_hidden_markers_are_carried_along_with_the_trunk(hidden):
    """All markers on one rigid body that walks, turns and leans: what is hidden is where it must be."""
    t = np.arange(300) * DT
    R = Rotation.from_euler("zyx", np.stack([1.2 * t, 0.3 * np.sin(2 * t), 0.2 * np.sin(3 * t)], axis=1))
    truth = np.stack([R.apply(p) for p in BODY], axis=1) + np.stack([t, 0.3 * t, 0 * t], axis=1)[:, None]
    frames = truth.copy()
    frames[50:250, hidden] = np.nan
    shown = run(MarkerTracks(truth[0], TRUNK), frames)
    assert np.abs(shown - truth).max() < 1e-6


def test_a_marker_that_is_back_is_reached_at_a_bounded_speed_and_without_a_kick():
    frames = np.tile(BODY, (500, 1, 1))
    frames[200:, WRIST, 1] += 0.3
    frames[100:200, WRIST] = np.nan
    y = run(tracks(return_speed=0.5), frames)[:, WRIST, 1]
    v = np.diff(y) * RATE
    assert v.max() == pytest.approx(0.5, rel=0.05), "the peak of the move is the speed that was asked for"
    assert np.abs(np.diff(v)).max() * RATE < 10.0, "no kick"
    assert y[-1] == BODY[WRIST, 1] + 0.3


def test_return_while_the_marker_moves_on_ends_exactly_on_it():
    frames = moving((0.5, 0.0, 0.0), 5.0)
    frames[100:150, WRIST] = np.nan
    shown = run(tracks(), frames)
    np.testing.assert_array_equal(shown[-100:], frames[-100:])
    assert np.abs(np.diff(shown[:, WRIST], axis=0)).max() * RATE < 0.5 + 1.0 + 0.02, "its own speed and the return's"


def test_vanishing_again_during_the_return_does_not_jump():
    frames = np.tile(BODY, (400, 1, 1))
    frames[150:, WRIST, 2] += 0.4
    frames[100:150, WRIST] = frames[170:200, WRIST] = frames[205:260, WRIST] = np.nan
    shown = run(tracks(), frames)
    assert np.linalg.norm(np.diff(shown[:, WRIST], axis=0), axis=1).max() * RATE < 1.1


def test_a_jump_is_not_believed_until_it_stays():
    frames = np.tile(BODY, (300, 1, 1))
    frames[100:120, WRIST, 0] += 1.0
    assert np.abs(run(tracks(), frames)[:, WRIST] - BODY[WRIST]).max() < 1e-9, "away and back"
    frames[100:, WRIST, 0] = BODY[WRIST, 0] + 1.0
    x = run(tracks(jump_hold=0.5, return_speed=2.0), frames)[:, WRIST, 0] - BODY[WRIST, 0]
    assert np.abs(x[:148]).max() < 1e-9 and x[-1] == pytest.approx(1.0)
    assert np.diff(x).max() * RATE <= 2.0 * 1.05


def test_hidden_times_are_counted():
    t = tracks()
    gone = BODY.copy()
    gone[[0, WRIST]] = np.nan
    for _ in range(25):
        t.update(gone, DT)
    assert t.hidden == pytest.approx([0.25, 0, 0, 0, 0, 0.25])
    t.update(BODY, DT)
    assert (t.hidden == 0).all()


def test_two_trunk_markers_carry_without_turning_and_none_do_not_carry():
    for seen, shift in ((2, 0.1), (0, 0.0)):
        frames = np.tile(BODY, (11, 1, 1))
        frames[:, :, 0] += np.linspace(0, 0.1, 11)[:, None]
        frames[1:, seen:] = np.nan
        shown = run(tracks(), frames)
        assert shown[-1, WRIST] == pytest.approx(BODY[WRIST] + [shift, 0, 0], abs=1e-9)


number = st.one_of(st.floats(-3, 3), st.just(float("nan")), st.floats(allow_nan=True, allow_infinity=True))


@settings(max_examples=30)
@given(st.lists(st.tuples(st.lists(number, min_size=18, max_size=18), st.floats(-1, 3)), max_size=12))
def test_whatever_is_fed_the_paths_are_numbers(frames):
    t = tracks()
    for values, dt in frames:
        with np.errstate(all="ignore"):
            shown = t.update(np.array(values).reshape(6, 3), dt)
        assert np.isfinite(shown).all() and np.abs(shown).max() < 1e3


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
