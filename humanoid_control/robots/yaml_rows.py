"""Reading rows of a YAML file that a person wrote: known keys, known names, finite numbers; one line where not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from humanoid_control.errors import RobotError, UnknownNameError


def check_row(row: Any, keys: Iterable[str], where: str) -> str:
    """Where the row is, with its name.

    Raises:
        RobotError: it is not a mapping.
    """
    if not isinstance(row, dict):
        raise RobotError(f"{where}: must be a mapping with the keys {', '.join(keys)}")
    return f"{where} '{row['name']}'" if "name" in row else where


def check_keys(row: dict[str, Any], keys: Iterable[str], needed: Iterable[str], where: str) -> None:
    """Make sure that a row has only known keys and all that it needs.

    Raises:
        UnknownNameError, RobotError: a key too much, with the nearest right one; a key too few.
    """
    keys = tuple(keys)
    for key in row:
        if key not in keys:
            raise UnknownNameError("key", str(key), keys, hint=f"(in {where})")
    for key in needed:
        if key not in row:
            raise RobotError(f"{where}: lacks the key '{key}'")


def known(kind: str, name: str, names: Iterable[str], where: str) -> str:
    """The name, when it is one of these.

    Raises:
        UnknownNameError: it is not; the nearest ones are offered.
    """
    if name not in (names := tuple(names)):
        raise UnknownNameError(kind, name, names, hint=f"(in {where})")
    return name


def rows_of(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """The list under a key; empty where the key is missing.

    Raises:
        RobotError: something else than a list.
    """
    value = row.get(key) or []
    if not isinstance(value, list):
        raise RobotError(f"{where}: '{key}' must be a list")
    return value


def numbers(row: dict[str, Any], key: str, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Finite numbers of a shape.

    Raises:
        RobotError: missing, not numbers, another shape, not finite.
    """
    what = {(): "a number", (2,): "[a, b]", (3,): "[x, y, z]", (2, 3): "two points [[x, y, z], [x, y, z]]"}[shape]
    try:
        value = np.asarray(row[key], dtype=float)
    except (KeyError, TypeError, ValueError):
        value = np.array(np.nan)
    if value.shape != shape or not np.isfinite(value).all():
        raise RobotError(f"{where}: '{key}' must be {what}, got {row.get(key)}")
    return value


def number(row: dict[str, Any], key: str, where: str) -> float:
    """One finite number, as `numbers`."""
    return float(numbers(row, key, (), where))


def count(row: dict[str, Any], key: str, where: str) -> int:
    """A whole number; 0 where the key is missing.

    Raises:
        RobotError: not a whole number.
    """
    value = row.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool):
        raise RobotError(f"{where}: '{key}' must be a whole number, got {value}")
    return value


def number_rows(row: Any, keys: tuple[str, ...], needed: tuple[str, ...], where: str) -> dict[str, float]:
    """A mapping of numbers.

    Raises:
        UnknownNameError, RobotError: as `check_keys` and `numbers`.
    """
    check_row(row, keys, where)
    check_keys(row, keys, needed, where)
    return {k: number(row, k, where) for k in row}
