"""The robot file: what a robot needs beside its URDF. One small YAML file that a user can write by hand."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from humanoid_control.collision.shapes import SIZES, Box, Cylinder, LinkShape, Shape, Sphere, shape_from_row
from humanoid_control.errors import RobotError
from humanoid_control.files import check_keys, schema_file
from humanoid_control.robots.description.urdf import UrdfTree, placement

SCHEMA = "humanoid_robot/1"


@dataclass(frozen=True)
class Foot:
    """A flat sole: a rectangle on a link, in the link frame [m]."""

    name: str
    link: str
    x_min: float
    x_max: float
    y_min: float
    y_max: float
    z: float

    def corners(self) -> np.ndarray:
        """The four corners (4, 3) in the link frame."""
        xs, ys = (self.x_min, self.x_max), (self.y_min, self.y_max)
        return np.array([[x, y, self.z] for x in xs for y in ys])


@dataclass(frozen=True)
class RobotFile:
    """The contents of a robot file; every field has a default, so an empty file is a valid one.

    Attributes:
        name, title, height [m]: identity; empty: the URDF's.
        base: 'fixed' or 'floating', unless `load_robot` is told otherwise.
        anchor: link that a fixed base holds still; empty: the root.
        root_height: height of the root link above the floor by posture [m]; 'neutral' counts.
        root_rpy: roll, pitch, yaw [rad] of the root link when the robot stands upright and looks along x.
        postures: name -> joint -> angle [rad]; joints that are not named are zero.
        imitation_joints: joints that imitation moves; empty: all but the optional ones and the toes.
        optional_joints: joints that imitation leaves in the neutral posture.
        meanings: anatomical name -> joint, where they differ.
        points: name -> link and place in its frame [m].
        feet: soles. collision: shapes in place of the URDF's own.
        collision_from: where the shapes come from, where they were not measured; results repeat it.
        disabled_pairs: names of shapes that may touch.
        unwatched_links: links whose shapes are not kept apart, but for those that are `against` one of the two.
        provenance: number of values by provenance, of a robot of the catalogue.
        where: path of the file, for messages.
    """

    name: str = ""
    title: str = ""
    height: float = float("nan")
    base: str = "fixed"
    anchor: str = ""
    root_height: dict[str, float] = field(default_factory=dict)
    root_rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
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
    provenance: dict[str, int] = field(default_factory=dict)
    where: str = ""


def read_robot_file(path: Path) -> RobotFile:
    """Read a robot file.

    Raises:
        RobotError: unreadable, another schema, an unknown key, a wrong value.
    """
    d = schema_file(path, SCHEMA, "robot file")
    del d["schema"]
    check_keys(d, RobotFile.__dataclass_fields__, (), str(path))
    try:
        return RobotFile(**_typed(d, str(path)), where=str(path))
    except (TypeError, ValueError, KeyError) as e:
        raise RobotError(f"{path}: wrong value: {e}") from None


def _typed(d: dict[str, Any], where: str) -> dict[str, Any]:
    out = dict(d)
    for key in ("imitation_joints", "optional_joints"):
        if key in out:
            out[key] = tuple(out[key])
    if "root_rpy" in out:
        out["root_rpy"] = tuple(float(v) for v in out["root_rpy"])
        if len(out["root_rpy"]) != 3:
            raise ValueError("root_rpy must be roll, pitch, yaw")
    if "points" in out:
        out["points"] = {k: (v["link"], tuple(float(x) for x in v["xyz"])) for k, v in out["points"].items()}
    if "feet" in out:
        out["feet"] = tuple(Foot(**row) for row in out["feet"])
    if "collision" in out:
        out["collision"] = tuple(shape_from_row(row, where) for row in out["collision"])
    for key in ("disabled_pairs", "unwatched_links"):
        if key in out:
            out[key] = tuple((a, b) for a, b in out[key])
    if "base" in out and out["base"] not in ("fixed", "floating"):
        raise ValueError(f"base must be 'fixed' or 'floating', got {out['base']!r}")
    return out


def shapes_from_urdf(tree: UrdfTree) -> tuple[LinkShape, ...]:
    """The collision shapes of a URDF that are primitives, each under a name of its own.

    Meshes are passed over, and shapes without a size, which some URDFs have in place of none.
    """
    shapes: list[LinkShape] = []
    taken: set[str] = set()
    for link in tree.document.findall("link"):
        name = link.get("name", "")
        for k, collision in enumerate(link.findall("collision")):
            label = collision.get("name") or (name if k == 0 else f"{name}_{k}")
            label = next(x for n in count(1) if (x := label if n == 1 else f"{label}_{n}") not in taken)
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
    box, cylinder, sphere = (g.find(k) if g is not None else None for k in ("box", "cylinder", "sphere"))
    if box is not None:
        import pinocchio as pin

        size = tuple(float(v) for v in box.get("size", "0 0 0").split())
        rpy = tuple(float(v) for v in pin.rpy.matrixToRpy(X.rotation))
        return LinkShape(label, link, Box(c, size, rpy))  # type: ignore[arg-type]
    if cylinder is not None:
        half = X.rotation[:, 2] * float(cylinder.get("length", "0")) / 2
        p0, p1 = (tuple(float(v) for v in X.translation + s * half) for s in (-1, 1))
        return LinkShape(label, link, Cylinder(p0, p1, float(cylinder.get("radius", "0"))))  # type: ignore[arg-type]
    if sphere is not None:
        return LinkShape(label, link, Sphere(c, float(sphere.get("radius", "0"))))  # type: ignore[arg-type]
    return None
