"""Robot file: data of a robot besides its URDF, in one small YAML file."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count as counting
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from humanoid_control.collision.shapes import SIZES, Box, Capsule, Cylinder, LinkShape, Shape, Sphere, shape_from_row
from humanoid_control.errors import RobotError, shown
from humanoid_control.files import (
    check_keys,
    check_row,
    count,
    mapping_of,
    number,
    schema_file,
    text,
    texts,
    within,
)
from humanoid_control.robots.description.urdf import UrdfTree, placement

SCHEMA = "humanoid_robot/1"


@dataclass(frozen=True)
class Foot:
    """Flat sole: a rectangle in the link frame [m]."""

    name: str
    link: str
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    z: float

    def corners(self) -> np.ndarray:
        """Return the corners (4, 3) in the link frame."""
        xs, ys = (self.x_min, self.x_max), (self.y_min, self.y_max)
        return np.array([[x, y, self.z] for x in xs for y in ys])


@dataclass(frozen=True)
class AddedFrame:
    """Frame fixed to a link at xyz [m], with roll, pitch, yaw [rad], in the link frame."""

    link: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def pose(self) -> pin.SE3:
        """Return the pose in the link frame."""
        return pin.SE3(pin.rpy.rpyToMatrix(*self.rpy), np.array(self.xyz))


@dataclass(frozen=True)
class RobotFile:
    """Contents of a robot file; all fields are optional.

    Attributes:
        name: default: the URDF's.
        height: [m].
        base: 'fixed' or 'floating'.
        anchor: link held by a fixed base; default: root.
        root_height: root link above the floor by posture [m]; 'neutral' is used.
        root_rpy: roll, pitch, yaw [rad] of the root link of an upright robot facing x.
        frames: added frames, for soles and points on oblique links.
        postures: name -> joint -> angle [rad]; default 0.
        imitation_joints: default: all but optional ones and toes.
        optional_joints: kept neutral by imitation.
        meanings: anatomical name -> joint, if different.
        points: name -> link and position in its frame [m].
        collision: replaces the URDF's shapes.
        collision_from: origin of unmeasured shapes, repeated in results.
        disabled_pairs: shapes that may touch.
        unwatched_links: links not kept apart, except by shapes with `against`.
        acceleration_limits: joint -> [rad/s^2, of sliding joints m/s^2]; default: drive capability.
        provenance: number of values by provenance.
        where: path, for messages.
    """

    name: str = ""
    title: str = ""
    height: float = float("nan")
    base: str = "fixed"
    anchor: str = ""
    root_height: dict[str, float] = field(default_factory=dict)
    root_rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    frames: dict[str, AddedFrame] = field(default_factory=dict)
    postures: dict[str, dict[str, float]] = field(default_factory=dict)
    imitation_joints: tuple[str, ...] = ()
    optional_joints: tuple[str, ...] = ()
    meanings: dict[str, str] = field(default_factory=dict)
    points: dict[str, tuple[str, tuple[float, float, float]]] = field(default_factory=dict)
    feet: tuple[Foot, ...] = ()
    collision: tuple[LinkShape, ...] = ()
    collision_from: str = ""
    disabled_pairs: tuple[tuple[str, str], ...] = ()
    unwatched_links: tuple[tuple[str, str], ...] = ()
    acceleration_limits: dict[str, float] = field(default_factory=dict)
    provenance: dict[str, int] = field(default_factory=dict)
    where: str = ""


def read_robot_file(path: Path) -> RobotFile:
    """Read a robot file.

    Raises:
        RobotError: if the file is invalid.
    """
    d = schema_file(path, SCHEMA, "robot file")
    del d["schema"]
    check_keys(d, RobotFile.__dataclass_fields__, (), str(path))
    return RobotFile(**{key: _READERS.get(key, text)(d, key, str(path)) for key in d}, where=str(path))


FOOT_KEYS = tuple(Foot.__dataclass_fields__)
POINT_KEYS = ("link", "xyz")
FRAME_KEYS = (*POINT_KEYS, "rpy")
TALLEST = 100.0  # [m] of a robot: larger is not in metres


def _height(d: dict[str, Any], key: str, where: str) -> float:
    height = number(d, key, where)
    if not 0 < height <= TALLEST:
        raise RobotError(f"{where}: 'height' must be above 0 and at most {TALLEST:g} m, got {height:g}")
    return height


def _base(d: dict[str, Any], key: str, where: str) -> str:
    if d[key] not in ("fixed", "floating"):
        raise RobotError(f"{where}: base must be 'fixed' or 'floating', got '{shown(d[key])}'")
    return str(d[key])


def _rpy(d: dict[str, Any], key: str, where: str) -> tuple[float, ...]:
    try:
        return tuple(within(d, key, (3,), where).tolist())
    except RobotError as e:
        raise RobotError(f"{e}: {key} must be roll, pitch, yaw [rad]") from None


def _rows(d: dict[str, Any], key: str, where: str) -> list[Any]:
    if not isinstance(d[key], list):
        raise RobotError(f"{where}: wrong value: '{key}' must be a list, got {shown(d[key])}")
    return list(d[key])


def _numbers(d: dict[str, Any], key: str, where: str) -> dict[str, float]:
    values = mapping_of(d, key, where)
    return {name: float(within(values, name, (), f"{where}: {key}")) for name in values}


def _limits(d: dict[str, Any], key: str, where: str) -> dict[str, float]:
    values = mapping_of(d, key, where)
    limits = {name: number(values, name, f"{where}: {key}") for name in values}
    for name, value in limits.items():
        if not value > 0:
            raise RobotError(f"{where}: {key}: '{shown(name)}' must be above 0, got {value:g}")
    return limits


def _counts(d: dict[str, Any], key: str, where: str) -> dict[str, int]:
    values = mapping_of(d, key, where)
    return {name: count(values, name, f"{where}: {key}") for name in values}


def _texts_by_name(d: dict[str, Any], key: str, where: str) -> dict[str, str]:
    values = mapping_of(d, key, where)
    return {name: text(values, name, f"{where}: {key}") for name in values}


def _postures(d: dict[str, Any], key: str, where: str) -> dict[str, dict[str, float]]:
    rows = mapping_of(d, key, where)
    return {name: _numbers(rows, name, f"{where}: posture") for name in rows}


def _points(d: dict[str, Any], key: str, where: str) -> dict[str, tuple[str, tuple[float, ...]]]:
    out = {}
    for name, row in mapping_of(d, key, where).items():
        at = f"{where}: point '{shown(name)}'"
        check_row(row, POINT_KEYS, at)
        check_keys(row, POINT_KEYS, POINT_KEYS, at)
        out[name] = (text(row, "link", at), tuple(within(row, "xyz", (3,), at).tolist()))
    return out


def _frames(d: dict[str, Any], key: str, where: str) -> dict[str, AddedFrame]:
    out = {}
    for name, row in mapping_of(d, key, where).items():
        at = f"{where}: frame '{shown(name)}'"
        check_row(row, FRAME_KEYS, at)
        check_keys(row, FRAME_KEYS, POINT_KEYS, at)
        xyz = tuple(within(row, "xyz", (3,), at).tolist())
        out[name] = AddedFrame(text(row, "link", at), xyz, _rpy(row, "rpy", at) if "rpy" in row else (0.0, 0.0, 0.0))  # type: ignore[arg-type]
    return out


def _feet(d: dict[str, Any], key: str, where: str) -> tuple[Foot, ...]:
    return tuple(_foot(row, f"{where}: feet[{k}]") for k, row in enumerate(_rows(d, key, where)))


def _foot(row: Any, where: str) -> Foot:
    where = check_row(row, FOOT_KEYS, where)
    check_keys(row, FOOT_KEYS, FOOT_KEYS, where)
    foot = Foot(
        text(row, "name", where), text(row, "link", where), *(float(within(row, k, (), where)) for k in FOOT_KEYS[2:])
    )
    if not (foot.x_min < foot.x_max and foot.y_min < foot.y_max):
        raise RobotError(f"{where}: a sole needs x_min < x_max and y_min < y_max")
    return foot


def _shapes(d: dict[str, Any], key: str, where: str) -> tuple[LinkShape, ...]:
    return tuple(shape_from_row(row, where) for row in _rows(d, key, where))


def _pairs(d: dict[str, Any], key: str, where: str) -> tuple[tuple[str, ...], ...]:
    rows = _rows(d, key, where)
    pairs = tuple(texts({f"{key}[{k}]": row}, f"{key}[{k}]", where) for k, row in enumerate(rows))
    for k, pair in enumerate(pairs):
        if len(pair) != 2:
            raise RobotError(f"{where}: {key}[{k}] must be two names, got {shown(rows[k])}")
    return pairs


_READERS: dict[str, Callable[[dict[str, Any], str, str], Any]] = {  # of values other than text
    "height": _height,
    "base": _base,
    "root_height": _numbers,
    "root_rpy": _rpy,
    "frames": _frames,
    "postures": _postures,
    "imitation_joints": texts,
    "optional_joints": texts,
    "meanings": _texts_by_name,
    "points": _points,
    "feet": _feet,
    "collision": _shapes,
    "disabled_pairs": _pairs,
    "unwatched_links": _pairs,
    "acceleration_limits": _limits,
    "provenance": _counts,
}


def shapes_from_urdf(tree: UrdfTree) -> tuple[LinkShape, ...]:
    """Return the primitive collision shapes of a URDF under unique names."""
    shapes: list[LinkShape] = []
    taken: set[str] = set()
    for link in tree.document.findall("link"):
        name = link.get("name", "")
        for k, collision in enumerate(link.findall("collision")):
            label = collision.get("name") or (name if k == 0 else f"{name}_{k}")
            label = next(x for n in counting(1) if (x := label if n == 1 else f"{label}_{n}") not in taken)
            item = _primitive(collision, label, name)
            if item is not None and _has_size(item.shape):
                shapes.append(item)
                taken.add(label)
    return tuple(shapes)


def _has_size(shape: Shape) -> bool:
    return all(v > 0 for name in SIZES for v in np.atleast_1d(getattr(shape, name, 1.0)))


def _primitive(collision: ET.Element, label: str, link: str) -> LinkShape | None:
    X = placement(collision.find("origin"))
    c = tuple(float(v) for v in X.translation)
    g = collision.find("geometry")
    kinds = ("box", "cylinder", "capsule", "sphere")
    box, cylinder, capsule, sphere = (g.find(k) if g is not None else None for k in kinds)
    if box is not None:
        size = tuple(float(v) for v in box.get("size", "0 0 0").split())
        rpy = tuple(float(v) for v in pin.rpy.matrixToRpy(X.rotation))
        return LinkShape(label, link, Box(c, size, rpy))  # type: ignore[arg-type]
    long = cylinder if cylinder is not None else capsule
    if long is not None:
        half = X.rotation[:, 2] * float(long.get("length", "0")) / 2
        p0, p1 = (tuple(float(v) for v in X.translation + s * half) for s in (-1, 1))
        kind = Cylinder if long is cylinder else Capsule
        return LinkShape(label, link, kind(p0, p1, float(long.get("radius", "0"))))  # type: ignore[arg-type]
    if sphere is not None:
        return LinkShape(label, link, Sphere(c, float(sphere.get("radius", "0"))))  # type: ignore[arg-type]
    return None
