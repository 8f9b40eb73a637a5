"""Cleaning: the report says what was done, gaps too long stay, the low-pass filter has its gain and does not ring."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.signal import butter, freqz_sos

from humanoid_control.errors import ConfigError
from humanoid_control.mocap import (
    CleaningSettings,
    clean,
    find_body_points,
    load_body_points,
    load_clip,
    synthetic_dance,
)
from humanoid_control.mocap.cleaning import low_pass
from test.reference.fourier_low_pass import fourier_low_pass

TRUTH = synthetic_dance(duration=20, rate=60)


def damaged():
    """Noise of 3 mm, a short and a long gap, a swap and a jump."""
    positions = np.array(synthetic_dance(duration=20, rate=60, noise=0.003, seed=0).positions)
    wrists = [TRUTH.index("Wrist_L"), TRUTH.index("Wrist_R")]
    positions[700:, wrists] = positions[700:, wrists[::-1]]
    positions[300, TRUTH.index("Chin")] += [0.0, 0.0, 0.4]
    positions[100:112, TRUTH.index("Elbow_L")] = np.nan
    positions[500:600, TRUTH.index("Foot_R")] = np.nan
    return replace(TRUTH, positions=positions)


def test_report_names_everything_that_was_wrong():
    _, report = clean(damaged())
    assert [(g.label, g.start, g.frames, g.filled) for g in report.gaps] == [
        ("Elbow_L", 100, 12, True), ("Foot_R", 500, 100, False)
    ]  # fmt: skip
    assert report.n_filled == 12
    assert [(set(s.labels), s.frame) for s in report.swaps] == [({"Wrist_L", "Wrist_R"}, 700)]
    assert [(j.label, j.first) for j in report.jumps] == [("Chin", 300)]
    assert report.repaired == ()
    assert report.cutoff == 10.0
    text = " | ".join(report.warnings)
    assert "labels seem to be swapped: Wrist_L and Wrist_R at frame 700" in text
    assert "markers jump impossibly far: Chin by 0.40 m at frame 300" in text
    assert "gaps too long to fill: Foot_R for 100 frames from 500" in text


def test_warnings_go_with_the_clip_to_the_body_points():
    clip, report = clean(damaged())
    assert clip.warnings == report.warnings
    points = find_body_points(clip)
    assert set(report.warnings) <= set(points.warnings)
    assert any("r_toe" in w and "moves with" in w for w in points.warnings)  # its gap is too long


def test_repair_is_an_option():
    clip, report = clean(damaged(), CleaningSettings(repair_swaps=True))
    assert report.repaired == report.swaps and len(report.swaps) == 1
    assert "were swapped and are corrected" in report.warnings[0]
    error = np.linalg.norm(clip.marker("Wrist_L") - TRUTH.marker("Wrist_L"), axis=1)
    assert error.max() < 0.05
    left_alone, _ = clean(damaged())
    assert np.linalg.norm(left_alone.marker("Wrist_L") - TRUTH.marker("Wrist_L"), axis=1).max() > 0.2


def test_cleaned_clip_is_nearer_to_the_truth():
    noisy = synthetic_dance(duration=20, rate=60, noise=0.003)
    clip, report = clean(noisy)
    before, after = (np.sqrt(np.mean((c.positions - TRUTH.positions) ** 2)) for c in (noisy, clip))
    assert before == pytest.approx(0.003, rel=0.02)
    assert after < 0.65 * before
    ratio = np.tan(np.pi * np.linspace(0, 29.99, 1000) / 60) / np.tan(np.pi * 10 / 60)
    taken = 1 - 1 / (1 + (np.sqrt(2) - 1) * ratio**4)  # of white noise, by frequency
    expected = 0.003 * np.sqrt(3 * np.mean(taken**2))
    assert np.mean(list(report.change.values())) == pytest.approx(expected, rel=0.05)


def test_gaps_that_are_too_long_stay_and_do_not_spoil_the_rest():
    clip, _ = clean(damaged(), CleaningSettings(check_labels=False))
    foot = clip.marker("Foot_R")
    assert np.flatnonzero(np.isnan(foot[:, 0])).tolist() == list(range(500, 600))
    assert np.nanmax(np.linalg.norm(foot - TRUTH.marker("Foot_R"), axis=1)) < 0.02
    elbow = clip.marker("Elbow_L")
    assert np.linalg.norm(elbow - TRUTH.marker("Elbow_L"), axis=1).max() < 0.03


def test_what_is_not_wanted_is_not_done():
    settings = CleaningSettings(cutoff=None, max_gap=0.0, check_labels=False)
    clip, report = clean(damaged(), settings)
    np.testing.assert_array_equal(clip.positions, damaged().positions)
    assert (report.swaps, report.jumps, report.cutoff, report.change) == ((), (), None, {})


def test_cutoff_above_half_the_rate_filters_nothing():
    slow = synthetic_dance(duration=20, rate=15)
    clip, report = clean(slow)
    assert report.cutoff is None
    np.testing.assert_array_equal(clip.positions, slow.positions)


def test_marker_that_is_never_seen_stays_missing():
    positions = np.array(TRUTH.positions)
    positions[:, 3] = np.nan
    clip, report = clean(replace(TRUTH, positions=positions))
    assert np.isnan(clip.positions[:, 3]).all() and not np.isnan(np.delete(clip.positions, 3, axis=1)).any()
    assert TRUTH.labels[3] not in report.change and report.gaps == ()


@pytest.mark.parametrize(
    "wrong", [{"cutoff": 0.0}, {"cutoff": -3.0}, {"max_gap": -0.1}, {"max_speed": 0.0}, {"max_acceleration": np.nan}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        CleaningSettings(**wrong)


def test_one_call_reads_cleans_and_locates(mocap):
    path = mocap("dance_markers/walk1.trc")
    points = load_body_points(path)
    by_hand = find_body_points(clean(load_clip(path))[0])
    np.testing.assert_array_equal(points.positions, by_hand.positions)
    raw = find_body_points(load_clip(path))
    moved = np.linalg.norm(points.in_pelvis() - raw.in_pelvis(), axis=2)
    assert 1e-4 < moved.max() < 0.03


def test_real_gaps_are_counted_as_they_are(mocap):
    clip = load_clip(mocap("dance_markers/walk1.trc"))
    _, report = clean(clip)
    assert report.n_filled == np.isnan(clip.positions[..., 0]).sum() == 27
    clip = load_clip(mocap("c3d_encodings/Eb015pi.c3d"))
    cleaned, report = clean(clip)
    missing = np.isnan(clip.positions[..., 0]).sum()
    assert sum(gap.frames for gap in report.gaps) == missing == 226
    assert np.isnan(cleaned.positions[..., 0]).sum() == missing - report.n_filled > 0


RATE = 100.0


def gain_of_two_passes(frequency):
    """Of a digital Butterworth filter of second order, squared, with 0.71 at 10 Hz."""
    raised = RATE / np.pi * np.arctan(np.tan(np.pi * 10.0 / RATE) / (np.sqrt(2) - 1) ** 0.25)
    response = freqz_sos(butter(2, raised, fs=RATE, output="sos"), [frequency], fs=RATE)[1]
    return abs(response[0]) ** 2


@pytest.mark.parametrize("frequency", [0.5, 2.0, 5.0, 9.0, 10.0, 12.0, 20.0, 40.0])
def test_gain_for_a_sine_is_that_of_a_butterworth_filter_squared(frequency):
    time = np.arange(2000) / RATE
    sine = np.stack([np.sin(2 * np.pi * frequency * time + phase) for phase in (0.3, 1.9)], axis=1)
    gain = gain_of_two_passes(frequency)
    inside = slice(300, -300)  # away from the ends, where a sine is no longer one
    np.testing.assert_allclose(low_pass(sine, RATE, 10.0)[inside], gain * sine[inside], atol=1e-6)
    if frequency == 10.0:
        assert gain == pytest.approx(np.sqrt(0.5))


def test_agrees_with_a_convolution_by_the_impulse_response(mocap):
    # h(t) = 2 * integral of gain(f) cos(2 pi f t) df, the gain taken from scipy: no recursion, no padding.
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    path, rate = clip.marker("Radius_R"), clip.rate
    raised = rate / np.pi * np.arctan(np.tan(np.pi * 8.0 / rate) / (np.sqrt(2) - 1) ** 0.25)
    f = np.linspace(0.0, rate / 2, 20_001)
    gain = np.abs(freqz_sos(butter(2, raised, fs=rate, output="sos"), f, fs=rate)[1]) ** 2
    half = 120  # frames: 2 s
    lags = np.arange(half + 1) / rate
    h = 2 * simpson(gain[None] * np.cos(2 * np.pi * f[None] * lags[:, None]), x=f, axis=1) / rate
    kernel = np.concatenate([h[:0:-1], h])
    expected = np.stack([np.convolve(path[:, k], kernel, mode="valid") for k in range(3)], axis=1)
    smooth = low_pass(path, rate, 8.0)[half:-half]
    assert np.abs(smooth - path[half:-half]).max() > 5e-3
    np.testing.assert_allclose(smooth, expected, atol=2e-5)


@pytest.mark.parametrize("clip", ["dance_markers/dance1.trc", "dance_markers/walk1.trc"])
def test_a_dance_is_smoothed_as_by_fourier_transform(clip, mocap):
    """Dube 2012, section 5.2.1: what the two filters differ by is a small part of what either takes out."""
    points = find_body_points(load_clip(mocap(clip)))
    paths = points.positions
    smooth, fourier = low_pass(paths, points.rate, 10.0), fourier_low_pass(paths, points.rate, 10.0)
    moved, apart = (np.sqrt(np.mean(np.sum(d**2, axis=-1))) for d in (fourier - paths, smooth - fourier))
    assert moved > 1.5e-4
    assert apart < 0.2 * moved
    assert np.linalg.norm(smooth - fourier, axis=-1).max() < 1.2e-3


def test_a_straight_line_passes_unchanged_to_its_ends():
    line = np.linspace([0, 1, -2], [3, 1, 5], 301)
    np.testing.assert_allclose(low_pass(line, RATE, 6.0), line, atol=1e-12)


def test_ends_of_a_slow_movement_do_not_ring():
    time = np.arange(301) / RATE
    path = np.stack([np.cos(2 * np.pi * 0.4 * time), time**2], axis=1)
    error = np.abs(low_pass(path, RATE, 6.0) - path)
    assert error.max() < 0.03
    assert error[50:-50].max() < 1e-3
    np.testing.assert_allclose(low_pass(path, RATE, 6.0)[[0, -1]], path[[0, -1]], atol=0.03)


def test_noise_is_taken_out_and_the_movement_kept():
    time = np.arange(1001) / RATE
    truth = np.stack([np.sin(2 * np.pi * 1.3 * time), np.cos(2 * np.pi * 2.1 * time)], axis=1)
    noisy = truth + np.random.default_rng(1).normal(scale=0.01, size=truth.shape)
    before, after = (np.sqrt(np.mean((p - truth) ** 2)) for p in (noisy, low_pass(noisy, RATE, 6.0)))
    assert after < 0.5 * before


@settings(max_examples=40)
@given(n=st.integers(2, 60), cutoff=st.floats(0.5, 49.0), seed=st.integers(0, 1000), shift=st.floats(-1e3, 1e3))
def test_shifting_or_reversing_the_path_does_the_same_to_the_result(n, cutoff, seed, shift):
    path = np.random.default_rng(seed).normal(size=(n, 3))
    smooth = low_pass(path, RATE, cutoff)
    assert smooth.shape == path.shape
    np.testing.assert_allclose(low_pass(path + shift, RATE, cutoff), smooth + shift, atol=1e-9)
    np.testing.assert_allclose(low_pass(path[::-1], RATE, cutoff), smooth[::-1], atol=1e-9)


def test_cutoff_from_half_the_rate_upward_changes_nothing():
    path = np.random.default_rng(0).normal(size=(50, 3))
    np.testing.assert_array_equal(low_pass(path, RATE, 50.0), path)
    assert np.abs(low_pass(path, RATE, 49.0) - path).max() > 0


@pytest.mark.parametrize(("rate", "cutoff"), [(100.0, 0.0), (100.0, -1.0), (100.0, np.nan), (0.0, 5.0)])
def test_cutoff_that_is_none_is_refused(rate, cutoff):
    with pytest.raises(ConfigError, match="must be positive"):
        low_pass(np.zeros((5, 3)), rate, cutoff)
