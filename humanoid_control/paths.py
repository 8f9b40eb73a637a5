"""Directories of the package (shared files) and of runs (state)."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem

PACKAGE = "humanoid_control"
TEST_DATA = "HUMANOID_TEST_DATA"


def share_dir() -> Path:
    """Return the directory of `urdf/`, `config/` and `launch/`.

    Search order: the source tree; `share/` below the prefixes of `AMENT_PREFIX_PATH` (colcon), the Python prefix (pip),
    and the folders that contain the package.

    Raises:
        EnvironmentProblem: if there is none: the installation is broken.
    """
    tree = Path(__file__).resolve().parent.parent
    if (tree / "package.xml").is_file() and (tree / "urdf").is_dir():
        return tree
    prefixes = [p for p in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep) if p] + [sys.prefix]
    # A colcon overlay that was not sourced imports the package from <prefix>/lib/pythonX.Y/site-packages.
    prefixes += [str(p) for p in Path(__file__).resolve().parents[:6]]
    for prefix in prefixes:
        share = Path(prefix) / "share" / PACKAGE
        if (share / "urdf").is_dir():
            return share
    raise EnvironmentProblem(
        f"the shared files of {PACKAGE} (urdf, config) were not found next to {tree}: install the package again"
    )


def test_data(relative: str) -> Path | None:
    """Return a file or folder of third-party test data in `$HUMANOID_TEST_DATA`; None if there is none."""
    folder = os.environ.get(TEST_DATA)
    path = Path(folder) / relative if folder else None
    return path if path is not None and path.exists() else None


def home_dir() -> Path:
    """Return the user's home, or a temporary folder for users without one (as in containers)."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"{PACKAGE}_{os.getuid()}"


def state_dir() -> Path:
    """Return the directory of logs and recordings: `$HUMANOID_HOME`, or `~/.humanoid`, created if missing.

    Raises:
        EnvironmentProblem: if it is not writable.
    """
    remedy = "set HUMANOID_HOME to a folder for logs and recordings"
    path = Path(os.environ.get("HUMANOID_HOME") or home_dir() / ".humanoid")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path):
            pass
    except OSError as e:
        reason = f"{path} cannot be written: {e.strerror}"
        raise EnvironmentProblem(f"{reason}; {remedy}") from None
    return path
