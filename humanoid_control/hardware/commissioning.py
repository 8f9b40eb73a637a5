"""Commissioning: draft file, bus scan, slow motion of one joint."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from humanoid_control.documents import yaml_text
from humanoid_control.errors import ConfigError, UnknownNameError
from humanoid_control.hardware.buses import BusFile
from humanoid_control.hardware.commands.command_stream import JointCommand
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.hardware_file import SCHEMA
from humanoid_control.hardware.muscle_units.driver import TendonDriver
from humanoid_control.hardware.muscle_units.file import TendonHardware
from humanoid_control.hardware.power import PowerState
from humanoid_control.hardware.transport import HardwareError, transport_class
from humanoid_control.robots import Robot

JOG_SPEED = 0.2  # [rad/s]
HELD = 0.6  # [s] a key counts as held after a press: terminals repeat a key after half a second
DRAFT = """# Draft of `humanoid hardware new`: correct every line with GUESS before switching power on.
schema: {schema}
robot: {robot}
rate: 500             # [Hz] of the driver's cycle
command_timeout: 0.1  # [s] of silence before the robot comes to rest
soft_start: 2.0       # [s] minimum duration of the blend to the commands
soft_speed: 0.5       # [rad/s] maximum additional speed of the blend
range_margin: 0.02    # [rad] inside the URDF's range
# Shares of the URDF's limits; rad/s^2; rad; deg C for warning and fault.
defaults: {{velocity: 0.5, acceleration: 20, effort: 0.8, following_error: 0.15, temperature: [70, 80]}}
buses:
  bus: {{{bus}}}{bus_guess}
joints:
"""


def draft_file(robot: Robot, name: str, transport: str) -> str:
    """Return a draft hardware file with all joints on one bus; GUESS marks unknown values.

    Raises:
        UnknownNameError: if the transport is unknown.
        EnvironmentProblem: if its package is not installed.
    """
    cls = transport_class(transport)
    bus = {"transport": transport, **_needed(cls.bus_keys, robot=name)}
    guess = "  # GUESS" if len(bus) > 1 and transport != "simulator" else ""
    text = DRAFT.format(schema=SCHEMA, robot=yaml_text(name), bus=_flow(bus), bus_guess=guess)
    led = {f for f, *_ in robot.mimic}
    neutral = robot.postures["neutral"]
    width = max(len(yaml_text(n)) for n in robot.joint_names)
    for k, joint in enumerate(robot.joint_names):
        if k in led:
            continue
        row = {"bus": "bus", "id": k + 1, "ratio": 1, "sign": 1, **_needed(cls.actuator_keys)}
        if "start" in cls.actuator_keys:
            row["start"] = round(float(neutral[k]), 6)
        text += f"  {yaml_text(joint) + ':':{width + 1}} {{{_flow(row)}}}  # GUESS id, ratio, sign\n"
    return text


def _needed(keys: Any, **known: str) -> dict[str, Any]:
    return {k: known.get(k, 0 if v in (int, float) else "GUESS") for k, v in keys.items() if isinstance(v, type)}


def _flow(row: dict[str, Any]) -> str:
    return ", ".join(f"{k}: {yaml_text(v) if isinstance(v, str) else v}" for k, v in row.items())


def bus_rows(hardware: BusFile) -> list[tuple[str, str, int, float, str]]:
    """Return by bus: name, transport, number of actuators, load [%], behaviour without frames."""
    rows = []
    for bus in hardware.buses:
        cls = transport_class(bus.transport)
        made: Any = cls(bus.spec)  # type: ignore[call-arg]
        load = 100 * cls.bus_load(bus.spec)
        rows.append((bus.spec.name, bus.transport, len(bus.spec.actuators), load, made.silence.value))
    return rows


def tendon_rows(hardware: TendonHardware) -> list[tuple[str, str, int, str, str, str, str]]:
    """Return by muscle unit: tendon, bus, id, mode, travel [m], tension range [N], its source."""
    rows, k = [], 0
    for bus, mode in zip(hardware.buses, hardware.modes, strict=True):
        for spec in bus.spec.actuators:
            row, least = hardware.rows[k], hardware.least[k]
            travel, tensions = f"{row.shortest:.3f} .. {row.longest:.3f}", f"{least:.0f} .. {row.tension:.0f}"
            source = "sensor" if row.sensor else "current"
            rows.append((row.tendon, bus.spec.name, spec.id, mode.name, travel, tensions, source))
            k += 1
    return rows


def scan_rows(hardware: BusFile) -> list[tuple[str, str, str]]:
    """Return by bus: name, devices found, devices expected."""
    rows = []
    for bus in hardware.buses:
        try:
            found = "\n".join(transport_class(bus.transport).scan(bus.spec.options)) or "nothing"
        except HardwareError as e:
            found = str(e)
        expected = "\n".join(f"{a.id}: {a.name}" for a in bus.spec.actuators)
        rows.append((bus.spec.name, found, expected))
    return rows


class Jog:
    """Slow motion of one joint while a key is held.

    Attributes:
        angle: goal [rad].
        target: command [rad]; NaN before the first HOLD.
    """

    def __init__(self, driver: Driver, joint: str, angle: float) -> None:
        names = driver.hardware.names
        if joint not in names:
            raise UnknownNameError("driven joint", joint, names)
        self.driver, self.joint, self.angle = driver, names.index(joint), angle
        low, high = driver.limits.lower[self.joint], driver.limits.upper[self.joint]
        if not low <= angle <= high:
            raise ConfigError(f"{joint} must be between {low:.3f} and {high:.3f} rad, got {angle:g}")
        driver.speeds.goal[:] = np.minimum(driver.speeds.goal, JOG_SPEED)
        self.target, self._held_until = np.nan, -np.inf

    def press(self) -> None:
        """Handle a press or repetition of the key."""
        self._held_until = self.driver.clock() + HELD

    def cycle(self) -> None:
        """Run one cycle; the target moves only in RUN while the key is held."""
        driver, now = self.driver, self.driver.clock()
        state = driver.machine.state
        if state is PowerState.HOLD and not np.isfinite(self.target):
            self.target = float(driver.reference.q[self.joint])
        if state is PowerState.RUN and now < self._held_until:
            step = JOG_SPEED * driver.period
            self.target += float(np.clip(self.angle - self.target, -step, step))
        if np.isfinite(self.target):
            q, nothing = np.full((2, len(driver.hardware.names)), np.nan)
            q[self.joint] = self.target
            driver.command(JointCommand(q, nothing, nothing), now, now)
        driver.cycle()

    def arrived(self) -> bool:
        """Return True once the goal is commanded."""
        return self.target == self.angle

    def position(self) -> float:
        """Return the measured joint angle [rad]."""
        return float(self.driver.joints.q[self.joint])


def run_cycles(driver: Driver | TendonDriver, cycle: Callable[[], None], goes_on: Callable[[], bool]) -> None:
    """Call `cycle` at the driver's rate while `goes_on` returns True."""
    deadline = time.monotonic()
    while goes_on():
        deadline = max(deadline + driver.period, time.monotonic())
        time.sleep(max(0.0, deadline - time.monotonic()))
        cycle()
