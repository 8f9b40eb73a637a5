"""Tick of a balancing robot: at each complete measurement, or slightly later."""

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
JUMP = 0.5  # [s] gap between sensor instants that means that the simulation was reset
CHECK_PERIOD = 0.25  # [s] period of the check for missing sensors and other publishers
PATIENCE = 2.0  # [s] without commands before the reason is reported


class BalanceCommands(Protocol):
    """Publisher of joint commands, by position or torque."""

    @property
    def owner(self) -> CommandOwner: ...
    def damp(self) -> None: ...


class BalancingNode(TickNode):
    """Node that controls a robot on its feet from joint states, an IMU and sole wrenches.

    A subclass creates the attributes in `configure`, calls `listen_to_sensors`, and implements the abstract methods.

    Attributes:
        clock: tick schedule from sensor instants.
        check: test that the robot rests on its feet.
        took: duration of a controller run [s].
        running: the robot is controlled.
        paused: simulated time is paused.
        checked: last `check_sources`, monotonic [s].
        waiting_since: last restart, monotonic [s].
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
        """Discard the state; wait until the robot rests on its feet."""
        raise NotImplementedError

    def stand_up(self, now: float) -> None:
        """Start the control if the robot rests and no other node commands it."""
        raise NotImplementedError

    def control(self, ticks: int, now: float) -> int:
        """Control the robot for some ticks; return the number of controller runs."""
        raise NotImplementedError

    def check_sources(self, now: float) -> None:
        """Report missing sensors and competing command publishers."""
        raise NotImplementedError

    def show_state(self, state: str) -> None:
        """Publish the state of the node."""
        raise NotImplementedError

    @property
    def fallen(self) -> bool:
        """Whether the robot fell since the last `restart`."""
        raise NotImplementedError

    def listen_to_sensors(self, soles: tuple[str, ...]) -> None:
        """Subscribe to sensors and the simulator pause."""
        self.listen(JointState, "joint_states", self._sensed(self.sensors.on_joints))
        self.listen(Imu, "imu", self._sensed(self.sensors.on_imu))
        for sole in soles:
            self.listen(WrenchStamped, foot_topic(sole), self._sensed(partial(self.sensors.on_wrench, sole)))
        self.create_subscription(Bool, PAUSED, self.on_paused, LATCHED)

    def _sensed(self, take: Callable[[Any], bool]) -> Callable[[Any], None]:
        """Return a callback that triggers a tick after a complete measurement."""

        def call(message: Any) -> None:
            if take(message) and self.active and self.sensors.instant is not None:
                self.wake = True

        return call

    def on_paused(self, message: Bool) -> None:
        """Suspend or resume the detection of late sensors."""
        self.paused = bool(message.data)
        self._rest(time.monotonic())

    def tick(self, now: float) -> None:
        s, clock = self.sensors, self.clock
        instant = clock.choose(s.instant, s.joint_instant, now)
        # A paused simulator produces no instants, so nothing is late.
        if self.paused and not clock.newer(instant):
            self._rest(now)
            return
        s.advance(now, 1.5 / self.rate, clock.pace)
        if now - self.checked > CHECK_PERIOD:
            self.checked = now
            self.check_sources(now)
        # After a jump of the clock or of the robot, the state estimate is invalid.
        where = s.elsewhere if self.running and not self.fallen else ""
        if clock.jumped(instant, JUMP) or where:
            self.health.report("jump", Level.WARN, f"{where or 'the sensor clock jumped'}: restarting from standing")
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
        if not self.commands.owner.may_command(now):
            self.restart()
            return
        begin = time.monotonic()
        runs = self.control(ticks, now)
        self.took.add((time.monotonic() - begin) / runs)

    def begin_running(self) -> None:
        """Start the control and clear start-up reports."""
        self.running = True
        for key in ("start", "jump", "off"):
            self.health.clear(key)

    def report_waiting(self, waits: bool) -> None:
        """Report why the control does not start, if `waits`."""
        missing = self.sensors.missing
        problems = [f"no {name} yet" for name in missing[:3]] if missing else self.check.problems
        text = "not standing yet: " + "; ".join(problems or ["not steady"])
        self.health.check("start", waits, Level.WARN, text)

    def switch_off(self, why: str) -> None:
        """Damp the joints, restart, and report the reason."""
        self.health.report("off", Level.ERROR, why)
        self.commands.damp()
        self.restart()
        self.show_state(OFF)

    def _rest(self, now: float) -> None:
        self.clock.rest(now)
        self.sensors.advance(now, 0.0)
