"""Tables of markers as programs write them: words for nothing, clock times, axes in brackets, places that are none."""

import numpy as np
import pytest

from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip

WORDS = ("NaN", "1.#QNAN", "-1.#IND", "#N/A", "null", "-", "")
MARKERS = ("a", "b")


def trc(rows, times):
    head = ["PathFileType\t4\t(X/Y/Z)\tx.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += [f"100\t100\t{len(rows)}\t2\tmm", "Frame#\tTime\ta\t\t\tb\t\t", "\t\tX1\tY1\tZ1\tX2\tY2\tZ2", ""]
    return "\n".join(
        [*head, *("\t".join([str(k), t, *row]) for k, (t, row) in enumerate(zip(times, rows, strict=True)))]
    )


def csv(rows, times, names=("_x", "_y", "_z")):
    head = ",".join(["time", *(m + axis for m in MARKERS for axis in names)])
    return "\n".join([head, *(",".join([t, *row]) for t, row in zip(times, rows, strict=True))])


def moving(n=20):
    return [[f"{v:.3f}" for v in (10.0 * k, 0.0, 1700.0, 5.0, 50.0, 20.0)] for k in range(n)]


def read(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    return load_clip(tmp_path / name)


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("write", [trc, csv])
def test_words_for_what_was_not_measured_are_read_as_such(tmp_path, write, word):
    rows, times = moving(), [f"{k / 100:.3f}" for k in range(20)]
    rows[3][3:] = [word] * 3
    clip = read(tmp_path, f"x.{write.__name__}", write(rows, times))
    assert np.argwhere(np.isnan(clip.positions).any(axis=2)).tolist() == [[3, 1]]


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ([f"10:00:59.{k:02d}" for k in range(20)], 36059.0),
        ([f"2024-05-01T10:00:00.{k:02d}0Z" for k in range(20)], 1714557600.0),
        ([f"2024-05-01 12:00:00.{k:02d}0+02:00" for k in range(20)], 1714557600.0),
    ],
    ids=["time of day", "ISO 8601", "with a zone"],
)
def test_clock_times_of_a_table_are_times(tmp_path, times, start):
    clip = read(tmp_path, "x.csv", csv(moving(), times))
    assert clip.rate == pytest.approx(100, abs=1e-3) and clip.start == pytest.approx(start, abs=1e-6)


def test_axes_in_brackets_and_a_time_beside_the_labels_are_found(tmp_path):
    times = [f"{k / 50:.3f}" for k in range(20)]
    plain = read(tmp_path, "plain.csv", csv(moving(), times))
    brackets = read(tmp_path, "brackets.csv", csv(moving(), times, (" (X)", " (Y)", " (Z)")))
    rows = csv(moving(), times).splitlines()[1:]
    two = read(tmp_path, "two.csv", "\n".join(["time,a,,,b,,", ",X,Y,Z,X,Y,Z", *rows]))
    for clip in (brackets, two):
        assert clip.labels == MARKERS and clip.rate == plain.rate == 50
        assert np.array_equal(clip.positions, plain.positions, equal_nan=True)


def test_a_time_column_that_stands_still_is_named(tmp_path):
    clip = read(tmp_path, "x.trc", trc(moving(), ["0.0"] * 20))
    assert clip.rate == 100 and any("time column does not increase at row 2" in w for w in clip.warnings)


def test_a_marker_beyond_all_places_is_refused_by_name(tmp_path):
    rows = moving()
    rows[4][0] = "1e30"
    with pytest.raises(ClipError, match="'a' is 1e\\+27 m away in frame 4"):
        read(tmp_path, "x.trc", trc(rows, [f"{k / 100:.3f}" for k in range(20)]))


def test_a_frame_of_infinite_places_is_named(tmp_path):
    rows = moving()
    rows[4] = ["inf"] * 6
    with pytest.raises(ClipError, match="'a' is infinite in frame 4"):
        read(tmp_path, "x.trc", trc(rows, [f"{k / 100:.3f}" for k in range(20)]))
