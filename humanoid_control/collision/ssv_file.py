"""The file of a robot's swept-sphere volumes: segments, volumes and pairs, in YAML that a person can write.

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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from humanoid_control.collision.ssv_segments import Segment, SegmentPair, Ssv
from humanoid_control.errors import HumanoidError, RobotError, UnknownNameError
from humanoid_control.whole_files import whole_file
from humanoid_control.yaml_file import schema_file

SCHEMA = "humanoid_ssv/1"
FILE_KEYS = ("schema", "robot", "segments", "pairs")
SEGMENT_KEYS = ("name", "link", "mirror", "volumes")
VOLUME_KEYS = ("name", "type", "radius", "vertices", "group", "mirror")


@dataclass(frozen=True)
class SsvFile:
    """What such a file says.

    Attributes:
        segments: as drawn, before mirroring.
        pairs: to watch, picked by hand; None where the file leaves them to sampling.
        robot: whose links they are on, for the reader only.
    """

    segments: tuple[Segment, ...]
    pairs: tuple[SegmentPair, ...] | None = None
    robot: str = ""


def read_ssv_file(path: Path) -> SsvFile:
    """Read a file.

    Raises:
        RobotError, UnknownNameError: one line that names the file, the place in it, and the nearest right word.
    """
    d = schema_file(path, SCHEMA, "file of volumes")
    _check_keys(d, FILE_KEYS, ("segments",), str(path))
    segments = tuple(_segment(row, f"{path}: segments[{k}]") for k, row in enumerate(_list(d, "segments", str(path))))
    pairs = None
    if "pairs" in d:
        pairs = tuple(_pair(row, f"{path}: pairs[{k}]") for k, row in enumerate(_list(d, "pairs", str(path))))
    return SsvFile(segments, pairs, str(d.get("robot", "")))


def write_ssv_file(path: Path, file: SsvFile) -> None:
    """Write a file that `read_ssv_file` reads as the same; never half of it.

    Raises:
        ConfigError: it cannot be written.
    """
    d: dict[str, Any] = {"schema": SCHEMA}
    if file.robot:
        d["robot"] = file.robot
    d["segments"] = [_segment_row(s) for s in file.segments]
    if file.pairs is not None:
        d["pairs"] = [[_side(p.first, p.groups_1), _side(p.second, p.groups_2)] for p in file.pairs]
    text = yaml.safe_dump(d, sort_keys=False, default_flow_style=None, width=160)
    with whole_file(path) as part:
        part.write_text(text)


def _segment(row: Any, where: str) -> Segment:
    where = _check_row(row, SEGMENT_KEYS, ("name", "link", "volumes"), where)
    rows = _list(row, "volumes", where)
    ssvs = tuple(_volume(v, f"{where} volumes[{k}]") for k, v in enumerate(rows))
    return _made(where, Segment, str(row["name"]), str(row["link"]), ssvs, str(row.get("mirror") or ""))


def _volume(row: Any, where: str) -> Ssv:
    where = _check_row(row, VOLUME_KEYS, ("name", "type", "radius", "vertices"), where)
    try:
        radius = float(row["radius"])
        vertices = tuple(tuple(float(x) for x in v) for v in row["vertices"])
    except (TypeError, ValueError):
        raise RobotError(f"{where}: radius must be a number, vertices a list of [x, y, z]") from None
    more = str(row.get("group") or ""), str(row.get("mirror") or "")
    return _made(where, Ssv, str(row["name"]), str(row["type"]), radius, vertices, *more)


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
    for v in s.ssvs:
        row: dict[str, Any] = {"name": v.name, "type": v.type, "radius": v.radius}
        row["vertices"] = [list(x) for x in v.vertices]
        volumes.append(row | {k: x for k, x in (("group", v.group), ("mirror", v.mirror)) if x})
    mirror = {"mirror": s.mirror} if s.mirror else {}
    return {"name": s.name, "link": s.link, **mirror, "volumes": volumes}


def _check_row(row: Any, keys: tuple[str, ...], needed: tuple[str, ...], where: str) -> str:
    """Where the row is, with its name."""
    if not isinstance(row, dict):
        raise RobotError(f"{where}: must be a mapping with the keys {', '.join(keys)}")
    named = f"{where} '{row['name']}'" if "name" in row else where
    _check_keys(row, keys, needed, named)
    return named


def _check_keys(row: dict[str, Any], keys: tuple[str, ...], needed: tuple[str, ...], where: str) -> None:
    for key in row:
        if key not in keys:
            raise UnknownNameError("key", str(key), keys, hint=f"(in {where})")
    for key in needed:
        if key not in row:
            raise RobotError(f"{where}: lacks the key '{key}'")


def _list(row: dict[str, Any], key: str, where: str) -> list[Any]:
    if not isinstance(row[key], list):
        raise RobotError(f"{where}: '{key}' must be a list")
    return row[key]


def _made(where: str, make: Any, *values: Any) -> Any:
    try:
        return make(*values)
    except HumanoidError as e:
        raise RobotError(f"{where}: {e}") from None
