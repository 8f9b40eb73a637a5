"""Where a command is to write, looked at before it computes anything."""

from __future__ import annotations

from pathlib import Path

from humanoid_control.errors import ConfigError
from humanoid_control.whole_files import regular_file, try_to_write


def check_file(path: Path | None, option: str = "-o") -> None:
    """Whether a file can be written there, if one was asked for.

    Raises:
        ConfigError: it is a folder or a device, its folder does not exist, or nothing can be written there.
    """
    if path is None:
        return
    if path.is_dir():
        raise ConfigError(f"{option} must be a file, and {path} is a folder")
    regular_file(path)
    _check_place(path)


def check_folder(path: Path | None, option: str = "-o") -> None:
    """Whether files can be written to this folder, if one was asked for; it need not exist yet.

    Raises:
        ConfigError: it is a file, its parent does not exist, or nothing can be written there.
    """
    if path is None:
        return
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{option} must be a folder, and {path} is a file")
    _check_place(path)


def _check_place(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the folder {path.parent} does not exist")
    try_to_write(path)
