"""Model file of a person (humanoid_person/1).

Lengths are shares of the stature in the zero posture; all bodies have axes x forward, y up from the floor, z right.
Names with _r stand for both sides, mirrored. Inertias are those of de Leva 1996.

A spine region distributes coordinates over its levels by published ranges (Simonidis et al. 2011).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.errors import ConfigError, RobotError, UnknownNameError, shown, told_of
from humanoid_control.files import (
    check_keys,
    check_row,
    known,
    list_of,
    mapping_of,
    rows_of,
    schema_file,
    text,
)
from humanoid_control.human.elements import (
    GROUND,
    AnatomicalJoint,
    Coordinate,
    CoordinateAxis,
    Marker,
    OffsetFrame,
    PersonBody,
)
from humanoid_control.human.functions import Function
from humanoid_control.human.model import Person

SCHEMA = "humanoid_person/1"
FOLDER = Path(__file__).parent
MODELS = tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))
SEXES = ("men", "women")
LARGEST = 1000.0  # largest number in a file: percent, deg, mm
STATURE, MASS = (0.4, 2.6), (3.0, 400.0)  # accepted [m], [kg]
RIGHT, LEFT = "_r", "_l"
KEYS = ("schema", "name", "sources", "inertia", "bodies", "joints", "spine", "coordinates", "landmarks")
_AXES = {"x": 0, "y": 1, "z": 2}
_MIRROR = np.diag([1.0, 1.0, -1.0])


@dataclass(frozen=True, eq=False)
class Landmark:
    """Place on a body, zero posture, stature 1; `bone`: palpable."""

    body: str
    at: np.ndarray
    bone: bool


@dataclass(frozen=True)
class _Segment:
    """Row of bodies: inertia row, ends, share, longitudinal axis."""

    name: str
    size: str
    inertia: str
    ends: tuple[tuple[float, float, float], tuple[float, float, float]]
    portion: float
    along: str


@dataclass(frozen=True, eq=False)
class _JointRow:
    """Row of joints: place and axes, zero posture, stature 1."""

    body: str
    parent: str
    at: np.ndarray
    rotations: tuple[CoordinateAxis, ...]
    translations: tuple[CoordinateAxis, ...]


@dataclass(frozen=True, eq=False)
class PersonFile:
    """Model of a person with both sides.

    Attributes:
        inertia: sex -> row -> mass, centre, radii about x, z and the longitudinal axis [shares].
        segments: parents first.
        joints: parents first.
        coordinates: [rad].
        spreads: standard deviation of poorly determined coordinates [rad].
    """

    name: str
    inertia: dict[str, dict[str, tuple[float, ...]]]
    segments: tuple[_Segment, ...]
    joints: tuple[_JointRow, ...]
    coordinates: tuple[Coordinate, ...]
    spreads: dict[str, float]
    landmarks: dict[str, Landmark]

    @property
    def sizes(self) -> dict[str, str]:
        """Body -> size group, left with right."""
        return {s.name: s.size for s in self.segments}

    def build(self, stature: float, mass: float, sex: str, markers: Sequence[Marker] = ()) -> Person:
        """Return the person of a stature [m], mass [kg] and sex ("men" or "women").

        Args:
            markers: places in the zero posture for stature 1.

        Raises:
            ConfigError: if stature or mass is impossible.
            UnknownNameError: if the sex is unknown.
        """
        for what, value, (least, most), unit in (("stature", stature, STATURE, "m"), ("mass", mass, MASS, "kg")):
            if not (np.isfinite(value) and least <= value <= most):
                raise ConfigError(
                    f"a {what} of {value:g} {unit} is implausible: it must be {least:g} to {most:g} {unit}"
                )
        if sex not in SEXES:
            raise UnknownNameError("sex", sex, SEXES)
        origin = {j.body: stature * j.at for j in self.joints} | {GROUND: np.zeros(3)}
        joints = [_scaled(j, stature, origin) for j in self.joints]
        bodies = [_body(s, self.inertia[sex], stature, mass, origin[s.name]) for s in self.segments]
        placed = [replace(m, place=stature * np.asarray(m.place) - origin[m.body]) for m in markers]
        return Person(
            self.name, tuple(bodies), tuple(joints), _at_height(self, stature), tuple(placed), sizes=self.sizes
        )


def find_person_file(name: str | Path) -> PersonFile:
    """Return a built-in model or a file; UnknownNameError or RobotError if invalid."""
    path = Path(name)
    if path.suffix.lower() in (".yaml", ".yml"):
        return read_person_file(path)
    if str(name) not in MODELS:
        raise UnknownNameError("model", str(name), MODELS, "(or give the path of an .osim or .yaml file)")
    return _builtin(str(name))


@cache
def _builtin(name: str) -> PersonFile:
    return read_person_file(FOLDER / f"{name}.yaml")


def read_person_file(path: Path) -> PersonFile:
    """Read a model file; RobotError or UnknownNameError if invalid."""
    d = schema_file(path, SCHEMA, "model of a person")
    with told_of(path):
        check_keys(d, KEYS, ("name", "inertia", "bodies", "joints", "coordinates"), "the file")
        inertia = {
            sex: {row: tuple(_values(values, 5, f"inertia of {sex}, {row}") / 100) for row, values in table.items()}
            for sex, table in _inertia_tables(d)
        }
        segments = [
            _segment(row, inertia[SEXES[0]], f"bodies[{k}]") for k, row in enumerate(list_of(d, "bodies", "file"))
        ]
        names = _unique([s.name for s in segments], "body")
        joints = [_joint(row, (*names, GROUND), f"joints[{k}]") for k, row in enumerate(list_of(d, "joints", "file"))]
        for k, row in enumerate(rows_of(d, "spine", "file")):
            joints += _region(row, names, joints, f"spine[{k}]")
        coordinates, spreads = _coordinates(d)
        moved = {a.coordinate for j in joints for a in (*j.rotations, *j.translations)}
        free = [Coordinate(n, n not in _lengths(joints)) for n in moved if n not in coordinates and n in _root(joints)]
        for n in sorted(moved - set(coordinates) - {c.name for c in free}):
            raise RobotError(f"coordinates: lacks '{n}', which a joint moves with: give its range")
        landmarks = {
            str(name): _landmark(row, names, f"landmark '{shown(name)}'")
            for name, row in (mapping_of(d, "landmarks", "file") if d.get("landmarks") else {}).items()
        }
        everything = {c.name: c for c in free} | coordinates
        ordered = [everything[n] for n in _order(joints)]
        for n in coordinates:
            if n not in moved:
                raise UnknownNameError("coordinate", n, moved, hint="(no joint moves with it)")
        return PersonFile(
            text(d, "name", "file"),
            inertia,
            tuple(_both_sides(segments, _mirrored_segment)),
            tuple(_both_sides(joints, _mirrored_joint)),
            tuple(_both_sides(ordered, _mirrored_coordinate)),
            {n: s for name, s in spreads.items() for n in {name, mirror(name)}},
            {
                n: m
                for name, mark in landmarks.items()
                for n, m in ((name, mark), (mirror(name), _mirrored_mark(mark, name)))
            },
        )


def mirror(name: str) -> str:
    """Return the left name: femur_r -> femur_l; others stay."""
    return name[: -len(RIGHT)] + LEFT if name.endswith(RIGHT) else name


# -------- Rows


def _values(value: Any, size: int, where: str) -> np.ndarray:
    """Return finite numbers (size,) within LARGEST; 0: any count."""
    try:
        out = np.array(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        out = np.array(np.nan)
    if out.ndim != 1 or (size and len(out) != size) or not len(out) or not np.isfinite(out).all():
        raise RobotError(f"{where}: must be {f'{size} ' if size else ''}numbers, got {shown(value)}")
    if np.abs(out).max() > LARGEST:
        raise RobotError(f"{where}: must be within {LARGEST:g}, got {shown(value)}")
    return out


def _number(row: dict[str, Any], key: str, where: str) -> float:
    return float(_values([row[key]], 1, f"{where}: '{key}'")[0])


def _inertia_tables(d: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    tables = mapping_of(d, "inertia", "file")
    check_keys(tables, SEXES, SEXES, "inertia")
    out = [(sex, mapping_of(tables, sex, "inertia")) for sex in SEXES]
    for sex, table in out:
        for row, values in table.items():
            if (_values(values, 5, f"inertia of {sex}, {row}") < 0).any():
                raise RobotError(f"inertia of {sex}, {shown(row)}: must not be negative, got {shown(values)}")
    for row in set(out[0][1]) ^ set(out[1][1]):
        raise RobotError(f"inertia: '{shown(row)}' is given for one sex only: give both")
    return out


def _unique(names: Sequence[str], kind: str) -> list[str]:
    for name in names:
        if names.count(name) > 1:
            raise RobotError(f"the {kind} '{shown(name)}' occurs more than once: keep one of them")
        if name.endswith(LEFT):
            raise RobotError(f"the {kind} '{shown(name)}' is a left one: give the right one, which is mirrored")
    return list(names)


def _segment(row: Any, table: dict[str, Any], where: str) -> _Segment:
    keys = ("name", "size", "inertia", "from", "to", "portion", "along")
    where = check_row(row, keys, where)
    check_keys(row, keys, ("name", "size"), where)
    along = known("axis", text(row, "along", where), ("x", "y"), where) if "along" in row else "y"
    if "inertia" not in row:
        return _Segment(text(row, "name", where), text(row, "size", where), "", ((0, 0, 0), (0, 1, 0)), 0.0, along)
    name = known("row of inertia", text(row, "inertia", where), table, where)
    check_keys(row, keys, ("from", "to"), where)
    first, last = (tuple(_values(row[key], 3, f"{where}: '{key}'").tolist()) for key in ("from", "to"))
    portion = _number(row, "portion", where) if "portion" in row else 1.0
    if not 0 < portion <= 1:
        raise RobotError(f"{where}: 'portion' is {portion:g}: it must be above 0 and at most 1")
    return _Segment(text(row, "name", where), text(row, "size", where), name, (first, last), portion, along)


def _axis_vector(value: Any, where: str) -> np.ndarray:
    if isinstance(value, str) and value.lstrip("-") in _AXES and value.count("-") <= 1:
        return (-1.0 if value.startswith("-") else 1.0) * np.eye(3)[_AXES[value.lstrip("-")]]
    vector = _values(value, 3, f"{where}: an axis is x, y, z, -x, -y, -z or three numbers; '{shown(value)}'")
    if not np.linalg.norm(vector) > 0:
        raise RobotError(f"{where}: has an axis of no length: give it a direction")
    return vector / np.linalg.norm(vector)


def _axes(rows: list[Any], where: str) -> tuple[CoordinateAxis, ...]:
    """Return axes of [coordinate, axis] or [coordinate, axis, share]."""
    out = []
    for row in rows:
        if not (isinstance(row, list) and len(row) in (2, 3) and isinstance(row[0], str)):
            raise RobotError(f"{where}: an axis is [coordinate, axis] or [coordinate, axis, share], got {shown(row)}")
        share = float(_values([row[2]], 1, f"{where}: the share of '{row[0]}'")[0]) if len(row) == 3 else 1.0
        out.append(CoordinateAxis(_axis_vector(row[1], f"{where}, '{row[0]}'"), Function((0.0, share)), row[0]))
    return tuple(out)


def _joint(row: Any, names: Sequence[str], where: str) -> _JointRow:
    keys = ("body", "parent", "at", "turns", "moves", "slides")
    check_row(row, keys, where)
    check_keys(row, keys, ("body", "parent", "at"), where)
    body, parent = (known("body", text(row, key, where), names, where) for key in ("body", "parent"))
    where = f"joint of '{body}'"
    moves = _axes(rows_of(row, "moves", where), where)
    slides = [_slide(s, where) for s in rows_of(row, "slides", where)]
    at = _values(row["at"], 3, f"{where}: 'at'")
    return _JointRow(body, parent, at, _axes(rows_of(row, "turns", where), where), (*moves, *slides))


def _slide(row: Any, where: str) -> CoordinateAxis:
    keys = ("coordinate", "axis", "stature", "rad", "m")
    check_row(row, keys, f"{where}, slides")
    check_keys(row, keys, keys, f"{where}, slides")
    x, y = _values(row["rad"], 0, f"{where}: 'rad'"), _values(row["m"], 0, f"{where}: 'm'")
    stature = _number(row, "stature", where)
    if len(x) != len(y) or not stature >= STATURE[0]:
        raise RobotError(f"{where}: a slide has as many values 'm' as 'rad', and a stature of {STATURE[0]:g} m or more")
    with told_of(where):
        spline = Function((), tuple(x.tolist()), tuple((y / stature).tolist()))
        y0 = float(spline(0.0))
        return CoordinateAxis(
            _axis_vector(row["axis"], where),
            Function((), spline.x, tuple(v - y0 for v in spline.y)),
            text(row, "coordinate", where),
        )


def _region(row: Any, names: Sequence[str], joints: list[_JointRow], where: str) -> list[_JointRow]:
    keys = ("parent", "at", "length", "turns", "levels")
    check_row(row, keys, where)
    check_keys(row, keys, ("parent", "length", "turns", "levels"), where)
    parent = known("body", text(row, "parent", where), names, where)
    turns, length = _axes(list_of(row, "turns", where), where), _number(row, "length", where)
    levels = []
    for level in list_of(row, "levels", where):
        if not (isinstance(level, list) and len(level) == 4 and isinstance(level[0], str)):
            raise RobotError(f"{where}: a level is [body, height, forward, [ranges]], got {shown(level)}")
        told = f"{where}, level '{shown(level[0])}'"
        height, forward = _values(level[1:3], 2, f"{told}: height and forward offset")
        ranges = _values(level[3], len(turns), f"{told}: ranges")
        if height <= 0 or (ranges < 0).any():
            raise RobotError(f"{told}: its height must be positive, its ranges not negative")
        levels.append((known("body", level[0], names, told), height, forward, ranges))
    heights, ranges = np.array([v[1] for v in levels]), np.array([v[3] for v in levels])
    if not (length > 0 and levels and (ranges.sum(axis=0) > 0).all()):
        raise RobotError(f"{where}: needs a length above 0, levels, and ranges that are not all 0")
    scale, shares = length / heights.sum(), ranges / ranges.sum(axis=0)
    if "at" in row:
        at = _values(row["at"], 3, f"{where}: 'at'")
    else:
        before = [j for j in joints if j.body == parent]
        if not before or not isinstance(before[0], _Level):
            raise RobotError(f"{where}: give 'at', where it begins: '{parent}' is not the last level of another region")
        at = before[0].top
    out: list[_JointRow] = []
    for (body, height, forward, _), share in zip(levels, shares, strict=True):
        axes = tuple(replace(a, function=Function((0.0, float(s)))) for a, s in zip(turns, share, strict=True) if s > 0)
        top = at + np.array([1e-3 * forward / 1.741, scale * height, 0.0])
        out.append(_Level(body, parent, at, axes, (), top))
        parent, at = body, top
    return out


@dataclass(frozen=True, eq=False)
class _Level(_JointRow):
    """Level of the spine; the next starts at `top`."""

    top: np.ndarray


def _coordinates(d: dict[str, Any]) -> tuple[dict[str, Coordinate], dict[str, float]]:
    keys = ("name", "range", "rest", "spread")
    out: dict[str, Coordinate] = {}
    spreads: dict[str, float] = {}
    for k, row in enumerate(list_of(d, "coordinates", "file")):
        where = check_row(row, keys, f"coordinates[{k}]")
        check_keys(row, keys, ("name", "range"), where)
        name = text(row, "name", where)
        lower, upper = _values(row["range"], 2, f"{where}: 'range'")
        rest = _number(row, "rest", where) if "rest" in row else 0.0
        if not lower <= rest <= upper:
            raise RobotError(f"{where}: its range is {lower:g} to {upper:g} deg, and it rests at {rest:g}: correct one")
        if name in out:
            raise RobotError(f"{where}: occurs more than once: keep one of them")
        if "spread" in row:
            spreads[name] = float(np.deg2rad(_number(row, "spread", where)))
            if not spreads[name] > 0:
                raise RobotError(f"{where}: 'spread' must be above 0")
        low, rest_, high = np.deg2rad([lower, rest, upper]).tolist()
        out[name] = Coordinate(name, True, rest_, low, high, True)
    return out, spreads


def _landmark(row: Any, names: Sequence[str], where: str) -> Landmark:
    keys = ("body", "at", "bone")
    check_row(row, keys, where)
    check_keys(row, keys, ("body", "at"), where)
    bone = row.get("bone", False)
    if not isinstance(bone, bool):
        raise RobotError(f"{where}: 'bone' must be true or false, got {shown(bone)}")
    return Landmark(
        known("body", text(row, "body", where), names, where), _values(row["at"], 3, f"{where}: 'at'"), bone
    )


# -------- Order, roots, both sides


def _lengths(joints: Sequence[_JointRow]) -> set[str]:
    return {a.coordinate for j in joints for a in j.translations if a.function.linear} - {
        a.coordinate for j in joints for a in j.rotations
    }


def _root(joints: Sequence[_JointRow]) -> set[str]:
    return {a.coordinate for j in joints if j.parent == GROUND for a in (*j.rotations, *j.translations)}


def _order(joints: Sequence[_JointRow]) -> list[str]:
    """Return coordinates in joint order, the root first."""
    first = sorted(joints, key=lambda j: j.parent != GROUND)
    return list(dict.fromkeys(a.coordinate for j in first for a in (*j.rotations, *j.translations)))


def _both_sides(rows: Sequence[Any], mirrored: Any) -> list[Any]:
    """Return right rows, then left ones."""
    right = [mirrored(row) for row in rows]
    return [*rows, *(m for row, m in zip(rows, right, strict=True) if m is not row)]


def _mirrored_segment(s: _Segment) -> _Segment:
    if not s.name.endswith(RIGHT):
        return s
    first, last = ((x, y, -z) for x, y, z in s.ends)
    return replace(s, name=mirror(s.name), ends=(first, last))


def _mirrored_joint(j: _JointRow) -> _JointRow:
    """Mirror a joint: negate z, reverse rotations."""
    if not j.body.endswith(RIGHT):
        return j
    turns = tuple(replace(a, vector=-_MIRROR @ a.vector, coordinate=mirror(a.coordinate)) for a in j.rotations)
    moves = tuple(replace(a, vector=_MIRROR @ a.vector, coordinate=mirror(a.coordinate)) for a in j.translations)
    return _JointRow(mirror(j.body), mirror(j.parent), _MIRROR @ j.at, turns, moves)


def _mirrored_coordinate(c: Coordinate) -> Coordinate:
    return replace(c, name=mirror(c.name)) if c.name.endswith(RIGHT) else c


def _mirrored_mark(mark: Landmark, name: str) -> Landmark:
    return Landmark(mirror(mark.body), _MIRROR @ mark.at, mark.bone) if name.endswith(RIGHT) else mark


# -------- The person


def _scaled(j: _JointRow, stature: float, origin: dict[str, np.ndarray]) -> AnatomicalJoint:
    """Scale a joint; the root stays at the origin."""
    if j.parent == GROUND:
        return AnatomicalJoint("ground_pelvis", GROUND, j.body, rotations=j.rotations, translations=j.translations)
    slides = tuple(replace(a, function=a.function.scaled(stature)) for a in j.translations)
    return AnatomicalJoint(
        f"joint_{j.body}",
        j.parent,
        j.body,
        OffsetFrame(p=origin[j.body] - origin[j.parent]),
        OffsetFrame(),
        j.rotations,
        slides,
    )


def _body(
    s: _Segment, table: dict[str, tuple[float, ...]], stature: float, mass: float, origin: np.ndarray
) -> PersonBody:
    if not s.inertia:
        return PersonBody(s.name, 0.0, np.zeros(3), np.zeros((3, 3)))
    share, centre, sagittal, transverse, longitudinal = table[s.inertia]
    first, last = (stature * np.array(end) for end in s.ends)
    m, length = s.portion * share * mass, float(np.linalg.norm(last - first))
    radii = (sagittal, longitudinal, transverse) if s.along == "y" else (longitudinal, transverse, sagittal)
    inertia = m * np.diag([(r * length) ** 2 for r in radii])
    return PersonBody(s.name, m, first + centre * (last - first) - origin, inertia)


def _at_height(file: PersonFile, stature: float) -> tuple[Coordinate, ...]:
    """Return coordinates with the root at standing height."""
    root = next(j for j in file.joints if j.parent == GROUND)
    rest = {a.coordinate: stature * float(a.vector @ root.at) for a in root.translations}
    return tuple(replace(c, default=rest[c.name]) if c.name in rest else c for c in file.coordinates)
