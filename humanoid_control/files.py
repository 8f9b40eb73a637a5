"""Files: atomic writing, and checked reading of hand-written YAML with one-line messages.

Writing: `whole_file`, `whole_files`; `check_file` and `check_folder` before a computation. Reading: `schema_file` and
checks of rows. `mirrored_name` gives the name of the other side.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import yaml

from humanoid_control.documents import read_yaml
from humanoid_control.errors import ConfigError, HumanoidError, RobotError, UnknownNameError, first_line, shown

# -------- Writing


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` at the end; after an error `path` is unchanged.

    A symbolic link is kept and its target replaced.

    Raises:
        ConfigError: if it cannot be written.
    """
    path = regular_file(path)
    with _translate_os_errors(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing_") as place:
        part = Path(place) / path.name
        yield part
        os.replace(part, path)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder; its files move to `folder` at the end, none after an error.

    Raises:
        ConfigError: if they cannot be written.
    """
    with _translate_os_errors(folder):
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing_") as place:
            yield Path(place)
            parts = sorted(Path(place).iterdir())
            for part, whole in zip(parts, [regular_file(folder / p.name) for p in parts], strict=True):
                os.replace(part, whole)


def regular_file(path: Path) -> Path:
    """Return the real path of a new or regular file, behind symbolic links.

    Raises:
        ConfigError: if it is a device, pipe or socket.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file() and not real.is_dir():
        raise ConfigError(f"{path} is not a regular file: give one that may be replaced")
    return real


def try_to_write(path: Path) -> None:
    """Check that a file or folder can be written, before a long computation.

    Raises:
        ConfigError: if it cannot.
    """
    place = path if path.is_dir() else path.absolute().parent
    with _translate_os_errors(path), tempfile.TemporaryDirectory(dir=place, prefix=".writing_"):
        pass


@contextmanager
def _translate_os_errors(path: Path) -> Iterator[None]:
    """Convert an OSError to a ConfigError with the path."""
    try:
        yield
    except OSError as e:
        raise ConfigError(f"{shown(path, 300)} cannot be written: {e.strerror or e}") from None


# -------- Reading YAML


def schema_file(path: Path, schema: str, what: str) -> dict[str, Any]:
    """Return the mapping of a YAML file with its schema as first key.

    Args:
        what: name in messages: 'file of tendons'.

    Raises:
        RobotError: if it is unreadable or of another kind.
    """
    try:
        d = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise RobotError(f"{path}: not a readable {what}: {why(e)}") from None
    if not isinstance(d, dict) or d.get("schema") != schema:
        raise RobotError(f"{path}: the first key must be 'schema: {schema}'")
    return d


def why(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """Return the reason of a read error in one line, with the line of the file if known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem or error.context} (line {error.problem_mark.line + 1})"
    if isinstance(error, UnicodeDecodeError):
        place = f"byte {error.object[error.start]:#04x} at position {error.start}"
        return f"it is not {error.encoding.upper()} text ({place}): save it as UTF-8"
    return getattr(error, "strerror", None) or first_line(error)


# -------- Rows of a YAML file

Row = TypeVar("Row")
FARTHEST = 1000.0
MOST_COUNT = 2**53  # larger floats do not count exactly


def check_row(row: Any, keys: Iterable[str], where: str) -> str:
    """Return the place of a row for messages, with its name.

    Raises:
        RobotError: if it is not a mapping.
    """
    if not isinstance(row, dict):
        raise RobotError(f"{where}: must be a mapping with the keys {', '.join(keys)}")
    return f"{where} '{shown(row['name'])}'" if "name" in row else where


def check_keys(row: dict[str, Any], keys: Iterable[str], needed: Iterable[str], where: str) -> None:
    """Check the keys of a row.

    Raises:
        UnknownNameError: if a key is unknown.
        RobotError: if a key is missing.
    """
    keys = tuple(keys)
    for key in row:
        if key not in keys:
            raise UnknownNameError("key", str(key), keys, hint=f"(in {where})")
    for key in needed:
        if key not in row:
            raise RobotError(f"{where}: lacks the key '{key}'")


def known(kind: str, name: str, names: Iterable[str], where: str) -> str:
    """Return a name that is one of `names`.

    Raises:
        UnknownNameError: if it is not.
    """
    if name not in (names := tuple(names)):
        raise UnknownNameError(kind, name, names, hint=f"(in {where})")
    return name


def rows_of(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return the list of a key, empty if missing.

    Raises:
        RobotError: if it is not a list.
    """
    return list_of(row, key, where) if row.get(key) else []


def list_of(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """Return the list of an existing key.

    Raises:
        RobotError: if it is not a list.
    """
    value = row[key]
    if not isinstance(value, list):
        raise RobotError(f"{where}: '{key}' must be a list")
    return value


def build_row(where: str, make: Callable[..., Row], *args: Any, **more: Any) -> Row:
    """Build an object from the values of a row.

    Raises:
        RobotError: if the values are rejected, with their place.
    """
    try:
        return make(*args, **more)
    except HumanoidError as e:
        raise RobotError(f"{where}: {e}") from None


def numbers(row: dict[str, Any], key: str, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Return finite numbers of a shape.

    Raises:
        RobotError: if missing, not finite numbers, or of another shape.
    """
    what = {
        (): "a number",
        (2,): "[a, b]",
        (3,): "[x, y, z]",
        (4,): "[a, b, c, d]",
        (2, 3): "two points [[x, y, z], [x, y, z]]",
    }[shape]
    try:
        value = np.asarray(np.nan if isinstance(row[key], bool) else row[key], dtype=float)
    except (KeyError, TypeError, ValueError, OverflowError):
        value = np.array(np.nan)
    if value.shape != shape or not np.isfinite(value).all():
        raise RobotError(f"{where}: '{key}' must be {what}, got {shown(row.get(key))}")
    return value


def within(row: dict[str, Any], key: str, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Return `numbers` of at most FARTHEST in size [m, rad].

    Raises:
        RobotError: as `numbers`, or if too large.
    """
    value = numbers(row, key, shape, where)
    if np.abs(value).max(initial=0.0) > FARTHEST:
        raise RobotError(f"{where}: '{key}' must be within {FARTHEST:g} m or rad, got {shown(row[key])}")
    return value


def number(row: dict[str, Any], key: str, where: str) -> float:
    """Return one finite number."""
    return float(numbers(row, key, (), where))


def count(row: dict[str, Any], key: str, where: str) -> int:
    """Return a whole number, 0 if missing.

    Raises:
        RobotError: if it is not a whole number.
    """
    value = row.get(key, 0)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MOST_COUNT:
        raise RobotError(f"{where}: '{key}' must be a whole number, got {shown(value)}")
    return value


def text(row: dict[str, Any], key: str, where: str) -> str:
    """Return a text, or a number as text.

    Raises:
        RobotError: if it is neither, or empty.
    """
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not str(value).strip():
        raise RobotError(f"{where}: '{key}' must be a text, got {shown(value)}")
    return str(value)


def texts(row: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """Return the texts of a list.

    Raises:
        RobotError: if it is not a list of texts.
    """
    return tuple(text({f"{key}[{k}]": v}, f"{key}[{k}]", where) for k, v in enumerate(list_of(row, key, where)))


def mapping_of(row: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """Return the mapping of an existing key, with keys as texts.

    Raises:
        RobotError: if it is not a mapping.
    """
    value = row[key]
    if not isinstance(value, dict):
        raise RobotError(f"{where}: '{key}' must be a mapping, got {shown(value)}")
    return {str(k): v for k, v in value.items()}


def number_rows(row: Any, keys: tuple[str, ...], needed: tuple[str, ...], where: str) -> dict[str, float]:
    """Return a mapping of numbers.

    Raises:
        UnknownNameError: as `check_keys`.
        RobotError: as `check_keys` and `numbers`.
    """
    check_row(row, keys, where)
    check_keys(row, keys, needed, where)
    return {k: number(row, k, where) for k in row}


# -------- Checks of output paths


def check_file(path: Path | None, what: str = "output") -> None:
    """Check that an output file can be written.

    Raises:
        ConfigError: if it is a folder or device, its folder is missing, or writing fails.
    """
    if path is None:
        return
    with _translate_os_errors(path):
        if path.is_dir():
            raise ConfigError(f"the {what} must be a file, and {path} is a folder")
        regular_file(path)
        _check_place(path)


def check_folder(path: Path | None, what: str = "output") -> None:
    """Check that files can be written to a folder, which need not exist.

    Raises:
        ConfigError: if it is a file, its parent is missing, or writing fails.
    """
    if path is None:
        return
    with _translate_os_errors(path):
        if path.exists() and not path.is_dir():
            raise ConfigError(f"the {what} must be a folder, and {path} is a file")
        _check_place(path)


def _check_place(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist")
    try_to_write(path)


# -------- Names of both sides

_SIDES = {"l": "r", "r": "l", "left": "right", "right": "left", "L": "R", "R": "L", "Left": "Right", "Right": "Left"}
_SIDE = re.compile(r"^(l|r|left|right|L|R|Left|Right)(?=_)|(?<=_)(l|r|left|right|L|R|Left|Right)$")


def mirrored_name(name: str) -> str:
    """Return the name of the other side: l_thigh -> r_thigh, thigh_left -> thigh_right; unchanged without a side."""
    return _SIDE.sub(lambda m: _SIDES[m[0]], name, count=1)
