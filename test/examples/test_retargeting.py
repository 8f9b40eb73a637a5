"""The examples of retargeting run without arguments and without any data, and do what they say."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def example(tmp_path):
    """Run an example in an empty folder; its output."""

    def run(name: str, *arguments: object) -> str:
        command = [sys.executable, REPOSITORY / "examples" / f"{name}.py", *arguments]
        path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH")]))
        done = subprocess.run(
            [str(word) for word in command],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def rows(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


@pytest.mark.nightly
def test_a_clip_is_retargeted_to_a_urdf_by_its_path(example, tmp_path):
    told = example("retarget_a_clip_to_your_urdf")
    assert "l_wrist" in told and "1201 frames at 50 Hz" in told
    table = rows(tmp_path / "trajectory.csv")
    assert table[0][0] == "time" and len(table) == 1202 and len(set(map(len, table))) == 1


@pytest.mark.nightly
def test_many_clips_go_on_where_they_were_left(example, tmp_path):
    told = example("many_clips", "--robot", "hrp2", "-o", "out")
    assert told.count("cm from the targets") == 3
    kept = tmp_path / "out" / "dance_1_hrp2.csv"
    before = kept.stat().st_mtime_ns
    (tmp_path / "out" / "dance_3_hrp2.csv").unlink()
    told = example("many_clips", "--robot", "hrp2", "-o", "out")
    assert told.count("cm from the targets") == 1 and "dance_3" in told
    assert kept.stat().st_mtime_ns == before


@pytest.mark.nightly
def test_a_bad_clip_does_not_stop_the_others(example, tmp_path):
    (tmp_path / "bad.csv").write_text("nothing")
    told = example("many_clips", "bad.csv", "--robot", "hrp2")
    assert "not done: bad: " in told
