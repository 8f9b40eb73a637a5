"""Rows of a file of tendons: lists of names, and the mirror image of a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from humanoid_control.errors import RobotError
from humanoid_control.robots.yaml_rows import known, rows_of

SIDES = {"l_": "r_", "r_": "l_"}


def names_of(row: dict[str, Any], key: str, names: Iterable[str], kind: str, where: str) -> tuple[str, ...]:
    """A list of known names, each once; empty where the key is missing.

    Raises:
        UnknownNameError, RobotError: an unknown name, a name twice, no list.
    """
    names = tuple(names)
    out = tuple(known(kind, str(n), names, where) for n in rows_of(row, key, where))
    if double := sorted({n for n in out if out.count(n) > 1}):
        raise RobotError(f"{where}: '{key}' names '{double[0]}' twice")
    return out


def mirrored(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The row of the other side: names that begin with l_ or r_ change sides, coordinates change their sign.

    Raises:
        RobotError: the axis is none, or the name of the tendon has no side.
    """
    axis = row["mirror"]
    if axis not in ("x", "y", "z"):
        raise RobotError(f"{where}: mirror must be x, y or z, got '{axis}'")
    if other_side(str(row["name"])) == row["name"]:
        raise RobotError(f"{where}: a mirrored tendon must begin with l_ or r_")
    out = {k: v for k, v in row.items() if k != "mirror"}
    out["name"] = other_side(str(row["name"]))
    if "group" in row:
        out["group"] = other_side(str(row["group"]))
    if isinstance(row.get("points"), list):
        out["points"] = [_step(step, "xyz".index(axis)) for step in row["points"]]
    return out


def other_side(name: str) -> str:
    """The name of the other side; the same one where it has no side."""
    return SIDES[name[:2]] + name[2:] if name[:2] in SIDES else name


def _step(step: Any, k: int) -> Any:
    if isinstance(step, list) and len(step) == 4:
        return [other_side(str(step[0])), *_flipped(step[1:], k)]
    if isinstance(step, dict):
        flipped = {key: _flipped(v, k) if key in ("centre", "axis", "side") else v for key, v in step.items()}
        return {key: other_side(v) if isinstance(v, str) else v for key, v in flipped.items()}
    return step


def _flipped(x: Any, k: int) -> Any:
    """The vector with coordinate k negated; anything else is left to the checks."""
    if isinstance(x, list) and len(x) == 3 and isinstance(x[k], int | float):
        return [-v if i == k else v for i, v in enumerate(x)]
    return x
