"""Tasks of a marker fit, also from OpenSim setup files."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from humanoid_control.documents import parse_xml, read_xml_text
from humanoid_control.errors import ConfigError, RobotError, shown, told_of
from humanoid_control.files import why
from humanoid_control.human.model import Person
from humanoid_control.human.osim import flag, numbers_of, text_of

HEAVIEST = 1e6  # largest weight of a task


@dataclass(frozen=True, eq=False)
class CoordinateTask:
    """Target value of a coordinate.

    Attributes:
        weight: relative to marker weights [m^2; 1 for a length], or to their sum.
        value: constant or (T,) [rad or m].
    """

    weight: float
    value: float | np.ndarray
    relative: bool = False


@dataclass(frozen=True, eq=False)
class FitTasks:
    """Weights and targets of a marker fit.

    Attributes:
        markers: weight by name; 0 excludes.
        coordinates: tasks by name.
        others: weight of other markers.
        time_range: [s] of a setup file; reported, not applied.
    """

    markers: Mapping[str, float] = field(default_factory=dict)
    coordinates: Mapping[str, CoordinateTask] = field(default_factory=dict)
    others: float = 1.0
    time_range: tuple[float, float] | None = None

    def check(self, person: Person) -> None:
        """Raise UnknownNameError or ConfigError for invalid names, locks or weights."""
        for name, task in self.coordinates.items():
            k = person.index(name)
            if task.weight > 0 and person.coordinates[k].locked:
                raise ConfigError(f"the coordinate '{name}' is locked, but a task uses it: unlock it, or drop the task")
        weights = {**self.markers, **{n: t.weight for n, t in self.coordinates.items()}, "others": self.others}
        for name, weight in weights.items():
            if not 0 <= weight <= HEAVIEST:  # a larger weight would swamp the digits of all others; also rejects NaN
                raise ConfigError(f"the weight of '{name}' must be from 0 to {HEAVIEST:g}, got {weight:g}")


def read_ik_setup(path: str | Path, person: Person, motion: Mapping[str, np.ndarray] | None = None) -> FitTasks:
    """Return the tasks of an OpenSim inverse-kinematics setup or task file.

    Unlisted markers are excluded if any are listed. OpenSim divides the marker cost, but not the coordinate cost, by
    its weights.

    Args:
        motion: coordinate -> values (T,) [rad or m] for tasks from a file.

    Raises:
        RobotError: if the file is invalid.
        UnknownNameError: if a coordinate is unknown.
        ConfigError: if `motion` lacks values, or a coordinate is locked.
    """
    path = Path(path)
    try:
        document = parse_xml(read_xml_text(path), str(path), "a setup file of OpenSim's inverse kinematics")
    except (OSError, UnicodeDecodeError) as error:
        raise RobotError(f"{path}: cannot be read: {why(error)}") from None
    holder = document.find(".//IKTaskSet")
    if holder is None:
        raise RobotError(f"{path}: contains no IKTaskSet: give a setup file of OpenSim's inverse kinematics")
    markers: dict[str, float] = {}
    coordinates: dict[str, CoordinateTask] = {}
    with told_of(path):
        for element in holder.iter():
            if element.tag == "IKMarkerTask":
                markers[element.get("name", "")] = _weight(element)
            elif element.tag == "IKCoordinateTask" and (weight := _weight(element)) > 0:
                name = element.get("name", "")
                coordinates[name] = CoordinateTask(weight, _value(element, person, name, motion or {}), True)
        span = document.find(".//time_range")
        parent = document.find(".//InverseKinematicsTool")
        limits = numbers_of(parent, "time_range", 2) if parent is not None and span is not None else None
        # Unnamed markers are ignored, as in OpenSim since 4.1; a set without marker tasks uses all markers.
        others = 0.0 if markers else 1.0
        tasks = FitTasks(markers, coordinates, others, None if limits is None else (float(limits[0]), float(limits[1])))
        tasks.check(person)
    return tasks


def _weight(element: ET.Element) -> float:
    return float(numbers_of(element, "weight", 1, (1.0,))[0]) if flag(element, "apply", True) else 0.0


def _value(element: ET.Element, person: Person, name: str, motion: Mapping[str, np.ndarray]) -> float | np.ndarray:
    kind = text_of(element, "value_type", "from_file")
    rest = float(person.rest[person.index(name)])
    if kind == "default_value":
        return rest
    if kind == "manual_value":
        return float(numbers_of(element, "value", 1, (0.0,))[0])
    if kind != "from_file":
        raise ConfigError(f"task '{shown(name)}': value_type '{shown(kind)}' is unknown to OpenSim: correct it")
    if name not in motion:
        raise ConfigError(f"task '{shown(name)}': takes its values from a file: give the motion")
    return np.asarray(motion[name], dtype=float)
