"""Run directories with parameters, logs and recordings: creation, listing, pruning.

```python
from humanoid_control.session import list_runs, prune_runs

print(sum(run.size for run in list_runs()))
prune_runs(keep=10)
```
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import math
import os
import re
import shlex
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.errors import ConfigError
from humanoid_control.paths import state_dir
from humanoid_control.terminal import warn

LIMIT = 1.0  # [GB] limit of all runs together
VARIABLE = "HUMANOID_RUNS_LIMIT"  # overrides the limit [GB]; inf: none
YOUNG = 60.0  # [s] a recently written run counts as in use, because its processes may still be starting
NAME = re.compile(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_.+")
STAMP = "%Y-%m-%d_%H-%M-%S"
GB = 10**9


@dataclass(frozen=True)
class Run:
    """Past or current run.

    Attributes:
        path: directory; its name begins with the start time.
        size: size of all files [bytes].
        recorded: it contains a recording.
        in_use: a process has a file open, or wrote within the last minute.
    """

    path: Path
    size: int
    recorded: bool
    in_use: bool


def runs_dir() -> Path:
    """Return the directory of the runs; create it if necessary.

    Raises:
        EnvironmentProblem: if it is not writable.
    """
    root = state_dir() / "runs"
    root.mkdir(exist_ok=True)
    return root


def list_runs() -> list[Run]:
    """Return all runs, newest first."""
    root = runs_dir()
    open_files = _open_files(root)
    runs = []
    for path in sorted(root.iterdir(), reverse=True):
        if path.is_dir() and not path.is_symlink() and NAME.fullmatch(path.name):
            infos = _file_infos(path)
            written = max([path.stat().st_mtime, *(i.st_mtime for i in infos)])
            young = time.time() - written < YOUNG
            busy = young or any(path in file.parents for file in open_files)
            runs.append(Run(path, sum(i.st_size for i in infos), (path / "recording").is_dir(), busy))
    return runs


def prune_runs(limit: float = math.inf, keep: int | None = None) -> list[Run]:
    """Remove the oldest runs, except the newest one and runs in use.

    Args:
        limit: maximum remaining size [GB].
        keep: maximum remaining number, or None.

    Returns:
        Removed runs.

    Raises:
        ConfigError: if `limit` is negative or NaN, or `keep` below 1.
    """
    if not limit >= 0:
        raise ConfigError(f"the limit must be at least 0 GB, got {limit:g}")
    if keep is not None and keep < 1:
        raise ConfigError(f"the number of runs to keep must be at least 1, got {keep}")
    runs = list_runs()
    size, count, removed = sum(r.size for r in runs), len(runs), []
    for run in reversed(runs[1:]):
        if size <= limit * GB and (keep is None or count <= keep):
            break
        if run.in_use:
            continue
        shutil.rmtree(run.path, ignore_errors=True)
        if not run.path.exists():
            removed.append(run)
            size, count = size - run.size, count - 1
    if removed:
        _point_to_latest(runs_dir())
    return removed


def size_limit() -> float:
    """Return the size limit of all runs [GB]: `$HUMANOID_RUNS_LIMIT`, or 1.

    Raises:
        ConfigError: if the variable is not a number >= 0.
    """
    text = os.environ.get(VARIABLE, "").strip()
    with contextlib.suppress(ValueError):
        if not text or float(text) >= 0:
            return float(text or LIMIT)
    raise ConfigError(f"{VARIABLE} must be a number of GB, at least 0, or inf for no limit, got '{text}'")


def new_run_directory(name: str) -> Path:
    """Prune old runs, and create the directory of this run as `latest`.

    Raises:
        EnvironmentProblem: if it is not writable.
        ConfigError: if the limit is not a number.
    """
    root, limit = runs_dir(), size_limit()
    if removed := prune_runs(limit):
        freed = sum(r.size for r in removed) / GB
        warn(
            f"removed the oldest {len(removed)} runs ({freed:.2f} GB): recordings in {root} were above {limit:g} GB "
            f"(another limit: {VARIABLE}; see `humanoid runs`)"
        )
    stamp = f"{datetime.datetime.now():{STAMP}}_{name}"
    for k in itertools.count():
        path = root / (stamp if k == 0 else f"{stamp}_{k}")
        try:
            path.mkdir()
        except FileExistsError:
            continue
        latest = root / "latest"
        latest.unlink(missing_ok=True)
        latest.symlink_to(path.name)
        return path
    raise AssertionError


def discard_run_directory(path: Path) -> None:
    """Remove the directory of a failed start."""
    shutil.rmtree(path, ignore_errors=True)
    _point_to_latest(path.parent)


def replay_command(bag: Path, port: int | None = None) -> str:
    """Return the command that replays a recording."""
    return f"humanoid replay {shlex.quote(str(bag))} --viewer" + (f" --port {port}" if port not in (None, 8080) else "")


def write_parameters(directory: Path, parameters: dict[str, Any]) -> Path:
    path = directory / "parameters.yaml"
    path.write_text(yaml.safe_dump(parameters, sort_keys=False))
    return path


def _point_to_latest(root: Path) -> None:
    """Repair a dangling `latest`."""
    latest = root / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
        if others := sorted(p.name for p in root.iterdir() if p.is_dir()):
            latest.symlink_to(others[-1])


def _file_infos(directory: Path) -> list[os.stat_result]:
    infos = []
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            if not path.is_dir():
                infos.append(path.lstat())
    return infos


def _open_files(root: Path) -> set[Path]:
    """Return files that processes of this user have open."""
    found, real = set(), os.path.realpath(root)
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            target = os.readlink(link)
            if target.startswith(real + os.sep):
                found.add(root / os.path.relpath(target, real))
    return found
