"""Directories of the package: its shared files (source tree, colcon install or pip environment) and those of runs."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from humanoid_control.errors import EnvironmentProblem

PACKAGE = "humanoid_control"
TEST_DATA = "HUMANOID_TEST_DATA"


def share_dir() -> Path:
    """The directory that holds `urdf/`, `config/` and `launch/`.

    Looked for, in this order: the source tree the package is imported from; `share/` below every prefix of
    `AMENT_PREFIX_PATH` (colcon), the Python prefix (pip), and the folders that the package lies in.

    Raises:
        EnvironmentProblem: no such directory, which means a broken installation.
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
        f"the shared files of {PACKAGE} (urdf, config) were not found beside {tree}: install the package again"
    )


def test_data(relative: str) -> Path | None:
    """A file or folder of the recordings and models of others, in the folder that `$HUMANOID_TEST_DATA` names.

    None where the variable is not set, or does not lead to it: what needs it is left out, and says so.
    """
    folder = os.environ.get(TEST_DATA)
    path = Path(folder) / relative if folder else None
    return path if path is not None and path.exists() else None


def home_dir() -> Path:
    """The user's home: `$HOME`, or what the system knows; a folder for temporary files where nobody knows any.

    That is so in a container that runs as a user without an entry.
    """
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"{PACKAGE}_{os.getuid()}"


def state_dir() -> Path:
    """Directory of the logs and recordings of runs: `$HUMANOID_HOME`, or `~/.humanoid` (created when missing).

    Raises:
        EnvironmentProblem: nothing can be written there.
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
