"""Files: written whole or not at all, YAML that a person wrote read with one line of help where it is wrong.

Writing: `whole_file`, `whole_files`, and `check_file`, `check_folder` before a command computes anything. Reading:
`schema_file` and the checks of rows: known keys, known names ("did you mean"), finite numbers; and `mirrored_name` for
rows that stand for both sides.
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
    """A place to write to; what is there at the end becomes `path`. After an error `path` is as it was.

    A symbolic link stays one: what it points to is written.

    Raises:
        ConfigError: it cannot be written; why.
    """
    path = regular_file(path)
    with _os_errors_told(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing_") as place:
        part = Path(place) / path.name
        yield part
        os.replace(part, path)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """A place to write files to; at the end they are moved to `folder`, which is made. After an error none is.

    Raises:
        ConfigError: they cannot be written; why.
    """
    with _os_errors_told(folder):
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing_") as place:
            yield Path(place)
            parts = sorted(Path(place).iterdir())
            for part, whole in zip(parts, [regular_file(folder / p.name) for p in parts], strict=True):
                os.replace(part, whole)


def regular_file(path: Path) -> Path:
    """Real path of a file that may be replaced: a new one or a regular one, behind symbolic links.

    Raises:
        ConfigError: a device, a pipe or a socket, which writing must not replace.
    """
    real = Path(os.path.realpath(path))
    if real.exists() and not real.is_file() and not real.is_dir():
        raise ConfigError(f"{path} is not a regular file: name one that may be replaced")
    return real


def try_to_write(path: Path) -> None:
    """Find out now whether `path` could be written, a file or a folder, so that no hour's work is lost for it.

    Raises:
        ConfigError: it cannot; why.
    """
    place = path if path.is_dir() else path.absolute().parent
    with _os_errors_told(path), tempfile.TemporaryDirectory(dir=place, prefix=".writing_"):
        pass


@contextmanager
def _os_errors_told(path: Path) -> Iterator[None]:
    """Within it, what the system refuses becomes a ConfigError that names the path."""
    try:
        yield
    except OSError as e:
        raise ConfigError(f"{shown(path, 300)} cannot be written: {e.strerror or e}") from None


# -------- Reading YAML


def schema_file(path: Path, schema: str, what: str) -> dict[str, Any]:
    """The mapping in a YAML file that begins with its schema.

    Args:
        what: the message calls it: 'file of tendons'.

    Raises:
        RobotError: not readable, or of another kind.
    """
    try:
        d = read_yaml(path)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise RobotError(f"{path}: not a readable {what}: {why(e)}") from None
    if not isinstance(d, dict) or d.get("schema") != schema:
        raise RobotError(f"{path}: the first key must be 'schema: {schema}'")
    return d


def why(error: OSError | UnicodeDecodeError | yaml.YAMLError) -> str:
    """Reason why a file could not be read, in one line, with the line of the file where that is known."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{error.problem or error.context} (line {error.problem_mark.line + 1})"
    if isinstance(error, UnicodeDecodeError):
        place = f"byte {error.object[error.start]:#04x} at place {error.start}"
        return f"it is no text in {error.encoding.upper()} ({place}): save it as UTF-8"
    return getattr(error, "strerror", None) or first_line(error)


# -------- Rows of a YAML file

Row = TypeVar("Row")
FARTHEST = 1000.0
MOST_COUNT = 2**53  # beyond that a float is no count any more


def check_row(row: Any, keys: Iterable[str], where: str) -> str:
    """Place of a row for messages, with its name.

    Raises:
        RobotError: it is not a mapping.
    """
    if not isinstance(row, dict):
        raise RobotError(f"{where}: must be a mapping with the keys {', '.join(keys)}")
    return f"{where} '{shown(row['name'])}'" if "name" in row else where


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
    return list_of(row, key, where) if row.get(key) else []


def list_of(row: dict[str, Any], key: str, where: str) -> list[Any]:
    """The list under a key that is there.

    Raises:
        RobotError: something else than a list.
    """
    value = row[key]
    if not isinstance(value, list):
        raise RobotError(f"{where}: '{key}' must be a list")
    return value


def build_row(where: str, make: Callable[..., Row], *args: Any, **more: Any) -> Row:
    """Object made of the values of a row.

    Raises:
        RobotError: it refuses them; the message says where they are.
    """
    try:
        return make(*args, **more)
    except HumanoidError as e:
        raise RobotError(f"{where}: {e}") from None


def numbers(row: dict[str, Any], key: str, shape: tuple[int, ...], where: str) -> np.ndarray:
    """Finite numbers of a shape.

    Raises:
        RobotError: missing, not numbers, another shape, not finite.
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
    """As `numbers`, of places, sizes and angles: none beyond FARTHEST [m, rad], where nothing of a robot is.

    Raises:
        RobotError: as `numbers`; a larger number.
    """
    value = numbers(row, key, shape, where)
    if np.abs(value).max(initial=0.0) > FARTHEST:
        raise RobotError(f"{where}: '{key}' must be within {FARTHEST:g} m or rad, got {shown(row[key])}")
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
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > MOST_COUNT:
        raise RobotError(f"{where}: '{key}' must be a whole number, got {shown(value)}")
    return value


def text(row: dict[str, Any], key: str, where: str) -> str:
    """A text, or a number as text.

    Raises:
        RobotError: neither, or empty.
    """
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)) or not str(value).strip():
        raise RobotError(f"{where}: '{key}' must be a text, got {shown(value)}")
    return str(value)


def texts(row: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    """The texts of a list under a key that is there.

    Raises:
        RobotError: no list, or something else in it.
    """
    return tuple(text({f"{key}[{k}]": v}, f"{key}[{k}]", where) for k, v in enumerate(list_of(row, key, where)))


def mapping_of(row: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    """The mapping under a key that is there; its keys as texts.

    Raises:
        RobotError: something else than a mapping.
    """
    value = row[key]
    if not isinstance(value, dict):
        raise RobotError(f"{where}: '{key}' must be a mapping, got {shown(value)}")
    return {str(k): v for k, v in value.items()}


def number_rows(row: Any, keys: tuple[str, ...], needed: tuple[str, ...], where: str) -> dict[str, float]:
    """A mapping of numbers.

    Raises:
        UnknownNameError, RobotError: as `check_keys` and `numbers`.
    """
    check_row(row, keys, where)
    check_keys(row, keys, needed, where)
    return {k: number(row, k, where) for k in row}


# -------- Checks of output paths


def check_file(path: Path | None, what: str = "output") -> None:
    """Make sure that a file can be written there, if one was asked for.

    Args:
        path: of the file; None: nothing is written.
        what: the message calls it.

    Raises:
        ConfigError: it is a folder or a device, its folder does not exist, or nothing can be written there.
    """
    if path is None:
        return
    with _os_errors_told(path):
        if path.is_dir():
            raise ConfigError(f"the {what} must be a file, and {path} is a folder")
        regular_file(path)
        _check_place(path)


def check_folder(path: Path | None, what: str = "output") -> None:
    """Make sure that files can be written to this folder, if one was asked for; it need not exist yet.

    Args:
        path: of the folder; None: nothing is written.
        what: the message calls it.

    Raises:
        ConfigError: it is a file, its parent does not exist, or nothing can be written there.
    """
    if path is None:
        return
    with _os_errors_told(path):
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
    """The name of the other side: l_thigh -> r_thigh, thigh_left -> thigh_right; a name without side stays."""
    return _SIDE.sub(lambda m: _SIDES[m[0]], name, count=1)
