"""Directories of runs: what is listed, what is removed, and what never is."""

import os
import subprocess
import sys

import pytest

from humanoid_control.errors import ConfigError
from humanoid_control.session import list_runs, prune_runs
from humanoid_control.session.runs import GB, new_run_directory

MB = 10**6
DAY = 86400


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Five runs of 10 MB, one a day, the last one yesterday."""
    monkeypatch.setenv("HUMANOID_HOME", str(tmp_path))
    monkeypatch.delenv("HUMANOID_RUNS_LIMIT", raising=False)
    root = tmp_path / "runs"
    for day in range(1, 6):
        recording = root / f"2026-01-0{day}_12-00-00_dance" / "recording"
        recording.mkdir(parents=True)
        file = recording / "recording.mcap"
        with file.open("wb") as f:
            f.truncate(10 * MB)
        for path in (file, recording.parent):
            os.utime(path, (DAY * day, DAY * day))
    (root / "latest").symlink_to("2026-01-05_12-00-00_dance")
    return root


def days():
    return [int(run.path.name[9]) for run in list_runs()]


def test_runs_are_listed_with_their_sizes_the_newest_first(home):
    runs = list_runs()
    assert days() == [5, 4, 3, 2, 1]
    assert [r.size for r in runs] == [10 * MB] * 5
    assert all(r.recorded and not r.in_use for r in runs)


def test_the_oldest_go_until_the_size_or_the_number_is_kept(home):
    assert len(prune_runs(limit=35 * MB / GB)) == 2
    assert days() == [5, 4, 3]
    assert len(prune_runs(limit=30 * MB / GB)) == 0, "what is exactly at the limit stays"
    assert len(prune_runs(keep=2)) == 1
    assert days() == [5, 4]


def test_the_newest_is_never_removed_and_latest_still_leads_to_it(home):
    (home / "latest").unlink()
    (home / "latest").symlink_to("2026-01-02_12-00-00_dance")
    assert len(prune_runs(limit=0.0)) == 4
    assert days() == [5]
    assert (home / "latest").resolve().name == "2026-01-05_12-00-00_dance"


def test_a_run_that_a_process_reads_or_that_is_just_written_stays(home):
    """An old recording that is played, by another process; and a log that grows."""
    played = next((home / "2026-01-01_12-00-00_dance").rglob("*.mcap"))
    (home / "2026-01-03_12-00-00_dance" / "viewer.log").write_text("now")
    reads = "import sys; f = open(sys.argv[1], 'rb'); print('open', flush=True); sys.stdin.read()"
    player = subprocess.Popen([sys.executable, "-c", reads, played], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert player.stdout.readline() == b"open\n"
        assert [r.in_use for r in list_runs()] == [False, False, True, False, True]
        prune_runs(limit=0.0)
        assert days() == [5, 3, 1]
    finally:
        player.communicate()


def test_what_is_not_a_run_stays(home, tmp_path):
    """A folder of the user's, and a link to a folder elsewhere that is called like a run."""
    (home / "my best dances").mkdir()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("")
    (home / "2020-01-01_12-00-00_dance").symlink_to(elsewhere)
    prune_runs(limit=0.0)
    assert (home / "my best dances").is_dir() and (elsewhere / "file").is_file()


def test_a_run_that_begins_makes_room_and_says_so(home, monkeypatch, capsys):
    monkeypatch.setenv("HUMANOID_RUNS_LIMIT", "0.025")
    new = new_run_directory("dance")
    said = capsys.readouterr().err
    assert "removed the oldest 3 runs (0.03 GB)" in said and len(said.splitlines()) == 1
    assert [r.path.name[8:10] for r in list_runs()][1:] == ["05", "04"]
    assert (home / "latest").resolve() == new
    monkeypatch.setenv("HUMANOID_RUNS_LIMIT", "inf")
    new_run_directory("dance")
    assert capsys.readouterr().err == "" and len(list_runs()) == 4


def test_the_limit_is_a_gigabyte_where_nothing_else_is_said(home):
    for run in list_runs():
        with next(run.path.rglob("*.mcap")).open("r+b") as f:
            f.truncate(GB * 3 // 10)
        os.utime(next(run.path.rglob("*.mcap")), (DAY, DAY))
    new_run_directory("dance")
    assert [r.path.name[8:10] for r in list_runs()][1:] == ["05", "04", "03"]


@pytest.mark.parametrize("limit", ["-1", "nan", "much"])
def test_a_limit_that_is_none_is_refused(home, monkeypatch, limit):
    monkeypatch.setenv("HUMANOID_RUNS_LIMIT", limit)
    with pytest.raises(ConfigError, match="HUMANOID_RUNS_LIMIT must be a number of GB"):
        new_run_directory("dance")
    assert len(list_runs()) == 5


def test_numbers_that_make_no_sense_are_refused(home):
    with pytest.raises(ConfigError):
        prune_runs(limit=float("nan"))
    with pytest.raises(ConfigError):
        prune_runs(keep=0)
    assert len(list_runs()) == 5
