"""Files of this package, parsed once in a process: the tests load the same few robots some thousand times.

What is kept depends on path, time and size of a file. A robot copies the description that it is built from, and what a
YAML file holds is handed out as a new object each time. Files that a test writes are read as ever.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from humanoid_control import files
from humanoid_control.paths import share_dir
from humanoid_control.robots import catalogue


def remember(patch: pytest.MonkeyPatch) -> None:
    """Let `load_robot` and the readers of YAML files parse each file of this package once."""
    patch.setattr(catalogue, "read_description", _once(catalogue.read_description, lambda x: x, lambda x: x))
    patch.setattr(files, "read_yaml", _once(files.read_yaml, pickle.dumps, pickle.loads))


def _once(read: Callable[[Path], Any], keep: Callable[[Any], Any], give: Callable[[Any], Any]) -> Callable[[Path], Any]:
    known, own = dict[tuple[Path, int, int], Any](), share_dir()

    def found(path: Path) -> Any:
        if own not in path.parents:
            return read(path)
        stat = path.stat()
        key = path, stat.st_mtime_ns, stat.st_size
        if key not in known:
            known[key] = keep(read(path))
        return give(known[key])

    return found
