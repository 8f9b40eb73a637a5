"""Hardware file of a tendon-driven robot: buses, and the muscle unit of each tendon.

```yaml
schema: humanoid_hardware/1
robot: arm.urdf
rate: 250
buses:
  left: {transport: canopen, channel: can0}
tendons:
  l_biceps: {bus: left, id: 3, ratio: 2.76e-4, zero: 0.31, counts: 4096}
  l_triceps: {bus: left, id: 4, ratio: -2.76e-4, zero: 0.28, counts: 4096, sensor: true, limits: {tension: 200}}
```
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import HumanoidError
from humanoid_control.files import schema_file
from humanoid_control.hardware.hardware_file import SCHEMA, Bus, bus_of, class_of, robot_of
from humanoid_control.hardware.muscle_units.units import UnitRow, travel_of
from humanoid_control.hardware.transport import TRANSPORTS, ActuatorSpec, Mode
from humanoid_control.hardware.yaml_rows import Row, key_lines
from humanoid_control.robots import Robot
from humanoid_control.robots.tendons import tendon_geometry
from humanoid_control.simulation.drives.winches import units_of
from humanoid_control.tendons.mappings.postures import random_postures
from humanoid_control.tendons.unit import MuscleUnit

FILE_KEYS = ("schema", "robot", "rate", "command_timeout", "temperature", "buses", "tendons", "estop")
TENDON_KEYS = ("bus", "id", "mode", "ratio", "zero", "sensor", "limits")
LIMIT_KEYS = ("tension", "speed", "shortest", "longest")
POSTURES = 2000  # random postures for the travel of the wires
TEMPERATURE = 80.0  # [deg C] fault level


@dataclass(frozen=True)
class TendonHardware:
    """Muscle units of a robot, in the order of bus actuators.

    Attributes:
        robot: with tendons and a fixed base.
        least: T_min (M,) [N].
        rate: [Hz].
        command_timeout: silence before wires are held [s].
        temperature: fault level [deg C].
    """

    robot: Robot
    path: Path
    buses: tuple[Bus, ...]
    modes: tuple[Mode, ...]
    rows: tuple[UnitRow, ...]
    units: tuple[MuscleUnit, ...]
    least: np.ndarray
    rate: float
    command_timeout: float
    temperature: float
    estop_topic: str

    @cached_property
    def actuators(self) -> tuple[str, ...]:
        """Tendons, which name the actuators."""
        return tuple(row.tendon for row in self.rows)


def is_of_tendons(path: Path) -> bool:
    """Return True if a hardware file has muscle units.

    Raises:
        RobotError: if it is not a readable hardware file.
    """
    return "tendons" in schema_file(path, SCHEMA, "hardware file")


def read_tendon_hardware(path: Path, robot: Robot | None = None, rate: float = 0.0) -> TendonHardware:
    """Read and check a tendon hardware file.

    Args:
        robot: with tendons and a fixed base; None: named in the file.
        rate: [Hz]; 0: from the file.

    Raises:
        HumanoidError: if invalid; names file, line, cause, nearest valid word.
    """
    values = schema_file(path, SCHEMA, "hardware file")
    file = Row(values, path, key_lines(path))
    if "tendons" not in file:
        raise file.error("the file has no tendons: it belongs to robot_driver")
    file.check(FILE_KEYS, ("robot", "buses", "tendons"))
    robot = robot or robot_of(file)
    try:
        return _TendonReader(file, robot, rate).hardware()
    except HumanoidError as e:
        if str(e).startswith(path.name):
            raise
        raise file.error(str(e)) from None


class _TendonReader:
    """Parser of one tendon hardware file."""

    def __init__(self, file: Row, robot: Robot, rate: float) -> None:
        self.file, self.robot = file, robot
        self.rate = rate or file.number("rate", 250.0, 50.0, 1000.0)
        self.geometry = tendon_geometry(robot)
        drawn = random_postures(self.geometry.limits, POSTURES)
        self.shortest, self.longest = travel_of(self.geometry.raw(drawn)[0])
        self.index = {name: k for k, name in enumerate(self.geometry.tendon_names)}
        self.buses = file.row("buses")
        self.on_bus: dict[str, list[tuple[ActuatorSpec, UnitRow]]] = {name: [] for name in self.buses.values}

    def hardware(self) -> TendonHardware:
        for _, row in self.buses.rows():
            row.known("transport", row.text("transport"), TRANSPORTS, "transport")
        for name, row in self.file.row("tendons").rows():
            row.known("tendon", name, self.index)
            self._tendon(name, row)
        made, modes, rows = [], [], list[UnitRow]()
        for name, row in self.buses.rows():
            found = self.on_bus[name]
            made.append(bus_of(name, row, [spec for spec, _ in found], self.rate))
            modes.append(self._mode_of(name, [spec for spec, _ in found]))
            rows += [unit for _, unit in found]
        estop = self.file.row("estop")
        estop.check(("topic",))
        units, tendons = units_of(self.robot), list(self.geometry.tendons)
        order = [self.index[row.tendon] for row in rows]
        return TendonHardware(
            self.robot,
            self.file.path,
            tuple(made),
            tuple(modes),
            tuple(rows),
            tuple(units[k] for k in order),
            np.array([tendons[k].min_tension for k in order]),
            self.rate,
            self.file.number("command_timeout", 0.1, 0.01, 10.0),
            self.file.number("temperature", TEMPERATURE, 20.0, 200.0),
            estop.text("topic", "emergency_stop"),
        )

    def _mode_of(self, bus: str, specs: list[ActuatorSpec]) -> Mode:
        modes = {spec.mode for spec in specs}
        if len(modes) > 1:
            names = " and ".join(sorted(mode.name for mode in modes))
            raise self.buses.error(f"drives of bus {bus} have modes {names}: give each mode a bus of its own", bus)
        return modes.pop()

    def _tendon(self, name: str, row: Row) -> None:
        bus = row.known("bus", row.text("bus"), self.buses.values, "bus")
        cls: Any = class_of(self.buses.row(bus), self.buses.row(bus).text("transport"))
        row.check((*TENDON_KEYS, *cls.actuator_keys), ("bus", "id", "ratio", "zero"))
        mode = Mode[row.known("mode", row.text("mode", "VELOCITY"), Mode.__members__, "mode")]
        k, limits = self.index[name], row.row("limits")
        limits.check(LIMIT_KEYS)
        tendon, unit = list(self.geometry.tendons)[k], units_of(self.robot)[k]
        sensor = row.values.get("sensor", False)
        if not isinstance(sensor, bool):
            raise row.error(f"sensor must be true or false, got {sensor!r}", "sensor")
        most = min(tendon.max_tension, unit.force)
        try:
            unit_row = UnitRow(
                name,
                row.number("ratio"),
                row.number("zero"),
                limits.number("shortest", float(self.shortest[k])),
                limits.number("longest", float(self.longest[k])),
                limits.number("tension", most, 0.1, most),
                limits.number("speed", unit.speed, 1e-3, unit.speed),
                sensor,
            )
        except HumanoidError as e:
            raise row.error(str(e)) from None
        if tendon.min_tension > unit_row.tension:
            raise limits.error(
                f"tension {unit_row.tension:g} N of {name} is below its minimum, {tendon.min_tension:g} N"
            )
        ends = sorted((unit_row.zero - x) / unit_row.ratio for x in (unit_row.shortest, unit_row.longest))
        spec = ActuatorSpec(
            name, row.count("id"), mode, ends[0], ends[1], unit_row.speed / abs(unit_row.ratio),
            unit_row.tension * abs(unit_row.ratio), options=row.options(cls.actuator_keys), where=row.where(),
        )  # fmt: skip
        for other, _ in self.on_bus[bus]:
            if other.id == spec.id:
                raise row.error(f"id {spec.id} is used twice on bus {bus} ({other.name}, {name})", "id")
        self.on_bus[bus].append((spec, unit_row))
