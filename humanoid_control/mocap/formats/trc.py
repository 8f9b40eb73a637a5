"""Reader of TRC, the tab-separated marker format of OpenSim."""

from __future__ import annotations

import math
from pathlib import PurePath

import numpy as np

from humanoid_control.documents import decoded
from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import (
    AS_STATED,
    MOTION_RATES,
    NO_NUMBER,
    Size,
    base_step,
    check_count,
    on_even_times,
    scale_of_markers,
    seconds_of_times,
)

_WIDE = 60  # largest number of spaces between labels
_EVEN = 1.5  # largest ratio of even steps to the usual one


def parse_trc(data: bytes, source: str, size: Size = AS_STATED) -> MarkerClip:
    """Return the clip of a TRC file.

    A blank line before the data is optional. A marker is missing if its cells are empty or all zero.

    Raises:
        ClipError: with the line, if the file is invalid, or no unit gives a person.
    """
    text = decoded(data).lstrip()
    if not text.startswith("PathFileType"):
        raise ClipError(f"{source}: not a TRC file: the first line must begin with PathFileType")
    lines = text.splitlines()
    if len(lines) < 5:
        raise ClipError(f"{source}: ends within the header (line {len(lines)}): copy or export it again")
    lines = _with_tabs(lines, source)
    header = _header(lines[1], lines[2])
    rate = _number(header.get("datarate", ""), "DataRate", source)
    check_count(lines[3].count("\t") // 3, source)
    labels, warnings = distinct_labels([cell.strip() for cell in lines[3].split("\t")[2:] if cell.strip()])
    if not labels:
        raise ClipError(f"{source}: names no markers in line 4: export the file again")
    times, positions, short = _table(lines[5:], len(labels), source)
    count = len(times)
    times, positions, in_time = _in_order(times, positions, rate, source)
    dropped = count - len(times)
    warnings += short + in_time
    declared = int(_number(header.get("numframes", ""), "NumFrames", source))
    rows = len(positions) + dropped
    if rows < declared:
        raise ClipError(f"{source}: ends after {rows} of {declared} frames: copy or export it again")
    if rows > declared:
        warnings += (f"the header declares {declared} frames, the file contains {rows}: all are used",)
    scale, unit_warnings = scale_of_markers(positions, header.get("units", ""), source, size)
    warnings += unit_warnings
    if rate > 0 and len(times) > 1 and np.isfinite(times).all() and (np.diff(times) > 0).all():
        rate, positions, time_warnings = on_even_times(times, positions, rate, source)
        warnings += time_warnings
    elif len(times) > 1 and np.isfinite(times).all():
        row = int(np.argmin(np.diff(times) > 0)) + 1
        warnings += (f"the time column does not increase at row {row + 1}: DataRate of {rate:g} Hz is used",)
    start = float(times[0]) if len(times) and math.isfinite(times[0]) else 0.0
    return MarkerClip(PurePath(source).stem, labels, rate, positions * scale, source, warnings, start=start)


def _in_order(
    times: np.ndarray, positions: np.ndarray, rate: float, source: str
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return rows sorted by time [s], without duplicates, milliseconds converted."""
    if len(times) < 2 or not np.isfinite(times).all() or not np.ptp(times) > 0:
        return times, positions, ()
    notes: tuple[str, ...] = ()
    order = np.argsort(times, kind="stable")
    steps = np.diff(times[order])
    if (np.diff(times) < 0).any():
        if steps.max() > _EVEN * base_step(steps):
            return times, positions, ()  # no row order makes plausible times
        notes += ("the rows were not sorted by time: sorted",)
    once = order[np.concatenate([[True], np.diff(times[order]) > 0])]
    if len(once) < len(times):
        notes += (f"{len(times) - len(once)} row(s) repeat the time of the previous row: ignored",)
    times, positions = times[once], positions[once]
    own = 1.0 / base_step(np.diff(times))
    if rate > MOTION_RATES[0] and not own > MOTION_RATES[0]:
        second, more = seconds_of_times(times, rate, source)
        return times * second, positions, (*notes, *more)
    return times, positions, notes


def _with_tabs(lines: list[str], source: str) -> list[str]:
    """Return lines with tabs, if all cells are separated by spaces."""
    if any("\t" in line for line in lines[1:4]):
        return lines
    check_count(lines[3].count(" ") // _WIDE, source)
    frame, time, *labels = [*lines[3].split(), "", ""][: max(2, len(lines[3].split()))]
    names = "\t".join([frame, time, *(cell for label in labels for cell in (label, "", ""))])
    return [lines[0], *("\t".join(x.split()) for x in lines[1:3]), names, *("\t".join(x.split()) for x in lines[4:])]


def _header(keys: str, values: str) -> dict[str, str]:
    """Return the second and third line as a dictionary."""
    names, cells = ([cell.strip() for cell in line.split("\t")] for line in (keys, values))
    told, given = [name for name in names if name], [cell for cell in cells if cell]
    if len(cells) > len(names) and len(told) == len(given):  # some writers double the tabs of one line
        names, cells = told, given
    return {name.lower(): cell for name, cell in zip(names, cells, strict=False) if name}


def _number(text: str, field: str, source: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ClipError(f"{source}: {field} in line 3 is {text[:20]!r}, not a number: correct the header")
    return value


def _table(lines: list[str], n_markers: int, source: str) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return times (T,), positions (T, M, 3) [file units] and a warning."""
    width, short = 2 + 3 * n_markers, 0
    last = max((k for k, line in enumerate(lines, start=6) if line.strip()), default=0)
    rows = []
    for number, line in enumerate(lines, start=6):
        if not line.strip():
            continue
        cells = [cell.strip() or "nan" for cell in line.split("\t")]
        if len(cells) > width and all(cell == "nan" for cell in cells[width:]):
            cells = cells[:width]  # trailing tab
        # Editors trim empty cells at line ends; the last line may be cut off instead.
        if number < last and 2 < len(cells) < width and (len(cells) - 2) % 3 == 0:
            cells += ["nan"] * (width - len(cells))
            short += 1
        if len(cells) != width:
            raise ClipError(
                f"{source}: line {number} has {len(cells)} cells, {n_markers} markers need {width}: "
                "the file is cut off or not tab separated"
            )
        if "," in line and "." not in line:  # decimal commas
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            rows.append([math.nan if cell.casefold() in NO_NUMBER else float(cell) for cell in cells])
        except ValueError as error:
            raise ClipError(f"{source}: line {number} contains a non-numeric value: {error}") from None
    table = np.array(rows).reshape(-1, width)
    positions = table[:, 2:].reshape(-1, n_markers, 3)
    positions[(positions == 0).all(axis=2)] = np.nan
    note = f"{short} row(s) are incomplete: their missing markers count as hidden"
    return table[:, 1], positions, (note,) if short else ()
