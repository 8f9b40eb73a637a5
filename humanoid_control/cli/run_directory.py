"""One directory a run: parameters, logs, recordings."""

from __future__ import annotations

import datetime
import itertools
import shutil
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.paths import state_dir


def new_run_directory(name: str) -> Path:
    """Make a directory for this run below the state directory, and point `latest` to it."""
    root = state_dir() / "runs"
    root.mkdir(exist_ok=True)
    stamp = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}_{name}"
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
    """Remove the directory of a run that never was one; `latest` is again the one before."""
    shutil.rmtree(path, ignore_errors=True)
    latest = path.parent / "latest"
    if latest.is_symlink() and not latest.exists():
        latest.unlink()
        if others := sorted(p.name for p in path.parent.iterdir() if p.is_dir()):
            latest.symlink_to(others[-1])


def write_parameters(directory: Path, parameters: dict[str, Any]) -> Path:
    """Write the ROS parameter file of a run."""
    path = directory / "parameters.yaml"
    path.write_text(yaml.safe_dump(parameters, sort_keys=False))
    return path
