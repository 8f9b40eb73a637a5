"""Emulated drives and the transport under test on one virtual bus of this process."""

import itertools
import time

import can
import pytest

from humanoid_control.hardware.can import configuration, drives, homing
from humanoid_control.hardware.can.drives import CanopenTransport
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec
from test.hardware.can.durand_drives import COUNTS, Drive, Hub
from test.places import port

channels = itertools.count()
LIMITS = {"lower": -2.0, "upper": 2.0, "velocity": 20.0, "effort": 1.5}


class Rig:
    """Some drives, and their transport in a cycle of its own."""

    def __init__(self, count=3, period=0.005, actuator=None, drive=None, ids=None, **options):
        self.channel = f"rig {next(channels)}"
        self.hub = Hub(can.Bus(self.channel, "virtual"), period)
        self.ids = ids or list(range(1, count + 1))
        self.drives = [Drive(self.hub, i, **(drive or {})) for i in self.ids]
        self.hub.start()
        given = {**LIMITS, **(actuator or {})}
        given["options"] = {"counts": COUNTS, **given.get("options", {})}
        specs = tuple(ActuatorSpec(f"j{i}", i, **given) for i in self.ids)
        # a busy machine may pause the test: both sides bear 1.5 s
        options = {"heartbeat": 0.5, "drive_heartbeat": 0.5, **options}
        self.spec = BusSpec("leg", specs, period, {"interface": "virtual", "channel": self.channel, **options})
        self.transport = CanopenTransport(self.spec)
        self.state, self.command = ActuatorState(len(specs)), ActuatorCommand(len(specs))
        self.command.mode[:] = [s.mode for s in specs]
        self.eavesdropper = can.Bus(self.channel, "virtual")

    def open(self):
        self.transport.open()
        return self

    def cycle(self, write=True, wait=None):
        begin = time.monotonic()
        if write:
            self.transport.write(self.command)
        self.transport.read(self.state, begin + (self.spec.period if wait is None else wait))
        time.sleep(max(0.0, begin + self.spec.period - time.monotonic()))

    def until(self, done, seconds=30.0, write=False, each=None):
        """Cycle until something is so; it must be within some seconds."""
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, (
                f"not so in {seconds} s: {self.transport.trouble()} {self.transport.data.state}"
            )
            if each is not None:
                each()
            self.cycle(write)

    @staticmethod
    def wait(done, seconds=30.0):
        """Wait without a cycle."""
        end = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < end, f"not so in {seconds} s"
            time.sleep(0.005)

    def enable(self):
        self.until(lambda: self.transport.power(True))
        return self

    def heard(self):
        """All frames on the bus since the last call."""
        out = []
        while (frame := self.eavesdropper.recv(0)) is not None:
            out.append(frame)
        return out

    def end(self):
        self.transport.close()
        self.hub.stop()
        self.eavesdropper.shutdown()


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Answers of drives may be late on a busy machine."""
    monkeypatch.setattr(configuration, "ROLL_CALL", 3.0)
    monkeypatch.setattr(configuration, "ANSWER", 20.0)
    monkeypatch.setattr(configuration, "ANSWER_TIME", 3.0)
    monkeypatch.setattr(drives, "FIRST_SAMPLES", 20.0)
    monkeypatch.setattr(homing, "ANSWER", 5.0)


@pytest.fixture
def rig():
    made = []

    def make(*args, **options):
        made.append(Rig(*args, **options))
        return made[-1]

    yield make
    for one in made:
        one.end()


@pytest.fixture
def worker_port():
    """A port of this worker for buses between processes."""
    return port(15)
