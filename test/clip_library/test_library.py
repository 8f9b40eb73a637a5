"""A library that is done, interrupted, damaged, changed: what is done again, what is kept, and what is said."""

import csv
import errno
import io
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from humanoid_control.clip_library import (
    LibraryClip,
    WorkerRobot,
    do_job,
    find_clips,
    library_jobs,
    place_for,
    retarget_library,
)
from humanoid_control.clip_library import library as library_module
from humanoid_control.clip_library import work as work_module
from humanoid_control.clip_library.library import duration_text
from humanoid_control.clip_library.manifest import RECORDS, manifest_parquet, manifest_table
from humanoid_control.clip_library.places import Folder
from humanoid_control.errors import ConfigError

CUT = "a/clip_005.trc"


class Here:
    """Does jobs in this process, in the order in which they come or backwards, and remembers which."""

    delivers = False
    workers = 1

    def __init__(self, backwards=False):
        self.backwards, self.done = backwards, []

    def outcomes(self, jobs):
        for job in reversed(jobs) if self.backwards else jobs:
            self.done.append((job.clip.name, job.robot.name))
            yield do_job(job)


@pytest.fixture(scope="module")
def library(small_library, tmp_path_factory):
    """Four good clips, and one in the middle that is cut off."""
    folder = tmp_path_factory.mktemp("with_a_bad_one") / "lib"
    shutil.copytree(small_library, folder)
    text = (folder / "a" / "clip_000.trc").read_text()
    (folder / CUT).write_text(text[: len(text) // 2])
    return folder


@pytest.fixture(scope="module")
def robots(hrp2):
    return [hrp2, WorkerRobot.of("suralp")]


def run(folder, library, robots, settings, executor):
    place = place_for(str(folder))
    place.open()
    try:
        jobs, failed = library_jobs(find_clips(str(library)), robots, settings)
        return retarget_library(jobs, failed, place, executor, lambda share, text: None)
    finally:
        place.close()


@pytest.fixture(scope="module")
def finished(library, robots, whole, tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished") / "out"
    return folder, run(folder, library, robots, whole, Here())


@pytest.fixture
def copy(finished, tmp_path):
    shutil.copytree(finished[0], tmp_path / "out")
    return tmp_path / "out"


def outputs(folder):
    found = (p for p in sorted(folder.rglob("*.npz")) if ".library" not in p.parts)
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in found}


def manifest(folder):
    with (folder / "manifest.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_bad_clip_in_the_middle_costs_nothing_but_itself(finished):
    folder, report = finished
    rows = manifest(folder)
    assert [(r["clip"], r["robot"]) for r in rows] == sorted((r["clip"], r["robot"]) for r in rows) and len(rows) == 10
    assert [(r["clip"], r["robot"]) for r in report.failures] == [(CUT, "hrp2"), (CUT, "suralp")]
    bad = [r for r in rows if r["failed"]]
    assert [r["clip"] for r in bad] == [CUT, CUT] and all("cut off" in r["reason"] and not r["output"] for r in bad)
    assert len(outputs(folder)) == 8 and report.done == 10 and report.kept == 0
    for r in rows:
        if not r["failed"]:
            assert r["grade"] in "ABCDF" and float(r["slip_mm"]) >= 0 and float(r["seconds"]) > 0
            assert (folder / r["output"]).is_file()


def test_nothing_is_done_twice_and_any_order_gives_the_same_bytes(finished, library, robots, whole, tmp_path):
    folder, _ = finished
    again = Here()
    report = run(folder, library, robots, whole, again)
    assert again.done == [] and report.kept == 10 and len(report.failures) == 2, "a bad clip stays bad, and is told"
    other = tmp_path / "other"
    run(other, library, robots, whole, Here(backwards=True))
    assert outputs(other) == outputs(folder)
    told, known = manifest(other), manifest(folder)
    assert [{**r, "seconds": ""} for r in told] == [{**r, "seconds": ""} for r in known]


def test_what_changed_is_done_anew_and_only_that(copy, library, robots, whole, tmp_path):
    changed = tmp_path / "lib"
    shutil.copytree(library, changed)
    text = (changed / "b" / "clip_001.trc").read_text()
    (changed / CUT).write_text((changed / "a" / "clip_000.trc").read_text())  # mended
    (changed / "b" / "clip_001.trc").write_text(text.replace("\t1\t40\n", "\t1\t40 \n", 1) + "\n")
    lost = copy / "hrp2" / "a" / "clip_002.trc.npz"
    lost.unlink()
    short = copy / "suralp" / "b" / "clip_003.trc.npz"
    short.write_bytes(short.read_bytes()[:-1])
    executor = Here()
    report = run(copy, changed, robots, whole, executor)
    wanted = {(CUT, r.name) for r in robots} | {("b/clip_001.trc", r.name) for r in robots}
    assert set(executor.done) == wanted | {("a/clip_002.trc", "hrp2"), ("b/clip_003.trc", "suralp")}
    assert not report.failures and len(outputs(copy)) == 10 == len(manifest(copy))
    assert len(list((copy / RECORDS).iterdir())) == 10


def test_other_settings_replace_what_was_there(copy, library, robots, whole):
    executor = Here()
    run(copy, library, robots[:1], replace(whole, format=".csv", speed=2.0), executor)
    assert len(executor.done) == 5
    files = {p.suffix for p in (copy / "hrp2").rglob("*.*") if p.is_file()}
    assert files == {".csv"} and len(outputs(copy)) == 4, "those of the other robot stay"
    assert len(manifest(copy)) == 10


def test_a_damaged_record_counts_as_none(copy, library, robots, whole):
    records = sorted((copy / RECORDS).iterdir())
    for path, content in zip(records, (b"", b"{", b"[]", b"{}", b"\xff"), strict=False):
        path.write_bytes(content)
    (copy / RECORDS / "notes.txt").write_text("mine")
    executor = Here()
    run(copy, library, robots, whole, executor)
    assert len(executor.done) == 5 and len(manifest(copy)) == 10


def test_a_run_that_is_cut_off_anywhere_goes_on(finished, library, robots, whole, tmp_path, monkeypatch):
    """At every change of the disk in turn, as if the process were killed just there."""
    known, limit = outputs(finished[0]), {"left": 0}
    replaced = os.replace
    kept = {}

    class Killed(BaseException):
        pass

    def counted(*args, **more):
        if limit["left"] == 0:
            raise Killed
        limit["left"] -= 1
        return replaced(*args, **more)

    def remembered(job):
        if job.key not in kept:
            kept[job.key] = do_job(job)
        return kept[job.key]

    class Remembering(Here):
        def outcomes(self, jobs):
            for job in jobs:
                self.done.append((job.clip.name, job.robot.name))
                yield remembered(job)

    monkeypatch.setattr(os, "replace", counted)
    folder, count = tmp_path / "out", []
    for _ in range(40):
        limit["left"] = 3
        executor = Remembering()
        try:
            run(folder, library, robots, whole, executor)
        except Killed:
            count += executor.done
            assert all(content == known[name] for name, content in outputs(folder).items()), "none is half written"
            continue
        count += executor.done
        break
    else:
        raise AssertionError("it never ends")
    assert outputs(folder) == known and not list((folder / ".library" / "writing").iterdir())
    assert len(count) <= 10 + 10, "at most the job that was cut off is done again"


def test_a_full_disk_is_one_line_and_keeps_what_is_done(library, robots, whole, tmp_path, monkeypatch):
    written = Path.write_bytes

    def full(path, content):
        if "clip_002" in path.name:
            written(path, content[: len(content) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(path, content)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ConfigError, match=r"hrp2/a/clip_002\.trc\.npz cannot be written: No space left on device"):
        run(tmp_path / "out", library, robots[:1], whole, Here())
    monkeypatch.undo()
    assert list(outputs(tmp_path / "out")) == ["hrp2/a/clip_000.trc.npz"], "no half of the other"
    assert len(manifest(tmp_path / "out")) == 1 and not list((tmp_path / "out/.library/writing").iterdir())
    executor = Here()
    run(tmp_path / "out", library, robots[:1], whole, executor)
    assert ("a/clip_000.trc", "hrp2") not in executor.done and len(outputs(tmp_path / "out")) == 4


def test_the_time_that_is_left_is_that_of_the_bytes_that_are_left(library, robots, whole, monkeypatch):
    """A second a clip, all of one size, and a start that took a minute."""
    jobs, _ = library_jobs(find_clips(str(library)), robots, whole)
    clock, said = iter([60.0, 61.0, 62.0, 63.0]), []
    monkeypatch.setattr(LibraryClip, "size", lambda clip: 1000)
    monkeypatch.setattr(library_module.time, "monotonic", lambda: next(clock))
    pace = library_module._Pace(jobs, lambda share, text: said.append((round(share, 3), text)), 0)
    for k, job in enumerate(jobs[:4]):
        pace.passed(job, failed=k == 1)
    assert said == [
        (0.1, "1 of 10, 0 failed"),
        (0.2, "2 of 10, 1 failed, 8 s left"),
        (0.3, "3 of 10, 1 failed, 7 s left"),
        (0.4, "4 of 10, 1 failed, 6 s left"),
    ]
    assert [duration_text(t) for t in (5, 59.4, 200, 7500)] == ["5 s", "59 s", "3 min", "2 h 5 min"]


def test_two_runs_do_not_write_the_same_folder(copy):
    place, other = Folder(copy), Folder(copy)
    place.open()
    with pytest.raises(ConfigError, match="being written by another run"):
        other.open()
    place.close()
    other.open()
    other.close()


def test_what_did_not_fail_by_its_input_is_tried_again(copy, library, robots, whole, monkeypatch):
    monkeypatch.setattr(work_module, "measure_clip", lambda *_: 1 / 0)
    changed = replace(whole, scale=0.9)
    report = run(copy, library, robots[:1], changed, Here())
    assert len(report.failures) == 5 and not list((copy / "hrp2").rglob("*.npz"))
    monkeypatch.undo()
    executor = Here()
    assert len(run(copy, library, robots[:1], changed, executor).failures) == 1 and len(executor.done) == 4


def test_an_address_keeps_the_same_as_a_folder(finished, library, robots, whole, tmp_path):
    pytest.importorskip("fsspec", reason="needs fsspec, of the extra `cluster`")
    import fsspec

    for url in (f"file://{tmp_path}/far", "memory://far/out"):
        executor = Here()
        run(url, library, robots, whole, executor)
        fs, root = fsspec.core.url_to_fs(url)
        found = {p.removeprefix(f"{root}/"): fs.cat_file(p) for p in fs.find(root) if p.endswith(".npz")}
        assert found == outputs(finished[0])
        again = Here()
        run(url, library, robots, whole, again)
        assert again.done == []
        told = list(csv.DictReader(io.StringIO(fs.cat_file(f"{root}/manifest.csv").decode())))
        assert [{**r, "seconds": ""} for r in told] == [{**r, "seconds": ""} for r in manifest(finished[0])]


def test_the_manifest_as_parquet_says_the_same(finished):
    pytest.importorskip("pyarrow", reason="needs pyarrow")
    import pyarrow.parquet as pq

    records = [json.loads(p.read_text()) for p in (finished[0] / RECORDS).iterdir()]
    columns, rows = manifest_table(records)
    table = pq.read_table(io.BytesIO(manifest_parquet(columns, rows))).to_pydict()
    assert list(table) == columns and table["clip"] == [r[0] for r in rows]
    assert table["slip_mm"] == [r[columns.index("slip_mm")] for r in rows] and None in table["slip_mm"]
