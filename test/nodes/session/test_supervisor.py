"""Supervised processes that die, hang, cannot write, or lose their supervisor: plain ones, without ROS."""

import contextlib
import fcntl
import io
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from humanoid_control.errors import ConfigError
from humanoid_control.nodes.base.heartbeat import WATCHED
from humanoid_control.nodes.base.runner import EXIT_BAD_INPUT
from humanoid_control.session import shared_memory
from humanoid_control.session.shared_memory import HELD, SHM, TIDY_TIME, PortHolder, SharedMemoryKeeper
from humanoid_control.session.supervisor import InputRefused, Supervisor, hang_limit
from test.robots_under_test import nightly

pytestmark = pytest.mark.processes

LOOP = """
import os, sys, time
from humanoid_control.nodes.base.heartbeat import Heartbeat
beat = Heartbeat()
print("READY loop", flush=True)
{before}
for k in range(10**9):
    beat.beat()
    time.sleep(0.01)
    {inside}
"""


@pytest.fixture
def supervised(tmp_path):
    """Start children from scripts, and watch them until something is the case."""
    said: list[tuple[str, str]] = []
    supervisor = Supervisor(tmp_path, lambda name, text: said.append((name, text)))

    class Supervised:
        complaints, children = said, supervisor.children

        def start(self, name, script, **options):
            supervisor.start(name, [sys.executable, "-u", "-c", textwrap.dedent(script)], **options)

        def wait_ready(self):
            supervisor.wait_ready(30)

        def watch_until(self, condition, timeout=60.0):
            end, good = time.monotonic() + timeout, True
            while not condition():
                assert time.monotonic() < end, (said, [c.last_lines for c in supervisor.children.values()])
                good = supervisor.watch()
                time.sleep(0.02)
            return good

    yield Supervised()
    supervisor.stop()


def loop(before: str = "pass", inside: str = "pass") -> str:
    return LOOP.format(before=before, inside=inside)


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def test_a_helper_that_keeps_dying_is_given_up_and_the_others_go_on(supervised):
    supervised.start("control", loop())
    supervised.start("helper", "print('READY'); print('no paper left'); raise SystemExit(3)", essential=False)
    assert supervised.watch_until(lambda: supervised.children["helper"].gave_up)
    texts = [text for name, text in supervised.complaints if name == "helper"]
    assert texts == [
        "ended with code 3: restarted (1 of 3)",
        "ended with code 3: restarted (2 of 3)",
        "ended with code 3: restarted (3 of 3)",
        "ended with code 3; not restarted again after 3 restarts, the other nodes continue: no paper left",
    ]
    assert supervised.children["control"].alive


def test_words_of_a_process_that_has_ended_are_not_those_of_its_successor(supervised, tmp_path):
    """A process of the first one still has its output, and says READY when the second one runs."""
    first, go = tmp_path / "first", tmp_path / "go"
    script = f"""
        import os, time
        from pathlib import Path
        if not Path({str(first)!r}).exists():
            Path({str(first)!r}).touch()
            if os.fork():
                os._exit(3)
            while not Path({str(go)!r}).exists():
                time.sleep(0.01)
            print("READY late")
        else:
            time.sleep(600)
    """
    supervised.start("node", script)
    child = supervised.children["node"]
    pump = child.pump
    supervised.watch_until(lambda: len(child.started) == 2)
    go.touch()
    pump.join(60)
    assert "READY late" in child.log.read_text() and not pump.is_alive()
    assert not child.ready.is_set() and not child.last_lines and child.alive


def test_the_reason_of_a_node_that_refuses_its_input_is_waited_for(supervised, monkeypatch):
    """Also where the thread that reads it gets no processor for a while."""
    pump = Supervisor._pump
    monkeypatch.setattr(Supervisor, "_pump", lambda *given: (time.sleep(0.5), pump(*given)))
    supervised.start("node", f"print('gait.yaml: no such file'); raise SystemExit({EXIT_BAD_INPUT})")
    with pytest.raises(InputRefused, match=r"^gait.yaml: no such file$"):
        supervised.wait_ready()


def test_what_the_stack_needs_ends_it_when_it_keeps_dying(supervised):
    supervised.start("control", "raise SystemExit(3)")
    assert not supervised.watch_until(lambda: supervised.children["control"].gave_up)


@pytest.mark.timed
@pytest.mark.parametrize("fault", ["stopped", nightly("sleeping"), "turning"])
def test_a_loop_that_stands_still_is_found_within_a_second_and_started_again(supervised, tmp_path, fault):
    """By SIGSTOP, by a call that never returns, and by one that never returns and turns."""
    once = f"os.path.exists('{tmp_path}/again') or (open('{tmp_path}/again', 'w'), "
    inside = {"stopped": "pass", "sleeping": once + "time.sleep(1e6))", "turning": once + "[0 for _ in iter(int, 1)])"}
    supervised.start("control", loop(inside=inside[fault]))
    supervised.start("other", loop())
    supervised.wait_ready()
    child = supervised.children["control"]
    supervised.watch_until(lambda: child.heartbeat._words[WATCHED] or child.hung)
    first, since = child.process, time.monotonic()
    if fault == "stopped":
        os.kill(first.pid, signal.SIGSTOP)
    supervised.watch_until(lambda: child.hung)
    took = time.monotonic() - since
    supervised.watch_until(lambda: child.process is not first)
    assert re.fullmatch(r"its loop was stalled for 0\.[89] s: restarted \(1 of 3\)", supervised.complaints[-1][1])
    assert supervised.complaints[-1][0] == "control" and len(supervised.complaints) == 1
    if fault != "turning":  # it may have to wait for a processor, which is not counted
        assert 0.75 < took < 1.3
    supervised.watch_until(child.ready.is_set)
    deadline = time.monotonic() + 1.2
    supervised.watch_until(lambda: time.monotonic() > deadline)
    assert len(supervised.complaints) == 1, "and the new one runs"


@pytest.mark.nightly
def test_a_helper_is_given_more_time_but_not_for_ever(supervised):
    supervised.start("helper", loop(), essential=False)
    supervised.wait_ready()
    child = supervised.children["helper"]
    # READY comes before the first beat, and until that nobody looks.
    supervised.watch_until(lambda: child.heartbeat._words[WATCHED])
    since = time.monotonic()
    os.kill(child.process.pid, signal.SIGSTOP)
    supervised.watch_until(lambda: child.hung)
    assert 2.0 < time.monotonic() - since < 6.0


def test_starting_resting_and_compiling_may_take_their_time(supervised):
    """Before the first beat, after `rest`, and while numba compiles."""
    supervised.start("starting", loop(before="time.sleep(2)"))
    supervised.start("inactive", loop(inside="beat.rest() or time.sleep(2)"))
    compiles = "import numba; beat.excuse_compiler(); beat.beat(); from numba.core.event import trigger_event as t"
    slow = "\nwith t('numba:compile'):\n    time.sleep(2)"
    supervised.start("compiling", loop(before=compiles + slow))
    supervised.wait_ready()
    deadline = time.monotonic() + 2.5
    supervised.watch_until(lambda: time.monotonic() > deadline)
    assert not supervised.complaints


@pytest.mark.nightly
def test_a_supervisor_that_slept_itself_blames_nobody(supervised):
    """As after a night of the whole machine: the nodes had no time either."""
    supervised.start("control", loop())
    supervised.wait_ready()
    child = supervised.children["control"]
    for _ in range(2):
        supervised.watch_until(lambda: child.heartbeat.stalled(child.process.pid) == 0.0)
        os.kill(child.process.pid, signal.SIGSTOP)
        time.sleep(1.5)
        assert child.heartbeat.stalled(child.process.pid) < 0.5
        os.kill(child.process.pid, signal.SIGCONT)


DEAF = """
import os
if not os.path.exists({first!r}):
    open({first!r}, "w").close()
    beat.beat()
    {end}
elif not os.path.exists({second!r}):
    open({second!r}, "w").close()
    beat.miss(True)
"""


@pytest.mark.nightly
def test_a_child_that_hears_nothing_of_the_others_is_started_once_more(supervised, tmp_path):
    """Whether itself or another was started again before; not where none was, nor while what it misses is not up."""
    supervised.start("alone", loop(before="beat.miss(True)"))
    supervised.wait_ready()
    begin = time.monotonic()
    supervised.watch_until(lambda: time.monotonic() - begin > 2.2)
    assert len(supervised.children["alone"].started) == 1, "nobody was started again: it may have another reason"
    supervised.children["alone"].essential = False
    before = DEAF.format(first=str(tmp_path / "1"), second=str(tmp_path / "2"), end="raise SystemExit(1)")
    supervised.start("control", loop(before=before))
    child = supervised.children["control"]
    supervised.watch_until(lambda: len(child.started) == 3 and child.ready.is_set())
    assert "it received nothing from the other nodes for 1.5 s: restarted (2 of 3)" in [
        t for n, t in supervised.complaints
    ]
    assert 1.4 < child.started[2] - child.started[1] < 4.0
    begin = time.monotonic()
    supervised.watch_until(lambda: time.monotonic() - begin > 2.5)
    assert len(child.started) == 3 and supervised.children["alone"].alive


@pytest.mark.nightly
def test_the_last_start_of_a_child_is_not_spent_on_what_it_misses(supervised, tmp_path):
    once = f"""
    if not os.path.exists({str(tmp_path / "x")!r}):
        open({str(tmp_path / "x")!r}, "w").close()
        raise SystemExit(1)
    beat.miss(True)
    """
    supervised.start("control", loop(before=textwrap.dedent(once)))
    child, begin = supervised.children["control"], time.monotonic()
    supervised.watch_until(lambda: time.monotonic() - begin > 6.0)
    assert len(child.started) == 3 and child.alive and not child.gave_up


def test_the_limit_can_be_lifted_for_a_debugger(monkeypatch):
    monkeypatch.setenv("HUMANOID_HANG_LIMIT", "inf")
    assert hang_limit() == float("inf")
    for wrong in ("soon", "-1", "nan", "0"):
        monkeypatch.setenv("HUMANOID_HANG_LIMIT", wrong)
        with pytest.raises(ConfigError, match=f"HUMANOID_HANG_LIMIT must be .* got '{wrong}'"):
            hang_limit()


SUPERVISOR = """
import os, sys, time
from pathlib import Path
from humanoid_control.session.supervisor import Supervisor
s = Supervisor(Path(sys.argv[1]), lambda *_: None)
child = "import os, time; open('/dev/shm/fastdds_' + os.environ['OWN'], 'w'); print('READY', flush=True); time.sleep(9)"
s.start("one", [sys.executable, "-c", child])
s.wait_ready(20)
print(s.children["one"].process.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(not SHM.is_dir(), reason="needs /dev/shm")
def test_a_supervisor_that_is_killed_leaves_neither_processes_nor_shared_memory(tmp_path):
    name = f"{os.getpid()}"
    env = {**os.environ, "OWN": name}
    supervisor = subprocess.Popen(
        [sys.executable, "-u", "-c", SUPERVISOR, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=env
    )
    pid = int(supervisor.stdout.readline())
    path = SHM / f"fastdds_{name}"
    assert alive(pid) and path.exists()
    supervisor.kill()
    supervisor.wait()
    end = time.monotonic() + 30.0  # a second where nothing else runs
    while alive(pid) or path.exists():
        assert time.monotonic() < end, (alive(pid), path.exists())
        time.sleep(0.02)
    supervisor.stdout.close()


@pytest.mark.nightly
@pytest.mark.skipif(not SHM.is_dir(), reason="needs /dev/shm")
def test_the_keeper_waits_for_a_process_that_ends_late():
    path = SHM / f"fastdds_late_{os.getpid()}"
    path.write_bytes(b"x")
    code = f"f = open({str(path)!r}); print(1, flush=True); input()"
    late = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    keeper = SharedMemoryKeeper(time.time() - 1.0)
    try:
        assert late.stdout.readline()
        os.close(keeper._line)  # its supervisor is killed
        time.sleep(2 * TIDY_TIME)
        assert path.exists(), "it is in use"
        late.kill()
        late.wait()
        end = time.monotonic() + 30.0
        while path.exists():
            assert time.monotonic() < end, "it is in use no more"
            time.sleep(0.05)
    finally:
        keeper._process.kill()  # where other tests run, it waits for their files too
        keeper._process.wait()
        late.kill()
        late.communicate()
        path.unlink(missing_ok=True)


def test_the_keeper_leaves_files_that_another_stack_makes_meanwhile(monkeypatch, tmp_path):
    held, later, used = tmp_path / "fastdds_held", tmp_path / "fastdds_later", {"fastdds_held"}
    held.touch()

    def sleep(_):
        if used:  # the late process ends, and a node of another stack has not mapped its file yet
            used.clear()
            later.touch()

    monkeypatch.setattr(shared_memory, "SHM", tmp_path)
    monkeypatch.setattr(shared_memory, "TIDY_TIME", 0.0)
    monkeypatch.setattr(shared_memory, "files_in_use", lambda: used)
    monkeypatch.setattr(shared_memory, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    monkeypatch.setattr(shared_memory, "signal", MagicMock())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    shared_memory.keep(time.time() - 1.0)
    assert not held.exists() and later.exists()


def test_the_keeper_goes_when_it_is_told_to(tmp_path):
    """At once; one that is not told looks for leftovers first. Where others compute its start may take longer."""
    for _ in range(5):
        keeper, begin = SharedMemoryKeeper(time.time()), time.monotonic()
        keeper.close()
        assert keeper._process.wait(30.0) == 0
        if time.monotonic() - begin < TIDY_TIME:
            return
    raise AssertionError("it took its time each time")


def test_a_child_whose_supervisor_died_while_it_was_born_does_not_stay():
    """The kernel tells a process of the death of its parent only where it was asked before."""
    code = """
import os, sys, time
from humanoid_control.in_child import die_with
born = die_with(os.getpid())
read, write = os.pipe()
if os.fork() == 0:
    if os.fork() == 0:  # its parent is another one, as if that had died in between
        born()
        os.write(write, b"alive")
    os._exit(0)
os.close(write)
print(os.read(read, 10))
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert said.stdout.strip() == "b''", said.stderr


STUCK = """
import time
from pathlib import Path

def main():
    starts = Path(__file__).with_name("starts")
    with starts.open("a") as file:
        file.write(".")
    count = len(starts.read_text())
    time.sleep(60.0 if count == 2 else 0.0)
    print("READY", flush=True)
    time.sleep(0.3 if count == 1 else 60.0)
    return 0
"""


@pytest.mark.nightly
def test_a_fork_that_does_not_get_ready_again_is_started_once_more(tmp_path, monkeypatch):
    """It dies, its second start waits for ever before it has a loop that could stand still, the third one runs."""
    monkeypatch.setattr("humanoid_control.session.supervisor.FORK_READY", 3.0)
    (tmp_path / "stuck_node.py").write_text(STUCK)
    said: list[str] = []
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    supervisor = Supervisor(tmp_path, lambda name, text: said.append(text), {"PYTHONPATH": path})
    try:
        supervisor.load()
        assert supervisor.wait_loaded(60.0)
        supervisor.start("node", [sys.executable, "-u", "-m", "stuck_node"], forked=True)
        supervisor.wait_ready(30.0)
        node, end = supervisor.children["node"], time.monotonic() + 30.0
        while len(node.started) < 3 or not node.ready.is_set():
            assert supervisor.watch() and time.monotonic() < end, said
            time.sleep(0.02)
    finally:
        supervisor.stop()
    assert said[0].startswith("ended with code 0") and said[1].startswith("it was not ready after") and len(said) == 2


READS = """
import fcntl, os, sys, time
port = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
fcntl.flock(port, fcntl.LOCK_EX)
print("reads", flush=True)
time.sleep(60)
"""


def is_free(port):
    """Nobody has locked a port; True too where it is gone."""
    if not port.exists():
        return True
    with port.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def port(tmp_path, monkeypatch):
    """A port as Fast DDS has it, locked by a process that reads it; in a folder where no other holder looks."""
    monkeypatch.setattr("humanoid_control.session.shared_memory.SHM", tmp_path)
    path = tmp_path / "fastdds_port7001_el"
    path.with_name(path.name.removesuffix("_el")).touch()
    reader = subprocess.Popen([sys.executable, "-c", READS, str(path)], stdout=subprocess.PIPE, text=True)
    assert reader.stdout is not None and reader.stdout.readline() == "reads\n"
    yield path, reader
    reader.kill()
    reader.wait()


def test_a_port_in_shared_memory_whose_reader_was_killed_is_not_taken_again_at_once(port):
    """While its reader lives it is not held; once it was held long enough it is removed, and never held again."""
    path, reader = port
    holder = PortHolder(time.time() - 60.0)
    holder.hold()
    holder.release(float("inf"))
    assert path.exists() and not is_free(path), "its reader has it"
    reader.kill()
    reader.wait()
    PortHolder(time.time() + 60.0).hold()
    assert is_free(path), "what was there before is left alone"
    assert holder.hold() == 1 and not is_free(path) and holder.hold() == 0
    holder.release()
    assert not is_free(path), "it is too early"
    holder.release(time.monotonic() + HELD + 0.1)
    assert not path.exists() and not path.with_name(path.name.removesuffix("_el")).exists()
    assert holder.hold() == 0


def test_a_node_that_is_started_again_keeps_off_the_port_of_the_dead_one(port, supervised, tmp_path):
    """It finds the port of another dead one free when it starts first, and locked when it starts again."""
    path, reader = port
    reader.kill()
    reader.wait()
    os.utime(path)
    found = tmp_path / "found"
    looks = f"""
        import fcntl, time
        with open({str(path)!r}) as port, open({str(found)!r}, "a") as found:
            try:
                fcntl.flock(port, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found.write("free ")
            except BlockingIOError:
                found.write("locked ")
    """
    supervised.start("node", looks)
    supervised.watch_until(lambda: found.exists() and found.read_text().count(" ") == 2)
    assert found.read_text() == "free locked "
