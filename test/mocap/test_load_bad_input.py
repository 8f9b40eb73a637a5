"""Bad input of every kind, for every reader: one line that says what is wrong and where, never a traceback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import MarkerClip, clean, find_body_points, load_body_points, load_clip, synthetic_dance

DANCE = synthetic_dance(duration=12, rate=5)
LABELS = ("Top", "Chest", "Hip", "Toe")
BODY = np.tile(np.array([[10.0, 20, 1700], [10, 30, 1400], [5, 20, 900], [0, 20, 30]]), (5, 1, 1))
BODY += np.arange(5)[:, None, None]
SUFFIXES = (".c3d", ".trc", ".csv", ".bvh", ".amc")


def write_trc(path, labels, points, rate, unit):
    cells = "\t".join(f"{label}\t\t" for label in labels)
    rows = [
        "\t".join([str(k + 1), f"{k * 0.01:.3f}", *("" if np.isnan(v) else f"{v:.3f}" for v in frame.ravel())])
        for k, frame in enumerate(points)
    ]
    head = ["PathFileType\t4\t(X/Y/Z)\tx.trc", "DataRate\tNumFrames\tNumMarkers\tUnits",
            f"{rate}\t{len(points)}\t{len(labels)}\t{unit}", f"Frame#\tTime\t{cells}", "\t\tX1\tY1\tZ1"]  # fmt: skip
    path.write_text("\n".join([*head, *rows]) + "\n")


def write_csv(path, labels, points, rate, unit):
    head = ",".join(f"{label}_{axis}" for label in labels for axis in "xyz")
    rows = [",".join("" if np.isnan(v) else f"{v:.3f}" for v in frame.ravel()) for frame in points]
    path.write_text("\n".join([f"# rate: {rate}", f"# unit: {unit}", head, *rows]) + "\n")


def write_c3d(path, labels, points, rate, unit):
    ezc3d = pytest.importorskip("ezc3d")
    out = ezc3d.c3d()
    out["parameters"]["POINT"]["RATE"]["value"] = [float(rate)]
    out["parameters"]["POINT"]["LABELS"]["value"] = list(labels)
    out["parameters"]["POINT"]["UNITS"]["value"] = [unit]
    homogeneous = np.ones((4, points.shape[1], points.shape[0]))
    homogeneous[:3] = points.transpose(2, 1, 0)
    out["data"]["points"] = homogeneous
    out.write(str(path))


def write_bvh(path, labels, points, rate, unit):
    """The points as joints that are moved by position channels only."""
    lines = ["HIERARCHY", "ROOT World", "{", "OFFSET 0 0 0", "CHANNELS 0"]
    for label in labels:
        lines += [f"JOINT {label}", "{", "OFFSET 0 0 0", "CHANNELS 3 Xposition Yposition Zposition", "}"]
    step = 1 / rate if rate else 0.0
    rows = [" ".join(f"{v:.3f}" for v in frame.ravel()) for frame in points]
    path.write_text("\n".join([*lines, "}", "MOTION", f"Frames: {len(points)}", f"Frame Time: {step}", *rows]) + "\n")


WRITERS = {".trc": write_trc, ".csv": write_csv, ".c3d": write_c3d, ".bvh": write_bvh}
MARKERS = (".trc", ".csv", ".c3d")


def refusal(call, *args):
    """The message of a ClipError, which must be one line."""
    with pytest.raises(ClipError) as caught:
        call(*args)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a small person in a format and gives the path."""

    def write(suffix, labels=LABELS, points=BODY, rate=100, unit="mm"):
        path = tmp_path / f"clip{suffix}"
        WRITERS[suffix](path, labels, points, rate, unit)
        return path

    return write


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_person_that_is_broken_below_is_read_when_whole(written, suffix):
    clip = load_clip(written(suffix))
    top, toe = clip.marker("Top"), clip.marker("Toe")
    assert np.linalg.norm(top - toe, axis=1) == pytest.approx(1.67, abs=0.002)
    assert clip.rate == pytest.approx(100)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_missing_file(tmp_path, suffix):
    path = tmp_path / f"nowhere{suffix}"
    assert f"{path}: clip not found" in refusal(load_clip, path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"\n"])
def test_empty_file(tmp_path, suffix, content):
    path = tmp_path / f"clip{suffix}"
    path.write_bytes(content)
    (tmp_path / "clip.asf").write_text("x")
    assert str(path) in refusal(load_clip, path) or "clip.asf" in refusal(load_clip, path)


@pytest.mark.parametrize("suffix", [".trc", ".csv", ".bvh"])
def test_no_frames(written, suffix):
    message = refusal(load_clip, written(suffix, points=BODY[:0]))
    assert "frame" in message or "no frame contains two markers" in message


@pytest.mark.parametrize("suffix", WRITERS)
def test_one_frame(written, suffix):
    assert "1 frame" in refusal(load_clip, written(suffix, points=BODY[:1]))


@pytest.mark.parametrize("suffix", MARKERS)
def test_nan_everywhere(written, suffix):
    message = refusal(load_clip, written(suffix, points=np.full_like(BODY, np.nan)))
    assert "no frame contains two markers" in message


def test_nan_in_a_skeleton(written):
    assert "non-numeric" in refusal(load_clip, written(".bvh", points=np.full_like(BODY, np.nan)))


@pytest.mark.parametrize("suffix", WRITERS)
def test_duplicated_labels_are_renamed_with_a_warning(written, suffix):
    clip = load_clip(written(suffix, labels=("Top", "Chest", "Top", "Toe")))
    assert len(set(clip.labels)) == len(clip.labels)
    assert any("duplicate labels were renamed: 'Top' to 'Top_" in warning for warning in clip.warnings)


def test_duplicated_labels_made_by_a_program_are_refused():
    assert "label 'a' occurs more than once" in refusal(
        MarkerClip, "x", ("a", "b", "a"), 50.0, np.zeros((3, 3, 3)), "test"
    )


@pytest.mark.parametrize("suffix", [".trc", ".csv", ".bvh"])
def test_zero_hertz(written, suffix):
    message = refusal(load_clip, written(suffix, rate=0))
    assert "rate" in message or "Frame Time" in message


def test_zero_hertz_in_header_and_parameters_of_c3d(written):
    path = written(".c3d")
    data = path.read_bytes().replace(np.float32(100).tobytes(), np.float32(0).tobytes())
    path.write_bytes(data)
    assert "got 0.0 Hz" in refusal(load_clip, path)


@pytest.mark.parametrize("suffix", MARKERS)
def test_wrong_unit_is_seen_through(written, suffix):
    clip = load_clip(written(suffix, unit="m"))
    assert any("states unit 'm'" in warning and "read as mm" in warning for warning in clip.warnings)
    assert np.linalg.norm(clip.marker("Top") - clip.marker("Toe"), axis=1) == pytest.approx(1.67, abs=0.002)


@pytest.mark.parametrize("suffix", WRITERS)
def test_unit_in_which_nobody_fits(written, suffix):
    assert "implausible for a person" in refusal(load_clip, written(suffix, points=BODY * 1e5))


# --- What only shows when the body is looked for


LIMBS = [("Elbow_L", "GH_L"), ("Wrist_R", "Elbow_R"), ("GH_L", "GH_R"), ("Hip_L", "Hip_R")]


@pytest.mark.parametrize(("label", "onto"), LIMBS)
def test_limb_without_length(label, onto):
    positions = np.array(DANCE.positions)
    positions[:, DANCE.index(label)] = positions[:, DANCE.index(onto)]
    message = refusal(find_body_points, replace(DANCE, positions=positions))
    assert "0.000 m apart" in message and "clip 'dance'" in message


def test_body_that_is_never_seen():
    positions = np.array(DANCE.positions)
    positions[:, 3:] = np.nan
    assert "no marker set fits" in refusal(find_body_points, replace(DANCE, positions=positions))


def test_nothing_is_seen_at_all():
    blank = replace(DANCE, positions=np.full_like(DANCE.positions, np.nan))
    cleaned, report = clean(blank)
    assert np.isnan(cleaned.positions).all() and report.warnings == ()
    assert "no marker set fits" in refusal(find_body_points, cleaned)


def test_two_frames_are_enough():
    pair = replace(DANCE, positions=DANCE.positions[:2])
    assert find_body_points(clean(pair)[0]).n_frames == 2


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_one_call_refuses_as_the_reader_does(tmp_path, suffix):
    assert "clip not found" in refusal(load_body_points, tmp_path / f"nowhere{suffix}")
