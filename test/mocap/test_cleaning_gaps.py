"""Gaps: short ones are filled close to the truth, long ones stay, nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.mocap import MarkerClip, load_clip
from humanoid_control.mocap.cleaning import fill_gaps, longest_gap


def clip_with(hidden, n=60, rate=50.0):
    t = np.arange(n) / rate
    positions = np.stack([np.sin(3 * t), np.cos(2 * t), t], axis=1)[:, None]
    positions[hidden] = np.nan
    return MarkerClip("clip", ("a",), rate, positions, "test")


def test_filled_samples_are_close_to_what_was_hidden():
    truth = clip_with([]).positions
    error = np.abs(fill_gaps(clip_with(slice(20, 30)), 0.5).positions - truth).max(axis=(0, 1))
    assert error[0] < 0.04  # over the turning point of a swing of 1 m, which PCHIP cuts off
    assert 0 < error[1] < 0.005
    assert error[2] < 1e-12  # uniform motion


def test_filled_samples_never_overshoot_their_neighbours():
    filled = fill_gaps(clip_with(slice(20, 30)), 0.5).positions[:, 0]
    low, high = np.minimum(filled[19], filled[30]), np.maximum(filled[19], filled[30])
    assert (filled[20:30] >= low - 1e-12).all() and (filled[20:30] <= high + 1e-12).all()


def test_seen_samples_are_untouched():
    clip = clip_with([5, 6, 40])
    seen = ~np.isnan(clip.positions)
    np.testing.assert_array_equal(fill_gaps(clip, 0.5).positions[seen], clip.positions[seen])


@pytest.mark.parametrize(("length", "filled"), [(25, True), (26, False)])
def test_limit_is_half_a_second_of_frames(length, filled):
    clip = clip_with(slice(10, 10 + length))
    assert np.isnan(fill_gaps(clip, 0.5).positions).any() == (not filled)


def test_long_gap_does_not_spoil_a_short_one():
    hidden = [5, *range(20, 50)]
    left = np.isnan(fill_gaps(clip_with(hidden), 0.1).positions[:, 0, 0])
    assert np.flatnonzero(left).tolist() == list(range(20, 50))


def test_ends_are_held():
    clip = clip_with([0, 1, 58, 59])
    filled = fill_gaps(clip, 0.5).positions
    np.testing.assert_array_equal(filled[:2, 0], np.repeat(clip.positions[2], 2, axis=0))
    np.testing.assert_array_equal(filled[58:, 0], np.repeat(clip.positions[57], 2, axis=0))


def test_never_seen_stays_missing_and_seen_once_is_held():
    assert np.isnan(fill_gaps(clip_with(slice(None)), 99.0).positions).all()
    once = clip_with([i for i in range(60) if i != 7])
    np.testing.assert_array_equal(fill_gaps(once, 99.0).positions, np.repeat(once.positions[7:8], 60, axis=0))


def test_longest_gap():
    assert longest_gap(clip_with([3, 4, 5, 20]).positions[:, 0], 50.0) == pytest.approx(3 / 50)
    assert longest_gap(clip_with([]).positions[:, 0], 50.0) == 0.0


def test_artificial_gap_in_a_real_dance_is_filled_within_centimetres(mocap):
    clip = load_clip(mocap("dance_markers/dance1.trc")).select(["Elbow_L"])
    positions = np.array(clip.positions)
    positions[600:612] = np.nan  # 0.2 s
    filled = fill_gaps(MarkerClip("clip", clip.labels, clip.rate, positions, "test"), 0.5)
    error = np.linalg.norm(filled.positions - clip.positions, axis=2)
    assert 0 < error.max() < 0.02
