"""What a kind of file is, and what its makers and readers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class FileKind:
    """A kind of file.

    Attributes:
        make: writes good files into a folder.
        damaged: names of those to be damaged. asked: name of what is given to the reader.
        read: the reader, and something that uses what it gives.
    """

    make: Callable[[Path], None]
    damaged: tuple[str, ...]
    asked: str
    read: Callable[[Path], None]


def write(folder: Path, **files: str) -> None:
    """Texts by the name of their file, whose dots are written as __."""
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def finite(what: str, *values: Any) -> None:
    for value in values:
        if not np.isfinite(np.asarray(value, dtype=float)).all():
            raise AssertionError(f"{what} of a file that was taken is not finite")
