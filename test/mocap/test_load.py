"""load_clip: names, paths, and that no file whatever ends in anything but a clip or a one-line ClipError."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from humanoid_control.errors import ClipError, HumanoidError
from humanoid_control.mocap import CLIP_NAMES, MarkerClip, find_body_points, load_clip

FORMATS = (
    "dance_markers/walk1.trc",
    "dance_markers/btk_T_pose.trc",
    "c3d_encodings/Eb015pi.c3d",
    "c3d_encodings/Eb015vr.c3d",
    "odd_files/Dance.c3d",
    "odd_files/Eb015si.c3d",
    "vicon_c3d/shd01.c3d",
    "cmu_bvh/02_01.bvh",
)


def one_line(error):
    return str(error).isprintable() and str(error)


def test_built_in_dance_is_the_default():
    assert CLIP_NAMES == ("dance", "gentle_dance")
    clip = load_clip()
    assert clip.source == "built in"
    np.testing.assert_array_equal(clip.positions, load_clip("dance").positions)


def test_a_file_of_the_sixteen_markers_at_50_hz_shows_every_body_point_but_the_sternum(tmp_path):
    """The recording of Dube 2012 (data set A) is not public; this is a file of its kind, in millimetres, with a gap."""
    dance = load_clip("dance").crop(6, 10)
    clip = dance.select([name for name in dance.labels if name != "Sternum"])
    pairs = {name.removesuffix("_L") for name in clip.labels if name.endswith("_L")}
    assert len(clip.labels) == 16 == 2 + 2 * len(pairs) and {"Hip", "Elbow", "Wrist", "Knee", "Ankle"} < pairs
    hidden = clip.index("Wrist_L")
    head = ["PathFileType\t4\t(X/Y/Z)\ta.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += [f"50\t50\t{clip.n_frames}\t16\tmm", "Frame#\tTime\t" + "\t\t\t".join(clip.labels)]
    head += ["\t\t" + "\t".join(f"X{k}\tY{k}\tZ{k}" for k in range(1, 17)), ""]
    rows = []
    for k, points in enumerate(1000 * clip.positions):
        cells = [f"{v:.4f}" for v in points.ravel()]
        if 20 <= k < 25:
            cells[3 * hidden : 3 * hidden + 3] = ["", "", ""]
        rows.append("\t".join([str(k + 1), f"{k / 50:.4f}", *cells]))
    path = tmp_path / "a.trc"
    path.write_text("\n".join(head + rows) + "\n")

    read = load_clip(path)
    assert read.rate == 50.0 and read.labels == clip.labels
    gone = np.isnan(read.positions).all(axis=2)
    assert np.argwhere(gone).tolist() == [[k, hidden] for k in range(20, 25)]
    np.testing.assert_allclose(read.positions[~gone], clip.positions[~gone], atol=1e-7)
    found, shown = find_body_points(read), find_body_points(dance)
    assert found.estimated == ("sternum",) and found.rate == 50.0
    for name in found.names:
        if name != "sternum":
            seen = ~np.isnan(found.point(name)).any(axis=1)
            assert seen.sum() >= clip.n_frames - 5
            np.testing.assert_allclose(found.point(name)[seen], shown.point(name)[seen], atol=2e-3)


def test_path_may_be_a_string_and_the_suffix_in_capitals(mocap, tmp_path):
    path = tmp_path / "WALK.TRC"
    path.write_bytes(mocap("dance_markers/walk1.trc").read_bytes())
    clip = load_clip(str(path))
    assert clip.name == "WALK"
    assert clip.source == str(path)


def test_mistyped_name_offers_the_built_in_clip():
    with pytest.raises(ClipError, match="did you mean dance"):
        load_clip("dnace")


def test_mistyped_path_offers_the_file_beside(tmp_path):
    (tmp_path / "walk1.trc").write_text("x")
    (tmp_path / "walk1.txt").write_text("x")
    with pytest.raises(ClipError, match=r"did you mean walk1.trc\?"):
        load_clip(tmp_path / "wlak1.trc")


def test_nothing_near_names_what_there_is(tmp_path):
    with pytest.raises(ClipError, match="built-in clips: dance"):
        load_clip(tmp_path / "qqqqqqq.c3d")
    with pytest.raises(ClipError, match="built-in clips: dance"):
        load_clip(tmp_path / "no_folder" / "qqqqqqq.c3d")


def test_folder_without_a_clip(tmp_path):
    with pytest.raises(ClipError, match="contains no clip"):
        load_clip(tmp_path)


@pytest.mark.parametrize("name", ["clip.mov", "clip", "clip.c3d.gz"])
def test_format_that_is_not_read(tmp_path, name):
    (tmp_path / name).write_text("x")
    with pytest.raises(ClipError, match=r"is not supported, only .bvh, .c3d, .trc, .amc, .csv"):
        load_clip(tmp_path / name)


def test_file_without_permission(tmp_path, monkeypatch):
    path = tmp_path / "clip.trc"
    path.write_text("x")

    def denied(self):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ClipError, match="cannot be read: Permission denied"):
        load_clip(path)


def test_path_that_cannot_be_one():
    with pytest.raises(ClipError):
        load_clip("a\0b.c3d")
    with pytest.raises(ClipError):
        load_clip("~no_such_user_here/clip.c3d")


@pytest.mark.parametrize("suffix", [".trc", ".c3d", ".bvh", ".csv"])
@pytest.mark.parametrize("content", [b"", b"\n", b"\x00" * 5000, bytes(range(256)) * 20, "é\ud7ff".encode() * 600])
def test_garbage(tmp_path, suffix, content):
    path = tmp_path / f"clip{suffix}"
    path.write_bytes(content)
    with pytest.raises(ClipError) as caught:
        load_clip(path)
    assert one_line(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("relative", "suffix"),
    [("dance_markers/btk_T_pose.trc", ".c3d"), ("dance_markers/btk_T_pose.trc", ".bvh"),
     ("cmu_bvh/02_01.bvh", ".trc"), ("cmu_bvh/02_01.bvh", ".c3d"),
     ("c3d_encodings/Eb015pi.c3d", ".trc"), ("c3d_encodings/Eb015pi.c3d", ".bvh")],
)  # fmt: skip
def test_file_under_a_false_suffix(mocap, tmp_path, relative, suffix):
    path = tmp_path / f"clip{suffix}"
    path.write_bytes(mocap(relative).read_bytes())
    with pytest.raises(ClipError, match=f"not a {suffix[1:].upper()} file"):
        load_clip(path)


def test_empty_file_is_called_empty(tmp_path):
    (tmp_path / "clip.c3d").write_bytes(b"")
    with pytest.raises(ClipError, match="is empty"):
        load_clip(tmp_path / "clip.c3d")


def test_rate_is_only_for_files_that_state_none(mocap):
    with pytest.raises(ClipError, match="contains its frame rate"):
        load_clip(mocap("dance_markers/walk1.trc"), rate=50.0)


def survives(path):
    """Load a damaged file and use it; anything but success or a one-line message fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            clip = load_clip(path)
        except ClipError as error:
            assert one_line(error)
            return "error"
        assert isinstance(clip, MarkerClip)
        try:
            find_body_points(clip)
        except HumanoidError as error:
            assert one_line(error)
        return "clip"


@pytest.mark.parametrize("relative", FORMATS)
def test_random_damage_ends_in_a_clip_or_a_message(mocap, tmp_path, relative):
    source = mocap(relative)
    path = tmp_path / source.name
    rng = np.random.default_rng(7)
    for trial in range(40):
        data = bytearray(source.read_bytes())
        reach = len(data) if trial % 2 else min(len(data), 4000)  # every other time only where the header is
        for at in rng.integers(0, reach, (1, 5, 60)[trial % 3]):
            data[at] = (
                rng.integers(256) if source.suffix == ".c3d" or trial % 4 == 0 else rng.choice(list(b"0.-e\t{}x"))
            )
        path.write_bytes(data)
        assert survives(path) in ("clip", "error")


@pytest.mark.parametrize("relative", FORMATS)
def test_truncated_file_is_an_error(mocap, tmp_path, relative):
    source = mocap(relative)
    data = source.read_bytes()
    path = tmp_path / source.name
    # Up to 99 %: padding or a line end may be missing without harm.
    for share in (0.001, 0.01, 0.05, 0.3, 0.7, 0.99):
        path.write_bytes(data[: int(len(data) * share)])
        assert survives(path) == "error", f"{share:.1%} of the file"


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(suffix=st.sampled_from([".trc", ".c3d", ".bvh", ".csv"]), head=st.sampled_from(
    [b"", b"time,a_x,a_y,a_z,b_x,b_y,b_z\n0,0,0,0,1,1,1\n",
     b"PathFileType\t4\nDataRate\tNumFrames\tUnits\n50\t2\tmm\n", b"HIERARCHY\nROOT a\n{\nMOTION\n", b"\x02\x50"]
), tail=st.binary(max_size=3000))  # fmt: skip
def test_any_bytes_end_in_a_clip_or_a_message(tmp_path, suffix, head, tail):
    path = tmp_path / f"clip{suffix}"
    path.write_bytes(head + tail)
    assert survives(path) in ("clip", "error")


ODD_FILES = {
    "Dance.c3d": ("POINT:FRAMES is 500, in the header 499", "none of its 40 labels (Channel101"),
    "Eb015si.c3d": (None, "none of its 26 labels (RFT1, RFT2, RFT3, ...) belongs to one"),  # big-endian: nothing wrong
    "gaitDataPlanar.c3d": (
        "states unit 'M', in which the markers span 1650: read as mm",
        "three dimensions are needed",
    ),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_odd_files_are_read_and_what_they_lack_is_said(mocap, name):
    """A file that lies or is malformed is read with a warning that says so, and refused where it lacks a body."""
    warning, refusal = ODD_FILES[name]
    clip = load_clip(mocap(f"odd_files/{name}"))
    assert [warning in w for w in clip.warnings] == ([True] if warning else [])
    with pytest.raises(ClipError) as caught:
        find_body_points(clip)
    assert one_line(caught.value)
    assert refusal in str(caught.value)


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("dance_markers/walk1.trc", "mm"),
        ("cmu_bvh/07_01.bvh", "inch"),
        ("cmu_asf/11_01.amc", "inch"),
        ("c3d_encodings/Eb015pi.c3d", "mm"),
    ],
)
def test_unit_and_scale_hold_for_every_format(mocap, path, unit):
    usual, told = load_clip(mocap(path)), load_clip(mocap(path), unit=unit, scale=0.5)
    factor = np.nanmedian(told.positions / usual.positions)
    np.testing.assert_allclose(told.positions, usual.positions * factor, rtol=1e-9, atol=1e-12)
    assert any(f"read as {unit} times 0.5, as given" in warning for warning in told.warnings)
    twice = load_clip(mocap(path), unit=unit, scale=1.0)
    np.testing.assert_allclose(twice.positions, 2 * told.positions, rtol=1e-9, atol=1e-12)


def test_unit_of_the_built_in_clip_is_known():
    with pytest.raises(ClipError, match="is in metres"):
        load_clip("dance", unit="mm")
