"""Swept-sphere volumes, segments, pairs, and their YAML file.

Segments are mirrored to the other side (Schwienbacher 2014, section 6.6):

    schema: humanoid_ssv/1
    segments:
    - name: l_thigh
      link: l_thigh
      mirror: y                     # adds r_thigh on the link r_thigh
      volumes:
      - {name: bone, type: line, radius: 0.065, vertices: [[0, 0, -0.05], [0, 0, -0.41]]}
      - {name: inner, type: point, radius: 0.07, vertices: [[0, -0.01, -0.2]], group: inside}
    pairs:
    - [l_thigh:inside, r_thigh:inside]   # these groups only; several as l_thigh:inside+front
    - [l_thigh, r_shank]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.collision.ssv.distance_kernels import TYPE_NAMES
from humanoid_control.errors import RobotError, UnknownNameError, shown
from humanoid_control.files import (
    FARTHEST,
    build_row,
    check_keys,
    check_row,
    list_of,
    mirrored_name,
    schema_file,
    text,
    whole_file,
)

Vec3 = tuple[float, float, float]
AXES = ("x", "y", "z")


@dataclass(frozen=True)
class Volume:
    """All points within `radius` of a point, a line or a triangle.

    Attributes:
        type: 'point', 'line' or 'triangle'.
        vertices: one to three points in the link frame [m].
        group: name by which pairs select volumes, or empty.
        mirror: 'x', 'y' or 'z' adds the image with this coordinate negated; empty: none.

    Raises:
        UnknownNameError: if the type or axis is unknown.
        RobotError: if vertices or radius are invalid.
    """

    name: str
    type: str
    radius: float
    vertices: tuple[Vec3, ...]
    group: str = ""
    mirror: str = ""

    def __post_init__(self) -> None:
        if self.type not in TYPE_NAMES:
            raise UnknownNameError("type", self.type, TYPE_NAMES, hint=f"(volume '{self.name}')")
        count = TYPE_NAMES.index(self.type) + 1
        if len(self.vertices) != count or any(len(v) != 3 for v in self.vertices):
            raise RobotError(f"volume '{self.name}': a {self.type} has {count} vertices of x, y, z")
        if not all(math.isfinite(x) for v in self.vertices for x in v):
            raise RobotError(f"volume '{self.name}': vertices must be finite")
        if not (math.isfinite(self.radius) and self.radius >= 0.0):
            raise RobotError(f"volume '{self.name}': the radius must be zero or more, got {self.radius}")
        _check_axis(self.mirror, f"volume '{self.name}'")

    def mirrored(self, axis: str) -> Volume:
        """Return the image with one coordinate negated, named after the other side."""
        k = AXES.index(axis)
        vertices = tuple(tuple(-x if c == k else x for c, x in enumerate(v)) for v in self.vertices)
        return replace(self, name=mirrored_name(self.name), vertices=vertices, mirror="")  # type: ignore[arg-type]


@dataclass(frozen=True)
class Segment:
    """Compound of volumes on one link; need not be convex.

    Attributes:
        mirror: 'x', 'y' or 'z' adds the other side, `l_thigh` -> `r_thigh`, with this coordinate negated; empty: none.

    Raises:
        UnknownNameError: if the axis is unknown.
        RobotError: if there are no volumes, repeated names, or a mirrored name without a side.
    """

    name: str
    link: str
    volumes: tuple[Volume, ...]
    mirror: str = ""

    def __post_init__(self) -> None:
        where = f"segment '{self.name}'"
        _check_axis(self.mirror, where)
        if not self.volumes:
            raise RobotError(f"{where} has no volume")
        names = [s.name for s in self.volumes]
        if len(set(names)) < len(names):
            raise RobotError(f"{where} has two volumes named '{next(n for n in names if names.count(n) > 1)}'")
        if self.mirror and mirrored_name(self.name) == self.name:
            raise RobotError(f"{where} cannot be mirrored: its name has no side, such as l_ or _left")


@dataclass(frozen=True)
class SegmentPair:
    """Two segments that must not touch (eq. (5.3)), with all volumes or those of some groups.

    Groups are versions of a segment for different partners: the inner thigh for the other thigh, the outer one for the
    arm.
    """

    first: str
    second: str
    groups_1: tuple[str, ...] = ()
    groups_2: tuple[str, ...] = ()


def expand(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """Return the segments with mirror images, each after its original.

    Raises:
        RobotError: if names are repeated.
    """
    out: list[Segment] = []
    for s in segments:
        ssvs: list[Volume] = []
        for v in s.volumes:
            ssvs.append(replace(v, mirror=""))
            if v.mirror:
                image = v.mirrored(v.mirror)
                ssvs.append(image if image.name != v.name else replace(image, name=f"{v.name}_mirrored"))
        plain = Segment(s.name, s.link, tuple(ssvs))
        out.append(plain)
        if s.mirror:
            out.append(Segment(mirrored_name(s.name), mirrored_name(s.link), tuple(v.mirrored(s.mirror) for v in ssvs)))
    names = [s.name for s in out]
    for name in names:
        if names.count(name) > 1:
            raise RobotError(f"two segments are named '{name}': a mirrored one stands for both sides")
    return tuple(out)


def _check_axis(axis: str, where: str) -> None:
    if axis and axis not in AXES:
        raise UnknownNameError("mirror axis", axis, AXES, hint=f"({where})")


# -------- The file

SCHEMA = "humanoid_ssv/1"
FILE_KEYS = ("schema", "robot", "segments", "pairs")
SEGMENT_KEYS = ("name", "link", "mirror", "volumes")
VOLUME_KEYS = ("name", "type", "radius", "vertices", "group", "mirror")


@dataclass(frozen=True)
class SegmentFile:
    """Contents of a file of volumes."""

    segments: tuple[Segment, ...]
    pairs: tuple[SegmentPair, ...] | None = None
    robot: str = ""


def read_segment_file(path: Path) -> SegmentFile:
    """Read a file.

    Raises:
        RobotError: if the file is invalid.
        UnknownNameError: if a name is unknown.
    """
    d = schema_file(path, SCHEMA, "volume file")
    check_keys(d, FILE_KEYS, ("segments",), str(path))
    segments = tuple(_segment(row, f"{path}: segments[{k}]") for k, row in enumerate(list_of(d, "segments", str(path))))
    pairs = None
    if "pairs" in d:
        pairs = tuple(_pair(row, f"{path}: pairs[{k}]") for k, row in enumerate(list_of(d, "pairs", str(path))))
    return SegmentFile(segments, pairs, str(d.get("robot", "")))


def write_segment_file(path: Path, file: SegmentFile) -> None:
    """Write a file atomically.

    Raises:
        ConfigError: if it cannot be written.
    """
    d: dict[str, Any] = {"schema": SCHEMA}
    if file.robot:
        d["robot"] = file.robot
    d["segments"] = [_segment_row(s) for s in file.segments]
    if file.pairs is not None:
        d["pairs"] = [[_side(p.first, p.groups_1), _side(p.second, p.groups_2)] for p in file.pairs]
    content = yaml.safe_dump(d, sort_keys=False, default_flow_style=None, width=160)
    with whole_file(path) as part:
        part.write_text(content)


def _segment(row: Any, where: str) -> Segment:
    where = check_row(row, SEGMENT_KEYS, where)
    check_keys(row, SEGMENT_KEYS, ("name", "link", "volumes"), where)
    rows = list_of(row, "volumes", where)
    ssvs = tuple(_volume(v, f"{where} volumes[{k}]") for k, v in enumerate(rows))
    names = text(row, "name", where), text(row, "link", where)
    return build_row(where, Segment, *names, ssvs, str(row.get("mirror") or ""))


def _volume(row: Any, where: str) -> Volume:
    where = check_row(row, VOLUME_KEYS, where)
    check_keys(row, VOLUME_KEYS, ("name", "type", "radius", "vertices"), where)
    try:
        radius = float(row["radius"])
        vertices = tuple(tuple(float(x) for x in v) for v in row["vertices"])
    except (TypeError, ValueError, OverflowError):
        raise RobotError(f"{where}: radius must be a number, vertices a list of [x, y, z]") from None
    if not all(abs(x) <= FARTHEST for v in ((radius,), *vertices) for x in v):
        raise RobotError(f"{where}: radius and vertices must be within {FARTHEST:g} m, got {shown(row)}")
    more = str(row.get("group") or ""), str(row.get("mirror") or "")
    return build_row(where, Volume, text(row, "name", where), str(row["type"]), radius, vertices, *more)


def _pair(row: Any, where: str) -> SegmentPair:
    if not isinstance(row, list) or len(row) != 2:
        raise RobotError(f"{where}: a pair is two names of segments, [first, second]")
    (first, groups_1), (second, groups_2) = (_names(str(x)) for x in row)
    return SegmentPair(first, second, groups_1, groups_2)


def _names(text: str) -> tuple[str, tuple[str, ...]]:
    name, _, groups = text.partition(":")
    return name.strip(), tuple(g.strip() for g in groups.split("+") if g.strip())


def _side(name: str, groups: tuple[str, ...]) -> str:
    return f"{name}:{'+'.join(groups)}" if groups else name


def _segment_row(s: Segment) -> dict[str, Any]:
    volumes = []
    for v in s.volumes:
        row: dict[str, Any] = {"name": v.name, "type": v.type, "radius": v.radius}
        row["vertices"] = [list(x) for x in v.vertices]
        volumes.append(row | {k: x for k, x in (("group", v.group), ("mirror", v.mirror)) if x})
    mirror = {"mirror": s.mirror} if s.mirror else {}
    return {"name": s.name, "link": s.link, **mirror, "volumes": volumes}
