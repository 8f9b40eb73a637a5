"""`robot_driver` in a process of its own, with what a measurement needs besides: `python -m` this module.

It takes power by itself and tells how late its cycles were. Thirty loopback drives.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from humanoid_control.hardware.power import PowerState
from humanoid_control.nodes.base.parameters import param
from humanoid_control.nodes.base.runner import main_of
from humanoid_control.nodes.robot_driver import RobotDriver, RobotDriverParameters
from humanoid_control.session.loop_lateness import LatenessRecorder


@dataclass(frozen=True)
class TimedDriverParameters(RobotDriverParameters):
    """Parameters of the driver under test."""

    hardware: str = param("loopback", "simulated drives")
    late_tolerance: float = param(100.0, "the measurement continues even if a cycle is late", "", 1.0, 100.0)
    seconds: float = param(10.0, "time of the measurement", "s", 0.1, 3600.0)


class TimedDriver(RobotDriver):
    """The driver, with power on its loopback drives, and a record of its lateness."""

    Parameters = TimedDriverParameters
    params: TimedDriverParameters
    node_name = "timed_driver"
    recorder: LatenessRecorder | None = None

    def run_tick(self, skipped: int) -> None:
        super().run_tick(skipped)
        machine = self.driver.machine
        if machine.state is PowerState.MONITOR:
            self.driver.enable()
        elif self.recorder is not None:
            self.recorder.note(skipped)
        elif machine.state is PowerState.HOLD:
            self.recorder = LatenessRecorder()
            self.recorder.record(self, self.params.seconds)


if __name__ == "__main__":
    sys.exit(main_of(TimedDriver))
