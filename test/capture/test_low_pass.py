"""F7: the low-pass filter does to sines what its formula says, agrees with scipy, and does not ring at the ends."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import simpson
from scipy.signal import butter, freqs, sosfiltfilt

from humanoid_control.errors import ConfigError
from humanoid_control.mocap import find_body_points, load_clip
from humanoid_control.mocap.cleaning import ORDER, low_pass

RATE = 100.0


@pytest.mark.parametrize("frequency", [0.5, 2.0, 5.0, 9.0, 10.0, 12.0, 20.0, 40.0])
def test_gain_for_a_sine_is_that_of_an_analog_butterworth_filter(frequency):
    time = np.arange(2000) / RATE
    sine = np.stack([np.sin(2 * np.pi * frequency * time + phase) for phase in (0.3, 1.9)], axis=1)
    b, a = butter(ORDER, 2 * np.pi * 10.0, analog=True)
    gain = abs(freqs(b, a, [2 * np.pi * frequency])[1][0])
    inside = slice(300, -300)  # away from the ends, where a sine is no longer one
    np.testing.assert_allclose(low_pass(sine, RATE, 10.0)[inside], gain * sine[inside], atol=2e-3)


def test_agrees_with_a_convolution_by_the_impulse_response(mocap):
    # h(t) = 2 * integral of gain(f) cos(2 pi f t) df, the gain taken from scipy: no Fourier transform, no padding.
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    path, rate = clip.marker("Radius_R"), clip.rate
    b, a = butter(ORDER, 2 * np.pi * 8.0, analog=True)
    f = np.linspace(1e-9, rate / 2, 20_001)
    gain = np.abs(freqs(b, a, 2 * np.pi * f)[1])
    half = 120  # frames: 2 s
    lags = np.arange(half + 1) / rate
    h = 2 * simpson(gain[None] * np.cos(2 * np.pi * f[None] * lags[:, None]), x=f, axis=1) / rate
    kernel = np.concatenate([h[:0:-1], h])
    expected = np.stack([np.convolve(path[:, k], kernel, mode="valid") for k in range(3)], axis=1)
    ours = low_pass(path, rate, 8.0)[half:-half]
    assert np.abs(ours - path[half:-half]).max() > 5e-3
    np.testing.assert_allclose(ours, expected, atol=2e-5)


def test_agrees_with_a_filter_of_scipy_on_a_real_dance(mocap):
    points = find_body_points(load_clip(mocap("dance_markers/dance1.trc")))
    path = points.point("r_wrist")
    # Forward and backward a Butterworth filter of half the order has the square of its gain; the cut-off is scaled so
    # that both are 0.71 at 10 Hz.
    cutoff = 10.0 / (np.sqrt(2) - 1) ** (1 / ORDER)
    theirs = sosfiltfilt(butter(ORDER // 2, cutoff, fs=points.rate, output="sos"), path, axis=0)
    ours = low_pass(path, points.rate, 10.0)
    moved, apart = (np.sqrt(np.mean(np.sum(d**2, axis=1))) for d in (theirs - path, ours - theirs))
    assert moved > 3e-4
    assert apart < 6e-5
    assert np.linalg.norm(ours - theirs, axis=1).max() < 4e-4


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
