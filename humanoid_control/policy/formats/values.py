"""Checked values of policy files (YAML, metadata); errors name their place."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from humanoid_control.documents import read_yaml
from humanoid_control.errors import PolicyError, UnknownNameError, shown
from humanoid_control.files import why

MOST_NAMES = 200  # joints, terms, links of one policy
MOST_HISTORY = 200  # frames
MOST_NUMBERS = 100_000  # of a tensor, of a list
LARGEST = 1e9  # largest number in a policy file
SLOWEST, FASTEST = 2.0, 1e-3  # [s] range of policy periods


class Fields:
    """Mapping in a policy file with its place for messages."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, dict):
            raise PolicyError(f"{where}: must be a mapping, got {shown(values)}")
        self.values: dict[str, Any] = {str(k): v for k, v in values.items()}
        self.where = where

    def __contains__(self, key: str) -> bool:
        return self.values.get(key) is not None

    def within(self, key: str) -> Fields:
        """Return the mapping under a key.

        Raises:
            PolicyError: if missing or not a mapping.
        """
        return Fields(self._needed(key), f"{self.where}: {key}")

    def rows(self, key: str) -> list[Fields]:
        """Return the list of mappings under a key; empty if missing.

        Raises:
            PolicyError: if not such a list.
        """
        value = self.values.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or len(value) > MOST_NAMES:
            raise PolicyError(f"{self.where}: '{key}' must be a list of at most {MOST_NAMES}, got {shown(value)}")
        return [Fields(row, f"{self.where}: {key}[{k}]") for k, row in enumerate(value)]

    def known(self, keys: Iterable[str]) -> None:
        """Check that all keys are known.

        Raises:
            PolicyError: with the nearest names, if not.
        """
        keys = tuple(keys)
        for key in self.values:
            if key not in keys:
                raise PolicyError(f"{self.where}: {UnknownNameError('key', key, keys)}")

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text, or a number as text."""
        value = self.values.get(key)
        if value is None and default is not None:
            return default
        if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not str(value).strip():
            raise PolicyError(f"{self.where}: '{key}' must be a text, got {shown(value)}")
        return str(value)

    def one_of(self, key: str, known: Sequence[str], default: str) -> str:
        """Return one of several texts."""
        value = self.text(key, default)
        if value not in known:
            raise PolicyError(f"{self.where}: {UnknownNameError(key, value, known)}")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number."""
        if key not in self and default is not None:
            return default
        return float(self.numbers(key, 1)[0])

    def numbers(self, key: str, count: int, default: float | None = None) -> np.ndarray:
        """Return finite numbers (count,), expanding a single one; `default` if missing."""
        if key not in self and default is not None:
            return np.full(count, default)
        return numbers(self.values.get(key), count, f"{self.where}: '{key}'")

    def names(self, key: str) -> tuple[str, ...]:
        """Return a list of distinct names."""
        return names(self._needed(key), f"{self.where}: '{key}'")

    def _needed(self, key: str) -> Any:
        if key not in self:
            raise PolicyError(f"{self.where}: '{key}' is missing")
        return self.values[key]


def numbers(value: Any, count: int, what: str) -> np.ndarray:
    """Check finite numbers (count,), expanding a single one.

    Raises:
        PolicyError: if count, type or size is wrong.
    """
    if not 0 <= count <= MOST_NUMBERS:
        raise PolicyError(f"{what} must be at most {MOST_NUMBERS} numbers, but the file states {count}")
    items = value if isinstance(value, list) else [value]
    if len(items) not in (1, count):
        raise PolicyError(f"{what} must be {count} numbers, got {len(items)}")
    out = np.empty(len(items))
    for k, item in enumerate(items):
        if isinstance(item, bool) or not isinstance(item, (int, float)):
            raise PolicyError(f"{what} must be {_many(count)}, got {shown(item)}")
        out[k] = item if abs(item) <= LARGEST else np.nan
    if not np.isfinite(out).all():
        raise PolicyError(f"{what} must be finite numbers below {LARGEST:g}, got {shown(value)}")
    return out if len(out) == count else np.full(count, out[0])


def _many(count: int) -> str:
    return "a number" if count == 1 else f"{count} numbers"


def names(value: Any, what: str) -> tuple[str, ...]:
    """Check a list of distinct names.

    Raises:
        PolicyError: if not such a list.
    """
    if not isinstance(value, list) or not value or len(value) > MOST_NAMES:
        raise PolicyError(f"{what} must be a list of 1 to {MOST_NAMES} names, got {shown(value)}")
    out = []
    for item in value:
        if not isinstance(item, str) or not item.strip():
            raise PolicyError(f"{what} must be names, got {shown(item)}")
        if item in out:
            raise PolicyError(f"{what} has '{shown(item)}' twice")
        out.append(item.strip())
    return tuple(out)


def indices(value: Any, count: int, what: str) -> np.ndarray:
    """Check a permutation of 0 .. count - 1.

    Raises:
        PolicyError: if not a permutation.
    """
    try:
        order = [int(v) for v in value if not isinstance(v, bool)]
    except (TypeError, ValueError, OverflowError):
        order = []
    if sorted(order) != list(range(count)):
        raise PolicyError(f"{what} must hold each of 0 to {count - 1} once, got {shown(value)}")
    return np.array(order)


def joined(text: str, what: str) -> list[str]:
    """Split a text at commas.

    Raises:
        PolicyError: if there are too many words.
    """
    words = [w.strip() for w in text.split(",")]
    if len(words) > 20 * MOST_NAMES:
        raise PolicyError(f"{what} has {len(words)} entries: not a policy's")
    return words if words != [""] else []


def joined_numbers(text: str, count: int, what: str) -> np.ndarray:
    """Parse finite numbers separated by commas.

    Raises:
        PolicyError: as `numbers`.
    """
    out: list[float] = []
    for word in joined(text, what):
        try:
            out.append(float(word))
        except ValueError:
            raise PolicyError(f"{what} must be numbers, got {shown(word)}") from None
    return numbers(out, count, what)


def pairs(value: Any, what: str) -> tuple[float, float] | None:
    """Check a range (low, high); None stays None.

    Raises:
        PolicyError: if not a range.
    """
    if value is None:
        return None
    low, high = numbers(value, 2, what) if isinstance(value, list) and len(value) == 2 else (math.nan, math.nan)
    if not low <= high:
        raise PolicyError(f"{what} must be a range [low, high], got {shown(value)}")
    return float(low), float(high)


COMMAND_AXES = {
    "x": ("lin_vel_x", "vx", "x"),
    "y": ("lin_vel_y", "vy", "y"),
    "yaw": ("ang_vel_z", "ang_vel_yaw", "wz", "yaw"),
    "heading": ("heading",),
}


def command_ranges(values: Mapping[str, Any], what: str) -> dict[str, tuple[float, float]]:
    """Return velocity ranges by axis; other keys are ignored.

    Raises:
        PolicyError: as `pairs`.
    """
    found = {
        axis: pairs(values[key], f"{what}: {key}")
        for axis, keys in COMMAND_AXES.items()
        for key in keys
        if key in values
    }
    return {axis: pair for axis, pair in found.items() if pair is not None}


def checked_period(seconds: float, what: str) -> float:
    """Check a policy period [s].

    Raises:
        PolicyError: if out of range.
    """
    if not FASTEST <= seconds <= SLOWEST:
        raise PolicyError(f"{what} must be a period of {FASTEST:g} to {SLOWEST:g} s, got {seconds:g}")
    return float(seconds)


def positive(d: Fields, key: str, most: float = 1e4) -> float:
    """Return a number above 0.

    Raises:
        PolicyError: if it is none, or above `most`.
    """
    value = d.number(key)
    if not 0.0 < value <= most:
        raise PolicyError(f"{d.where}: '{key}' must be above 0, and at most {most:g}, got {value:g}")
    return value


def history_length(value: Any, what: str) -> int:
    """Return the number of frames; missing or 0 means the present one.

    Raises:
        PolicyError: if not a plausible count.
    """
    if value is None:
        return 1
    plain = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not plain or not 0 <= value <= MOST_HISTORY or value != int(value):
        raise PolicyError(f"{what} must be 0 to {MOST_HISTORY} frames, got {shown(value)}")
    return max(int(value), 1)


def read_file(path: Path) -> dict[str, Any]:
    """Read a YAML mapping; language tags are data.

    Raises:
        PolicyError: if unreadable or not a mapping.
    """
    try:
        d = read_yaml(path, tags=True)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValueError) as e:
        reason = why(e) if isinstance(e, (OSError, UnicodeDecodeError, yaml.YAMLError)) else str(e)
        raise PolicyError(f"{shown(path, 300)}: not a readable YAML file: {reason}") from None
    if not isinstance(d, dict):
        raise PolicyError(f"{path}: not a policy: it must contain keys with values, got {shown(d)}")
    return {str(k): v for k, v in d.items()}


def is_file(path: Path) -> bool:
    """Test whether a file exists; a path too long for the system is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def beside(path: Path, name: str, what: str) -> Path:
    """Resolve a file name relative to the folder of `path`.

    Raises:
        PolicyError: if it is outside the folder.
    """
    inside = Path(name)
    folder = path.parent.resolve()
    try:
        found = (folder / inside).resolve()
    except (OSError, ValueError, RuntimeError):
        raise PolicyError(f"{path}: {what} '{shown(name)}' is not a path") from None
    if inside.is_absolute() or not found.is_relative_to(folder):
        raise PolicyError(f"{path}: {what} '{shown(name)}' is outside its folder: rejected; put it next to the file")
    return found
