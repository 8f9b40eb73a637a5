"""TSV of Qualisys Track Manager: lines of keys, one of marker names, then a table that may have no header."""

from __future__ import annotations

from humanoid_control.errors import ClipError
from humanoid_control.mocap.formats.common import check_count

_NAMES = "MARKER_NAMES"
_FIRST = ("NO_OF_FRAMES", "FILE_VERSION")
_MOST_KEYS = 60  # lines before the table


def is_qualisys(text: str) -> bool:
    """Test whether a text begins as an export of Qualisys Track Manager does."""
    return text.lstrip().startswith(_FIRST)


def with_header(text: str, source: str) -> str:
    """Return the text with one header row of marker columns, in the line of the marker names.

    The columns before those of the markers are the frame and the time, in this order, unless a row above the numbers
    names them.

    Args:
        text: of the file.
        source: its path, for messages.

    Raises:
        ClipError: no names of markers or too many, fewer columns than they need, or fewer rows than the file says.
    """
    lines = text.splitlines()
    at = next((k for k, line in enumerate(lines[:_MOST_KEYS]) if line.lstrip().startswith(_NAMES)), -1)
    if at < 0:
        raise ClipError(
            f"{source}: an export of Qualisys without a line {_NAMES}: export the 3D data of the markers from QTM"
        )
    separator = max("\t;,", key=lines[at].count)
    check_count(lines[at].count(separator), source)
    names = [cell.strip() for cell in lines[at].split(separator)[1:]]
    while names and not names[-1]:
        names.pop()
    begin, heads = at + 1, list[str]()
    while begin < min(len(lines), at + _MOST_KEYS) and not _is_number(lines[begin].split(separator)[0]):
        cells = [cell.strip() for cell in lines[begin].split(separator)]
        if len(cells) >= 3 * len(names) > 0 and cells[0] != cells[0].upper():
            heads = cells[: len(cells) - 3 * len(names)] if cells[-1] else heads
        elif cells[0].casefold() in ("frame", "time"):
            heads = [cell for cell in cells if cell.casefold() in ("frame", "time")]
        lines[begin] = ""
        begin += 1
    width = 0 if begin == len(lines) else len(lines[begin].rstrip(separator + " ").split(separator))
    extra = width - 3 * len(names)
    if not heads and extra in (1, 2) and lines[begin].count(separator) == width - 1:
        heads = ["Frame", "Time"][:extra]
    rows = sum(bool(line.strip()) for line in lines[begin:])
    stated = next((line.split(separator) for line in lines[:at] if line.startswith(_FIRST[0])), [])
    if len(stated) > 1 and stated[1].strip().isdigit() and rows < int(stated[1]):
        raise ClipError(f"{source}: ends after {rows} of {int(stated[1])} frames: copy or export it again")
    columns = [f"{name or f'unnamed {k + 1}'}_{axis}" for k, name in enumerate(names) for axis in "xyz"]
    lines[at] = separator.join([*heads, *columns])
    return "\n".join(lines)


def _is_number(text: str) -> bool:
    try:
        float(text.strip().replace(",", ".") or "nan")
    except ValueError:
        return False
    return True
