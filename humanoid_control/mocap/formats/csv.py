"""Reader of marker tables (CSV) of spreadsheets, Vicon, Motive, Qualisys and scripts."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import PurePath

import numpy as np

from humanoid_control.documents import decoded
from humanoid_control.errors import ClipError
from humanoid_control.mocap.clip import MarkerClip, distinct_labels
from humanoid_control.mocap.formats.common import (
    AS_STATED,
    MOST_POINTS,
    MOTION_RATES,
    NO_NUMBER,
    Size,
    check_count,
    known_unit,
    on_even_times,
    scale_of_markers,
    seconds_of_times,
)
from humanoid_control.mocap.formats.landmarks import landmark_names, refuse_picture, with_path

_MOST_COLUMNS = 4 * MOST_POINTS
_LONGEST_LABEL = 200  # characters of a column name


def parse_csv(data: bytes, source: str, rate: float | None = None, size: Size = AS_STATED) -> MarkerClip:
    """Return the clip of a marker CSV file.

    The header is a row of `LASI_x,LASI_y,LASI_z` (or `LASI.x`, `LASI x [mm]`), or labels above X, Y, Z. Rows above may
    state rate and unit (`# rate: 120`, `# unit: mm`, preambles of Vicon and Motive). A column `time` gives the rate, in
    its stated unit (`time_ms`, `time (ms)`, a row of units) or a plausible one. Separators are commas, tabs or
    semicolons (then also decimal commas). A marker is missing if a cell is empty or NaN, or all three are zero.

    Args:
        rate: [Hz], for a file without rate and times.

    Raises:
        ClipError: with the line, if the table is invalid, the rate is missing, or no unit gives a person.
    """
    text = decoded(data)
    text = _with_header(text, source) if _is_qualisys(text) else _trajectories(text, source)
    rows, lines, semicolon = _cells(text, source)
    header = read_header(rows, source)
    # With a time or frame column, rows without a value are not frames.
    numbered = header.columns.min() > 0
    frames = [k for k in range(header.first_row, len(rows)) if any(rows[k]) or not numbered]
    numbers = _table([rows[k] for k in frames], [lines[k] for k in frames], header, semicolon, source)
    if not len(numbers):
        raise ClipError(f"{source}: has a header but no frames: export it again")
    header = _with_time_unit(header, numbers, rate, source)
    positions = numbers[:, header.columns]
    positions[(positions == 0).all(axis=2)] = np.nan
    labels, warnings = distinct_labels(header.labels)
    found, positions, rate_warnings = _rate(numbers, positions, header, rate, source)
    labels = landmark_names(labels) or labels
    refuse_picture(labels, positions, source)
    scale, unit_warnings = scale_of_markers(positions, header.unit, source, size)
    positions, path_warnings = with_path(labels, positions * scale, found)
    warnings += header.warnings + rate_warnings + unit_warnings + path_warnings
    first = numbers[0, header.time[0]] * header.time[1] if header.time else _first_time(numbers, header, found)
    start = float(first) if np.isfinite(first) else 0.0
    return MarkerClip(PurePath(source).stem, labels, found, positions, source, warnings, start=start)


_SECTIONS = ("devices", "model outputs", "trajectories", "joints", "segments", "events")  # titles in Vicon exports


def _trajectories(text: str, source: str) -> str:
    """Return the marker section of a Vicon export, others blanked; ClipError without it."""
    lines = text.splitlines()
    titles = {k: t for k, line in enumerate(lines) if (t := line.strip(' ,;\t"').casefold()) in _SECTIONS}
    first = next((k for k, title in titles.items() if title == "trajectories"), None)
    if first is None and titles and min(titles) == next(k for k, line in enumerate(lines) if line.strip()):
        raise ClipError(
            f"{source}: contains {', '.join(dict.fromkeys(t.title() for t in titles.values()))}, no Trajectories: "
            "export those, too"
        )
    if first is None:
        return text
    end = min((k for k in titles if k > first), default=len(lines))
    return "\n".join([*[""] * first, *lines[first:end]])


def _cells(text: str, source: str) -> tuple[list[list[str]], list[int], bool]:
    """Return non-blank rows of cells, line numbers, and True for semicolons."""
    head = "\n".join([line for line in text.splitlines() if line.strip()][:20])
    delimiter = max(";\t,", key=head.count)
    reader = csv.reader(text.replace("\0", "?").splitlines(), delimiter=delimiter, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            if len(row) > _MOST_COLUMNS:
                raise ClipError(
                    f"{source}: line {reader.line_num} has {len(row):,} cells, the maximum is {_MOST_COLUMNS:,}: "
                    "export only the markers"
                )
            cells = [cell.strip() for cell in row]
            if len(cells) > 1 or any(cells):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ClipError(f"{source}: not a CSV file: line {reader.line_num}: {error}") from None
    return rows, lines, delimiter == ";"


def _table(rows: list[list[str]], lines: list[int], header: CsvHeader, decimal_comma: bool, source: str) -> np.ndarray:
    """Return the numbers (T, columns) of the used columns, NaN elsewhere."""
    beside = [header.time[0]] if header.time else [] if header.frame is None else [header.frame]
    used = sorted({*header.columns.ravel().tolist(), *beside})
    numbers = np.full((len(rows), used[-1] + 1), np.nan)
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) <= used[-1]:
            raise ClipError(
                f"{source}: line {line} has {len(row)} cells, the header needs {used[-1] + 1}: the file is cut off"
            )
        for column in used:
            cell = row[column]
            if cell.casefold() in NO_NUMBER:
                continue
            try:
                numbers[k, column] = float(cell.replace(",", ".") if decimal_comma else cell)
            except ValueError:
                clock = clock_time(cell) if header.time and column == header.time[0] else None
                if clock is None:
                    raise ClipError(f"{source}: line {line}: {cell[:20]!r} is not a number: correct it") from None
                numbers[k, column] = clock
    return numbers


def _with_time_unit(header: CsvHeader, numbers: np.ndarray, given: float | None, source: str) -> CsvHeader:
    """Return the header with the unit of its times, and a note unless seconds."""
    if header.time is None or header.time[1]:
        return header
    column, stated = header.time[0], header.rate if header.rate is not None else given
    second, notes = seconds_of_times(numbers[:, column], stated, source)
    return replace(header, time=(column, second), warnings=header.warnings + notes)


def _rate(
    numbers: np.ndarray, positions: np.ndarray, header: CsvHeader, given: float | None, source: str
) -> tuple[float, np.ndarray, tuple[str, ...]]:
    """Return the rate of times, preamble or caller, and rows at even times."""
    if header.time is None:
        rate = header.rate if header.rate is not None else given
        if rate is None:
            raise ClipError(
                f"{source}: states no frame rate: add a column 'time' in seconds or a first line '# rate: 120', "
                "or give the rate (--rate 120, or rate=120 to load_clip)"
            )
        return _at_frame_numbers(numbers, positions, header, rate, source)
    column, second = header.time
    times = numbers[:, column] * second
    steps = np.diff(times)
    if len(times) > 1 and not (steps > 0).all():
        frame = int(np.argmin(steps > 0)) + 1
        raise ClipError(f"{source}: the time column does not increase at frame {frame}: sort the rows or correct it")
    if not len(steps):
        return (header.rate or given or 1.0), positions, ()
    rate, positions, warnings = on_even_times(times, positions, None, source)
    if not MOTION_RATES[0] <= rate <= MOTION_RATES[1]:
        warnings += (f"the time column gives {rate:.4g} Hz in its unit: correct the unit if that is wrong",)
    return rate, positions, warnings


def _at_frame_numbers(
    numbers: np.ndarray, positions: np.ndarray, header: CsvHeader, rate: float, source: str
) -> tuple[float, np.ndarray, tuple[str, ...]]:
    """Return rows at their frame numbers; missing ones become empty frames."""
    if header.frame is None or len(numbers) < 2 or not rate > 0:
        return rate, positions, ()
    frames = numbers[:, header.frame]
    steps = np.diff(frames)
    if not (np.isfinite(frames).all() and (steps > 0).all() and (frames == np.rint(frames)).all()):
        return rate, positions, ("the frame numbers do not increase: the rows are used in their order",)
    if (steps == 1).all():
        return rate, positions, ()
    if steps.min() == steps.max():
        each = f"every row is {steps[0]:g} frames after the previous one: {rate / steps[0]:g} Hz is used"
        return rate / float(steps[0]), positions, (each,)
    return on_even_times(frames / rate, positions, rate, source)


def _first_time(numbers: np.ndarray, header: CsvHeader, rate: float) -> float:
    """Return the time of the first row [s] by frame numbers from 1, else 0."""
    first = numbers[0, header.frame] if header.frame is not None else 1.0
    return max(0.0, float(first) - 1.0) / rate if np.isfinite(first) and rate > 0 else 0.0


def clock_time(cell: str) -> float | None:
    """Return seconds of 10:00:00.25, or since 1970 of 2024-05-01T10:00:00.25Z (default UTC), else None."""
    if found := _TIME_OF_DAY.match(cell):
        hours, minutes, seconds = (float(x.replace(",", ".") or 0) for x in found.groups(""))
        return 3600.0 * hours + 60.0 * minutes + seconds
    try:
        moment = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", cell.replace(",", ".")))
    except ValueError:
        return None
    if not re.search(r"\d[T ]\d", cell):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)).timestamp()


# -------- header

_TIME_OF_DAY = re.compile(r"^(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2}(?:[.,]\d*)?)$", re.ASCII)

_IN_BRACKETS = r"(?:\s*[(\[]\s*(?P<unit>[^)\]]*?)\s*[)\]])?\s*$"
_NAMED_AXIS = re.compile(r"^(?P<label>.*\S)\s*[._:\s-]\s*(?P<axis>[xyz])" + _IN_BRACKETS, re.IGNORECASE)
_NUMBERED_AXIS = re.compile(r"^(?P<axis>[xyz])_?(?P<label>\d{1,3})$", re.IGNORECASE)
_BRACKETED_AXIS = re.compile(r"^(?P<label>.*\S)\s*[(\[]\s*(?P<axis>[xyz])\s*[)\]]$", re.IGNORECASE)
_BARE_AXIS = re.compile(r"^(?:t|pos|position)?[ _.]?(?P<axis>[xyz])" + _IN_BRACKETS, re.IGNORECASE)
_TIME = re.compile(r"^(?:time|timestamp|t)(?:\s*_?(?P<word>s|sec|ms|us))?" + _IN_BRACKETS, re.IGNORECASE)
_FRAME = re.compile(r"^#?\s*(?:frame|field)\s*(?:#|no\.?|number)?\s*$", re.IGNORECASE)
_RATE = re.compile(
    r"^#?\s*(?:(?:capture|export|camera)\s+)?(?:frame\s*rate|rate|frequency|fps)\b[^:=]*$", re.IGNORECASE
)
_UNIT = re.compile(r"^#?\s*(?:length\s+)?units?$", re.IGNORECASE)
_SECONDS = {"s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0, "": 0.0, "ms": 1e-3, "milliseconds": 1e-3, "us": 1e-6}
_NOT_A_LABEL = ("rotation", "position", "marker", "mean marker error", "velocity", "acceleration")


@dataclass(frozen=True)
class CsvHeader:
    """Content of the rows before the data.

    Attributes:
        labels: M markers, or "".
        columns: (M, 3) of x, y, z.
        first_row: of the data.
        time: column and unit [s], 0: not stated; or None.
        frame: column of frame numbers, or None.
        rate: stated [Hz], or None.
        unit: as in the file, or "".
        warnings: omitted columns.
    """

    labels: tuple[str, ...]
    columns: np.ndarray
    first_row: int
    time: tuple[int, float] | None
    rate: float | None
    unit: str
    warnings: tuple[str, ...]
    frame: int | None = None


def read_header(rows: Sequence[list[str]], source: str) -> CsvHeader:
    """Return the header of a marker table; ClipError without marker columns."""
    for number, row in enumerate(rows):
        found = _named_columns(row) or _bare_columns(rows, number)
        if found:
            labels, columns, units, warnings = found
            break
    else:
        raise ClipError(
            f"{source}: no marker columns found: the header must name them like LASI_x,LASI_y,LASI_z, "
            "or have a row of labels above a row of X,Y,Z"
        )
    first = number + 1
    below = rows[first] if first < len(rows) else []
    if any(below) and all(not cell or known_unit(cell) or cell.casefold() in _SECONDS for cell in below):
        units += [below[c] for c in columns.ravel() if c < len(below)]
        first += 1
    else:
        below = []
    rate, unit = _stated(rows[:number])
    unit = next((u for u in units if u), unit)
    time = next(((c, s) for c, cell in enumerate(rows[number]) if (s := _seconds(cell)) is not None), None)
    if time is None:  # next to the labels, above the row of axes
        before = [(c, cell) for row in reversed(rows[:number]) for c, cell in enumerate(row[: columns.min()])]
        time = next(((c, s) for c, cell in before if (s := _seconds(cell)) is not None), None)
    if time is not None and not time[1] and time[0] < len(below):  # a row of units may state it
        time = time[0], _SECONDS.get(below[time[0]].casefold(), 0.0)
    frame = next((c for c, cell in enumerate(rows[number][: columns.min()]) if _FRAME.match(cell)), None)
    return CsvHeader(labels, columns, first, time, rate, unit, warnings, frame)


_Columns = tuple[tuple[str, ...], np.ndarray, list[str], tuple[str, ...]]


def _named_columns(row: list[str]) -> _Columns | None:
    """Return the markers of a row such as LASI_x, or None."""
    groups: list[tuple[str, dict[str, int]]] = []
    latest: dict[str, int] = {}
    units = []
    for column, cell in enumerate(row):
        if len(cell) > _LONGEST_LABEL:  # matching time grows with the square of the length
            continue
        match = _NAMED_AXIS.match(cell) or _NUMBERED_AXIS.match(cell) or _BRACKETED_AXIS.match(cell)
        if not match or _seconds(cell) is not None:
            continue
        label, axis = match["label"], match["axis"].lower()
        if label not in latest or axis in groups[latest[label]][1]:
            latest[label] = len(groups)
            groups.append((label, {}))
        groups[latest[label]][1][axis] = column
        units.append(match.groupdict().get("unit") or "")
    if not any(len(axes) == 3 for _, axes in groups):
        return None
    whole = [(label, axes) for label, axes in groups if len(axes) == 3]
    broken = [
        f"{label[:40]!r} lacks {', '.join(sorted(set('xyz') - set(axes)))}" for label, axes in groups if len(axes) < 3
    ]
    warnings = (f"incomplete marker columns are ignored: {'; '.join(broken[:3])}",) if broken else ()
    columns = np.array([[axes[a] for a in "xyz"] for _, axes in whole])
    return tuple(label for label, _ in whole), columns, units, warnings


def _bare_columns(rows: Sequence[list[str]], number: int) -> _Columns | None:
    """Return the markers of a row X, Y, Z below labels, or None."""
    matches = [_BARE_AXIS.match(cell[:_LONGEST_LABEL]) for cell in rows[number]]
    axes = "".join(m["axis"].lower() if m else " " for m in matches)
    starts = [s.start() for s in re.finditer("xyz", axes)]
    above = [row for row in rows[:number] if any(row)]
    # Exports with rigid bodies mark rotations in a row above.
    starts = [s for s in starts if not any(s < len(row) and row[s].casefold() == "rotation" for row in above)]
    if not starts or not above:
        return None
    starts = _chosen_kinds(above, starts)
    named = [row for row in above if any(cell.casefold() in ("name", "label", "marker") for cell in row[: starts[0]])]
    labels = next(filter(any, (_labels(row, starts) for row in reversed(named or above))), None)
    if labels is None:
        return None
    columns = np.array(starts)[:, None] + np.arange(3)
    return tuple(labels), columns, [m["unit"] or "" for m in matches if m], ()


_LEAST_BONES = 9  # of a skeleton preferred to markers: an upper body


def _chosen_kinds(above: Sequence[list[str]], starts: list[int]) -> list[int]:
    """Return the useful columns by a row of types (Motive): skeleton bones, or measured markers.

    Motive writes markers as measured and as solved ("Rigid Body Marker", "Bone Marker"), and rigid bodies, used only
    alone.
    """
    row = next((r for r in above if any(c.casefold() == "type" for c in r[: starts[0]])), None)
    if row is None:
        return starts
    kind = {s: row[s].casefold() if s < len(row) else "" for s in starts}
    bones = [s for s in starts if kind[s] == "bone"]
    if len(bones) >= _LEAST_BONES:
        return bones
    names = next((r for r in above if any(c.casefold() == "name" for c in r[: starts[0]])), [])
    named = {s: names[s] if s < len(names) else "" for s in starts}
    measured = {named[s] for s in starts if kind[s] == "marker"}
    markers = [s for s in starts if kind[s] == "marker" or ("marker" in kind[s] and named[s] not in measured)]
    return markers or starts


def _labels(row: list[str], starts: list[int]) -> list[str]:
    """Return the labels above the x columns, or empty ones."""
    labels = [row[s] if s < len(row) else "" for s in starts]
    usual = sum(label.casefold() in _NOT_A_LABEL or bool(known_unit(label)) for label in labels)
    return labels if usual == 0 else [""] * len(starts)


def _seconds(cell: str) -> float | None:
    """Return the unit of a time column [s], 0: not stated, None: another column."""
    match = _TIME.match(cell[:_LONGEST_LABEL])
    return _SECONDS.get((match["unit"] or match["word"] or "").casefold()) if match else None


def _stated(preamble: Sequence[list[str]]) -> tuple[float | None, str]:
    """Return rate [Hz] and unit above the header: cell pairs, `# rate: 120`, or Vicon's."""
    rate, unit = None, ""
    after_title = False
    for row in preamble:
        cells = [part.strip() for cell in row for part in re.split(r"[:=]", cell, maxsplit=1)]
        for key, value in pairwise(cells):
            if _UNIT.match(key):
                unit = value
            elif _RATE.match(key) and (number := _number(value)) is not None:
                rate = number
        if after_title and len(filled := [c for c in row if c]) == 1:
            rate = _number(filled[0])
        after_title = row[0].casefold() == "trajectories"
    return rate, unit


def _number(text: str) -> float | None:
    try:
        return float(text.replace(",", ".").removesuffix("Hz").strip())
    except ValueError:
        return None


# -------- Qualisys

_MARKER_NAMES = "MARKER_NAMES"
_QUALISYS = ("NO_OF_FRAMES", "FILE_VERSION")
_MOST_KEYS = 60  # lines above the table


def _is_qualisys(text: str) -> bool:
    """Return True for an export of Qualisys Track Manager."""
    return text.lstrip().startswith(_QUALISYS)


def _with_header(text: str, source: str) -> str:
    """Return a Qualisys text with one header row of marker columns.

    Columns before the markers are frame and time, unless named.
    """
    lines = text.splitlines()
    at = next((k for k, line in enumerate(lines[:_MOST_KEYS]) if line.lstrip().startswith(_MARKER_NAMES)), -1)
    if at < 0:
        raise ClipError(f"{source}: an export of Qualisys without a line {_MARKER_NAMES}: export the 3D data from QTM")
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
    stated = next((line.split(separator) for line in lines[:at] if line.startswith(_QUALISYS[0])), [])
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
