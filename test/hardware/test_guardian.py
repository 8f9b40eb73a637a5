"""The guardian: damping frames when the driver is killed, frozen or stuck; never when it ends orderly."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from humanoid_control.hardware import guardian
from humanoid_control.hardware.guardian import (
    DAMP_RATE,
    DAMP_TIME,
    POLL,
    DatagramGuard,
    GuardedBus,
    Guardian,
    SharedBeat,
    watch,
)
from humanoid_control.robots import load_robot

pytestmark = pytest.mark.drives

VICTIM = Path(__file__).with_name("victim.py")
FACTORY = "humanoid_control.hardware.guardian:DatagramGuard"
TOLERANCE = 200.0  # two seconds of permitted silence: on a busy machine a process may be paused
PATIENCE = 60.0  # [s] for what takes two seconds on an idle machine


class Listener:
    """The other end of the guarded bus: frames with the time at which they were sent."""

    def __init__(self, folder):
        self.path = str(folder / "bus")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)

    def take(self, timeout=PATIENCE):
        """Letter, time [s] and frame of the next datagram; None where none comes."""
        if not select.select([self.socket], [], [], timeout)[0]:
            return None
        data = self.socket.recv(4096)
        return chr(data[0]), int.from_bytes(data[1:9], "little") * 1e-9, data[9:]


@pytest.fixture
def listener(tmp_path):
    heard = Listener(tmp_path)
    yield heard
    heard.socket.close()


def guarded(listener, name="bus", size=64):
    return GuardedBus(name, FACTORY, (listener.path,), (), size)


class Victim:
    def __init__(self, listener, tolerance=TOLERANCE, priority=0):
        self.process = subprocess.Popen(
            [sys.executable, str(VICTIM), listener.path, str(tolerance), str(priority)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )  # fmt: skip
        self.guardian = int(self.until("GUARDIAN").split()[1])

    def until(self, word):
        for line in self.process.stdout:
            if word in line:
                return line
        raise AssertionError(f"ended without '{word}'")

    def say(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def victim(listener):
    made = []

    def make(**settings):
        made.append(Victim(listener, **settings))
        return made[-1]

    yield make
    for v in made:
        v.close()


def gone(pid, within=PATIENCE):
    """True once a process has ended (its parent may be gone, so that it cannot be waited for)."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


def test_a_killed_driver_is_followed_by_damping_frames_and_by_power_off(victim, listener):
    v = victim()
    v.until("POWERED")
    time.sleep(0.2)
    assert listener.take(0.0) is None, "no false alarm"
    killed = time.monotonic()
    v.process.kill()
    letter, sent, frame = listener.take()
    assert letter == "D" and sent > killed
    q = np.frombuffer(frame)
    robot = load_robot("hrp2", "fixed")
    led = {f for f, *_ in robot.mimic}
    neutral = [robot.postures["neutral"][k] for k in range(robot.n) if k not in led]
    np.testing.assert_allclose(q, neutral, atol=1e-3)  # where the joints were at last
    letters = letter
    while letters[-1] == "D":
        letters += listener.take()[0]
    assert letters.endswith("DO")
    assert gone(v.guardian) and listener.take(0.0) is None


def test_silence_is_answered_at_once_by_damping_for_two_seconds(monkeypatch):
    """On a clock of the test's own, which only sleeping moves."""
    now, calls = [5_000_000_000], []
    clock = SimpleNamespace(
        monotonic=lambda: now[0] * 1e-9,
        monotonic_ns=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + round(seconds * 1e9)),
    )
    monkeypatch.setattr(guardian, "time", clock)
    guard = SimpleNamespace(damp=lambda frame: calls.append((now[0], frame)), off=lambda: calls.append((now[0], None)))
    descriptor = os.memfd_create("test")
    shared = SharedBeat(descriptor, [8])
    shared.put(True, [b"damp"])
    begin = now[0]
    assert watch(shared, [guard], 0.01, os.getpid())
    times = 1e-9 * (np.array([at for at, _ in calls]) - begin)
    assert 0.01 < times[0] < 0.01 + 2 * POLL
    np.testing.assert_allclose(np.diff(times), 1.0 / DAMP_RATE)
    assert times[-1] - times[0] == pytest.approx(DAMP_TIME, abs=1.5 / DAMP_RATE)
    assert {frame for _, frame in calls[:-1]} == {b"damp"} and calls[-1][1] is None
    shared.close()
    os.close(descriptor)


def test_a_frozen_driver_is_stopped_and_finds_itself_in_fault(victim, listener):
    v = victim()
    v.until("POWERED")
    v.process.send_signal(signal.SIGSTOP)
    assert listener.take()[0] == "D"
    v.process.send_signal(signal.SIGCONT)
    assert "the guardian stopped the drives" in v.until("FAULT")


def test_a_driver_that_holds_the_interpreter_is_stopped(victim, listener):
    v = victim()
    v.until("POWERED")
    v.say("hold")
    assert listener.take()[0] == "D"
    v.say("release")
    assert "the guardian stopped the drives" in v.until("FAULT")


def test_a_driver_that_ends_orderly_is_not_followed(victim, listener):
    v = victim()
    v.until("POWERED")
    v.say("end")
    assert v.process.wait(PATIENCE) == 0
    assert gone(v.guardian) and listener.take(0.1) is None


def test_a_driver_without_power_may_be_killed(listener, tmp_path):
    code = "import sys, os, time, signal; from humanoid_control.hardware.guardian import *\n"
    code += f"g = Guardian([GuardedBus('bus', '{FACTORY}', ('{listener.path}',), (), 64)], 0.05, 0)\n"
    code += "print(g.pid, flush=True)\nfor _ in range(20): g.beat(False, ())\nos.kill(os.getpid(), signal.SIGKILL)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    assert gone(int(done.stdout)) and listener.take(0.1) is None


def test_a_guardian_that_dies_is_seen(listener):
    g = Guardian([guarded(listener)], PATIENCE, 0)
    assert g.alive() and not g.tripped()
    os.kill(g.pid, signal.SIGKILL)
    end = time.monotonic() + PATIENCE
    while g.alive() and time.monotonic() < end:
        time.sleep(0.005)
    assert not g.alive() and not g.tripped()
    g.close()


@pytest.mark.parametrize(("alive", "limit"), [(1.0, 0.01), (0.0, 1.0)])
def test_a_guardian_that_hangs_is_seen(listener, monkeypatch, alive, limit):
    """Where the driver may be silent for long, as on a machine without real time, the guardian may, too."""
    monkeypatch.setattr(guardian, "ALIVE", alive)
    g = Guardian([guarded(listener)], limit, 0)
    os.kill(g.pid, signal.SIGSTOP)
    end = time.monotonic() + PATIENCE
    while g.alive() and time.monotonic() < end:
        time.sleep(0.005)
    assert time.monotonic_ns() - g._shared.words[guardian.SEEN] > 1e9
    assert not g.alive() and not g.tripped() and g._process.poll() is None
    os.kill(g.pid, signal.SIGCONT)
    g.close()


def test_a_guardian_that_is_no_longer_needed_ends_by_itself(listener, monkeypatch):
    monkeypatch.setattr(guardian, "END_TIME", PATIENCE)
    g = Guardian([guarded(listener)], PATIENCE, 0)
    g.beat(True, [b"x"])
    g.close()
    assert g._process.returncode == 0 and listener.take(0.05) is None


def test_the_last_whole_frame_of_each_bus_counts(listener):
    g = Guardian([guarded(listener, "a"), guarded(listener, "b", 100)], 2.0, 0)
    for k in range(7):
        g.beat(True, [bytes([k] * (k + 1)), bytes([100 + k] * 99)])
    frames = [listener.take() for _ in range(2)]
    assert [f[2] for f in frames] == [bytes([6] * 7), bytes([106] * 99)]
    assert g.tripped() and not g.alive()
    g._process.kill()
    g.close()


def test_shared_memory_is_read_as_it_was_written():
    descriptor = os.memfd_create("test")
    writer, reader = SharedBeat(descriptor, [10, 3, 64]), SharedBeat(descriptor, [10, 3, 64])
    for k in range(5):
        frames = [bytes([k] * 10), b"", bytes(range(k, k + 60))]
        writer.put(True, frames)
        assert reader.frames() == frames
    writer.close()
    reader.close()
    os.close(descriptor)


def test_what_cannot_be_started_is_an_error(listener):
    with pytest.raises(OSError, match="did not start"):
        Guardian([GuardedBus("bus", "humanoid_control.hardware.guardian:Nothing", (), (), 64)], 0.1, 0)


def test_the_guardian_loads_neither_ros_nor_numpy():
    code = "import sys, humanoid_control.hardware.guardian; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(run.stdout.split()) & {"numpy", "rclpy", "numba", "yaml"}


@pytest.mark.thorough
def test_time_from_kill_to_damping_frame(victim, listener):
    """Printed with `-s`: the exact numbers, with real-time priority."""
    times = []
    for _ in range(20):
        v = victim(tolerance=1.0, priority=80)
        v.until("POWERED")
        time.sleep(0.1)
        killed = time.monotonic()
        v.process.kill()
        times.append(1000 * (listener.take(2.0)[1] - killed))
        while listener.take(2.0)[0] == "D":
            pass
    print(f"\nkill to damping frame: median {np.median(times):.1f} ms, max {max(times):.1f} ms of {len(times)}")
    assert max(times) < 30.0


@pytest.mark.timeout(60)
def test_the_end_of_damping_waits_for_its_reader_but_not_for_ever(tmp_path):
    reader = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    reader.bind(str(tmp_path / "guard"))
    guard = DatagramGuard(str(tmp_path / "guard"))
    for _ in range(1000):  # as many as its queue takes, and more
        guard.damp(b"frame")
    guard.off()
    guard.close()
    reader.setblocking(False)
    letters = []
    with pytest.raises(BlockingIOError):
        while True:
            letters.append(reader.recv(100)[:1])
    assert letters and set(letters) == {b"D"}
    reader.close()
