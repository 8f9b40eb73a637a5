"""MarkerClip: what it refuses, and that cutting and resampling keep the motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError, UnknownNameError
from humanoid_control.mocap import MarkerClip
from humanoid_control.mocap.clip import distinct_labels


def make(labels=("a", "b"), rate=50.0, shape=(3, 2, 3)):
    return MarkerClip("clip", labels, rate, np.zeros(shape), "test")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"shape": (3, 2)}, "shape"),
        ({"shape": (3, 3, 3)}, "expected positions of shape (frames, 2 markers, 3), got (3, 3, 3)"),
        ({"shape": (1, 2, 3)}, "1 frame"),
        ({"labels": (), "shape": (3, 0, 3)}, "no markers"),
        ({"labels": ("a", "a")}, "'a' occurs more than once"),
        ({"rate": 0.0}, "rate"),
        ({"rate": -5.0}, "rate"),
        ({"rate": float("nan")}, "rate"),
        ({"rate": float("inf")}, "rate"),
    ],
)
def test_refuses_what_is_no_motion(arguments, says):
    with pytest.raises(ClipError) as caught:
        make(**arguments)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_infinite_coordinate_is_refused_and_located():
    positions = np.zeros((3, 2, 3))
    positions[2, 1, 0] = np.inf
    with pytest.raises(ClipError, match="'b' is infinite in frame 2"):
        MarkerClip("clip", ("a", "b"), 50.0, positions, "test")


def test_marker_with_one_coordinate_missing_is_missing():
    positions = np.zeros((3, 2, 3))
    positions[1, 0, 2] = np.nan
    clip = MarkerClip("clip", ("a", "b"), 50.0, positions, "test")
    assert np.isnan(clip.positions[1, 0]).all()
    assert np.isfinite(clip.positions[1, 1]).all()


def test_positions_are_a_read_only_copy():
    positions = np.zeros((3, 2, 3))
    clip = MarkerClip("clip", ("a", "b"), 50.0, positions, "test")
    positions[0, 0, 0] = 7.0
    assert clip.positions[0, 0, 0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        clip.positions[0, 0, 0] = 1.0


def test_times_and_duration(ramp_clip):
    assert ramp_clip.n_frames == 11
    assert ramp_clip.duration == pytest.approx(1.0)
    np.testing.assert_allclose(ramp_clip.times, np.linspace(0, 1, 11))


def test_timestamps_stay_on_the_clock_of_the_recording(ramp_clip):
    late = replace(ramp_clip, start=3.41)
    np.testing.assert_allclose(late.times, ramp_clip.times)
    np.testing.assert_allclose(late.timestamps, 3.41 + np.arange(11) / 10)
    part = late.crop(0.2, 0.7)
    assert part.start == pytest.approx(3.61) and part.times[0] == 0.0
    assert late.resample(20.0).start == late.select(["a"]).start == 3.41
    with pytest.raises(ClipError, match="starts at nan"):
        replace(ramp_clip, start=np.nan)


def test_unknown_marker_offers_the_nearest():
    clip = make(labels=("LASI", "RASI"))
    with pytest.raises(UnknownNameError, match="LASI"):
        clip.index("LASSI")


def test_select_keeps_the_asked_order(ramp_clip):
    chosen = ramp_clip.select(["b", "a"])
    assert chosen.labels == ("b", "a")
    np.testing.assert_array_equal(chosen.marker("a"), ramp_clip.marker("a"))
    np.testing.assert_array_equal(chosen.positions[:, 0], ramp_clip.marker("b"))


def test_crop_includes_both_ends(ramp_clip):
    part = ramp_clip.crop(0.2, 0.7)
    np.testing.assert_allclose(part.marker("a")[:, 0], [0.2, 0.3, 0.4, 0.5, 0.6, 0.7])
    assert part.rate == ramp_clip.rate


@pytest.mark.parametrize(("start", "end"), [(0.5, 0.5), (0.7, 0.2), (2.0, 3.0)])
def test_crop_without_frames_says_how_long_the_clip_is(ramp_clip, start, end):
    with pytest.raises(ClipError, match=r"from 0 to 1\.00 s"):
        ramp_clip.crop(start, end)


@pytest.mark.parametrize("rate", [3.0, 7.0, 10.0, 25.0, 30.0, 120.0])
def test_resample_keeps_a_straight_motion(ramp_clip, rate):
    resampled = ramp_clip.resample(rate)
    assert resampled.rate == rate
    np.testing.assert_allclose(resampled.marker("a")[:, 0], resampled.times, atol=1e-9)
    assert resampled.duration <= ramp_clip.duration + 1e-9
    assert resampled.duration > ramp_clip.duration - 1 / rate


def test_resample_makes_no_samples_up_beside_a_gap(ramp_clip):
    hidden = np.isnan(ramp_clip.resample(20.0).marker("c")[:, 0])
    # At 20 Hz the frames 4 and 5 are samples 8 and 10; 7, 9 and 11 lie beside them, 6 and 12 are frames 3 and 6.
    assert np.flatnonzero(hidden).tolist() == [7, 8, 9, 10, 11]


def test_resample_to_the_same_rate_changes_nothing(ramp_clip):
    np.testing.assert_array_equal(ramp_clip.resample(10.0).positions, ramp_clip.positions)


def test_resample_refuses_a_rate_that_is_none(ramp_clip):
    with pytest.raises(ClipError, match="must be positive"):
        ramp_clip.resample(0.0)
    with pytest.raises(ClipError):
        ramp_clip.resample(0.5)  # leaves one frame


def test_distinct_labels_names_and_numbers():
    labels, warnings = distinct_labels(["a", "", "a", "*", "b"])
    assert labels == ("a", "unlabelled_2", "a_3", "unlabelled_4", "b")
    assert len(warnings) == 2
    assert "'a' to 'a_3'" in warnings[1]


def test_distinct_labels_stays_distinct_against_its_own_names():
    labels, _ = distinct_labels(["a_3", "a", "a", "unlabelled_5", "", "a"])
    assert len(set(labels)) == len(labels)


def test_distinct_labels_leaves_good_ones_alone():
    assert distinct_labels(["a", "b"]) == (("a", "b"), ())
