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

    Raises:
        ConfigError: it cannot be written; why.
    """
    path = Path(path)
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
            for part in sorted(Path(place).iterdir()):
                os.replace(part, folder / part.name)


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
