"""Forces in OpenSim files: tables (.mot, .sto) and ExternalLoads.

Headers are unreliable: only `endheader` and labels are used. Points of application are meaningless without load:
samples become force and moment about the world origin, p x F + M, before interpolation.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import NamedTuple

import numpy as np

from humanoid_control.documents import decoded, parse_xml, read_xml_text
from humanoid_control.errors import (
    ClipError,
    RobotError,
    UnknownNameError,
    first_few,
    nearest_names,
    offer_names,
    shown,
)
from humanoid_control.human.forces.wrenches import LOADED, MeasuredWrench, saturated_intervals
from humanoid_control.mocap.formats.common import LONGEST_GAP, NO_NUMBER, UNITS, base_step, known_unit, seconds_of_times

_AXIS = re.compile(r"^(?P<base>.+?)_?(?P<axis>[xyz123])$", re.IGNORECASE)
_FARTHEST = 50.0  # [m] of a loaded point from the origin
_MOST_COLUMNS = 10_000
_MOST_HEADER = 200  # lines
WEAK = 20.0  # [N] smallest peak force of a loaded foot
_RATES = (10.0, 4000.0)  # [Hz] rates of force plates; higher rates only with times in seconds
_FEW = 20  # rows of a hand-written table, such as a constant force at arbitrary times


class StorageTable(NamedTuple):
    """Content of a .mot or .sto file.

    Attributes:
        labels: of the C columns after the time.
        times: (n,) increasing [s].
        values: (n, C).
        in_degrees: None: not stated.
    """

    labels: tuple[str, ...]
    times: np.ndarray
    values: np.ndarray
    in_degrees: bool | None
    warnings: tuple[str, ...]


class _Load(NamedTuple):
    """ExternalForce: name, body, three columns of force, point and torque."""

    name: str
    body: str
    force: list[int]
    point: list[int]
    torque: list[int]


def read_storage(path: str | Path) -> StorageTable:
    """Return the table of a .mot or .sto file (OpenSim or SIMM).

    Raises:
        ClipError: with the line, if the table is invalid or times do not increase.
    """
    try:
        lines = decoded(Path(path).expanduser().read_bytes()).splitlines()
    except OSError as error:
        raise ClipError(f"{path}: cannot be read: {error.strerror or error}") from None
    head = next((k for k, line in enumerate(lines[:_MOST_HEADER]) if line.strip().lower() == "endheader"), None)
    if head is None or len(lines) < head + 2:
        raise ClipError(f"{path}: not a .mot or .sto file: no line 'endheader' with labels after it")
    head = next((k for k in range(head + 1, len(lines)) if lines[k].strip()), head + 1) - 1  # skip blank lines
    labels = lines[head + 1].split(None, _MOST_COLUMNS)
    if len(labels) > _MOST_COLUMNS:
        raise ClipError(f"{path}: line {head + 2} names more than {_MOST_COLUMNS:,} columns: export only the forces")
    if not labels or labels[0].lower() != "time" or len(labels) < 2:
        raise ClipError(f"{path}: line {head + 2} must name the columns, time first")
    rows = [(k, line.split()) for k, line in enumerate(lines[head + 2 :], start=head + 3) if line.strip()]
    for k, row in rows:
        if len(row) != len(labels):
            raise ClipError(f"{path}: line {k} has {len(row)} cells for {len(labels)} labels: the file is truncated")
    table = _numbers(rows, str(path)).reshape(len(rows), len(labels))
    if not len(table):
        raise ClipError(f"{path}: has a header but no rows: export it again")
    again = np.concatenate([[False], np.diff(table[:, 0]) == 0])
    warnings: tuple[str, ...] = ()
    if again.any():
        first = rows[int(np.argmax(again))][0]
        warnings = (f"{int(again.sum())} rows repeat the time of the previous row, the first in line {first}: ignored",)
        rows, table = [r for r, twice in zip(rows, again, strict=True) if not twice], table[~again]
    grows = np.concatenate([[True], np.diff(table[:, 0]) > 0]) & np.isfinite(table[:, 0])
    if not grows.all():
        k = int(np.argmin(grows))
        what = "does not increase: sort the rows" if np.isfinite(table[k, 0]) else "is not a number: correct it"
        raise ClipError(f"{path}: line {rows[k][0]}: the time {what}")
    text = "\n".join(lines[:head]).lower()
    stated = re.search(r"\b(?:nrows\s*=|datarows)\s*(\d+)", text)
    if stated and int(stated[1]) not in (len(table), len(table) + int(again.sum())):
        warnings += (f"the header declares {int(stated[1])} rows, the file contains {len(table)}: all are used",)
    return StorageTable(tuple(labels[1:]), table[:, 0], table[:, 1:], _in_degrees(text), warnings)


def _in_degrees(header: str) -> bool | None:
    field = re.search(r"indegrees\s*=\s*(yes|no)", header)
    if field:
        return field[1] == "yes"
    prose = re.search(r"angles are in (degrees|radians)", header)
    return prose[1] == "degrees" if prose else None


def _numbers(rows: list[tuple[int, list[str]]], source: str) -> np.ndarray:
    """Return numbers of (line, cells) rows; accepts missing values and decimal commas."""
    try:
        return np.array([row for _, row in rows], dtype=float)
    except ValueError:
        out = []
    for line, row in rows:
        comma = not any("." in cell for cell in row if cell.casefold() not in NO_NUMBER)
        try:
            cells = [cell.replace(",", ".") if comma else cell for cell in row]
            out.append([np.nan if cell.casefold() in NO_NUMBER else float(cell) for cell in cells])
        except ValueError as error:
            raise ClipError(f"{source}: line {line} contains a non-numeric value: {error}") from None
    return np.array(out)


def read_loads(path: str | Path, table: str | Path | None = None, unit: str = "m") -> tuple[MeasuredWrench, ...]:
    """Return the wrenches of an ExternalLoads file or a table, in file order.

    Args:
        path: ExternalLoads .xml, or .mot or .sto with OpenSim's column names.
        table: numbers; default: named by the .xml, there or next to it.
        unit: of points, and of moments with N: m, or mm (OpenSim's C3D export).

    Raises:
        ClipError: if a file is invalid, forces are not in ground, or points or times are implausible.
        UnknownNameError: if the unit is unknown.
    """
    path = Path(path).expanduser()
    if not known_unit(unit):
        raise UnknownNameError("unit", unit, UNITS)
    if path.suffix.lower() == ".xml":
        document = _external_loads(path)
        source = Path(table) if table is not None else _data_file(path, document)
        content = read_storage(source)
        loads, skipped = _declared(document, content.labels, str(path))
    else:
        source, content = path, read_storage(path)
        loads, skipped = _named(content.labels)
    if not loads:
        raise ClipError(f"{path}: contains no force: columns are named like ground_force_vx, ground_force_px")
    content = _in_seconds(content, str(source))
    return tuple(_wrench(load, content, UNITS[known_unit(unit)], str(source), skipped) for load in loads)


def _in_seconds(table: StorageTable, source: str) -> StorageTable:
    """Return the table in seconds, the unit detected by plausible plate rates, or raise ClipError."""
    if len(table.times) < _FEW:
        return table
    second, notes = 1.0, ()  # type: float, tuple[str, ...]
    if base_step(np.diff(table.times)) * _RATES[0] > 1:
        second, notes = seconds_of_times(table.times, None, source, _RATES, counted=False)
    times = table.times * second
    k = int(np.argmax(np.diff(times)))
    if times[k + 1] - times[k] > LONGEST_GAP:
        raise ClipError(f"{source}: no row from {times[k]:.2f} to {times[k + 1]:.2f} s: split the table there")
    return table._replace(times=times, warnings=table.warnings + notes)


def _wrench(load: _Load, table: StorageTable, unit: float, source: str, said: tuple[str, ...]) -> MeasuredWrench:
    """Return the wrench of a load about the world origin."""
    zeros = np.zeros((len(table.times), 3))
    force = table.values[:, load.force] if load.force else zeros
    point = table.values[:, load.point] * unit if load.point else zeros
    torque = table.values[:, load.torque] * unit if load.torque else zeros
    # Without force the point is meaningless and may be NaN.
    point = np.where((force == 0).all(axis=1)[:, None], 0.0, point)
    size = np.linalg.norm(np.nan_to_num(force), axis=1)
    loaded = (size > LOADED) & np.isfinite(point).all(axis=1)
    normal, surface = np.array([0.0, 1.0, 0.0]), np.zeros(3)
    if loaded.any():
        mean, surface = force[loaded].mean(axis=0), np.median(point[loaded], axis=0)
        normal = np.eye(3)[np.argmax(np.abs(mean))] * np.sign(mean[np.argmax(np.abs(mean))])
        if np.abs(surface).max() > _FARTHEST:
            raise ClipError(
                f"{source}: the force '{load.name}' acts {np.abs(surface).max():.0f} m from the origin: "
                'are its points in millimetres? then give --forces-unit mm (unit="mm")'
            )
    missing = ~np.isfinite(np.hstack([force, point, torque])).all(axis=1)
    said = table.warnings + said
    if 0.0 < size.max(initial=0.0) < WEAK:
        most = f"the largest force of '{load.name}' is {size.max():.3g} N"
        said += (f"{most}: are the forces in kN, or in body weights?",)
    if missing.any():
        said += (f"'{load.name}' is non-numeric in {int(missing.sum())} of {len(missing)} samples",)
    flat = saturated_intervals(table.times, np.nan_to_num(force))
    if flat:
        said += (f"'{load.name}' is at its limit {first_few(f'from {a:.3f} to {b:.3f} s' for a, b in flat)}",)
    moment = np.cross(point, force) + torque
    return MeasuredWrench(load.name, table.times, force, moment, normal, surface, load.body, None, flat, said)


# -------- assignment of columns


def _external_loads(path: Path) -> ET.Element:
    try:
        document = parse_xml(read_xml_text(path).strip(), str(path), "ExternalLoads")
    except (OSError, ValueError) as error:
        raise ClipError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except RobotError as error:
        raise ClipError(str(error)) from None
    loads = document if document.tag == "ExternalLoads" else document.find(".//ExternalLoads")
    if loads is None:
        raise ClipError(f"{path}: contains no ExternalLoads: give the file that assigns forces to bodies")
    return loads


def _data_file(path: Path, loads: ET.Element) -> Path:
    named = (loads.findtext("datafile") or "").strip()
    if not named or named.lower() == "unassigned":
        raise ClipError(f"{path}: contains no datafile: give the .mot next to it")
    name = named.replace("\\", "/")
    for candidate in (path.parent / name, path.parent / Path(name).name):
        if candidate.is_file():
            return candidate
    raise ClipError(f"{path}: its datafile {shown(named)} was not found, nor next to it: give the .mot")


def _declared(loads: ET.Element, labels: tuple[str, ...], where: str) -> tuple[list[_Load], tuple[str, ...]]:
    """Return the loads of an ExternalLoads element, and notes."""
    found, skipped = [], []
    objects = loads.find("objects")
    for k, force in enumerate(objects.iter("ExternalForce") if objects is not None else (), start=1):
        name = (force.get("name") or f"force {k}").strip()

        def text(tag: str, force: ET.Element = force) -> str:
            value = (force.findtext(tag) or "").strip()
            return "" if value.lower() == "unassigned" else value

        if text("isDisabled").lower() == "true" or text("appliesForce").lower() == "false":
            skipped.append(f"the force '{name}' is switched off in {Path(where).name}: ignored")
            continue
        for tag in ("force_expressed_in_body", "point_expressed_in_body"):
            frame = text(tag).rpartition("/")[2] or "ground"
            if frame != "ground":
                raise ClipError(f"{where}: '{name}' is expressed in {shown(frame)} ({tag}): only ground is supported")
        columns = [_columns(text(f"{what}_identifier"), labels, where) for what in ("force", "point", "torque")]
        if not columns[0] and not columns[2]:
            raise ClipError(f"{where}: '{name}' contains neither force nor torque")
        if columns[0] and not columns[1]:
            raise ClipError(f"{where}: '{name}' has no point_identifier: its point of application is needed")
        found.append(_Load(name, text("applied_to_body").rpartition("/")[2], *columns))
    return found, tuple(skipped)


def _columns(identifier: str, labels: tuple[str, ...], where: str) -> list[int]:
    """Return three columns of a prefix such as `ground_force_v` + `x`, `ground_torque` + `_x`."""
    if not identifier:
        return []
    columns: dict[str, int] = {}
    for k, label in enumerate(labels):
        rest = label[len(identifier) :].lstrip("_").lower() if label.startswith(identifier) else ""
        if rest in ("x", "y", "z", "1", "2", "3"):
            columns.setdefault(rest.translate(str.maketrans("123", "xyz")), k)
    if len(columns) < 3:
        near = nearest_names(identifier, labels)
        raise ClipError(
            f"{where}: '{shown(identifier)}' begins {len(columns)} columns that end with x, y and z, 3 are needed: "
            f"{offer_names(identifier, near or labels, 'columns')}"
        )
    return [columns[axis] for axis in "xyz"]


def _named(labels: tuple[str, ...]) -> tuple[list[_Load], tuple[str, ...]]:
    """Return loads by column names ground_force_r_v, _p, ground_torque_r_ or f1, p1, m1, and a note."""
    triples: dict[str, dict[str, int]] = {}
    for k, label in enumerate(labels):
        if match := _AXIS.match(label):
            axis = match["axis"].lower().translate(str.maketrans("123", "xyz"))
            triples.setdefault(match["base"], {})[axis] = k
    whole = {base: [axes[a] for a in "xyz"] for base, axes in triples.items() if len(axes) == 3}
    loads, used = list[_Load](), set[int]()
    for base, force in whole.items():
        stem, number = base[:-1], re.fullmatch(r"f(\d+)", base)
        if number:
            points, moments, name = [f"p{number[1]}"], [f"m{number[1]}"], base
        elif base.endswith("v"):
            points, moments, name = [f"{stem}p"], [f"{stem}m"], stem.strip("_")
            points += [f"{stem.replace('force', word)}{end}" for word in ("cop", "point") for end in ("", "p")]
            moments += [
                f"{stem.replace('force', word)}{end}" for word in ("torque", "moment") for end in ("", "m", "t")
            ]
        else:
            continue
        point = _first_of(points, whole)
        if not point:
            continue
        torque = _first_of(moments, whole)
        loads.append(_Load(name, "", force, point, torque))
        used |= {*force, *point, *torque}
    unused = [label for k, label in enumerate(labels) if k not in used]
    if not (loads and unused):
        return loads, ()
    return loads, (f"columns without a force with a point of application are ignored: {first_few(unused)}",)


def _first_of(names: list[str], whole: dict[str, list[int]]) -> list[int]:
    """Return columns of the first existing name."""
    return next((whole[n] for name in names for n in (name, name.rstrip("_")) if n in whole), [])
