"""Outcomes of studies by worker processes: from a process with threads, and when a worker is killed."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from evidence.studies.report import KeptOutcomes
from humanoid_control.errors import EnvironmentProblem

JOBS = """
import os, signal

def square(job):
    (number,) = job
    if number < 0:  # as by a machine that is short of memory
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": number**2, "parent": os.getppid()}
"""


@pytest.fixture
def square(tmp_path, monkeypatch):
    """A job in a module that a worker process can import."""
    (tmp_path / "squares_of_a_test.py").write_text(JOBS)
    monkeypatch.syspath_prepend(tmp_path)
    return __import__("squares_of_a_test").square


def test_workers_are_no_forks_of_a_process_with_threads(square):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        outcomes = list(KeptOutcomes(None, "squares").all([[1], [2], [3]], square, 2, lambda share: None))
    finally:
        stop.set()
    assert [o["square"] for o in outcomes] == [1, 4, 9]
    assert os.getpid() not in {o["parent"] for o in outcomes}


def test_a_killed_worker_is_named_and_what_was_done_is_kept(tmp_path, square):
    file = tmp_path / "kept.jsonl"
    with pytest.raises(EnvironmentProblem, match=r"killed during -3.*kept"):
        list(KeptOutcomes(file, "squares").all([[1], [2], [-3]], square, 1, lambda share: None))
    assert sorted(o["square"] for o in KeptOutcomes(file, "squares").known.values()) == [1, 4]


COMMAND = """
import sys
sys.path.insert(0, sys.argv[1])
from evidence.studies.report import KeptOutcomes
from minutes_of_a_test import minutes
list(KeptOutcomes(None, "minutes").all([[1]], minutes, 1, lambda share: None))
"""


@pytest.mark.nightly
def test_a_worker_ends_with_a_command_that_is_killed(tmp_path):
    pid = tmp_path / "pid"
    says = f"open({str(pid)!r}, 'w').write(str(os.getpid()))"
    job = f"import os, time\ndef minutes(job):\n    {says}\n    time.sleep(120)\n"
    (tmp_path / "minutes_of_a_test.py").write_text(job)
    command = subprocess.Popen([sys.executable, "-c", COMMAND, str(tmp_path)])
    try:
        wait_for(lambda: pid.exists() and pid.read_text())
        worker = int(pid.read_text())
        assert os.path.exists(f"/proc/{worker}")
        command.send_signal(signal.SIGKILL)
        wait_for(lambda: not os.path.exists(f"/proc/{worker}"))
    finally:
        command.kill()
        command.wait()


def wait_for(condition, seconds=60.0):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
