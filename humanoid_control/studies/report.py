"""A study's outcome, for whoever reads it: tables and words on a terminal, plain values as JSON, files in a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from humanoid_control.files import whole_file, whole_files
from humanoid_control.terminal import Table, plain_values

Progress = Callable[[float, str], None]
"""Called with the share that is done, 0 to 1, and what is being done."""


def silent(done: float, text: str = "") -> None:
    """A progress that nobody sees."""


@dataclass(frozen=True)
class StudyReport:
    """Result of a study.

    Attributes:
        data: plain values, as they are written to JSON.
        parts: tables and sentences in the order of reading.
        details: more of them, for those who ask.
        pictures: makes more files, name -> content; called only where files are asked for, for it may take seconds.
    """

    data: dict[str, Any]
    parts: Sequence[Table | str]
    details: Sequence[Table | str] = ()
    pictures: Callable[[], Mapping[str, bytes | str]] = dict

    def json(self) -> str:
        """The data as text; what is not a number is null."""
        return json.dumps(plain_values(self.data), indent=1, allow_nan=False) + "\n"

    def write(self, path: Path) -> None:
        """Write all files into a folder, which is made, or into a file the one of its ending: whole or not at all."""
        contents = {f"{self.data['study']}.json": self.json(), **self.pictures()}
        raw = {name: c if isinstance(c, bytes) else c.encode() for name, c in contents.items()}
        for name, content in raw.items():
            if path.suffix and path.suffix == Path(name).suffix:
                with whole_file(path) as file:
                    file.write_bytes(content)
                return
        with whole_files(path) as folder:
            for name, content in raw.items():
                (folder / name).write_bytes(content)
