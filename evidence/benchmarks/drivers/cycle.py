"""Cycle of the driver: what it computes, and how late it begins while other processes work."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from evidence.benchmarks import Row, row, row_of
from evidence.benchmarks.drivers.scheduling import BUSY, busy, scheduled
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import without_file
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import ActuatorState, HardwareError
from humanoid_control.robots import load_robot

ROBOT, RATE, COMMANDS = "hrp2", 500.0, 2  # 30 joints; [Hz]; cycles between two commands
WARM, PATIENCE = 200, 10.0  # cycles; [s] until commands are followed, on the driver's own clock
TIMED = "evidence.benchmarks.drivers.timed_driver"


class Clock:
    """Time that continues by one cycle when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Rig:
    """A driver of thirty joints that follows commands, on drives whose own time is not counted."""

    def __init__(self) -> None:
        self.clock = Clock()
        hardware = without_file(load_robot(ROBOT, "fixed"), "loopback", {"watchdog": 1e9}, RATE)
        self.driver = Driver(hardware, clock=self.clock)
        (self.drives,) = self.driver.buses.transports.values()
        self.drives.clock = self.clock  # type: ignore[attr-defined]
        self.driver.open()
        self.n = len(hardware.names)
        self._count, self._begin = 0, np.zeros(self.n)

    def cycle(self) -> float:
        """One cycle, with a command at every other one; its time [us]."""
        d, k = self.driver, self._count
        self.clock.now += d.period
        if k % COMMANDS == 0 and d.machine.powered:
            q = self._begin + 0.1 * np.sin(2.0 * self.clock.now)
            v = np.full(self.n, 0.2 * np.cos(2.0 * self.clock.now))
            d.command(JointCommand(q, v, np.zeros(self.n)), self.clock.now, self.clock.now)
        self._count += 1
        begin = time.perf_counter_ns()
        d.cycle()
        return 1e-3 * (time.perf_counter_ns() - begin)

    def follow(self, state: PowerState) -> None:
        """Go on until the driver is in a state.

        Raises:
            HardwareError: it does not come to it.
        """
        end = self.clock.now + PATIENCE
        while self.driver.machine.state is not state:
            self.cycle()
            if self.driver.machine.state is PowerState.MONITOR:
                self._begin = self.driver.joints.q.copy()
                self.driver.enable()
            if self.clock.now > end:
                raise HardwareError(f"the driver is not in {state.name}: {self.driver.machine}")

    def time(self, cycles: int) -> list[float]:
        """Times of cycles [us]; the drives answer at once with the samples that they gave last."""
        drives: Any = self.drives
        read, write = drives.read, drives.write

        def sampled(state: ActuatorState, until: float) -> None:
            state.stamp[:] = self.clock.now

        drives.read, drives.write = sampled, lambda command: None
        try:
            return [self.cycle() for _ in range(cycles)]
        finally:
            drives.read, drives.write = read, write


def compute(cycles: int = 5000) -> list[Row]:
    """Rows cycle_compute_30 and cycle_compute_30 blend [us]: all of a cycle but the buses.

    Gears, supervision, power state, interpolation of commands, limits, gains: while commands are followed, and while
    they are blended to.
    """
    rig, rows = Rig(), []
    for state, name in ((PowerState.BLEND, "cycle_compute_30 blend"), (PowerState.RUN, "cycle_compute_30")):
        rig.follow(state)
        with scheduled():
            rig.time(WARM)
            most = cycles if state is PowerState.RUN else min(cycles, 500)  # a blend of two seconds has a thousand
            times = rig.time(most)
        if rig.driver.machine.state is not state:
            raise HardwareError(f"the driver left {state.name} while it was measured: {rig.driver.machine}")
        rows.append(row_of(name, "us", times, aim="<= 25 us" if state is PowerState.RUN else ""))
    return rows[::-1]


def lateness(seconds: float = 10.0, rates: tuple[float, ...] = (500.0, 1000.0)) -> list[Row]:
    """Rows cycle_500 and cycle_1000: lateness [us] of robot_driver's cycles while four processes work, and missed [%].

    Thirty loopback drives with power, in a node process as users start it.
    """
    from humanoid_control.session.loop_lateness import measure_loop  # needs ROS 2

    rows = []
    for rate in rates:
        with busy(BUSY):
            loop = measure_loop(rate, seconds, command=("-m", TIMED))
        p50, p99, p999 = (1e6 * loop.percentile(p) for p in (50, 99, 99.9))
        name, n = f"cycle_{rate:.0f}", len(loop.late)
        most = 1e6 * float(loop.late.max())
        more = {"p999": round(p999, 1), "max": round(most, 1), "scheduling": loop.scheduling}
        slow = rate <= RATE
        aim = "p99 <= 50 us" if slow else ""
        rows.append(row(name, "us", p50, p99, n, aim=aim, beside=f"p99.9 {p999:.0f}, max {most:.0f} us", **more))
        missed = loop.missed_percent()
        aim = "<= 0.05 %" if slow else "<= 0.2 %"
        rows.append(row(f"{name} missed", "%", missed, missed, n, aim=aim, beside=f"{loop.missed} cycles"))
    return rows
