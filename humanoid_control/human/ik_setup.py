"""Tasks of a marker fit: weights of markers, and values to pull coordinates to; also from OpenSim's setup files."""

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

HEAVIEST = 1e6  # of a task


@dataclass(frozen=True, eq=False)
class CoordinateTask:
    """A coordinate that is pulled to a value.

    Args:
        weight: next to the markers' [m^2, or 1 for a length]; as a share of the sum of their weights where `relative`.
        value: one value, or one a frame (T,) [rad or m].
        relative: see weight.
    """

    weight: float
    value: float | np.ndarray
    relative: bool = False


@dataclass(frozen=True, eq=False)
class FitTasks:
    """What a fit follows.

    Args:
        markers: weight of each marker by name. 0 leaves it out.
        coordinates: by name.
        others: weight of the markers of the person that are not named.
        time_range: first and last time [s] that a setup file asks for, or None. It is reported, not applied.
    """

    markers: Mapping[str, float] = field(default_factory=dict)
    coordinates: Mapping[str, CoordinateTask] = field(default_factory=dict)
    others: float = 1.0
    time_range: tuple[float, float] | None = None

    def check(self, person: Person) -> None:
        """Make sure that the person has all that is named, and that the weights are none below zero.

        Raises:
            UnknownNameError, ConfigError: with the name.
        """
        for name, task in self.coordinates.items():
            k = person.index(name)
            if task.weight > 0 and person.coordinates[k].locked:
                raise ConfigError(
                    f"the coordinate '{name}' is locked, and a task pulls it: unlock it, or drop the task"
                )
        weights = {**self.markers, **{n: t.weight for n, t in self.coordinates.items()}, "others": self.others}
        for name, weight in weights.items():
            if not 0 <= weight <= HEAVIEST:  # so large a weight takes the digits of all others; NaN is refused too
                raise ConfigError(f"the weight of '{name}' is {weight:g}: it must be from 0 to {HEAVIEST:g}")


def read_ik_setup(path: str | Path, person: Person, motion: Mapping[str, np.ndarray] | None = None) -> FitTasks:
    """Tasks of OpenSim's inverse kinematics: a setup file of the tool, or a file of tasks alone.

    Markers that the task set does not name are left out, unless it names none. OpenSim divides the markers' part of its
    cost by the sum of their weights, and the coordinates' part by nothing.

    Args:
        path: of the file.
        person: whose coordinates tasks name; markers that it lacks are left out.
        motion: values (T,) [rad or m] by coordinate, for tasks whose values are from a file.

    Raises:
        RobotError: not readable, or no such file. UnknownNameError: a coordinate that the person lacks.
        ConfigError: values from a file, and none given; a locked coordinate.
    """
    path = Path(path)
    try:
        document = parse_xml(read_xml_text(path), str(path), "a setup file of OpenSim's inverse kinematics")
    except (OSError, UnicodeDecodeError) as error:
        raise RobotError(f"{path}: cannot be read: {why(error)}") from None
    holder = document.find(".//IKTaskSet")
    if holder is None:
        raise RobotError(f"{path}: holds no IKTaskSet: give a setup file of OpenSim's inverse kinematics")
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
        # Markers that the task set does not name are ignored, as OpenSim does since 4.1; a set without any means all.
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
        raise ConfigError(f"task '{shown(name)}': value_type '{shown(kind)}' is none of OpenSim's: correct it")
    if name not in motion:
        raise ConfigError(f"task '{shown(name)}': takes its values from a file: give the motion")
    return np.asarray(motion[name], dtype=float)
