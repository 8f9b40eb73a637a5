"""Analog channels of C3D: an independent reader agrees in every encoding; force files without points; time zero."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.c3d import C3dContent, _first_frame, decode_c3d, parse_c3d
from test.c3d_writer import c3d_file


@pytest.mark.parametrize(
    "name",
    ["mocap/c3d_encodings/Eb015pi.c3d", "mocap/c3d_encodings/Eb015pr.c3d", "mocap/c3d_encodings/Eb015vi.c3d",
     "mocap/vicon_c3d/PiG_Motion-FlatFoot-One.c3d", "human_motion/force_plates/walking2.c3d",
     "human_motion/force_plates/type4_upside_down.c3d", "human_motion/force_plates/FP_Type3.c3d"],
)  # fmt: skip
def test_agrees_with_an_independent_reader(model_file, name):
    ezc3d = pytest.importorskip("ezc3d")
    path = model_file(name)
    analog = decode_c3d(path.read_bytes(), str(path)).analog()
    theirs = ezc3d.c3d(str(path))
    np.testing.assert_allclose(analog.values, theirs["data"]["analogs"][0].T, rtol=1e-7, atol=1e-9)
    assert analog.rate == pytest.approx(theirs["header"]["analogs"]["frame_rate"])
    labels = [label.strip() for label in theirs["parameters"]["ANALOG"]["LABELS"]["value"]]
    assert list(analog.labels) == labels[: len(analog.labels)]
    assert np.ptp(analog.values, axis=0).max() > 0.5


def test_clip_starts_at_its_first_frame(mocap):
    clip = load_clip(mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d"))
    assert clip.start == pytest.approx(3.41)  # frame 342 at 100 Hz, counted from 1
    assert load_clip(mocap("c3d_encodings/Eb015pi.c3d")).start == 0.0


def test_channels_start_with_the_frames(mocap):
    path = mocap("vicon_c3d/PiG_Motion-FlatFoot-One.c3d")
    analog = decode_c3d(path.read_bytes(), "x.c3d").analog()
    assert analog.start == pytest.approx(3.41)
    assert len(analog.values) == 255 * 10 and analog.units[:6] == ("N", "N", "N", "Nmm", "Nmm", "Nmm")


@pytest.mark.parametrize(
    ("field", "first", "frame"),
    [([5, 1], 5, 65541), ([5, 1], 65535, 65541), ([5, 0], 5, 5), ([7, 0], 5, 5), ([-1, 0], 65535, 65535), ([5], 5, 5)],
)
def test_first_frame_beyond_16_bits(field, first, frame):
    assert _first_frame({"TRIAL:ACTUAL_START_FIELD": np.array(field, dtype=np.int16)}, first) == frame


def test_file_without_points_is_one_of_forces():
    values = np.arange(200.0).reshape(50, 4)
    data = c3d_file(values, {"ANALOG:LABELS": ["a", "b", "c", "d"]}, first=11)
    force = decode_c3d(data, "forces.c3d")
    analog = force.analog()
    np.testing.assert_array_equal(analog.values, values)
    assert (analog.rate, analog.start, force.points.shape) == (1000.0, 0.1, (5, 0, 3))
    assert analog.labels == ("a", "b", "c", "d")
    with pytest.raises(ClipError, match="no points, only analog channels"):
        parse_c3d(data, "forces.c3d")


def content(samples, **parameters):
    analog = {f"ANALOG:{name}": value for name, value in parameters.items()}
    return C3dContent(np.zeros((2, 0, 3)), np.zeros((2, 0), bool), 100.0, 0.0, samples, analog, ())


def test_scale_offset_and_general_scale():
    samples = np.array([[100, -5], [120, 7]], dtype=np.int16)
    scaled = content(
        samples, OFFSET=np.array([100, -10]), SCALE=np.array([2.0, np.nan]), GEN_SCALE=np.array([0.5]), UNITS=["N"]
    ).analog()
    np.testing.assert_allclose(scaled.values, [[0.0, 2.5], [20.0, 8.5]])
    assert scaled.units == ("N", "")


def test_unsigned_samples_are_counted_from_zero():
    samples = np.array([[-32768], [-1], [100]], dtype=np.int16)
    parameters = {"FORMAT": ["UNSIGNED"], "OFFSET": np.array([-32768], dtype=np.int16)}
    assert content(samples, **parameters).analog().values[:, 0].tolist() == [0.0, 32767.0, -32668.0]


def test_parameters_of_many_channels_go_on_in_a_second_one():
    samples = np.ones((2, 3))
    parameters = {"SCALE": np.array([1.0, 2.0]), "SCALE2": np.array([3.0]), "LABELS": ["a", "b"], "LABELS2": ["c"]}
    analog = content(samples, **parameters).analog()
    assert analog.values[0].tolist() == [1.0, 2.0, 3.0] and analog.labels == ("a", "b", "c")


def test_samples_that_do_not_divide_are_left_out_and_said(mocap):
    data = bytearray(mocap("c3d_encodings/Eb015pr.c3d").read_bytes())
    data[18:20] = struct.pack("<h", 7)
    broken = decode_c3d(bytes(data), "x.c3d")
    assert broken.samples.size == 0 and "analog samples per frame" in broken.warnings[-1]
    assert len(broken.points) == 450 and broken.analog().values.shape[1] == 0
