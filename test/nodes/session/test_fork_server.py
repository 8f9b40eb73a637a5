"""Processes forked from one that has its libraries loaded: plain ones, without ROS."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from humanoid_control.session.fork_server import ForkServer
from humanoid_control.session.supervisor import Supervisor

pytestmark = pytest.mark.processes

MODULE = """
import os, sys, time
def main():
    print("READY", sys.argv[1:], os.environ.get("WORD"), "scipy.spatial" in sys.modules, "rclpy" in sys.modules,
          len(os.listdir("/proc/self/task")), os.getsid(0) == os.getpid(), flush=True)
    if sys.argv[1] == "write":
        os.write(int(os.environ["FD"]), b"heard")
    if sys.argv[1] == "fail":
        raise ValueError("on purpose")
    if sys.argv[1] == "stay":
        time.sleep(60)
    return int(sys.argv[2]) if len(sys.argv) > 2 else 0
"""


def written(folder):
    """Write the module of the forks; the environment that has it."""
    (folder / "worker_of_test.py").write_text(MODULE)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path[1:2]]), "OMP_NUM_THREADS": "1"}


@pytest.fixture
def environment(tmp_path):
    return written(tmp_path)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server for all tests that do not end it: each loads libraries for a second."""
    server = ForkServer(written(tmp_path_factory.mktemp("module")))
    yield server
    server.close()


def start(server, *arguments, inherited=None):
    return server.start("worker_of_test", arguments, {"WORD": "one two"}, inherited or {})


def gone(pid: int, timeout: float = 5.0) -> bool:
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX":
                time.sleep(0.01)
                continue
        return True
    return False


def test_a_fork_is_what_a_process_of_its_own_would_be(server):
    process = start(server, "return", "7")
    assert process.stdout.read() == "READY ['return', '7'] one two True True 1 True\n"
    assert process.wait(10) == 7 == process.poll() == process.returncode
    process.send_signal(signal.SIGINT)  # which nobody gets


def test_what_it_inherits_is_told_by_a_variable(server):
    read, write = os.pipe()
    process = start(server, "write", inherited={"FD": write})
    os.close(write)
    assert os.read(read, 10) == b"heard" and os.read(read, 10) == b"" and process.wait(10) == 0
    os.close(read)


def test_how_it_ended_is_told(server):
    failed = start(server, "fail")
    assert "ValueError: on purpose" in failed.stdout.read() and failed.wait(10) == 1
    process = start(server, "stay")
    assert process.stdout.readline().startswith("READY") and process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    words = Path(f"/proc/{process.pid}/cmdline").read_text().rstrip("\0").replace("\0", " ")
    assert words.endswith("-m worker_of_test stay"), "found by its name"
    process.kill()
    assert process.wait(10) == -signal.SIGKILL


def test_an_end_is_noticed_while_the_server_is_busy(server):
    """As while it compiles, which may take minutes: nobody else would collect the exit code."""
    processes = [start(server, "stay"), start(server, "stay")]
    assert all(p.stdout.readline().startswith("READY") for p in processes)
    refused = start(server, "return", "2")
    os.kill(server.pid, signal.SIGSTOP)
    try:
        assert refused.wait(10) == 2
        processes[0].kill()
        assert processes[0].wait(10) == -signal.SIGKILL and processes[1].poll() is None
    finally:
        os.kill(server.pid, signal.SIGCONT)
    processes[1].kill()
    assert processes[1].wait(10) == -signal.SIGKILL


def test_kernels_are_loaded_before_what_is_asked_for_afterwards(server):
    server.load("no_such_group")
    assert server.wait_loaded(30.0), "an error there is no end"
    assert start(server, "return").wait(10) == 0


GIVES_BACK = """
import numba
from humanoid_control.hardware.realtime import COMPILER, give_back_memory, untouched_pages
def resident():
    wanted, total = False, 0
    for line in open("/proc/self/smaps"):
        if "-" in line.split()[0]:
            wanted = COMPILER in line
        elif wanted and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total / 1024
assert numba.njit(lambda x: x + 1)(1) == 2
before = resident()
give_back_memory(COMPILER)
after = resident()
assert numba.njit(lambda x: x * 3.0)(2.0) == 6.0
print(before, after, len(untouched_pages("no such library")))
"""


def test_the_compiler_is_given_back_and_compiles_all_the_same():
    words = subprocess.run(
        [sys.executable, "-c", GIVES_BACK], capture_output=True, text=True, check=True
    ).stdout.split()
    before, after, none = (float(w) for w in words)
    assert before > 30.0 and after < 0.3 * before and none == 0, "[MB]"


def test_forks_end_with_their_server_and_with_its_supervisor(environment):
    server = ForkServer(environment)
    processes = [start(server, "stay") for _ in range(2)]
    os.kill(server.pid, signal.SIGKILL)
    for process in processes:
        assert process.wait(10) == -signal.SIGKILL and gone(process.pid)
    with pytest.raises(OSError):
        start(server, "stay")
    server.close()
    code = """
    import sys, time
    from humanoid_control.session.fork_server import ForkServer
    import os
    server = ForkServer(dict(os.environ))
    print(server.pid, server.start("worker_of_test", ["stay"], {}, {}).pid, flush=True)
    time.sleep(60)
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner:
        pids = [int(word) for word in owner.stdout.readline().split()]
        owner.kill()
    assert all(gone(pid) for pid in pids)


def test_without_its_server_a_child_starts_afresh(environment, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", environment)
    said = []
    supervisor = Supervisor(tmp_path / "run", lambda name, text: said.append(text))
    command = [sys.executable, "-u", "-m", "worker_of_test", "stay"]
    (tmp_path / "worker_of_test.py").write_text(MODULE + "\nif __name__ == '__main__':\n    main()\n")
    try:
        supervisor.load()
        supervisor.start("worker", command, forked=True)
        supervisor.wait_ready(30)
        child = supervisor.children["worker"]
        forked = child.process.pid
        assert " True True " in child.last_lines[0], "libraries were there"
        os.kill(supervisor._server.pid, signal.SIGKILL)
        end = time.monotonic() + 30
        while child.process.pid == forked or not child.ready.is_set():
            supervisor.watch()
            time.sleep(0.02)
            assert time.monotonic() < end
        assert (
            any("started without the fork server" in text for text in said)
            and "ended with code -9: restarted (1 of 3)" in said
        )
        assert " False False " in child.last_lines[0]
    finally:
        supervisor.stop()
