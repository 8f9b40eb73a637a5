"""Worker processes: every job done once, whoever dies; what the scheduling promises, with jobs that cost nothing."""

import sys
import time
from pathlib import Path

import pytest

from humanoid_control.clip_library import Job, LibraryClip, LibrarySettings, LocalWorkers, WorkerRobot, workers
from humanoid_control.clip_library.workers import _Queue
from humanoid_control.errors import EnvironmentProblem

sys.path.insert(0, str(Path(__file__).parent))
from stand_ins import fall_over, hungry, play, refuse

ROBOTS = [WorkerRobot(name, name, name) for name in ("one", "two")]


def jobs_of(folder, names):
    return [Job(LibraryClip(n, str(folder)), n, robot, LibrarySettings()) for n in names for robot in ROBOTS]


def tries(folder, name):
    return len(list(folder.glob(f"{name}_*.*")))


def test_a_worker_that_dies_is_replaced_and_its_clip_tried_once_more(tmp_path):
    pool = LocalWorkers(2, do=play)
    jobs = jobs_of(tmp_path, ["a", "fragile", "b", "deadly", "c", "d"])
    outcomes = list(pool.outcomes(jobs))
    assert sorted(o.record["key"] for o in outcomes) == sorted(j.key for j in jobs)
    failed = {(o.record["clip"], o.record["robot"]) for o in outcomes if o.record["failed"]}
    assert failed == {("deadly", "one"), ("deadly", "two")}
    told = next(o.record["reason"] for o in outcomes if o.record["failed"])
    assert "died 2 times (signal SIGKILL)" in told
    assert tries(tmp_path, "fragile") == tries(tmp_path, "deadly") == 4
    assert [tries(tmp_path, n) for n in "abcd"] == [2, 2, 2, 2]
    assert pool.replaced == 6


def test_a_worker_that_has_grown_is_replaced_after_its_job(tmp_path):
    pool = LocalWorkers(1, do=play)
    outcomes = list(pool.outcomes(jobs_of(tmp_path, ["big", "a"])))
    assert len(outcomes) == 4 and pool.replaced == 2
    pid = {p.stem.split(".")[0]: p.suffix for p in tmp_path.iterdir()}
    assert pid["big_one"] not in (pid["a_one"], pid["a_two"], pid["big_two"]) and pid["a_one"] == pid["a_two"]


def test_a_worker_has_no_more_memory_than_it_may(tmp_path):
    pool = LocalWorkers(1, memory=600_000_000, do=hungry)
    for outcome in pool.outcomes(jobs_of(tmp_path, ["a"])):
        assert outcome.record["failed"] == "refused" and outcome.record["taken"] < 600_000_000
    assert pool.replaced == 0
    assert workers.memory_each(1) > 2 * workers.memory_each(3) or workers.memory_each(3) == workers.LEAST_MEMORY


@pytest.mark.nightly
def test_the_work_stops_at_once_when_nobody_wants_it(tmp_path):
    begin = time.monotonic()
    outcomes = LocalWorkers(2, do=play).outcomes(jobs_of(tmp_path, ["a", "slow"]))
    next(outcomes)
    outcomes.close()
    assert time.monotonic() - begin < 30.0
    pids = {int(p.suffix[1:]) for p in tmp_path.iterdir()}
    assert not any(Path(f"/proc/{pid}/task").exists() and _runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def test_workers_that_cannot_begin_end_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(workers, "_serve", fall_over)
    pool = LocalWorkers(1, do=refuse)
    with pytest.raises(EnvironmentProblem, match=r"die at startup \(exit code 7\)"):
        list(pool.outcomes(jobs_of(tmp_path, ["a"])))
    assert pool.replaced == workers.DEATHS_AT_START > 1, "one death may be an accident"


def test_jobs_of_a_clip_stay_together_until_others_have_nothing(tmp_path):
    queue = _Queue(jobs_of(tmp_path, ["a", "b"]))
    first, second = queue.next(""), queue.next("")
    assert {first.clip.name, second.clip.name} == {"a", "b"}
    assert queue.next(first.clip.name).clip.name == first.clip.name
    queue.again(first)
    assert len(queue) == 2 and queue.next(first.clip.name) is first
    assert queue.next(first.clip.name).clip.name == second.clip.name and len(queue) == 0
