"""Drives of durand in another process, over multicast and the kernel's own CAN: transport, guardian, watchdog."""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from humanoid_control.hardware.can.bus import check_socketcan
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.can.guard import FRAME, frames_of
from humanoid_control.hardware.can.mit import EXIT, MODELS, MitTransport
from humanoid_control.hardware.transport import (
    ActuatorCommand,
    ActuatorSpec,
    ActuatorState,
    BusSpec,
    HardwareError,
    Silence,
)
from test.hardware.can.conftest import LIMITS, Rig
from test.hardware.can.durand_drives import COUNTS

pytestmark = pytest.mark.drives

CHANNEL = "239.74.163.3"
DRIVES = Path(__file__).with_name("durand_drives.py")


class Remote(Rig):
    """Drives in a process of their own."""

    def __init__(self, port, count, period, interface="udp_multicast", channel=CHANNEL):
        command = [sys.executable, str(DRIVES), interface, channel, str(port), str(count)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "READY\n"
        specs = tuple(ActuatorSpec(f"j{i}", i, **LIMITS, options={"counts": COUNTS}) for i in range(1, count + 1))
        options = {"interface": interface, "channel": channel, "port": port, "heartbeat": 0.5, "drive_heartbeat": 0.5}
        self.spec = BusSpec("leg", specs, period, options)
        self.transport = CanopenTransport(self.spec)
        self.state, self.command = ActuatorState(count), ActuatorCommand(count)

    def end(self):
        self.transport.close()
        self.process.stdin.close()
        assert self.process.wait(60) == 0


@pytest.fixture(scope="module")
def vcan():
    """A virtual CAN interface of the kernel: `vcan0` where it is up, else one that is made here, and gone after it."""
    try:
        check_socketcan("vcan0", 1_000_000)
        yield "vcan0"
        return
    except HardwareError as e:
        reason = str(e)
    name = f"vcan{1 + os.getpid() % 9999}"
    for words in (("add", "dev", name, "type", "vcan"), ("set", name, "up")):
        done = subprocess.run(["ip", "link", *words], capture_output=True, text=True) if shutil.which("ip") else None
        if done is None or done.returncode:
            pytest.skip(f"{reason}; none can be made: {done.stderr.strip() if done else 'there is no command ip'}")
    yield name
    subprocess.run(["ip", "link", "delete", name], check=True)


@pytest.fixture(params=["udp_multicast", "socketcan"])
def remote(request, worker_port):
    made, interface = [], request.param
    channel = CHANNEL if interface == "udp_multicast" else request.getfixturevalue("vcan")

    def make(count, period=0.01):
        made.append(Remote(worker_port, count, period, interface, channel))
        return made[-1]

    yield make
    for one in made:
        one.end()


def test_thirty_drives_in_another_process(remote):
    """Identified, enabled, each moved to a place of its own, stopped."""
    r = remote(30, 0.03).open().enable()
    r.command.q[:] = np.linspace(-0.5, 0.5, 30)
    r.until(lambda: np.allclose(r.state.q, r.command.q, atol=0.002), write=True)
    assert r.transport.trouble() == "" and len(set(r.transport.serials())) == 30
    r.transport.quick_stop()
    r.until(lambda: (r.transport.data.state == 5).all())


def test_a_guardian_stops_the_drives_by_its_own_handle_when_nobody_else_speaks(remote):
    r = remote(2).open().enable()
    r.cycle()  # what `enable` had still to send
    spec = json.loads(json.dumps(r.transport.guard()))
    module, _, name = spec[0].partition(":")
    guard = getattr(importlib.import_module(module), name)(*spec[1])
    frame = r.transport.damping_frame(r.state)
    assert len(frame) <= spec[3]
    guard.damp(frame)
    r.until(lambda: (r.transport.data.state == 5).all())
    guard.off()
    r.until(lambda: (r.transport.data.state == 1).all())
    guard.close()
    guard.damp(frame)  # after the end it is silent


def test_the_guardian_imports_nothing_but_the_standard_library_where_the_kernel_has_can():
    code = "import sys; import humanoid_control.hardware.can.guard; print(*sorted(sys.modules))"
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert not {"can", "numpy", "canopen", "numba"} & set(run.stdout.split())


def test_frames_of_the_guardian_are_those_of_linux():
    packed = FRAME.pack(0x201, 6, b"\x02\x00\x01\x02\x03\x04") + FRAME.pack(0x80, 0, b"")
    assert packed.hex() == "01020000" + "06000000" + "0200010203040000" + "80000000" + "00" * 12
    assert frames_of(packed + b"left over") == [(0x201, b"\x02\x00\x01\x02\x03\x04"), (0x80, b"")]


def test_damping_of_mit_actuators_is_a_frame_for_each(worker_port):
    specs = tuple(ActuatorSpec(f"j{i}", i, options={"model": "AK80-9"}) for i in (3, 4))
    options = {"interface": "udp_multicast", "channel": CHANNEL, "port": worker_port}
    transport = MitTransport(BusSpec("arm", specs, 0.005, options))
    state = ActuatorState(2)
    state.q[:] = 0.5, np.nan
    frames = frames_of(transport.damping_frame(state))
    assert [i for i, _ in frames] == [3, 4] and transport.silence is Silence.UNKNOWN
    for (_, data), q in zip(frames, (0.5, 0.0), strict=True):
        word = int.from_bytes(data, "big")
        assert (word >> 48) / 65535 * 25 - 12.5 == pytest.approx(q, abs=2e-4)
        assert word >> 24 & 0xFFF == 0
        assert (word >> 12 & 0xFFF) / 4095 * MODELS["AK80-9"][3] == pytest.approx(1.0, abs=0.01)
        assert (word & 0xFFF) in (2047, 2048)
    factory, arguments, _, size = transport.guard()
    assert factory.endswith(":CanGuard") and size == 32
    assert frames_of(bytes.fromhex(arguments[4])) == [(3, EXIT), (4, EXIT)]


def test_a_bus_inside_this_process_has_no_guardian():
    spec = (ActuatorSpec("j1", 1, options={"model": "AK80-9"}),)
    assert MitTransport(BusSpec("arm", spec, 0.005, {"interface": "virtual", "channel": "x"})).guard() is None


def test_the_watchdog_stops_drives_of_a_driver_that_was_killed(worker_port):
    r = Remote(worker_port, 2, 0.01)
    code = f"""
import time
import sys
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from humanoid_control.hardware.can.bus import check_socketcan
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.transport import *
specs = tuple(ActuatorSpec(f"j{{i}}", i, options={{"counts": {COUNTS}}}) for i in (1, 2))
t = CanopenTransport(BusSpec("leg", specs, 0.01, {dict(r.spec.options)!r}))
s, c = ActuatorState(2), ActuatorCommand(2)
t.open()
while True:
    if t.power(True):
        print("ON", flush=True)
    t.write(c)
    t.read(s, time.monotonic() + 0.005)
    time.sleep(0.005)
"""
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout.readline() == "ON\n"
    finally:
        driver.kill()
        driver.wait(60)
    end = time.monotonic() + 60.0
    while True:  # a new driver may open as soon as the drives have stopped by themselves, not before
        try:
            r.open()
            break
        except Exception as e:
            assert "was powered by another program" in str(e) and time.monotonic() < end
    for _ in range(3):
        r.cycle(write=False)
    assert (r.transport.data.state == 5).all(), "quick stop, not switched off"
    r.end()
