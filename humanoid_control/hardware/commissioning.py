"""Commissioning of a real robot: a draft of its file, what answers on its buses, one joint moved by hand."""

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
HELD = 0.6  # [s] after a key in which it counts as held: terminals repeat a key after half a second
DRAFT = """# Draft of `humanoid hardware new`: every line with GUESS must be made right before anything gets power.
schema: {schema}
robot: {robot}
rate: 500             # [Hz] of the driver's cycle
command_timeout: 0.1  # [s] of silence after which the robot comes to rest
soft_start: 2.0       # [s] that the way to the commands takes at least
soft_speed: 0.5       # [rad/s] that this way may add at most
range_margin: 0.02    # [rad] inside the URDF's range
# Shares of the URDF's limits; rad/s^2; rad; deg C for warning and fault.
defaults: {{velocity: 0.5, acceleration: 20, effort: 0.8, following_error: 0.15, temperature: [70, 80]}}
buses:
  bus: {{{bus}}}{bus_guess}
joints:
"""


def draft_file(robot: Robot, name: str, transport: str) -> str:
    """Text of a hardware file with every joint on one bus; what is not known is marked GUESS.

    Args:
        robot: whose joints. name: of it, as `load_robot` takes it. transport: of the bus.

    Raises:
        UnknownNameError: no such transport. EnvironmentProblem: its optional package is not installed.
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
    """One row for each bus: name, transport, number of actuators, load [%], what its drives do in silence."""
    rows = []
    for bus in hardware.buses:
        cls = transport_class(bus.transport)
        made: Any = cls(bus.spec)  # type: ignore[call-arg]
        load = 100 * cls.bus_load(bus.spec)
        rows.append((bus.spec.name, bus.transport, len(bus.spec.actuators), load, made.silence.value))
    return rows


def tendon_rows(hardware: TendonHardware) -> list[tuple[str, str, int, str, str, str, str]]:
    """One row for each muscle unit: tendon, bus, id, mode, travel [m], range of the tension [N] and its source."""
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
    """One row for each bus: name, what answers on it, what the file expects."""
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
    """One joint moved slowly to an angle, while somebody holds a key; the others hold.

    Attributes:
        driver: open. joint: its index. angle: where it is to go [rad]. target: commanded now [rad].
    """

    def __init__(self, driver: Driver, joint: str, angle: float) -> None:
        """Prepare; nothing gets power.

        Raises:
            UnknownNameError: not a driven joint. ConfigError: an angle outside of its range.
        """
        names = driver.hardware.names
        if joint not in names:
            raise UnknownNameError("driven joint", joint, names)
        self.driver, self.joint, self.angle = driver, names.index(joint), angle
        low, high = driver.limits.lower[self.joint], driver.limits.upper[self.joint]
        if not low <= angle <= high:
            raise ConfigError(f"{joint} goes from {low:.3f} to {high:.3f} rad, not to {angle:g}")
        driver.speeds.goal[:] = np.minimum(driver.speeds.goal, JOG_SPEED)
        self.target, self._held_until = np.nan, -np.inf

    def press(self) -> None:
        """Take a press of the key, or one of its repetitions."""
        self._held_until = self.driver.clock() + HELD

    def cycle(self) -> None:
        """One cycle of the driver; the target goes on only while the key is held and the robot follows."""
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
        """True once the angle is commanded."""
        return self.target == self.angle

    def position(self) -> float:
        """Measured angle of the joint [rad]."""
        return float(self.driver.joints.q[self.joint])


def run_cycles(driver: Driver | TendonDriver, cycle: Callable[[], None], goes_on: Callable[[], bool]) -> None:
    """Call a cycle at the driver's rate, in real time, as long as it goes on."""
    deadline = time.monotonic()
    while goes_on():
        deadline = max(deadline + driver.period, time.monotonic())
        time.sleep(max(0.0, deadline - time.monotonic()))
        cycle()
