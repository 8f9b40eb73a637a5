"""Tables of Qualisys with each header that its export writes, frame numbers with gaps, and texts in other encodings."""

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip

LABELS = ("l_hip", "r_hip", "head top")
RNG = np.random.default_rng(5)
PLACES = np.round(
    1000 * np.array([[0.1, 0.2, 0.9], [-0.1, 0.2, 0.9], [0.0, 0.2, 1.7]]) + RNG.normal(0, 5, (40, 3, 3)), 3
)


def numbers(row, separator):
    return separator.join("" if np.isnan(v) else f"{v:.3f}" for v in PLACES[row].ravel())


def qualisys(separator="\t", between=(), pre=None, frames=40, rows=40):
    keys = [("NO_OF_FRAMES", frames), ("NO_OF_CAMERAS", 8), ("NO_OF_MARKERS", 3), ("FREQUENCY", 200)]
    keys += [("ANALOG_FREQUENCY", 1000), ("TIME_STAMP", "2024-03-01, 10:11:12.345")]
    lines = [separator.join(str(v) for v in key) for key in keys]
    lines += [separator.join(("MARKER_NAMES", *LABELS)), *between]
    lines += [(pre(k) + separator if pre else "") + numbers(k, separator) for k in range(rows)]
    return "\n".join(lines) + "\n"


AXES = "\t".join(f"{label} {axis}" for label in LABELS for axis in "XYZ")
FRAME_AND_TIME = {"pre": lambda k: f"{k + 1}\t{k / 200:.5f}"}


@pytest.mark.parametrize(
    "text",
    [
        qualisys(),
        qualisys(between=[AXES]),
        qualisys(between=["TRAJECTORY_TYPES" + "\tMeasured" * 3, AXES]),
        qualisys(between=["EVENT\tstep\t12\t0.12", f"Frame\tTime\t{AXES}"], **FRAME_AND_TIME),
        qualisys(**FRAME_AND_TIME),
        "FILE_VERSION\t2.0\n" + qualisys(between=[AXES]),
        qualisys(separator=";"),
        qualisys().replace("\n", "\r\n"),
    ],
)
def test_every_header_gives_the_same_clip(tmp_path, text):
    for suffix in (".tsv", ".csv"):
        path = tmp_path / f"walk{suffix}"
        path.write_bytes(text.encode())
        clip = load_clip(path, unit="mm")
        assert clip.labels == LABELS and clip.rate == 200 and clip.n_frames == 40
        assert np.allclose(clip.positions, PLACES / 1000, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (qualisys(rows=30), "ends after 30 of 40 frames"),
        (qualisys().replace("MARKER_NAMES", "BODY_NAMES"), "without a line MARKER_NAMES.*3D data"),
        (qualisys()[:-20], "the file is cut off"),
    ],
)
def test_what_is_cut_or_holds_no_markers_is_refused(tmp_path, text, words):
    path = tmp_path / "walk.tsv"
    path.write_text(text)
    with pytest.raises(ClipError, match=words):
        load_clip(path)


def vicon(frames, sub=0):
    labels = ",,,".join(f"S:{label}" for label in LABELS)
    head = ["Trajectories", "200", f",,{labels},,", "Frame,Sub Frame" + ",X,Y,Z" * 3, ",," + ",".join(["mm"] * 9)]
    return "\n".join([*head, *(f"{frame},{sub},{numbers(k, ',')}" for k, frame in enumerate(frames))]) + "\n"


def test_frame_numbers_are_the_time_of_a_table_without_one(tmp_path):
    path = tmp_path / "walk.csv"
    kept = [k for k in range(40) if not 10 <= k < 16]
    path.write_text(vicon([101 + k for k in range(34)]))
    assert load_clip(path).start == pytest.approx(0.5) and not load_clip(path).warnings
    path.write_text(vicon([101 + k for k in kept]))
    clip = load_clip(path)
    assert clip.n_frames == 40 and np.isnan(clip.positions[10:16]).all() and "6 of 40 frames" in clip.warnings[0]
    assert np.allclose(clip.positions[16:], PLACES[10:34] / 1000)
    path.write_text(vicon(range(1, 120, 3)))
    assert (
        load_clip(path).rate == pytest.approx(200 / 3) and "every row is 3 frames after" in load_clip(path).warnings[0]
    )
    path.write_text(vicon([*range(1, 21), *range(1, 21)]))
    assert "frame numbers do not increase" in load_clip(path).warnings[0]


def test_an_export_without_trajectories_says_so(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text("Model Outputs\n100\n,,S:LHipAngles,,\nFrame,Sub Frame,X,Y,Z\n,,deg,deg,deg\n1,0,1,2,3\n")
    with pytest.raises(ClipError, match="contains Model Outputs, no Trajectories"):
        load_clip(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_labels_are_read_in_the_encoding_of_the_file(tmp_path, encoding):
    path = tmp_path / "gehen.tsv"
    path.write_bytes(qualisys().replace("head top", "Schädel").encode(encoding))
    assert load_clip(path).labels[2] == "Schädel"
