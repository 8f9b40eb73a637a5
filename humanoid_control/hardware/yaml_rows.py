"""Rows of a YAML file; errors name file, line and nearest valid word."""

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
    """Return the line of every key, by key path."""
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
    """Mapping in a YAML file with its location."""

    def __init__(self, values: Any, path: Path, lines: Mapping[Place, int], place: Place = ()) -> None:
        """Wrap a mapping.

        Raises:
            RobotError: if `values` is not a mapping.
        """
        self.path, self.place, self._lines = path, place, lines
        if not isinstance(values, dict):
            raise RobotError(f"{self.where()}: {place[-1] if place else 'the file'} must be a mapping")
        self.values = {str(k): v for k, v in values.items()}

    def where(self, key: str = "") -> str:
        """Return file and line of the row, or of a key."""
        place = (*self.place, key) if key else self.place
        line = self._lines.get(place) or self._lines.get(self.place)
        return f"{self.path.name}:{line}" if line else self.path.name

    def error(self, text: str, key: str = "") -> RobotError:
        """Return an error at this row, or at a key."""
        return RobotError(f"{self.where(key)}: {text}")

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def check(self, keys: Iterable[str], needed: Iterable[str] = ()) -> None:
        """Check the keys.

        Raises:
            RobotError: if a key is unknown, or a needed one missing.
        """
        keys = tuple(keys)
        for key in self.values:
            if key not in keys:
                raise self.error(f"unknown key '{key}': {offer_names(key, keys)}", key)
        for key in needed:
            if key not in self.values:
                raise self.error(f"{self.place[-1] if self.place else 'the file'} lacks the key '{key}'")

    def known(self, kind: str, name: str, names: Iterable[str], key: str = "") -> str:
        """Return the name if it is known.

        Raises:
            RobotError: if not; offers the nearest names.
        """
        names = tuple(names)
        if name not in names:
            raise self.error(f"unknown {kind} '{name}': {offer_names(name, names)}", key or name)
        return name

    def row(self, key: str) -> Row:
        """Return the mapping under a key; empty if missing."""
        value = self.values.get(key)
        return Row({} if value is None else value, self.path, self._lines, (*self.place, key))

    def rows(self) -> list[tuple[str, Row]]:
        """Return all mappings below this one, by key."""
        return [(key, self.row(key)) for key in self.values]

    def number(self, key: str, default: float | None = None, low: float = -math.inf, high: float = math.inf) -> float:
        """Return a finite number within [low, high].

        Raises:
            RobotError: if missing without a default, not a number, or out of range.
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
        """Return an integer.

        Raises:
            RobotError: if missing without a default, or not an integer.
        """
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.error(f"{key} must be a whole number, got {value!r}", key)
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a non-empty text.

        Raises:
            RobotError: if missing without a default, or not a text.
        """
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(f"{key} must be a text, got {value!r}", key)
        return value

    def pair(self, key: str, default: tuple[float, float]) -> tuple[float, float]:
        """Return two ascending numbers.

        Raises:
            RobotError: if not [a, b] with a <= b.
        """
        value = self.values.get(key, list(default))
        numbers = isinstance(value, list) and all(isinstance(x, (int, float)) for x in value)
        if not numbers or len(value) != 2 or not value[0] <= value[1]:
            raise self.error(f"{key} must be [a, b] with a <= b, got {value!r}", key)
        return float(value[0]), float(value[1])

    def listed(self, key: str, kind: type, length: int) -> list[Any]:
        """Return a list of `length` numbers.

        Raises:
            RobotError: if not such a list.
        """
        value = self.values.get(key)
        right = int if kind is int else (int, float)
        if not isinstance(value, list) or len(value) != length or not all(isinstance(x, right) for x in value):
            raise self.error(f"{key} must be a list of {length} numbers, got {value!r}", key)
        return [kind(x) for x in value]

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of distinct names.

        Raises:
            RobotError: if not such a list.
        """
        value = self.values[key]
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value) or len(set(value)) < len(value):
            raise self.error(f"{key} must be a list of names, each once, got {value!r:.60}", key)
        return tuple(value)

    def options(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        """Return the given keys; a default that is a type is required.

        Raises:
            RobotError: if a required key is missing or a type differs.
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
