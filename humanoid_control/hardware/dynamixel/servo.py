"""Servos of a bus: identification, limits, unit conversions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from humanoid_control.hardware.dynamixel.models import (
    CURRENT_LIMIT,
    DRIVE_MODE,
    FIRMWARE,
    MAX_POSITION,
    MIN_POSITION,
    MODEL,
    MODELS,
    OPERATING,
    OPERATING_MODE,
    RETURN_DELAY,
    TIME_BASED,
    VELOCITY_LIMIT,
    WATCHDOG_FIRMWARE,
    ServoModel,
    X,
    model_name,
)
from humanoid_control.hardware.dynamixel.port import SerialPort, ids_text, servos_at_other_rates
from humanoid_control.hardware.transport import ActuatorSpec, BusSpec, HardwareError, Mode

OPERATING_OF = {Mode.POSITION: "position", Mode.VELOCITY: "velocity", Mode.EFFORT: "current"}
MODE_OF = {
    "position": Mode.POSITION,
    "extended": Mode.POSITION,
    "current_position": Mode.POSITION,
    "velocity": Mode.VELOCITY,
    "current": Mode.EFFORT,
}
MOST_CURRENT = 32767  # counts of a signed 2-byte number


@dataclass(frozen=True)
class Servo:
    """Servo checked against its row; conversions (zero, scale, low, high) from SI to counts."""

    spec: ActuatorSpec
    model: ServoModel
    firmware: int
    operating: str
    position: tuple[float, float, float, float]
    velocity: tuple[float, float, float, float]
    current: tuple[float, float, float, float]

    @property
    def sample(self) -> tuple[float, float, float, float]:
        """Sample conversion: zero [counts]; [rad], [rad/s], [N m] per count."""
        m = self.model
        return float(m.zero), m.radians, m.velocity, m.current * m.torque_constant if m.current else np.nan


def operating_of(spec: ActuatorSpec) -> str:
    """Return the operating mode of the row, or else of the actuator's mode."""
    return str(spec.options.get("operating") or OPERATING_OF.get(spec.mode, ""))


def identify(port: SerialPort, bus: BusSpec, watchdog: bool, profile: bool) -> list[Servo]:
    """Identify each servo, read its limits, set operating mode and reply delay.

    Args:
        watchdog: required.
        profile: servos generate profiles.

    Raises:
        HardwareError: if a servo is missing or differs.
    """
    silent, servos = [], []
    for spec in bus.actuators:
        found = port.ping(spec.id)
        if found is None:
            silent.append(spec)
        elif not silent:
            servos.append(_identified(port, bus, spec, watchdog, profile))
    if silent:
        raise HardwareError(_no_response(port, bus, silent))
    return servos


def _no_response(port: SerialPort, bus: BusSpec, silent: list[ActuatorSpec]) -> str:
    own = port.broadcast_ping()
    first = f"{silent[0].name} ({bus.name} {silent[0].id})"
    more = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    lost = {spec.id for spec in silent}
    other = {baud: sorted(lost & found.keys()) for baud, found in servos_at_other_rates(port).items()}
    if other := {baud: ids for baud, ids in other.items() if ids}:
        there = "; ".join(f"at {baud} baud: {ids_text(found)}" for baud, found in other.items())
        return f"{first}{more}: no response at {port.baud} baud, but ids {there}"
    return f"{first}{more}: no response at {port.baud} baud (ids that respond: {ids_text(own)})"


def _identified(port: SerialPort, bus: BusSpec, spec: ActuatorSpec, watchdog: bool, profile: bool) -> Servo:
    who = f"{spec.name} ({bus.name} {spec.id})"
    memory = port.eeprom(spec.id)
    if memory is None:
        raise HardwareError(f"{who}: responds to pings, but not to reads: Status Return Level must be 1 or 2")
    number, expected = _number(memory, MODEL, 2), int(spec.options.get("model") or 0)
    if expected and number != expected:
        raise HardwareError(f"{who}: it is {model_name(number)}, expected {model_name(expected)}")
    if number not in MODELS:
        known = ", ".join(m.name for m in MODELS.values())
        raise HardwareError(f"{who}: unknown model {number}; known: {known}")
    model, firmware = MODELS[number], int(memory[FIRMWARE])
    if watchdog and model.table is X and firmware < WATCHDOG_FIRMWARE:
        raise HardwareError(f"{who}: firmware {firmware} has no bus watchdog, expected {WATCHDOG_FIRMWARE} or later")
    if profile and int(memory[DRIVE_MODE]) & TIME_BASED:
        raise HardwareError(f"{who}: its profile is by time (Drive Mode {memory[DRIVE_MODE]}), expected by velocity")
    operating = operating_of(spec)
    if "current" in operating and not model.current:
        raise HardwareError(f"{who}: {model.name} has no current control: operating cannot be {operating}")
    if operating == "current_position" and model.table is not X:
        raise HardwareError(f"{who}: {model.name} has no operating mode {operating}")
    _store(port, who, spec.id, "Return Delay Time", RETURN_DELAY, 0, memory)
    _store(port, who, spec.id, "Operating Mode", OPERATING_MODE, OPERATING[operating], memory)
    return Servo(spec, model, firmware, operating, *_conversions(who, spec, model, operating, memory))


def _store(port: SerialPort, who: str, servo: int, name: str, address: int, value: int, memory: np.ndarray) -> None:
    """Write an EEPROM byte if it differs."""
    if int(memory[address]) == value:
        return
    problem = port.store(servo, address, value, 1)
    if not problem and (found := port.read(servo, address, 1)) != value:
        problem = f"it reads {found}"
    if problem:
        text = " (its torque is on: switch it off first)" if problem == "access error" else ""
        raise HardwareError(f"{who}: {name} is {memory[address]}, cannot be set to {value}: {problem}{text}")


def _conversions(
    who: str, spec: ActuatorSpec, model: ServoModel, operating: str, memory: np.ndarray
) -> tuple[tuple[float, float, float, float], ...]:
    scale = 1.0 / model.radians
    low, high = model.zero + spec.lower * scale, model.zero + spec.upper * scale
    least, most = -float(model.table.most), float(model.table.most)
    if operating == "position":
        least, most = _signed(memory, MIN_POSITION), _signed(memory, MAX_POSITION)
        for end, own, beyond in ((spec.lower, least, low < least - 1), (spec.upper, most, high > most + 1)):
            if np.isfinite(end) and beyond:
                raise HardwareError(
                    f"{who}: its position limits are {(least - model.zero) / scale:.3f} .. "
                    f"{(most - model.zero) / scale:.3f} rad, the file's range goes to {end:.3f}: "
                    f"set them in the servo ({own:g} counts now), or operating: extended"
                )
    position = (float(model.zero), scale, np.ceil(max(low, least)), np.floor(min(high, most)))
    speed = min(spec.velocity / model.velocity, float(_signed(memory, VELOCITY_LIMIT)))
    velocity = (0.0, 1.0 / model.velocity, -np.floor(speed), np.floor(speed))
    if not model.current:
        return position, velocity, (0.0, 0.0, 0.0, 0.0)
    newton_metre = 1.0 / (model.current * model.torque_constant)
    ampere = min(spec.effort * newton_metre, float(_number(memory, CURRENT_LIMIT, 2)), MOST_CURRENT)
    return position, velocity, (0.0, newton_metre, -np.floor(ampere), np.floor(ampere))


def _number(memory: np.ndarray, address: int, width: int) -> int:
    return int.from_bytes(memory[address : address + width].tobytes(), "little")


def _signed(memory: np.ndarray, address: int) -> float:
    return float(int.from_bytes(memory[address : address + 4].tobytes(), "little", signed=True))
