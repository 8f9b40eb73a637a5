"""CSV: a table of marker coordinates, as spreadsheets, Vicon, Motive and scripts of one's own write them."""

from __future__ import annotations

import csv
from pathlib import PurePath

import numpy as np

from humanoid_control.capture.clip import MarkerClip, distinct_labels
from humanoid_control.capture.csv_header import CsvHeader, read_header
from humanoid_control.capture.units import scale_of_markers
from humanoid_control.errors import ClipError

_NO_NUMBER = ("", "nan", "na", "n/a", "null", "none", "-")
_USUAL_RATES = (5.0, 2000.0)  # [Hz] of motion capture
_UNEVEN = 0.2  # relative deviation of a time step from the mean that is worth a warning


def parse_csv(data: bytes, source: str, rate: float | None = None) -> MarkerClip:
    """Read the content of a marker CSV file.

    Layout: a header row that names the columns `LASI_x,LASI_y,LASI_z` (or `LASI.x`, `LASI x [mm]`), or two header rows,
    labels above X, Y, Z; rows above them may state rate and unit (`# rate: 120`, `# unit: mm`, the preambles of Vicon
    and Motive). A column `time` [s] gives the rate; other columns are ignored. Cells are separated by commas, tabs or
    semicolons (then with decimal commas, if need be). A marker is missing where one of its cells is empty or NaN, or
    all three are exactly zero.

    Args:
        data: the bytes of the file.
        source: its path, for messages and the clip's name.
        rate: frames a second [Hz], for a file that states none and has no time column.

    Raises:
        ClipError: no such header, a row cut off, no rate, or not a person's size in any unit; the message names the
            line.
    """
    rows, lines, semicolon = _cells(data.decode("utf-8-sig", errors="replace"), source)
    header = read_header(rows, source)
    # With a column of times or frame numbers a row without anything is no frame, as spreadsheets leave at the end.
    numbered = header.columns.min() > 0
    frames = [k for k in range(header.first_row, len(rows)) if any(rows[k]) or not numbered]
    numbers = _table([rows[k] for k in frames], [lines[k] for k in frames], header, semicolon, source)
    if not len(numbers):
        raise ClipError(f"{source}: has a header but no frames: export it again")
    positions = numbers[:, header.columns]
    positions[(positions == 0).all(axis=2)] = np.nan
    labels, warnings = distinct_labels(header.labels)
    found, rate_warnings = _rate(numbers, header, rate, source)
    scale, unit_warnings = scale_of_markers(positions, header.unit, source)
    warnings += header.warnings + rate_warnings + unit_warnings
    return MarkerClip(PurePath(source).stem, labels, found, positions * scale, source, warnings)


def _cells(text: str, source: str) -> tuple[list[list[str]], list[int], bool]:
    """Rows of stripped cells, blank lines left out, with their line numbers; and whether semicolons separate them."""
    head = "\n".join(text.splitlines()[:20])
    delimiter = max(";\t,", key=head.count)
    reader = csv.reader(text.replace("\0", "?").splitlines(), delimiter=delimiter, skipinitialspace=True)
    rows, lines = [], []
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if len(cells) > 1 or any(cells):
                rows.append(cells)
                lines.append(reader.line_num)
    except csv.Error as error:
        raise ClipError(f"{source}: not a CSV file: line {reader.line_num}: {error}") from None
    return rows, lines, delimiter == ";"


def _table(rows: list[list[str]], lines: list[int], header: CsvHeader, decimal_comma: bool, source: str) -> np.ndarray:
    """(T, columns) numbers of the columns that are used, NaN elsewhere."""
    used = sorted({*header.columns.ravel().tolist(), *([header.time[0]] if header.time else [])})
    numbers = np.full((len(rows), used[-1] + 1), np.nan)
    for k, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) <= used[-1]:
            raise ClipError(
                f"{source}: line {line} has {len(row)} cells, the header needs {used[-1] + 1}: the file is cut off"
            )
        for column in used:
            cell = row[column]
            if cell.casefold() in _NO_NUMBER:
                continue
            try:
                numbers[k, column] = float(cell.replace(",", ".") if decimal_comma else cell)
            except ValueError:
                raise ClipError(f"{source}: line {line}: {cell[:20]!r} is not a number: correct it") from None
    return numbers


def _rate(numbers: np.ndarray, header: CsvHeader, given: float | None, source: str) -> tuple[float, tuple[str, ...]]:
    """Frames a second: of the time column, the preamble, or the caller, in this order."""
    if header.time is None:
        rate = header.rate if header.rate is not None else given
        if rate is None:
            raise ClipError(
                f"{source}: states no frame rate: add a column 'time' in seconds or a first line '# rate: 120', "
                "or give the rate to load_clip"
            )
        return rate, ()
    column, second = header.time
    times = numbers[:, column] * second
    steps = np.diff(times)
    if len(times) > 1 and not (steps > 0).all():
        frame = int(np.argmin(steps > 0)) + 1
        raise ClipError(f"{source}: the time column does not grow at frame {frame}: sort the rows or correct it")
    step = float(steps.mean()) if len(steps) else np.nan
    rate = 1 / step if step > 0 else (header.rate or given or 1.0)
    whole = round(rate)
    rate = float(whole) if whole and abs(rate - whole) < 1e-3 * whole else rate
    warnings = []
    if len(steps) and np.abs(steps / step - 1).max() > _UNEVEN:
        warnings.append(
            f"the time steps vary from {steps.min():.4g} to {steps.max():.4g} s: {rate:.4g} Hz throughout is taken"
        )
    if len(steps) and not _USUAL_RATES[0] <= rate <= _USUAL_RATES[1]:
        warnings.append(f"the time column runs at {rate:.4g} Hz: name it time_ms if it counts milliseconds")
    return rate, tuple(warnings)
