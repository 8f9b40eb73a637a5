"""Reports of a robot driver: buses, joints, battery, IMU."""

from __future__ import annotations

from typing import Any

import numpy as np
from sensor_msgs.msg import BatteryState, Imu

from humanoid_control.hardware.buses import BusReport
from humanoid_control.hardware.driver import Driver
from humanoid_control.hardware.supervision import FAULT, WARN
from humanoid_control.hardware.transport import BatteryReading
from humanoid_control.kinematics.joint_state import NodeStatus
from humanoid_control.nodes.base.health import Level

LOST_PERCENT = 1.0  # percentage of lost samples that causes a warning and blocks power
NAMED = 3  # findings per line
DISCHARGING, UNKNOWN = BatteryState.POWER_SUPPLY_STATUS_DISCHARGING, BatteryState.POWER_SUPPLY_STATUS_UNKNOWN


class BusRates:
    """Frames per second of each bus between reports."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[float, int, int]] = {}

    def update(self, report: BusReport, now: float) -> tuple[float, float]:
        """Return frames sent and received per second; 0 at first and after reopening."""
        sent, received = report.traffic.sent, report.traffic.received
        at, *before = self._last.get(report.name, (now, sent, received))
        self._last[report.name] = (now, sent, received)
        if now <= at:
            return 0.0, 0.0
        return max(sent - before[0], 0) / (now - at), max(received - before[1], 0) / (now - at)


def bus_status(report: BusReport, rates: tuple[float, float]) -> NodeStatus:
    """Return the status of a bus; `rates`: sent and received per second."""
    missed = 100 * report.missed
    level, text = Level.OK, "ok"
    if report.problem:
        level, text = Level.ERROR, report.problem
    elif missed > LOST_PERCENT:
        level, text = Level.WARN, f"{missed:.1f} % of the samples are lost"
    values: dict[str, Any] = {
        "load_percent": round(100 * report.load, 1),
        "sent_hz": round(rates[0], 1),
        "received_hz": round(rates[1], 1),
        "lost_samples": report.lost,
        "missed_percent": round(missed, 2),
        "errors": report.traffic.errors,
    }
    if report.battery is not None:
        values["voltage"] = round(report.battery.voltage, 2)
    return NodeStatus(level, text, values)


def joints_status(driver: Driver) -> NodeStatus:
    """Return findings, temperatures [deg C] and tracking errors [rad] of all joints."""
    faults = [f.text for f in driver.findings if f.level == FAULT]
    warnings = [f.text for f in driver.findings if f.level == WARN]
    level = Level.ERROR if faults else Level.WARN if warnings else Level.OK
    values: dict[str, Any] = {}
    rows = zip(driver.hardware.names, driver.joints.temperature, driver.following_error(), strict=True)
    for name, temperature, error in rows:
        if np.isfinite(temperature):
            values[f"temperature {name}"] = f"{temperature:.1f}"
        if np.isfinite(error):
            values[f"following_error {name}"] = f"{error:.4f}"
    return NodeStatus(level, "; ".join((faults + warnings)[:NAMED]) or "ok", values)


def parts_of(driver: Driver, rates: BusRates, now: float) -> dict[str, NodeStatus]:
    """Return statuses of buses and joints by name."""
    buses = {f"bus {r.name}": bus_status(r, rates.update(r, now)) for r in driver.buses.reports()}
    return {**buses, "joints": joints_status(driver)}


def battery_message(bus: str, reading: BatteryReading, stamp: Any) -> BatteryState:
    """Return the supply of a bus as a message."""
    m = BatteryState(location=bus, present=True)
    m.header.stamp = stamp
    m.voltage, m.current, m.temperature = reading.voltage, reading.current, reading.temperature
    m.percentage = reading.charge
    m.charge = m.capacity = m.design_capacity = float("nan")  # the message defines NaN as unknown
    m.power_supply_status = DISCHARGING if reading.current < 0 else UNKNOWN
    return m


def fill_imu(message: Imu, reading: Any, stamp: Any) -> Imu:
    """Fill and return a reused message."""
    message.header.stamp = stamp
    o, w, a = message.orientation, message.angular_velocity, message.linear_acceleration
    o.x, o.y, o.z, o.w = reading.orientation.tolist()
    w.x, w.y, w.z = reading.angular_velocity.tolist()
    a.x, a.y, a.z = reading.linear_acceleration.tolist()
    return message
