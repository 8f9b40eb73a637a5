"""TRC: values of the real files, the variants of the format, and what a damaged one says."""

from __future__ import annotations

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.trc import parse_trc

ROWS = ["1\t0.00\t100\t0\t1700\t0\t50\t20", "2\t0.02\t110\t0\t1690\t0\t50\t30", "3\t0.04\t120\t0\t1680\t0\t50\t40"]


def trc(rows=ROWS, rate="50", frames="3", units="mm", labels="Top\t\t\tToe\t\t", blank="\n", end="\n"):
    lines = [
        "PathFileType\t4\t(X/Y/Z)\tx.trc",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate",
        f"{rate}\t50\t{frames}\t2\t{units}\t50",
        f"Frame#\tTime\t{labels}",
        "\t\tX1\tY1\tZ1\tX2\tY2\tZ2",
    ]
    return ("\n".join(lines) + "\n" + blank + "\n".join(rows) + end).encode()


def test_first_and_last_values_of_the_dance(mocap):
    clip = load_clip(mocap("dance_markers/dance1.trc"))
    assert clip.rate == 60.0
    assert clip.positions.shape == (1500, 28, 3)
    assert clip.labels[0] == "Head_FL" and clip.labels[-1] == "BigToe_R"
    np.testing.assert_allclose(clip.marker("Head_FL")[0], [0.02806, 0.09997, 1.50306], atol=1e-12)
    np.testing.assert_allclose(clip.marker("BigToe_R")[0], [-0.13024, 0.18826, 0.00993], atol=1e-12)
    assert not np.isnan(clip.positions).any()
    assert clip.warnings == ()


def test_missing_samples_of_the_walk_are_where_the_cells_are_empty(mocap):
    clip = load_clip(mocap("dance_markers/walk1.trc"))
    hidden = np.isnan(clip.positions[..., 0])
    assert hidden.sum() == 27
    assert np.flatnonzero(hidden[:, clip.index("Head_FR")]).tolist() == list(range(199, 210))
    assert np.flatnonzero(hidden[:, clip.index("Shoulder_R")]).tolist() == list(range(304, 320))


def test_file_of_another_writer(mocap):
    clip = load_clip(mocap("dance_markers/btk_T_pose.trc"))  # carriage returns, a tab at the end of every row
    assert clip.rate == 30.0
    assert clip.positions.shape == (89, 41, 3)
    np.testing.assert_allclose(clip.marker("RFHD")[0], [-0.33642437, 1.63963722, -0.022068], atol=1e-9)


@pytest.mark.parametrize("variant", [{}, {"blank": ""}, {"end": ""}, {"labels": "Top\t\t\tToe"}])
def test_variants_read_the_same(variant):
    clip = parse_trc(trc(**variant), "x.trc")
    assert clip.name == "x"
    assert clip.labels == ("Top", "Toe")
    np.testing.assert_allclose(clip.marker("Top")[:, 2], [1.7, 1.69, 1.68])


@pytest.mark.parametrize("gap", ["\t\t", "0\t0\t0", "\t12\t5", "nan\tnan\tnan", "0.000\t-0.0\t0"])
def test_empty_and_zero_cells_are_missing(gap):
    clip = parse_trc(trc(rows=[ROWS[0], f"2\t0.02\t110\t0\t1690\t{gap}", ROWS[2]]), "x.trc")
    assert np.isnan(clip.marker("Toe")[1]).all()
    assert not np.isnan(clip.marker("Toe")[[0, 2]]).any()


def test_a_single_zero_coordinate_is_a_position():
    assert parse_trc(trc(), "x.trc").marker("Toe")[0].tolist() == [0.0, 0.05, 0.02]


def test_rate_that_contradicts_the_times_is_reported():
    clip = parse_trc(trc(rate="100"), "x.trc")
    assert clip.rate == 50.0
    assert "the header states 100 Hz, the time column 50 Hz: the time column is used" in clip.warnings[-1]


def test_more_frames_than_announced_are_used_with_a_warning():
    clip = parse_trc(trc(frames="2"), "x.trc")
    assert clip.n_frames == 3
    assert "2 frames" in clip.warnings[0]


def test_labels_that_occur_twice_get_different_names():
    clip = parse_trc(trc(labels="Top\t\t\tTop\t\t"), "x.trc")
    assert clip.labels == ("Top", "Top_2")
    assert clip.warnings


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"HIERARCHY\nROOT", "not a TRC file"),
        (b"PathFileType\t4\n", "within the header"),
        (trc(rate="fast"), "DataRate"),
        (trc(rate="0"), "rate"),
        (trc(frames="many"), "NumFrames"),
        (trc(frames="9"), "3 of 9 frames"),
        (trc(rows=ROWS[:1], frames="1"), "1 frame"),
        (trc(rows=[]), "0 of 3 frames"),
        (trc(rows=[*ROWS[:2], "3\t0.04\t120\t0"]), "has 4 cells"),
        (trc(rows=[*ROWS[:2], "3\t0.04\t120\t0\tx\t0\t5\t4"]), "non-numeric"),
        (trc(rows=[*ROWS[:2], "3\t0.04\t120\t0\tinf\t0\t5\t4"]), "infinite"),
        (trc(labels=""), "no markers in line 4"),
    ],
)
def test_damage_is_named_in_one_line(data, says):
    with pytest.raises(ClipError) as caught:
        parse_trc(data, "x.trc")
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(("first", "start"), [("0.23", 0.23), ("", 0.0)])
def test_start_is_the_time_of_the_first_row(first, start):
    clip = parse_trc(trc(rows=[f"23\t{first}\t100\t0\t1700\t0\t50\t20", *ROWS[1:]]), "x.trc")
    assert clip.start == start
    np.testing.assert_allclose(clip.timestamps, start + np.array([0, 0.02, 0.04]))


def test_header_with_doubled_tabs(model_file):
    clip = load_clip(model_file("human_motion/rajagopal_walk/motion_capture_walk.trc"))
    assert (clip.rate, clip.n_frames, clip.warnings) == (100.0, 238, ())
    assert load_clip(model_file("human_motion/rajagopal_run/motion_capture_run.trc")).start == 0.23


def test_spaces_between_the_cells_are_read():
    rows = [row.split("\t") for row in ROWS]
    assert all(all(row) for row in rows)
    text = trc().decode().replace("Top\t\t\tToe\t\t", "Top\tToe")
    spaced = "\n".join(" ".join(line.split("\t")).strip() for line in text.splitlines()).encode()
    clip, whole = parse_trc(spaced, "x.trc"), parse_trc(trc(), "x.trc")
    assert clip.labels == whole.labels and clip.rate == whole.rate
    np.testing.assert_array_equal(clip.positions, whole.positions)


def test_rows_without_their_last_tabs_have_hidden_markers():
    clip = parse_trc(trc(rows=[ROWS[0], "\t".join(ROWS[1].split("\t")[:5]), ROWS[2]]), "x.trc")
    assert np.isnan(clip.marker("Toe")[1]).all() and np.isfinite(clip.marker("Toe")[[0, 2]]).all()
    assert any("1 row(s) are incomplete: their missing markers count as hidden" in w for w in clip.warnings)
    with pytest.raises(ClipError, match="the file is cut off"):
        parse_trc(trc(rows=[*ROWS[:2], "\t".join(ROWS[2].split("\t")[:5])]), "x.trc")
