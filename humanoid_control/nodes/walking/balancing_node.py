"""Tick of a robot that balances on its feet: at each complete measurement, or a little later with the last readings."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState
from std_msgs.msg import Bool

from humanoid_control.nodes.base.command_owner import CommandOwner
from humanoid_control.nodes.base.messages import LATCHED, PAUSED
from humanoid_control.nodes.base.statistics import SampleWindow
from humanoid_control.nodes.base.tick_node import Level, TickNode
from humanoid_control.nodes.simulating.outputs import foot_topic
from humanoid_control.nodes.walking.sensors import JOINTS, Sensors, TickClock
from humanoid_control.walking.start_check import StartCheck

WAITING, OFF = "WAITING", "OFF"
JUMP = 0.5  # [s] between two instants of the sensors, beyond which the simulation was reset or replaced
CHECK_PERIOD = 0.25  # [s] between checks for missing sensors and other publishers
PATIENCE = 2.0  # [s] without commands, after which the reason is reported


class BalanceCommands(Protocol):
    """Publisher of joint commands, by position or by torque."""

    @property
    def owner(self) -> CommandOwner: ...
    def damp(self) -> None: ...


class BalancingNode(TickNode):
    """Node that controls a robot on its feet from joint states, an IMU and the wrenches of its soles.

    A subclass creates the attributes below in `configure` and calls `listen_to_sensors`. It implements `restart`,
    `stand_up`, `control`, `check_sources`, `show_state` and `fallen`.

    Attributes:
        sensors: newest readings.
        clock: assignment of ticks to the instants of the sensors.
        check: test that the robot stands at rest on its feet.
        commands: publisher of joint commands.
        took: duration of a run of the controller [s].
        running: True while the robot is controlled.
        paused: True while the time of the simulator stands still.
        checked: time of the last `check_sources`, monotonic [s].
        waiting_since: time of the last restart, monotonic [s].
    """

    sensors: Sensors
    clock: TickClock
    check: StartCheck
    commands: BalanceCommands
    took: SampleWindow
    running: bool
    paused = False
    checked: float
    waiting_since: float

    def restart(self) -> None:
        """Discard the state, and wait until the robot stands at rest on its feet."""
        raise NotImplementedError

    def stand_up(self, now: float) -> None:
        """Start the control if the robot stands at rest and no other node commands it."""
        raise NotImplementedError

    def control(self, ticks: int, now: float) -> int:
        """Control the robot for a number of ticks; `now` is monotonic [s].

        Returns:
            How often the controller ran.
        """
        raise NotImplementedError

    def check_sources(self, now: float) -> None:
        """Report missing sensors and other publishers of commands; `now` is monotonic [s]."""
        raise NotImplementedError

    def show_state(self, state: str) -> None:
        """Publish the state of the node."""
        raise NotImplementedError

    @property
    def fallen(self) -> bool:
        """True after a fall, until `restart`."""
        raise NotImplementedError

    def listen_to_sensors(self, soles: tuple[str, ...]) -> None:
        """Subscribe to the sensors, and to the pause of the simulator.

        Args:
            soles: names of the soles whose wrenches are measured.
        """
        self.listen(JointState, "joint_states", self._sensed(self.sensors.on_joints))
        self.listen(Imu, "imu", self._sensed(self.sensors.on_imu))
        for sole in soles:
            self.listen(WrenchStamped, foot_topic(sole), self._sensed(partial(self.sensors.on_wrench, sole)))
        self.create_subscription(Bool, PAUSED, self.on_paused, LATCHED)

    def _sensed(self, take: Callable[[Any], bool]) -> Callable[[Any], None]:
        """Return a callback that wakes the tick when the measurement of an instant is complete."""

        def call(message: Any) -> None:
            if take(message) and self.active and self.sensors.instant is not None:
                self.wake = True

        return call

    def on_paused(self, message: Bool) -> None:
        """Stop or resume the check for late sensors with the time of the simulator."""
        self.paused = bool(message.data)
        self._rest(time.monotonic())

    def tick(self, now: float) -> None:
        s, clock = self.sensors, self.clock
        instant = clock.choose(s.instant, s.joint_instant, now)
        if self.paused and not clock.newer(instant):
            self._rest(now)
            return
        s.look(now, 1.5 / self.rate, clock.pace)
        if now - self.checked > CHECK_PERIOD:
            self.checked = now
            self.check_sources(now)
        where = s.elsewhere if self.running and not self.fallen else ""
        if clock.jumped(instant, JUMP) or where:
            self.health.report("jump", Level.WARN, f"{where or 'the clock of the sensors jumped'}: standing anew")
            self.restart()
            return
        if self.running and JOINTS in s.quiet(self.params.sensor_off):
            self.switch_off(f"no {JOINTS} for {self.params.sensor_off:g} s: the joints are only damped")
            return
        ticks = clock.step(instant, now)
        if not ticks or s.missing:
            return
        if not self.running:
            self.stand_up(now)
            return
        if not self.commands.owner.look(now):
            self.restart()
            return
        begin = time.monotonic()
        runs = self.control(ticks, now)
        self.took.add((time.monotonic() - begin) / runs)

    def begin_running(self) -> None:
        """Start the control, and clear the reports of the time before."""
        self.running = True
        for key in ("start", "jump", "off"):
            self.health.clear(key)

    def report_waiting(self, waits: bool) -> None:
        """Report why the control does not start; `waits`: whether it should have started by now."""
        missing = self.sensors.missing
        problems = [f"no {name} yet" for name in missing[:3]] if missing else self.check.problems
        text = "not standing yet: " + "; ".join(problems or ["not steady"])
        self.health.check("start", waits, Level.WARN, text)

    def switch_off(self, why: str) -> None:
        """Damp the joints and restart; `why` is reported."""
        self.health.report("off", Level.ERROR, why)
        self.commands.damp()
        self.restart()
        self.show_state(OFF)

    def _rest(self, now: float) -> None:
        """Count nothing as late while the time of the simulator stands still."""
        self.clock.rest(now)
        self.sensors.look(now, 0.0)
