"""C3D: every encoding gives the same clip, markers are told from model outputs, an independent reader agrees."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.c3d import _frame_count, parse_c3d

ENCODINGS = ("c3d_encodings/Eb015pi", "c3d_encodings/Eb015pr", "c3d_encodings/Eb015vi", "c3d_encodings/Eb015vr",
             "odd_files/Eb015si")  # fmt: skip


def write_c3d(path, labels, points, units="mm", **lists):
    """A C3D file by an independent writer; `points` is (T, M, 3)."""
    ezc3d = pytest.importorskip("ezc3d")
    out = ezc3d.c3d()
    out["parameters"]["POINT"]["RATE"]["value"] = [100.0]
    out["parameters"]["POINT"]["LABELS"]["value"] = list(labels)
    out["parameters"]["POINT"]["UNITS"]["value"] = [units]
    for name, value in lists.items():
        out.add_parameter("POINT", name, list(value))
    homogeneous = np.ones((4, points.shape[1], points.shape[0]))
    homogeneous[:3] = points.transpose(2, 1, 0)
    out["data"]["points"] = homogeneous
    out.write(str(path))
    return path


@pytest.fixture
def body():
    """Four points of a standing person [mm], 5 frames."""
    frame = np.array([[10.0, 20, 1700], [10, 30, 1400], [5, 20, 900], [0, 20, 30]])
    return np.tile(frame, (5, 1, 1)) + np.arange(5)[:, None, None]


@pytest.mark.parametrize("name", ENCODINGS[1:])
def test_encodings_read_identically(mocap, name):
    reference = load_clip(mocap(f"{ENCODINGS[0]}.c3d"))
    other = load_clip(mocap(f"{name}.c3d"))
    assert other.labels == reference.labels
    assert other.rate == reference.rate == 50.0
    np.testing.assert_array_equal(np.isnan(other.positions), np.isnan(reference.positions))
    np.testing.assert_allclose(other.positions, reference.positions, atol=1e-7)


def test_first_frame_of_the_reference_trial(mocap):
    clip = load_clip(mocap("c3d_encodings/Eb015pi.c3d"))
    assert clip.positions.shape == (450, 26, 3)
    np.testing.assert_allclose(clip.marker("RFT1")[0], [0.249, 0.2265, 0.037], atol=6e-4)
    assert np.isnan(clip.marker("LFT1")[0]).all()  # residual -1 there
    assert np.isnan(clip.positions[..., 0]).sum() == 226


@pytest.mark.parametrize(
    "name",
    [*(f"{name}.c3d" for name in ENCODINGS[:4]), "vicon_c3d/shd01.c3d", "vicon_c3d/PiG_Motion-FlatFoot-One.c3d",
     "vicon_c3d/PiG_Calibration-FlatFoot-Full.c3d", "odd_files/gaitDataPlanar.c3d"],
)  # fmt: skip
def test_agrees_with_an_independent_reader(mocap, name):
    ezc3d = pytest.importorskip("ezc3d")
    clip = load_clip(mocap(name))
    theirs = ezc3d.c3d(str(mocap(name)))
    columns = [theirs["parameters"]["POINT"]["LABELS"]["value"].index(label) for label in clip.labels]
    points = theirs["data"]["points"][:3, columns].transpose(2, 1, 0) / 1000
    unseen = theirs["data"]["meta_points"]["residuals"][0][columns].T < 0
    assert clip.rate == pytest.approx(theirs["header"]["points"]["frame_rate"])
    np.testing.assert_array_equal(np.isnan(clip.positions[..., 0]), unseen)
    np.testing.assert_allclose(clip.positions[~unseen], points[~unseen], atol=1e-9)


def test_model_outputs_are_left_out(mocap):
    clip = load_clip(mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d"))
    first = "LFHD RFHD LBHD RBHD C7 T10 CLAV STRN RBAK LSHO LELB LWRA LWRB LFIN RSHO RELB RWRA RWRB RFIN LASI RASI"
    assert " ".join(clip.labels[:21]) == first
    assert " ".join(clip.labels[21:35]) == "LPSI RPSI LTHI LKNE LTIB LANK LHEE LTOE RTHI RKNE RTIB RANK RHEE RTOE"
    assert not [label for label in clip.labels if label.endswith(("Angles", "Force", "Moment", "Power", "GRF"))]
    assert len(clip.labels) == 193 - 80


def test_points_of_an_output_group_are_left_out_whatever_their_name(tmp_path, body):
    path = write_c3d(tmp_path / "x.c3d", ["Top", "Chest", "Odd", "Toe"], body, SCALARS=["Odd"])
    assert load_clip(path).labels == ("Top", "Chest", "Toe")


def test_only_outputs_is_an_error(tmp_path, body):
    labels = ["LKneeAngles", "RKneeAngles", "LHipMoment", "LHipPower"]
    with pytest.raises(ClipError, match="all 4 points are model outputs"):
        load_clip(write_c3d(tmp_path / "x.c3d", labels, body))


def test_point_in_the_origin_is_missing(tmp_path, body):
    body[3, 0] = 0.0
    clip = load_clip(write_c3d(tmp_path / "x.c3d", ["A", "B", "C", "D"], body))
    assert np.argwhere(np.isnan(clip.positions[..., 0])).tolist() == [[3, 0]]


@pytest.mark.parametrize(
    ("name", "residual"),
    [("Eb015pr", struct.pack("<f", -1.0)), ("Eb015pi", struct.pack("<h", -1)), ("Eb015pr", struct.pack("<f", np.nan))],
)
def test_point_with_negative_residual_is_missing_wherever_it_lies(mocap, name, residual):
    data = bytearray(mocap(f"c3d_encodings/{name}.c3d").read_bytes())
    first_frame = (data[16] - 1) * 512
    at = first_frame + 2 * 4 * len(residual) + 3 * len(residual)  # fourth word of the third point
    data[at : at + len(residual)] = residual
    clip, whole = parse_c3d(bytes(data), "x.c3d"), load_clip(mocap(f"c3d_encodings/{name}.c3d"))
    changed = np.isnan(clip.positions[..., 0]) & ~np.isnan(whole.positions[..., 0])
    assert np.argwhere(changed).tolist() == [[0, 2]]


def test_nameless_points_get_a_name(tmp_path, body):
    clip = load_clip(write_c3d(tmp_path / "x.c3d", ["Top", "*", "Top", "Toe"], body))
    assert clip.labels == ("Top", "unlabelled_2", "Top_3", "Toe")
    assert len(clip.warnings) == 2


def test_header_that_contradicts_itself_is_read_with_a_warning(mocap):
    clip = load_clip(mocap("odd_files/Dance.c3d"))
    assert clip.positions.shape == (499, 40, 3)
    assert clip.rate == pytest.approx(65.0533, abs=1e-4)
    assert clip.labels[0] == "Channel101"
    assert "POINT:FRAMES is 500" in clip.warnings[0]


def test_rate_of_the_parameters_wins_over_the_header(mocap):
    data = bytearray(mocap("c3d_encodings/Eb015pr.c3d").read_bytes())
    data[20:24] = struct.pack("<f", 25.0)
    clip = parse_c3d(bytes(data), "x.c3d")
    assert clip.rate == 50.0
    assert "POINT:RATE" in clip.warnings[0]


def test_frames_of_the_parameters_win_where_the_counter_of_the_header_is_full(mocap):
    data = bytearray(mocap("c3d_encodings/Eb015pr.c3d").read_bytes())
    data[6:10] = struct.pack("<HH", 1, 65535)
    assert parse_c3d(bytes(data), "x.c3d").n_frames == 450


END = "TRIAL:ACTUAL_END_FIELD"


@pytest.mark.parametrize(
    ("parameters", "first", "held", "count"),
    [
        ({END: np.array([464, 1], "i2")}, 1, 66_000, 66_000),
        ({END: np.array([464, 1], "i2"), "POINT:FRAMES": np.array([-1], "i2")}, 1, 66_000, 66_000),
        ({END: np.array([464, 1], "i2")}, 101, 65_900, 65_900),
        ({"POINT:FRAMES": np.array([66_000.0])}, 1, 66_000, 66_000),
        ({"POINT:FRAMES": np.array([-1], "i2")}, 1, 66_000, 66_000),
        ({}, 1, 66_000, 66_000),
        ({END: np.array([464, 1], "i2")}, 1, 65_535, 65_535),
        ({}, 1, 65_535, 65_535),
    ],
)
def test_a_full_counter_is_not_the_number_of_frames(parameters, first, held, count):
    """The trial's own fields, a real number, or the bytes of the file say it."""
    assert _frame_count(parameters, first, 65_535, [], held) == count


@pytest.mark.parametrize("frames", [np.nan, np.inf])
def test_frame_count_that_is_no_number_is_ignored(frames):
    warnings = []
    assert _frame_count({"POINT:FRAMES": np.array([frames])}, 1, 20, warnings) == 20
    assert warnings == []


@pytest.mark.parametrize(
    ("patch", "says"),
    [
        ((1, b"\x00"), "not a C3D file"),
        ((0, b"\xff"), "no parameter section"),
        ((512 + 3, b"\x00"), "no parameter section"),
        ((2, b"\xff\xff"), "frames"),
        ((2, b"\x00\x00"), "header is damaged"),
        ((16, b"\x00\x00"), "header is damaged"),
        ((512 + 4 + 40, b"\x7f" * 60), "parameters are damaged"),
    ],
)
def test_damage_is_named_in_one_line(mocap, patch, says):
    data = bytearray(mocap("c3d_encodings/Eb015pi.c3d").read_bytes())
    at, replacement = patch
    data[at : at + len(replacement)] = replacement
    with pytest.raises(ClipError) as caught:
        parse_c3d(bytes(data), "x.c3d")
    assert says in str(caught.value)
    assert str(caught.value).isprintable()


def test_cut_off_file_says_how_much_there_is(mocap):
    data = mocap("c3d_encodings/Eb015pi.c3d").read_bytes()
    with pytest.raises(ClipError, match=r"ends after \d+ of 450 frames"):
        parse_c3d(data[: len(data) // 2], "x.c3d")
