"""CSV: every layout gives the clip that was written, damage is named by its line."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.mocap import clean, find_body_points, load_clip, synthetic_dance
from humanoid_control.mocap.formats.csv import parse_csv

CLIP = synthetic_dance(duration=12, rate=5)
MM = 1000 * CLIP.positions


def text_of(rows, delimiter=","):
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def data_rows(values=MM, times=True, extra=0):
    for k, frame in enumerate(values):
        cells = ["" if np.isnan(v) else f"{v:.6f}" for v in frame.ravel()]
        yield [*([f"{k / CLIP.rate:.6f}"] if times else []), *[str(k)] * extra, *cells]


def one_row(pattern="{label}_{axis}", time="time", axes="xyz", values=MM, head=()):
    columns = [pattern.format(label=label, axis=axis) for label in CLIP.labels for axis in axes]
    return [*head, [*([time] if time else []), *columns], *data_rows(values, bool(time))]


def vicon():
    labels = [cell for label in CLIP.labels for cell in (f"Anna:{label}", "", "")]
    axes = ["X", "Y", "Z"] * len(CLIP.labels)
    head = [["Trajectories"], ["5"], ["", "", *labels], ["Frame", "Sub Frame", *axes], ["", "", *["mm"] * len(axes)]]
    return [*head, *data_rows(times=False, extra=2)]


def motive():
    n = len(CLIP.labels)
    three = [cell for label in CLIP.labels for cell in [f"Anna:{label}"] * 3]
    ids = [cell for k in range(n) for cell in [f"4BDC0E{k:02d}"] * 3]
    head = [
        ["Format Version", "1.23", "Take Name", "dance", "Capture Frame Rate", "5.000000", "Length Units", "Meters"],
        [],
        ["", "Type", *["Marker"] * 3 * n],
        ["", "Name", *three],
        ["", "ID", *ids],
        ["", "", *["Position"] * 3 * n],
        ["Frame", "Time (Seconds)", *["X", "Y", "Z"] * n],
    ]
    rows = data_rows(CLIP.positions)
    return [*head, *([str(k), *row] for k, row in enumerate(rows))]


LAYOUTS = {
    "label_x": one_row(),
    "label.x": one_row("{label}.{axis}"),
    "label x in mm": one_row("{label} {axis} [mm]", "Time (s)"),
    "LABEL:X": one_row("{label}:{axis}", axes="XYZ"),
    "rate in a comment": one_row(time="", head=[["# rate: 5"], ["# unit: mm"]]),
    "rate in cells": one_row(time="", head=[["Frame Rate", "5"], ["Units", "mm"]]),
    "vicon": vicon(),
    "motive": motive(),
}


@pytest.mark.parametrize("delimiter", [",", "\t", ";"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_clip_that_was_written(layout, delimiter):
    clip = parse_csv(text_of(LAYOUTS[layout], delimiter), "x/dance.csv")
    assert clip.name == "dance"
    assert [label.removeprefix("Anna:") for label in clip.labels] == list(CLIP.labels)
    assert clip.rate == pytest.approx(CLIP.rate)
    np.testing.assert_allclose(clip.positions, CLIP.positions, atol=2e-6)


@pytest.mark.parametrize("layout", ["label x in mm", "rate in a comment", "rate in cells", "vicon", "motive"])
def test_stated_unit_is_believed_without_a_word(layout):
    assert parse_csv(text_of(LAYOUTS[layout]), "x.csv").warnings == ()


def test_unit_that_is_not_stated_is_found_from_body_size():
    for factor, unit in ((1000, "mm"), (100, "cm"), (1, "m")):
        clip = parse_csv(text_of(one_row(values=factor * CLIP.positions)), "x.csv")
        assert "states no unit; the markers span" in clip.warnings[0] and f"read as {unit}" in clip.warnings[0]
        np.testing.assert_allclose(clip.positions, CLIP.positions, atol=2e-6)


def test_unit_that_lies_is_replaced_with_a_warning():
    clip = parse_csv(text_of(one_row("{label}_{axis} (m)")), "x.csv")
    assert "states unit 'm'" in clip.warnings[0]
    np.testing.assert_allclose(clip.positions, CLIP.positions, atol=2e-6)


def test_columns_may_stand_in_any_order_among_others():
    rows = one_row()
    order = np.random.default_rng(3).permutation(len(rows[0]))
    shuffled = [["comment", *(row[k] for k in order)] for row in rows]
    clip = parse_csv(text_of(shuffled), "x.csv")
    assert set(clip.labels) == set(CLIP.labels)
    np.testing.assert_allclose(clip.select(CLIP.labels).positions, CLIP.positions, atol=2e-6)


def test_empty_cells_nan_and_zeros_are_missing():
    rows = one_row()
    rows[3][1 + 3 * 4] = ""
    rows[4][2 + 3 * 4] = "NaN"
    rows[5][1 + 3 * 4 : 4 + 3 * 4] = ["0", "0.000", "-0"]
    clip = parse_csv(text_of(rows), "x.csv")
    assert np.argwhere(np.isnan(clip.positions[..., 0])).tolist() == [[2, 4], [3, 4], [4, 4]]


def test_frame_in_which_nothing_is_seen_stays_a_frame():
    rows = one_row(time="", head=[["# rate: 5"]])
    rows[10] = [""] * len(rows[10])
    clip = parse_csv(text_of(rows), "x.csv")
    assert clip.n_frames == CLIP.n_frames
    assert np.isnan(clip.positions[8]).all() and not np.isnan(np.delete(clip.positions, 8, axis=0)).any()


def test_empty_rows_of_a_spreadsheet_are_no_frames():
    rows = [*one_row(), *[[""] * 10] * 3]
    assert parse_csv(text_of(rows), "x.csv").n_frames == CLIP.n_frames


def test_decimal_commas_between_semicolons():
    rows = one_row()
    german = [rows[0], *([cell.replace(".", ",") for cell in row] for row in rows[1:])]
    np.testing.assert_allclose(parse_csv(text_of(german, ";"), "x.csv").positions, CLIP.positions, atol=2e-6)


def test_milliseconds():
    rows = one_row(time="time_ms")
    for k, row in enumerate(rows[1:]):
        row[0] = str(200 * k)
    assert parse_csv(text_of(rows), "x.csv").rate == 5.0


def test_milliseconds_that_are_not_named_so_are_reported():
    rows = one_row()
    for k, row in enumerate(rows[1:]):
        row[0] = str(200 * k)
    clip = parse_csv(text_of(rows), "x.csv")
    assert clip.rate == 5.0
    assert any("counts milliseconds: its steps of 200 make 5 Hz" in warning for warning in clip.warnings)


def test_number_in_a_title_is_no_rate():
    with pytest.raises(ClipError, match="states no frame rate"):
        parse_csv(text_of(one_row(time="", head=[["2024"]])), "x.csv")


def test_rate_may_be_given_where_the_file_states_none(tmp_path):
    path = tmp_path / "dance.csv"
    path.write_bytes(text_of(one_row(time="")))
    assert load_clip(path, rate=25.0).rate == 25.0
    with pytest.raises(ClipError, match="states no frame rate"):
        load_clip(path)
    with pytest.raises(HumanoidError, match="must be positive"):
        load_clip(path, rate=0.0)


def test_uneven_time_column_is_warned_of():
    rows = one_row()
    del rows[10]
    clip = parse_csv(text_of(rows), "x.csv")
    assert any("time steps vary from 0.2 to 0.4 s" in warning for warning in clip.warnings)


def test_byte_order_mark_and_quotes():
    text = b"\xef\xbb\xbf" + text_of(one_row()).replace(b"time", b'"time"', 1)
    assert parse_csv(text, "x.csv").n_frames == CLIP.n_frames


def test_labels_that_occur_twice_are_renamed():
    rows = one_row()
    rows[0] = [cell.replace("Knee_R", "Knee_L") for cell in rows[0]]
    clip = parse_csv(text_of(rows), "x.csv")
    assert any("duplicate labels" in warning for warning in clip.warnings)
    assert len(set(clip.labels)) == len(CLIP.labels)


def test_csv_becomes_body_points_like_its_original(tmp_path):
    (tmp_path / "dance.csv").write_bytes(text_of(LAYOUTS["vicon"]))
    ours, theirs = find_body_points(load_clip(tmp_path / "dance.csv")), find_body_points(CLIP)
    assert ours.names == theirs.names
    np.testing.assert_allclose(ours.positions, theirs.positions, atol=1e-5)


def test_marker_without_one_of_its_columns_is_left_out_with_a_warning():
    rows = one_row()
    rows[0] = [*rows[0][:2], "comment", *rows[0][3:], "force_z"]
    clip = parse_csv(text_of([rows[0], *([*row, "7"] for row in rows[1:])]), "x.csv")
    assert clip.labels == CLIP.labels[1:]
    assert "ignored: 'Forehead' lacks y; 'force' lacks x, y" in clip.warnings[0]


def changed(row, column, cell):
    rows = one_row()
    rows[row][column] = cell
    return rows


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([["a", "b"], ["1", "2"]], "no marker columns found"),
        (changed(5, 7, "abc"), "line 6: 'abc' is not a number"),
        (changed(5, 0, "0.1"), "time column does not increase at frame 4"),
        (changed(5, 0, ""), "time column does not increase"),
        ([*one_row()[:-1], one_row()[-1][:20]], "line 62 has 20 cells, the header needs 52: the file is cut off"),
        (one_row()[:1], "has a header but no frames"),
        (one_row()[:2], "1 frame"),
        (one_row(values=1e6 * CLIP.positions), "implausible for a person"),
        (one_row(values=np.full_like(MM, np.nan)), "no frame contains two markers"),
        (one_row(time="", head=[["# rate: 0"]]), "frame rate must be positive, got 0.0 Hz"),
        (one_row(time="", head=[["# rate: -5"]]), "frame rate must be positive, got -5.0 Hz"),
        (one_row(time="", head=[["# rate: 1e9"]]), "frame rate of 1e+09 Hz is implausible"),
    ],
)
def test_damage_is_named_in_one_line(rows, says):
    with pytest.raises(ClipError) as caught:
        parse_csv(text_of(rows), "x.csv")
    assert says in str(caught.value)
    assert "x.csv" in str(caught.value)
    assert str(caught.value).isprintable()


def test_random_damage_ends_in_a_clip_or_a_message(tmp_path):
    whole = text_of(one_row())
    rng = np.random.default_rng(11)
    path = tmp_path / "x.csv"
    read = 0
    for trial in range(72):
        data = bytearray(whole)
        reach = len(data) if trial % 2 else 900
        for at in rng.integers(0, reach, (1, 5, 40)[trial % 3]):
            data[at] = rng.integers(256) if trial % 4 == 0 else rng.choice(list(b'0.-e\t,;\n:"x_'))
        path.write_bytes(data)
        try:
            find_body_points(clean(load_clip(path))[0])
            read += 1
        except HumanoidError as error:
            assert str(error).isprintable() and str(error)
    assert 0 < read < 72


def test_start_is_the_first_time_of_the_file():
    rows = one_row()
    for row in rows[1:]:
        row[0] = f"{float(row[0]) + 2.5:.6f}"
    assert parse_csv(text_of(rows), "x.csv").start == 2.5
    assert parse_csv(text_of(one_row(time=None)), "x.csv", rate=5.0).start == 0.0


# -------- several tables in one file, as Vicon exports them

MARKERS = """Trajectories
100
,,S:LASI,,,S:RASI,,
Frame,Sub Frame,X,Y,Z,X,Y,Z
,,mm,mm,mm,mm,mm,mm
1,0,0,100,900,0,-100,1700
2,0,1,100,900,1,-100,1700
3,0,2,100,900,2,-100,1700

"""
ANGLES = """Model Outputs
100
,,S:LKneeAngles,,
Frame,Sub Frame,X,Y,Z
,,deg,deg,deg
1,0,10,11,12
2,0,10,11,12

"""
DEVICES = """Devices
1000
,,Plate,,
Frame,Sub Frame,Fx,Fy,Fz
,,N,N,N
1,0,0,0,700

"""


LONG = ANGLES.rstrip() + "\n" + "\n".join(f"{k},0,10,11,12" for k in range(3, 60)) + "\n\n"


@pytest.mark.parametrize(
    "parts", [(MARKERS,), (ANGLES, MARKERS), (LONG, MARKERS), (MARKERS, ANGLES), (DEVICES, MARKERS, ANGLES)]
)
def test_the_section_of_trajectories_is_taken(parts):
    clip = parse_csv("".join(parts).encode(), "x.csv")
    assert (clip.rate, clip.n_frames, len(clip.labels)) == (100.0, 3, 2)
    np.testing.assert_allclose(clip.positions[:, 0], [[0, 0.1, 0.9], [0.001, 0.1, 0.9], [0.002, 0.1, 0.9]])
