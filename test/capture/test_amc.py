"""ASF and AMC: bones and markers are where an independent program puts them, in every unit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.asf_amc import parse_amc
from humanoid_control.mocap.formats.common import CMU_UNIT
from test.capture.amc_person import ASF, ORDER, amc, parsed, still


def random_frames(rng, n=3, size=180.0):
    return [{bone: (size * rng.uniform(-1, 1, k)).round(4).tolist() for bone, k in ORDER.items()} for _ in range(n)]


def turn(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    R = np.eye(3)
    R[i, i], R[j, j], R[j, i], R[i, j] = c, c, s, -s
    return R


def turned(order, angles):
    """Fixed axes, the first turn first: the last one stands leftmost."""
    R = np.eye(3)
    for axis, angle in zip(order, angles, strict=True):
        R = turn(axis, angle) @ R
    return R


def by_hand(frame):
    tz, tx, ty, ry, rz, rx = frame["root"]
    C = turned("xzy", [10, -30, 20])
    R_root = C @ turned("yzx", [ry, rz, rx]) @ C.T
    p_root = np.array([1 + tx, 2 + ty, 3 + tz])
    C = turned("xyz", [0, 0, 20])
    R_thigh = R_root @ C @ turned("xyz", frame["thigh"]) @ C.T
    knee = p_root + R_thigh @ np.array([0.34202, -0.939693, 0]) / math.hypot(0.34202, 0.939693) * 7
    C = turned("zxy", [35, 15, -25])
    R_shin = R_thigh @ C @ turned("zx", frame["shin"]) @ C.T
    ankle = knee + R_shin @ np.array([0, -14.0, 0])
    C = turned("yzx", [6, 7, 5])
    R_head = R_root @ C @ turned("y", frame["head"]) @ C.T
    return {
        "root": p_root, "thigh": p_root, "head": p_root, "head_end": p_root + R_head @ np.array([0, 5.0, 0]),
        "shin": knee, "foot": ankle, "foot_end": ankle + R_shin @ np.array([0, 0, 2.0]),
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(4))
def test_forward_kinematics_agree_with_an_independent_one(seed):
    frames = random_frames(np.random.default_rng(seed))
    clip = parsed(frames)
    assert set(clip.labels) == set(by_hand(frames[0]))
    for number, frame in enumerate(frames):
        for label, position in by_hand(frame).items():
            np.testing.assert_allclose(clip.marker(label)[number], position * CMU_UNIT, atol=1e-9)


def test_bone_whose_values_are_left_out_rests():
    frames = random_frames(np.random.default_rng(9))
    resting = [{**frame, "shin": [0, 0], "thigh": [0, 0, 0]} for frame in frames]
    sparse = [{bone: values for bone, values in frame.items() if bone not in ("shin", "thigh")} for frame in frames]
    np.testing.assert_allclose(parsed(sparse).positions, parsed(resting).positions, atol=1e-12)


def test_radians_and_degrees_give_the_same_clip():
    frames = random_frames(np.random.default_rng(5))
    angles = {"root": slice(3, 6), "thigh": slice(0, 3), "shin": slice(0, 2), "head": slice(0, 1)}
    in_rad = [{bone: list(values) for bone, values in frame.items()} for frame in frames]
    for frame in in_rad:
        for bone, which in angles.items():
            frame[bone][which] = np.radians(frame[bone][which]).tolist()
    clip = parse_amc(amc(in_rad, ":RADIANS\n"), "x.amc", ASF.encode(), "x.asf", 120.0)
    np.testing.assert_allclose(clip.positions, parsed(frames).positions, atol=1e-9)


def test_windows_line_ends_do_not_matter():
    frames = random_frames(np.random.default_rng(2))
    data, skeleton = (text.replace(b"\n", b"\r\n") for text in (amc(frames), ASF.encode()))
    clip = parse_amc(data, "x.amc", skeleton, "x.asf", 120.0)
    np.testing.assert_array_equal(clip.positions, parsed(frames).positions)


@pytest.mark.parametrize(("length", "unit"), [("0.45", CMU_UNIT), ("0.5", 0.0508)])
def test_length_unit_of_the_file_is_in_inches(length, unit):
    clip = parsed(still(), ASF.replace("length 0.45", f"length {length}"))
    assert np.linalg.norm(clip.marker("shin") - clip.marker("foot"), axis=1) == pytest.approx(14 * unit)
    assert clip.warnings == ()


@pytest.mark.parametrize(("stated", "says"), [("length 1.0", "in which no person fits"), ("mass 2", "states no unit")])
def test_length_unit_that_fits_nobody_is_replaced_by_body_size(stated, says):
    # Bones from ankle to head: 21 units, a person in CMU units only.
    clip = parsed(still(), ASF.replace("length 0.45", stated))
    assert says in clip.warnings[-1]
    assert np.linalg.norm(clip.marker("shin") - clip.marker("foot"), axis=1) == pytest.approx(14 * CMU_UNIT)


def test_real_motion_of_the_database(mocap):
    clip = load_clip(mocap("cmu_asf/11_01.amc"))
    assert (clip.n_frames, clip.rate) == (597, 120.0)
    assert "120 Hz is taken" in clip.warnings[0]
    shin = np.linalg.norm(clip.marker("ltibia") - clip.marker("lfoot"), axis=1)
    assert shin == pytest.approx(7.80828 * CMU_UNIT)
    np.testing.assert_allclose(clip.marker("root")[0], np.array([12.2047, 17.4653, -40.3148]) * CMU_UNIT, atol=1e-9)
    assert load_clip(mocap("cmu_asf/11_01.amc"), rate=60.0).rate == 60.0
    assert -0.1 < clip.marker("ltoes")[:, 1].min() < 0.1  # y is up in that file, and the floor at zero
