"""Places and frames that were not recorded are hidden or reported; what was recorded stays as it is."""

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.mocap import load_clip, synthetic_dance
from humanoid_control.mocap.unrecorded import report_unrecorded

DANCE = replace(synthetic_dance(duration=12, rate=60), warnings=())
L = 2  # a marker


def clip(positions, **changed):
    return replace(DANCE, positions=positions, **changed)


def test_a_recorded_clip_stays_as_it_is():
    out = report_unrecorded(DANCE)
    assert not out.warnings and np.array_equal(out.positions, DANCE.positions, equal_nan=True)


@pytest.mark.parametrize("stand_in", [-9.999, 99.99, -9999.0])
def test_a_far_number_in_all_axes_that_occurs_again_is_hidden(stand_in):
    P = DANCE.positions.copy()
    P[10:15, L] = P[40, 4] = stand_in
    out = report_unrecorded(clip(P))
    hidden = np.isnan(out.positions[..., 0])
    assert hidden[10:15, L].all() and hidden[40, 4] and hidden.sum() == 6
    (said,) = out.warnings
    assert f"{stand_in:.4g} m" in said and f"{DANCE.labels[L]} in 5 frames" in said and DANCE.labels[4] in said


def test_one_odd_place_or_one_near_the_body_is_no_stand_in():
    P = DANCE.positions.copy()
    P[10, L] = -9.999  # once: a jump, which cleaning reports
    P[20:30, 3] = 0.7
    out = report_unrecorded(clip(P))
    assert np.array_equal(out.positions, P, equal_nan=True) and not any("hidden" in w for w in out.warnings)


@pytest.mark.parametrize(("frames", "rate"), [(np.repeat(np.arange(100), 2), 30), (np.arange(200) * 2 // 3, 40)])
def test_frames_that_are_repeated_all_along_are_counted_with_the_true_rate(frames, rate):
    (said,) = report_unrecorded(clip(DANCE.positions[frames])).warnings
    assert "of 200 frames repeat the previous one" in said
    assert float(said.split("recorded at ")[1].split(" Hz")[0]) == pytest.approx(rate, rel=0.02)


def test_rests_at_the_ends_and_on_the_way_are_no_repeated_frames():
    frames = np.r_[np.zeros(30, int), np.arange(80), np.full(20, 79), np.arange(80, 120), np.full(30, 119)]
    assert not report_unrecorded(clip(DANCE.positions[frames])).warnings


def test_a_marker_that_is_held_while_others_move_is_named():
    P = DANCE.positions.copy()
    way = np.nanmedian(np.linalg.norm(P[60] - P[40], axis=1))
    assert way > 0.02, "the dance moves meanwhile"
    P[40:61, L] = P[40, L]
    (said,) = report_unrecorded(clip(P)).warnings
    assert said.startswith("markers are exactly constant") and f"{DANCE.labels[L]} for 21 frames from 40" in said
    P[:, L] = P[40, L]
    assert not report_unrecorded(clip(P)).warnings, "fixed in the room"
    short = DANCE.positions.copy()
    short[40:46, L] = short[40, L]
    assert not report_unrecorded(clip(short)).warnings


def test_a_joint_of_a_skeleton_may_be_held():
    P = DANCE.positions.copy()
    P[40:61, L] = P[40, L]
    assert not report_unrecorded(clip(P, noun="joint")).warnings


def test_files_are_looked_through(tmp_path):
    path = tmp_path / "twice.csv"
    P = DANCE.positions[np.repeat(np.arange(60), 2)]
    head = ",".join(["time", *(f"{n}_{a}" for n in DANCE.labels for a in "xyz")])
    rows = np.column_stack([np.arange(120) / 60, P.reshape(120, -1)])
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header=head, comments="")
    assert any("repeat the previous one" in w for w in load_clip(path).warnings)
