"""Files of the catalogue, parsed once in a process: the tests load the same few robots some thousand times.

A robot copies what it is built from. What is kept here depends on path, time and size of the file, and only files of
this package are kept: those that a test writes are read anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from humanoid_control.paths import share_dir
from humanoid_control.robots import catalogue


def remember(patch: pytest.MonkeyPatch) -> None:
    """Let `load_robot` parse each file of the catalogue once."""
    own = share_dir() / "urdf"

    def once(read: Callable[[Path], Any], copied: Callable[[Any], Any]) -> Callable[[Path], Any]:
        known: dict[tuple[Path, int, int], Any] = {}

        def found(path: Path) -> Any:
            if path.parent != own:
                return read(path)
            stat = path.stat()
            key = path, stat.st_mtime_ns, stat.st_size
            if key not in known:
                known[key] = read(path)
            return copied(known[key])

        return found

    patch.setattr(catalogue, "read_description", once(catalogue.read_description, lambda tree: tree))
    patch.setattr(catalogue, "read_robot_file", once(catalogue.read_robot_file, _with_own_mappings))


def _with_own_mappings(file: Any) -> Any:
    values = {f.name: getattr(file, f.name) for f in fields(file)}
    return replace(file, **{name: dict(value) for name, value in values.items() if isinstance(value, dict)})
