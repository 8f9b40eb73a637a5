"""`humanoid retarget FOLDER` as a user runs it: processes that are killed, interrupted, and go on."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from humanoid_control.cli.library import failure_lines
from humanoid_control.cli.main import main
from test.cli.conftest import INTERRUPTED
from test.dance_library import write_library

CLIPS, FRAMES = 9, 200


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """Clips that take long enough to be interrupted in the middle."""
    return write_library(tmp_path_factory.mktemp("clips") / "lib", CLIPS, FRAMES)


@pytest.fixture(scope="module")
def known(library, tmp_path_factory):
    """What one process gives."""
    out = tmp_path_factory.mktemp("known") / "out"
    argv = ["retarget", str(library), "--robot", "hrp2", "--whole-body", "--jobs", "1", "-o", f"{out}/"]
    assert main([*argv, "--html", str(out / "page.html")]) == 0
    assert (out / "page.html").stat().st_size > 10_000
    return outputs(out)


def outputs(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted((folder / "hrp2").rglob("*.npz"))}


def records(folder):
    path = folder / ".library" / "records"
    return len(list(path.glob("*.json"))) if path.is_dir() else 0


def wait_for(what, seconds=60.0):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def children(pid):
    """Processes that a process has started, and theirs."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if parent == pid:
            child = int(stat.parent.name)
            found += [child, *children(child)]
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def start(tmp_path):
    """Starts a command, and ends it with the test."""
    running = []

    def begin(*argv):
        process = subprocess.Popen(
            [sys.executable, "-m", "humanoid_control.cli.main", *map(str, argv)],
            cwd=tmp_path,
            stdout=(tmp_path / f"log_{len(running)}").open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.nightly
def test_killed_interrupted_and_done_at_last(start, tmp_path, library, known):
    """kill -9 in the middle, Ctrl+C in what is left, and then to the end: all bytes as if nothing had happened."""
    out = tmp_path / "out"
    argv = ("retarget", library, "--robot", "hrp2", "--whole-body", "--jobs", 2, "-o", f"{out}/")
    first = start(*argv)
    wait_for(lambda: records(out) >= 3)
    team = children(first.pid)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = records(out)
    assert 3 <= done < CLIPS and len(team) >= 3
    wait_for(lambda: not any(map(alive, team)), 20)
    assert all(content == known[name] for name, content in outputs(out).items())
    before = {p.name: p.stat().st_mtime_ns for p in (out / ".library" / "records").iterdir()}

    second = start(*argv)
    wait_for(lambda: records(out) >= done + 2)
    os.killpg(second.pid, signal.SIGINT)  # as a terminal does, to all of them
    assert second.wait(30) in INTERRUPTED
    said = (tmp_path / "log_1").read_text()
    assert "stopped; finished clips are kept: run the same command to resume" in said and "Traceback" not in said
    done = records(out)
    with (out / "manifest.csv").open() as file:
        assert len(list(csv.DictReader(file))) == done < CLIPS

    assert main([str(a) for a in argv]) == 0
    assert outputs(out) == known
    for name, written in before.items():
        assert (out / ".library" / "records" / name).stat().st_mtime_ns == written, "finished once, never done again"


def test_a_bad_clip_is_listed_and_the_exit_code_is_1(library, tmp_path, capfd):
    some = tmp_path / "clips.txt"
    cut = tmp_path / "cut.trc"
    cut.write_text((library / "a" / "clip_000.trc").read_text()[:5000])
    some.write_text(f"{library}/a/clip_000.trc\n{cut}\nnowhere.bvh\n{library}/b/clip_001.trc\n")
    argv = ["retarget", str(some), "--robot", "hrp2,suralp", "--whole-body", "-o", f"{tmp_path}/out/", "--jobs", "2"]
    assert main(argv) == 1
    said = capfd.readouterr().out
    assert "failed: 4 of 8" in said and "nowhere.bvh (hrp2, suralp): cannot be read: No such file" in said
    assert "cut.trc (hrp2, suralp): line" in said and "4 done" not in said
    assert main([*argv, "--json"]) == 1
    told = json.loads(capfd.readouterr().out)
    assert told["kept"] == 6 and told["done"] == 0 and told["failed"] == 4 and len(told["rows"]) == 8


@pytest.mark.parametrize(
    "words,told",
    [
        ("--robot hrp2", "needs -o FOLDER/"),
        ("--robot hrp2 -o out.npz", "must be a folder"),
        ("--robot hpr2 -o out/", "did you mean hrp2"),
        ("--robot armar3 --whole-body -o out/", "armar3 has no feet"),
        ("--jobs 0 -o out/", "--jobs must be between 1 and"),
        ("--jobs 2 --scheduler tcp://localhost:1 -o out/", "give one"),
        ("--scheduler localhost:8786 -o out/", "expected an address such as tcp://host:8786"),
        ("-o out/ --html page.pdf", "must be a .html file"),
        ("-o nowhere/deep/out/", "does not exist"),
        ("-o out/ --format nzp", "did you mean npz"),
        ("-o out/ --format gmr", "give --whole-body"),
        ("-o out/ --whole-body --format dynamic", "give --whole-body --feasible"),
        ("-o out/ --whole-body --lead-in", "--lead-in"),
        ("-o out/ --stretch auto", "give --whole-body"),
        ("-o out/ --whole-body --stretch atuo", "did you mean auto"),
    ],
)
def test_what_makes_no_sense_is_one_line_and_nothing_is_made(library, tmp_path, monkeypatch, capfd, words, told):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["retarget", str(library), *words.split()])
    except SystemExit as e:
        code = e.code
    said = capfd.readouterr().err
    assert code == 2 and told in said and len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_options_of_a_library_are_refused_for_a_single_clip(capfd):
    for option in (["--jobs", "2"], ["--scheduler", "tcp://localhost:1"], ["--html", "x.html"]):
        assert main(["retarget", "dance", *option]) == 2
        assert f"{option[0]} applies to a folder of clips" in capfd.readouterr().err


def test_failures_of_a_clip_for_one_reason_are_one_line():
    rows = [
        {"clip": "a", "robot": "x", "reason": "a: cut off"},
        {"clip": "a", "robot": "y", "reason": "a: cut off"},
        {"clip": "b", "robot": "x", "reason": "died"},
    ]
    assert failure_lines(rows) == ["  a (x, y): cut off", "  b (x): died"]


def test_the_grade_of_a_single_clip_is_printed(capfd):
    assert main(["retarget", "dance", "--robot", "hrp2", "--whole-body", "--speed", "8"]) == 0
    said = capfd.readouterr().out
    assert "grade" in said and "hrp2: " in said and any(f"hrp2: {g}: " in said for g in "ABCDF")
