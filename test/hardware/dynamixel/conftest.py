"""Emulated servos, and patience for a machine that is busy."""

import time

import pytest

pytest.importorskip("serial", reason="needs pyserial")
pytest.importorskip("dynamixel_sdk", reason="needs dynamixel-sdk")

from humanoid_control.hardware.dynamixel import port, transport
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec


class Driver:
    """A transport, cycled as the driver of a robot cycles it."""

    def __init__(self, bus, servos, period=0.005, **options):
        actuators = tuple(s if isinstance(s, ActuatorSpec) else ActuatorSpec(f"j{s}", s) for s in servos)
        options = {"port": bus.path, "baud": 1_000_000, "watchdog": 2.5, **options}
        self.transport = transport.DynamixelTransport(BusSpec("arms", actuators, period, options))
        self.state, self.command = ActuatorState(len(actuators)), ActuatorCommand(len(actuators))

    def __enter__(self):
        self.transport.open()
        return self

    def __exit__(self, *_):
        self.transport.close()

    def cycle(self, count=1, write=False, wait=None):
        """Cycle; by default, wait for longer than the bus waits for its servos."""
        for _ in range(count):
            if write:
                self.transport.write(self.command)
            self.transport.read(self.state, time.monotonic() + (2 * transport.PATIENCE if wait is None else wait))

    def until(self, condition, what, write=False, timeout=60.0):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, what
            self.cycle(write=write)

    def enable(self):
        self.cycle()
        self.command.q[:] = self.state.q
        self.until(lambda: self.transport.power(True), "power", write=True)
        return self


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """Replies of a busy machine may be late; nobody has to wait for 253 ids. A test of silent servos has less."""
    monkeypatch.setattr(transport, "PATIENCE", 10.0)
    monkeypatch.setattr(transport, "STOP_TIME", 20.0)
    monkeypatch.setattr(port, "PATIENCE", 0.5)
    monkeypatch.setattr(port, "PING_SLOT", 0.0005)


@pytest.fixture
def driver():
    return Driver
