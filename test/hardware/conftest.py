"""A clock that tests set, and a loopback bus on it."""

import pytest

from humanoid_control.hardware.loopback import LoopbackTransport
from humanoid_control.hardware.transport import ActuatorCommand, ActuatorSpec, ActuatorState, BusSpec, Flag


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Bench:
    """A loopback bus with a state and a command, cycled at 500 Hz of its own time."""

    period = 0.002

    def __init__(self, *actuators, **options):
        rows = actuators or (ActuatorSpec("a", 1, effort=20.0), ActuatorSpec("b", 2, effort=20.0))
        self.clock = Clock()
        self.bus = LoopbackTransport(BusSpec("bench", tuple(rows), self.period, options))
        self.bus.clock = self.clock
        self.state, self.command = ActuatorState(len(rows)), ActuatorCommand(len(rows))
        self.bus.open()

    def cycle(self, seconds, write=True, each=None):
        for _ in range(round(seconds / self.period)):
            self.clock.now += self.period
            if write:
                self.bus.write(self.command)
            self.bus.read(self.state, self.clock.now)
            if each is not None:
                each()

    def enable(self):
        for _ in range(5):
            if self.bus.power(True):
                break
            self.cycle(self.period, write=False)
        self.cycle(0.03)
        assert self.state.have(Flag.ENABLED).all()
        return self


@pytest.fixture
def bench():
    return Bench


@pytest.fixture
def clock():
    return Clock()
