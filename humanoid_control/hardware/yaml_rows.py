"""Rows of a YAML file that know their line: every mistake is said with file and line and the nearest right word."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.documents import LOADER, read_text
from humanoid_control.errors import RobotError, offer_names

Place = tuple[str, ...]


def key_lines(path: Path) -> dict[Place, int]:
    """Line of every key of a YAML file, by the keys above it and its own."""
    out: dict[Place, int] = {}
    waiting: list[tuple[Place, Any]] = [((), yaml.compose(read_text(path), LOADER))]
    while waiting:
        place, node = waiting.pop()
        if not isinstance(node, yaml.MappingNode):
            continue
        for key, value in node.value:
            below = (*place, str(key.value))
            line = key.start_mark.line + 1
            out[below] = line
            waiting.append((below, value))
    return out


class Row:
    """A mapping of a YAML file at its place in it."""

    def __init__(self, values: Any, path: Path, lines: Mapping[Place, int], place: Place = ()) -> None:
        """Wrap the mapping.

        Raises:
            RobotError: it is not a mapping.
        """
        self.path, self.place, self._lines = path, place, lines
        if not isinstance(values, dict):
            raise RobotError(f"{self.where()}: {place[-1] if place else 'the file'} must be a mapping")
        self.values = {str(k): v for k, v in values.items()}

    def where(self, key: str = "") -> str:
        """File and line of the row, or of one of its keys."""
        place = (*self.place, key) if key else self.place
        line = self._lines.get(place) or self._lines.get(self.place)
        return f"{self.path.name}:{line}" if line else self.path.name

    def error(self, text: str, key: str = "") -> RobotError:
        """An error at this row, or at one of its keys."""
        return RobotError(f"{self.where(key)}: {text}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def check(self, keys: Iterable[str], needed: Iterable[str] = ()) -> None:
        """Make sure that all keys are known and the needed ones are there.

        Raises:
            RobotError: a key too much, with the nearest right one; a key too few.
        """
        keys = tuple(keys)
        for key in self.values:
            if key not in keys:
                raise self.error(f"unknown key '{key}': {offer_names(key, keys)}", key)
        for key in needed:
            if key not in self.values:
                raise self.error(f"{self.place[-1] if self.place else 'the file'} lacks the key '{key}'")

    def known(self, kind: str, name: str, names: Iterable[str], key: str = "") -> str:
        """The name, when it is one of these.

        Raises:
            RobotError: it is not; the nearest ones are offered.
        """
        names = tuple(names)
        if name not in names:
            raise self.error(f"unknown {kind} '{name}': {offer_names(name, names)}", key or name)
        return name

    def row(self, key: str) -> Row:
        """The mapping under a key; an empty one where the key is missing."""
        value = self.values.get(key)
        return Row({} if value is None else value, self.path, self._lines, (*self.place, key))

    def rows(self) -> list[tuple[str, Row]]:
        """All mappings of this one, by their keys."""
        return [(key, self.row(key)) for key in self.values]

    def number(self, key: str, default: float | None = None, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite number within low..high; the default where the key is missing.

        Raises:
            RobotError: missing without a default, not a number, out of range.
        """
        if key not in self.values and default is not None:
            return default
        value = self.values.get(key)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise self.error(f"{key} must be a number, got {value!r}", key)
        if not low <= value <= high:
            raise self.error(f"{key} must be in {low:g} .. {high:g}, got {value:g}", key)
        return float(value)

    def count(self, key: str, default: int | None = None) -> int:
        """A whole number; the default where the key is missing.

        Raises:
            RobotError: missing without a default, or not a whole number.
        """
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{key} must be a whole number, got {value!r}", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """A text; the default where the key is missing.

        Raises:
            RobotError: missing without a default, or not a text.
        """
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(f"{key} must be a text, got {value!r}", key)
        return value

    def pair(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """Two rising numbers; the default where the key is missing.

        Raises:
            RobotError: something else.
        """
        value = self.values.get(key, list(default))
        numbers = isinstance(value, list) and all(isinstance(x, (int, float)) for x in value)
        if not numbers or len(value) != 2 or not value[0] <= value[1]:
            raise self.error(f"{key} must be [a, b] with a <= b, got {value!r}", key)
        return float(value[0]), float(value[1])

    def listed(self, key: str, kind: type, length: int) -> list[Any]:
        """A list of so many whole numbers or numbers.

        Raises:
            RobotError: something else.
        """
        value = self.values.get(key)
        right = int if kind is int else (int, float)
        if not isinstance(value, list) or len(value) != length or not all(isinstance(x, right) for x in value):
            raise self.error(f"{key} must be a list of {length} numbers, got {value!r}", key)
        return [kind(x) for x in value]

    def names(self, key: str) -> tuple[str, ...]:
        """A list of different names.

        Raises:
            RobotError: it is none.
        """
        value = self.values[key]
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or len(set(value)) < len(value):
            raise self.error(f"{key} must be a list of names, each once, got {value!r:.60}", key)
        return tuple(value)

    def options(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Values of optional keys, each of the type of its default; a default that is a type must be given.

        Raises:
            RobotError: missing, or of another type.
        """
        out = {}
        for key, default in keys.items():
            kind = default if isinstance(default, type) else type(default)
            if key not in self.values:
                if default is kind:
                    raise self.error(f"{self.place[-1]} lacks the key '{key}'")
                continue
            value = self.values[key]
            if kind is float and isinstance(value, int) and not isinstance(value, bool):
                value = float(value)
            if type(value) is not kind and default is not None:
                raise self.error(f"{key} must be {kind.__name__}, got {value!r}", key)
            out[key] = value
        return out
