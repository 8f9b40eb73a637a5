"""Counts, times and rates of files: what a file says about them is used, and what contradicts it is named."""

import json
import re

import numpy as np
import pytest

from humanoid_control.documents import yaml_text
from humanoid_control.errors import ClipError
from humanoid_control.mocap import load_clip
from humanoid_control.mocap.formats.bvh import parse_bvh
from humanoid_control.mocap.formats.common import base_step, on_even_times
from humanoid_control.mocap.formats.csv import parse_csv
from humanoid_control.mocap.formats.trc import parse_trc
from test.mocap.formats.test_bvh_dialects import DIALECTS, bvh


def table(kind, times, stated=60.0, speed=1000.0):
    """A file of two markers, of which the first one moves 1 m a second, in whatever unit the times are."""
    rows = [(t, speed * t, 0.0, 1700.0, 0.0, 50.0, 20.0) for t in times]
    if kind == "csv":
        lines = ["time,a_x,a_y,a_z,b_x,b_y,b_z", *(",".join(f"{v:.6f}" for v in row) for row in rows)]
        return "\n".join(lines).encode()
    head = ["PathFileType\t4\t(X/Y/Z)\tx.trc", "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits"]
    head += [f"{stated:g}\t{stated:g}\t{len(rows)}\t2\tmm", "Frame#\tTime\ta\t\t\tb", "\t\tX1\tY1\tZ1\tX2\tY2\tZ2", ""]
    lines = ["\t".join([str(k), *(f"{v:.6f}" for v in row)]) for k, row in enumerate(rows, start=1)]
    return "\n".join([*head, *lines]).encode()


PARSERS = {"trc": parse_trc, "csv": parse_csv}


def read(kind, times, **more):
    return PARSERS[kind](table(kind, times, **more), f"x.{kind}")


@pytest.mark.parametrize("kind", PARSERS)
def test_the_time_column_is_the_time(kind):
    clip = read(kind, np.arange(240) / 60, stated=30.0)
    assert clip.rate == 60.0 and clip.duration == pytest.approx(239 / 60)
    assert any("the time column is used" in w for w in clip.warnings) == (kind == "trc")


@pytest.mark.parametrize("kind", PARSERS)
def test_rows_that_cameras_dropped_are_frames_without_markers(kind):
    times = np.delete(np.arange(400) / 100, np.arange(200, 208))
    clip = read(kind, times, stated=100.0)
    assert (clip.rate, clip.n_frames) == (100.0, 400)
    hidden = np.isnan(clip.marker("a")[:, 0])
    assert hidden[200:208].all() and hidden.sum() == 8
    np.testing.assert_allclose(clip.marker("a")[~hidden, 0], clip.times[~hidden], atol=1e-6)
    assert any(
        "from 0.01 to 0.09 s: 8 of 400 frames at 100 Hz have no row, the first after 1.990 s" in w
        for w in clip.warnings
    )


@pytest.mark.parametrize("kind", PARSERS)
def test_steps_of_several_lengths_keep_their_times(kind):
    steps = np.tile([1 / 20, 1 / 60, 1 / 60], 40)
    clip = read(kind, np.concatenate([[0], np.cumsum(steps)]), stated=36.0)
    assert clip.rate == 60.0 and clip.duration == pytest.approx(steps.sum())
    seen = ~np.isnan(clip.marker("a")[:, 0])
    np.testing.assert_allclose(clip.marker("a")[seen, 0], clip.times[seen], atol=1e-4)


@pytest.mark.parametrize("kind", PARSERS)
def test_steps_without_a_common_one_are_interpolated(kind):
    times = np.cumsum(np.random.default_rng(1).uniform(0.01, 0.03, 200))
    clip = read(kind, times, stated=50.0)
    np.testing.assert_allclose(clip.marker("a")[:, 0] - clip.marker("a")[0, 0], clip.times, atol=1e-5)
    assert clip.n_frames == 200 and any("interpolated at" in w for w in clip.warnings)


@pytest.mark.parametrize(("rate", "digits"), [(120, 3), (60, 3), (100, 2), (29.97, 3), (240, 3)])
def test_rounded_times_are_even(rate, digits):
    times = np.round(np.arange(600) / rate, digits)
    found, positions, notes = on_even_times(times, np.zeros((600, 1, 3)), rate, "x")
    assert found == rate and len(positions) == 600 and notes == ()
    assert on_even_times(times, np.zeros((600, 1, 3)), None, "x")[0] == pytest.approx(rate, rel=1e-3)


def test_a_gap_of_hours_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("humanoid_control.mocap.formats.common.ALWAYS_ALLOWED", 2**20)
    with pytest.raises(ClipError, match="MiB of memory"):
        read("trc", [0.0, 0.001, 0.002, 59.0], stated=1000.0)
    assert base_step(np.zeros(0)) == 0.0


@pytest.mark.parametrize("kind", PARSERS)
def test_a_gap_of_more_than_a_minute_lies_between_two_recordings(kind):
    times = np.arange(600) / 100
    with pytest.raises(ClipError, match=r"no row from 2\.99 to 3603\.00 s: two recordings in one table"):
        read(kind, np.where(times < 3, times, times + 3600), stated=100.0, speed=0.0)
    assert read(kind, np.where(times < 3, times, times + 50), stated=100.0, speed=0.0).n_frames == 5600


UNITS_OF_TIME = [(1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")]


@pytest.mark.parametrize(("factor", "unit"), UNITS_OF_TIME)
@pytest.mark.parametrize("rate", [10, 29.97, 120, 200])
def test_a_unit_of_time_that_is_not_named_is_known_by_the_rate_and_reported(factor, unit, rate):
    times = np.round((5.0 + np.arange(300) / rate) * factor)
    clip = read("csv", times, speed=0.0)
    assert clip.rate == pytest.approx(rate, rel=2e-3) and clip.n_frames == 300
    assert clip.start == pytest.approx(5.0, abs=1e-3)
    assert any(f"the time column counts {unit}" in w for w in clip.warnings)


@pytest.mark.parametrize("rate", [5, 10, 100, 2000])
def test_usual_rates_are_in_seconds_without_a_note(rate):
    clip = read("csv", np.arange(100) / rate, speed=0.0)
    assert clip.rate == rate and not any("counts" in w for w in clip.warnings)


def test_times_that_count_rows_need_a_rate():
    rows = table("csv", np.arange(300.0), speed=0.0)
    with pytest.raises(ClipError, match=r"contains 1, 2, 3: give the rate \(--rate 120"):
        parse_csv(rows, "x.csv")
    clip = parse_csv(rows, "x.csv", rate=120.0)
    assert clip.rate == 120.0 and clip.n_frames == 300 and "the time column counts frames" in clip.warnings
    assert parse_csv(b"# rate: 60\n" + rows, "x.csv").rate == 60.0
    clip = parse_csv(rows.replace(b"time", b"time_ms", 1), "x.csv")
    assert clip.rate == 1000.0


def test_a_unit_of_time_in_the_row_of_units_is_the_unit():
    rows = table("csv", np.arange(300.0), speed=0.0).replace(b"b_z\n", b"b_z\nms,mm,mm,mm,mm,mm,mm\n", 1)
    assert parse_csv(rows, "x.csv").rate == 1000.0


@pytest.mark.parametrize("step", [0.3, 1e-4, 3e5])
def test_times_that_make_no_rate_in_any_unit_are_refused(step):
    with pytest.raises(ClipError, match="is not 5 to 2000 Hz in any unit: write times in seconds"):
        read("csv", step * np.arange(100), speed=0.0)


# -------- BVH

WALK = bvh(*DIALECTS["cmu_bvh"])


def test_one_row_more_than_the_header_says_is_read_with_a_warning():
    count = int(re.search(rb"Frames: (\d+)", WALK)[1])
    clip = parse_bvh(WALK.replace(b"Frames: %d" % count, b"Frames: %d" % (count - 1)), "x.bvh")
    assert clip.n_frames == parse_bvh(WALK, "x.bvh").n_frames
    assert f"the header declares {count - 1} frames, the file contains {count}: all are used" in clip.warnings
    with pytest.raises(ClipError, match="it is cut off"):
        parse_bvh(WALK.replace(b"Frames: %d" % count, b"Frames: %d" % (count + 1)), "x.bvh")
    with pytest.raises(ClipError, match="it is damaged"):
        parse_bvh(WALK + b"1 2 3\n", "x.bvh")


def test_the_user_corrects_the_rate_of_a_bvh_file(tmp_path):
    path = tmp_path / "x.bvh"
    path.write_bytes(WALK.replace(b"Frame Time: 0.01", b"Frame Time: 0.041667"))
    clip = load_clip(path, rate=120.0)
    assert clip.rate == 120.0 and any("120 Hz is used" in w for w in clip.warnings)
    assert load_clip(path).rate == pytest.approx(24, abs=1e-3)


# -------- glTF


def gltf(keys, second=None, view=True):
    """A skeleton of which one bone moves, at these times; perhaps a second animation."""
    import base64

    names = ["hips", "head", "l_foot", "r_foot"]
    places = [[0, 0.9, 0], [0, 0.7, 0], [0.1, -0.85, 0], [-0.1, -0.85, 0]]
    data, views, accessors = b"", [], []

    def put(values, kind):
        nonlocal data
        values = np.asarray(values, "<f4")
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": values.nbytes})
        accessors.append({"bufferView": len(views) - 1, "componentType": 5126, "type": kind, "count": len(values)})
        data += values.tobytes()
        return len(accessors) - 1

    animations = []
    for name, times in (("walk", keys), ("pose", second)):
        if times is not None:
            moved = np.stack([np.asarray(times) * 0 + 0.0, 0.9 + 0 * np.asarray(times), np.asarray(times)], axis=1)
            sampler = {"input": put(times, "SCALAR"), "output": put(moved, "VEC3")}
            target = {"sampler": 0, "target": {"node": 0, "path": "translation"}}
            animations.append({"name": name, "samplers": [sampler], "channels": [target]})
    if not view:
        accessors.append({"componentType": 5126, "type": "VEC3", "count": len(keys)})
        animations[0]["samplers"].append({"input": 0, "output": len(accessors) - 1})
        animations[0]["channels"].append({"sampler": 1, "target": {"node": 1, "path": "translation"}})
    nodes = [{"name": n, "translation": p} for n, p in zip(names, places, strict=True)]
    nodes[0]["children"] = [1, 2, 3]
    return json.dumps(
        {
            "asset": {"version": "2.0"},
            "nodes": nodes,
            "skins": [{"joints": [0, 1, 2, 3]}],
            "buffers": [{"byteLength": len(data), "uri": "data:;base64," + base64.b64encode(data).decode()}],
            "bufferViews": views,
            "accessors": accessors,
            "animations": animations,
        }
    )


def test_the_longest_animation_is_the_one_that_lasts_longest(tmp_path):
    path = tmp_path / "x.gltf"
    path.write_text(gltf(np.arange(151) / 30, 20 + np.arange(31) / 30))
    clip = load_clip(path)
    assert clip.n_frames == 151 and any("the longest of 2 animations is used, 'walk'" in w for w in clip.warnings)


def test_an_accessor_without_a_view_is_zeros(tmp_path):
    path = tmp_path / "x.gltf"
    path.write_text(gltf(np.arange(31) / 30, view=False))
    clip = load_clip(path, unit="m")
    np.testing.assert_allclose(clip.marker("head"), clip.marker("hips"), atol=1e-6)


def test_thinned_keys_have_the_rate_of_the_nearest_ones(tmp_path):
    """An exporter leaves out keys between which nothing changes."""
    keys = np.concatenate([[0.0], np.arange(30, 40) / 30, np.arange(5, 40, 4) / 3])
    path = tmp_path / "x.gltf"
    path.write_text(gltf(np.unique(keys)))
    assert load_clip(path).rate == 30.0


# -------- names in YAML


@pytest.mark.parametrize(
    "name",
    [
        "y",
        "N",
        "on",
        "Off",
        "yes",
        "null",
        "~",
        "1",
        "1e3",
        "0x10",
        "12:30",
        "a: b",
        "#a",
        "-",
        "",
        "ä",
        'a"b',
        "a\\b",
        ".",
    ],
)
def test_a_name_reads_back_as_it_was_written(name):
    import yaml

    assert yaml.safe_load(f"- {{{yaml_text(name)}: {yaml_text(name)}}}") == [{name: name}]
    if name.lower() in ("y", "n", "on", "off", "yes", "null"):
        assert yaml_text(name) == f'"{name}"'


def test_usual_names_stay_plain():
    assert [yaml_text(n) for n in ("l_knee", "pelvis", "left-hip")] == ["l_knee", "pelvis", "left-hip"]
