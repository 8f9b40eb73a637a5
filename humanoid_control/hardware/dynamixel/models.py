"""Dynamixel models of protocol 2.0: resolution, units, control tables.

Source: e-manual. X: XL, XC, XM, XH, XW; P: PH, PM, and PRO with firmware A (table of P; unknown current unit, so no
torque).
"""

from __future__ import annotations

from math import pi, tau
from typing import NamedTuple

RPM = 2 * pi / 60  # [rad/s]


class ControlTable(NamedTuple):
    """Control table addresses of a family.

    Attributes:
        torque: Torque Enable; Hardware Error Status is 6 bytes behind.
        profile: acceleration and velocity, 4 bytes each.
        present: current, velocity, position, 2 + 4 + 4 bytes.
        supply: voltage, temperature, 2 + 1 bytes.
        most: largest |position| [counts].
    """

    torque: int
    watchdog: int
    current: int
    velocity: int
    profile: int
    position: int
    present: int
    supply: int
    most: int


X = ControlTable(64, 98, 102, 104, 108, 116, 126, 144, 1_048_575)
P = ControlTable(512, 546, 550, 552, 556, 564, 574, 592, 2**31 - 1)

# common to both families: bytes 0 .. 63, kept without power
EEPROM = 64
MODEL, FIRMWARE, RETURN_DELAY, DRIVE_MODE, OPERATING_MODE = 0, 6, 9, 10, 11
CURRENT_LIMIT, VELOCITY_LIMIT, MAX_POSITION, MIN_POSITION = 38, 44, 48, 52
REVERSE, TIME_BASED = 1, 4  # bits of Drive Mode

OPERATING = {"current": 0, "velocity": 1, "position": 3, "extended": 4, "current_position": 5}
"""Operating modes by their names in a hardware file."""

WATCHDOG_UNIT, MOST_WATCHDOG = 0.02, 127  # [s], units
WATCHDOG_FIRMWARE = 38  # first firmware of X with a Bus Watchdog
WATCHDOG_TRIPPED = 255
BAUD_RATES = (57600, 1_000_000, 2_000_000, 3_000_000, 4_000_000, 115_200, 9600, 4_500_000)

HARDWARE_ERRORS = {
    0x01: "input voltage",
    0x02: "motor hall sensor",
    0x04: "overheating",
    0x08: "motor encoder",
    0x10: "electrical shock",
    0x20: "overload",
}
WATCHDOG_CODE, UNREAD_CODE = 0x100, 0x200  # own codes next to the bits of Hardware Error Status


class ServoModel(NamedTuple):
    """Servo model.

    Attributes:
        counts: per turn.
        zero: position of 0 rad [counts].
        velocity: unit [rad/s].
        current: unit [A]; 0: none or unknown.
        torque_constant: stall torque / stall current; P: continuous values [N m/A].
    """

    name: str
    table: ControlTable
    counts: int
    zero: int
    velocity: float
    current: float
    torque_constant: float

    @property
    def radians(self) -> float:
        """Angle of a count [rad]."""
        return tau / self.counts


def _x(name: str, milliampere: float, torque: float, ampere: float) -> ServoModel:
    return ServoModel(name, X, 4096, 2048, 0.229 * RPM, milliampere / 1000, torque / ampere)


def _p(name: str, counts: int, torque: float = 0.0, ampere: float = 1.0) -> ServoModel:
    return ServoModel(name, P, counts, 0, 0.01 * RPM, 0.001 if torque else 0.0, torque / ampere)


MODELS: dict[int, ServoModel] = {
    1000: _x("XH430-W350", 2.69, 3.4, 1.3),
    1010: _x("XH430-W210", 2.69, 2.5, 1.3),
    1020: _x("XM430-W350", 2.69, 4.1, 2.3),
    1030: _x("XM430-W210", 2.69, 3.0, 2.3),
    1040: _x("XH430-V350", 1.34, 3.3, 0.7),
    1050: _x("XH430-V210", 1.34, 2.6, 0.7),
    1060: _x("XL430-W250", 0.0, 1.4, 1.3),
    1070: _x("XC430-W150", 0.0, 1.6, 1.4),
    1080: _x("XC430-W240", 0.0, 1.9, 1.4),
    1090: _x("2XL430-W250", 0.0, 1.4, 1.3),
    1100: _x("XH540-W270", 2.69, 9.9, 4.9),
    1110: _x("XH540-W150", 2.69, 7.1, 4.9),
    1120: _x("XM540-W270", 2.69, 10.6, 4.4),
    1130: _x("XM540-W150", 2.69, 7.3, 4.4),
    1140: _x("XH540-V270", 2.69, 9.2, 2.4),
    1150: _x("XH540-V150", 2.69, 6.4, 2.4),
    1160: _x("2XC430-W250", 0.0, 1.8, 1.4),
    1170: _x("XW540-T260", 2.69, 9.5, 4.9),
    1180: _x("XW540-T140", 2.69, 6.9, 4.9),
    1190: _x("XL330-M077", 1.0, 0.215, 1.47),
    1200: _x("XL330-M288", 1.0, 0.52, 1.47),
    1210: _x("XC330-T181", 1.0, 0.76, 0.80),
    1220: _x("XC330-T288", 1.0, 0.92, 0.80),
    1230: _x("XC330-M181", 1.0, 0.60, 1.80),
    1240: _x("XC330-M288", 1.0, 0.93, 1.80),
    2000: _p("PH42-020-S300", 607_500, 5.1, 1.5),
    2010: _p("PH54-100-S500", 1_003_846, 25.3, 5.5),
    2020: _p("PH54-200-S500", 1_003_846, 44.7, 9.3),
    2100: _p("PM42-010-S260", 526_374, 1.7, 0.6),
    2110: _p("PM54-040-S250", 502_834, 3.9, 1.9),
    2120: _p("PM54-060-S250", 502_834, 10.1, 3.0),
    43289: _p("M42-10-S260 (A)", 526_374),
    46097: _p("M54-40-S250 (A)", 502_834),
    46353: _p("M54-60-S250 (A)", 502_834),
    51201: _p("H42-20-S300 (A)", 607_500),
    53769: _p("H54-100-S500 (A)", 1_003_846),
    54025: _p("H54-200-S500 (A)", 1_003_846),
}
"""Models by the number that a servo reports."""


def model_name(number: int) -> str:
    """Return name and number of a model."""
    return f"{MODELS[number].name} ({number})" if number in MODELS else f"unknown model {number}"


def fault_text(code: int) -> str:
    """Return a fault code in words."""
    words = [text for bit, text in HARDWARE_ERRORS.items() if code & bit]
    if code & WATCHDOG_CODE:
        words.append("bus watchdog: no frames received")
    if code & UNREAD_CODE:
        words.append("hardware error, not read yet")
    return ", ".join(words) or f"hardware error 0x{code:02X}"
