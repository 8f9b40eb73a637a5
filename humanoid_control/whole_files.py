"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from humanoid_control.errors import ConfigError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """A place to write to; what is there at the end becomes `path`. After an error `path` is as it was.

    A symbolic link stays one: what it points to is written.

    Raises:
        ConfigError: it cannot be written; why.
    """
    path = regular_file(path)
    with _told(path), tempfile.TemporaryDirectory(dir=path.parent, prefix=".writing_") as place:
        part = Path(place) / path.name
        yield part
        os.replace(part, path)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """A place to write files to; at the end they are moved to `folder`, which is made. After an error none is.

    Raises:
        ConfigError: they cannot be written; why.
    """
    with _told(folder):
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".writing_") as place:
            yield Path(place)
            parts = sorted(Path(place).iterdir())
            for part, whole in zip(parts, [regular_file(folder / p.name) for p in parts], strict=True):
                os.replace(part, whole)


def regular_file(path: Path) -> Path:
    """Where a file really is that may be replaced: a new one or a regular one, behind symbolic links.

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
    with _told(path), tempfile.TemporaryDirectory(dir=place, prefix=".writing_"):
        pass


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise ConfigError(f"{path} cannot be written: {e.strerror or e}") from None
