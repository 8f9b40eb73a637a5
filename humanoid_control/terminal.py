"""Tables, progress and JSON on the terminal, and the description of the machine."""

from __future__ import annotations

import contextlib
import json
import math
import os
import platform
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from rich import table as rich_table
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.text import Text

WIDTH_OF_FILES = 100  # characters a line without a terminal
FIRST_WORD = 2.0  # [s] wait before the first message


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """End like `humanoid robots | head` should; rich would exit with code 1."""
        raise BrokenPipeError


console = _Console(highlight=False, markup=False, soft_wrap=True)
if not console.is_terminal:
    console = _Console(highlight=False, markup=False, soft_wrap=True, width=WIDTH_OF_FILES)


class ReportTable(NamedTuple):
    """Table with a title; its note appears on pages only."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""


def print_parts(parts: Iterable[ReportTable | str]) -> None:
    """Print tables and sentences."""
    for part in parts:
        if isinstance(part, str):
            console.print(part)
        else:
            table(part.title, part.columns, part.rows)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table, numbers right-aligned; a table too wide is split."""
    t = rich_table.Table()
    cells = [[f"{v:.4g}" if isinstance(v, float) else str(v) for v in row] for row in rows]
    widths = column_widths([list(columns), *cells], console.width)
    fit = sum(end <= console.width for end in accumulate((w + 3 for w in widths), initial=1)) - 1
    if fit < len(columns) and len(columns) > 2:  # the rest follows in another table with the row names
        fit = max(fit, 2)
        table(title, columns[:fit], [row[:fit] for row in rows])
        table("", [columns[0], *columns[fit:]], [[row[0], *row[fit:]] for row in rows])
        return
    for k, name in enumerate(columns):
        number = bool(rows) and all(isinstance(r[k], (int, float)) or str(r[k]) in ("", "-") for r in rows)
        t.add_column(name, justify="right" if number else "left", width=widths[k])
    for row in cells:
        t.add_row(*row)
    if title:  # a title of the table's own would wrap at the table's width
        console.print(Text(title, style="bold"), soft_wrap=True)
    console.print(t, soft_wrap=False)


def column_widths(lines: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return column widths that fit a table to a width, as far as its longest words allow.

    Args:
        width: [characters].
    """
    columns = list(zip(*lines, strict=True))
    full = [max(len(line) for cell in column for line in cell.split("\n")) for column in columns]
    out = [max(len(word) for cell in column for word in cell.split() or [""]) for column in columns]
    out[0] = full[0]  # row names are not broken
    spare = width - sum(out) - 3 * len(out) - 1
    while spare > 0 and out != full:
        k = max(range(len(out)), key=lambda k: full[k] - out[k])
        out[k], spare = out[k] + 1, spare - 1
    return out


def activation_advice() -> str:
    """Return how to enable the `humanoid` command in this shell; empty if it works."""
    script = Path(sys.prefix, "bin", "activate")
    if sys.prefix == sys.base_prefix or shutil.which("humanoid") or not script.is_file():
        return ""
    here = Path.cwd()
    return f"before a `humanoid` command, once in each shell: . {os.path.relpath(script, here)}"


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Redirect standard output to standard error, including libraries and children."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def print_json(value: Any) -> None:
    """Print one JSON object; non-finite numbers become null."""
    print(json.dumps(plain_values(value), indent=2, allow_nan=False))


def plain_values(v: Any) -> Any:
    """Return plain dictionaries, lists and numbers for JSON; non-finite numbers become None."""
    if isinstance(v, dict):
        return {str(k): plain_values(x) for k, x in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain_values(x) for x in v]
    if hasattr(v, "item") and getattr(v, "ndim", 0) == 0:
        v = v.item()
    if hasattr(v, "tolist"):
        return plain_values(v.tolist())
    if isinstance(v, float) and not (v == v and abs(v) != float("inf")):
        return None
    return v


@contextlib.contextmanager
def progress(task: str, total: float, quiet: bool = False) -> Iterator[Any]:
    """Show a progress bar; yields a function that sets (done, text).

    Without a terminal it prints a line every tenth, after two seconds.
    """
    if quiet:
        yield lambda done, text="": None
        return
    if not console.is_terminal:
        last, begin = [-1], time.monotonic()

        def plain(done: float, text: str = "") -> None:
            tenth = int(10 * done / total) if total else 10
            if tenth > last[0] and time.monotonic() - begin > 2.0:
                last[0] = tenth
                print(f"{task}: {10 * tenth} % {text}".rstrip(), flush=True)

        yield plain
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, TextColumn("{task.fields[text]}"), console=console, transient=True) as bar:
        row = bar.add_task(task, total=total, text="")
        yield lambda done, text="": bar.update(row, completed=done, text=text)


LIBRARIES = ("numpy", "scipy", "numba", "pin", "coal", "ros-rclpy", "viser", "mujoco", "mink", "pin-pink", "filterpy")


class Waiting:
    """Messages about a wait: after two seconds, then whenever the time has tripled."""

    def __init__(self, quiet: bool = False) -> None:
        """Start the wait, silently if quiet."""
        self._begin, self._due = time.monotonic(), math.inf if quiet else FIRST_WORD

    def tell(self, what: str) -> None:
        """Report the missing item if due; call repeatedly."""
        waited = time.monotonic() - self._begin
        if waited > self._due:
            self._due *= 3.0
            console.print(f"waiting for {what}: {waited:.0f} s", soft_wrap=True)


def machine() -> dict[str, Any]:
    """Return system, processor and library versions, for measurements."""
    versions = {}
    for name in LIBRARIES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS", ""),
        "versions": versions,
    }


def _cpu() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def warn(text: str) -> None:
    """Print one line to standard error."""
    print(text, file=sys.stderr, flush=True)
